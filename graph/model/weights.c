#include "graph/model/weights.h"

#include "graph/model/loader.h"
#include "kernels/matrix.h"

#include <string.h>

enum { BUFFER_FLOATS = 1 << 16, FIRST_BLOCKS = 256 };

enum tec_status tec_loader_block(struct tec_loader *l, size_t size, void **block)
{
    struct tec_weights *w = l->out;
    if (w->n_blocks == w->block_room) {
        int room = w->block_room ? 2 * w->block_room : FIRST_BLOCKS;
        void **more = TEC_NEW(&w->arena, (size_t)room, void *);
        if (!more)
            return tec_fail(l->err, TEC_NO_MEMORY, "no memory for %d weight blocks", room);
        if (w->n_blocks)
            memcpy(more, w->blocks, (size_t)w->n_blocks * sizeof *more);
        w->blocks = more;
        w->block_room = room;
    }
    *block = tec_device_get(l->options->device, size);
    if (!*block)
        return tec_fail(l->err, TEC_NO_MEMORY,
                        "weights need %zu more bytes after %lld; the device has no more", size,
                        (long long)w->bytes);
    w->blocks[w->n_blocks++] = *block;
    w->bytes += (int64_t)size;
    if (l->options->progress)
        l->options->progress(l->options->user, w->bytes);
    return TEC_OK;
}

enum tec_status tec_loader_reserve(struct tec_loader *l, int64_t n)
{
    if (n <= l->buffer_floats || l->source.dry)
        return TEC_OK;
    tec_heap_put(l->heap, l->buffer);
    l->buffer_floats = n > BUFFER_FLOATS ? n : BUFFER_FLOATS;
    l->buffer = tec_heap_get(l->heap, (size_t)l->buffer_floats * sizeof(float));
    if (!l->buffer)
        return tec_fail(l->err, TEC_NO_MEMORY, "no memory for a buffer of %lld floats",
                        (long long)l->buffer_floats);
    return TEC_OK;
}

static enum tec_status load_vector(struct tec_loader *l, const char *name, int n, float centre,
                                   const float **out)
{
    *out = NULL;
    if (!name)
        return TEC_OK;
    void *block = NULL;
    TEC_TRY(tec_loader_reserve(l, n));
    TEC_TRY(tec_loader_block(l, (size_t)tec_padded(n) * 4, &block));
    TEC_TRY(tec_weight_vector(&l->source, name, n, centre, l->buffer, l->err));
    tec_device_upload(l->options->device, TEC_STREAM_MAIN, block, l->buffer, (size_t)n * 4);
    *out = block;
    return TEC_OK;
}

static enum tec_matrix_layout layout_of(const struct tec_loader *l)
{
    return tec_device_layout(l->options->device);
}

static size_t matrix_size(const struct tec_loader *l, int rows, int k, bool bf16)
{
    return tec_matrix_size(layout_of(l), bf16, rows, k);
}

static enum tec_status pack_rows(struct tec_loader *l, const struct tec_found *found, void *to,
                                 struct tec_packed_columns columns)
{
    return tec_packer_rows(&l->packer, found, columns, to, l->err);
}

static enum tec_status pack_found(struct tec_loader *l, const struct tec_found *found, bool bf16,
                                  struct tec_matrix *m)
{
    void *w = NULL;
    TEC_TRY(tec_loader_block(l, matrix_size(l, (int)found->rows, (int)found->cols, bf16), &w));
    *m = (struct tec_matrix){.w = w,
                             .n = tec_padded((int)found->rows),
                             .k = (int)found->cols,
                             .cols = (int)found->rows,
                             .bf16 = bf16};
    return pack_rows(l, found, w, (struct tec_packed_columns){0, (int)found->cols, bf16});
}

/* Piece i's weight and bias: the tensors of their names, or for a joined matrix rows of one tensor.
 */
static enum tec_status load_piece(struct tec_loader *l, const struct tec_piece *piece, int k,
                                  int total, struct tec_packed_columns columns, void *w,
                                  float *bias)
{
    struct tec_expected e = {.names = {piece->weight},
                             .n_names = 1,
                             .rank = 2,
                             .shape = {total ? total : piece->rows, k}};
    struct tec_found found = {0};
    int first = total ? piece->first : 0, n = total ? total : piece->rows;
    TEC_TRY(tec_weight_find(&l->source, &e, &found, l->err));
    found.first = first;
    found.rows = piece->rows;
    TEC_TRY(pack_rows(l, &found, w, columns));
    TEC_TRY(tec_loader_reserve(l, n));
    TEC_TRY(tec_weight_vector(&l->source, piece->bias, n, 0.0F, l->buffer, l->err));
    if (bias && !l->source.dry)
        tec_device_upload(l->options->device, TEC_STREAM_MAIN, bias, l->buffer + first,
                          (size_t)piece->rows * 4);
    return TEC_OK;
}

