/* schedule.c - the scheduler of a frame: items in, launches out, until none is ready.
 *
 * Frame thread. It knows no kind of work: what an item launches and what becomes of that stands
 * with its kind (items.def). An item may take several launches, as slices or batches; between two
 * of them nothing else runs, because what is more urgent came before it. */
#include "graph/run/loop/schedule.h"
#include "graph/run/loop/hard.h"
#include "graph/run/loop/own_frames.h"
#include "graph/run/loop/ring.h"
#include "graph/run/loop/soft.h"
#include "graph/run/loop/text_first.h"

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
