/* content.c - a hash of tensors by what is in them, wherever they lie: of all their bytes where
 * they are few, else of three parts of each. */
#include "base/store/safetensors.h"
#include "base/store/tensors.h"

#include <fcntl.h>
#include <string.h>

enum { PART = 4096, PARTS = 3, ROOM = 1 << 18 };

/* Of one tensor, what is hashed: part `at` of n. A tensor that is not larger than its parts, or one
 * of a set that is small, is hashed as a whole. */
struct parts {
    int n;
    uint64_t bytes; /* of a part */
    uint64_t step;  /* from one to the next; the last ends with the tensor */
};

static struct parts parts_of(const struct tec_tensors *t, uint64_t whole,
                             const struct tec_stored *stored)
{
    if (t->bytes <= whole || stored->bytes <= (uint64_t)PART * PARTS)
        return (struct parts){1, stored->bytes, 0};
    return (struct parts){PARTS, PART, (stored->bytes - PART) / (PARTS - 1)};
}

static uint64_t begin_of(const struct parts *p, const struct tec_stored *stored, int at)
{
    return at > 0 && at == p->n - 1 ? stored->bytes - p->bytes : (uint64_t)at * p->step;
}

/* The disk is told all that is read, so that it is not waited for once a part. */
static void announce(const struct tec_tensors *t, uint64_t whole)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct tec_stored *stored = t->by_name[i];
        const struct parts p = parts_of(t, whole, stored);
        for (int at = 0; at < p.n && p.bytes; at++)
            (void)posix_fadvise(t->files[stored->file].fd,
                                (off_t)(stored->begin + begin_of(&p, stored, at)), (off_t)p.bytes,
                                POSIX_FADV_WILLNEED);
    }
}

static enum tec_status add_data(XXH3_state_t *hash, const struct tec_tensors *t, uint64_t whole,
                                const struct tec_stored *stored, unsigned char *buffer,
                                struct tec_error *err)
{
    const struct parts p = parts_of(t, whole, stored);
    for (int at = 0; at < p.n; at++) {
        uint64_t from = begin_of(&p, stored, at), end = from + p.bytes;
        while (from < end) {
            size_t n = end - from < ROOM ? (size_t)(end - from) : ROOM;
            TEC_TRY(tec_tensors_read(t, stored, from, buffer, n, err));
            XXH3_128bits_update(hash, buffer, n);
            from += n;
        }
    }
    return TEC_OK;
}

static enum tec_status add(XXH3_state_t *hash, const struct tec_tensors *t, uint64_t whole,
                           const struct tec_stored *stored, unsigned char *buffer,
                           struct tec_error *err)
{
    uint64_t form[2 + TEC_HEADER_MAX_RANK] = {stored->bytes, (uint64_t)stored->rank};
    const char *dtype = tec_dtype_name(stored->dtype);
    for (int d = 0; d < stored->rank; d++)
        form[2 + d] = (uint64_t)stored->shape[d];
    XXH3_128bits_update(hash, stored->name, strlen(stored->name) + 1);
    XXH3_128bits_update(hash, dtype, strlen(dtype) + 1);
    XXH3_128bits_update(hash, form, sizeof form);
    return add_data(hash, t, whole, stored, buffer, err);
}

enum tec_status tec_tensors_content(const struct tec_tensors *t, uint64_t whole, uint64_t out[2],
                                    struct tec_heap *heap, struct tec_error *err)
{
    unsigned char *buffer = tec_heap_get(heap, ROOM);
    XXH3_state_t *hash = XXH3_createState();
    enum tec_status status =
        buffer && hash ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory to name tensors");
    if (status == TEC_OK) {
        XXH3_128bits_reset(hash);
        announce(t, whole);
    }
    for (size_t i = 0; status == TEC_OK && i < t->n; i++)
        status = add(hash, t, whole, t->by_name[i], buffer, err);
    if (status == TEC_OK) {
        XXH128_hash_t all = XXH3_128bits_digest(hash);
        out[0] = all.low64;
        out[1] = all.high64;
    }
    XXH3_freeState(hash);
    tec_heap_put(heap, buffer);
    return status;
}
