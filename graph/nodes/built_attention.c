/* built_attention.c - attention of a program: of rows of a prefill among each other, of an action
 * over its own rows, over those of the prefill, and over the keys of a prompt.
 *
 * Keys and values of a prefill's rows are made behind it, to the frame's slots: once for all steps
 * of a flow. So are projections of a prompt's keys, which lie in a space of their own, in the order
 * of the sequence and not by the slots of the prefix, so that one run of slots is all that rows
 * see. */
#include "graph/nodes/built.h"

/* The rows of an attention as they see others. */
static const struct tec_rows *rows_of(const struct tec_built *b, const struct tec_model_call *c)
{
    const struct tec_prefix_table *t = b->l->prefix;
    const struct tec_rows *const over[TEC_SEEN_KINDS] = {&t->asked, &t->pictured, &t->rest};
    if (c->part == TEC_PART_OF_PREFILL)
        return b->p->flow.steps ? &t->features : &t->among[c->among];
    if (c->projected)
        return &t->across;
    return tec_model_own_keys(b->p, c) ? &t->suffix : over[c->sees];
}

/* Where its keys and values are: those of an action's own rows in slots of their own. */
static const struct tec_kv_space *space_of(const struct tec_built *b,
                                           const struct tec_model_call *c)
{
    const struct tec_lower *l = b->l;
    if (c->part == TEC_PART_OF_PREFILL)
        return b->p->flow.steps ? &l->reading[1 + c->among] : &l->towers[c->among];
    return c->projected ? l->crossed : l->space;
}

/* Copies of the columns of a projection that become queries, and keys and values. */
static void tap_projection(struct tec_built *b, int at, int x)
{
    const struct tec_attention_weights *w = b->w[at].attention;
    const struct tec_attend *n = &b->p->calls[at].attend;
    int q = n->heads * n->head_dim, kv = n->kv_heads * n->head_dim;
    char stem[TEC_STEM_BYTES];
    if (!tec_built_stem(b, at, stem))
        return;
    tec_lower_tap(b->l, x, "%sqkv", stem);
    tec_lower_tap_view(b->l, w->q_at, q, "%sq", stem);
    if (!tec_model_own_keys(b->p, &b->p->calls[at]))
        return;
    tec_lower_tap_view(b->l, w->k_at, kv, "%sk", stem);
    tec_lower_tap_view(b->l, w->v_at, kv, "%sv", stem);
}

/* The queries; keys and values of own rows go to their slots. Queries of an action without a flow
 * are read as they are: nothing turns them. */
static int store(struct tec_built *b, int at, const struct tec_attending *t, int x,
                 struct tec_kv_tensors kv)
{
    char stem[TEC_STEM_BYTES];
    if (!tec_model_own_keys(b->p, &b->p->calls[at]))
        return b->p->flow.steps ? tec_lower_queries(b->l, t, x) : x;
    int q = tec_lower_store(b->l, t, x, false, kv);
    if (tec_built_stem(b, at, stem)) {
        tec_lower_tap(b->l, q, "%sq_rope", stem);
        tec_lower_tap_keys(b->l, t, kv.k, "%sk_rope", stem);
    }
    return q;
}

int tec_built_attention(struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at];
    const struct tec_attention_weights *w = b->w[at].attention;
    struct tec_lower *l = b->l;
    const struct tec_attend *n = &c->attend;
    const struct tec_attending t = {
        .attend = n, .weights = w, .space = space_of(b, c), .rows = rows_of(b, c)};
    const struct tec_head_norms norms = {n->head_dim, (float)c->offset, (float)c->eps};
    int layer = c->projected ? c->projection : c->place;
    const struct tec_kv_tensors kv = {tec_lower_kv(l, t.space, layer, false),
                                      tec_lower_kv(l, t.space, layer, true)};
    bool own = tec_model_own_keys(b->p, c);
    int x = tec_lower_linear(l, &w->qkv, tec_built_value(b, c->in[0]), own ? "qkv" : "q");
    tec_lower_position(l, x, w->shift, c->rows);
    tap_projection(b, at, x);
    tec_lower_norm_heads(l, &norms, x, 0, n->heads, w->q_norm);
    if (own)
        tec_lower_norm_heads(l, &norms, x, w->k_at, n->kv_heads, w->k_norm);
    int q = store(b, at, &t, x, kv);
    return tec_lower_attend(l, &t, q, kv, tec_built_rounds(b, at));
}

