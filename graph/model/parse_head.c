/* parse_head.c - the head of a description that makes a chunk in one forward. */
#include "graph/model/parse_head.h"
#include "graph/model/program.h"
#include "graph/model/unpack.h"

#include <string.h>

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
    bool tokens = model->tokens.vocab > 0;
    TEC_UNPACK(json, "chunk", "{s:i, s:i}", "horizon", &model->flow.horizon, "dim",
               &model->flow.dim);
    TEC_TRY(check_rows(model, err));
    if (model->head.program)
        TEC_TRY(tec_model_state_check(model->head.program, model->text.stack.width,
                                      &model->head.state, err));
    if (!model->program != tokens)
        return tec_fail(err, TEC_MALFORMED,
                        "chunk: must have either a function action, or stand beside tokens");
    if (tokens && model->tokens.count && model->tokens.count != model->flow.dim)
        return tec_fail(err, TEC_MALFORMED, "chunk: dim is %d, an action has %d tokens",
                        model->flow.dim, model->tokens.count);
    return tokens ? TEC_OK : tec_model_program_check(model, err);
}
