/* parse_head.c - the head of a description that makes a chunk in one forward. */
#include "graph/model/parse.h"

#include <string.h>

static enum tec_status parse_normed(struct tec_normed *n, json_t *json, int rows, int cols,
                                    const char *where, struct tec_error *err)
{
    TEC_UNPACK(json, where, "{s:s, s?s, s:s, s?s}", "norm", &n->norm, "norm_bias", &n->norm_bias,
               "weight", &n->dense.weight, "bias", &n->dense.bias);
    n->dense.rows = rows;
    n->dense.cols = cols;
    return TEC_OK;
}

static enum tec_status parse_state(struct tec_head *h, json_t *json, int width,
                                   struct tec_error *err)
{
    json_t *first, *second;
    if (!json)
        return TEC_OK;
    TEC_UNPACK(json, "chunk.state", "{s:i, s:o, s:o}", "entries", &h->state, "first", &first,
               "second", &second);
    if (h->state < 1 || h->state > 1024)
        return tec_fail(err, TEC_MALFORMED, "chunk.state: entries must be 1 .. 1024, is %d",
                        h->state);
    TEC_TRY(tec_parse_dense(&h->states[0], first, width, h->state, "chunk.state.first", err));
    TEC_TRY(tec_parse_dense(&h->states[1], second, width, width, "chunk.state.second", err));
    if (!h->states[0].weight || !h->states[1].weight)
        return tec_fail(err, TEC_MALFORMED, "chunk.state: lacks first or second");
    return TEC_OK;
}

static enum tec_status parse_layers(struct tec_model *model, json_t *in, json_t *blocks,
                                    json_t *out, struct tec_error *err)
{
    struct tec_head *h = &model->head;
    size_t n = json_array_size(blocks);
    int dim = model->flow.dim, w = h->width;
    if (n > TEC_MAX_HEAD_BLOCKS)
        return tec_fail(err, TEC_MALFORMED, "chunk: more than %d blocks", TEC_MAX_HEAD_BLOCKS);
    TEC_TRY(parse_normed(&h->in, in, w, dim * model->text.stack.width, "chunk.in", err));
    for (size_t i = 0; i < n; i++)
        TEC_TRY(parse_normed(&h->blocks[h->n_blocks++], json_array_get(blocks, i), w, w,
                             "chunk.blocks", err));
    return parse_normed(&h->out, out, dim, w, "chunk.out", err);
}

static enum tec_status check_rows(struct tec_model *model, struct tec_error *err)
{
    struct tec_flow *f = &model->flow;
    if (f->horizon < 1 || f->dim < 1 || f->horizon > 1024 || f->dim > 1024 ||
        f->horizon * f->dim > 4096)
        return tec_fail(err, TEC_MALFORMED,
                        "chunk: %d actions of %d values; they must be 4096 rows at most",
                        f->horizon, f->dim);
    if ((int64_t)f->dim * model->text.stack.width > 1 << 24)
        return tec_fail(err, TEC_MALFORMED,
                        "chunk: %d rows of %d columns side by side are too many", f->dim,
                        model->text.stack.width);
    if (model->text.mask != TEC_MASK_BIDIR)
        return tec_fail(err, TEC_MALFORMED, "chunk: needs mask bidir: its rows see each other");
    model->head.rows = f->horizon * f->dim;
    f->steps = 1;
    return TEC_OK;
}

enum tec_status tec_parse_head(struct tec_model *model, json_t *json, struct tec_error *err)
{
    json_t *in = NULL, *blocks = NULL, *out = NULL, *state = NULL;
    struct tec_head *h = &model->head;
    double eps = 1e-5;
    int width = 0;
    TEC_UNPACK(json, "chunk", "{s:i, s:i, s?i, s?F, s?o, s?o, s?o, s?o}", "horizon",
               &model->flow.horizon, "dim", &model->flow.dim, "width", &width, "eps", &eps, "in",
               &in, "blocks", &blocks, "out", &out, "state", &state);
    TEC_TRY(check_rows(model, err));
    TEC_TRY(parse_state(h, state, model->text.stack.width, err));
    bool tokens = model->tokens.vocab > 0;
    if (!in != !out || !in != tokens)
        return tec_fail(err, TEC_MALFORMED,
                        "chunk: must have either in and out, or stand beside tokens");
    if (tokens && model->tokens.count && model->tokens.count != model->flow.dim)
        return tec_fail(err, TEC_MALFORMED, "chunk: dim is %d, an action has %d tokens",
                        model->flow.dim, model->tokens.count);
    if (tokens)
        return TEC_OK;
    h->width = width;
    h->eps = (float)eps;
    TEC_TRY(tec_parse_positive(h->width, "chunk", "width", err));
    if (!(h->eps > 0.0F))
        return tec_fail(err, TEC_MALFORMED, "chunk: eps must be positive");
    return parse_layers(model, in, blocks, out, err);
}
