/* tensors.c - every tensor that a model reads, by name and shape. */
#include "graph/model/program.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

bool tec_model_ends(const struct tec_model *model, int id)
{
    const struct tec_text *t = &model->text;
    bool ends = id == t->eos;
    for (int i = 0; i < t->n_ends && t->eos >= 0; i++)
        ends |= id == t->ends[i];
    return ends;
}

bool tec_model_heads(const struct tec_model *model)
{
    return model->head.rows > 0;
}

int tec_model_mark(const struct tec_model *model)
{
    return model->text.marks ? model->text.picture : -1;
}

bool tec_model_acts(const struct tec_model *model)
{
    return tec_model_flows(model) || tec_model_heads(model) || tec_model_asks(model) ||
           tec_model_denoises(model);
}

bool tec_model_encodes(const struct tec_model *model)
{
    return model->text.pool != TEC_POOL_NONE;
}

/* The logarithm is exact where it should be whole, but for its rounding. */
int tec_relative_bucket(const struct tec_relative *r, int delta)
{
    int half = r->buckets / 2, near = half / 2, n = delta < 0 ? -delta : delta;
    int base = delta > 0 ? half : 0;
    if (n < near)
        return base + n;
    double steps = log((double)n / near) / log((double)r->distance / near) * (half - near);
    int far = near + (steps < half ? (int)(steps + 1e-6) : half);
    return base + (far < half ? far : half - 1);
}

int tec_model_state(const struct tec_model *model)
{
    if (model->program && model->program->n_entries)
        return model->program->n_entries;
    if (tec_model_asks(model) || tec_model_denoises(model)) /* of nothing: one that nobody reads */
        return 1;
    return model->head.state ? model->head.state : model->flow.dim;
}

bool tec_model_ignores(const struct tec_model *model, const char *name)
{
    for (int i = 0; i < TEC_MAX_IGNORED && model->ignored[i]; i++) {
        const char *pattern = model->ignored[i];
        size_t n = strlen(pattern);
        if (strcmp(pattern, name) == 0)
            return true;
        if (n && pattern[n - 1] == '*' && strncmp(pattern, name, n - 1) == 0)
            return true;
    }
    return false;
}

bool tec_expected_shape(const struct tec_expected *expected, int rank, const int64_t *shape)
{
    while (expected->leading && rank > expected->rank && shape[0] == 1) {
        shape++;
        rank--;
    }
    bool same = rank == expected->rank;
    for (int i = 0; same && i < rank; i++)
        same = shape[i] == expected->shape[i];
    return same;
}

struct visitor {
    enum tec_status (*visit)(void *user, const struct tec_expected *expected,
                             struct tec_error *err);
    void *user;
    struct tec_error *err;
};

static enum tec_status one(const struct visitor *v, const char *name, int rank, int rows, int cols)
{
    if (!name)
        return TEC_OK;
    struct tec_expected e = {.names = {name}, .n_names = 1, .rank = rank, .shape = {rows, cols}};
    return v->visit(v->user, &e, v->err);
}

/* A table [rows, width]; dimensions of 1 may stand before. */
static enum tec_status table(const struct visitor *v, const char *name, int rows, int width)
{
    struct tec_expected e = {
        .names = {name}, .n_names = 1, .rank = 2, .shape = {rows, width}, .leading = true};
    return v->visit(v->user, &e, v->err);
}

void tec_packed_name(char text[256], const char *weight, const char *what)
{
    size_t n = strlen(weight), skip = strlen("weight");
    snprintf(text, 256, "%.*s%s", (int)(n > skip ? n - skip : 0), weight, what);
}

/* The tensors of one matrix of 4-bit weights [rows, cols]. */
static enum tec_status packed(const struct visitor *v, const struct tec_packing *p,
                              const char *weight, int rows, int cols)
{
    int groups = p->group ? (cols + p->group - 1) / p->group : 1;
    bool awq = p->kind == TEC_PACKING_AWQ;
    char name[256];
    tec_packed_name(name, weight, "qweight");
    TEC_TRY(one(v, name, 2, awq ? cols : cols / 8, awq ? rows / 8 : rows));
    tec_packed_name(name, weight, "qzeros");
    TEC_TRY(one(v, name, 2, groups, rows / 8));
    tec_packed_name(name, weight, "scales");
    TEC_TRY(one(v, name, 2, groups, rows));
    tec_packed_name(name, weight, "g_idx");
    struct tec_expected e = {
        .names = {name}, .n_names = 1, .rank = 1, .shape = {cols}, .optional = !p->ordered};
    return awq ? TEC_OK : v->visit(v->user, &e, v->err);
}

/* A matrix of a call, as it is stored. */
static enum tec_status matrix(const struct visitor *v, const struct tec_model_call *c,
                              const char *weight, int rows, int cols)
{
    return c->packing.kind && weight ? packed(v, &c->packing, weight, rows, cols)
                                     : one(v, weight, 2, rows, cols);
}

/* A layer of categories: weight [categories, in, out], bias [categories, out]. */
static enum tec_status categories(const struct visitor *v, const struct tec_model_call *c, int in)
{
    struct tec_expected e = {
        .names = {c->weight}, .n_names = 1, .rank = 3, .shape = {c->categories, in, c->cols}};
    TEC_TRY(v->visit(v->user, &e, v->err));
    return one(v, c->bias, 2, c->categories, c->cols);
}

