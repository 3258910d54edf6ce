/* pictures.c - pictures through the towers, and what leaves these to rows of a prompt: the words of
 * a tower's front and of `project`.
 *
 * Rows in front of the patches of all pictures stand before the patches of all of them. A tower
 * runs where its rows are first read: of two, the first one's share of a product is made before the
 * second one begins, so that nobody keeps the features of both. */
#include "graph/nodes/layers.h"
#include "kernels/matrix.h"

#include <stdio.h>
#include <string.h>

static int tower_of(const struct tec_built *b)
{
    return (int)(b->text->tower - b->l->model->vision.towers);
}

int tec_built_pictures(const struct tec_lower *l)
{
    const struct tec_vision *v = &l->model->vision;
    return l->prefix->towers[0].max / (v->towers[0].prefix_rows + v->patches);
}

/* A value's rows in memory: those of every picture, of the largest size. */
int tec_built_picture_rows(const struct tec_built *b, int at)
{
    const struct tec_vision *v = &b->l->model->vision;
    const struct tec_model_program *p = b->p;
    int rows = p->calls[at].rows, pictures = tec_built_pictures(b->l);
    if (p->projects)
        return pictures * (rows == p->towers[0]->patches ? v->patches : v->tokens);
    return pictures * (rows - p->patches + v->patches);
}

const int *tec_built_picture_live(const struct tec_built *b, int at)
{
    const struct tec_prefix_table *t = b->l->prefix;
    int rows = b->p->calls[at].rows;
    if (b->p->projects)
        return rows == b->p->towers[0]->patches ? t->n_patches : t->n_image;
    return rows == b->p->patches ? t->n_patches : b->rows->count;
}

/* Patches of `most` pictures from `first` on, bytes read through the tower's own table. */
static void patchify(struct tec_lower *l, int tower, int to, int first, int most)
{
    const struct tec_vision *v = &l->model->vision;
    const struct tec_prefix_table *table = l->prefix;
    struct tec_picture_size size = tec_vision_picture(v, first);
    struct tec_call call = tec_call_of(TEC_OP_patchify, "patchify");
    call.out[0] = to;
    call.args.patchify.pictures = (const uint8_t *const *)table->picture + first;
    if (v->floats) {
        call.args.patchify.floats = true;
        memcpy(call.args.patchify.mean, v->towers[tower].mean, sizeof v->towers[tower].mean);
        memcpy(call.args.patchify.std, v->towers[tower].std, sizeof v->towers[tower].std);
    } else {
        call.args.patchify.lut = l->lut + (size_t)tower * 3 * 256;
    }
    call.args.patchify.count = v->n_sizes ? table->one : table->n_pictures;
    call.args.patchify.max_pictures = most;
    call.args.patchify.height = size.h;
    call.args.patchify.width = size.w;
    call.args.patchify.patch = v->patch;
    tec_program_call(l->program, &call);
}

/* Patches of all pictures: of one size at once, else picture by picture. */
static int patches_of(struct tec_built *b)
{
    struct tec_lower *l = b->l;
    const struct tec_vision *v = &l->model->vision;
    int tower = tower_of(b), pictures = tec_built_pictures(l), cols = 3 * v->patch * v->patch;
    int patches = tec_program_tensor(l->program, "patches", pictures * v->patches, cols,
                                     l->prefix->n_patches);
    if (!v->n_sizes)
        patchify(l, tower, patches, 0, pictures);
    for (int i = 0; i < pictures && v->n_sizes; i++) {
        int first = tec_vision_patches(v, i);
        int one = tec_program_tensor(l->program, "picture", tec_vision_patches(v, i + 1) - first,
                                     cols, l->prefix->each + i);
        patchify(l, tower, one, i, 1);
        tec_lower_copy(l, one, patches, first, "picture");
    }
    tec_lower_tap(l, patches, "%spixels", b->text->tap);
    return patches;
}

int tec_built_patches(struct tec_built *b, int at)
{
    (void)at;
    return patches_of(b);
}

int tec_built_patch_conv(struct tec_built *b, int at)
{
    return tec_lower_linear(b->l, &b->w[at].matrix, patches_of(b), "patch_embed");
}

int tec_built_positions(const struct tec_built *b)
{
    const struct tec_vision *v = &b->l->model->vision;
    return v->n_sizes ? tec_vision_patches(v, v->n_sizes) : v->patches;
}

/* Rows in front of the patches, which are the same for every picture. */
int tec_built_patch_rows(struct tec_built *b, int at)
{
    struct tec_lower *l = b->l;
    const struct tec_model_call *c = &b->p->calls[at];
    int first = tec_built_pictures(l) * b->p->before, ld = tec_padded(c->cols);
    int all = tec_program_tensor(l->program, "rows", b->rows->max, c->cols, b->rows->count);
    void *from = NULL;
    memcpy(&from, &b->w[c->in[0]].constant, sizeof from); /* an input: only read */
    struct tec_call call = tec_call_of(TEC_OP_copy, "before");
    call.in[0] =
        tec_program_fixed(l->program, "before", from, (size_t)first * (size_t)ld * sizeof(float),
                          first, c->cols, ld, l->prefix->n_before[tower_of(b)]);
    call.out[0] = all;
    tec_program_call(l->program, &call);
    tec_lower_copy(l, b->tensor[c->in[1]], all, first, "behind");
    return all;
}

