/* buffers.c - the fenced buffers of the shape that is being checked, and the random values that
 * fill them. */
#include "tests/kernels/buffers.h"
#include "kernels/bf16.h"
#include "kernels/matrix.h"
#include "tests/kernels/conform.h"
#include "tests/kernels/cuda_tier.h"
#include "tests/sanitized.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if ADDRESS_SANITIZED
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#endif

enum { FENCE = 64, MAX_BUFFERS = 64 };
static const uint32_t canary = 0x7fc0feedU; /* a NaN that no kernel computes */

static struct {
    unsigned char *memory; /* a fence, `size` bytes rounded up to 4, and a fence */
    size_t size;
} buffers[MAX_BUFFERS];
static int count_of;
static uint64_t state;

static uint32_t next(void)
{
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(state >> 33);
}

void buffers_seed(uint64_t seed)
{
    state = seed;
}

int conform_int(int low, int high)
{
    return low + (int)(next() % (uint32_t)(high - low + 1));
}

float conform_float(float scale)
{
    float sum = 0.0F;
    for (int i = 0; i < 3; i++)
        sum += (float)next() / (float)(1U << 31) - 0.5F;
    return scale * sum * 2.0F;
}

int conform_ld(int cols)
{
    return (cols + 15) / 16 * 16 + 16 * conform_int(0, 2) * conform_int(0, 1);
}

int conform_scale(const struct conform *c, int size, int most)
{
    most = c->threads ? most / 4 : most; /* under a sanitizer that watches every access */
    if (!c->slow || size <= most)
        return size;
    int whole = most / 64 * 64, rest = size % 64;
    return whole ? whole + rest : rest ? rest : 64;
}

int conform_few(const struct conform *c, int shapes)
{
    return c->threads ? (shapes + 4) / 5 : shapes;
}

static size_t up4(size_t size)
{
    return (size + 3) / 4 * 4;
}

void *conform_buf(struct conform *c, size_t count, size_t size)
{
    (void)c;
    size_t bytes = count * size, total = (up4(bytes) + (size_t)2 * FENCE + 63) / 64 * 64;
    unsigned char *memory = cuda_tier_alloc(total);
    if (!memory || count_of == MAX_BUFFERS) {
        fprintf(stderr, "# conform_buf: no room for %zu bytes\n", bytes);
        abort();
    }
    for (size_t at = 0; at < total; at += sizeof canary)
        memcpy(memory + at, &canary, sizeof canary);
    ASAN_POISON_MEMORY_REGION(memory, FENCE);
    ASAN_POISON_MEMORY_REGION(memory + FENCE + bytes, total - FENCE - bytes);
    buffers[count_of].memory = memory;
    buffers[count_of++].size = bytes;
    return memory + FENCE;
}

int *conform_ints(struct conform *c, size_t count, int value)
{
    int *buf = conform_buf(c, count, sizeof *buf);
    for (size_t i = 0; i < count; i++)
        buf[i] = value;
    return buf;
}

int *conform_live(struct conform *c, int value)
{
    return c->live = conform_ints(c, 1, value);
}

void conform_fill(float *buf, size_t count, enum conform_family family, float scale)
{
    float common = conform_float(scale);
    for (size_t i = 0; i < count; i++) {
        float x = conform_float(scale);
        if (family == CONFORM_OFFSET)
            x += 1000.0F * scale;
        else if (family == CONFORM_TIES)
            x = scale * (float)conform_int(-2, 2);
        else if (family == CONFORM_DENORMAL)
            x *= conform_int(0, 3) ? 1e-40F : 1.0F;
        else if (family == CONFORM_EQUAL)
            x = common;
        else if (family == CONFORM_ZERO)
            x = 0.0F;
        buf[i] = x;
    }
}

float *conform_filled(struct conform *c, size_t count, enum conform_family family, bool bf16)
{
    float *x = conform_buf(c, count, sizeof *x);
    conform_fill(x, count, family, 1.0F);
    if (bf16)
        conform_round(x, count);
    return x;
}

float *conform_normal(struct conform *c, size_t count)
{
    return conform_filled(c, count, CONFORM_NORMAL, false);
}

void conform_round(float *buf, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf[i] = tec_bf16_round(buf[i]);
}

void conform_bits(uint16_t *bits, const float *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bits[i] = tec_bf16_bits(from[i]);
}

void *conform_matrix(struct conform *c, const struct tec_kernels *table, bool bf16, int rows, int k,
                     const float *src)
{
    size_t size = tec_matrix_size(table->layout, bf16, rows, k);
    void *packed = conform_buf(c, size, 1);
    memset(packed, 0, size);
    tec_matrix_pack(packed, table->layout, bf16, rows, k, 0, rows, src);
    return packed;
}

size_t buffers_size(const void *at)
{
    for (int b = 0; b < count_of; b++)
        if (buffers[b].memory + FENCE == at)
            return buffers[b].size;
    fprintf(stderr, "# an output is not the beginning of a conform_buf\n");
    abort();
}

int buffers_end(void)
{
    int broken = -1;
    for (int b = 0; b < count_of; b++) {
        unsigned char *memory = buffers[b].memory, *end = memory + FENCE + up4(buffers[b].size);
        ASAN_UNPOISON_MEMORY_REGION(memory, buffers[b].size + (size_t)2 * FENCE + 3);
        for (size_t at = 0; at < FENCE; at += sizeof canary)
            if (memcmp(memory + at, &canary, 4) != 0 || memcmp(end + at, &canary, 4) != 0)
                broken = broken < 0 ? b : broken;
        cuda_tier_free(memory);
    }
    count_of = 0;
    return broken;
}

bool conform_vector(const struct conform *c, struct tec_kernels *table)
{
    enum tec_tier best = tec_tier_best();
    bool some = !c->same_order && best > TEC_TIER_ref;
    if (some)
        *table = tec_kernels_for(best);
    return some;
}

void conform_rows(struct conform *c, const float *want, int rows, int cols, int ld)
{
    const float *got = c->got[0];
    for (int r = 0; r < rows; r++) {
        size_t at = (size_t)r * (size_t)ld;
        if (memcmp(got + at, want + at, (size_t)cols * sizeof *got) != 0)
            conform_fail(c, "row %d of [%d, %d] is not that of the vector tiers", r, rows, cols);
    }
}
