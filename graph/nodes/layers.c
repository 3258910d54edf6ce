/* layers.c - rows of a text, or of pictures, through their layers.
 *
 * Every layer has one attention, and its calls in front of that make what keys and values are made
 * of: a layer has two halves. The first one ends with keys and values in their slots. Before the
 * second one, rows that nobody needs further can be left behind: a prefill needs the last layer's
 * keys alone, a ring the last row of each sequence, a prompt of remembered segments fewer rows from
 * layer to layer. */
#include "graph/nodes/layers.h"

#include "kernels/attention.h"

bool tec_layers_begin(struct tec_built *b, struct tec_lower *l, const struct tec_reading *reading,
                      int x)
{
    const struct tec_tower *tower = reading->tower;
    const struct tec_model_program *p = tower ? tower->program : l->model->text.program;
    if (!tec_built_begin(b, l, p, tower ? reading->weights : l->weights->text))
        return false;
    b->text = reading;
    b->rows = reading->rows;
    b->tensor[0] = x;
    tec_built_calls(b, 1, p->layers[0].first, false);
    return true;
}

int tec_layers_rows(const struct tec_built *b, int layer)
{
    return b->tensor[b->p->layers[layer].x];
}

/* The attention of a layer, over slots of its own or over those that all layers share. Whole
 * numbers in a tower alone, whose rows are those of whole pictures: few rows, as those of a
 * decoding are, would take longer, and a row's bytes may not depend on how many there are. Of
 * pictures of several sizes the largest counts. */
static struct tec_attending attending(const struct tec_built *b, int layer)
{
    int at = b->p->layers[layer].attention;
    return (struct tec_attending){.attend = &b->p->calls[at].attend,
                                  .weights = b->w[at].attention,
                                  .space = b->text->space,
                                  .rows = b->rows,
                                  .bias = b->w[at].bias,
                                  .reach = b->w[at].reach,
                                  .whole = b->text->tower &&
                                           b->l->model->vision.patches >= TEC_ATTENTION_WHOLE_ROWS,
                                  .spared = b->text->tower && b->l->spares};
}

static bool taps(const struct tec_built *b)
{
    return b->l->taps && b->text->tap && b->text->tap_inside;
}

/* Copies of the columns of a projection that become queries, keys and values. */
static void tap_qkv(struct tec_built *b, const struct tec_attending *t, int qkv, const char *suffix,
                    bool values)
{
    const struct tec_attention_weights *w = t->weights;
    const struct tec_attend *n = t->attend;
    const char *of = b->text->tap;
    int kv = n->kv_heads * n->head_dim;
    if (!taps(b))
        return;
    tec_lower_tap(b->l, qkv, "%slayer%d.qkv%s", of, b->layer, suffix);
    tec_lower_tap_view(b->l, w->q_at, n->heads * n->head_dim, "%slayer%d.q%s", of, b->layer,
                       suffix);
    tec_lower_tap_view(b->l, w->k_at, kv, "%slayer%d.k%s", of, b->layer, suffix);
    if (values)
        tec_lower_tap_view(b->l, w->v_at, kv, "%slayer%d.v%s", of, b->layer, suffix);
}

/* Norms of the heads of q and k before they are rotated, where the model has them. */
static void norm_heads(struct tec_built *b, const struct tec_attending *t, int qkv, bool keys_only)
{
    const struct tec_model_call *c = &b->p->calls[b->p->layers[b->layer].attention];
    const struct tec_attention_weights *w = t->weights;
    const struct tec_head_norms n = {t->attend->head_dim, (float)c->offset, (float)c->eps};
    if (!keys_only)
        tec_lower_norm_heads(b->l, &n, qkv, w->q_at, t->attend->heads, w->q_norm);
    tec_lower_norm_heads(b->l, &n, qkv, keys_only ? 0 : w->k_at, t->attend->kv_heads, w->k_norm);
    if (w->q_norm && !keys_only)
        tap_qkv(b, t, qkv, "_norm", false);
}

