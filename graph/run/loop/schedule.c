/* schedule.c - the scheduler of a frame: items in, launches out, until none is ready.
 *
 * Frame thread. It knows no kind of work: what an item launches and what becomes of that stands
 * with its kind (items.def). An item may take several launches, as slices or batches; between two
 * of them nothing else runs, because what is more urgent came before it. */
#include "graph/run/loop/schedule.h"

#include "graph/run/loop/state_rings.h"
#include "graph/run/loop/state_texts.h"

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

/* --- running --------------------------------------------------------------------------------- */

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

static void run_item(struct tec_loop *l, struct tec_scheduled *it)
{
    const struct tec_scheduled_kind *kind = it->kind;
    tec_loop_turn(l, it->who);
    for (; it->at == 0 || !kind->once; it->at++) {
        if ((l->record.failed && !kind->always) || !kind->next(l, it))
            break;
        if (kind->launch)
            kind->launch(l, it);
        else
            tec_executor_launch(it->chain->executor, it->launch);
        tec_schedule_settle(l, it);
    }
    it->state = TEC_ITEM_OVER;
}

/* Items that come in meanwhile stand behind. */
static void run_ready(struct tec_loop *l)
{
    for (; l->n_ran < l->n_items; l->n_ran++)
        if (l->items[l->n_ran].state == TEC_ITEM_READY)
            run_item(l, &l->items[l->n_ran]);
}

/* Of the chains that have run, the one with the earliest hard texts that are still to come, and are
 * due before `until_ns`; NULL = none. */
static struct tec_chain *next_behind(const struct tec_loop *l, int n, int64_t until_ns)
{
    struct tec_chain *first = NULL;
    for (int i = 0; i < n; i++) {
        struct tec_chain *c = &l->chains[l->hard[i]];
        bool comes = c->behind_ns && !c->behind && c->behind_ns < until_ns;
        if (comes && (!first || c->behind_ns < first->behind_ns))
            first = c;
    }
    return first;
}

/* Hard texts that nobody waits for, behind the first n chains: those that are due before what comes
 * next. */
static void run_behind(struct tec_loop *l, int n)
{
    int64_t until_ns = n < l->n_hard ? l->chains[l->hard[n]].due_ns : INT64_MAX;
    struct tec_chain *c;
    while (!l->record.failed && (c = next_behind(l, n, until_ns))) {
        tec_loop_turn(l, 0);
        tec_loop_add_texts(l, c, l->n_own - 1, TEC_TEXTS_BEHIND);
        run_ready(l);
        c->behind = true; /* also where nothing was to be said */
    }
}

void tec_schedule_run(struct tec_loop *l)
{
    bool observed = tec_loop_observed(l);
    l->n_items = l->n_ran = 0;
    tec_loop_turn(l, 0);
    for (int i = 0; i < l->n_hard && !l->record.failed; i++) {
        struct tec_chain *c = &l->chains[l->hard[i]];
        if (c->ring)
            tec_rings_add(l, c);
        else if (observed)
            tec_loop_add_hard(l, c);
        run_ready(l);
        if (observed)
            run_behind(l, i + 1);
    }
    tec_loop_turn(l, 0);
    tec_loop_add_soft(l, observed);
    run_ready(l);
}

/* --- what is told ---------------------------------------------------------------------------- */

const char *tec_loop_node_name(const struct tec_loop *l, int node)
{
    return node >= 0 ? l->o.topology->nodes[node].name : "";
}

struct tec_launch_record *tec_loop_note(struct tec_loop *l, const char *node, int64_t start_ns,
                                        int64_t end_ns)
{
    struct tec_frame_record *r = &l->record;
    if (r->n_launches == TEC_MAX_LAUNCHES)
        return &r->launches[TEC_MAX_LAUNCHES - 1];
    struct tec_launch_record *launch = &r->launches[r->n_launches++];
    *launch = (struct tec_launch_record){.node = node,
                                         .rows = 1,
                                         .batch = 1,
                                         .k = 1,
                                         .request = -1,
                                         .start_ns = start_ns,
                                         .end_ns = end_ns};
    return launch;
}

void tec_loop_tell_run(const struct tec_loop *l, struct tec_event of, int64_t start_ns,
                       int64_t end_ns)
{
    const struct tec_ring_event ring = {.slot = -1, .base = -1};
    const struct tec_event end = {.kind = TEC_EVENT_END,
                                  .what = of.what,
                                  .node = of.node,
                                  .request = of.request,
                                  .drafted = of.drafted,
                                  .kept = of.kept,
                                  .ring = of.ring ? &ring : NULL,
                                  .t_ns = end_ns,
                                  .since_ns = start_ns};
    of.kind = TEC_EVENT_START;
    of.t_ns = start_ns;
    of.drafted = of.kept = 0;
    tec_loop_tell(l, of);
    tec_loop_tell(l, end);
}

static int one_or(int n)
{
    return n > 0 ? n : 1;
}

void tec_loop_tell_launch(struct tec_loop *l, struct tec_event of, int batch, int64_t start_ns,
                          int64_t end_ns)
{
    tec_loop_tell_run(l, of, start_ns, end_ns);
    struct tec_launch_record *note =
        tec_loop_note(l, tec_loop_node_name(l, of.node), start_ns, end_ns);
    note->rows = one_or(of.rows > 0 ? of.rows : of.observations);
    note->batch = one_or(batch);
    note->k = one_or(of.k > 0 ? of.k : of.slices);
    note->request = of.request;
}
