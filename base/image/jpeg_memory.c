/* jpeg_memory.c - libjpeg's memory manager over an arena.
 *
 * The library's own manager calls malloc and may spill to temporary files. This one keeps whole
 * pictures in memory (their size was checked before) and counts and bounds every byte by the heap
 * of the arena. The two virtual array types are opaque to the library, so they are defined here. */
#include "base/image/decode.h"

#include <jerror.h>

/* Rows are padded to whole vectors, as the library's SIMD code writes past the last sample. */
enum { ROW_BYTES = 64 };

struct jvirt_sarray_control {
    JSAMPARRAY rows;
    JDIMENSION per_row, n_rows;
    struct jvirt_sarray_control *next;
};

struct jvirt_barray_control {
    JBLOCKARRAY rows;
    JDIMENSION per_row, n_rows;
    struct jvirt_barray_control *next;
};

static struct tec_jpeg_memory *memory_of(j_common_ptr cinfo)
{
    return cinfo->client_data;
}

static void *take(j_common_ptr cinfo, size_t count, size_t size)
{
    struct tec_jpeg_memory *memory = memory_of(cinfo);
    void *p = tec_arena_push(memory->arena, count, size, ROW_BYTES);
    if (!p) {
        memory->refused = true;
        ERREXIT1(cinfo, JERR_OUT_OF_MEMORY, 0);
    }
    return p;
}

static void *alloc(j_common_ptr cinfo, int pool, size_t size)
{
    (void)pool;
    return take(cinfo, 1, size);
}

static JSAMPARRAY alloc_sarray(j_common_ptr cinfo, int pool, JDIMENSION per_row, JDIMENSION n_rows)
{
    (void)pool;
    size_t stride = ((size_t)per_row + ROW_BYTES - 1) / ROW_BYTES * ROW_BYTES;
    JSAMPARRAY rows = take(cinfo, n_rows, sizeof *rows);
    JSAMPLE *samples = take(cinfo, n_rows, stride * sizeof *samples);
    for (JDIMENSION i = 0; i < n_rows; i++)
        rows[i] = samples + i * stride;
    return rows;
}

static JBLOCKARRAY alloc_barray(j_common_ptr cinfo, int pool, JDIMENSION per_row, JDIMENSION n_rows)
{
    (void)pool;
    JBLOCKARRAY rows = take(cinfo, n_rows, sizeof(JBLOCKROW));
    JBLOCK *blocks = take(cinfo, n_rows, per_row * sizeof *blocks);
    for (JDIMENSION i = 0; i < n_rows; i++)
        rows[i] = blocks + (size_t)i * per_row;
    return rows;
}

static jvirt_sarray_ptr request_sarray(j_common_ptr cinfo, int pool, boolean zero,
                                       JDIMENSION per_row, JDIMENSION n_rows, JDIMENSION max_access)
{
    (void)pool, (void)zero, (void)max_access;
    struct jvirt_sarray_control *array = take(cinfo, 1, sizeof *array);
    *array = (struct jvirt_sarray_control){NULL, per_row, n_rows, memory_of(cinfo)->samples};
    return memory_of(cinfo)->samples = array;
}

static jvirt_barray_ptr request_barray(j_common_ptr cinfo, int pool, boolean zero,
                                       JDIMENSION per_row, JDIMENSION n_rows, JDIMENSION max_access)
{
    (void)pool, (void)zero, (void)max_access;
    struct jvirt_barray_control *array = take(cinfo, 1, sizeof *array);
    *array = (struct jvirt_barray_control){NULL, per_row, n_rows, memory_of(cinfo)->blocks};
    return memory_of(cinfo)->blocks = array;
}

static void realize(j_common_ptr cinfo)
{
    struct tec_jpeg_memory *memory = memory_of(cinfo);
    for (struct jvirt_sarray_control *a = memory->samples; a; a = a->next)
        a->rows = alloc_sarray(cinfo, JPOOL_IMAGE, a->per_row, a->n_rows);
    for (struct jvirt_barray_control *a = memory->blocks; a; a = a->next)
        a->rows = alloc_barray(cinfo, JPOOL_IMAGE, a->per_row, a->n_rows);
    memory->samples = NULL;
    memory->blocks = NULL;
}

static JSAMPARRAY access_sarray(j_common_ptr cinfo, jvirt_sarray_ptr array, JDIMENSION start,
                                JDIMENSION n, boolean writable)
{
    (void)writable;
    if (!array->rows || start > array->n_rows || n > array->n_rows - start)
        ERREXIT(cinfo, JERR_BAD_VIRTUAL_ACCESS);
    return array->rows + start;
}

static JBLOCKARRAY access_barray(j_common_ptr cinfo, jvirt_barray_ptr array, JDIMENSION start,
                                 JDIMENSION n, boolean writable)
{
    (void)writable;
    if (!array->rows || start > array->n_rows || n > array->n_rows - start)
        ERREXIT(cinfo, JERR_BAD_VIRTUAL_ACCESS);
    return array->rows + start;
}

static void free_pool(j_common_ptr cinfo, int pool)
{
    (void)cinfo, (void)pool;
}

static void self_destruct(j_common_ptr cinfo)
{
    (void)cinfo;
}

void tec_jpeg_memory_init(struct tec_jpeg_memory *memory, struct tec_arena *arena)
{
    *memory = (struct tec_jpeg_memory){
        .methods = {.alloc_small = alloc,
                    .alloc_large = alloc,
                    .alloc_sarray = alloc_sarray,
                    .alloc_barray = alloc_barray,
                    .request_virt_sarray = request_sarray,
                    .request_virt_barray = request_barray,
                    .realize_virt_arrays = realize,
                    .access_virt_sarray = access_sarray,
                    .access_virt_barray = access_barray,
                    .free_pool = free_pool,
                    .self_destruct = self_destruct,
                    .max_alloc_chunk = 1000000000L},
        .arena = arena,
    };
}
