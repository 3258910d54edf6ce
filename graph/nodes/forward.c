/* forward.c - the packed forward: one stack of layers over rows that belong to any sequences.
 *
 * Action chunks and other stacks of a program come here; they differ only in the table of row
 * segments, the weights, and what the norms are conditioned on. Layers of texts and towers are
 * words (layers.c). */
#include "graph/nodes/node.h"
#include "kernels/matrix.h"

#include <stdio.h>

/* The scale, shift and gate of an adaptive norm among those of all norms at a time; `part` 0, 1, 2.
 * which: 0, 1 of a layer, 2 final. */
static const float *modulation(const struct tec_forward *f, const float *norms, int layer,
                               int which, int part)
{
    int norm = which == 2 ? tec_stack_norms(f->stack) - 1 : 2 * layer + which;
    return norms + ((size_t)norm * 3 + (size_t)part) * (size_t)tec_padded(f->stack->width);
}

/* Returns the factor of the half of a layer behind norm `which`, applied before the residual sum:
 * an adaptive stack's gate, or the layer's scale. False: there is none. */
static bool gate_of(const struct tec_forward *f, int layer, int which, struct tec_gate *gate)
{
    const struct tec_layer *w = &f->weights->layers[layer];
    *gate = (struct tec_gate){.at = which ? w->scale2 : w->scale1, .fixed = f->fixed};
    if (f->stack->norm == TEC_BLOCK_ADAPTIVE_NORM)
        gate->at = modulation(f, f->norms, layer, which, 2);
    if (f->fixed)
        gate->clean = modulation(f, f->actions, layer, which, 2);
    return gate->at != NULL;
}

/* y += the half's gate, where it has one, times a linear of x. With taps the linear is computed
 * once more alone. */
static void add_gated(struct tec_lower *l, const struct tec_forward *f, int layer, int which,
                      const struct tec_matrix *m, int x, int y)
{
    struct tec_gate gate;
    bool gated = gate_of(f, layer, which, &gate);
    tec_lower_linear_into(l, m, x, y, 0, gated ? &gate : NULL, true, which ? "down" : "o");
    if (l->taps && f->tap && f->tap_inside)
        tec_lower_tap(l, tec_lower_linear(l, m, x, "tap"), "%slayer%d.%s_out", f->tap, layer,
                      which ? "mlp" : "attn");
}

int tec_lower_norm(struct tec_lower *l, const struct tec_forward *f, int layer, int which, int x,
                   bool round, const char *label)
{
    const struct tec_tensor *t = x < 0 ? NULL : &l->program->tensors[x];
    int y = t ? tec_program_tensor(l->program, label, t->rows, t->cols, t->live) : -1;
    bool own = which != 2;
    const struct tec_layer *w = own ? &f->weights->layers[layer] : NULL;
    bool layer_norm = f->stack->norm == TEC_BLOCK_LAYER_NORM;
    struct tec_call call = tec_call_of(layer_norm ? TEC_OP_layer_norm : TEC_OP_rms_norm, label);
    struct tec_norm_args *a = &call.args.norm;
    call.in[0] = x;
    call.out[0] = y;
    a->eps = f->stack->eps;
    a->round = l->round && round;
    a->offset = f->stack->norm_offset;
    if (f->stack->norm == TEC_BLOCK_ADAPTIVE_NORM) {
        a->weight = modulation(f, f->norms, layer, which, 0);
        a->bias = modulation(f, f->norms, layer, which, 1);
        a->offset = 1.0F;
        a->fixed = f->fixed;
        a->fixed_weight = f->fixed ? modulation(f, f->actions, layer, which, 0) : NULL;
        a->fixed_bias = f->fixed ? modulation(f, f->actions, layer, which, 1) : NULL;
    } else if (which == 3) {
        a->weight = w->cross_norm;
        a->bias = w->cross_norm_bias;
    } else if (w) {
        a->weight = which ? w->norm2 : w->norm1;
        a->bias = which ? w->norm2_bias : w->norm1_bias;
    } else {
        a->weight = f->weights->final;
        a->bias = f->weights->final_bias;
    }
    tec_program_call(l->program, &call);
    return y;
}