/* The calls of a layer that its attention is made of, and no other: nobody reads those. */
static void make_operands(struct tec_built *b, const struct tec_program_layer *of)
{
    struct tec_program *program = b->l->program;
    bool *needed = TEC_NEW(program->arena, (size_t)(of->attention - of->first) + 1, bool);
    if (!needed && program->status == TEC_OK)
        program->status = tec_fail(&program->err, TEC_NO_MEMORY, "no memory for a layer");
    for (int i = of->attention; i >= of->first && needed; i--) {
        const struct tec_model_call *c = &b->p->calls[i];
        needed[i - of->first] |= i == of->attention;
        for (int k = 0; k < c->n_in && needed[i - of->first]; k++)
            if (c->in[k] >= of->first)
                needed[c->in[k] - of->first] = true;
    }
    for (int i = of->first; i < of->attention && needed; i++)
        if (needed[i - of->first])
            tec_built_calls(b, i, i + 1, false);
}

struct tec_keys tec_layers_keys(struct tec_built *b, int layer)
{
    const struct tec_program_layer *of = &b->p->layers[layer];
    struct tec_lower *l = b->l;
    bool keys_only = b->text->keys_only && layer == b->p->n_layers - 1;
    b->layer = layer;
    const struct tec_attending t = attending(b, layer);
    struct tec_keys keys = {
        .kv = {tec_lower_kv(l, t.space, layer, false), tec_lower_kv(l, t.space, layer, true)}};
    if (keys_only)
        make_operands(b, of);
    else
        tec_built_calls(b, of->first, of->attention, false);
    keys.qkv =
        tec_lower_linear(l, keys_only ? &t.weights->kv : &t.weights->qkv,
                         b->tensor[b->p->calls[of->attention].in[0]], keys_only ? "kv" : "qkv");
    if (!keys_only)
        tap_qkv(b, &t, keys.qkv, "", true);
    norm_heads(b, &t, keys.qkv, keys_only);
    keys.q = tec_lower_store(l, &t, keys.qkv, keys_only, keys.kv);
    if (taps(b) && !keys_only) {
        tec_lower_tap(l, keys.q, "%slayer%d.q_rope", b->text->tap, layer);
        tec_lower_tap_keys(l, &t, keys.kv.k, "%slayer%d.k_rope", b->text->tap, layer);
    }
    return keys;
}

void tec_layers_take(struct tec_built *b, int layer, const struct tec_rows_left *on,
                     struct tec_keys *keys)
{
    const struct tec_program_layer *of = &b->p->layers[layer];
    b->rows = on->rows;
    keys->q = tec_lower_take(b->l, on->rows, on->row, keys->q, on->queries);
    for (int i = of->x; i < of->attention; i = i < of->first ? of->first : i + 1)
        if (b->tensor[i] >= 0 && b->p->calls[i].uses.last > of->attention)
            b->tensor[i] = tec_lower_take(b->l, on->rows, on->row, b->tensor[i], on->label);
}

void tec_layers_enter(struct tec_built *b, int layer, const struct tec_rows *rows, const int *row,
                      const char *label)
{
    int x = b->p->layers[layer].x;
    b->tensor[x] = tec_lower_take(b->l, rows, row, b->tensor[x], label);
}

static int move(struct tec_built *b, int from, bool values)
{
    int to = tec_lower_kv(b->l, b->l->gathered, 0, values);
    tec_lower_move(b->l, b->text->moves, from, to, "gather");
    return to;
}

/* Returns the keys and values that attention reads: the slots, or a copy of all visible ones. */
static struct tec_kv_tensors gather(struct tec_built *b, struct tec_kv_tensors kv)
{
    if (!b->text->moves || !b->l->gathered)
        return kv;
    return (struct tec_kv_tensors){move(b, kv.k, false), move(b, kv.v, true)};
}

/* Taps the weight of each key: attention over values that are rows of the identity, head_dim keys
 * at a time. */
