/* loading_program.c - the weights of a program: of each call its matrices or its constant, and what
 * positions add to queries and keys.
 *
 * Runs at load. Constants are evaluated in host memory. Positions never change, and an attention's
 * queries are (x + position) W: position W is a table, computed here in float64, so that a frame
 * computes x W and adds rows of it. */
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

/* Constants in host memory, by call; [rows, cols], NULL of other calls. */
struct constants {
    const struct tec_model_program *p;
    struct tec_call_weights *weights; /* by call */
    float **of;
};

static struct positions positions_of(const struct constants *c, int value)
{
    const struct tec_model_call *call = &c->p->calls[value];
    return (struct positions){c->of[value], call->rows, call->cols};
}

/* The part of an attention's projection that makes queries, keys or values (`part` 0, 1, 2). */
static struct slice slice_of(const struct tec_model_call *c, int part, int at)
{
    const struct tec_attend *a = &c->attend;
    int q = a->heads * a->head_dim, kv = a->kv_heads * a->head_dim, rows = part ? kv : q;
    int first = part == 0 ? 0 : part == 1 ? q : q + kv;
    return c->fused ? (struct slice){c->fused, q + 2 * kv, first, rows, at}
                    : (struct slice){c->joined[part], rows, 0, rows, at};
}

/* What positions add to queries, and to keys of the same rows or of others. */
static enum tec_status load_shifts(struct tec_weight_loading *l, const struct constants *all,
                                   const struct tec_model_call *c, struct tec_attention_weights *w)
{
    bool own = tec_model_own_keys(all->p, c);
    if (c->position >= 0) {
        struct positions rows = positions_of(all, c->position);
        const struct slice self[] = {slice_of(c, 0, w->q_at), slice_of(c, 1, w->k_at)};
        TEC_TRY(load_shift(l, &rows, self, own ? 2 : 1, w->qkv.n, &w->shift));
    }
    if (c->over_position < 0)
        return TEC_OK;
    struct positions seen = positions_of(all, c->over_position);
    const struct slice keys = slice_of(c, 1, 0);
    return load_shift(l, &seen, &keys, 1, w->cross_kv.n, &w->cross_kv_shift);
}

/* Dimensions of 1 may stand before the rows of a tower's. */
static enum tec_status read_tensor(struct tec_weight_loading *l, const struct tec_model_program *p,
                                   const struct tec_model_call *c, float *out)
{
    struct tec_expected e = {.names = {c->weight},
                             .n_names = 1,
                             .rank = 2,
                             .shape = {c->rows, c->cols},
                             .leading = p->tower};
    struct tec_found found = {0};
    if (c->rank == 1 && !p->tower)
        return tec_weight_vector(&l->source, c->weight, c->cols, 0.0F, out, l->err);
    TEC_TRY(tec_weight_find(&l->source, &e, &found, l->err));
    return tec_weight_rows(&l->source, &found, 0, c->rows, out, l->err);
}

/* The rows of its operands, one after the other. */
static void join(const struct constants *constants, const struct tec_model_call *c, float *out)
{
    for (int i = 0; i < c->n_in; i++) {
        const struct tec_model_call *x = &constants->p->calls[c->in[i]];
        size_t n = (size_t)x->rows * (size_t)x->cols;
        memcpy(out, constants->of[c->in[i]], n * sizeof *out);
        out += n;
    }
}

/* A constant in host memory: zeros until something else is known. */
static enum tec_status make_constant(struct tec_weight_loading *l, struct constants *constants,
                                     int at)
{
    const struct tec_model_call *c = &constants->p->calls[at];
    size_t rows = (size_t)tec_weight_loading_patches(l, constants->p, at);
    size_t n = rows * (size_t)c->cols;
    float *out = tec_heap_get(l->heap, n * sizeof *out);
    if (!out)
        return tec_fail(l->err, TEC_NO_MEMORY, "no memory for a constant of %zu values", n);
    constants->of[at] = out;
    memset(out, 0, n * sizeof *out);
    if (c->word == TEC_WORD_tensor)
        return read_tensor(l, constants->p, c, out);
    if (c->word == TEC_WORD_grid)
        return tec_weight_loading_grid(l, c, out);
    for (int i = 0; c->word == TEC_WORD_sines && i < c->rows && !l->source.dry; i++)
        tec_model_call_sines(c, i, out + (size_t)i * (size_t)c->cols);
    if (c->word == TEC_WORD_concat)
        join(constants, c, out);
    if (c->word == TEC_WORD_take)
        memcpy(out, constants->of[c->in[0]] + (size_t)c->first * (size_t)c->cols, n * sizeof *out);
    return TEC_OK;
}

/* Whether some call of a frame reads a constant itself, and not only its products with weights. */
static bool read_in_frames(const struct tec_model_program *p, int at)
{
    const struct tec_model_call *c = &p->calls[at];
    for (int i = c->uses.first; i <= c->uses.last && i < p->n; i++)
        for (int k = 0; k < p->calls[i].n_in; k++)
            if (p->calls[i].in[k] == at && !p->calls[i].constant)
                return true;
    return c->name != NULL;
}

