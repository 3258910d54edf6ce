/* program.c - groups of rows of a program that is being built, and what is asked of one that is
 * complete: what it does, and the pictures it reads. */
#include "graph/model/program.h"

#include <string.h>

int tec_model_program_group(struct tec_model_program *p, int rows)
{
    if (p->n_groups && rows == 1)
        return 0;
    if (p->n_groups == p->group_room) {
        int room = p->group_room ? 2 * p->group_room : 256;
        struct tec_row_group *groups = TEC_NEW(p->arena, (size_t)room, struct tec_row_group);
        if (!groups)
            return -1;
        if (p->n_groups)
            memcpy(groups, p->groups, (size_t)p->n_groups * sizeof *groups);
        p->groups = groups;
        p->group_room = room;
    }
    if (!p->n_groups)
        p->groups[p->n_groups++] = (struct tec_row_group){1, -1, -1};
    if (rows == 1)
        return 0;
    p->groups[p->n_groups] = (struct tec_row_group){rows, -1, -1};
    return p->n_groups++;
}

bool tec_model_asks(const struct tec_model *model)
{
    return model->program && !model->program->alone && !model->program->flow.steps;
}

bool tec_model_denoises(const struct tec_model *model)
{
    return model->program && model->program->flow.steps > 0 && model->program->prompt < 0;
}

bool tec_model_flows(const struct tec_model *model)
{
    return model->program && model->program->prompt >= 0;
}

bool tec_model_behind(const struct tec_model *model)
{
    const struct tec_model_program *p = model->program;
    return tec_model_flows(model) && p->calls[p->prompt].behind >= 0;
}

/* Whether each row of a call's value is made of the same row of what it reads and of what it sees,
 * and the time scales, shifts or gates it alone. */
static bool row_by_row(const struct tec_model_call *c)
{
    bool moved = c->word == TEC_WORD_take || c->word == TEC_WORD_concat;
    return c->constant || c->timed || (!moved && c->word != TEC_WORD_beside);
}

bool tec_model_fixes(const struct tec_model *model)
{
    const struct tec_model_program *p = model->program;
    bool conditioned = false;
    if (!tec_model_flows(model) || p->seeing != p->flow.horizon)
        return false;
    for (int i = p->parts[TEC_PART_OF_ACTION]; i < p->n; i++) {
        const struct tec_model_call *c = &p->calls[i];
        conditioned |= c->scale >= 0 || c->gate >= 0;
        if (!row_by_row(c))
            return false;
    }
    return conditioned;
}

/* Whether rows of a call's value lie as those of several observations do: rows in front of all of
 * them, then the actions' of each. */
static bool side_by_side(const struct tec_model_program *p, const struct tec_model_call *c)
{
    int front = p->seeing - p->flow.horizon;
    for (int k = 0; k < c->n_in; k++)
        if (p->calls[c->in[k]].constant) /* there is one for all of them */
            return false;
    if (c->constant || (c->rows != 1 && c->rows != p->flow.horizon && c->rows != p->seeing))
        return false;
    if (c->word == TEC_WORD_take)
        return !c->copied && c->first == front && c->rows == p->flow.horizon;
    return c->word != TEC_WORD_concat ||
           (c->n_in == 2 && p->calls[c->in[0]].rows == 1 && !p->calls[c->in[0]].timed &&
            p->calls[c->in[1]].rows == p->flow.horizon);
}

bool tec_model_batches(const struct tec_model *model)
{
    const struct tec_model_program *p = model->program;
    int front = tec_model_flows(model) ? p->seeing - p->flow.horizon : -1;
    if (front < 0 || front > 1 || p->n_states > 1 || tec_model_behind(model) || p->n_projected)
        return false;
    for (int i = p->parts[TEC_PART_OF_ACTION]; i < p->n; i++)
        if (!p->calls[i].timed && !side_by_side(p, &p->calls[i]))
            return false;
    return true;
}

bool tec_model_reads(const struct tec_model *model)
{
    return model->text.vocab > 0;
}

const struct tec_stack *tec_model_kept(const struct tec_model *model)
{
    bool own = tec_model_denoises(model) || tec_model_asks(model);
    return own ? &model->program->kept : &model->text.stack;
}

/* The call that reads a slot's picture. */
static const struct tec_model_call *picture_of(const struct tec_model_program *p, int slot)
{
    int i = 0;
    while (i < p->n && (p->calls[i].word != TEC_WORD_picture || p->calls[i].slot != slot))
        i++;
    return &p->calls[i];
}

struct tec_picture_size tec_model_picture(const struct tec_model *model, int slot)
{
    if (!tec_model_asks(model))
        return tec_vision_picture(&model->vision, slot);
    const struct tec_model_call *c = picture_of(model->program, slot);
    return (struct tec_picture_size){c->h, c->w};
}

void tec_model_picture_norm(const struct tec_model *model, int i, const float **mean,
                            const float **std)
{
    if (tec_model_asks(model)) {
        const struct tec_model_call *c = picture_of(model->program, i);
        *mean = c->mean;
        *std = c->std;
        return;
    }
    *mean = model->vision.towers[i].mean;
    *std = model->vision.towers[i].std;
}

size_t tec_model_picture_bytes(const struct tec_model *model)
{
    size_t most = 0;
    for (int i = 0; i < model->n_slots; i++) {
        struct tec_picture_size p = tec_model_picture(model, i);
        size_t bytes = (size_t)p.h * (size_t)p.w * 3 * (model->vision.floats ? sizeof(float) : 1);
        most = bytes > most ? bytes : most;
    }
    return most;
}

int tec_model_encoded(const struct tec_model *model)
{
    return tec_model_asks(model) ? model->program->encoded : 0;
}
