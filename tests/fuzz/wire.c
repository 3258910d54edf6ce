/* wire.c - fuzz target: any bytes as a client's message; what is accepted must hold together. */
#include "tools/serve/request.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

static void check_value(const struct tec_value *v)
{
    static const size_t sizes[] = {1, 1, 4, 8, 4};
    size_t n = 1;
    volatile uint8_t sum = 0;
    check(v->rank >= 0 && v->rank <= 4);
    for (int i = 0; i < v->rank; i++)
        n *= (size_t)v->shape[i];
    check(v->kind == TEC_VALUE_TEXT ? v->rank == 0 : v->bytes == n * sizes[v->kind]);
    for (size_t i = 0; i < v->bytes; i++)
        sum = (uint8_t)(sum + ((const uint8_t *)v->data)[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tec_request_message request;
    struct tec_heap heap = {.limit = (size_t)1 << 30};
    struct tec_arena arena;
    struct tec_error err;
    tec_arena_init(&arena, &heap);
    if (tec_serve_request_read(&request, data, size, &arena, &err) == TEC_OK) {
        for (size_t i = 0; i < request.n; i++) {
            check(strlen(request.values[i].name) < 256);
            check_value(&request.values[i]);
        }
        if (request.noise.name)
            check_value(&request.noise);
    }
    /* One element may be a byte in the message and a double behind it; keys of maps are joined. */
    check(heap.peak <= (int64_t)(16 * size + TEC_MAX_INPUTS * 1024 + (4 << 20)));
    tec_arena_finish(&arena);
    check(heap.live == 0);
    return 0;
}