/* The matrices of an attention, or of a gated product. */
static enum tec_status joined(const struct visitor *v, const struct tec_model_call *c, int width)
{
    const struct tec_attend *a = &c->attend;
    int qkv = (a->heads + 2 * a->kv_heads) * a->head_dim;
    TEC_TRY(one(v, c->fused, 2, qkv, width));
    TEC_TRY(one(v, c->fused_bias, 1, qkv, 0));
    for (int i = 0; i < 3; i++) {
        int rows = !a->heads ? c->cols : (i ? a->kv_heads : a->heads) * a->head_dim;
        TEC_TRY(matrix(v, c, c->joined[i], rows, a->heads && i ? a->from : width));
        TEC_TRY(one(v, c->joined_bias[i], 1, rows, 0));
    }
    for (int i = 0; i < 2; i++)
        TEC_TRY(one(v, c->norms[i], 1, a->head_dim, 0));
    return c->relative.name && !c->place ? one(v, c->relative.name, 2, c->relative.rows, a->heads)
                                         : TEC_OK;
}

struct tec_expected tec_model_conv_expected(const struct tec_model_call *c, int channels)
{
    struct tec_expected e = {.names = {c->weight}, .n_names = 1, .shape = {c->cols, channels}};
    e.rank = 2;
    if (c->frames > 1)
        e.shape[e.rank++] = c->frames;
    e.shape[e.rank++] = c->side;
    e.shape[e.rank++] = c->side;
    return e;
}

/* A call's tensors, where no earlier one has the same. */
static enum tec_status call(const struct visitor *v, const struct tec_model_program *p,
                            const struct tec_model_call *c)
{
    const char *const vectors[] = {c->bias,      c->norm.weight, c->norm.bias,
                                   c->norm.mean, c->norm.var,    c->factor};
    int in = c->n_in ? p->calls[c->in[0]].cols : 0;
    struct tec_expected e = {.names = {c->weight}, .n_names = 1, .shape = {c->cols, in}};
    if (c->same >= 0)
        return TEC_OK;
    if (c->joined[0] || c->fused)
        return joined(v, c, in);
    if (!c->weight)
        return TEC_OK;
    if (c->categories)
        return categories(v, c, in);
    if (c->word == TEC_WORD_grid)
        return table(v, c->weight, c->side * c->side, c->cols);
    if (c->word == TEC_WORD_tensor && p->tower)
        return table(v, c->weight, c->rows, c->cols);
    if (c->word == TEC_WORD_tensor)
        return one(v, c->weight, c->rank, c->rank == 2 ? c->rows : c->cols, c->cols);
    e.rank = c->word == TEC_WORD_norm ? 1 : 2;
    if (c->word == TEC_WORD_conv)
        e = tec_model_conv_expected(c, in);
    TEC_TRY(c->packing.kind ? packed(v, &c->packing, c->weight, c->cols, in)
                            : v->visit(v->user, &e, v->err));
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++)
        TEC_TRY(one(v, vectors[i], 1, c->cols, 0));
    return TEC_OK;
}

/* NULL = there is no such program. */
static enum tec_status calls(const struct visitor *v, const struct tec_model_program *p)
{
    for (int i = 0; p && i < p->n; i++)
        TEC_TRY(call(v, p, &p->calls[i]));
    return TEC_OK;
}

/* Embedding and head: the first present of each list; the head may be the embedding itself. */
static enum tec_status embeddings(const struct visitor *v, const struct tec_text *t)
{
    for (int head = 0; head < 2; head++) {
        struct tec_expected e = {.rank = 2, .shape = {t->vocab, t->stack.width}};
        const char *const *names = head ? t->head : t->embed;
        while (e.n_names < TEC_MAX_ALIASES && names[e.n_names]) {
            e.names[e.n_names] = names[e.n_names];
            e.n_names++;
        }
        if (e.n_names)
            TEC_TRY(v->visit(v->user, &e, v->err));
    }
    if (t->position.name)
        TEC_TRY(one(v, t->position.name, 2, t->position.rows, t->stack.width));
    return t->types.name ? one(v, t->types.name, 2, t->types.rows, t->stack.width) : TEC_OK;
}

enum tec_status tec_model_visit(const struct tec_model *model,
                                enum tec_status (*visit)(void *user,
                                                         const struct tec_expected *expected,
                                                         struct tec_error *err),
                                void *user, struct tec_error *err)
{
    const struct visitor v = {visit, user, err};
    for (int i = 0; i < model->vision.n_towers; i++)
        TEC_TRY(calls(&v, model->vision.towers[i].program));
    TEC_TRY(calls(&v, model->vision.project));
    TEC_TRY(calls(&v, model->program));
    if (tec_model_reads(model))
        TEC_TRY(embeddings(&v, &model->text));
    TEC_TRY(calls(&v, model->text.program));
    TEC_TRY(calls(&v, model->head.program));
    for (int i = 0; i < TEC_MAX_IGNORED && model->ignored[i]; i++) {
        struct tec_expected e = {.names = {model->ignored[i]}, .n_names = 1, .optional = true};
        TEC_TRY(visit(user, &e, err));
    }
    return TEC_OK;
}
