/* loading_vision.c - the towers' tensors and the projector's. */
#include "graph/model/loading.h"
#include "kernels/matrix.h"

/* Which rows of a stored table are read: n of `stored`, by a tower's positions, or the first ones.
 */
struct rows {
    int stored, n;
    const struct tec_tower *tower;
};

/* Rows of a table [rows.stored, width] to `to` [rows.n, ld], device memory. */
static enum tec_status load_rows(struct tec_weight_loading *l, const char *name, struct rows rows,
                                 int width, float *to, int ld)
{
    struct tec_expected e = {
        .names = {name}, .n_names = 1, .rank = 2, .shape = {rows.stored, width}, .leading = true};
    struct tec_found found = {0};
    TEC_TRY(tec_weight_find(&l->source, &e, &found, l->err));
    TEC_TRY(tec_weight_loading_reserve(l, width));
    for (int r = 0; r < rows.n && !l->source.dry; r++) {
        int row = rows.tower ? tec_tower_position(rows.tower, rows.n, r) : r;
        TEC_TRY(tec_weight_rows(&l->source, &found, row, 1, l->buffer, l->err));
        tec_device_upload(l->options->device, TEC_STREAM_MAIN, to + (size_t)r * (size_t)ld,
                          l->buffer, (size_t)width * 4);
    }
    return TEC_OK;
}

/* The positions of each slot's patches, interpolated from a table of another grid. */
static enum tec_status load_smooth(struct tec_weight_loading *l, const struct tec_tower *t,
                                   float *to, int ld)
{
    const struct tec_model *m = l->options->model;
    const struct tec_vision *v = &m->vision;
    int width = t->stack.width, side = t->position_side * t->position_side;
    struct tec_expected e = {
        .names = {t->position}, .n_names = 1, .rank = 2, .shape = {side, width}, .leading = true};
    struct tec_found found = {0};
    TEC_TRY(tec_weight_find(&l->source, &e, &found, l->err));
    TEC_TRY(tec_weight_loading_reserve(l, (int64_t)(side + v->patches) * width));
    if (l->source.dry)
        return TEC_OK;
    TEC_TRY(tec_weight_rows(&l->source, &found, 0, side, l->buffer, l->err));
    float *made = l->buffer + (size_t)side * (size_t)width;
    for (int s = 0, r = 0; s < (v->n_sizes ? v->n_sizes : 1); s++) {
        struct tec_picture_size size = tec_vision_picture(v, s);
        struct tec_picture_size grid = {size.h / v->patch, size.w / v->patch};
        tec_tower_resize(t, grid, l->buffer, made);
        for (int i = 0; i < grid.h * grid.w; i++, r++)
            tec_device_upload(l->options->device, TEC_STREAM_MAIN, to + (size_t)r * (size_t)ld,
                              made + (size_t)i * (size_t)width, (size_t)width * 4);
    }
    return tec_device_failure(l->options->device, l->err);
}

/* The rows before the patches, once for every picture that there can be. */
static enum tec_status load_prefix(struct tec_weight_loading *l, const struct tec_tower *t,
                                   struct tec_tower_weights *w)
{
    void *block = NULL;
    int prompts = l->options->prompts > 1 ? l->options->prompts : 1;
    int slots = prompts * l->options->model->n_slots, at = 0;
    if (!t->prefix_rows)
        return TEC_OK;
    TEC_TRY(tec_weight_loading_block(l, (size_t)slots * (size_t)t->prefix_rows * (size_t)w->ld * 4,
                                     &block));
    for (int s = 0; s < slots; s++)
        for (int i = 0; i < t->n_prefix; i++) {
            float *to = block ? (float *)block + (size_t)at * (size_t)w->ld : NULL;
            int rows = t->prefix[i].rows;
            TEC_TRY(load_rows(l, t->prefix[i].name, (struct rows){rows, rows, NULL}, t->stack.width,
                              to, w->ld));
            at += rows;
        }
    w->prefix = block;
    return TEC_OK;
}

