/* parse_head.c - the head of a description that makes a chunk in one forward. */
#include "graph/model/parse.h"
#include "graph/model/program.h"

#include <string.h>

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
    json_t *state = NULL;
    bool tokens = model->tokens.vocab > 0;
    TEC_UNPACK(json, "chunk", "{s:i, s:i, s?o}", "horizon", &model->flow.horizon, "dim",
               &model->flow.dim, "state", &state);
    TEC_TRY(check_rows(model, err));
    TEC_TRY(parse_state(&model->head, state, model->text.stack.width, err));
    if (!model->program != tokens)
        return tec_fail(err, TEC_MALFORMED,
                        "chunk: must have either a function action, or stand beside tokens");
    if (tokens && model->tokens.count && model->tokens.count != model->flow.dim)
        return tec_fail(err, TEC_MALFORMED, "chunk: dim is %d, an action has %d tokens",
                        model->flow.dim, model->tokens.count);
    return tokens ? TEC_OK : tec_model_program_check(model, err);
}
