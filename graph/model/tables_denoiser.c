/* tables_denoiser.c - computes what depends on a denoiser's time alone: the scale and shift of each
 * norm, and the share of the time in the rows that enter.
 *
 * Runs at load, in float64, once for each step: the times are known in advance. */
#include "graph/model/tables.h"

#include "kernels/matrix.h"

#include <math.h>
#include <string.h>

struct maker {
    struct tec_flow_tables *out;
    const struct tec_denoiser *d;
    struct tec_weight_source source;
    struct tec_error *err;
};

int tec_flow_bucket(int s, int steps, int buckets)
{
    return (int)((double)s / (double)steps * (double)buckets);
}

void tec_flow_waves(double t, double period, int n, int last, bool cosines_first, double *out)
{
    for (int i = 0; i < n; i++) {
        double angle = t * exp(-log(period) * i / last);
        out[i] = cosines_first ? cos(angle) : sin(angle);
        out[n + i] = cosines_first ? sin(angle) : cos(angle);
    }
}

static double silu(double x)
{
    return x / (1.0 + exp(-x));
}

static enum tec_status no_memory(const struct maker *m)
{
    return tec_fail(m->err, TEC_NO_MEMORY, "no memory for time tables");
}

/* A dense layer of every step's x [steps, cols] to y [steps, rows]. */
static enum tec_status apply(struct maker *m, const char *weight, const char *bias, int rows,
                             int cols, const double *x, double *y)
{
    struct tec_arena *arena = &m->out->arena;
    struct tec_expected e = {.names = {weight}, .n_names = 1, .rank = 2, .shape = {rows, cols}};
    struct tec_found found;
    float *w = TEC_NEW(arena, (size_t)cols, float), *b = TEC_NEW(arena, (size_t)rows, float);
    if (!w || !b)
        return no_memory(m);
    TEC_TRY(tec_weight_find(&m->source, &e, &found, m->err));
    TEC_TRY(tec_weight_vector(&m->source, bias, rows, 0.0F, b, m->err));
    for (int r = 0; r < rows; r++) {
        TEC_TRY(tec_weight_rows(&m->source, &found, r, 1, w, m->err));
        for (int s = 0; s < m->out->steps; s++) {
            double sum = 0.0;
            for (int c = 0; c < cols; c++)
                sum += (double)w[c] * x[(size_t)s * (size_t)cols + (size_t)c];
            y[(size_t)s * (size_t)rows + (size_t)r] = sum + (double)b[r];
        }
    }
    return TEC_OK;
}

static void silu_all(double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = silu(x[i]);
}

/* What the time adds to the second input layer: the lower half of its matrix, and the bias. */
static enum tec_status make_time_bias(struct maker *m, int category)
{
    struct tec_flow_tables *t = m->out;
    const struct tec_dense *d = &m->d->in[1];
    size_t w = (size_t)t->width, padded = (size_t)t->padded;
    struct tec_found found;
    float *line = TEC_NEW(&t->arena, w, float), *bias = TEC_NEW(&t->arena, w, float);
    double *sum = TEC_NEW(&t->arena, (size_t)t->steps * w, double);
    float *row = TEC_NEW(&t->arena, padded, float);
    if (!line || !bias || !sum || !row)
        return no_memory(m);
    TEC_TRY(tec_weight_category(&m->source, d, m->d->categories, category, &found, m->err));
    TEC_TRY(tec_weight_category_bias(&m->source, d, m->d->categories, category, bias, m->err));
    for (int i = 0; i < t->width; i++) {
        TEC_TRY(tec_weight_rows(&m->source, &found, t->width + i, 1, line, m->err));
        for (int s = 0; s < t->steps; s++)
            for (size_t c = 0; c < w; c++)
                sum[(size_t)s * w + c] +=
                    (double)line[c] * (double)t->sincos[(size_t)s * w + (size_t)i];
    }
    for (int s = 0; s < t->steps; s++) {
        for (size_t c = 0; c < w; c++)
            row[c] = (float)(sum[(size_t)s * w + c] + (double)bias[c]);
        tec_device_upload(t->device, TEC_STREAM_MAIN, t->time_bias + (size_t)s * padded, row,
                          padded * sizeof *row);
    }
    return TEC_OK;
}

/* One norm's scale and shift of every step; `shift_first`: in the order that they are made in. */
static enum tec_status modulate(struct maker *m, int norm, const char *weight, const char *bias,
                                bool shift_first, const double *c, double *y)
{
    struct tec_flow_tables *t = m->out;
    size_t w = (size_t)t->width, padded = (size_t)t->padded;
    float *row = TEC_NEW(&t->arena, 3 * padded, float);
    if (!row)
        return no_memory(m);
    TEC_TRY(apply(m, weight, bias, 2 * t->width, t->width, c, y));
    for (int s = 0; s < t->steps; s++) {
        for (size_t part = 0; part < 2; part++)
            for (size_t i = 0; i < w; i++)
                row[(shift_first ? 1 - part : part) * padded + i] =
                    (float)y[((size_t)s * 2 + part) * w + i];
        float *to = t->modulation + ((size_t)s * (size_t)t->n_norms + (size_t)norm) * 3 * padded;
        tec_device_upload(t->device, TEC_STREAM_MAIN, to, row, 3 * padded * sizeof *row);
    }
    return TEC_OK;
}

