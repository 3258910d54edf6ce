/* timed.c - evaluates the rows of the time of a program, for every step at once.
 *
 * Runs at load, in float64. A row is freed when the last call that reads it is done, so that host
 * memory holds few of them, whatever the depth of a model. */
#include "graph/model/timed.h"
#include "graph/model/time_product.h"
#include "kernels/matrix.h"

#include <string.h>

struct maker {
    struct tec_timed *out;
    const struct tec_model_program *p;
    struct tec_weight_source source;
    double **rows; /* by call: [steps, cols] in host memory; NULL = none now */
    struct tec_heap *heap;
    struct tec_error *err;
};

static enum tec_status no_memory(const struct maker *m)
{
    return tec_fail(m->err, TEC_NO_MEMORY, "no memory for rows of the time");
}

/* The words of one value after another. */
static void map(const struct maker *m, const struct tec_model_call *c, double *y)
{
    const double *a = m->rows[c->in[0]], *b = c->n_in > 1 ? m->rows[c->in[1]] : NULL;
    size_t cols = (size_t)c->cols, from = (size_t)m->p->calls[c->in[0]].cols;
    for (size_t s = 0; s < (size_t)m->out->times; s++)
        for (size_t i = 0; i < cols; i++) {
            double x = a[s * from + (size_t)c->first + i];
            x = c->word == TEC_WORD_activation ? tec_time_activation(c->activation, x)
                : b                            ? x + b[s * cols + i]
                                               : x;
            y[s * cols + i] = c->f32 ? (double)(float)x : x;
        }
}

static enum tec_status compute(struct maker *m, const struct tec_model_call *c, double *y)
{
    size_t cols = (size_t)c->cols;
    if (c->word == TEC_WORD_linear) {
        int in = m->p->calls[c->in[0]].cols;
        const struct tec_time_product p = {.layer = {c->weight, c->bias, c->cols, in},
                                           .category = {c->category, c->categories},
                                           .steps = m->out->times,
                                           .n = in,
                                           .x = m->rows[c->in[0]],
                                           .y = y};
        return tec_time_multiply(&m->source, &p, m->heap, m->err);
    }
    for (size_t s = 0; s < (size_t)m->out->times && c->word == TEC_WORD_time; s++)
        y[s] = m->out->t[s];
    for (size_t s = 0; s < (size_t)m->out->times && c->word == TEC_WORD_waves; s++)
        tec_model_call_waves(c, m->out->t[s], y + s * cols);
    if (c->word != TEC_WORD_time && c->word != TEC_WORD_waves)
        map(m, c, y);
    return TEC_OK;
}

/* Rows of a value [steps, cols] to the device. */
static enum tec_status upload(struct maker *m, const struct tec_model_call *c, const double *y,
                              float *to)
{
    size_t padded = (size_t)tec_padded(c->cols);
    float *row = tec_heap_get(m->heap, padded * sizeof *row);
    if (!row)
        return no_memory(m);
    memset(row, 0, padded * sizeof *row);
    for (int s = 0; s < m->out->times; s++) {
        for (int i = 0; i < c->cols; i++)
            row[i] = (float)y[(size_t)s * (size_t)c->cols + (size_t)i];
        tec_device_upload(m->out->device, TEC_STREAM_MAIN, to + (size_t)s * padded, row,
                          padded * sizeof *row);
    }
    tec_heap_put(m->heap, row);
    return tec_device_failure(m->out->device, m->err);
}

/* Whether some call of a frame reads a row of the time itself. */
static bool read_in_frames(const struct tec_model_program *p, int at)
{
    const struct tec_model_call *c = &p->calls[at];
    for (int i = c->uses.first; i <= c->uses.last && i < p->n; i++) {
        const struct tec_model_call *user = &p->calls[i];
        if (user->scale == at || user->shift == at || user->gate == at)
            return true;
        for (int k = 0; k < user->n_in && user->word == TEC_WORD_concat; k++)
            if (user->in[k] == at)
                return true;
    }
    return c->name != NULL;
}

static bool beside(const struct tec_model_program *p, const struct tec_model_call *c)
{
    return c->word == TEC_WORD_linear && p->calls[c->in[0]].word == TEC_WORD_beside;
}

/* What the time adds to a product. */
static enum tec_status compute_share(struct maker *m, const struct tec_model_call *c, double *y)
{
    const struct tec_model_call *x = &m->p->calls[c->in[0]], *row = &m->p->calls[x->in[1]];
    const struct tec_time_product p = {.layer = {c->weight, c->bias, c->cols, x->cols},
                                       .category = {c->category, c->categories},
                                       .steps = m->out->times,
                                       .first = x->cols - row->cols,
                                       .n = row->cols,
                                       .x = m->rows[x->in[1]],
                                       .y = y};
    return tec_time_multiply(&m->source, &p, m->heap, m->err);
}

