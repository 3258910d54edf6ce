/* executor.c - the executor of a real device: each call of the loop is one launch of a captured
 * part.
 *
 * Frame thread. It only looks up the part and forwards the arguments; the launches are in launch.c,
 * launch_ring.c and launch_score.c, the executor that spends virtual time in virtual.c. */
#include "graph/run/executor.h"

#include <string.h>

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

static void real_prefix(void *self, enum tec_part_kind kind, int region,
                        const struct tec_chain_input *input, struct tec_replay *replay)
{
    struct tec_plan *plan = self;
    const struct tec_action_inputs a = start_of(plan->spec.frame_action, input);
    tec_launch_prefix(plan, tec_plan_part(plan, kind, 0), region, &input->prefix, &a, replay);
}

static void real_together(void *self, const struct tec_observed *each, int n,
                          struct tec_replay *replay)
{
    struct tec_plan *plan = self;
    struct tec_prefix_place places[TEC_MAX_SESSIONS];
    struct tec_action_inputs actions[TEC_MAX_SESSIONS];
    for (int i = 0; i < n; i++) {
        places[i] = (struct tec_prefix_place){each[i].region, &each[i].input->prefix};
        actions[i] = start_of(plan->spec.frame_action, each[i].input);
    }
    tec_launch_prefixes(plan, tec_plan_part(plan, TEC_PART_FRAME, n), places, actions, n, replay);
}

static void real_actions_of(void *self, int i, int n, float *chunk)
{
    struct tec_plan *plan = self;
    tec_launch_actions_of(plan, tec_plan_part(plan, TEC_PART_FRAME, n), i, chunk);
}

static void real_action(void *self, const struct tec_action_launch *launch,
                        struct tec_replay *replay)
{
    struct tec_plan *plan = self;
    struct tec_action_inputs a = start_of(launch->at, launch->input);
    a.state = launch->state;
    a.text = launch->text;
    a.tail = launch->tail;
    tec_launch_action(plan, tec_plan_part(plan, TEC_PART_ACTION, launch->at), launch->region,
                      launch->rows, &a, replay);
}

static void real_actions(void *self, int at, float *chunk)
{
    struct tec_plan *plan = self;
    bool frame = at == plan->spec.frame_action;
    tec_launch_actions(
        plan, tec_plan_part(plan, frame ? TEC_PART_FRAME : TEC_PART_ACTION, frame ? 0 : at), chunk);
}

static void real_decode(void *self, struct tec_row_state *const *rows, int n, int k, int *tokens,
                        int *made, struct tec_replay *replay)
{
    struct tec_plan *plan = self;
    tec_launch_decode(plan, tec_plan_part(plan, TEC_PART_DECODE, n), rows, n, k, tokens, made,
                      replay);
}

static void real_verify(void *self, struct tec_verify_row *rows, int n, struct tec_replay *replay)
{
    struct tec_plan *plan = self;
    tec_launch_verify(plan, tec_plan_part(plan, TEC_PART_VERIFY, n), rows, n, replay);
}

static void real_slice(void *self, int at, int region, const struct tec_chain_input *input,
                       struct tec_replay *replay, enum tec_slice *state)
{
    struct tec_plan *plan = self;
    tec_launch_slice(plan, tec_plan_part(plan, TEC_PART_PREFIX, 0), at, region, &input->prefix,
                     replay);
    *state = TEC_SLICE_DONE;
}

static void real_score(void *self, const struct tec_token_tree *tree,
                       const struct tec_row_state *row, float *likely, struct tec_replay *replay)
{
    struct tec_plan *plan = self;
    const struct tec_score_launch launch = tec_score_launch_of(tree, row, likely);
    tec_launch_score(plan, tec_plan_part(plan, TEC_PART_SCORE, 0), &launch, replay);
}

static void real_packed(void *self, struct tec_ring_launch *launch)
{
    struct tec_plan *plan = self;
    const struct tec_ring_rows *in = &launch->in;
    int made[TEC_MAX_STAGES];
    if (in->entering)
        tec_launch_packed(plan, tec_plan_part(plan, TEC_PART_PACKED, 0), in, launch->tokens,
                          &launch->replay);
    else
        tec_launch_decode(plan, tec_plan_part(plan, TEC_PART_DECODE, in->n), in->rows, in->n, 1,
                          launch->tokens, made, &launch->replay);
}

static void real_shift(void *self, const struct tec_ring_move *moves, int n,
                       struct tec_replay *replay)
{
    struct tec_plan *plan = self;
    tec_launch_shift(plan, tec_plan_part(plan, TEC_PART_SHIFT, 0), moves, n, replay);
}

struct tec_executor tec_executor_real(struct tec_plan *plan)
{
    return (struct tec_executor){.self = plan,
                                 .prefix = real_prefix,
                                 .together = real_together,
                                 .actions_of = real_actions_of,
                                 .action = real_action,
                                 .actions = real_actions,
                                 .decode = real_decode,
                                 .verify = real_verify,
                                 .slice = real_slice,
                                 .score = real_score,
                                 .packed = real_packed,
                                 .shift = real_shift};
}
