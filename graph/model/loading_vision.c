/* loading_vision.c - what a picture tower's front and its projection have beside other programs:
 * patches, tables of positions, rows in front of patches, columns in another order. */
#include "graph/model/loading.h"
#include "kernels/matrix.h"

#include <string.h>

/* [3, frames, area] to [3, area]: the sum over frames, in float64. */
static void add_frames(const struct tec_model_call *c, float *row)
{
    size_t area = (size_t)c->side * (size_t)c->side, frames = (size_t)c->frames;
    for (size_t channel = 0; channel < 3; channel++)
        for (size_t i = 0; i < area; i++) {
            double sum = 0.0;
            for (size_t f = 0; f < frames; f++)
                sum += (double)row[(channel * frames + f) * area + i];
            row[channel * area + i] = (float)sum;
        }
}

/* A convolution over equal pictures: its weights are added before they are packed. */
static enum tec_status load_frames(struct tec_weight_loading *l, const struct tec_model_call *c,
                                   const struct tec_found *found, struct tec_matrix *m)
{
    const enum tec_matrix_layout layout = tec_device_layout(l->options->device);
    struct tec_device *device = l->options->device;
    int k = 3 * c->side * c->side;
    size_t row = (size_t)k * (size_t)c->frames, size = 0;
    TEC_TRY(tec_weight_loading_reserve(l, (int64_t)row * c->cols));
    TEC_TRY(tec_weight_loading_matrix(l, c->cols, k, TEC_FORM_F32, m));
    if (l->source.dry)
        return TEC_OK;
    TEC_TRY(tec_weight_rows(&l->source, found, 0, c->cols, l->buffer, l->err));
    for (size_t o = 0; o < (size_t)c->cols; o++) {
        add_frames(c, l->buffer + o * row);
        memmove(l->buffer + o * (size_t)k, l->buffer + o * row, (size_t)k * sizeof *l->buffer);
    }
    size = tec_weight_loading_size(l, c->cols, k, TEC_FORM_F32);
    void *packed = tec_device_reads_host(device) ? m->w : tec_heap_get(l->heap, size);
    if (!packed)
        return tec_fail(l->err, TEC_NO_MEMORY, "no memory for a weight of %zu bytes", size);
    memset(packed, 0, size);
    tec_matrix_pack(packed, layout, false, c->cols, k, 0, c->cols, l->buffer);
    if (packed != m->w) {
        tec_device_upload(device, TEC_STREAM_MAIN, m->w, packed, size);
        tec_heap_put(l->heap, packed);
    }
    return tec_device_failure(device, l->err);
}

enum tec_status tec_weight_loading_patch_conv(struct tec_weight_loading *l,
                                              const struct tec_model_call *c, struct tec_matrix *m)
{
    const struct tec_expected e = tec_model_conv_expected(c, 3);
    struct tec_found found = {0};
    TEC_TRY(tec_weight_find(&l->source, &e, &found, l->err));
    if (c->frames > 1)
        TEC_TRY(load_frames(l, c, &found, m));
    else
        TEC_TRY(tec_weight_loading_found(l, &found, 0, TEC_FORM_F32, m));
    return tec_weight_loading_vector(l, c->bias, c->cols, 0.0F, &m->bias);
}

int tec_weight_loading_patches(const struct tec_weight_loading *l,
                               const struct tec_model_program *p, int at)
{
    const struct tec_vision *v = &l->options->model->vision;
    const struct tec_model_call *c = &p->calls[at];
    return c->word == TEC_WORD_grid && v->n_sizes ? tec_vision_patches(v, v->n_sizes) : c->rows;
}

int tec_weight_loading_copies(const struct tec_weight_loading *l, const struct tec_model_program *p,
                              int at)
{
    const struct tec_model_call *c = &p->calls[at];
    int prompts = l->options->prompts > 1 ? l->options->prompts : 1;
    for (int i = c->uses.first; p->tower && i <= c->uses.last && i < p->n; i++)
        if (p->calls[i].word == TEC_WORD_concat && !p->calls[i].constant && p->calls[i].in[0] == at)
            return prompts * l->options->model->n_slots;
    return 1;
}

/* The positions of each slot's patches, interpolated from a table of another grid. */
static void resize_table(const struct tec_weight_loading *l, const struct tec_model_call *c,
                         float *out)
{
    const struct tec_vision *v = &l->options->model->vision;
    for (int s = 0; s < (v->n_sizes ? v->n_sizes : 1); s++) {
        struct tec_picture_size size = tec_vision_picture(v, s);
        struct tec_picture_size grid = {size.h / v->patch, size.w / v->patch};
        tec_model_grid_resize(&(struct tec_grid_table){c->side, c->cols, c->corners, l->buffer},
                              grid, out);
        out += (size_t)grid.h * (size_t)grid.w * (size_t)c->cols;
    }
}

