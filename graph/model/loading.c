/* loading.c - helpers for loading weights: one reading buffer, blocks of device memory, joined
 * matrices.
 *
 * Runs at load on one thread; the packer uses more. Matrices that share an input (q, k and v, or
 * gate and up) are joined at panel borders into one block, so a single matrix product serves all of
 * them and each part stays a view. */
#include "graph/model/loading.h"

#include "kernels/int4.h"
#include "kernels/matrix.h"

#include <string.h>

enum { BUFFER_FLOATS = 1 << 16, FIRST_BLOCKS = 256 };

/* Room for one more block in the lists of blocks and sizes. */
static enum tec_status grow(struct tec_weight_loading *l)
{
    struct tec_weights *w = l->out;
    int room = w->block_room ? 2 * w->block_room : FIRST_BLOCKS;
    if (w->n_blocks < w->block_room)
        return TEC_OK;
    void **blocks = TEC_NEW(&w->arena, (size_t)room, void *);
    size_t *sizes = TEC_NEW(&w->arena, (size_t)room, size_t);
    if (!blocks || !sizes)
        return tec_fail(l->err, TEC_NO_MEMORY, "no memory for %d weight blocks", room);
    if (w->n_blocks) {
        memcpy(blocks, w->blocks, (size_t)w->n_blocks * sizeof *blocks);
        memcpy(sizes, w->sizes, (size_t)w->n_blocks * sizeof *sizes);
    }
    w->blocks = blocks;
    w->sizes = sizes;
    w->block_room = room;
    return TEC_OK;
}

/* The next block of a kept file: where it lies, or copied to the device. */
static enum tec_status take_kept(struct tec_weight_loading *l, size_t size, void **block)
{
    struct tec_device *device = l->options->device;
    int at = l->out->n_blocks;
    size_t bytes = 0;
    const void *from = at < tec_blocks_count(l->kept) ? tec_blocks_at(l->kept, at, &bytes) : NULL;
    if (!from || bytes != size)
        return tec_fail(l->err, TEC_MALFORMED, "has %zu bytes in block %d, not %zu", bytes, at,
                        size);
    *block = NULL;
    if (tec_device_reads_host(device)) {
        *block = (void *)(uintptr_t)from; /* nothing writes to weights */
        return TEC_OK;
    }
    *block = tec_device_get(device, size);
    if (*block)
        tec_device_upload(device, TEC_STREAM_MAIN, *block, from, size);
    return TEC_OK;
}

enum tec_status tec_weight_loading_block(struct tec_weight_loading *l, size_t size, void **block)
{
    struct tec_weights *w = l->out;
    TEC_TRY(grow(l));
    if (l->kept)
        TEC_TRY(take_kept(l, size, block));
    else
        *block = tec_device_get(l->options->device, size);
    if (!*block)
        return tec_fail(l->err, TEC_NO_MEMORY,
                        "no memory for weights: %zu more bytes after %lld; the device has no more",
                        size, (long long)w->bytes);
    w->sizes[w->n_blocks] = size;
    w->blocks[w->n_blocks++] = *block;
    w->bytes += (int64_t)size;
    if (l->options->progress)
        l->options->progress(l->options->user, w->bytes);
    return TEC_OK;
}

/* A buffer of at least n floats; what was in it is lost. A dry run reads nothing. */
enum tec_status tec_weight_loading_reserve(struct tec_weight_loading *l, int64_t n)
{
    if (n <= l->buffer_floats || l->source.dry)
        return TEC_OK;
    tec_heap_put(l->heap, l->buffer);
    l->buffer_floats = n > BUFFER_FLOATS ? n : BUFFER_FLOATS;
    l->buffer = tec_heap_get(l->heap, (size_t)l->buffer_floats * sizeof(float));
    if (!l->buffer)
        return tec_fail(l->err, TEC_NO_MEMORY, "no memory for a buffer of %lld floats",
                        (long long)l->buffer_floats);
    return TEC_OK;
}

enum tec_status tec_weight_loading_vector(struct tec_weight_loading *l, const char *name, int n,
                                          float centre, const float **out)
{
    *out = NULL;
    if (!name)
        return TEC_OK;
    void *block = NULL;
    TEC_TRY(tec_weight_loading_reserve(l, n));
    TEC_TRY(tec_weight_loading_block(l, (size_t)tec_padded(n) * 4, &block));
    TEC_TRY(tec_weight_vector(&l->source, name, n, centre, l->buffer, l->err));
    if (!l->source.dry)
        tec_device_upload(l->options->device, TEC_STREAM_MAIN, block, l->buffer, (size_t)n * 4);
    *out = block;
    return TEC_OK;
}

static enum tec_matrix_layout layout_of(const struct tec_weight_loading *l)
{
    return tec_device_layout(l->options->device);
}