/* Norms of the heads of q and k before they are rotated, where the model has them. */
static void norm_qk(struct tec_lower *l, const struct tec_forward *f, int layer, int qkv)
{
    const struct tec_stack *s = f->stack;
    const struct tec_layer *w = &f->weights->layers[layer];
    const struct tec_head_norms n = {s->head_dim, s->norm_offset, s->eps};
    tec_lower_norm_heads(l, &n, qkv, w->q_at, s->heads, w->q_norm);
    tec_lower_norm_heads(l, &n, qkv, w->k_at, s->kv_heads, w->k_norm);
    if (!w->q_norm || !f->tap || !f->tap_inside)
        return;
    tec_lower_tap(l, qkv, "%slayer%d.qkv_norm", f->tap, layer);
    tec_lower_tap_view(l, w->q_at, s->heads * s->head_dim, "%slayer%d.q_norm", f->tap, layer);
    tec_lower_tap_view(l, w->k_at, s->kv_heads * s->head_dim, "%slayer%d.k_norm", f->tap, layer);
}

int tec_lower_kv_layer(const struct tec_forward *f, int layer)
{
    return f->every > 1 ? layer * f->every : layer;
}

struct tec_attending tec_lower_attending(const struct tec_forward *f, int layer,
                                         struct tec_attend *numbers)
{
    *numbers = tec_stack_attend(f->stack);
    return (struct tec_attending){.attend = numbers,
                                  .weights = &f->weights->layers[layer],
                                  .space = f->space,
                                  .rows = f->rows};
}

int tec_lower_take(struct tec_lower *l, const struct tec_rows *rows, const int *row, int x,
                   const char *label)
{
    int cols = x < 0 ? 0 : l->program->tensors[x].cols;
    int y = x < 0 ? -1 : tec_program_tensor(l->program, label, rows->max, cols, rows->count);
    struct tec_call call = tec_call_of(TEC_OP_take_rows, label);
    call.in[0] = x;
    call.out[0] = y;
    call.args.take.row = row;
    call.args.take.group = 1;
    tec_program_call(l->program, &call);
    return y;
}

/* The outputs of the projections: before norms and rotation change them. */
static void tap_qkv(struct tec_lower *l, const struct tec_forward *f, int layer, int qkv)
{
    const struct tec_stack *s = f->stack;
    const struct tec_layer *w = &f->weights->layers[layer];
    int kv = s->kv_heads * s->head_dim;
    tec_lower_tap(l, qkv, "%slayer%d.qkv", f->tap, layer);
    tec_lower_tap_view(l, w->q_at, s->heads * s->head_dim, "%slayer%d.q", f->tap, layer);
    tec_lower_tap_view(l, w->k_at, kv, "%slayer%d.k", f->tap, layer);
    tec_lower_tap_view(l, w->v_at, kv, "%slayer%d.v", f->tap, layer);
}

/* A layer's second attention: of its rows over what the frame has kept of others. The residual from
 * here on. */
static int attend_others(struct tec_lower *l, const struct tec_forward *f, int layer,
                         struct tec_kv_tensors kv, int x)
{
    const struct tec_layer *w = &f->weights->layers[layer];
    struct tec_attend numbers;
    struct tec_attending others = tec_lower_attending(f, layer, &numbers);
    bool after = f->stack->after;
    if (!f->asked)
        return x;
    others.rows = f->asked;
    int n = after ? x : tec_lower_norm(l, f, layer, 3, x, true, "cross_norm");
    int q = tec_lower_linear(l, &w->cross_q, n, "cross_q");
    tec_lower_position(l, q, w->cross_q_shift, f->rows->max);
    int out = tec_lower_attend(l, &others, q, kv, true);
    tec_lower_linear_into(l, &w->cross_o, out, x, 0, NULL, true, "cross_o");
    if (l->taps && f->tap)
        tec_lower_tap(l, tec_lower_linear(l, &w->cross_o, out, "tap"), "%slayer%d.cross_out",
                      f->tap, layer);
    return after ? tec_lower_norm(l, f, layer, 3, x, false, "cross_norm") : x;
}

static void gate_up(struct tec_lower *l, const struct tec_forward *f, const struct tec_layer *w,
                    int u, int g)
{
    bool silu = f->stack->activation == TEC_ACTIVATION_SILU;
    struct tec_call call = tec_call_of(silu ? TEC_OP_silu_mul : TEC_OP_gelu_mul, "act");
    call.in[0] = u;
    call.out[0] = g;
    call.args.gated.gate_at = w->gate_at;
    call.args.gated.up_at = w->up_at;
    call.args.gated.round = l->round;
    tec_program_call(l->program, &call);
}

