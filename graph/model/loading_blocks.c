/* loading_blocks.c - helpers for loading weights: one reading buffer, blocks of device memory,
 * forms and sizes of matrices. */
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

int tec_weight_loading_group(const struct tec_weight_loading *l, int k)
{
    int group = l->packing ? l->packing->group : TEC_INT4_GROUP;
    return group && group < k ? group : k;
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
    l->out->packed |= form == TEC_FORM_INT8 || form == TEC_FORM_INT4;
    return TEC_OK;
}
