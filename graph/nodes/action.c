/* action.c - flow matching: noise to a chunk of actions in S Euler steps over the frame's keys.
 *
 * The suffix's rows append their own keys to the prefix in scratch slots and rewrite them each
 * step. Everything that depends on the time alone comes from tables.
 *
 * Where the node has a prefix of actions (trained real-time chunking, arXiv 2512.05964), the first
 * *n_fixed rows of x hold given actions: their norms and gates are those of time 0, and no step
 * moves them. The other rows see them as keys, and are computed as ever.
 *
 * Where it has an earlier chunk (real-time chunking by guidance, arXiv 2506.07339, as LeRobot's
 * RTCProcessor has it), each velocity is pulled so that the end of the flow nears that chunk. */
#include "graph/nodes/built.h"

#include <math.h>
#include <stdio.h>

/* The rows that enter the stack at one step. */
static int embed_suffix(struct tec_lower *l, int x, int state, int step)
{
    const struct tec_flow *f = &l->model->flow;
    const struct tec_weights *w = l->weights;
    const struct tec_rows *rows = &l->prefix->suffix;
    int first = tec_flow_leads(f) ? l->prefix->most : 0;
    int y = tec_program_tensor(l->program, "suffix", rows->max, f->stack.width, rows->count);
    if (first)
        tec_lower_linear_into(l, &w->state, state, y, 0, NULL, false, "state_in");
    if (f->condition) {
        tec_lower_linear_into(l, &w->in, x, y, first, NULL, false, "action_in");
        return y;
    }
    struct tec_matrix time1 = w->time1;
    time1.bias = l->flow->time_bias + (size_t)step * (size_t)l->flow->padded;
    int a = tec_lower_linear(l, &w->in, x, "action_in");
    int z = tec_lower_linear(l, &time1, a, "time_in");
    struct tec_call call = tec_call_of(TEC_OP_silu, "silu");
    call.in[0] = call.out[0] = z;
    tec_program_call(l->program, &call);
    tec_lower_linear_into(l, &w->time2, z, y, first, NULL, false, "time_out");
    return y;
}

/* v = out(norm(y)), the last `horizon` rows. */
static int velocity(struct tec_lower *l, const struct tec_forward *f, int y)
{
    const struct tec_flow *flow = &l->model->flow;
    const struct tec_matrix *m = &l->weights->out;
    int n = tec_lower_norm(l, f, 0, 2, y, false, "final");
    if (f->tap)
        tec_lower_tap(l, n, "%sfinal_norm", f->tap);
    int rows = l->prefix->most * flow->horizon;
    int v = tec_program_tensor(l->program, "v", rows, flow->dim, l->prefix->n_horizon);
    struct tec_call call = tec_call_of(TEC_OP_linear, "action_out");
    call.in[0] = n;
    call.out[0] = v;
    call.in_row = tec_flow_leads(flow) ? l->prefix->most : 0;
    call.args.gemm.w = m->w;
    call.args.gemm.bias = m->bias;
    call.args.gemm.n = m->n;
    call.args.gemm.k = m->k;
    call.args.gemm.rows = l->prefix->n_horizon;
    call.args.gemm.max_rows = rows;
    tec_program_call(l->program, &call);
    return v;
}

/* How much a step at this time is pulled: s / tau (s^2 + tau^2) / s^2 with s the time that is left
 * and tau what is done, at most `most`, which also is the pull of the first step. */
static float pull_at(double s, double most)
{
    double tau = 1.0 - s;
    double pull = tau > 0.0 ? s / tau * ((s * s + tau * tau) / (s * s)) : most;
    return (float)fmin(pull, most);
}

/* Pulls v towards the earlier chunk. Times count exactly, as LeRobot's loop has them. */
static void guide(struct tec_lower *l, int v, int x, int step)
{
    const struct tec_flow *f = &l->model->flow;
    const struct tec_prefix_table *t = l->prefix;
    double time = 1.0 + step * (-1.0 / l->flow->steps);
    struct tec_call call = tec_call_of(TEC_OP_guide, "guide");
    call.in[0] = x;
    call.in[1] = tec_program_fixed(l->program, "previous", t->previous,
                                   (size_t)f->horizon * (size_t)t->ld * sizeof(float), f->horizon,
                                   f->dim, t->ld, t->n_horizon);
    call.out[0] = v;
    call.args.guide.weight = t->pulls;
    call.args.guide.time = (float)time;
    call.args.guide.gain = pull_at(time, (double)l->guidance);
    tec_program_call(l->program, &call);
    tec_lower_tap(l, v, "v_guided.%d", step);
}

static void euler_step(struct tec_lower *l, int x, int state, int step)
{
    const struct tec_flow *flow = &l->model->flow;
    char tap[32];
    bool first_or_last = step == 0 || step == l->flow->steps - 1;
    snprintf(tap, sizeof tap, "suffix.step%d.", step);
    const struct tec_forward f = {.stack = &flow->stack,
                                  .weights = &l->weights->expert,
                                  .space = l->space,
                                  .rows = &l->prefix->suffix,
                                  .flow = l->flow,
                                  .step = step,
                                  .fixed = l->prefix->n_fixed,
                                  .every = flow->every,
                                  .across = &l->prefix->across,
                                  .tap = l->taps && first_or_last ? tap : NULL,
                                  .tap_inside = true};
    if (step == 0)
        tec_lower_cross(l, &f);
    int y = embed_suffix(l, x, state, step);
    if (f.tap)
        tec_lower_tap(l, y, "%sembeds", tap);
    tec_lower_forward(l, &f, y);
    int v = velocity(l, &f, y);
    tec_lower_tap(l, v, "v_t.%d", step);
    if (l->prefix->previous)
        guide(l, v, x, step);
    struct tec_call call = tec_call_of(TEC_OP_euler, "euler");
    call.in[0] = v;
    call.out[0] = x;
    call.args.euler.dt = (float)(-1.0 / l->flow->steps);
    call.args.euler.fixed = l->prefix->n_fixed;
    tec_program_call(l->program, &call);
    tec_lower_tap(l, x, "x_t.%d", step + 1);
}

/* The chunk of a flow: noise, step by step. */
static void flow_steps(struct tec_lower *l)
{
    const struct tec_flow *f = &l->model->flow;
    const struct tec_prefix_table *t = l->prefix;
    size_t row = (size_t)t->ld * sizeof(float);
    int rows = t->most * f->horizon;
    int x = tec_program_fixed(l->program, "actions", t->noise, (size_t)rows * row, rows, f->dim,
                              t->ld, t->n_horizon);
    int state = tec_program_fixed(l->program, "state", t->state, (size_t)t->most * row, t->most,
                                  f->state_dim, t->ld, t->n_states);
    for (int s = 0; s < l->flow->steps && l->program->status == TEC_OK; s++)
        euler_step(l, x, state, s);
}

static enum tec_status lower(struct tec_lower *l, struct tec_error *err)
{
    if (l->model->program)
        tec_lower_built(l, TEC_PART_OF_ACTION);
    else if (!tec_model_heads(l->model))
        flow_steps(l);
    else
        tec_lower_next_tokens(l, l->hidden);
    if (l->program->status != TEC_OK && err)
        *err = l->program->err;
    return l->program->status;
}

const struct tec_node_kind tec_node_action = {
    .name = "action", .text = "noise to a chunk of actions", .timed = true, .lower = lower};
