/* loading_sums.c - the tables of texts that become one vector: positions, types, distances. */
#include "graph/model/loading.h"
#include "kernels/matrix.h"

/* Rows of a table as float32 [rows, ld] in device memory. */
static enum tec_status load_table(struct tec_weight_loading *l, const char *name, int rows,
                                  int width, const float **out)
{
    struct tec_expected e = {.names = {name}, .n_names = 1, .rank = 2, .shape = {rows, width}};
    struct tec_found found = {0};
    void *block = NULL;
    size_t ld = (size_t)tec_padded(width);
    TEC_TRY(tec_weight_find(&l->source, &e, &found, l->err));
    TEC_TRY(tec_weight_loading_reserve(l, width));
    TEC_TRY(tec_weight_loading_block(l, (size_t)rows * ld * sizeof(float), &block));
    for (int r = 0; r < rows && !l->source.dry; r++) {
        TEC_TRY(tec_weight_rows(&l->source, &found, r, 1, l->buffer, l->err));
        tec_device_upload(l->options->device, TEC_STREAM_MAIN, (float *)block + (size_t)r * ld,
                          l->buffer, (size_t)width * sizeof(float));
    }
    *out = block;
    return TEC_OK;
}

enum tec_status tec_weight_loading_sums(struct tec_weight_loading *l, const struct tec_text *t)
{
    struct tec_weights *w = l->out;
    w->ld = tec_padded(t->stack.width);
    if (t->position.name)
        TEC_TRY(load_table(l, t->position.name, t->position.rows, t->stack.width, &w->position));
    if (!t->types.name)
        return TEC_OK;
    return load_table(l, t->types.name, t->types.rows, t->stack.width, &w->types);
}

/* The stored table [rows, heads] by bucket becomes one [heads, 2 * reach + 1] by distance: beyond
 * `reach` the bucket stays what it is there. */
enum tec_status tec_weight_loading_relative(struct tec_weight_loading *l,
                                            const struct tec_model_call *c,
                                            struct tec_call_weights *w)
{
    const struct tec_relative *r = &c->relative;
    int heads = c->attend.heads;
    if (!r->name)
        return TEC_OK;
    struct tec_expected e = {
        .names = {r->name}, .n_names = 1, .rank = 2, .shape = {r->rows, heads}};
    struct tec_found found = {0};
    void *block = NULL;
    int width = 2 * r->distance + 1, stored = r->rows * heads;
    TEC_TRY(tec_weight_find(&l->source, &e, &found, l->err));
    TEC_TRY(tec_weight_loading_reserve(l, (int64_t)stored + width));
    TEC_TRY(tec_weight_loading_block(l, (size_t)heads * (size_t)width * sizeof(float), &block));
    w->bias = block;
    w->reach = r->distance;
    if (l->source.dry)
        return TEC_OK;
    TEC_TRY(tec_weight_rows(&l->source, &found, 0, r->rows, l->buffer, l->err));
    float *line = l->buffer + stored;
    for (int h = 0; h < heads; h++) {
        for (int d = -r->distance; d <= r->distance; d++)
            line[d + r->distance] = l->buffer[tec_relative_bucket(r, d) * heads + h];
        tec_device_upload(l->options->device, TEC_STREAM_MAIN,
                          (float *)block + (size_t)h * (size_t)width, line,
                          (size_t)width * sizeof(float));
    }
    return TEC_OK;
}
