/* pictures.c - pictures through the towers, and what leaves these to rows of a prompt: `project`.
 *
 * A tower runs where its rows are first read: of two, the first one's share of a product is made
 * before the second one begins, so that nobody keeps the features of both. */
#include "graph/nodes/layers.h"
#include "kernels/matrix.h"

#include <stdio.h>
#include <string.h>

/* Copies of the rows that leave some layers of the tower, to the values of `project` that they are:
 * behind the first one, in their order. */
static void keep_rows(struct tec_built *to, const struct tec_built *b, int layer)
{
    const struct tec_model_program *p = b->p;
    for (int i = 0; i < p->n_keeps; i++) {
        if (p->keeps[i] != layer)
            continue;
        to->tensor[1 + i] =
            tec_program_tensor(b->l->program, "kept", b->rows->max, p->width, b->rows->count);
        tec_lower_copy(b->l, tec_layers_rows(b, layer + 1), to->tensor[1 + i], 0, "kept");
    }
}

/* Pictures through a tower; the rows that leave it. */
static int run_tower(struct tec_built *to, int index)
{
    struct tec_lower *l = to->l;
    const struct tec_vision *v = &l->model->vision;
    char tap[16];
    snprintf(tap, sizeof tap, v->n_towers > 1 ? "vision%d." : "vision.", index);
    const struct tec_reading r = {.tower = &v->towers[index],
                                  .weights = l->weights->towers[index],
                                  .space = &l->towers[index],
                                  .rows = &l->prefix->towers[index],
                                  .tap = tap,
                                  .tap_inside = v->n_towers > 1};
    struct tec_built b;
    if (!tec_layers_begin(&b, l, &r, -1))
        return -1;
    tec_lower_tap(l, tec_layers_rows(&b, 0), "%sembed", tap);
    for (int layer = 0; layer < b.p->n_layers && l->program->status == TEC_OK; layer++) {
        tec_layers_step(&b, layer);
        keep_rows(to, &b, layer);
    }
    int x = tec_layers_leave(&b, tec_model_program_rounds(b.p));
    if (b.p->leaves)
        tec_lower_tap(l, x, "%spost_ln", tap);
    return x;
}

/* Whether products alone read the rows of a tower, beside another's or some of them: it then runs
 * for the first of these. */
static bool waits(const struct tec_model_program *p, int at)
{
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->calls[i].n_in; k++)
            if (p->calls[i].in[k] == at && p->calls[i].word != TEC_WORD_beside &&
                p->calls[i].word != TEC_WORD_take)
                return false;
    return true;
}

/* The rows of a tower, which may run for the first product that reads them. */
static int features(struct tec_built *b, int at)
{
    if (b->p->calls[at].first) /* of the same tower, which has run */
        return b->tensor[at];
    bool keeps = b->p->towers[0]->n_keeps > 0;
    return !keeps && waits(b->p, at) ? -1 : run_tower(b, b->p->calls[at].place);
}

/* A tower's share of a product, to y from row `row` on. */
static void multiply(struct tec_built *b, int at, int from, const struct tec_matrix *m, int y,
                     int row, bool add)
{
    const struct tec_gate gate = {.at = b->w[at].factor};
    int in_row = 0;
    if (b->p->calls[from].word == TEC_WORD_take) {
        in_row = tec_lower_most_pictures(b->l) * b->p->calls[from].first;
        from = b->p->calls[from].in[0];
    }
    if (b->tensor[from] < 0)
        b->tensor[from] = run_tower(b, b->p->calls[from].place);
    const struct tec_part_rows part = {.rows = tec_built_live(b, at),
                                       .max_rows = tec_built_max_rows(b, at),
                                       .in_row = in_row,
                                       .out_row = row,
                                       .gate = gate.at ? &gate : NULL};
    tec_lower_linear_rows(b->l, m, b->tensor[from], y, &part, add, "projector");
}

/* What is behind the last word goes to its rows of the prompt; with taps it has a place of its own,
 * so that they see what other rows do not change. */
static int project(struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at], *x = &b->p->calls[c->in[0]];
    const struct tec_call_weights *w = &b->w[at];
    for (int i = 0; i < b->p->n_deep; i++)
        if (b->p->deep[i] == at) /* made where it is added: layers.c */
            return b->l->deep[i] = b->tensor[c->in[0]];
    bool last = at == b->p->result && !b->l->taps, two = x->word == TEC_WORD_beside;
    const char *label = x->word == TEC_WORD_activation ? "projector" : "project";
    int y = last ? b->x : tec_built_new(b, at, label), row = last ? b->x_row : 0;
    b->settled[at] = last;
    multiply(b, at, two ? x->in[0] : c->in[0], &w->matrix, y, row, false);
    if (two)
        multiply(b, at, x->in[1], &w->beside, y, row, true);
    if (b->l->taps && w->factor && !two)
        tec_lower_tap(b->l, tec_lower_linear(b->l, &w->matrix, b->tensor[c->in[0]], "tap"),
                      "vision.connector");
    return y;
}

/* Features and products are of towers; all other words are as in every program. */
static int lower(struct tec_built *b, int at)
{
    enum tec_model_word word = b->p->calls[at].word;
    if (word == TEC_WORD_features)
        return features(b, at);
    return word == TEC_WORD_linear ? project(b, at) : tec_built_word(b, at);
}

void tec_lower_pictures(struct tec_lower *l, int x, int at)
{
    const struct tec_model_program *p = l->model->vision.project;
    struct tec_built b;
    if (!tec_built_begin(&b, l, p, l->weights->project))
        return;
    b.x = x;
    b.x_row = l->deep_row = at;
    for (int i = 0; i < p->n && l->program->status == TEC_OK; i++)
        tec_built_made(&b, i, lower(&b, i));
    if (!b.settled[p->result])
        tec_lower_copy(l, b.tensor[p->result], x, at, "projector");
    tec_lower_tap(l, b.settled[p->result] ? -1 : b.tensor[p->result], "vision.projector");
}