/* Copies of the rows that leave some layers of the tower, to the values of `project` that they are:
 * behind the first one, in their order. */
static void keep_rows(struct tec_built *project, const struct tec_built *b, int layer)
{
    const struct tec_model_program *p = b->p;
    for (int i = 0; i < p->n_keeps; i++) {
        if (p->keeps[i] != layer)
            continue;
        project->tensor[1 + i] =
            tec_program_tensor(b->l->program, "kept", b->rows->max, p->width, b->rows->count);
        tec_lower_copy(b->l, tec_layers_rows(b, layer + 1), project->tensor[1 + i], 0, "kept");
    }
}

/* Pictures through a tower; the rows that leave it. */
static int run_tower(struct tec_built *project, int index)
{
    struct tec_lower *l = project->l;
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
        keep_rows(project, &b, layer);
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

int tec_built_features(struct tec_built *b, int at)
{
    if (b->p->calls[at].first) /* of the same tower, which has run */
        return b->tensor[at];
    bool keeps = b->p->towers[0]->n_keeps > 0;
    return !keeps && waits(b->p, at) ? -1 : run_tower(b, b->p->calls[at].place);
}

/* Squares of patches as one row each. */
int tec_built_squares(struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at];
    struct tec_lower *l = b->l;
    struct tec_call call = tec_call_of(TEC_OP_take_rows, "shuffle");
    call.in[0] = b->tensor[c->in[0]];
    call.out[0] = tec_built_new(b, at, "shuffle");
    call.args.take.row = l->shuffle;
    call.args.take.group = c->side * c->side;
    call.args.take.rows = l->prefix->n_patches;
    call.args.take.round = c->rounded ? l->round : 0;
    tec_program_call(l->program, &call);
    return call.out[0];
}

/* A tower's share of a product, to y from row `row` on. */
static void multiply(struct tec_built *b, int at, int from, const struct tec_matrix *m, int y,
                     int row, bool add)
{
    const struct tec_gate gate = {.at = b->w[at].factor};
    int in_row = 0;
    if (b->p->calls[from].word == TEC_WORD_take) {
        in_row = tec_built_pictures(b->l) * b->p->calls[from].first;
        from = b->p->calls[from].in[0];
    }
    if (b->tensor[from] < 0)
        b->tensor[from] = run_tower(b, b->p->calls[from].place);
    const struct tec_part_rows part = {.rows = tec_built_picture_live(b, at),
                                       .max_rows = tec_built_picture_rows(b, at),
                                       .in_row = in_row,
                                       .out_row = row,
                                       .gate = gate.at ? &gate : NULL};
    tec_lower_linear_rows(b->l, m, b->tensor[from], y, &part, add, "projector");
}

/* What is behind the last word goes to its rows of the prompt; with taps it has a place of its own,
 * so that they see what other rows do not change. */
int tec_built_project(struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at], *x = &b->p->calls[c->in[0]];
    const struct tec_call_weights *w = &b->w[at];
    for (int i = 0; i < b->p->n_deep; i++)
        if (b->p->deep[i] == at) /* made where it is added: tec_lower_deep */
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

void tec_lower_deep(struct tec_lower *l, int layer, int x)
{
    const struct tec_model_program *p = l->model->vision.project;
    if (!p || layer >= p->n_deep || !tec_lower_sees(l))
        return;
    const struct tec_call_weights *w = &l->weights->project[p->deep[layer]];
    const struct tec_gate gate = {.at = w->factor};
    const struct tec_part_rows part = {.rows = l->prefix->n_image,
                                       .max_rows = tec_built_pictures(l) * l->model->vision.tokens,
                                       .out_row = l->deep_row,
                                       .gate = gate.at ? &gate : NULL};
    tec_lower_linear_rows(l, &w->matrix, l->deep[layer], x, &part, true, "deep");
}

bool tec_lower_sees(const struct tec_lower *l)
{
    return l->model->vision.n_towers && l->prefix->towers[0].max > 0;
}

void tec_lower_pictures(struct tec_lower *l, int x, int at)
{
    const struct tec_model_program *p = l->model->vision.project;
    struct tec_built b;
    if (!tec_built_begin(&b, l, p, l->weights->project))
        return;
    b.x = x;
    b.x_row = l->deep_row = at;
    tec_built_calls(&b, 0, p->n, false);
    if (!b.settled[p->result])
        tec_lower_copy(l, b.tensor[p->result], x, at, "projector");
    tec_lower_tap(l, b.settled[p->result] ? -1 : b.tensor[p->result], "vision.projector");
}