static enum tec_status make_modulation(struct maker *m, const double *c)
{
    struct tec_flow_tables *t = m->out;
    const struct tec_stack *s = &m->d->stack;
    double *y = TEC_NEW(&t->arena, (size_t)t->steps * 2 * (size_t)t->width, double);
    struct tec_arena_mark mark = tec_arena_mark(&t->arena);
    char weight[256], bias[256];
    if (!y)
        return no_memory(m);
    for (int l = 0; l < s->layers; l++) {
        const char *b = s->names[TEC_ROLE_norm1_bias];
        tec_layer_name(weight, s->names[TEC_ROLE_norm1], l);
        if (b)
            tec_layer_name(bias, b, l);
        TEC_TRY(modulate(m, l, weight, b ? bias : NULL, false, c, y));
        tec_arena_rewind(&t->arena, mark);
    }
    return modulate(m, s->layers, m->d->scale.weight, m->d->scale.bias, true, c, y);
}

/* The condition of every step, and the tables that it makes. */
static enum tec_status make_condition(struct maker *m)
{
    struct tec_flow_tables *t = m->out;
    int waves = m->d->time1.cols / 2;
    size_t n = (size_t)t->steps * (size_t)t->width;
    double *x = TEC_NEW(&t->arena, (size_t)t->steps * 2 * (size_t)waves, double);
    double *y = TEC_NEW(&t->arena, n, double), *c = TEC_NEW(&t->arena, n, double);
    if (!x || !y || !c)
        return no_memory(m);
    for (int s = 0; s < t->steps; s++)
        tec_flow_waves(t->t[s], m->d->period, waves, waves - 1, true,
                       x + (size_t)s * 2 * (size_t)waves);
    TEC_TRY(apply(m, m->d->time1.weight, m->d->time1.bias, t->width, 2 * waves, x, y));
    silu_all(y, n);
    TEC_TRY(apply(m, m->d->time2.weight, m->d->time2.bias, t->width, t->width, y, c));
    for (size_t i = 0; i < n; i++)
        t->condition[i] = (float)c[i];
    silu_all(c, n);
    return make_modulation(m, c);
}

static enum tec_status make(struct maker *m, int category, const int *times)
{
    struct tec_flow_tables *t = m->out;
    size_t n = (size_t)t->steps * (size_t)t->width;
    size_t bias = (size_t)t->steps * (size_t)t->padded;
    size_t norms = bias * 3 * (size_t)t->n_norms;
    double *x = TEC_NEW(&t->arena, (size_t)t->width, double);
    t->t = TEC_NEW(&t->arena, (size_t)t->steps, double);
    t->sincos = TEC_NEW(&t->arena, n, float);
    t->condition = TEC_NEW(&t->arena, n, float);
    if (!x || !t->t || !t->sincos || !t->condition)
        return no_memory(m);
    t->time_bias = tec_device_get(t->device, bias * sizeof(float));
    t->modulation = tec_device_get(t->device, norms * sizeof(float));
    t->bytes = (int64_t)((bias + norms) * sizeof(float));
    if (!t->time_bias || !t->modulation)
        return tec_fail(m->err, TEC_NO_MEMORY, "time tables need %lld bytes", (long long)t->bytes);
    for (int s = 0; s < t->steps; s++) {
        int half = t->width / 2;
        t->t[s] = times ? times[s] : tec_flow_bucket(s, t->steps, m->d->buckets);
        tec_flow_waves(t->t[s], m->d->period, half, half, false, x);
        for (int i = 0; i < t->width; i++)
            t->sincos[(size_t)s * (size_t)t->width + (size_t)i] = (float)x[i];
    }
    if (m->source.dry)
        return TEC_OK;
    TEC_TRY(make_time_bias(m, category));
    return make_condition(m);
}

enum tec_status tec_flow_tables_denoise(struct tec_flow_tables **out, const struct tec_model *model,
                                        const struct tec_weight_source *source, const int *times,
                                        int n, struct tec_device *device, struct tec_heap *heap,
                                        struct tec_error *err)
{
    const struct tec_denoiser *d = &model->denoiser;
    if (n < 1 || n > 1000)
        return tec_fail(err, TEC_INVALID, "steps must be 1 .. 1000, is %d", n);
    struct tec_flow_tables *t = tec_heap_get(heap, sizeof *t);
    if (!t)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for time tables");
    t->device = device;
    t->steps = t->times = n;
    t->width = d->stack.width;
    t->padded = tec_padded(t->width);
    t->n_norms = d->stack.layers + 1;
    tec_arena_init(&t->arena, heap);
    struct maker m = {t, d, *source, err};
    enum tec_status status = make(&m, d->category, times);
    if (status != TEC_OK) {
        tec_flow_tables_destroy(t);
        return status;
    }
    *out = t;
    return TEC_OK;
}
