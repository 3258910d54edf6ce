/* loading_flow.c - the weights of a flow's words: of layers with a matrix for each category the one
 * that is read, of a product beside which the time stands the columns that read rows, and the
 * projections of an attention. */
#include "graph/model/loading.h"
#include "kernels/matrix.h"

#include <string.h>

/* Stored [in, out], read as [out, in]. */
static void transpose(const float *x, int in, int out, float *y)
{
    for (int i = 0; i < in; i++)
        for (int o = 0; o < out; o++)
            y[(size_t)o * (size_t)in + (size_t)i] = x[(size_t)i * (size_t)out + (size_t)o];
}

/* Packs a whole matrix [rows, k] and brings it to the device. */
static enum tec_status upload(struct tec_weight_loading *l, const float *x, int rows, int k,
                              void *to)
{
    struct tec_device *device = l->options->device;
    enum tec_matrix_layout layout = tec_device_layout(device);
    size_t size = tec_matrix_size(layout, false, rows, k);
    if (tec_device_reads_host(device)) {
        tec_matrix_pack(to, layout, false, rows, k, 0, rows, x);
        return TEC_OK;
    }
    void *packed = tec_heap_get(l->heap, size);
    if (!packed)
        return tec_fail(l->err, TEC_NO_MEMORY, "no memory for a matrix of %zu bytes", size);
    memset(packed, 0, size);
    tec_matrix_pack(packed, layout, false, rows, k, 0, rows, x);
    tec_device_upload(device, TEC_STREAM_MAIN, to, packed, size);
    enum tec_status status = tec_device_failure(device, l->err);
    tec_heap_put(l->heap, packed);
    return status;
}

/* The first `k` inputs of a category's layer. */
static enum tec_status load_category(struct tec_weight_loading *l, const struct tec_dense *d,
                                     struct tec_category category, int k, struct tec_matrix *m)
{
    struct tec_found found = {0};
    TEC_TRY(tec_weight_category(&l->source, d, category, &found, l->err));
    TEC_TRY(tec_weight_loading_matrix(l, d->rows, k, TEC_FORM_F32, m));
    if (l->source.dry)
        return TEC_OK;
    int64_t values = (int64_t)k * d->rows;
    TEC_TRY(tec_weight_loading_reserve(l, values));
    TEC_TRY(tec_weight_rows(&l->source, &found, 0, k, l->buffer, l->err));
    float *turned = tec_heap_get(l->heap, (size_t)values * sizeof *turned);
    if (!turned)
        return tec_fail(l->err, TEC_NO_MEMORY, "no memory for a matrix of %lld values",
                        (long long)values);
    transpose(l->buffer, k, d->rows, turned);
    enum tec_status status = upload(l, turned, d->rows, k, m->w);
    tec_heap_put(l->heap, turned);
    return status;
}

static enum tec_status load_category_bias(struct tec_weight_loading *l, const struct tec_dense *d,
                                          struct tec_category category, struct tec_matrix *m)
{
    void *block = NULL;
    TEC_TRY(tec_weight_loading_block(l, (size_t)m->n * sizeof(float), &block));
    TEC_TRY(tec_weight_loading_reserve(l, d->rows));
    TEC_TRY(tec_weight_category_bias(&l->source, d, category, l->buffer, l->err));
    if (!l->source.dry)
        tec_device_upload(l->options->device, TEC_STREAM_MAIN, block, l->buffer,
                          (size_t)d->rows * sizeof(float));
    m->bias = block;
    return TEC_OK;
}

enum tec_status tec_weight_loading_columns(struct tec_weight_loading *l, const struct tec_dense *d,
                                           int k, enum tec_form form, struct tec_matrix *m)
{
    struct tec_expected e = {
        .names = {d->weight}, .n_names = 1, .rank = 2, .shape = {d->rows, d->cols}};
    struct tec_found found = {0};
    TEC_TRY(tec_weight_find(&l->source, &e, &found, l->err));
    TEC_TRY(tec_weight_loading_matrix(l, d->rows, k, form, m));
    return tec_weight_loading_pack(l, &found, m->w, (struct tec_packed_columns){0, k, form, 0});
}

