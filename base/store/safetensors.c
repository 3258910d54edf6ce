/* safetensors.c - the files of a set of tensors: adds, lists, finds and reads them. */
#include "base/store/safetensors.h"

#include "base/store/file.h"
#include "base/store/tensors.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum tec_status tec_tensors_no_memory(const char *path, struct tec_error *err)
{
    return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for its list of tensors", path);
}

/* Read the eight length bytes, or report why they cannot be right. */
static enum tec_status header_length(const struct tec_tensors_file *f, uint64_t *length,
                                     struct tec_error *err)
{
    unsigned char head[64];
    size_t n = f->bytes < sizeof head ? (size_t)f->bytes : sizeof head;
    *length = 0;
    TEC_TRY(tec_path_read(f->fd, f->path, 0, head, n, err));
    for (int i = 0; i < 8 && n >= 8; i++)
        *length |= (uint64_t)head[i] << 8 * i;
    if (n >= 8 && *length <= f->bytes - 8 && *length <= TEC_HEADER_MAX_BYTES)
        return TEC_OK;
    const char *kind = tec_path_kind_of_head(head, n);
    if (kind)
        return tec_fail(err, TEC_MALFORMED, "%s: is %s", f->path, kind);
    if (n < 8)
        return tec_fail(err, TEC_MALFORMED,
                        "%s: %zu bytes are too few for a safetensors file: download it again",
                        f->path, n);
    return tec_fail(err, TEC_MALFORMED,
                    "%s: its first 8 bytes tell a header of %llu bytes, but the file has %llu and "
                    "the limit is %d: not a safetensors file, or cut short",
                    f->path, (unsigned long long)*length, (unsigned long long)f->bytes,
                    TEC_HEADER_MAX_BYTES);
}

static enum tec_status read_header(struct tec_tensors *t, struct tec_tensors_file *f,
                                   struct tec_error *err)
{
    uint64_t length;
    TEC_TRY(header_length(f, &length, err));
    void *json = tec_heap_get(t->heap, (size_t)length);
    if (!json)
        return tec_tensors_no_memory(f->path, err);
    enum tec_status status = tec_path_read(f->fd, f->path, 8, json, (size_t)length, err);
    if (status == TEC_OK) {
        status = tec_header_parse(&f->header, json, (size_t)length, f->bytes, &t->arena, err);
        tec_context(err, status, "%s", f->path);
    }
    if (status == TEC_OK) {
        /* The hash is a chain instead of a streaming state: each file's link hashes the one before
         * it. */
        XXH128_canonical_t link[2];
        uint64_t sizes[2] = {f->bytes, length};
        XXH128_canonicalFromHash(&link[0], t->hash);
        XXH128_canonicalFromHash(&link[1], XXH3_128bits(json, (size_t)length));
        t->hash = XXH3_128bits_withSeed(link, sizeof link, XXH3_64bits(sizes, sizeof sizes));
    }
    tec_heap_put(t->heap, json);
    return status;
}

enum tec_status tec_tensors_add(struct tec_tensors *t, const char *path, struct tec_error *err)
{
    struct tec_tensors_file *f = &t->files[t->n_files];
    f->path = tec_arena_strdup(&t->arena, path);
    if (!f->path)
        return tec_tensors_no_memory(path, err);
    TEC_TRY(tec_path_open(f->path, &f->fd, &f->bytes, err));
    t->n_files++;
    TEC_TRY(read_header(t, f, err));
    for (size_t i = 0; i < f->header.n_tensors; i++)
        f->header.tensors[i].file = t->n_files - 1;
    return TEC_OK;
}

static int compare(const void *a, const void *b)
{
    return strcmp((*(struct tec_stored *const *)a)->name, (*(struct tec_stored *const *)b)->name);
}

enum tec_status tec_tensors_sort(struct tec_tensors *t, struct tec_error *err)
{
    t->by_name = TEC_NEW(&t->arena, t->n, struct tec_stored *);
    if (!t->by_name)
        return tec_tensors_no_memory(t->files[0].path, err);
    for (size_t i = 0; i < t->n; i++)
        t->by_name[i] = &t->tensors[i];
    qsort(t->by_name, t->n, sizeof(void *), compare);
    return TEC_OK;
}

static enum tec_status grow(struct tec_tensors *t, const char *path, struct tec_error *err)
{
    struct tec_tensors_file *files =
        TEC_NEW(&t->arena, (size_t)t->n_files + 1, struct tec_tensors_file);
    if (!files)
        return tec_tensors_no_memory(path, err);
    memcpy(files, t->files, (size_t)t->n_files * sizeof *files);
    t->files = files;
    return TEC_OK;
}

enum tec_status tec_tensors_join(struct tec_tensors *t, const char *path, const char *prefix,
                                 struct tec_error *err)
{
    TEC_TRY(grow(t, path, err));
    TEC_TRY(tec_tensors_add(t, path, err));
    const struct tec_header *header = &t->files[t->n_files - 1].header;
    struct tec_stored *all = TEC_NEW(&t->arena, t->n + header->n_tensors + 1, struct tec_stored);
    if (!all)
        return tec_tensors_no_memory(path, err);
    if (t->n)
        memcpy(all, t->tensors, t->n * sizeof *all);
    for (size_t i = 0; i < header->n_tensors; i++) {
        struct tec_stored *s = &all[t->n + i];
        *s = header->tensors[i];
        s->name = tec_arena_printf(&t->arena, "%s%s", prefix, s->name);
        if (!s->name)
            return tec_tensors_no_memory(path, err);
        if (tec_tensors_find(t, s->name))
            return tec_fail(err, TEC_MALFORMED, "%s: tensor '%.80s' is there already", path,
                            s->name);
        t->bytes += s->bytes;
    }
    t->tensors = all;
    t->n += header->n_tensors;
    return tec_tensors_sort(t, err);
}

