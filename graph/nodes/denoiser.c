/* denoiser.c - noise to a chunk of actions in S Euler steps from time 0 to 1, over features.
 *
 * The rows are [state | learned rows | actions]. They see each other in layers that do not cross,
 * and the frame's kept keys in those that do. The state's row does not change, so it is computed
 * once; what depends on the time alone comes from tables. */
#include "graph/nodes/features.h"

#include <stdio.h>

/* out1 relu(out0 x) of two layers. */
static int two_layers(struct tec_lower *l, const struct tec_matrix layers[2], int x,
                      const char *label)
{
    int y = tec_lower_linear(l, &layers[0], x, label);
    tec_lower_map(l, TEC_ACTIVATION_RELU, y, y);
    return tec_lower_linear(l, &layers[1], y, label);
}

/* The rows that enter the stack at one step. */
static int embed(struct tec_lower *l, int x, int state, int step, const char *tap)
{
    const struct tec_denoiser *d = &l->model->denoiser;
    const struct tec_denoiser_weights *w = &l->weights->denoiser;
    const struct tec_rows *rows = &l->prefix->suffix;
    struct tec_matrix in1 = w->in[1];
    in1.bias = l->flow->time_bias + (size_t)step * (size_t)l->flow->padded;
    int u = tec_lower_linear(l, &in1, tec_lower_linear(l, &w->in[0], x, "action_in"), "time_in");
    struct tec_call call = tec_call_of(TEC_OP_silu, "silu");
    call.in[0] = call.out[0] = u;
    tec_program_call(l->program, &call);
    u = tec_lower_linear(l, &w->in[2], u, "time_out");
    if (tap)
        tec_lower_tap(l, u, "%sactions", tap);
    tec_lower_position(l, u, w->position, l->model->flow.horizon);
    int y = tec_program_tensor(l->program, "suffix", rows->max, d->stack.width, rows->count);
    tec_lower_copy(l, state, y, 0, "state");
    if (d->future.rows) {
        int future =
            tec_lower_constant(l, w->future, d->future.rows, d->stack.width, l->prefix->n_future);
        tec_lower_copy(l, future, y, 1, "future");
    }
    tec_lower_copy(l, u, y, 1 + d->future.rows, "actions");
    return y;
}

/* The last norm, scaled and shifted, and what it is projected to. */
static int project(struct tec_lower *l, int step, int x)
{
    const struct tec_denoiser *d = &l->model->denoiser;
    const struct tec_tensor *t = x < 0 ? NULL : &l->program->tensors[x];
    struct tec_call call = tec_call_of(TEC_OP_layer_norm, "final");
    call.in[0] = x;
    call.out[0] = t ? tec_program_tensor(l->program, "final", t->rows, t->cols, t->live) : -1;
    call.args.norm.weight = tec_modulation(l->flow, step, l->flow->n_norms - 1);
    call.args.norm.bias = call.args.norm.weight + l->flow->padded;
    call.args.norm.offset = 1.0F;
    call.args.norm.eps = d->eps;
    tec_program_call(l->program, &call);
    return tec_lower_linear(l, &l->weights->denoiser.project, call.out[0], "project");
}

/* v of the action rows. Taps have all rows. */
static int velocity(struct tec_lower *l, int y, const char *tap)
{
    const struct tec_flow *flow = &l->model->flow;
    const struct tec_matrix *out = l->weights->denoiser.out;
    int first = l->prefix->suffix.max - flow->horizon;
    const struct tec_part_rows actions = {
        .rows = l->prefix->n_horizon, .max_rows = flow->horizon, .in_row = first};
    int h = tec_program_tensor(l->program, "out", flow->horizon, out[0].cols, l->prefix->n_horizon);
    tec_lower_linear_rows(l, &out[0], y, h, &actions, false, "out");
    tec_lower_map(l, TEC_ACTIVATION_RELU, h, h);
    if (l->taps && tap)
        tec_lower_tap(l, two_layers(l, out, y, "tap"), "%sdecoder", tap);
    return tec_lower_linear(l, &out[1], h, "action_out");
}

static void euler_step(struct tec_lower *l, int x, int state, int step)
{
    const struct tec_prefix_table *t = l->prefix;
    bool last = step == l->flow->steps - 1, told = l->taps && (step == 0 || last);
    char name[32];
    snprintf(name, sizeof name, "step%d.", step);
    const char *tap = told ? name : NULL;
    const struct tec_forward f = {.stack = &l->model->denoiser.stack,
                                  .weights = &l->weights->denoiser.stack,
                                  .space = l->space,
                                  .rows = &t->suffix,
                                  .flow = l->flow,
                                  .step = step,
                                  .across = &t->asked,
                                  .pictured = &t->pictured,
                                  .tap = tap,
                                  .tap_inside = true};
    int y = embed(l, x, state, step, tap);
    if (tap)
        tec_lower_tap(l, y, "%stokens", tap);
    y = project(l, step, tec_lower_forward(l, &f, y));
    if (tap)
        tec_lower_tap(l, y, "%sout", tap);
    int v = velocity(l, y, tap);
    tec_lower_tap(l, v, "v_t.%d", step);
    struct tec_call call = tec_call_of(TEC_OP_euler, "euler");
    call.in[0] = v;
    call.out[0] = x;
    call.args.euler.dt = (float)(1.0 / l->flow->steps);
    tec_program_call(l->program, &call);
    tec_lower_tap(l, x, "x_t.%d", step + 1);
}

void tec_lower_denoiser(struct tec_lower *l)
{
    const struct tec_flow *f = &l->model->flow;
    const struct tec_prefix_table *t = l->prefix;
    size_t row = (size_t)t->ld * sizeof(float);
    int x = tec_program_fixed(l->program, "actions", t->noise, (size_t)f->horizon * row, f->horizon,
                              f->dim, t->ld, t->n_horizon);
    int given =
        tec_program_fixed(l->program, "state", t->state, row, 1, f->state_dim, t->ld, t->one);
    int state = two_layers(l, l->weights->denoiser.state, given, "state");
    tec_lower_tap(l, state, "state");
    for (int s = 0; s < l->flow->steps && l->program->status == TEC_OK; s++)
        euler_step(l, x, state, s);
}