/* Joined matrices of inner length k; at[i] is the first column of piece i. `total` > 0: they are
 * rows of one tensor that has so many. */
static enum tec_status load_pieces(struct tec_loader *l, const struct tec_piece *pieces, int n,
                                   int k, int total, bool bf16, struct tec_matrix *m, int *at)
{
    int rows = 0;
    bool biased = false;
    for (int i = 0; i < n; i++) {
        at[i] = rows;
        rows += tec_padded(pieces[i].rows);
        biased |= pieces[i].bias != NULL;
    }
    void *block, *bias = NULL;
    TEC_TRY(tec_loader_block(l, tec_loader_size(l, rows, k, bf16), &block));
    if (biased)
        TEC_TRY(tec_loader_block(l, (size_t)rows * 4, &bias));
    *m = (struct tec_matrix){
        .w = block, .bias = bias, .n = rows, .k = k, .cols = rows, .bf16 = bf16};
    if (n == 1)
        m->cols = pieces[0].rows;
    if (l->packing)
        return tec_load_packed(l, pieces, n, k, at, m, bias);
    for (int i = 0; i < n; i++)
        TEC_TRY(load_piece(l, &pieces[i], k, total, (struct tec_packed_columns){0, k, bf16},
                           (char *)block + matrix_size(l, at[i], k, bf16),
                           biased ? (float *)bias + at[i] : NULL));
    return TEC_OK;
}

static enum tec_status load_dense(struct tec_loader *l, const struct tec_dense *d, bool bf16,
                                  struct tec_matrix *m)
{
    int at;
    if (!d->weight)
        return TEC_OK;
    struct tec_piece piece = {d->weight, d->bias, d->rows, 0};
    return load_pieces(l, &piece, 1, d->cols, 0, bf16, m, &at);
}

static enum tec_status load_norm(struct tec_loader *l, const struct tec_stack *s,
                                 const char *weight, const char *bias, const float **w,
                                 const float **b)
{
    *w = *b = NULL;
    if (s->norm == TEC_BLOCK_ADAPTIVE_NORM)
        return TEC_OK;
    /* A tower's norms are rounded where its matrices are: doc/numerics.md. */
    const struct tec_vision *vision = &l->options->model->vision;
    l->source.bf16 = false;
    for (int i = 0; i < vision->n_towers; i++)
        l->source.bf16 |= l->options->bf16 && s == &vision->towers[i].stack;
    enum tec_status status = load_vector(l, weight, s->width, 1.0F - s->norm_offset, w);
    if (status == TEC_OK)
        status = load_vector(l, bias, s->width, 0.0F, b);
    l->source.bf16 = false;
    return status;
}

/* Layer names, filled in for one layer. */
struct names {
    char text[TEC_ROLE_COUNT][256];
    const char *of[TEC_ROLE_COUNT];
};

static void name_layer(struct names *names, const struct tec_stack *s, int layer)
{
    for (int r = 0; r < TEC_ROLE_COUNT; r++) {
        names->of[r] = NULL;
        if (s->names[r]) {
            tec_layer_name(names->text[r], s->names[r], layer);
            names->of[r] = names->text[r];
        }
    }
}

static enum tec_status load_feed_forward(struct tec_loader *l, const struct tec_stack *s,
                                         const char *const *of, struct tec_layer *layer)
{
    bool bf16 = l->options->bf16;
    int at[2];
    const struct tec_piece up[] = {{of[TEC_ROLE_gate], NULL, s->mlp, 0},
                                   {of[TEC_ROLE_up], of[TEC_ROLE_up_bias], s->mlp, 0}};
    TEC_TRY(load_pieces(l, s->gated ? up : up + 1, s->gated ? 2 : 1, s->width, 0, bf16, &layer->up,
                        at));
    layer->gate_at = at[0];
    layer->up_at = s->gated ? at[1] : 0;
    const struct tec_piece down = {of[TEC_ROLE_down], of[TEC_ROLE_down_bias], s->width, 0};
    return load_pieces(l, &down, 1, s->mlp, 0, bf16, &layer->down, at);
}

