/* loading_denoiser.c - the tensors of features and of a denoiser: of those with a matrix for each
 * category of robots the one that is asked for. */
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

/* The first `k` inputs of a category's layer as a matrix. */
static enum tec_status load_matrix(struct tec_weight_loading *l, const struct tec_dense *d, int k,
                                   struct tec_matrix *m)
{
    struct tec_found found = {0};
    const struct tec_denoiser *n = &l->options->model->denoiser;
    void *block = NULL;
    TEC_TRY(tec_weight_category(&l->source, d, n->categories, n->category, &found, l->err));
    TEC_TRY(tec_weight_loading_block(l, tec_weight_loading_size(l, d->rows, k, false), &block));
    *m = (struct tec_matrix){.w = block, .n = tec_padded(d->rows), .k = k, .cols = d->rows};
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
    enum tec_status status = upload(l, turned, d->rows, k, block);
    tec_heap_put(l->heap, turned);
    return status;
}

static enum tec_status load_layer(struct tec_weight_loading *l, const struct tec_dense *d,
                                  struct tec_matrix *m)
{
    const struct tec_denoiser *n = &l->options->model->denoiser;
    void *block = NULL;
    TEC_TRY(load_matrix(l, d, d->cols, m));
    TEC_TRY(tec_weight_loading_block(l, (size_t)m->n * sizeof(float), &block));
    TEC_TRY(tec_weight_loading_reserve(l, d->rows));
    TEC_TRY(tec_weight_category_bias(&l->source, d, n->categories, n->category, l->buffer, l->err));
    if (!l->source.dry)
        tec_device_upload(l->options->device, TEC_STREAM_MAIN, block, l->buffer,
                          (size_t)d->rows * sizeof(float));
    m->bias = block;
    return TEC_OK;
}

/* The first n rows of a table, each padded. */
static enum tec_status load_table(struct tec_weight_loading *l, const struct tec_table_rows *t,
                                  int n, int width, const float **out)
{
    struct tec_expected e = {
        .names = {t->name}, .n_names = 1, .rank = 2, .shape = {t->rows, width}, .leading = true};
    struct tec_found found = {0};
    size_t ld = (size_t)tec_padded(width);
    void *block = NULL;
    TEC_TRY(tec_weight_find(&l->source, &e, &found, l->err));
    TEC_TRY(tec_weight_loading_block(l, (size_t)n * ld * sizeof(float), &block));
    TEC_TRY(tec_weight_loading_reserve(l, width));
    for (int r = 0; r < n && !l->source.dry; r++) {
        TEC_TRY(tec_weight_rows(&l->source, &found, r, 1, l->buffer, l->err));
        tec_device_upload(l->options->device, TEC_STREAM_MAIN, (float *)block + (size_t)r * ld,
                          l->buffer, (size_t)width * sizeof(float));
    }
    *out = block;
    return TEC_OK;
}

static enum tec_status load_features(struct tec_weight_loading *l, const struct tec_features *f)
{
    struct tec_features_weights *w = &l->out->features;
    TEC_TRY(tec_weight_loading_dense(l, &f->project, l->options->bf16, &w->project));
    TEC_TRY(tec_weight_loading_vector(l, f->norm.weight, f->width, 1.0F, &w->norm));
    TEC_TRY(tec_weight_loading_vector(l, f->norm.bias, f->width, 0.0F, &w->norm_bias));
    return f->stack.layers ? tec_weight_loading_stack(l, &f->stack, &w->stack) : TEC_OK;
}

/* The share of the time in the second input layer is in the tables. */
enum tec_status tec_weight_loading_denoiser(struct tec_weight_loading *l, const struct tec_model *m)
{
    const struct tec_denoiser *d = &m->denoiser;
    struct tec_denoiser_weights *w = &l->out->denoiser;
    TEC_TRY(load_features(l, &m->features));
    for (int i = 0; i < 2; i++) {
        TEC_TRY(load_layer(l, &d->state[i], &w->state[i]));
        TEC_TRY(load_layer(l, &d->out[i], &w->out[i]));
    }
    TEC_TRY(load_layer(l, &d->in[0], &w->in[0]));
    TEC_TRY(load_matrix(l, &d->in[1], d->stack.width, &w->in[1]));
    TEC_TRY(load_layer(l, &d->in[2], &w->in[2]));
    TEC_TRY(tec_weight_loading_dense(l, &d->project, false, &w->project));
    TEC_TRY(load_table(l, &d->position, m->flow.horizon, d->stack.width, &w->position));
    if (d->future.rows)
        TEC_TRY(load_table(l, &d->future, d->future.rows, d->stack.width, &w->future));
    return tec_weight_loading_stack(l, &d->stack, &w->stack);
}
