/* turns.c - angles of rows with three positions, of time, line and column.
 *
 * Attention reads a row of angles by a row's position, whatever it stands for. Rows of a text have
 * one number for all three, so theirs are those of a table. Those of pictures do not: behind the
 * table each has a row of its own, whose pairs are taken from the rows of the table that its time,
 * its line or its column names. Where pictures begin is known when a prompt is. */
#include "graph/model/program.h"
#include "graph/nodes/dealer.h"
#include "graph/nodes/layers.h"

const struct tec_rotation *tec_sections(const struct tec_model *model)
{
    const struct tec_model_program *p = model->text.program;
    return p && p->n_rotations && p->rotations[0].sections[0] ? &p->rotations[0] : NULL;
}

void tec_deal_turns(struct tec_dealer *d, struct tec_prefix_table *t, const struct tec_model *m,
                    int pictures)
{
    if (!tec_sections(m))
        return;
    t->n_turns = tec_deal_ints(d, 1);
    t->turns =
        tec_deal_ints(d, tec_vision_tokens(&m->vision, pictures) * m->text.stack.head_dim / 2);
}

void tec_lower_turns(struct tec_lower *l)
{
    const struct tec_prefix_table *t = l->prefix;
    int dim = l->model->text.stack.head_dim, half = dim / 2;
    if (!t->turns || !tec_lower_sees(l))
        return;
    int rows = tec_vision_tokens(&l->model->vision, tec_lower_most_pictures(l));
    float *own = l->cos_sin[0] + (size_t)l->positions * (size_t)dim;
    struct tec_call call = tec_call_of(TEC_OP_take_rows, "turns");
    call.in[0] = tec_program_fixed(l->program, "angles", l->cos_sin[0],
                                   (size_t)l->positions * (size_t)dim * sizeof(float),
                                   l->positions * half, 2, 2, NULL);
    call.out[0] =
        tec_program_fixed(l->program, "turns", own, (size_t)rows * (size_t)dim * sizeof(float),
                          rows, dim, dim, t->n_image);
    call.args.take.row = t->turns;
    call.args.take.rows = t->n_turns;
    call.args.take.group = half;
    tec_program_call(l->program, &call);
    l->angles = call.out[0];
}

int tec_lower_angles(struct tec_lower *l, const float *cos_sin)
{
    bool made_here = l->prefix && l->prefix->turns && tec_lower_sees(l);
    if (!made_here || cos_sin != l->cos_sin[0])
        return -1;
    if (l->angles < 0 && l->program->status == TEC_OK)
        l->program->status = tec_fail(&l->program->err, TEC_INVALID,
                                      "angles of pictures are read before they are made");
    return l->angles;
}