static enum tec_status load_layer(struct tec_loader *l, const struct tec_stack *s, int index,
                                  struct tec_layer *layer)
{
    struct names names;
    const char *const *of = names.of;
    bool bf16 = l->options->bf16;
    int q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim, at[3];
    name_layer(&names, s, index);
    bool joined = of[TEC_ROLE_qkv] != NULL;
    const char *wb[2] = {of[TEC_ROLE_qkv], of[TEC_ROLE_qkv_bias]};
    const struct tec_piece qkv[] = {
        {joined ? wb[0] : of[TEC_ROLE_q], joined ? wb[1] : of[TEC_ROLE_q_bias], q, 0},
        {joined ? wb[0] : of[TEC_ROLE_k], joined ? wb[1] : of[TEC_ROLE_k_bias], kv, q},
        {joined ? wb[0] : of[TEC_ROLE_v], joined ? wb[1] : of[TEC_ROLE_v_bias], kv, q + kv}};
    TEC_TRY(load_pieces(l, qkv, 3, s->width, joined ? q + 2 * kv : 0, bf16, &layer->qkv, at));
    layer->q_at = at[0];
    layer->k_at = at[1];
    layer->v_at = at[2];
    layer->kv = layer->qkv;
    layer->kv.w = (char *)layer->qkv.w + tec_loader_size(l, at[1], s->width, bf16);
    layer->kv.order_of = layer->qkv.order_of ? layer->qkv.order_of + at[1] / 16 : NULL;
    layer->kv.bias = layer->qkv.bias ? layer->qkv.bias + at[1] : NULL;
    layer->kv.n = layer->kv.cols = layer->qkv.n - at[1];
    const struct tec_piece o = {of[TEC_ROLE_o], of[TEC_ROLE_o_bias], s->width, 0};
    TEC_TRY(load_pieces(l, &o, 1, q, 0, bf16, &layer->o, at));
    TEC_TRY(load_vector(l, of[TEC_ROLE_scale1], s->width, 1.0F, &layer->scale1));
    TEC_TRY(load_vector(l, of[TEC_ROLE_scale2], s->width, 1.0F, &layer->scale2));
    TEC_TRY(load_feed_forward(l, s, of, layer));
    TEC_TRY(load_norm(l, s, of[TEC_ROLE_norm1], of[TEC_ROLE_norm1_bias], &layer->norm1,
                      &layer->norm1_bias));
    return load_norm(l, s, of[TEC_ROLE_norm2], of[TEC_ROLE_norm2_bias], &layer->norm2,
                     &layer->norm2_bias);
}

static enum tec_status load_stack(struct tec_loader *l, const struct tec_stack *s,
                                  struct tec_stack_weights *w)
{
    w->layers = TEC_NEW(&l->out->arena, (size_t)s->layers, struct tec_layer);
    if (!w->layers)
        return tec_fail(l->err, TEC_NO_MEMORY, "no memory for %d layers", s->layers);
    l->packing = s->packing.kind ? &s->packing : NULL;
    for (int i = 0; i < s->layers; i++)
        TEC_TRY(load_layer(l, s, i, &w->layers[i]));
    l->packing = NULL;
    return load_norm(l, s, s->names[TEC_ROLE_final], s->names[TEC_ROLE_final_bias], &w->final,
                     &w->final_bias);
}

/* Rows of a table to `to` [rows, ld], device memory. */
static enum tec_status load_rows(struct tec_loader *l, const char *name, int rows, int width,
                                 float *to, int ld)
{
    struct tec_expected e = {
        .names = {name}, .n_names = 1, .rank = 2, .shape = {rows, width}, .leading = true};
    struct tec_found found = {0};
    TEC_TRY(tec_weight_find(&l->source, &e, &found, l->err));
    TEC_TRY(tec_loader_reserve(l, width));
    for (int r = 0; r < rows && !l->source.dry; r++) {
        TEC_TRY(tec_weight_rows(&l->source, &found, r, 1, l->buffer, l->err));
        tec_device_upload(l->options->device, TEC_STREAM_MAIN, to + (size_t)r * (size_t)ld,
                          l->buffer, (size_t)width * 4);
    }
    return TEC_OK;
}

