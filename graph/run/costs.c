#include "graph/run/costs.h"

#include <string.h>

enum { PARTS = 16 };

static int bucket_of(int64_t ns)
{
    if (ns < PARTS)
        return ns < 0 ? 0 : (int)ns;
    int high = 63 - __builtin_clzll((unsigned long long)ns);
    return (high - 3) * PARTS + (int)((ns >> (high - 4)) & (PARTS - 1));
}

/* The largest value of a bucket. */
static int64_t value_of(int bucket)
{
    if (bucket < PARTS)
        return bucket;
    int high = bucket / PARTS + 3;
    return (((int64_t)PARTS + bucket % PARTS + 1) << (high - 4)) - 1;
}

void tec_histogram_add(struct tec_histogram *h, int64_t ns)
{
    h->counts[bucket_of(ns)]++;
    if (h->n == 0 || ns < h->min)
        h->min = ns;
    if (ns > h->max)
        h->max = ns;
    h->n++;
}

int64_t tec_histogram_at(const struct tec_histogram *h, double q)
{
    int64_t rank = (int64_t)(q * (double)h->n + 0.999999), seen = 0;
    if (rank >= h->n)
        return h->max;
    for (int b = 0; b < TEC_COST_BUCKETS; b++) {
        seen += h->counts[b];
        if (seen >= rank && seen > 0)
            return value_of(b) < h->max ? value_of(b) : h->max;
    }
    return h->max;
}

void tec_costs_init(struct tec_costs *costs, const struct tec_plan_spec *spec)
{
    memset(costs, 0, sizeof *costs);
    costs->n_batches = spec->n_batches;
    memcpy(costs->batches, spec->batches, sizeof costs->batches);
}

struct tec_histogram *tec_costs_decode(struct tec_costs *costs, int rows)
{
    int i = 0;
    while (i < costs->n_batches - 1 && costs->batches[i] < rows)
        i++;
    return &costs->decode[i];
}
