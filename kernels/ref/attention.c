/* attention.c - the reference attention kernels: online softmax over blocks of keys.
 *
 * Keys are cut at multiples of 64 in logical order, wherever they lie in memory, and the blocks are
 * folded in that order. So a forked, a contiguous and a ring sequence give the same bytes. Lanes
 * share (row, head) pairs, never a sum. */
#include "kernels/attention.h"
#include "kernels/bf16.h"
#include "kernels/ref/ref.h"

#include <math.h>

/* One query of one head. Online softmax (Milakov and Gimelshein 2018) goes over blocks of keys:
 * `acc` is the sum of exp(s - max) V and `sum` that of exp(s - max), with max over the blocks so
 * far. */
struct query {
    const float *q;
    float *acc;
    float max, sum;
    int kv_head, row, head;
};

typedef float (*load_fn)(const void *memory, size_t at);

static float load_f32(const void *memory, size_t at)
{
    return ((const float *)memory)[at];
}

static float load_bf16(const void *memory, size_t at)
{
    return tec_bf16_float(((const uint16_t *)memory)[at]);
}

/* Where a key or value of the query's head begins. */
static size_t place(const struct tec_attention_args *a, const struct query *y, int slot)
{
    return (size_t)(slot * (long)a->kv_heads + y->kv_head) * (size_t)a->head_dim;
}

/* Keys that are taken side by side: a processor adds to one product while that before it is not
 * there yet, and reads a sum of values once for all of them. The order of every sum stays. */
enum { SIDE = 8 };

/* The products of the query with n <= SIDE keys. */
static inline void dots(const struct tec_attention_args *a, const struct query *y, const int *slots,
                        int n, load_fn load, float *out)
{
    float sums[SIDE] = {0};
    size_t at[SIDE];
    for (int j = 0; j < n; j++)
        at[j] = place(a, y, slots[j]);
    for (int d = 0; d < a->head_dim; d++)
        for (int j = 0; j < n; j++)
            sums[j] += y->q[d] * load(a->k, at[j] + (size_t)d);
    for (int j = 0; j < n; j++)
        out[j] = sums[j];
}

/* Add n <= SIDE values with their weights p to the query's sums, in the order of the keys. */
static inline void add_values(const struct tec_attention_args *a, const struct query *y,
                              const int *slots, int n, load_fn load, const float *p)
{
    size_t at[SIDE];
    for (int j = 0; j < n; j++)
        at[j] = place(a, y, slots[j]);
    for (int d = 0; d < a->head_dim; d++) {
        float sum = y->acc[d];
        for (int j = 0; j < n; j++)
            sum += p[j] * load(a->v, at[j] + (size_t)d);
        y->acc[d] = sum;
    }
}

/* Fold one block of n keys into the query's sums; `first` is the logical index of the key in
 * slots[0]. */
static void add_block(const struct tec_attention_args *a, struct query *y, int first,
                      const int *slots, int n, load_fn load)
{
    float p[TEC_ATTENTION_KEYS], max = y->max, sum = 0;
    for (int j = 0; j < n; j += SIDE)
        if (n - j >= SIDE) /* a constant, for the compiler */
            dots(a, y, slots + j, SIDE, load, p + j);
        else
            dots(a, y, slots + j, n - j, load, p + j);
    for (int j = 0; j < n; j++) {
        p[j] *= a->scale;
        if (a->cap > 0)
            p[j] = a->cap * tanhf(p[j] / a->cap);
        if (a->bias)
            p[j] += tec_attention_bias(a, y->row, y->head, first + j);
        max = p[j] > max ? p[j] : max;
    }
    float keep = expf(y->max - max);
    for (int j = 0; j < n; j++) {
        p[j] = expf(p[j] - max);
        sum += p[j];
    }
    for (int d = 0; d < a->head_dim; d++)
        y->acc[d] *= keep;
    for (int j = 0; j < n; j += SIDE)
        if (n - j >= SIDE)
            add_values(a, y, slots + j, SIDE, load, p + j);
        else
            add_values(a, y, slots + j, n - j, load, p + j);
    y->sum = y->sum * keep + sum;
    y->max = max;
}

static void attend(const struct tec_attention_args *a, int row, int head, float *acc, load_fn load)
{
    size_t column = (size_t)head * (size_t)a->head_dim;
    struct query y = {.q = a->q + (size_t)row * (size_t)a->ldq + column,
                      .acc = acc,
                      .max = -INFINITY,
                      .kv_head = head / (a->heads / a->kv_heads),
                      .row = row,
                      .head = head};
    float *out = a->out + (size_t)row * (size_t)a->ldo + column;
    struct tec_attention_walk walk = tec_attention_walk_init(a, a->row_seq[row]);
    int slots[TEC_ATTENTION_KEYS], visible = a->visible[row];
    int first = tec_attention_first(a, visible);
    for (int d = 0; d < a->head_dim; d++)
        acc[d] = 0;
    for (int at = 0; at < visible; at += TEC_ATTENTION_KEYS) {
        int n = visible - at < TEC_ATTENTION_KEYS ? visible - at : TEC_ATTENTION_KEYS;
        n = tec_attention_walk_next(&walk, n, slots);
        if (n == 0)
            break;
        int skip = first > at ? first - at : 0;
        if (skip < n)
            add_block(a, &y, at + skip, slots + skip, n - skip, load);
    }
    for (int d = 0; d < a->head_dim; d++) {
        float v = y.sum == 0 ? 0 : acc[d] / y.sum; /* 0 if no key is seen; a NaN stays visible */
        out[d] = a->round ? tec_bf16_round(v) : v;
    }
}

static void attend_all(const struct tec_attention_args *a, struct tec_part part, load_fn load)
{
    int live = tec_live(a->rows, a->max_rows);
    struct tec_range share = tec_share(part, live * a->heads, 1);
    float *acc = a->scratch + (size_t)part.lane * tec_attention_scratch(a->head_dim);
    for (int i = share.first; i < share.last; i++)
        attend(a, i / a->heads, i % a->heads, acc, load);
}

void tec_attention_f32_ref(const struct tec_attention_args *a, struct tec_part part)
{
    attend_all(a, part, load_f32);
}

void tec_attention_bf16_ref(const struct tec_attention_args *a, struct tec_part part)
{
    attend_all(a, part, load_bf16);
}