/* The rows before the patches, once for every picture that there can be. */
static enum tec_status load_prefix(struct tec_loader *l, const struct tec_tower *t,
                                   struct tec_tower_weights *w)
{
    void *block = NULL;
    int slots = l->options->model->n_slots, at = 0;
    if (!t->prefix_rows)
        return TEC_OK;
    TEC_TRY(
        tec_loader_block(l, (size_t)slots * (size_t)t->prefix_rows * (size_t)w->ld * 4, &block));
    for (int s = 0; s < slots; s++)
        for (int i = 0; i < t->n_prefix; i++) {
            float *to = block ? (float *)block + (size_t)at * (size_t)w->ld : NULL;
            TEC_TRY(load_rows(l, t->prefix[i].name, t->prefix[i].rows, t->stack.width, to, w->ld));
            at += t->prefix[i].rows;
        }
    w->prefix = block;
    return TEC_OK;
}

static enum tec_status load_tower(struct tec_loader *l, const struct tec_tower *t,
                                  struct tec_tower_weights *w)
{
    const struct tec_vision *v = &l->options->model->vision;
    struct tec_expected e = {.names = {t->patch_embed.weight},
                             .n_names = 1,
                             .rank = 4,
                             .shape = {t->stack.width, 3, v->patch, v->patch}};
    struct tec_found found = {0};
    TEC_TRY(tec_weight_find(&l->source, &e, &found, l->err));
    TEC_TRY(pack_found(l, &found, false, &w->patch));
    TEC_TRY(load_vector(l, t->patch_embed.bias, t->stack.width, 0.0F, &w->patch.bias));
    void *block = NULL;
    w->ld = tec_padded(t->stack.width);
    TEC_TRY(tec_loader_block(l, (size_t)v->tokens * (size_t)w->ld * 4, &block));
    TEC_TRY(load_rows(l, t->position, v->tokens, t->stack.width, block, w->ld));
    w->position = block;
    TEC_TRY(load_prefix(l, t, w));
    return load_stack(l, &t->stack, &w->stack);
}

/* The first layer by the columns of each tower: what they give is added, the bias once. */
static enum tec_status load_projector(struct tec_loader *l, const struct tec_vision *v)
{
    const struct tec_dense *d = &v->projector[0];
    struct tec_expected e = {
        .names = {d->weight}, .n_names = 1, .rank = 2, .shape = {d->rows, d->cols}};
    struct tec_found found = {0};
    TEC_TRY(tec_weight_find(&l->source, &e, &found, l->err));
    for (int i = 0, from = 0; i < v->n_towers; i++) {
        struct tec_matrix *m = &l->out->towers[i].project;
        int cols = v->towers[i].stack.width;
        void *block = NULL;
        TEC_TRY(tec_loader_block(l, matrix_size(l, d->rows, cols, false), &block));
        *m = (struct tec_matrix){.w = block, .n = tec_padded(d->rows), .k = cols, .cols = d->rows};
        TEC_TRY(pack_rows(l, &found, block, (struct tec_packed_columns){from, cols, false}));
        if (i == 0)
            TEC_TRY(load_vector(l, d->bias, d->rows, 0.0F, &m->bias));
        from += cols;
    }
    for (int i = 1; i < v->n_projector; i++)
        TEC_TRY(load_dense(l, &v->projector[i], false, &l->out->projector[i]));
    return TEC_OK;
}

static void collect(struct tec_expected *e, const char *const names[TEC_MAX_ALIASES])
{
    for (e->n_names = 0; e->n_names < TEC_MAX_ALIASES && names[e->n_names]; e->n_names++)
        e->names[e->n_names] = names[e->n_names];
}

/* One matrix when both names lead to the same tensor or to equal bytes, else two. */
static enum tec_status load_embeddings(struct tec_loader *l, const struct tec_text *t)
{
    struct tec_expected embed = {.rank = 2, .shape = {t->vocab, t->stack.width}}, head = embed;
    struct tec_found found_embed = {0}, found_head = {0};
    collect(&embed, t->embed);
    collect(&head, t->head);
    bool same = !l->options->language || head.n_names == 0;
    for (int i = 0; !l->source.checkpoint && i < head.n_names; i++)
        same |= strcmp(head.names[i], embed.names[0]) == 0;
    TEC_TRY(tec_weight_find(&l->source, &embed, &found_embed, l->err));
    if (!same)
        TEC_TRY(tec_weight_find(&l->source, &head, &found_head, l->err));
    if (!same)
        TEC_TRY(tec_weight_same(&l->source, &found_embed, &found_head, &same, l->err));
    TEC_TRY(pack_found(l, &found_embed, l->options->bf16, &l->out->embed));
    l->out->head = l->out->embed;
    if (same)
        return TEC_OK;
    return pack_found(l, &found_head, l->options->bf16, &l->out->head);
}

