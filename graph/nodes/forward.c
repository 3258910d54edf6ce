/* forward.c - the packed forward: one stack of layers over rows that belong to any sequences.
 *
 * Prefill, decode steps, action chunks and picture towers all come here; they differ only in the
 * table of row segments, the weights, and what the norms are conditioned on. */
#include "graph/nodes/node.h"
#include "kernels/matrix.h"

#include <math.h>
#include <stdio.h>

/* The scale, shift and gate of an adaptive norm among those of all norms at a time; `part` 0, 1, 2.
 * which: 0, 1 of a layer, 2 final. (3, in front of the first layer, is never adaptive.) */
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

/* y += norm(a linear of x), where the model has norms of what a half of a layer adds. */
static void add_normed(struct tec_lower *l, const struct tec_forward *f, int layer, int which,
                       const struct tec_matrix *m, int x, int y)
{
    const char *half = which ? "mlp" : "attn";
    int sum = tec_lower_linear(l, m, x, which ? "down" : "o");
    if (f->tap && f->tap_inside)
        tec_lower_tap(l, sum, "%slayer%d.%s_out", f->tap, layer, half);
    const struct tec_layer *w = &f->weights->layers[layer];
    struct tec_call norm = tec_call_of(TEC_OP_rms_norm, which ? "post2" : "post1");
    norm.in[0] = norm.out[0] = sum;
    norm.args.norm.weight = which ? w->post2 : w->post1;
    norm.args.norm.offset = f->stack->norm_offset;
    norm.args.norm.eps = f->stack->eps;
    tec_program_call(l->program, &norm);
    if (f->tap && f->tap_inside)
        tec_lower_tap(l, sum, "%slayer%d.norm_%s", f->tap, layer, half);
    struct tec_call add = tec_call_of(TEC_OP_add, "add");
    add.in[0] = sum;
    add.out[0] = y;
    tec_program_call(l->program, &add);
}

/* The output of a half of a layer: the residual grows by it. */
static void add_half(struct tec_lower *l, const struct tec_forward *f, int layer, int which,
                     const struct tec_matrix *m, int x, int y)
{
    const struct tec_layer *w = &f->weights->layers[layer];
    if (which ? w->post2 : w->post1)
        add_normed(l, f, layer, which, m, x, y);
    else
        add_gated(l, f, layer, which, m, x, y);
}

int tec_lower_norm(struct tec_lower *l, const struct tec_forward *f, int layer, int which, int x,
                   bool round, const char *label)
{
    const struct tec_tensor *t = x < 0 ? NULL : &l->program->tensors[x];
    int y = t ? tec_program_tensor(l->program, label, t->rows, t->cols, t->live) : -1;
    bool own = which < 2 || which == 4;
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
    } else if (which == 4) {
        a->weight = w->cross_norm;
        a->bias = w->cross_norm_bias;
    } else if (w) {
        a->weight = which ? w->norm2 : w->norm1;
        a->bias = which ? w->norm2_bias : w->norm1_bias;
    } else {
        a->weight = which == 2 ? f->weights->final : f->weights->first;
        a->bias = which == 2 ? f->weights->final_bias : f->weights->first_bias;
    }
    tec_program_call(l->program, &call);
    return y;
}

int tec_lower_kv(struct tec_lower *l, const struct tec_kv_space *s, int layer, bool values)
{
    int at = s->shape.layers > 1 ? layer : 0, cols = s->shape.kv_heads * s->shape.head_dim;
    return tec_program_fixed(l->program, values ? "v" : "k", (values ? s->v : s->k)[at], s->bytes,
                             s->slots, cols, cols, NULL);
}

const float *tec_lower_rotation(const struct tec_lower *l, const struct tec_stack *s, int layer)
{
    if (!(s->theta > 0.0))
        return NULL;
    return s->window_theta > 0.0 && tec_stack_windowed(s, layer) ? l->cos_sin_window : l->cos_sin;
}

float tec_lower_scale(const struct tec_stack *s)
{
    return s->scale > 0.0F ? s->scale : (float)(1.0 / sqrt((double)s->head_dim));
}

void tec_lower_norm_heads(struct tec_lower *l, const struct tec_stack *s, int qkv, int at,
                          int heads, const float *weight)
{
    struct tec_call call = tec_call_of(TEC_OP_head_norm, "head_norm");
    if (!weight)
        return;
    call.out[0] = qkv;
    call.args.head_norm = (struct tec_head_norm_args){.weight = weight,
                                                      .at = at,
                                                      .heads = heads,
                                                      .head_dim = s->head_dim,
                                                      .offset = s->norm_offset,
                                                      .eps = s->eps};
    tec_program_call(l->program, &call);
}

