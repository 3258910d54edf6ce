/* tensors.c - every tensor that a model reads, by name and shape. */
#include "graph/model/model.h"

#include <stdio.h>
#include <string.h>

struct visitor {
    enum tec_status (*visit)(void *user, const struct tec_expected *expected,
                             struct tec_error *err);
    void *user;
    struct tec_error *err;
};

void tec_layer_name(char text[256], const char *pattern, int layer)
{
    const char *gap = strstr(pattern, "{}");
    if (gap)
        snprintf(text, 256, "%.*s%d%s", (int)(gap - pattern), pattern, layer, gap + 2);
    else
        snprintf(text, 256, "%s", pattern);
}

static enum tec_status one(const struct visitor *v, const char *name, int rank, int rows, int cols)
{
    if (!name)
        return TEC_OK;
    struct tec_expected e = {.names = {name}, .n_names = 1, .rank = rank, .shape = {rows, cols}};
    return v->visit(v->user, &e, v->err);
}

static enum tec_status dense(const struct visitor *v, const struct tec_dense *d)
{
    TEC_TRY(one(v, d->weight, 2, d->rows, d->cols));
    return one(v, d->bias, 1, d->rows, 0);
}

static enum tec_status norm(const struct visitor *v, const struct tec_stack *s, const char *weight,
                            const char *bias)
{
    bool adaptive = s->norm == TEC_BLOCK_ADAPTIVE_NORM;
    int rows = adaptive ? 3 * s->width : s->width;
    TEC_TRY(one(v, weight, adaptive ? 2 : 1, rows, adaptive ? s->width : 0));
    return one(v, bias, 1, rows, 0);
}

static enum tec_status layer(const struct visitor *v, const struct tec_stack *s, int l)
{
    int q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
    const struct {
        enum tec_role weight, bias;
        int rows, cols;
    } parts[] = {
        {TEC_ROLE_q, TEC_ROLE_q_bias, q, s->width},
        {TEC_ROLE_k, TEC_ROLE_k_bias, kv, s->width},
        {TEC_ROLE_v, TEC_ROLE_v_bias, kv, s->width},
        {TEC_ROLE_o, TEC_ROLE_o_bias, s->width, q},
        {TEC_ROLE_gate, TEC_ROLE_gate, s->mlp, s->width},
        {TEC_ROLE_up, TEC_ROLE_up_bias, s->mlp, s->width},
        {TEC_ROLE_down, TEC_ROLE_down_bias, s->width, s->mlp},
    };
    char w[256], b[256];
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const char *weight = s->names[parts[i].weight], *bias = s->names[parts[i].bias];
        if (!weight)
            continue;
        tec_layer_name(w, weight, l);
        TEC_TRY(one(v, w, 2, parts[i].rows, parts[i].cols));
        if (bias && parts[i].bias != parts[i].weight) {
            tec_layer_name(b, bias, l);
            TEC_TRY(one(v, b, 1, parts[i].rows, 0));
        }
    }
    for (int i = 0; i < 2; i++) {
        const char *weight = s->names[i ? TEC_ROLE_norm2 : TEC_ROLE_norm1];
        const char *bias = s->names[i ? TEC_ROLE_norm2_bias : TEC_ROLE_norm1_bias];
        tec_layer_name(w, weight, l);
        if (bias)
            tec_layer_name(b, bias, l);
        TEC_TRY(norm(v, s, w, bias ? b : NULL));
    }
    return TEC_OK;
}

static enum tec_status stack(const struct visitor *v, const struct tec_stack *s)
{
    for (int l = 0; l < s->layers; l++)
        TEC_TRY(layer(v, s, l));
    if (!s->names[TEC_ROLE_final])
        return TEC_OK;
    return norm(v, s, s->names[TEC_ROLE_final], s->names[TEC_ROLE_final_bias]);
}

static enum tec_status patch_embed(const struct visitor *v, const struct tec_tower *t)
{
    struct tec_expected e = {.names = {t->patch_embed.weight},
                             .n_names = 1,
                             .rank = 4,
                             .shape = {t->stack.width, 3, t->patch, t->patch}};
    TEC_TRY(v->visit(v->user, &e, v->err));
    return one(v, t->patch_embed.bias, 1, t->stack.width, 0);
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
    return TEC_OK;
}

enum tec_status tec_model_visit(const struct tec_model *model,
                                enum tec_status (*visit)(void *user,
                                                         const struct tec_expected *expected,
                                                         struct tec_error *err),
                                void *user, struct tec_error *err)
{
    const struct visitor v = {visit, user, err};
    const struct tec_flow *f = &model->flow;
    TEC_TRY(patch_embed(&v, &model->vision));
    TEC_TRY(one(&v, model->vision.position, 2, model->vision.tokens, model->vision.stack.width));
    TEC_TRY(stack(&v, &model->vision.stack));
    TEC_TRY(dense(&v, &model->vision.projector));
    TEC_TRY(embeddings(&v, &model->text));
    TEC_TRY(stack(&v, &model->text.stack));
    TEC_TRY(stack(&v, &f->stack));
    const struct tec_dense *const parts[] = {&f->in, &f->out, &f->state, &f->time1, &f->time2};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        TEC_TRY(dense(&v, parts[i]));
    for (int i = 0; i < TEC_MAX_ALIASES && model->ignored[i]; i++) {
        struct tec_expected e = {.names = {model->ignored[i]}, .n_names = 1, .optional = true};
        TEC_TRY(visit(user, &e, err));
    }
    return TEC_OK;
}
