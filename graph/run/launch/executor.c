/* executor.c - the executor of a real device: each launch is one replay of a captured part.
 *
 * Frame thread, and for what runs beside it a lane of the second partition. It only looks up the
 * part and forwards the arguments; the replays are in launch.c, launch_ring.c, launch_score.c and
 * launch_verify.c, the executor that spends virtual time in virtual.c. */
#include "graph/run/launch/executor.h"

#include <string.h>

static struct tec_plan_part *part_of(struct tec_plan *plan, bool beside, enum tec_part_kind kind,
                                     int n)
{
    return beside ? tec_plan_part_concurrent(plan, kind, n) : tec_plan_part(plan, kind, n);
}

/* What an action node starts from. */
static struct tec_action_inputs start_of(int at, const struct tec_chain_input *input)
{
    int i = at < 0 ? 0 : at;
    return (struct tec_action_inputs){.noise = input->noise[i],
                                      .n_fixed = input->n_fixed[i],
                                      .previous = input->previous[i],
                                      .pulls = input->pulls[i],
                                      .n_previous = input->n_previous[i],
                                      .state = input->state};
}

static struct tec_prefix_place place_of(const struct tec_observed *of)
{
    return (struct tec_prefix_place){of->region, &of->input->prefix, of->known};
}

static void run_together(struct tec_plan *plan, const struct tec_prefix_launch *p,
                         struct tec_replay *replay)
{
    struct tec_prefix_place places[TEC_MAX_SESSIONS];
    struct tec_action_inputs actions[TEC_MAX_SESSIONS];
    for (int i = 0; i < p->n; i++) {
        places[i] = place_of(&p->each[i]);
        actions[i] = start_of(plan->spec.frame_action, p->each[i].input);
    }
    tec_launch_prefixes(plan, tec_plan_part(plan, TEC_PART_FRAME, p->n), places, actions, p->n,
                        replay);
}

static void run_prefix(struct tec_plan *plan, bool beside, struct tec_launch *l)
{
    const struct tec_observed *one = l->prefix.each;
    if (l->prefix.n > 1) {
        run_together(plan, &l->prefix, &l->replay);
        return;
    }
    const struct tec_action_inputs a = start_of(plan->spec.frame_action, one->input);
    const struct tec_prefix_place place = place_of(one);
    enum tec_part_kind kind = l->prefix.acts ? TEC_PART_FRAME : TEC_PART_PREFIX;
    tec_launch_prefixes(plan, part_of(plan, beside, kind, 0), &place, &a, 1, &l->replay);
}

static void run_slice(struct tec_plan *plan, bool beside, struct tec_launch *l)
{
    const struct tec_prefix_place place = place_of(&l->slice.of);
    tec_launch_slice(plan, part_of(plan, beside, TEC_PART_PREFIX, 0), l->slice.at, &place,
                     &l->replay);
    l->slice.state = TEC_SLICE_DONE;
}

static void run_action(struct tec_plan *plan, bool beside, struct tec_launch *l)
{
    struct tec_action_inputs a = start_of(l->action.at, l->action.input);
    a.state = l->action.state;
    a.text = l->action.text;
    a.tail = l->action.tail;
    tec_launch_action(plan, part_of(plan, beside, TEC_PART_ACTION, l->action.at), l->action.region,
                      l->action.rows, &a, &l->replay);
}

static void run_decode(struct tec_plan *plan, bool beside, struct tec_launch *l)
{
    const struct tec_decode_launch *d = &l->decode;
    tec_launch_decode(plan, part_of(plan, beside, TEC_PART_DECODE, d->n), d->rows, d->n, d->k,
                      d->tokens, d->made, &l->replay);
}

static void run_verify(struct tec_plan *plan, bool beside, struct tec_launch *l)
{
    tec_launch_verify(plan, part_of(plan, beside, TEC_PART_VERIFY, l->verify.n), l->verify.rows,
                      l->verify.n, &l->replay);
}

static void run_score(struct tec_plan *plan, bool beside, struct tec_launch *l)
{
    tec_launch_score(plan, part_of(plan, beside, TEC_PART_SCORE, 0), &l->score, &l->replay);
}

static void run_packed(struct tec_plan *plan, bool beside, struct tec_launch *l)
{
    const struct tec_ring_rows *in = &l->packed.in;
    if (in->entering)
        tec_launch_packed(plan, part_of(plan, beside, TEC_PART_PACKED, 0), in, l->packed.tokens,
                          &l->replay);
    else
        tec_launch_advance(plan, part_of(plan, beside, TEC_PART_DECODE, in->n), in,
                           l->packed.tokens, &l->replay);
}

static void run_shift(struct tec_plan *plan, bool beside, struct tec_launch *l)
{
    tec_launch_shift(plan, part_of(plan, beside, TEC_PART_SHIFT, 0), l->shift.moves, l->shift.n,
                     &l->replay);
}

void tec_launch_run(struct tec_plan *plan, bool beside, struct tec_launch *launch)
{
    static void (*const run[TEC_LAUNCH_COUNT])(struct tec_plan *, bool, struct tec_launch *) = {
#define LAUNCH(name) [TEC_LAUNCH_##name] = run_##name,
#include "graph/run/launch/launches.def"
#undef LAUNCH
    };
    run[launch->kind](plan, beside, launch);
}

static void real_launch(void *self, struct tec_launch *launch)
{
    tec_launch_run(self, false, launch);
}

static void real_chunk(void *self, const struct tec_launch *launch, int i, float *chunk)
{
    struct tec_plan *plan = self;
    if (launch->kind == TEC_LAUNCH_action)
        tec_launch_actions(plan, tec_plan_part(plan, TEC_PART_ACTION, launch->action.at), chunk);
    else if (launch->prefix.n > 1)
        tec_launch_actions_of(plan, tec_plan_part(plan, TEC_PART_FRAME, launch->prefix.n), i,
                              chunk);
    else
        tec_launch_actions(plan, tec_plan_part(plan, TEC_PART_FRAME, 0), chunk);
}

struct tec_executor tec_executor_real(struct tec_plan *plan)
{
    bool host = tec_device_reads_host(plan->device);
    return (struct tec_executor){.self = plan,
                                 .ran = host ? tec_clock_process : NULL,
                                 .together = true,
                                 .verifies = true,
                                 .shifts = plan->spec.shifts && !plan->spec.interpret,
                                 .launch = real_launch,
                                 .chunk = real_chunk};
}
