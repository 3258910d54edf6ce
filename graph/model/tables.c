/* tables.c - computes what depends on the flow's time alone: embeddings of time, and norms or
 * biases.
 *
 * Runs at load. The times of the Euler steps are known in advance, so the time layers are evaluated
 * once in float64 and their results uploaded, instead of in every frame. For a model with adaptive
 * norms these are scale, shift and gate of each norm at each step; for others the share of time in
 * the first layer, as a bias. */
#include "graph/model/tables.h"
#include "graph/model/time_product.h"
#include "kernels/matrix.h"

#include <math.h>
#include <string.h>

static const double pi = 3.14159265358979323846264338327950288;

/* i / (n - 1) with the rounding of the published code's torch.linspace, which counts from the
 * nearer end, and of whole eights four at a time from the first of them: the sine of a whole number
 * of turns is what rounding leaves of it. */
static double share(int i, int n)
{
    double step = n > 1 ? 1.0 / (n - 1) : 0.0;
    int first = i < n / 8 * 8 ? i / 4 * 4 : i;
    double base = first < n / 2 ? first * step : 1.0 - (n - 1 - first) * step;
    return n > 1 ? base + (i - first) * step : 0.0;
}

void tec_sincos(double t, double min_period, double max_period, int width, double *out)
{
    int half = width / 2;
    for (int i = 0; i < half; i++) {
        double period = min_period * pow(max_period / min_period, share(i, half));
        double angle = 1.0 / period * 2.0 * pi * t;
        out[i] = sin(angle);
        out[half + i] = cos(angle);
    }
}

struct maker {
    struct tec_flow_tables *out;
    const struct tec_flow *flow;
    struct tec_weight_source source;
    struct tec_error *err;
};

static enum tec_status no_memory(const struct maker *m)
{
    return tec_fail(m->err, TEC_NO_MEMORY, "no memory for time tables");
}

static double *new_doubles(struct maker *m, int n)
{
    return TEC_NEW(&m->out->arena, (size_t)n, double);
}

/* Columns `first` .. of a layer at every time: y [times, rows], zero before. */
static enum tec_status apply(struct maker *m, struct tec_dense layer, int first, const double *x,
                             double *y)
{
    const struct tec_time_product p = {.layer = layer,
                                       .steps = m->out->times,
                                       .first = first,
                                       .n = layer.cols - first,
                                       .x = x,
                                       .y = y};
    return tec_time_multiply(&m->source, &p, m->out->arena.heap, m->err);
}

static enum tec_status device_floats(struct maker *m, size_t n, float **out)
{
    *out = tec_device_get(m->out->device, n * sizeof **out);
    if (!*out)
        return tec_fail(m->err, TEC_NO_MEMORY, "time tables need %zu bytes", n * sizeof **out);
    m->out->bytes += (int64_t)(n * sizeof **out);
    return TEC_OK;
}

/* sin | cos of every time, as tec_sincos makes them: [times, width]. */
static double *make_waves(struct maker *m)
{
    struct tec_flow_tables *t = m->out;
    double *x = new_doubles(m, t->times * t->width);
    for (int s = 0; x && s < t->times; s++)
        tec_sincos(t->t[s], m->flow->min_period, m->flow->max_period, t->width,
                   x + (size_t)s * (size_t)t->width);
    return x;
}

/* c = silu(W2 silu(W1 sincos + b1) + b2) for every step. */
static enum tec_status make_condition(struct maker *m)
{
    struct tec_flow_tables *t = m->out;
    const struct tec_flow *f = m->flow;
    int n = t->times * t->width;
    if (m->source.dry)
        return TEC_OK;
    double *x = make_waves(m), *y = new_doubles(m, n), *z = new_doubles(m, n);
    t->condition = TEC_NEW(&t->arena, (size_t)n, float);
    if (!x || !y || !z || !t->condition)
        return no_memory(m);
    TEC_TRY(apply(m, f->time1, 0, x, y));
    for (int i = 0; i < n; i++)
        y[i] = tec_time_activation(TEC_ACTIVATION_SILU, y[i]);
    TEC_TRY(apply(m, f->time2, 0, y, z));
    for (int i = 0; i < n; i++)
        t->condition[i] = (float)tec_time_activation(TEC_ACTIVATION_SILU, z[i]);
    return TEC_OK;
}

/* One norm's dense layer at every step, each third padded to whole panels. */
static enum tec_status modulate(struct maker *m, int norm, const char *weight, const char *bias)
{
    struct tec_flow_tables *t = m->out;
    struct tec_arena_mark mark = tec_arena_mark(&t->arena);
    int n = t->times * t->width;
    size_t w = (size_t)t->width, padded = (size_t)t->padded;
    double *c = new_doubles(m, n), *y = new_doubles(m, 3 * n);
    float *row = TEC_NEW(&t->arena, 3 * padded, float);
    if (!c || !y || !row)
        return no_memory(m);
    for (int i = 0; i < n; i++)
        c[i] = (double)t->condition[i];
    TEC_TRY(apply(m, (struct tec_dense){weight, bias, 3 * t->width, t->width}, 0, c, y));
    for (size_t s = 0; s < (size_t)t->times; s++) {
        for (size_t part = 0; part < 3; part++)
            for (size_t i = 0; i < w; i++)
                row[part * padded + i] = (float)y[(3 * s + part) * w + i];
        float *to = t->modulation + (s * (size_t)t->n_norms + (size_t)norm) * 3 * padded;
        tec_device_upload(t->device, TEC_STREAM_MAIN, to, row, 3 * padded * sizeof *row);
    }
    tec_arena_rewind(&t->arena, mark);
    return TEC_OK;
}