static enum tec_status load_flow(struct tec_loader *l, const struct tec_flow *f)
{
    struct tec_weights *w = l->out;
    TEC_TRY(load_dense(l, &f->in, false, &w->in));
    TEC_TRY(load_dense(l, &f->out, false, &w->out));
    TEC_TRY(load_dense(l, &f->state, false, &w->state));
    if (f->condition)
        return TEC_OK; /* the time layers only make tables */
    struct tec_expected e = {.names = {f->time1.weight},
                             .n_names = 1,
                             .rank = 2,
                             .shape = {f->time1.rows, f->time1.cols}};
    struct tec_found found = {0};
    int half = f->time1.cols / 2;
    void *block = NULL;
    TEC_TRY(tec_weight_find(&l->source, &e, &found, l->err));
    TEC_TRY(tec_loader_block(l, matrix_size(l, f->time1.rows, half, false), &block));
    w->time1 = (struct tec_matrix){
        .w = block, .n = tec_padded(f->time1.rows), .k = half, .cols = f->time1.rows};
    TEC_TRY(pack_rows(l, &found, block, (struct tec_packed_columns){0, half, false}));
    return load_dense(l, &f->time2, false, &w->time2);
}

static enum tec_status load_normed(struct tec_loader *l, const struct tec_normed *n,
                                   struct tec_normed_weights *w)
{
    TEC_TRY(load_vector(l, n->norm, n->dense.cols, 1.0F, &w->norm));
    TEC_TRY(load_vector(l, n->norm_bias, n->dense.cols, 0.0F, &w->norm_bias));
    return load_dense(l, &n->dense, l->options->bf16, &w->dense);
}

static enum tec_status load_head(struct tec_loader *l, const struct tec_head *h)
{
    struct tec_head_weights *w = &l->out->chunk;
    for (int i = 0; i < 2; i++)
        TEC_TRY(load_dense(l, &h->states[i], false, &w->states[i]));
    if (!h->width)
        return TEC_OK;
    TEC_TRY(load_normed(l, &h->in, &w->in));
    for (int i = 0; i < h->n_blocks; i++)
        TEC_TRY(load_normed(l, &h->blocks[i], &w->blocks[i]));
    return load_normed(l, &h->out, &w->out);
}

static enum tec_status load_all(struct tec_loader *l)
{
    const struct tec_model *m = l->options->model;
    for (int i = 0; i < m->vision.n_towers; i++)
        TEC_TRY(load_tower(l, &m->vision.towers[i], &l->out->towers[i]));
    if (m->vision.n_projector)
        TEC_TRY(load_projector(l, &m->vision));
    TEC_TRY(load_embeddings(l, &m->text));
    TEC_TRY(load_stack(l, &m->text.stack, &l->out->text));
    if (tec_model_heads(m))
        return load_head(l, &m->head);
    if (!tec_model_flows(m))
        return TEC_OK;
    TEC_TRY(load_stack(l, &m->flow.stack, &l->out->expert));
    return load_flow(l, &m->flow);
}

enum tec_status tec_weights_load(struct tec_weights **out,
                                 const struct tec_weights_options *options, struct tec_heap *heap,
                                 struct tec_error *err)
{
    struct tec_weights *w = tec_heap_get(heap, sizeof *w);
    if (!w)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for weights");
    w->device = options->device;
    w->bf16 = options->bf16;
    tec_arena_init(&w->arena, heap);
    struct tec_loader l = {
        .out = w, .options = options, .source = options->source, .err = err, .heap = heap};
    tec_packer_open(&l.packer, &options->source, options->device, heap);
    enum tec_status status = load_all(&l);
    tec_packer_close(&l.packer);
    tec_heap_put(heap, l.buffer);
    if (status != TEC_OK) {
        tec_weights_close(w);
        return status;
    }
    *out = w;
    return TEC_OK;
}

void tec_weights_close(struct tec_weights *w)
{
    if (!w)
        return;
    struct tec_heap *heap = w->arena.heap;
    for (int i = 0; i < w->n_blocks; i++)
        tec_device_put(w->device, w->blocks[i]);
    tec_arena_finish(&w->arena);
    tec_heap_put(heap, w);
}
