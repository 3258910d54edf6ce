/* write.c - a safetensors file from tensors in memory. */
#include "base/arena.h"
#include "base/out_file.h"
#include "base/store/safetensors.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* Widest first, then by name, so that data stays aligned; equal widths by their place in dtype.def,
 * later first. The reference writer's order, but that BOOL is not behind the types below a byte. */
static int compare(const void *a, const void *b)
{
    const struct tec_tensor_entry *x = *(const struct tec_tensor_entry *const *)a;
    const struct tec_tensor_entry *y = *(const struct tec_tensor_entry *const *)b;
    int wider = tec_dtype_bits(y->dtype) - tec_dtype_bits(x->dtype);
    if (wider)
        return wider;
    if (x->dtype != y->dtype)
        return x->dtype > y->dtype ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(const struct tec_tensor_entry *const *)a)->name,
                  (*(const struct tec_tensor_entry *const *)b)->name);
}

static bool is_utf8(const char *s)
{
    for (utf8proc_int32_t code; *s;) {
        utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)s, -1, &code);
        if (n < 1)
            return false;
        s += n;
    }
    return true;
}

static enum tec_status entry_bytes(const struct tec_tensor_entry *e, uint64_t *bytes,
                                   struct tec_error *err)
{
    uint64_t n = (uint64_t)tec_dtype_bits(e->dtype);
    bool good = n && e->rank >= 0 && e->rank <= TEC_HEADER_MAX_RANK && is_utf8(e->name) &&
                strcmp(e->name, "__metadata__") != 0;
    for (int i = 0; good && i < e->rank; i++)
        good = e->shape[i] >= 0 && !__builtin_mul_overflow(n, (uint64_t)e->shape[i], &n);
    *bytes = n / 8;
    if (good && n % 8 == 0 && n <= INT64_MAX && (e->data || n == 0))
        return TEC_OK;
    return tec_fail(err, TEC_INVALID, "tensor '%.80s': its name, dtype or shape cannot be stored",
                    e->name);
}

/* The header's text: counted first, for its length stands before it, then written. */
struct header {
    FILE *f; /* NULL: only counted */
    size_t n;
};

__attribute__((format(printf, 2, 3))) static void put(struct header *h, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (h->f)
        fwrite(text, 1, (size_t)n, h->f);
    h->n += (size_t)n;
}

/* A JSON string; only quotes, backslashes and control characters need escapes. */
static void put_string(struct header *h, const char *s)
{
    put(h, "\"");
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            put(h, "\\%c", *s);
        else if ((unsigned char)*s < 0x20)
            put(h, "\\u%04x", (unsigned)*s);
        else
            put(h, "%c", *s);
    }
    put(h, "\"");
}

static enum tec_status put_header(struct header *h, const struct tec_tensor_entry *const *order,
                                  size_t n, struct tec_error *err)
{
    uint64_t begin = 0, bytes = 0;
    put(h, "{");
    for (size_t i = 0; i < n; i++, begin += bytes) {
        const struct tec_tensor_entry *e = order[i];
        TEC_TRY(entry_bytes(e, &bytes, err));
        put(h, i ? "," : "");
        put_string(h, e->name);
        put(h, ":{\"dtype\":\"%s\",\"shape\":[", tec_dtype_name(e->dtype));
        for (int k = 0; k < e->rank; k++)
            put(h, "%s%" PRId64, k ? "," : "", e->shape[k]);
        put(h, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", begin, begin + bytes);
    }
    put(h, "}");
    while (h->n % 8)
        put(h, " ");
    return TEC_OK;
}

static enum tec_status put_all(FILE *f, const struct tec_tensor_entry *const *order, size_t n,
                               struct tec_error *err)
{
    struct header counted = {NULL, 0}, written = {f, 0};
    uint64_t bytes = 0;
    unsigned char length[8];
    TEC_TRY(put_header(&counted, order, n, err));
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)counted.n >> 8 * i);
    fwrite(length, 1, sizeof length, f);
    TEC_TRY(put_header(&written, order, n, err));
    for (size_t i = 0; i < n && !ferror(f); i++) {
        TEC_TRY(entry_bytes(order[i], &bytes, err));
        if (bytes)
            fwrite(order[i]->data, 1, (size_t)bytes, f);
    }
    return TEC_OK;
}

static enum tec_status write_order(const char *path, const struct tec_tensor_entry **order,
                                   size_t n, struct tec_error *err)
{
    struct tec_out_file out = {0};
    qsort(order, n, sizeof(void *), compare_names);
    for (size_t i = 1; i < n; i++)
        if (compare_names(&order[i - 1], &order[i]) == 0)
            return tec_fail(err, TEC_INVALID, "%s: tensor '%.80s' is given twice", path,
                            order[i]->name);
    qsort(order, n, sizeof(void *), compare);
    TEC_TRY(tec_outfile_file_open(&out, path, err));
    enum tec_status status = tec_context(err, put_all(out.file, order, n, err), "%s", path);
    if (status == TEC_OK)
        status = tec_outfile_file_keep(&out, err);
    tec_outfile_file_drop(&out);
    return status;
}

enum tec_status tec_tensors_write(const char *path, const struct tec_tensor_entry *entries,
                                  size_t n, struct tec_heap *heap, struct tec_error *err)
{
    struct tec_arena arena;
    tec_arena_init(&arena, heap);
    const struct tec_tensor_entry **order = TEC_NEW(&arena, n + 1, const struct tec_tensor_entry *);
    enum tec_status status = TEC_OK;
    if (!order)
        status = tec_fail(err, TEC_NO_MEMORY, "%s: no memory for a list of %zu tensors", path, n);
    for (size_t i = 0; order && i < n; i++)
        order[i] = &entries[i];
    if (status == TEC_OK)
        status = write_order(path, order, n, err);
    tec_arena_finish(&arena);
    return status;
}
