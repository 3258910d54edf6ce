/* flight_costs.c - sorts a recording's launches by what they are, and takes their quantiles. */
#include "tools/record/flight_costs.h"

#include <stdlib.h>
#include <string.h>

struct launch_time {
    const char *node;
    int point;
    int64_t ns; /* of a step, where there are steps */
};

static int by_row(const void *a, const void *b)
{
    const struct launch_time *x = a, *y = b;
    int order = strcmp(x->node, y->node);
    if (order)
        return order;
    if (x->point != y->point)
        return x->point < y->point ? -1 : 1;
    return (x->ns > y->ns) - (x->ns < y->ns);
}

/* A ring's launches have names of their own. Rows of decode nodes are captured batches; those of
 * hard nodes are sessions, where there are several. */
static struct launch_time time_of(const struct tec_flight *f, const struct tec_flight_launch *l)
{
    struct launch_time t = {.node = l->what[0] ? l->what : tec_flight_node(f, l->node),
                            .ns = l->end_ns - l->start_ns};
    if (l->k > 0) {
        t.point = l->padded > l->rows ? l->padded : l->rows;
        t.ns /= l->k;
    } else if (l->what[0] || (l->rows > 1 && l->padded == 0)) {
        t.point = l->rows;
    }
    t.ns = t.ns > 0 ? t.ns : 1;
    return t;
}

/* Microseconds at quantile q of n sorted times, by nearest rank. */
static double us_at(const struct launch_time *first, size_t n, double q)
{
    size_t rank = (size_t)(q * (double)n + 0.9999999);
    return (double)first[rank > n ? n - 1 : rank ? rank - 1 : 0].ns / 1e3;
}

static enum tec_status add_row(struct tec_cost_table *out, const struct launch_time *first,
                               size_t n, struct tec_error *err)
{
    if (out->n_rows == TEC_MAX_COST_ROWS)
        return tec_fail(err, TEC_MALFORMED, "a table of costs has at most %d rows",
                        TEC_MAX_COST_ROWS);
    out->rows[out->n_rows++] = (struct tec_cost_row){.node = first->node,
                                                     .point = first->point,
                                                     .n = (int64_t)n,
                                                     .min = us_at(first, n, 0.0),
                                                     .p50 = us_at(first, n, 0.5),
                                                     .p99 = us_at(first, n, 0.99),
                                                     .p999 = us_at(first, n, 0.999),
                                                     .max = us_at(first, n, 1.0)};
    return TEC_OK;
}

enum tec_status tec_flight_costs(struct tec_cost_table *out, const struct tec_flight *f,
                                 struct tec_arena *arena, struct tec_error *err)
{
    size_t n = 0, rows = f->n_launches < TEC_MAX_COST_ROWS ? f->n_launches : TEC_MAX_COST_ROWS;
    struct launch_time *times = malloc((f->n_launches + 1) * sizeof *times);
    enum tec_status status = TEC_OK;
    *out = (struct tec_cost_table){.rows = TEC_NEW(arena, rows + 1, struct tec_cost_row)};
    if (!times || !out->rows)
        status = tec_fail(err, TEC_NO_MEMORY, "no memory for what launches took");
    for (size_t i = 0; times && status == TEC_OK && i < f->n_launches; i++)
        if (tec_flight_node(f, f->launches[i].node)[0])
            times[n++] = time_of(f, &f->launches[i]);
    if (n)
        qsort(times, n, sizeof *times, by_row);
    for (size_t first = 0, end = 0; times && status == TEC_OK && first < n; first = end) {
        while (end < n && times[end].point == times[first].point &&
               strcmp(times[end].node, times[first].node) == 0)
            end++;
        status = add_row(out, times + first, end - first, err);
    }
    free(times);
    return status;
}
