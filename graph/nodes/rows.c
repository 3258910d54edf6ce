/* rows.c - rows that a model has beside those of pictures and prompt. */
#include "graph/model/program.h"
#include "graph/nodes/tables.h"

int tec_suffix_rows(const struct tec_model *model)
{
    const struct tec_model_program *p = model->program;
    if (tec_model_asks(model))
        return model->flow.horizon;
    return p && p->flow.steps ? p->seeing : 0;
}

int tec_suffix_front(const struct tec_model *model)
{
    int front = tec_suffix_rows(model) - model->flow.horizon;
    return front > 0 ? front : 0;
}

int tec_lead_rows(const struct tec_model *model)
{
    return model->text.lead ? 1 : 0;
}

int tec_state_rows(const struct tec_model *model)
{
    return model->head.state || tec_model_behind(model) ? 1 : 0;
}

int tec_head_rows(const struct tec_model *model)
{
    return tec_state_rows(model) + (tec_model_heads(model) ? model->head.rows + 1 : 0);
}