void tec_tensors_close(struct tec_tensors *t)
{
    if (!t)
        return;
    for (int i = 0; i < t->n_files; i++)
        close(t->files[i].fd);
    tec_arena_finish(&t->arena);
    tec_heap_put(t->heap, t);
}

size_t tec_tensors_count(const struct tec_tensors *t)
{
    return t ? t->n : 0;
}

const struct tec_stored *tec_tensors_at(const struct tec_tensors *t, size_t i)
{
    return &t->tensors[i];
}

const struct tec_stored *tec_tensors_find(const struct tec_tensors *t, const char *name)
{
    size_t low = 0, high = tec_tensors_count(t);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, t->by_name[middle]->name);
        if (order == 0)
            return t->by_name[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const struct tec_metadata *tec_tensors_metadata_entry(const struct tec_tensors *t, const char *key)
{
    for (int f = 0; f < t->n_files; f++) {
        const struct tec_header *h = &t->files[f].header;
        for (size_t i = 0; i < h->n_metadata; i++)
            if (strcmp(h->metadata[i].key, key) == 0)
                return &h->metadata[i];
    }
    return NULL;
}

const char *tec_tensors_file(const struct tec_tensors *t, int file)
{
    return file >= 0 && file < t->n_files ? t->files[file].path : "?";
}

enum tec_status tec_tensors_read(const struct tec_tensors *t, const struct tec_stored *stored,
                                 uint64_t offset, void *dst, size_t bytes, struct tec_error *err)
{
    const struct tec_tensors_file *f = &t->files[stored->file];
    if (offset > stored->bytes || bytes > stored->bytes - offset)
        return tec_fail(err, TEC_INVALID,
                        "%s: tensor '%.80s' has %llu bytes; %zu from byte %llu are not inside it",
                        f->path, stored->name, (unsigned long long)stored->bytes, bytes,
                        (unsigned long long)offset);
    enum tec_status status = tec_path_read(f->fd, f->path, stored->begin + offset, dst, bytes, err);
    return tec_context(err, status, "tensor '%.80s'", stored->name);
}

enum tec_status tec_tensors_read_f32(const struct tec_tensors *t, const struct tec_stored *stored,
                                     uint64_t first, float *dst, size_t n, struct tec_error *err)
{
    _Alignas(8) unsigned char buffer[1 << 14];
    uint64_t size = (uint64_t)tec_dtype_bits(stored->dtype) / 8;
    /* Converting no element reports an unsupported type here, once, also for n = 0 and for types
     * whose elements are not whole bytes. */
    enum tec_status status = tec_to_f32(stored->dtype, buffer, dst, 0, err);
    if (status != TEC_OK)
        return tec_context(err, status, "tensor '%.80s'", stored->name);
    if (first > stored->bytes / size)
        return tec_tensors_read(t, stored, UINT64_MAX, dst, n, err);
    if (stored->dtype == TEC_F32 && n <= SIZE_MAX / size)
        return tec_tensors_read(t, stored, first * size, dst, n * size, err);
    for (size_t done = 0, step; done < n; done += step) {
        step = sizeof buffer / size < n - done ? sizeof buffer / size : n - done;
        TEC_TRY(tec_tensors_read(t, stored, (first + done) * size, buffer, step * size, err));
        TEC_TRY(tec_to_f32(stored->dtype, buffer, dst + done, step, err));
    }
    return TEC_OK;
}

uint64_t tec_tensors_bytes(const struct tec_tensors *t)
{
    return t->bytes;
}

void tec_tensors_hash(const struct tec_tensors *t, char text[TEC_HASH_TEXT])
{
    tec_tensors_hash_text(t->hash, text);
}

uint64_t tec_tensors_identity(const struct tec_tensors *t)
{
    uint64_t hash = t->hash.low64 ^ t->hash.high64;
    for (int i = 0; i < t->n_files; i++) {
        struct stat st;
        uint64_t of[6] = {hash};
        if (fstat(t->files[i].fd, &st) == 0) {
            of[1] = (uint64_t)st.st_size;
            of[2] = (uint64_t)st.st_mtim.tv_sec;
            of[3] = (uint64_t)st.st_mtim.tv_nsec;
            of[4] = (uint64_t)st.st_ino;
            of[5] = 1;
        }
        hash = XXH3_64bits(of, sizeof of);
    }
    return hash;
}

void tec_tensors_hash_text(XXH128_hash_t hash, char text[TEC_HASH_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    XXH128_canonical_t bytes;
    XXH128_canonicalFromHash(&bytes, hash);
    for (size_t i = 0; i < sizeof bytes.digest; i++) {
        text[2 * i] = digits[bytes.digest[i] >> 4];
        text[2 * i + 1] = digits[bytes.digest[i] & 15];
    }
    text[TEC_HASH_TEXT - 1] = '\0';
}
