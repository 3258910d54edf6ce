/* items.c - the table of a frame's work items, and what becomes of a launch. */
#include "graph/run/loop/items.h"
#include "graph/run/loop/measure.h"

/* What a chain may put in: of each session its actions with the texts before them, a region, and
 * of a ring what runs before and behind every forward; of all of them forwards and prefills, and
 * the texts behind. */
static int most_of(const struct tec_loop *l, const struct tec_chain *c)
{
    int stages = c->ring ? c->plan->spec.stages : 0;
    return l->sessions * (3 * c->n_actions + 3 + 2 * stages) + 6 + stages;
}

enum tec_status tec_schedule_create(struct tec_loop *l, struct tec_error *err)
{
    int most = TEC_MAX_LAUNCHES + l->n_pending + 8;
    for (int i = 0; i < l->n_hard; i++)
        most += most_of(l, &l->chains[l->hard[i]]);
    l->most_items = most;
    l->items = TEC_NEW(&l->arena, (size_t)most + 1, struct tec_scheduled);
    return l->items ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for %d work items", most);
}

struct tec_scheduled *tec_schedule_add(struct tec_loop *l, const struct tec_scheduled_kind *kind,
                                       struct tec_chain *c, int who, int of)
{
    bool full = l->n_items == l->most_items; /* then most_of is wrong */
    struct tec_scheduled *it = &l->items[full ? l->most_items : l->n_items++];
    l->record.failed |= full;
    *it = (struct tec_scheduled){
        .kind = kind, .chain = c, .launch = &l->launch, .who = who, .of = of};
    return it;
}

static bool works(struct tec_loop *l, const struct tec_replay *replay)
{
    tec_loop_replayed(l, replay->start_ns, replay->end_ns);
    l->record.waited_ns += replay->waited_ns;
    l->record.failed |= replay->status != TEC_OK;
    return replay->status == TEC_OK;
}

bool tec_loop_launch(struct tec_loop *l, const struct tec_chain *c, struct tec_launch *launch)
{
    tec_executor_launch(c->executor, launch);
    return works(l, &launch->replay);
}

void tec_schedule_settle(struct tec_loop *l, struct tec_scheduled *it)
{
    if (works(l, &it->launch->replay))
        it->kind->settle(l, it);
    else if (it->kind->fail)
        it->kind->fail(l, it);
}
