/* cost.h - what one call computes and moves, for given counts: exact integers, from its arguments.
 *
 * FLOP. A product and its sum are 2. Every other addition, multiplication, comparison, division,
 * root, exponential, hyperbolic tangent or error function is 1. Arithmetic on integers is not
 * counted.
 *
 * Bytes. Each array is counted once a call, however often a kernel goes back to it, in the form in
 * which it is stored: matrices with their padding, activations without. A second call counts the
 * same array again, also where a cache would still hold it. Counts and addresses are not counted.
 *
 * Sums and products that leave int64 stay at its largest value. */
#ifndef TEC_OPS_COST_H
#define TEC_OPS_COST_H

#include <stdint.h>

struct tec_cost {
    int64_t products; /* FLOP of products whose weights are bf16, int8 or int4, or keys bf16 */
    int64_t products_bytes; /* of `products`, those that multiply bytes: int8 or int4 weights */
    int64_t products_f32;   /* FLOP of matrix products whose weights or keys are float32 */
    int64_t other;          /* all other FLOP */
    int64_t weights;        /* bytes read: matrices, vectors and tables that never change */
    int64_t read, written;  /* bytes of activations, and of what a frame says of its rows */
    int64_t kv_read, kv_written; /* bytes of keys and values */
};

/* The values that the device would read through `count`; for attention, the keys that rows see. */
struct tec_live {
    const int *count;
    int64_t rows;
    int64_t visible; /* sum over rows of the keys that they see */
    int64_t keys;    /* sum over sequences of the keys that any of their rows sees; of moves the
                      * slots that are moved, 0 = as many as there can be */
};

/* Counts that are not listed are at their capacity, and all such rows see each other. */
struct tec_counts {
    const struct tec_live *items;
    int n;
};

/* The entry of a count, or what an unlisted one stands for. Never more rows than `capacity`. */
struct tec_live tec_counts_live(const struct tec_counts *counts, const int *count, int capacity);
int64_t tec_counts_rows(const struct tec_counts *counts, const int *count, int capacity);

int64_t tec_cost_times(int64_t a, int64_t b);
int64_t tec_cost_plus(int64_t a, int64_t b);

/* Member by member: *sum += cost. */
void tec_cost_add(struct tec_cost *sum, const struct tec_cost *cost);

/* All bytes, all FLOP. */
int64_t tec_cost_bytes(const struct tec_cost *cost);
int64_t tec_cost_flops(const struct tec_cost *cost);

#endif
