/* loading_conv.c - the weights of a convolution: reordered, its norm folded in, packed.
 *
 * Runs at load. Files store a weight as [out, in, side, side]; windows of a picture hold their
 * pixels one after the other, each with all its channels, so columns become [side, side, in]. Where
 * four windows are computed together, their weights are transformed. */
#include "graph/model/loading.h"
#include "kernels/conv.h"

#include <math.h>
#include <string.h>

/* Vectors of the channels, in host memory. */
struct channels {
    float *weight, *bias, *mean, *var;
    double *scale; /* of the norm */
};

/* bias = b - mean s, s = weight / sqrt(var + eps): in float64, rounded once. */
static void fold(const struct tec_model_call *s, const struct channels *c)
{
    for (int o = 0; o < s->cols; o++) {
        c->scale[o] = 1.0;
        if (s->norm.weight)
            c->scale[o] = (double)c->weight[o] / sqrt((double)c->var[o] + s->norm.eps);
        c->bias[o] = (float)((double)c->bias[o] - (double)c->mean[o] * c->scale[o]);
    }
}

/* w *= s, in float64, rounded once. */
static void scale(int rows, int k, const double *scale, float *w)
{
    for (int o = 0; o < rows; o++, w += k)
        for (int i = 0; i < k; i++)
            w[i] = (float)((double)w[i] * scale[o]);
}

/* [out, in, side, side] to [out, side, side, in]. */
static void reorder(const struct tec_model_call *s, int channels, const float *from, float *to)
{
    size_t in = (size_t)channels, area = (size_t)s->side * (size_t)s->side;
    for (size_t o = 0; o < (size_t)s->cols; o++)
        for (size_t c = 0; c < in; c++)
            for (size_t i = 0; i < area; i++)
                to[(o * area + i) * in + c] = from[(o * in + c) * area + i];
}

static enum tec_status read_conv(struct tec_weight_loading *l, const struct tec_model_call *s,
                                 int in, float *raw, float *w, struct channels *c)
{
    const struct {
        const char *name;
        float centre;
        float *to;
    } vectors[] = {{s->norm.weight, 1.0F, c->weight},
                   {s->bias ? s->bias : s->norm.bias, 0.0F, c->bias},
                   {s->norm.mean, 0.0F, c->mean},
                   {s->norm.var, 1.0F, c->var}};
    const struct tec_expected e = tec_model_conv_expected(s, in);
    struct tec_found found = {0};
    TEC_TRY(tec_weight_find(&l->source, &e, &found, l->err));
    TEC_TRY(tec_weight_rows(&l->source, &found, 0, s->cols, raw, l->err));
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++)
        TEC_TRY(tec_weight_vector(&l->source, vectors[i].name, s->cols, vectors[i].centre,
                                  vectors[i].to, l->err));
    for (int o = 0; o < s->cols && s->norm.weight; o++)
        if (!((double)c->var[o] + s->norm.eps > 0.0))
            return tec_fail(l->err, TEC_MALFORMED, "tensor '%s' element %d is negative: %g",
                            s->norm.var, o, (double)c->var[o]);
    reorder(s, in, raw, w);
    fold(s, c);
    return TEC_OK;
}

static enum tec_status pack_conv(struct tec_weight_loading *l, const struct tec_model_call *s,
                                 const struct channels *c, float *raw, float *w,
                                 struct tec_matrix *m)
{
    const enum tec_matrix_layout layout = tec_device_layout(l->options->device);
    struct tec_device *device = l->options->device;
    size_t size = tec_weight_loading_size(l, s->cols, m->k, m->form);
    void *packed = tec_device_reads_host(device) ? m->w : tec_heap_get(l->heap, size);
    if (!packed)
        return tec_fail(l->err, TEC_NO_MEMORY, "no memory for a weight of %zu bytes", size);
    memset(packed, 0, size);
    if (m->form == TEC_FORM_POINTS) {
        tec_conv_pack(packed, layout, s->cols, m->k, w, c->scale, raw);
    } else {
        scale(s->cols, m->k, c->scale, w);
        tec_matrix_pack(packed, layout, m->form == TEC_FORM_BF16, s->cols, m->k, 0, s->cols, w);
    }
    if (packed != m->w) {
        tec_device_upload(device, TEC_STREAM_MAIN, m->w, packed, size);
        tec_heap_put(l->heap, packed);
    }
    void *at = NULL;
    memcpy(&at, &m->bias, sizeof at); /* only this file writes it */
    tec_device_upload(device, TEC_STREAM_MAIN, at, c->bias, (size_t)s->cols * sizeof *c->bias);
    return tec_device_failure(device, l->err);
}

enum tec_status tec_weight_loading_conv(struct tec_weight_loading *l,
                                        const struct tec_model_call *s, int in,
                                        struct tec_matrix *m)
{
    const enum tec_form form = l->options->bf16 ? TEC_FORM_BF16
                               : s->squares     ? TEC_FORM_POINTS
                                                : TEC_FORM_F32;
    int window = in * s->side * s->side, n = tec_padded(s->cols);
    int k = form == TEC_FORM_POINTS ? in : window;
    size_t values = (size_t)s->cols * (size_t)window, channels = (size_t)n;
    void *block = NULL, *bias = NULL;
    TEC_TRY(tec_weight_loading_block(l, tec_weight_loading_size(l, s->cols, k, form), &block));
    TEC_TRY(tec_weight_loading_block(l, channels * sizeof(float), &bias));
    *m = (struct tec_matrix){
        .w = block, .bias = bias, .n = n, .k = k, .cols = s->cols, .form = form};
    if (l->source.dry)
        return TEC_OK;
    float *all = tec_heap_get(l->heap, (2 * values + 6 * channels) * sizeof *all);
    if (!all)
        return tec_fail(l->err, TEC_NO_MEMORY, "no memory for a weight of %zu values", values);
    double *scales = (double *)(void *)all; /* in front, where they are aligned */
    float *vectors = all + 2 * channels, *raw = vectors + 4 * channels, *w = raw + values;
    struct channels c = {vectors, vectors + channels, vectors + 2 * channels,
                         vectors + 3 * channels, scales};
    enum tec_status status = read_conv(l, s, in, raw, w, &c);
    if (status == TEC_OK)
        status = pack_conv(l, s, &c, raw, w, m);
    tec_heap_put(l->heap, all);
    return status;
}
