#include "graph/run/executor.h"

#include <string.h>

static void real_prefix(void *self, enum tec_part_kind kind, int region,
                        const struct tec_frame_input *input, struct tec_replay *replay)
{
    struct tec_plan *plan = self;
    const struct tec_action_inputs a = {
        .noise = input->noise, .n_fixed = input->n_fixed, .state = input->state};
    tec_launch_prefix(plan, tec_plan_part(plan, kind, 0), region, &input->prefix, &a, replay);
}

static void real_actions(void *self, float *chunk)
{
    struct tec_plan *plan = self;
    tec_launch_actions(plan, tec_plan_part(plan, TEC_PART_FRAME, 0), chunk);
}

static void real_decode(void *self, struct tec_row_state *const *rows, int n, int k, int *tokens,
                        int *made, struct tec_replay *replay)
{
    struct tec_plan *plan = self;
    tec_launch_decode(plan, tec_plan_part(plan, TEC_PART_DECODE, n), rows, n, k, tokens, made,
                      replay);
}

struct tec_executor tec_executor_real(struct tec_plan *plan)
{
    return (struct tec_executor){
        .self = plan, .prefix = real_prefix, .actions = real_actions, .decode = real_decode};
}

static void spend(struct tec_virtual_costs *c, struct tec_replay *replay, int mark, int64_t ns)
{
    *c->clock_ns += ns;
    replay->mark_ns[mark] = *c->clock_ns;
    if (replay->marked)
        replay->marked(replay->user, mark, *c->clock_ns);
}

static void virtual_prefix(void *self, enum tec_part_kind kind, int region,
                           const struct tec_frame_input *input, struct tec_replay *replay)
{
    struct tec_virtual_costs *c = self;
    (void)region, (void)input;
    replay->start_ns = *c->clock_ns;
    spend(c, replay, TEC_MARK_PREFILL, c->prefill_ns);
    if (kind == TEC_PART_FRAME && c->plan->spec.steps)
        spend(c, replay, TEC_MARK_ACTION, c->action_ns);
    replay->end_ns = *c->clock_ns;
}

static void virtual_actions(void *self, float *chunk)
{
    const struct tec_virtual_costs *c = self;
    const struct tec_flow *f = &c->plan->model->flow;
    memset(chunk, 0, (size_t)f->horizon * (size_t)f->dim * sizeof *chunk);
}

static void virtual_decode(void *self, struct tec_row_state *const *rows, int n, int k, int *tokens,
                           int *made, struct tec_replay *replay)
{
    struct tec_virtual_costs *c = self;
    replay->start_ns = *c->clock_ns;
    for (int i = 0; i < n; i++) {
        made[i] = k < rows[i]->left ? k : rows[i]->left;
        for (int t = 0; t < made[i]; t++)
            tokens[i * k + t] = 3 + t;
        rows[i]->left -= made[i];
        rows[i]->done = rows[i]->left == 0;
    }
    spend(c, replay, TEC_MARK_DECODE, c->step_ns * k);
    replay->end_ns = *c->clock_ns;
}

struct tec_executor tec_executor_virtual(struct tec_virtual_costs *costs)
{
    return (struct tec_executor){.self = costs,
                                 .clock = {costs->clock_ns},
                                 .prefix = virtual_prefix,
                                 .actions = virtual_actions,
                                 .decode = virtual_decode};
}
