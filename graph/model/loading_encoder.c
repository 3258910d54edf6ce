/* loading_encoder.c - an encoder and its queries: their stacks, and what positions add to queries
 * and keys.
 *
 * Runs at load. Positions never change, and a layer's queries are (x + position) W: position W is a
 * table, computed here in float64, so that a frame computes x W and adds rows of it. */
#include "graph/model/loading.h"
#include "kernels/matrix.h"

#include <string.h>

/* Rows of positions in host memory. */
struct positions {
    float *rows; /* [n, width] */
    int n, width;
};

/* Products of all positions with `cols` rows of a weight, to columns `at` .. of a table. */
struct product {
    const struct positions *p;
    const float *w; /* [cols, width] */
    float *table;   /* [p->n, ld] */
    int cols, at, ld, lanes;
};

static float dot(const float *x, const float *y, int n)
{
    double sum[4] = {0.0, 0.0, 0.0, 0.0};
    int i = 0;
    for (; i + 4 <= n; i += 4)
        for (int j = 0; j < 4; j++)
            sum[j] += (double)x[i + j] * (double)y[i + j];
    for (; i < n; i++)
        sum[0] += (double)x[i] * (double)y[i];
    return (float)(sum[0] + sum[1] + (sum[2] + sum[3]));
}

static void multiply(void *user, int lane)
{
    const struct product *m = user;
    size_t width = (size_t)m->p->width;
    for (int r = lane; r < m->p->n; r += m->lanes)
        for (int c = 0; c < m->cols; c++)
            m->table[(size_t)r * (size_t)m->ld + (size_t)m->at + (size_t)c] =
                dot(m->p->rows + (size_t)r * width, m->w + (size_t)c * width, m->p->width);
}

/* Rows first .. of a stored weight, times the positions. */
struct slice {
    const char *weight;
    int total, first, rows, at;
};

static enum tec_status fill_slice(struct tec_weight_loading *l, const struct positions *p,
                                  const struct slice *s, float *table, int ld)
{
    struct tec_expected e = {
        .names = {s->weight}, .n_names = 1, .rank = 2, .shape = {s->total, p->width}};
    struct tec_found found = {0};
    int64_t n = (int64_t)s->rows * p->width;
    TEC_TRY(tec_weight_find(&l->source, &e, &found, l->err));
    TEC_TRY(tec_weight_loading_reserve(l, n));
    TEC_TRY(tec_weight_rows(&l->source, &found, s->first, s->rows, l->buffer, l->err));
    struct product m = {p, l->buffer, table, s->rows, s->at, ld, 1};
    struct tec_team *team = tec_packer_team(&l->packer, n * p->n);
    m.lanes = team ? tec_team_lanes(team) : 1;
    if (team)
        tec_team_run(team, multiply, &m);
    else
        multiply(&m, 0);
    return TEC_OK;
}

/* A table [p->n, ld] in device memory; columns of no slice are 0. */
static enum tec_status load_shift(struct tec_weight_loading *l, const struct positions *p,
                                  const struct slice *slices, int n, int ld, const float **out)
{
    size_t values = (size_t)p->n * (size_t)ld;
    void *block = NULL;
    TEC_TRY(tec_weight_loading_block(l, values * sizeof(float), &block));
    *out = block;
    if (l->source.dry)
        return TEC_OK;
    float *table = tec_heap_get(l->heap, values * sizeof *table);
    if (!table)
        return tec_fail(l->err, TEC_NO_MEMORY, "no memory for a table of %zu values", values);
    memset(table, 0, values * sizeof *table);
    enum tec_status status = TEC_OK;
    for (int i = 0; i < n && status == TEC_OK; i++)
        status = fill_slice(l, p, &slices[i], table, ld);
    if (status == TEC_OK) {
        tec_device_upload(l->options->device, TEC_STREAM_MAIN, block, table,
                          values * sizeof *table);
        status = tec_device_failure(l->options->device, l->err);
    }
    tec_heap_put(l->heap, table);
    return status;
}

/* What a stack's own positions add to the queries and keys of its layers, and where they ask other
 * rows those of `seen` to their keys. */
static enum tec_status load_shifts(struct tec_weight_loading *l, const struct tec_stack *s,
                                   const struct positions *own, const struct positions *seen,
                                   struct tec_stack_weights *w)
{
    int q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim, all = q + 2 * kv;
    char qkv[256], cross[256];
    for (int i = 0; i < s->layers; i++) {
        struct tec_layer *layer = &w->layers[i];
        tec_layer_name(qkv, s->names[TEC_ROLE_qkv], i);
        const struct slice self[] = {{qkv, all, 0, q, layer->q_at}, {qkv, all, q, kv, layer->k_at}};
        TEC_TRY(load_shift(l, own, self, 2, layer->qkv.n, &layer->shift));
        if (!seen || !s->names[TEC_ROLE_cross])
            continue;
        tec_layer_name(cross, s->names[TEC_ROLE_cross], i);
        const struct slice asks = {cross, all, 0, q, 0}, keys = {cross, all, q, kv, 0};
        TEC_TRY(load_shift(l, own, &asks, 1, layer->cross_q.n, &layer->cross_q_shift));
        TEC_TRY(load_shift(l, seen, &keys, 1, layer->cross_kv.n, &layer->cross_kv_shift));
    }
    return TEC_OK;
}

