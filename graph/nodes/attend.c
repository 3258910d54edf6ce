/* attend.c - attention over slots: what is rotated and stored, and what rows gather. Layers of
 * texts and attentions of a program differ in their table of rows and in numbers. */
#include "graph/nodes/node.h"

#include <math.h>

int tec_lower_kv(struct tec_lower *l, const struct tec_kv_space *s, int layer, bool values)
{
    int at = s->shape.layers > 1 ? layer : 0, cols = s->shape.kv_heads * s->shape.head_dim;
    return tec_program_fixed(l->program, values ? "v" : "k", (values ? s->v : s->k)[at], s->bytes,
                             s->slots, cols, cols, NULL);
}

const float *tec_lower_rotation(const struct tec_lower *l, const struct tec_attend *a)
{
    return a->turn < 0 ? NULL : l->cos_sin[a->turn];
}

float tec_lower_scale(const struct tec_attend *a)
{
    return (float)(a->scale > 0.0 ? a->scale : 1.0 / sqrt((double)a->head_dim));
}

void tec_lower_norm_heads(struct tec_lower *l, const struct tec_head_norms *n, int x, int at,
                          int heads, const float *weight)
{
    struct tec_call call = tec_call_of(TEC_OP_head_norm, "head_norm");
    if (!weight)
        return;
    call.out[0] = x;
    call.args.head_norm = (struct tec_head_norm_args){.weight = weight,
                                                      .at = at,
                                                      .heads = heads,
                                                      .head_dim = n->head_dim,
                                                      .offset = n->offset,
                                                      .eps = n->eps};
    tec_program_call(l->program, &call);
}

/* Rotated and taken to slots; what is not stored has no columns. */
static struct tec_call rope(struct tec_lower *l, const struct tec_attending *t, int x, int q)
{
    struct tec_call call = tec_call_of(TEC_OP_rope_store, "rope");
    call.in[0] = x;
    call.in[1] = tec_lower_angles(l, tec_lower_rotation(l, t->attend));
    call.out[0] = q;
    call.bf16 = t->space->shape.bf16;
    call.args.rope.slot = t->rows->slot;
    call.args.rope.pos = t->rows->pos;
    call.args.rope.cos_sin = tec_lower_rotation(l, t->attend);
    call.args.rope.heads = t->attend->heads;
    call.args.rope.head_dim = t->attend->head_dim;
    call.args.rope.round_q = 1;
    return call;
}

static int queries(struct tec_lower *l, const struct tec_attending *t)
{
    return tec_program_tensor(l->program, "q", t->rows->max, t->attend->heads * t->attend->head_dim,
                              t->rows->count);
}

int tec_lower_store(struct tec_lower *l, const struct tec_attending *t, int qkv, bool keys_only,
                    struct tec_kv_tensors kv)
{
    const struct tec_attention_weights *w = t->weights;
    int q = keys_only ? -1 : queries(l, t);
    struct tec_call call = rope(l, t, qkv, q);
    struct tec_rope_args *a = &call.args.rope;
    call.out[1] = kv.k;
    call.out[2] = kv.v;
    a->q_at = keys_only ? -1 : w->q_at;
    a->k_at = keys_only ? 0 : w->k_at;
    a->v_at = w->v_at - (keys_only ? w->k_at : 0);
    a->kv_heads = t->attend->kv_heads;
    a->round_k = l->keeps && t->space == l->space;
    tec_program_call(l->program, &call);
    return q;
}

int tec_lower_queries(struct tec_lower *l, const struct tec_attending *t, int x)
{
    int q = queries(l, t);
    const struct tec_call call = rope(l, t, x, q);
    tec_program_call(l->program, &call);
    return q;
}

/* Of which keys and values are made. Projections of a text's are float32 in every plan, and do not
 * say what the plan keeps so: its queries' matrix does. */
static const struct tec_matrix *keys_of(const struct tec_attention_weights *w)
{
    return w->cross_kv.n ? &w->cross_kv : &w->qkv;
}

int tec_lower_attend(struct tec_lower *l, const struct tec_attending *t, int q,
                     struct tec_kv_tensors kv, bool round)
{
    const struct tec_attend *n = t->attend;
    int out = tec_program_tensor(l->program, "attention", t->rows->max, n->heads * n->head_dim,
                                 t->rows->count);
    struct tec_call call = tec_call_of(TEC_OP_attention, "attention");
    struct tec_attention_args *a = &call.args.attention;
    call.in[0] = q;
    call.in[1] = kv.k;
    call.in[2] = kv.v;
    call.out[0] = out;
    call.bf16 = t->space->shape.bf16;
    a->scratch = l->scratch;
    a->row_seq = t->rows->seq;
    a->visible = t->rows->visible;
    a->seqs = t->rows->seqs;
    a->spans = t->rows->spans;
    a->heads = n->heads;
    a->kv_heads = n->kv_heads;
    a->head_dim = n->head_dim;
    a->window = n->window;
    a->scale = tec_lower_scale(n);
    a->cap = (float)n->cap;
    a->round = l->round && round && !t->spared;
    /* As products of bf16 weights have x; where a bf16 plan keeps a tower in float32, nothing of it
     * is in terms. */
    bool exact = call.bf16 || !l->weights->bf16 || keys_of(t->weights)->form == TEC_FORM_F32;
    a->terms = exact ? 0 : 2;
    a->whole = l->round && round && t->whole;
    a->bias = t->bias;
    a->pos = t->rows->pos;
    a->reach = t->reach;
    tec_program_call(l->program, &call);
    return out;
}