/* A constant in device memory, [rows, ld]. */
static enum tec_status load_constant(struct tec_weight_loading *l, struct constants *constants,
                                     int at, const float **out)
{
    const struct tec_model_call *c = &constants->p->calls[at];
    size_t ld = (size_t)tec_padded(c->cols), cols = (size_t)c->cols;
    size_t rows = (size_t)tec_weight_loading_patches(l, constants->p, at);
    size_t all = rows * (size_t)tec_weight_loading_copies(l, constants->p, at);
    void *block = NULL;
    TEC_TRY(make_constant(l, constants, at));
    if (!read_in_frames(constants->p, at))
        return TEC_OK;
    TEC_TRY(tec_weight_loading_block(l, all * ld * sizeof(float), &block));
    *out = block;
    for (size_t r = 0; r < all && !l->source.dry; r++)
        tec_device_upload(l->options->device, TEC_STREAM_MAIN, (float *)block + r * ld,
                          constants->of[at] + r % rows * cols, cols * sizeof(float));
    return tec_device_failure(l->options->device, l->err);
}

static enum tec_status load_norm(struct tec_weight_loading *l, const struct tec_model_call *c,
                                 struct tec_call_weights *w)
{
    l->source.bf16 = c->rounded && l->options->bf16;
    enum tec_status status = tec_weight_loading_turned_vector(
        l, c->weight, c->cols, 1.0F - (float)c->offset, c->turn, &w->norm);
    if (status == TEC_OK)
        status =
            tec_weight_loading_turned_vector(l, c->bias, c->cols, 0.0F, c->turn, &w->norm_bias);
    l->source.bf16 = false;
    return status;
}

/* The projections of an attention. Layers of a text share their biases by distance. */
static enum tec_status load_attention(struct tec_weight_loading *l, const struct constants *all,
                                      int at)
{
    const struct tec_model_call *c = &all->p->calls[at];
    struct tec_call_weights *w = &all->weights[at];
    struct tec_attention_weights *own = TEC_NEW(&l->out->arena, 1, struct tec_attention_weights);
    w->attention = own;
    if (!own)
        return tec_fail(l->err, TEC_NO_MEMORY, "no memory for an attention");
    TEC_TRY(tec_weight_loading_attention(l, all->p, c, own));
    TEC_TRY(load_shifts(l, all, c, own));
    if (!c->relative.name || !c->place)
        return tec_weight_loading_relative(l, c, w);
    const struct tec_call_weights *first = &all->weights[all->p->layers[0].attention];
    w->bias = first->bias;
    w->reach = first->reach;
    return TEC_OK;
}

static enum tec_status load_linear(struct tec_weight_loading *l, const struct tec_model_program *p,
                                   const struct tec_model_call *c, struct tec_call_weights *w)
{
    const struct tec_model_call *x = &p->calls[c->in[0]];
    if (x->word == TEC_WORD_beside && p->projects)
        TEC_TRY(tec_weight_loading_beside(l, p, c, w));
    else if (x->turn)
        TEC_TRY(tec_weight_loading_turned(l, c, x->cols, x->turn, &w->matrix));
    else
        TEC_TRY(tec_weight_loading_product(l, p, c, &w->matrix));
    if (c->times != 0.0)
        return tec_weight_loading_times(l, c->times, c->cols, &w->factor);
    return tec_weight_loading_vector(l, c->factor, c->cols, 1.0F, &w->factor);
}

static enum tec_status load_call(struct tec_weight_loading *l, struct constants *constants, int at)
{
    const struct tec_model_program *p = constants->p;
    const struct tec_model_call *c = &p->calls[at];
    struct tec_call_weights *w = &constants->weights[at];
    if (c->constant)
        return load_constant(l, constants, at, &w->constant);
    if (c->same >= 0) {
        *w = constants->weights[c->same];
        return TEC_OK;
    }
    if (c->word == TEC_WORD_attention)
        return load_attention(l, constants, at);
    if (c->word == TEC_WORD_gated)
        return tec_weight_loading_gated(l, c, p->calls[c->in[0]].cols, &w->matrix);
    if (!c->weight || c->timed)
        return TEC_OK;
    int in = p->calls[c->in[0]].cols;
    if (c->word == TEC_WORD_norm)
        return load_norm(l, c, w);
    if (c->word == TEC_WORD_conv)
        return p->tower ? tec_weight_loading_patch_conv(l, c, &w->matrix)
                        : tec_weight_loading_conv(l, c, in, &w->matrix);
    return load_linear(l, p, c, w);
}

enum tec_status tec_weight_loading_program(struct tec_weight_loading *l,
                                           const struct tec_model_program *p,
                                           struct tec_call_weights **out)
{
    size_t n = (size_t)p->n;
    struct constants constants = {p, TEC_NEW(&l->out->arena, n, struct tec_call_weights), NULL};
    *out = constants.weights;
    constants.of = tec_heap_get(l->heap, n * sizeof *constants.of);
    if (!constants.weights || !constants.of) {
        tec_heap_put(l->heap, constants.of);
        return tec_fail(l->err, TEC_NO_MEMORY, "no memory for the weights of %d calls", p->n);
    }
    memset(constants.of, 0, n * sizeof *constants.of);
    enum tec_status status = TEC_OK;
    for (int i = 0; i < p->n && status == TEC_OK; i++) {
        l->packing = p->calls[i].packing.kind ? &p->calls[i].packing : NULL;
        status = load_call(l, &constants, i);
    }
    l->packing = NULL;
    for (int i = 0; i < p->n; i++)
        tec_heap_put(l->heap, constants.of[i]);
    tec_heap_put(l->heap, constants.of);
    return status;
}