static enum tec_status make_modulation(struct maker *m)
{
    struct tec_flow_tables *t = m->out;
    const struct tec_stack *s = &m->flow->stack;
    static const enum tec_role roles[2][2] = {{TEC_ROLE_norm1, TEC_ROLE_norm1_bias},
                                              {TEC_ROLE_norm2, TEC_ROLE_norm2_bias}};
    char weight[256], bias[256];
    t->n_norms = 2 * s->layers + 1;
    TEC_TRY(device_floats(m, (size_t)t->times * (size_t)t->n_norms * 3 * (size_t)t->padded,
                          &t->modulation));
    if (m->source.dry)
        return TEC_OK;
    for (int n = 0; n < t->n_norms - 1; n++) {
        const char *b = s->names[roles[n % 2][1]];
        tec_layer_name(weight, s->names[roles[n % 2][0]], n / 2);
        if (b)
            tec_layer_name(bias, b, n / 2);
        TEC_TRY(modulate(m, n, weight, b ? bias : NULL));
    }
    return modulate(m, t->n_norms - 1, s->names[TEC_ROLE_final], s->names[TEC_ROLE_final_bias]);
}

/* time1 [in(x) ; sincos] = its first half times in(x), plus this. */
static enum tec_status make_time_bias(struct maker *m)
{
    struct tec_flow_tables *t = m->out;
    size_t w = (size_t)t->width, padded = (size_t)t->padded;
    TEC_TRY(device_floats(m, (size_t)t->times * padded, &t->time_bias));
    if (m->source.dry)
        return TEC_OK;
    float *row = TEC_NEW(&t->arena, padded, float);
    double *x = make_waves(m), *y = new_doubles(m, t->times * t->width);
    if (!row || !x || !y)
        return no_memory(m);
    TEC_TRY(apply(m, m->flow->time1, t->width, x, y));
    for (size_t s = 0; s < (size_t)t->times; s++) {
        for (size_t i = 0; i < w; i++)
            row[i] = (float)y[s * w + i];
        tec_device_upload(t->device, TEC_STREAM_MAIN, t->time_bias + s * padded, row,
                          padded * sizeof *row);
    }
    return TEC_OK;
}

static enum tec_status make(struct maker *m, int steps, bool clean)
{
    struct tec_flow_tables *t = m->out;
    t->steps = steps;
    t->times = steps + clean;
    t->width = m->flow->stack.width;
    t->padded = tec_padded(t->width);
    t->t = TEC_NEW(&t->arena, (size_t)t->times, double);
    t->sincos = TEC_NEW(&t->arena, (size_t)t->times * (size_t)t->width, float);
    double *x = new_doubles(m, t->width);
    if (!t->t || !t->sincos || !x)
        return no_memory(m);
    for (int s = 0; s < t->times; s++) {
        t->t[s] = m->flow->time_f32 ? (double)(float)(1.0 + s * (-1.0 / steps))
                                    : 1.0 - (double)s / steps; /* 0 at s = steps */
        tec_sincos(t->t[s], m->flow->min_period, m->flow->max_period, t->width, x);
        for (int i = 0; i < t->width; i++)
            t->sincos[s * t->width + i] = (float)x[i];
    }
    if (!m->flow->condition)
        return make_time_bias(m);
    TEC_TRY(make_condition(m));
    return make_modulation(m);
}

enum tec_status tec_flow_tables_create(struct tec_flow_tables **out, const struct tec_flow *flow,
                                       const struct tec_weight_source *source, int steps,
                                       bool clean, struct tec_device *device, struct tec_heap *heap,
                                       struct tec_error *err)
{
    if (steps < 1 || steps > 1000)
        return tec_fail(err, TEC_INVALID, "steps must be 1 .. 1000, is %d", steps);
    struct tec_flow_tables *t = tec_heap_get(heap, sizeof *t);
    if (!t)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for time tables");
    t->device = device;
    tec_arena_init(&t->arena, heap);
    struct maker m = {t, flow, *source, err};
    enum tec_status status = make(&m, steps, clean);
    if (status != TEC_OK) {
        tec_flow_tables_destroy(t);
        return status;
    }
    *out = t;
    return TEC_OK;
}

void tec_flow_tables_destroy(struct tec_flow_tables *t)
{
    if (!t)
        return;
    struct tec_heap *heap = t->arena.heap;
    tec_device_put(t->device, t->modulation);
    tec_device_put(t->device, t->time_bias);
    tec_arena_finish(&t->arena);
    tec_heap_put(heap, t);
}

const float *tec_modulation(const struct tec_flow_tables *t, int step, int norm)
{
    return t->modulation +
           ((size_t)step * (size_t)t->n_norms + (size_t)norm) * 3 * (size_t)t->padded;
}