enum tec_form tec_weight_loading_form(const struct tec_weight_loading *l, bool rounded, int k)
{
    if (l->packing)
        return TEC_FORM_INT4;
    if (rounded && l->options->quantize == TEC_QUANTIZE_INT8)
        return TEC_FORM_INT8;
    if (rounded && l->options->quantize == TEC_QUANTIZE_INT4 && k % TEC_INT4_DEEP == 0)
        return TEC_FORM_INT4;
    return rounded && l->options->bf16 ? TEC_FORM_BF16 : TEC_FORM_F32;
}

size_t tec_weight_loading_size(const struct tec_weight_loading *l, int rows, int k,
                               enum tec_form form)
{
    if (form == TEC_FORM_INT4)
        return tec_int4_size(tec_padded(rows), k, tec_weight_loading_group(l, k));
    return tec_packed_size(layout_of(l), form, rows, k);
}

enum tec_status tec_weight_loading_matrix(struct tec_weight_loading *l, int rows, int k,
                                          enum tec_form form, struct tec_matrix *m)
{
    void *w = NULL;
    TEC_TRY(tec_weight_loading_block(l, tec_weight_loading_size(l, rows, k, form), &w));
    *m = (struct tec_matrix){.w = w, .n = tec_padded(rows), .k = k, .cols = rows, .form = form};
    if (form == TEC_FORM_INT4)
        m->group = tec_weight_loading_group(l, k);
    return TEC_OK;
}

enum tec_status tec_weight_loading_pack(struct tec_weight_loading *l, const struct tec_found *found,
                                        void *to, struct tec_packed_columns columns)
{
    return tec_packer_rows(&l->packer, found, columns, to, l->err);
}

enum tec_status tec_weight_loading_found(struct tec_weight_loading *l,
                                         const struct tec_found *found, int turn,
                                         enum tec_form form, struct tec_matrix *m)
{
    TEC_TRY(tec_weight_loading_matrix(l, (int)found->rows, (int)found->cols, form, m));
    return tec_weight_loading_pack(l, found, m->w,
                                   (struct tec_packed_columns){0, (int)found->cols, form, turn});
}

/* Piece i's weight and bias: the tensors of their names, or for a joined matrix rows of one tensor.
 */
static enum tec_status load_piece(struct tec_weight_loading *l, const struct tec_piece *piece,
                                  int k, int total, struct tec_packed_columns columns, void *w,
                                  float *bias)
{
    struct tec_expected e = {.names = {piece->weight},
                             .n_names = 1,
                             .rank = 2,
                             .shape = {total ? total : piece->rows, k}};
    struct tec_found found = {0};
    int first = total ? piece->first : 0, n = total ? total : piece->rows;
    TEC_TRY(tec_weight_find(&l->source, &e, &found, l->err));
    found.first = first;
    found.rows = piece->rows;
    TEC_TRY(tec_weight_loading_pack(l, &found, w, columns));
    TEC_TRY(tec_weight_loading_reserve(l, n));
    TEC_TRY(tec_weight_vector(&l->source, piece->bias, n, 0.0F, l->buffer, l->err));
    if (bias && !l->source.dry)
        tec_device_upload(l->options->device, TEC_STREAM_MAIN, bias, l->buffer + first,
                          (size_t)piece->rows * 4);
    return TEC_OK;
}

/* Joined matrices of inner length k; at[i] is the first column of piece i. `total` > 0: they are
 * rows of one tensor that has so many. */
enum tec_status tec_weight_loading_pieces(struct tec_weight_loading *l,
                                          const struct tec_piece *pieces, int n, int k, int total,
                                          enum tec_form form, struct tec_matrix *m, int *at)
{
    int rows = 0;
    bool biased = false;
    for (int i = 0; i < n; i++) {
        at[i] = rows;
        rows += tec_padded(pieces[i].rows);
        biased |= pieces[i].bias != NULL;
    }
    void *bias = NULL;
    TEC_TRY(tec_weight_loading_matrix(l, rows, k, form, m));
    if (biased)
        TEC_TRY(tec_weight_loading_block(l, (size_t)rows * 4, &bias));
    m->bias = bias;
    if (n == 1)
        m->cols = pieces[0].rows;
    if (l->packing)
        return tec_weight_loading_packed(l, pieces, n, k, at, m, bias);
    for (int i = 0; i < n; i++)
        TEC_TRY(load_piece(l, &pieces[i], k, total, (struct tec_packed_columns){0, k, form, 0},
                           (char *)m->w + tec_weight_loading_size(l, at[i], k, form),
                           biased ? (float *)bias + at[i] : NULL));
    return TEC_OK;
}

enum tec_status tec_weight_loading_dense(struct tec_weight_loading *l, const struct tec_dense *d,
                                         enum tec_form form, struct tec_matrix *m)
{
    int at;
    if (!d->weight)
        return TEC_OK;
    struct tec_piece piece = {d->weight, d->bias, d->rows, 0};
    return tec_weight_loading_pieces(l, &piece, 1, d->cols, 0, form, m, &at);
}