/* Keys and values of rows x of the prefill, to a layer of the frame's slots. */
static void keep(struct tec_built *b, int at, int x)
{
    struct tec_lower *l = b->l;
    const struct tec_model_call *c = &b->p->calls[at];
    const struct tec_attention_weights *w = b->w[at].attention;
    const struct tec_attend *n = &c->attend;
    const struct tec_head_norms norms = {n->head_dim, (float)c->offset, (float)c->eps};
    int kv = tec_lower_linear(l, &w->cross_kv, x, "cross_kv");
    if (x >= 0)
        tec_lower_position(l, kv, w->cross_kv_shift, l->program->tensors[x].rows);
    tec_lower_norm_heads(l, &norms, kv, 0, n->kv_heads, w->k_norm);
    struct tec_call call = tec_call_of(TEC_OP_rope_store, "keep");
    struct tec_rope_args *a = &call.args.rope;
    call.in[0] = kv;
    call.out[1] = tec_lower_kv(l, l->space, c->place, false);
    call.out[2] = tec_lower_kv(l, l->space, c->place, true);
    call.bf16 = l->space->shape.bf16;
    a->slot = l->prefix->prefix.slot;
    a->pos = l->prefix->prefix.pos;
    a->q_at = -1;
    a->v_at = w->cross_v_at;
    a->heads = n->heads;
    a->kv_heads = n->kv_heads;
    a->head_dim = n->head_dim;
    tec_program_call(l->program, &call);
}

/* A tensor whose values are rounded, as matrices of keys read them: x where these are not. */
static int rounded(struct tec_lower *l, int x)
{
    const struct tec_tensor *t = x < 0 ? NULL : &l->program->tensors[x];
    struct tec_call call = tec_call_of(TEC_OP_copy, "features");
    if (!l->round || l->spares || !t)
        return x;
    call.in[0] = x;
    call.out[0] = tec_program_tensor(l->program, "features", t->rows, t->cols, t->live);
    call.args.map.round = true;
    tec_program_call(l->program, &call);
    return call.out[0];
}

void tec_built_keep(struct tec_built *b)
{
    const struct tec_model_program *p = b->p;
    int from = -1, x = -1;
    for (int i = p->parts[TEC_PART_OF_ACTION]; i < p->n; i++) {
        const struct tec_model_call *c = &p->calls[i];
        if (c->over < 0)
            continue;
        x = c->over == from ? x : rounded(b->l, b->tensor[c->over]);
        from = c->over;
        keep(b, i, x);
    }
}

/* Keys or values of the prompt through their projection, to the first places of the space. */
static void project(struct tec_built *b, int at, bool values)
{
    struct tec_lower *l = b->l;
    const struct tec_prefix_table *t = l->prefix;
    const struct tec_model_call *c = &b->p->calls[at];
    struct tec_call read = tec_call_of(TEC_OP_read_kv, "keys"),
                    copy = tec_call_of(TEC_OP_copy, "projected");
    char stem[TEC_STEM_BYTES];
    int x = tec_program_tensor(l->program, "keys", t->max_keys, c->attend.from, t->n_keys);
    read.in[0] = tec_lower_kv(l, l->space, c->place, values);
    read.out[0] = x;
    read.args.read_kv.slot = t->keys;
    read.bf16 = l->space->shape.bf16;
    tec_program_call(l->program, &read);
    int y = tec_lower_linear(l, &b->w[at].attention->projected[values], x, "projected");
    if (tec_built_stem(b, at, stem))
        tec_lower_tap(l, y, "%scross_%s", stem, values ? "v" : "k");
    copy.in[0] = y;
    copy.out[0] = tec_lower_kv(l, l->crossed, c->projection, values);
    tec_program_call(l->program, &copy);
}

void tec_built_project_keys(struct tec_built *b)
{
    const struct tec_model_program *p = b->p;
    for (int i = p->parts[TEC_PART_OF_ACTION]; i < p->n; i++)
        for (int values = 0; values < 2 && p->calls[i].projected; values++)
            project(b, i, values != 0);
}