static enum tec_status make_row(struct maker *m, int at)
{
    const struct tec_model_call *c = &m->p->calls[at];
    struct tec_timed *t = m->out;
    size_t n = (size_t)t->times * (size_t)c->cols;
    bool share = beside(m->p, c);
    if (!c->timed && !share)
        return TEC_OK;
    if (share || read_in_frames(m->p, at)) {
        size_t bytes = (size_t)t->times * (size_t)tec_padded(c->cols) * sizeof(float);
        t->of[at] = tec_device_get(t->device, bytes);
        t->bytes += (int64_t)bytes;
        if (!t->of[at])
            return tec_fail(m->err, TEC_NO_MEMORY, "rows of the time need %lld bytes",
                            (long long)t->bytes);
    }
    if (m->source.dry)
        return TEC_OK;
    double *y = m->rows[at] = tec_heap_get(m->heap, n * sizeof *y);
    if (!y)
        return no_memory(m);
    memset(y, 0, n * sizeof *y);
    TEC_TRY(share ? compute_share(m, c, y) : compute(m, c, y));
    return t->of[at] ? upload(m, c, y, t->of[at]) : TEC_OK;
}

static void put_row(const struct maker *m, int at)
{
    tec_heap_put(m->heap, m->rows[at]);
    m->rows[at] = NULL;
}

/* Row k of the time of which a call makes what a frame reads, or another row; -1 = there are no
 * more. */
static int row_of(const struct tec_model_program *p, const struct tec_model_call *c, int k)
{
    if (c->timed)
        return k < c->n_in ? c->in[k] : -1;
    return !k && beside(p, c) ? p->calls[c->in[0]].in[1] : -1;
}

/* Notes a call as the last one that makes something of what it reads. */
static void read_by(const struct tec_model_program *p, int at, int *last)
{
    last[at] = at;
    for (int k = 0; row_of(p, &p->calls[at], k) >= 0; k++)
        last[row_of(p, &p->calls[at], k)] = at;
}

static enum tec_status make_rows(struct maker *m, const int *last)
{
    for (int i = 0; i < m->p->n; i++) {
        const struct tec_model_call *c = &m->p->calls[i];
        TEC_TRY(make_row(m, i));
        for (int k = 0; row_of(m->p, c, k) >= 0; k++)
            if (last[row_of(m->p, c, k)] == i)
                put_row(m, row_of(m->p, c, k));
        if (last[i] == i)
            put_row(m, i);
    }
    return TEC_OK;
}

static enum tec_status make(struct maker *m, const double *times)
{
    struct tec_timed *t = m->out;
    size_t n = (size_t)m->p->n;
    int *last = TEC_NEW(&t->arena, n, int);
    t->t = TEC_NEW(&t->arena, (size_t)t->times, double);
    t->of = TEC_NEW(&t->arena, n, float *);
    m->rows = TEC_NEW(&t->arena, n, double *);
    if (!last || !t->t || !t->of || !m->rows)
        return no_memory(m);
    for (int s = 0; s < t->times; s++)
        t->t[s] = times && s < t->steps ? times[s] : tec_model_time(&m->p->flow, s, t->steps);
    for (int i = 0; i < m->p->n; i++)
        read_by(m->p, i, last);
    enum tec_status status = make_rows(m, last);
    for (int i = 0; i < m->p->n; i++)
        put_row(m, i);
    return status;
}

enum tec_status tec_timed_create(struct tec_timed **out, const struct tec_model_program *program,
                                 const struct tec_weight_source *source,
                                 const struct tec_timed_options *options, struct tec_device *device,
                                 struct tec_heap *heap, struct tec_error *err)
{
    int n = options->steps;
    if (n < 1 || n > 1000)
        return tec_fail(err, TEC_INVALID, "steps must be 1 .. 1000, is %d", n);
    struct tec_timed *t = tec_heap_get(heap, sizeof *t);
    if (!t)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for rows of the time");
    *t = (struct tec_timed){
        .steps = n, .times = n + options->actions, .program = program, .device = device};
    tec_arena_init(&t->arena, heap);
    struct maker m = {t, program, *source, NULL, heap, err};
    enum tec_status status = make(&m, options->times);
    if (status != TEC_OK) {
        tec_timed_destroy(t);
        return status;
    }
    *out = t;
    return TEC_OK;
}

void tec_timed_destroy(struct tec_timed *t)
{
    if (!t)
        return;
    struct tec_heap *heap = t->arena.heap;
    for (int i = 0; i < t->program->n && t->of; i++)
        tec_device_put(t->device, t->of[i]);
    tec_arena_finish(&t->arena);
    tec_heap_put(heap, t);
}

const float *tec_timed_row(const struct tec_timed *t, int call, int step)
{
    size_t padded = (size_t)tec_padded(t->program->calls[call].cols);
    return t->of[call] ? t->of[call] + (size_t)step * padded : NULL;
}