static enum tec_status take_positions(struct tec_weight_loading *l, struct positions *p, int n,
                                      int width)
{
    *p = (struct positions){.n = n, .width = width};
    p->rows = tec_heap_get(l->heap, (size_t)n * (size_t)width * sizeof *p->rows);
    return p->rows ? TEC_OK : tec_fail(l->err, TEC_NO_MEMORY, "no memory for %d positions", n);
}

static enum tec_status read_learned(struct tec_weight_loading *l, const char *name, int n,
                                    const struct positions *p)
{
    struct tec_expected e = {.names = {name}, .n_names = 1, .rank = 2, .shape = {n, p->width}};
    struct tec_found found = {0};
    TEC_TRY(tec_weight_find(&l->source, &e, &found, l->err));
    return tec_weight_rows(&l->source, &found, 0, n, p->rows, l->err);
}

/* Learned rows in front, then the pixels of each picture. */
static enum tec_status make_positions(struct tec_weight_loading *l, const struct tec_model *m,
                                      const struct positions *p)
{
    float *at = p->rows + (ptrdiff_t)m->encoder.n_rows * p->width;
    TEC_TRY(read_learned(l, m->encoder.position, m->encoder.n_rows, p));
    for (int s = 0; s < m->n_slots && !l->source.dry; s++) {
        const struct tec_net_size *size = &m->net.pictures[s].out;
        for (int i = 0; i < size->h * size->w; i++, at += p->width)
            tec_model_net_position(&m->encoder, size, i, at);
    }
    return TEC_OK;
}

/* The rows in front, and the positions once more as they are: judges compare them. */
static enum tec_status load_front(struct tec_weight_loading *l, const struct tec_row_encoder *e,
                                  const struct positions *p)
{
    struct tec_row_encoder_weights *w = &l->out->encoder;
    int ld = tec_padded(p->width);
    void *block = NULL;
    for (int i = 0; i < e->n_rows; i++) {
        TEC_TRY(tec_weight_loading_vector(l, e->rows[i].constant, p->width, 0.0F, &w->constant[i]));
        TEC_TRY(tec_weight_loading_dense(l, &e->rows[i].dense, false, &w->front[i]));
    }
    TEC_TRY(tec_weight_loading_block(l, (size_t)p->n * (size_t)ld * sizeof(float), &block));
    w->position = block;
    for (int r = 0; r < p->n && !l->source.dry; r++)
        tec_device_upload(l->options->device, TEC_STREAM_MAIN,
                          (float *)block + (size_t)r * (size_t)ld,
                          p->rows + (size_t)r * (size_t)p->width, (size_t)p->width * sizeof(float));
    return TEC_OK;
}

static enum tec_status load_queries(struct tec_weight_loading *l, const struct tec_queries *q,
                                    const struct positions *p)
{
    struct tec_queries_weights *w = &l->out->queries;
    size_t row = (size_t)tec_padded(p->width) * sizeof(float);
    void *block = NULL;
    TEC_TRY(read_learned(l, q->position, p->n, p));
    TEC_TRY(tec_weight_loading_block(l, (size_t)p->n * row, &block));
    w->start = block;
    if (!l->source.dry) {
        void *zeros = tec_heap_get(l->heap, row);
        if (!zeros)
            return tec_fail(l->err, TEC_NO_MEMORY, "no memory for a row of zeros");
        memset(zeros, 0, row);
        for (int r = 0; r < p->n; r++)
            tec_device_upload(l->options->device, TEC_STREAM_MAIN, (char *)block + (size_t)r * row,
                              zeros, row);
        tec_heap_put(l->heap, zeros);
    }
    return tec_weight_loading_dense(l, &q->out, false, &w->out);
}

static enum tec_status load_parts(struct tec_weight_loading *l, const struct tec_model *m,
                                  const struct positions *own, const struct positions *asked)
{
    struct tec_weights *w = l->out;
    TEC_TRY(make_positions(l, m, own));
    TEC_TRY(load_front(l, &m->encoder, own));
    TEC_TRY(tec_weight_loading_stack(l, &m->encoder.stack, &w->encoder.stack));
    TEC_TRY(load_shifts(l, &m->encoder.stack, own, NULL, &w->encoder.stack));
    TEC_TRY(load_queries(l, &m->queries, asked));
    TEC_TRY(tec_weight_loading_stack(l, &m->queries.stack, &w->queries.stack));
    return load_shifts(l, &m->queries.stack, asked, own, &w->queries.stack);
}

enum tec_status tec_weight_loading_encoder(struct tec_weight_loading *l, const struct tec_model *m)
{
    struct positions own = {NULL, 0, 0}, asked = {NULL, 0, 0};
    int width = m->encoder.stack.width;
    enum tec_status status = take_positions(l, &own, tec_model_encoded(m), width);
    if (status == TEC_OK)
        status = take_positions(l, &asked, m->flow.horizon, width);
    if (status == TEC_OK)
        status = load_parts(l, m, &own, &asked);
    tec_heap_put(l->heap, own.rows);
    tec_heap_put(l->heap, asked.rows);
    return status;
}