static void tap_weights(struct tec_built *b, const struct tec_attending *t, struct tec_keys keys)
{
    for (int i = 0; i < b->text->n_units && b->l->taps; i++) {
        const struct tec_kv_tensors one = {keys.kv.k, b->text->units[i]};
        tec_lower_tap(b->l, tec_lower_attend(b->l, t, keys.q, one, true), "%slayer%d.probs%d",
                      b->text->tap, b->layer, i);
    }
}

/* What `project` returns for a layer of the text, added to rows of pictures of x; nothing where it
 * returns none. */
static void add_deep(struct tec_lower *l, int layer, int x)
{
    const struct tec_model_program *p = l->model->vision.project;
    if (!p || layer >= p->n_deep || !tec_lower_sees(l))
        return;
    const struct tec_call_weights *w = &l->weights->project[p->deep[layer]];
    const struct tec_gate gate = {.at = w->factor};
    const struct tec_part_rows part = {.rows = l->prefix->n_image,
                                       .max_rows =
                                           tec_lower_most_pictures(l) * l->model->vision.tokens,
                                       .out_row = l->deep_row,
                                       .gate = gate.at ? &gate : NULL};
    tec_lower_linear_rows(l, &w->matrix, l->deep[layer], x, &part, true, "deep");
}

/* Sequences of a ring go a stage on in this layer: nobody reads its slots any more. */
static void shift(const struct tec_built *b, struct tec_kv_tensors kv)
{
    const struct tec_moves *shifts = b->text->shifts;
    if (!shifts || !shifts->list)
        return;
    tec_lower_move(b->l, shifts, kv.k, kv.k, "shift");
    tec_lower_move(b->l, shifts, kv.v, kv.v, "shift");
}

int tec_layers_rest(struct tec_built *b, int layer, struct tec_keys keys)
{
    const struct tec_program_layer *of = &b->p->layers[layer];
    const struct tec_attending t = attending(b, layer);
    struct tec_lower *l = b->l;
    int out =
        tec_lower_attend(l, &t, keys.q, gather(b, keys.kv), tec_built_rounds(b, of->attention));
    b->tensor[of->attention] = out;
    if (taps(b))
        tec_lower_tap(l, out, "%slayer%d.attn", b->text->tap, layer);
    tap_weights(b, &t, keys);
    shift(b, keys.kv);
    tec_built_calls(b, of->attention + 1, of[1].first, false);
    if (!b->text->tower)
        add_deep(l, layer, tec_layers_rows(b, layer + 1));
    if (b->text->tap)
        tec_lower_tap(l, tec_layers_rows(b, layer + 1), "%slayer%d.hidden", b->text->tap, layer);
    b->layer = -1;
    return tec_layers_rows(b, layer + 1);
}

void tec_layers_step(struct tec_built *b, int layer)
{
    if (b->l->cuts && layer > 0)
        tec_program_cut(b->l->program);
    (void)tec_layers_rest(b, layer, tec_layers_keys(b, layer));
}

int tec_layers_run(struct tec_built *b)
{
    const struct tec_reading *r = b->text;
    const struct tec_rows_left last = {r->last, r->last_row, "last_q", "last"};
    int n = b->p->n_layers, x = tec_layers_rows(b, 0);
    for (int layer = 0; layer < n && b->l->program->status == TEC_OK; layer++) {
        if (b->l->cuts && layer > 0)
            tec_program_cut(b->l->program);
        struct tec_keys keys = tec_layers_keys(b, layer);
        if (keys.q < 0)
            return tec_layers_rows(b, layer);
        if (layer == n - 1 && r->last)
            tec_layers_take(b, layer, &last, &keys);
        x = tec_layers_rest(b, layer, keys);
    }
    return x;
}

int tec_layers_leave(struct tec_built *b, bool round)
{
    b->layer = -1;
    b->rounds = round;
    tec_built_calls(b, b->p->layers[b->p->n_layers].first, b->p->n, false);
    b->rounds = false;
    return b->tensor[b->p->result];
}