/* Norms of the heads of q and k before they are rotated, where the model has them. */
static void norm_qk(struct tec_lower *l, const struct tec_forward *f, int layer, int qkv,
                    bool keys_only)
{
    const struct tec_stack *s = f->stack;
    const struct tec_layer *w = &f->weights->layers[layer];
    if (!keys_only)
        tec_lower_norm_heads(l, s, qkv, w->q_at, s->heads, w->q_norm);
    tec_lower_norm_heads(l, s, qkv, keys_only ? 0 : w->k_at, s->kv_heads, w->k_norm);
    if (!w->q_norm || !f->tap || !f->tap_inside || keys_only)
        return;
    tec_lower_tap(l, qkv, "%slayer%d.qkv_norm", f->tap, layer);
    tec_lower_tap_view(l, w->q_at, s->heads * s->head_dim, "%slayer%d.q_norm", f->tap, layer);
    tec_lower_tap_view(l, w->k_at, s->kv_heads * s->head_dim, "%slayer%d.k_norm", f->tap, layer);
}

int tec_lower_kv_layer(const struct tec_forward *f, int layer)
{
    return f->every > 1 ? layer * f->every : layer;
}

int tec_lower_store(struct tec_lower *l, const struct tec_forward *f, int layer, int qkv,
                    bool keys_only, struct tec_kv_tensors kv)
{
    const struct tec_stack *s = f->stack;
    const struct tec_layer *w = &f->weights->layers[layer];
    int q = keys_only ? -1
                      : tec_program_tensor(l->program, "q", f->rows->max, s->heads * s->head_dim,
                                           f->rows->count);
    struct tec_call call = tec_call_of(TEC_OP_rope_store, "rope");
    struct tec_rope_args *a = &call.args.rope;
    call.in[0] = qkv;
    call.out[0] = q;
    call.out[1] = kv.k;
    call.out[2] = kv.v;
    call.bf16 = f->space->shape.bf16;
    a->slot = f->rows->slot;
    a->pos = f->rows->pos;
    a->cos_sin = tec_lower_rotation(l, s, layer);
    a->q_at = keys_only ? -1 : w->q_at;
    a->k_at = keys_only ? 0 : w->k_at;
    a->v_at = w->v_at - (keys_only ? w->k_at : 0);
    a->heads = s->heads;
    a->kv_heads = s->kv_heads;
    a->head_dim = s->head_dim;
    a->round_q = 1;
    a->round_k = l->keeps && f->space == l->space;
    tec_program_call(l->program, &call);
    return q;
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

static int move(struct tec_lower *l, const struct tec_forward *f, int from, bool values)
{
    const struct tec_kv_space *s = l->gathered;
    int cols = s->shape.kv_heads * s->shape.head_dim;
    int to = tec_program_fixed(l->program, values ? "v" : "k", (values ? s->v : s->k)[0], s->bytes,
                               s->slots, cols, cols, NULL);
    struct tec_call call = tec_call_of(TEC_OP_move_kv, "gather");
    call.in[0] = from;
    call.out[0] = to;
    call.args.move = (struct tec_move_args){.moves = f->moves->list,
                                            .count = f->moves->count,
                                            .max_moves = f->moves->max,
                                            .max_tokens = l->max_moved,
                                            .row = cols * (s->shape.bf16 ? 2 : 4)};
    tec_program_call(l->program, &call);
    return to;
}

/* Returns the keys and values that attention reads: the slots, or a copy of all visible ones. */
static struct tec_kv_tensors gather(struct tec_lower *l, const struct tec_forward *f,
                                    struct tec_kv_tensors kv)
{
    if (!f->moves || !l->gathered)
        return kv;
    return (struct tec_kv_tensors){move(l, f, kv.k, false), move(l, f, kv.v, true)};
}

int tec_lower_attend(struct tec_lower *l, const struct tec_forward *f, int layer, int q,
                     struct tec_kv_tensors kv, bool round)
{
    const struct tec_stack *s = f->stack;
    int out = tec_program_tensor(l->program, "attention", f->rows->max, s->heads * s->head_dim,
                                 f->rows->count);
    struct tec_call call = tec_call_of(TEC_OP_attention, "attention");
    struct tec_attention_args *a = &call.args.attention;
    call.in[0] = q;
    call.in[1] = kv.k;
    call.in[2] = kv.v;
    call.out[0] = out;
    call.bf16 = f->space->shape.bf16;
    a->scratch = l->scratch;
    a->row_seq = f->rows->seq;
    a->visible = f->rows->visible;
    a->seqs = f->rows->seqs;
    a->spans = f->rows->spans;
    a->heads = s->heads;
    a->kv_heads = s->kv_heads;
    a->head_dim = s->head_dim;
    a->window = tec_stack_windowed(s, layer) ? s->window : 0;
    a->scale = tec_lower_scale(s);
    a->cap = s->cap;
    a->round = l->round && round;
    a->bias = f->weights->bias;
    a->pos = f->rows->pos;
    a->reach = f->weights->reach;
    tec_program_call(l->program, &call);
    return out;
}

/* Taps the weight of each key: attention over values that are rows of the identity, head_dim keys
 * at a time. */
static void tap_weights(struct tec_lower *l, const struct tec_forward *f, int layer, int q,
                        struct tec_kv_tensors kv)
{
    for (int i = 0; i < f->n_units; i++) {
        const struct tec_kv_tensors one = {kv.k, f->units[i]};
        tec_lower_tap(l, tec_lower_attend(l, f, layer, q, one, true), "%slayer%d.probs%d", f->tap,
                      layer, i);
    }
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
    struct tec_forward others = *f;
    bool after = f->stack->after;
    if (!f->asked)
        return x;
    others.rows = f->asked;
    int n = after ? x : tec_lower_norm(l, f, layer, 4, x, true, "cross_norm");
    int q = tec_lower_linear(l, &w->cross_q, n, "cross_q");
    tec_lower_position(l, q, w->cross_q_shift, f->rows->max);
    int out = tec_lower_attend(l, &others, layer, q, kv, true);
    tec_lower_linear_into(l, &w->cross_o, out, x, 0, NULL, true, "cross_o");
    if (l->taps && f->tap)
        tec_lower_tap(l, tec_lower_linear(l, &w->cross_o, out, "tap"), "%slayer%d.cross_out",
                      f->tap, layer);
    return after ? tec_lower_norm(l, f, layer, 4, x, false, "cross_norm") : x;
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
    add_half(l, f, layer, 1, &w->down, g, x);
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

/* The rows that nobody reads the result of end here. */
static int keep_last(struct tec_lower *l, const struct tec_forward *f, struct tec_forward *rest,
                     int x, int *q)
{
    if (!f->last)
        return x;
    *q = tec_lower_take(l, f->last, f->last_row, *q, "last_q");
    rest->rows = f->last;
    return tec_lower_take(l, f->last, f->last_row, x, "last");
}

struct tec_keys tec_lower_keys(struct tec_lower *l, const struct tec_forward *f, int layer, int x)
{
    const struct tec_layer *w = &f->weights->layers[layer];
    bool keys_only = f->keys_only && layer == f->stack->layers - 1;
    struct tec_keys keys = {.kv = {tec_lower_kv(l, f->space, tec_lower_kv_layer(f, layer), false),
                                   tec_lower_kv(l, f->space, tec_lower_kv_layer(f, layer), true)}};
    int n = f->stack->after ? x : tec_lower_norm(l, f, layer, 0, x, true, "norm1");
    if (f->tap && f->tap_inside && !f->stack->after)
        tec_lower_tap(l, n, "%slayer%d.norm1", f->tap, layer);
    keys.qkv = tec_lower_linear(l, keys_only ? &w->kv : &w->qkv, n, keys_only ? "kv" : "qkv");
    tec_lower_position(l, keys.qkv, w->shift, f->rows->max);
    bool taps = f->tap && f->tap_inside && !keys_only;
    if (taps)
        tap_qkv(l, f, layer, keys.qkv);
    norm_qk(l, f, layer, keys.qkv, keys_only);
    keys.q = tec_lower_store(l, f, layer, keys.qkv, keys_only, keys.kv);
    if (taps) {
        tec_lower_tap(l, keys.q, "%slayer%d.q_rope", f->tap, layer);
        tec_lower_tap_kv(l, f, layer, false, "%slayer%d.k_rope", f->tap, layer);
    }
    return keys;
}

int tec_lower_rest(struct tec_lower *l, const struct tec_forward *f, int layer,
                   struct tec_keys keys, int x)
{
    const struct tec_forward view = tec_lower_view(l, f, layer);
    int out = tec_lower_attend(l, &view, layer, keys.q, gather(l, f, keys.kv), true);
    if (f->tap && f->tap_inside)
        tec_lower_tap(l, out, "%slayer%d.attn", f->tap, layer);
    if (l->taps)
        tap_weights(l, &view, layer, keys.q, keys.kv);
    add_half(l, f, layer, 0, &f->weights->layers[layer].o, out, x);
    x = norm_after(l, f, layer, 0, x);
    x = attend_others(l, f, layer, keys.kv, x);
    feed_forward(l, f, layer, x);
    x = norm_after(l, f, layer, 1, x);
    if (f->tap)
        tec_lower_tap(l, x, "%slayer%d.hidden", f->tap, layer);
    return x;
}

static int lower_layer(struct tec_lower *l, const struct tec_forward *f, int layer, int x)
{
    struct tec_forward rest = *f;
    bool last = layer == f->stack->layers - 1;
    struct tec_keys keys = tec_stack_crossed(f->stack, layer)
                               ? tec_lower_crossed_keys(l, f, layer, x)
                               : tec_lower_keys(l, f, layer, x);
    if (keys.q < 0)
        return x;
    if (last)
        x = keep_last(l, f, &rest, x, &keys.q);
    return tec_lower_rest(l, &rest, layer, keys, x);
}

int tec_lower_forward(struct tec_lower *l, const struct tec_forward *f, int x)
{
    for (int layer = 0; layer < f->stack->layers && l->program->status == TEC_OK; layer++) {
        if (l->cuts && layer > 0)
            tec_program_cut(l->program);
        x = lower_layer(l, f, layer, x);
    }
    return x;
}
