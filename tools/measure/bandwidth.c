/* bandwidth.c - measures how fast this machine reads memory, and counts the bytes that a decode
 * step must read. */
#include "tools/measure/bandwidth.h"

#include "base/clock.h"
#include "graph/model/program.h"
#include "kernels/int4.h"
#include "kernels/int8.h"
#include "kernels/team.h"

#include <string.h>

/* Two halves are read side by side, fetched AHEAD bytes before: faster than one behind the other.
 * The sums are a register each: 8 of 64 bytes, or 16 of the 32 of 16 bytes. */
enum { HALVES = 2, SUMS = 4, AHEAD = 2048 };
#if defined(__aarch64__)
enum { BLOCK = 32 };
#else
enum { BLOCK = 64 };
#endif

typedef uint64_t block __attribute__((vector_size(BLOCK)));

struct reading {
    const block *data;
    size_t n; /* number of blocks */
    int lanes;
    uint64_t sums[1024]; /* the sums use what was read, so the compiler keeps the reads */
};

__attribute__((always_inline)) static inline uint64_t sum_blocks(const block *data, size_t n)
{
    block sums[HALVES * SUMS];
    uint64_t total = 0;
    size_t half = n / HALVES;
    memset(sums, 0, sizeof sums);
    for (size_t i = 0; i + SUMS <= half; i += SUMS)
        for (size_t s = 0; s < (size_t)HALVES * SUMS; s++) {
            const block *at = data + s / SUMS * half + i + s % SUMS;
            __builtin_prefetch((const char *)at + AHEAD);
            sums[s] += *at;
        }
    for (size_t s = 0; s < (size_t)HALVES * SUMS; s++)
        for (size_t w = 0; w < sizeof(block) / sizeof(uint64_t); w++)
            total += sums[s][w];
    return total;
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static uint64_t sum_avx512(const block *data, size_t n)
{
    return sum_blocks(data, n);
}

__attribute__((target("avx2"))) static uint64_t sum_avx2(const block *data, size_t n)
{
    return sum_blocks(data, n);
}
#endif

static uint64_t sum(const block *data, size_t n)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return sum_avx512(data, n);
    if (__builtin_cpu_supports("avx2"))
        return sum_avx2(data, n);
#endif
    return sum_blocks(data, n);
}

static void read_share(void *user, int lane)
{
    struct reading *r = user;
    size_t each = r->n / (size_t)r->lanes;
    r->sums[lane] += sum(r->data + each * (size_t)lane, each);
}

enum tec_status tec_bandwidth_read(double *bytes_s, int lanes, size_t size, int times,
                                   struct tec_heap *heap, struct tec_error *err)
{
    const struct tec_clock clock = {NULL};
    struct tec_team *team = NULL;
    struct reading r = {.n = size / sizeof(block), .lanes = lanes};
    unsigned char *data = tec_heap_get(heap, size);
    if (!data)
        return tec_fail(err, TEC_NO_MEMORY, "no memory to measure reading %zu bytes", size);
    memset(data, 0x5A, size); /* give the buffer physical pages of its own */
    r.data = (const block *)(const void *)data;
    enum tec_status status = tec_team_create(&team, lanes, 1000, heap, err);
    int64_t best = INT64_MAX;
    for (int i = 0; status == TEC_OK && i < times; i++) {
        int64_t start = tec_clock_now(&clock);
        tec_team_run(team, read_share, &r);
        int64_t took = tec_clock_now(&clock) - start;
        best = took < best ? took : best;
    }
    if (status == TEC_OK)
        *bytes_s = best > 0 ? (double)size * 1e9 / (double)best : 0.0;
    tec_team_destroy(team);
    tec_heap_put(heap, data);
    return status;
}

static int64_t bytes_of(const struct tec_matrix *m)
{
    if (m->form == TEC_FORM_INT4)
        return (int64_t)tec_int4_size(m->n, m->k, m->group);
    return m->form == TEC_FORM_INT8 ? (int64_t)tec_int8_size(m->n, m->k)
                                    : (int64_t)m->n * m->k * (m->form == TEC_FORM_BF16 ? 2 : 4);
}

int64_t tec_bandwidth_step(const struct tec_weights *w, const struct tec_model *model)
{
    const struct tec_model_program *p = model->text.program;
    int64_t bytes = bytes_of(&w->head);
    for (int i = 0; p && i < p->n; i++) {
        const struct tec_call_weights *c = &w->text[i];
        bytes += bytes_of(c->attention ? &c->attention->qkv : &c->matrix);
    }
    return bytes;
}