static void feed_forward(struct tec_lower *l, const struct tec_forward *f, int layer, int x)
{
    const struct tec_stack *s = f->stack;
    const struct tec_layer *w = &f->weights->layers[layer];
    int n = s->after ? x : tec_lower_norm(l, f, layer, 1, x, true, "norm2");
    if (f->tap && f->tap_inside && !s->after)
        tec_lower_tap(l, n, "%slayer%d.norm2", f->tap, layer);
    int u = tec_lower_linear(l, &w->up, n, s->gated ? "gate_up" : "up");
    int g = tec_program_tensor(l->program, "act", f->rows->max, s->mlp, f->rows->count);
    if (f->tap && f->tap_inside)
        tec_lower_tap(l, u, "%slayer%d.up", f->tap, layer);
    if (s->gated)
        gate_up(l, f, w, u, g);
    else
        tec_lower_activation(l, s->activation, u, g);
    if (f->tap && f->tap_inside && s->after)
        tec_lower_tap(l, g, "%slayer%d.act", f->tap, layer);
    add_gated(l, f, layer, 1, &w->down, g, x);
}

/* x, or where norms stand behind the halves its norm: the residual from here on. */
static int norm_after(struct tec_lower *l, const struct tec_forward *f, int layer, int which, int x)
{
    if (!f->stack->after)
        return x;
    int y = tec_lower_norm(l, f, layer, which, x, false, which ? "norm2" : "norm1");
    if (f->tap && f->tap_inside && !which)
        tec_lower_tap(l, y, "%slayer%d.norm1", f->tap, layer);
    return y;
}

static struct tec_keys keys_of(struct tec_lower *l, const struct tec_forward *f, int layer, int x)
{
    const struct tec_layer *w = &f->weights->layers[layer];
    struct tec_attend numbers;
    const struct tec_attending attending = tec_lower_attending(f, layer, &numbers);
    struct tec_keys keys = {.kv = {tec_lower_kv(l, f->space, tec_lower_kv_layer(f, layer), false),
                                   tec_lower_kv(l, f->space, tec_lower_kv_layer(f, layer), true)}};
    bool taps = f->tap && f->tap_inside;
    int n = f->stack->after ? x : tec_lower_norm(l, f, layer, 0, x, true, "norm1");
    if (taps && !f->stack->after)
        tec_lower_tap(l, n, "%slayer%d.norm1", f->tap, layer);
    keys.qkv = tec_lower_linear(l, &w->qkv, n, "qkv");
    tec_lower_position(l, keys.qkv, w->shift, f->rows->max);
    if (taps)
        tap_qkv(l, f, layer, keys.qkv);
    norm_qk(l, f, layer, keys.qkv);
    keys.q = tec_lower_store(l, &attending, keys.qkv, false, keys.kv);
    if (taps) {
        tec_lower_tap(l, keys.q, "%slayer%d.q_rope", f->tap, layer);
        tec_lower_tap_keys(l, &attending, keys.kv.k, "%slayer%d.k_rope", f->tap, layer);
    }
    return keys;
}

static int rest_of(struct tec_lower *l, const struct tec_forward *f, int layer,
                   struct tec_keys keys, int x)
{
    const struct tec_forward view = tec_lower_view(l, f, layer);
    struct tec_attend numbers;
    const struct tec_attending attending = tec_lower_attending(&view, layer, &numbers);
    int out = tec_lower_attend(l, &attending, keys.q, keys.kv, true);
    if (f->tap && f->tap_inside)
        tec_lower_tap(l, out, "%slayer%d.attn", f->tap, layer);
    add_gated(l, f, layer, 0, &f->weights->layers[layer].o, out, x);
    x = norm_after(l, f, layer, 0, x);
    x = attend_others(l, f, layer, keys.kv, x);
    feed_forward(l, f, layer, x);
    x = norm_after(l, f, layer, 1, x);
    if (f->tap)
        tec_lower_tap(l, x, "%slayer%d.hidden", f->tap, layer);
    return x;
}

int tec_lower_forward(struct tec_lower *l, const struct tec_forward *f, int x)
{
    for (int layer = 0; layer < f->stack->layers && l->program->status == TEC_OK; layer++) {
        if (l->cuts && layer > 0)
            tec_program_cut(l->program);
        struct tec_keys keys = tec_stack_crossed(f->stack, layer)
                                   ? tec_lower_crossed_keys(l, f, layer, x)
                                   : keys_of(l, f, layer, x);
        x = rest_of(l, f, layer, keys, x);
    }
    return x;
}