/* Where rows of the time stand beside others, the bias is in their tables. */
enum tec_status tec_weight_loading_product(struct tec_weight_loading *l,
                                           const struct tec_model_program *p,
                                           const struct tec_model_call *c, struct tec_matrix *m)
{
    const struct tec_model_call *x = &p->calls[c->in[0]];
    bool beside = x->word == TEC_WORD_beside;
    int k = beside ? p->calls[x->in[0]].cols : x->cols;
    enum tec_form form = tec_weight_loading_form(l, c->bf16, k);
    const struct tec_dense dense = {c->weight, c->bias, c->cols, x->cols};
    const struct tec_category category = {c->category, c->categories};
    if (c->categories) {
        TEC_TRY(load_category(l, &dense, category, k, m));
        return beside ? TEC_OK : load_category_bias(l, &dense, category, m);
    }
    return beside ? tec_weight_loading_columns(l, &dense, k, form, m)
                  : tec_weight_loading_dense(l, &dense, form, m);
}

enum tec_status tec_weight_loading_gated(struct tec_weight_loading *l,
                                         const struct tec_model_call *c, int width,
                                         struct tec_matrix *m)
{
    const struct tec_piece pieces[] = {{c->joined[0], NULL, c->cols, 0},
                                       {c->joined[1], NULL, c->cols, 0}};
    int at[2];
    return tec_weight_loading_pieces(l, pieces, 2, width, 0,
                                     tec_weight_loading_form(l, c->bf16, width), m, at);
}

/* The part k | v of qkv, of rows of `width` columns: not a copy. */
static void view_kv(const struct tec_weight_loading *l, struct tec_attention_weights *w, int width)
{
    int at = w->k_at;
    w->kv = w->qkv;
    w->kv.w = (char *)w->qkv.w + tec_weight_loading_size(l, at, width, w->qkv.form);
    w->kv.order_of = w->qkv.order_of ? w->qkv.order_of + at / 16 : NULL;
    w->kv.bias = w->qkv.bias ? w->qkv.bias + at : NULL;
    w->kv.n = w->kv.cols = w->qkv.n - at;
}

/* The matrices of keys and values that are not made of the attention's own rows. Projections of a
 * text's are small and kept as they are stored. */
static enum tec_status load_others(struct tec_weight_loading *l, const struct tec_model_call *c,
                                   const struct tec_piece keys[2], int total,
                                   struct tec_attention_weights *w)
{
    int from = c->attend.from, at[2];
    for (int i = 0; i < 2 && c->projected; i++)
        TEC_TRY(
            tec_weight_loading_pieces(l, &keys[i], 1, from, 0, TEC_FORM_F32, &w->projected[i], at));
    if (c->projected)
        return TEC_OK;
    TEC_TRY(tec_weight_loading_pieces(l, keys, 2, from, total,
                                      tec_weight_loading_form(l, c->bf16, from), &w->cross_kv, at));
    w->cross_v_at = at[1];
    return TEC_OK;
}

enum tec_status tec_weight_loading_attention(struct tec_weight_loading *l,
                                             const struct tec_model_program *p,
                                             const struct tec_model_call *c,
                                             struct tec_attention_weights *w)
{
    const struct tec_attend *a = &c->attend;
    int q = a->heads * a->head_dim, kv = a->kv_heads * a->head_dim, at[3];
    int width = p->calls[c->in[0]].cols;
    enum tec_form form = tec_weight_loading_form(l, c->bf16, width);
    struct tec_piece pieces[] = {{c->joined[0], c->joined_bias[0], q, 0},
                                 {c->joined[1], c->joined_bias[1], kv, q},
                                 {c->joined[2], c->joined_bias[2], kv, q + kv}};
    bool own = tec_model_own_keys(p, c);
    int n = own ? 3 : 1, total = c->fused ? q + 2 * kv : 0;
    for (int i = 0; i < 3 && c->fused; i++) {
        pieces[i].weight = c->fused;
        pieces[i].bias = c->fused_bias;
    }
    TEC_TRY(tec_weight_loading_pieces(l, pieces, n, width, total, form, &w->qkv, at));
    float centre = 1.0F - (float)c->offset;
    TEC_TRY(tec_weight_loading_vector(l, c->norms[0], a->head_dim, centre, &w->q_norm));
    TEC_TRY(tec_weight_loading_vector(l, c->norms[1], a->head_dim, centre, &w->k_norm));
    w->k_at = own ? at[1] : 0;
    w->v_at = own ? at[2] : 0;
    if (!own)
        return load_others(l, c, pieces + 1, total, w);
    view_kv(l, w, width);
    return TEC_OK;
}