enum tec_status tec_weight_loading_grid(struct tec_weight_loading *l,
                                        const struct tec_model_call *c, float *out)
{
    int rows = c->side * c->side;
    size_t width = (size_t)c->cols;
    struct tec_expected e = {
        .names = {c->weight}, .n_names = 1, .rank = 2, .shape = {rows, c->cols}, .leading = true};
    struct tec_found found = {0};
    TEC_TRY(tec_weight_find(&l->source, &e, &found, l->err));
    TEC_TRY(tec_weight_loading_reserve(l, (int64_t)rows * c->cols));
    if (l->source.dry)
        return TEC_OK;
    TEC_TRY(tec_weight_rows(&l->source, &found, 0, rows, l->buffer, l->err));
    if (c->smooth || c->corners)
        resize_table(l, c, out);
    for (int r = 0; r < c->rows && !c->smooth && !c->corners; r++)
        memcpy(out + (size_t)r * width,
               l->buffer + (size_t)tec_model_grid_row(c->side, c->rows, r) * width,
               width * sizeof *out);
    return TEC_OK;
}

enum tec_status tec_weight_loading_turned(struct tec_weight_loading *l,
                                          const struct tec_model_call *c, int k, int turn,
                                          struct tec_matrix *m)
{
    struct tec_expected e = {.names = {c->weight}, .n_names = 1, .rank = 2, .shape = {c->cols, k}};
    struct tec_found found = {0};
    TEC_TRY(tec_weight_find(&l->source, &e, &found, l->err));
    TEC_TRY(tec_weight_loading_found(l, &found, turn, tec_weight_loading_form(l, c->bf16, k), m));
    return tec_weight_loading_vector(l, c->bias, c->cols, 0.0F, &m->bias);
}

/* The matrix by the columns of each tower: what they give is added, the bias once. */
enum tec_status tec_weight_loading_beside(struct tec_weight_loading *l,
                                          const struct tec_model_program *p,
                                          const struct tec_model_call *c,
                                          struct tec_call_weights *w)
{
    const struct tec_model_call *x = &p->calls[c->in[0]];
    struct tec_expected e = {
        .names = {c->weight}, .n_names = 1, .rank = 2, .shape = {c->cols, x->cols}};
    struct tec_found found = {0};
    TEC_TRY(tec_weight_find(&l->source, &e, &found, l->err));
    for (int i = 0, from = 0; i < 2; i++) {
        struct tec_matrix *m = i ? &w->beside : &w->matrix;
        int cols = p->calls[x->in[i]].cols;
        enum tec_form form = tec_weight_loading_form(l, c->bf16, cols);
        TEC_TRY(tec_weight_loading_matrix(l, c->cols, cols, form, m));
        TEC_TRY(tec_weight_loading_pack(l, &found, m->w,
                                        (struct tec_packed_columns){from, cols, form, 0}));
        if (i == 0)
            TEC_TRY(tec_weight_loading_vector(l, c->bias, c->cols, 0.0F, &m->bias));
        from += cols;
    }
    return TEC_OK;
}

enum tec_status tec_weight_loading_times(struct tec_weight_loading *l, double times, int cols,
                                         const float **out)
{
    int n = tec_padded(cols);
    void *block = NULL;
    TEC_TRY(tec_weight_loading_reserve(l, n));
    TEC_TRY(tec_weight_loading_block(l, (size_t)n * 4, &block));
    *out = block;
    if (l->source.dry)
        return TEC_OK;
    for (int i = 0; i < n; i++)
        l->buffer[i] = (float)times;
    tec_device_upload(l->options->device, TEC_STREAM_MAIN, block, l->buffer, (size_t)n * 4);
    return tec_device_failure(l->options->device, l->err);
}

enum tec_status tec_weight_loading_turned_vector(struct tec_weight_loading *l, const char *name,
                                                 int n, float centre, int turn, const float **out)
{
    void *block = NULL;
    if (!turn || !name)
        return tec_weight_loading_vector(l, name, n, centre, out);
    TEC_TRY(tec_weight_loading_reserve(l, 2 * (int64_t)n));
    TEC_TRY(tec_weight_loading_block(l, (size_t)tec_padded(n) * 4, &block));
    TEC_TRY(tec_weight_vector(&l->source, name, n, centre, l->buffer, l->err));
    *out = block;
    if (l->source.dry)
        return TEC_OK;
    tec_packer_turn(l->buffer, n, turn, l->buffer + n);
    tec_device_upload(l->options->device, TEC_STREAM_MAIN, block, l->buffer, (size_t)n * 4);
    return tec_device_failure(l->options->device, l->err);
}
