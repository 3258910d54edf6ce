/* safetensors.c - fuzz target: a header's bytes, and what an accepted one promises. */
#include "base/store/header.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first two bytes tell the size of the file behind the header, the rest is the header. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tec_heap heap = {.limit = (size_t)1 << 28};
    struct tec_arena arena;
    struct tec_header header;
    struct tec_error err;
    if (size < 2)
        return 0;
    size_t n = size - 2;
    uint64_t room = (uint64_t)data[0] | (uint64_t)data[1] << 8, sum = 0;
    tec_arena_init(&arena, &heap);
    if (tec_header_parse(&header, data + 2, n, 8 + n + room, &arena, &err) == TEC_OK) {
        for (size_t i = 0; i < header.n_tensors; i++) {
            const struct tec_stored *t = &header.tensors[i];
            uint64_t bits = (uint64_t)tec_stored_count(t) * (uint64_t)tec_dtype_bits(t->dtype);
            if (bits != t->bytes * 8 || t->begin < 8 + n || t->begin + t->bytes > 8 + n + room)
                abort();
            sum += t->bytes;
        }
        if (sum != room)
            abort();
    }
    /* Small multiples: 64 a byte and a few blocks, whatever the text. */
    if (heap.peak > (int64_t)(64 * n + (3 << 20)))
        abort();
    tec_arena_finish(&arena);
    if (heap.live != 0)
        abort();
    return 0;
}
