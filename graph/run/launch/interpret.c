/* interpret.c - an executor that merges nothing: each launch is one node for one request.
 *
 * Frame thread. It shares the launches of launch.c, launch_ring.c and launch_score.c with the real
 * executor and cuts what the loop asks for into the smallest of them. Times are those of the first
 * and the last of these launches, so a policy that looks at times may decide otherwise than with
 * the real executor. */
#include "graph/run/launch/interpret.h"

#include "graph/run/launch/launch_ring.h"

#include <string.h>

/* Add a launch to what the loop is told about all of them; false: it failed. */
static bool add(struct tec_replay *sum, const struct tec_replay *one, bool first)
{
    if (first)
        sum->start_ns = one->start_ns;
    sum->end_ns = one->end_ns;
    for (int i = 0; i < TEC_MAX_MARKS; i++)
        if (one->mark_ns[i])
            sum->mark_ns[i] = one->mark_ns[i];
    if (one->status != TEC_OK)
        sum->status = one->status;
    return one->status == TEC_OK;
}

/* Advance one row by up to k steps, each a launch. */
static bool advance(struct tec_plan *plan, struct tec_row_state *row, int k, int *tokens, int *made,
                    struct tec_replay *replay, bool first)
{
    struct tec_plan_part *part = tec_plan_part(plan, TEC_PART_DECODE, 1);
    int steps = 0;
    *made = 0;
    for (int i = 0; i < k && (i == 0 || !row->done); i++) {
        struct tec_replay one = {0};
        int new = 0;
        tec_launch_decode(plan, part, &row, 1, 1, tokens + *made, &new, &one);
        *made += new;
        steps += row->steps;
        if (!add(replay, &one, first && i == 0))
            return false;
    }
    row->steps = steps;
    return true;
}

static void interpret_decode(struct tec_plan *plan, struct tec_launch *l)
{
    const struct tec_decode_launch *d = &l->decode;
    bool works = true;
    for (int i = 0; i < d->n && works; i++)
        works = advance(plan, d->rows[i], d->k, d->tokens + (ptrdiff_t)i * d->k, &d->made[i],
                        &l->replay, i == 0);
}

/* The whole prefill with the first slice; the others have nothing left to do. */
static void interpret_slice(struct tec_plan *plan, struct tec_launch *l)
{
    const struct tec_observed *of = &l->slice.of;
    struct tec_plan_part *part = tec_plan_part(plan, TEC_PART_PREFIX, 0);
    const struct tec_clock real = {0};
    l->slice.state = TEC_SLICE_DONE;
    if (l->slice.at == 0) {
        tec_launch_prefix(plan, part, of->region, &of->input->prefix, NULL, &l->replay);
        return;
    }
    l->replay.start_ns = l->replay.end_ns = l->replay.mark_ns[TEC_MARK_PREFILL] =
        tec_clock_now(&real);
}

static void interpret_packed(struct tec_plan *plan, struct tec_launch *l)
{
    struct tec_replay *replay = &l->replay;
    const struct tec_ring_rows *in = &l->packed.in;
    bool works = true;
    int made;
    for (int i = 0; i < in->entering && works; i++) {
        const struct tec_ring_rows one = {
            .prefixes = in->prefixes + i, .rows = in->rows + i, .entering = 1};
        struct tec_replay own = {0};
        tec_launch_packed(plan, tec_plan_part(plan, TEC_PART_PACKED, 0), &one, l->packed.tokens + i,
                          &own);
        works = add(replay, &own, i == 0);
    }
    for (int i = in->entering; i < in->entering + in->n && works; i++)
        works = advance(plan, in->rows[i], 1, l->packed.tokens + i, &made, replay, i == 0);
    replay->mark_ns[TEC_MARK_PACKED] = replay->end_ns;
}

/* Where a launch would merge; the others are one node for one request as they are. */
static void interpret_launch(void *self, struct tec_launch *launch)
{
    static void (*const cut[TEC_LAUNCH_COUNT])(struct tec_plan *, struct tec_launch *) = {
        [TEC_LAUNCH_decode] = interpret_decode,
        [TEC_LAUNCH_slice] = interpret_slice,
        [TEC_LAUNCH_packed] = interpret_packed};
    if (cut[launch->kind])
        cut[launch->kind](self, launch);
    else
        tec_launch_run(self, false, launch);
}

struct tec_executor tec_executor_interpret(struct tec_plan *plan)
{
    struct tec_executor e = tec_executor_real(plan);
    e.together = e.verifies = false;
    e.launch = interpret_launch;
    return e;
}
