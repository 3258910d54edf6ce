/* rows.c - pictures that a prefill has room for, and rows that a model has beside those of pictures
 * and prompt. */
#include "graph/nodes/node.h"

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

bool tec_lower_sees(const struct tec_lower *l)
{
    return l->model->vision.n_towers && l->prefix->towers[0].max > 0;
}

int tec_lower_most_pictures(const struct tec_lower *l)
{
    const struct tec_vision *v = &l->model->vision;
    return l->prefix->towers[0].max / (v->towers[0].prefix_rows + v->patches);
}
