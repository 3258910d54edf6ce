#include "base/arena.h"
#include "base/store/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utf8proc.h>

enum { MAX_TRIES = 100 };

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

/* A JSON string; only quotes, backslashes and control characters need escapes. */
static void put_string(FILE *f, const char *s)
{
    fputc('"', f);
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            fprintf(f, "\\%c", *s);
        else if ((unsigned char)*s < 0x20)
            fprintf(f, "\\u%04x", (unsigned)*s);
        else
            fputc(*s, f);
    }
    fputc('"', f);
}

static void put_entry(FILE *f, const struct tec_tensor_entry *e, uint64_t begin, uint64_t bytes)
{
    put_string(f, e->name);
    fprintf(f, ":{\"dtype\":\"%s\",\"shape\":[", tec_dtype_name(e->dtype));
    for (int i = 0; i < e->rank; i++)
        fprintf(f, "%s%" PRId64, i ? "," : "", e->shape[i]);
    fprintf(f, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", begin, begin + bytes);
}

/* The header's length is known when it is written: it goes in last, over the eight zeros. */
static enum tec_status put_all(FILE *f, const struct tec_tensor_entry *const *order, size_t n,
                               struct tec_error *err)
{
    uint64_t begin = 0, bytes = 0;
    unsigned char length[8] = {0};
    fwrite(length, 1, sizeof length, f);
    fputc('{', f);
    for (size_t i = 0; i < n; i++, begin += bytes) {
        TEC_TRY(entry_bytes(order[i], &bytes, err));
        if (i)
            fputc(',', f);
        put_entry(f, order[i], begin, bytes);
    }
    fputc('}', f);
    long end = ftell(f);
    for (; end > 0 && end % 8; end++)
        fputc(' ', f);
    for (size_t i = 0; i < n; i++) {
        TEC_TRY(entry_bytes(order[i], &bytes, err));
        if (bytes)
            fwrite(order[i]->data, 1, (size_t)bytes, f);
    }
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)(end - 8) >> 8 * i);
    rewind(f);
    fwrite(length, 1, sizeof length, f);
    return ferror(f) || end < 0 ? TEC_IO : TEC_OK;
}

/* A new file beside `path`, so that the rename stays inside one file system. */
static FILE *open_beside(const char *path, char **temporary, struct tec_arena *arena)
{
    for (int i = 0; i < MAX_TRIES; i++) {
        *temporary = tec_arena_printf(arena, "%s.%ld.%d.tmp", path, (long)getpid(), i);
        int fd = *temporary ? open(*temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
        if (fd >= 0)
            return fdopen(fd, "wb");
        if (!*temporary || errno != EEXIST)
            return NULL;
    }
    return NULL;
}

static enum tec_status write_order(const char *path, const struct tec_tensor_entry **order,
                                   size_t n, struct tec_arena *arena, struct tec_error *err)
{
    char *temporary = NULL, why[80] = "";
    qsort(order, n, sizeof(void *), compare_names);
    for (size_t i = 1; i < n; i++)
        if (compare_names(&order[i - 1], &order[i]) == 0)
            return tec_fail(err, TEC_INVALID, "%s: tensor '%.80s' is given twice", path,
                            order[i]->name);
    qsort(order, n, sizeof(void *), compare);
    FILE *f = open_beside(path, &temporary, arena);
    if (!f)
        return tec_fail(err, TEC_IO, "%s: cannot be written: %s", path,
                        strerror_r(errno, why, sizeof why));
    enum tec_status status = put_all(f, order, n, err);
    if (fclose(f) != 0 && status == TEC_OK)
        status = TEC_IO;
    if (status == TEC_OK && rename(temporary, path) != 0)
        status = TEC_IO;
    if (status == TEC_OK)
        return TEC_OK;
    strerror_r(errno, why, sizeof why);
    unlink(temporary);
    if (status == TEC_IO)
        return tec_fail(err, TEC_IO, "%s: cannot be written: %s", path, why);
    return tec_context(err, status, "%s", path);
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
        status = write_order(path, order, n, &arena, err);
    tec_arena_finish(&arena);
    return status;
}
