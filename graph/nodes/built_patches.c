/* built_patches.c - the words of a tower's front, from pixels to the rows of its layers; and
 * squares of patches.
 *
 * Rows in front of the patches of all pictures stand before the patches of all of them. */
#include "graph/nodes/built.h"
#include "kernels/matrix.h"

#include <string.h>

static int tower_of(const struct tec_built *b)
{
    return (int)(b->text->tower - b->l->model->vision.towers);
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
    int tower = tower_of(b), pictures = tec_lower_most_pictures(l), cols = 3 * v->patch * v->patch;
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
    int first = tec_lower_most_pictures(l) * b->p->before, ld = tec_padded(c->cols);
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
    call.args.take.round = c->rounded && l->round && !l->spares;
    tec_program_call(l->program, &call);
    return call.out[0];
}