enum tec_status tec_weight_loading_tower(struct tec_weight_loading *l, const struct tec_tower *t,
                                         struct tec_tower_weights *w)
{
    const struct tec_vision *v = &l->options->model->vision;
    struct tec_expected e = {.names = {t->patch_embed.weight},
                             .n_names = 1,
                             .rank = 4,
                             .shape = {t->stack.width, 3, v->patch, v->patch}};
    struct tec_found found = {0};
    int area = v->patch * v->patch;
    if (t->linear)
        e = (struct tec_expected){.names = {t->patch_embed.weight},
                                  .n_names = 1,
                                  .rank = 2,
                                  .shape = {t->stack.width, INT64_C(3) * area}};
    TEC_TRY(tec_weight_find(&l->source, &e, &found, l->err));
    TEC_TRY(tec_weight_loading_found(l, &found, t->linear ? area : 0, TEC_FORM_F32, &w->patch));
    TEC_TRY(
        tec_weight_loading_vector(l, t->patch_embed.bias, t->stack.width, 0.0F, &w->patch.bias));
    void *block = NULL;
    w->ld = tec_padded(t->stack.width);
    int patches = v->n_sizes ? tec_vision_patches(v, v->n_sizes) : v->patches;
    TEC_TRY(tec_weight_loading_block(l, (size_t)patches * (size_t)w->ld * 4, &block));
    const struct rows rows = {t->position_side * t->position_side, v->patches, t};
    TEC_TRY(t->smooth ? load_smooth(l, t, block, w->ld)
                      : load_rows(l, t->position, rows, t->stack.width, block, w->ld));
    w->position = block;
    TEC_TRY(load_prefix(l, t, w));
    return tec_weight_loading_program(l, t->program, &w->calls);
}

/* The factor of the rows that enter the prefix, once for each column: a gate of the last layer. */
static enum tec_status load_scale(struct tec_weight_loading *l, const struct tec_vision *v)
{
    int n = tec_padded(v->projector[v->n_projector - 1].rows);
    void *block = NULL;
    if (v->scale == 1.0F)
        return TEC_OK;
    TEC_TRY(tec_weight_loading_reserve(l, n));
    TEC_TRY(tec_weight_loading_block(l, (size_t)n * 4, &block));
    for (int i = 0; i < n && !l->source.dry; i++)
        l->buffer[i] = v->scale;
    if (!l->source.dry)
        tec_device_upload(l->options->device, TEC_STREAM_MAIN, block, l->buffer, (size_t)n * 4);
    l->out->project_scale = block;
    return TEC_OK;
}

/* A vector of the norm in front, in the order of the columns that it is used on. */
static enum tec_status load_norm(struct tec_weight_loading *l, const char *name, int cols,
                                 float centre, int turn, const float **out)
{
    void *block = NULL;
    if (!turn || !name)
        return tec_weight_loading_vector(l, name, cols, centre, out);
    TEC_TRY(tec_weight_loading_reserve(l, 2 * (int64_t)cols));
    TEC_TRY(tec_weight_loading_block(l, (size_t)tec_padded(cols) * 4, &block));
    TEC_TRY(tec_weight_vector(&l->source, name, cols, centre, l->buffer, l->err));
    *out = block;
    if (l->source.dry)
        return TEC_OK;
    tec_packer_turn(l->buffer, cols, turn, l->buffer + cols);
    tec_device_upload(l->options->device, TEC_STREAM_MAIN, block, l->buffer, (size_t)cols * 4);
    return TEC_OK;
}

/* The first layer by the columns of each tower: what they give is added, the bias once. One layer
 * is small and kept as it is stored; several are rounded as the matrices of layers are. */
enum tec_status tec_weight_loading_projector(struct tec_weight_loading *l,
                                             const struct tec_vision *v)
{
    const struct tec_dense *d = &v->projector[0];
    const bool rounded = v->n_projector > 1;
    int turn = v->planes ? v->towers[0].stack.width : 0;
    struct tec_expected e = {
        .names = {d->weight}, .n_names = 1, .rank = 2, .shape = {d->rows, d->cols}};
    struct tec_found found = {0};
    TEC_TRY(tec_weight_find(&l->source, &e, &found, l->err));
    TEC_TRY(load_norm(l, v->norm.weight, d->cols, 1.0F, turn, &l->out->project_norm));
    TEC_TRY(load_norm(l, v->norm.bias, d->cols, 0.0F, turn, &l->out->project_norm_bias));
    for (int i = 0, from = 0; i < v->n_towers; i++) {
        struct tec_matrix *m = &l->out->towers[i].project;
        int cols = v->towers[i].stack.width * v->shuffle * v->shuffle;
        enum tec_form form = tec_weight_loading_form(l, rounded, cols);
        TEC_TRY(tec_weight_loading_matrix(l, d->rows, cols, form, m));
        TEC_TRY(tec_weight_loading_pack(l, &found, m->w,
                                        (struct tec_packed_columns){from, cols, form, turn}));
        if (i == 0)
            TEC_TRY(tec_weight_loading_vector(l, d->bias, d->rows, 0.0F, &m->bias));
        from += cols;
    }
    for (int i = 1; i < v->n_projector; i++)
        TEC_TRY(tec_weight_loading_dense(l, &v->projector[i],
                                         tec_weight_loading_form(l, rounded, v->projector[i].cols),
                                         &l->out->projector[i]));
    return load_scale(l, v);
}
