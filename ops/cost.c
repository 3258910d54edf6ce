/* cost.c - what calls cost: live counts of rows, and sums of costs that saturate instead of
 * overflowing. */
#include "ops/cost.h"

struct tec_live tec_counts_live(const struct tec_counts *counts, const int *count, int capacity)
{
    for (int i = 0; i < counts->n; i++)
        if (counts->items[i].count == count) {
            struct tec_live live = counts->items[i];
            live.rows = live.rows < capacity ? live.rows : capacity;
            return live;
        }
    return (struct tec_live){count, capacity, tec_cost_times(capacity, capacity), capacity};
}

int64_t tec_counts_rows(const struct tec_counts *counts, const int *count, int capacity)
{
    return tec_counts_live(counts, count, capacity).rows;
}

int64_t tec_cost_times(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

int64_t tec_cost_plus(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

void tec_cost_add(struct tec_cost *sum, const struct tec_cost *cost)
{
    sum->products = tec_cost_plus(sum->products, cost->products);
    sum->products_bytes = tec_cost_plus(sum->products_bytes, cost->products_bytes);
    sum->products_f32 = tec_cost_plus(sum->products_f32, cost->products_f32);
    sum->other = tec_cost_plus(sum->other, cost->other);
    sum->weights = tec_cost_plus(sum->weights, cost->weights);
    sum->read = tec_cost_plus(sum->read, cost->read);
    sum->written = tec_cost_plus(sum->written, cost->written);
    sum->kv_read = tec_cost_plus(sum->kv_read, cost->kv_read);
    sum->kv_written = tec_cost_plus(sum->kv_written, cost->kv_written);
}

int64_t tec_cost_bytes(const struct tec_cost *c)
{
    int64_t activations = tec_cost_plus(c->read, c->written);
    int64_t kv = tec_cost_plus(c->kv_read, c->kv_written);
    return tec_cost_plus(c->weights, tec_cost_plus(activations, kv));
}

int64_t tec_cost_flops(const struct tec_cost *c)
{
    return tec_cost_plus(c->products, tec_cost_plus(c->products_f32, c->other));
}
