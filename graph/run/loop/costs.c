/* costs.c - estimates what launches cost on this machine: histograms of each variant, and their
 * drift.
 *
 * Frame thread only; costs.h states the model. Buckets grow with the value, TEC_COST_PARTS for each
 * power of two, so one small array covers nanoseconds to seconds at a constant relative error.
 * Quantiles are recomputed every few samples and not at each query, because policies ask many times
 * a frame. The median of three ratios keeps a single outlier from moving the drift. */
#include "graph/run/loop/costs.h"

#include "graph/nodes/node.h"
#include "graph/run/launch/launch_ring.h"

#include <string.h>

enum {
    SHIFT = 7,     /* of TEC_COST_PARTS */
    WINDOW = 2048, /* samples */
    KNOWN = 20,    /* own samples that replace a warm-up */
    TRUSTED = 200, /* own samples that replace a file */
    SETTLING = 8,  /* first own samples beside a file */
    RENEW = 16,    /* samples between two looks at the histograms */
    EAGER = 64,    /* first samples, that are looked at one by one */
    REST = 32      /* part of the way that the drift and the share of what is idle go in a frame */
};

static const double quantiles[TEC_COST_QUANTILES] = {0.5, 0.99, 0.999, 1.0};
static const double drift_low = 0.25, drift_high = 4.0;

/* --- histograms ------------------------------------------------------------------------------ */

static int bucket_of(int64_t ns)
{
    if (ns < TEC_COST_PARTS)
        return ns < 0 ? 0 : (int)ns;
    int high = 63 - __builtin_clzll((unsigned long long)ns);
    int bucket =
        (high - SHIFT + 1) * TEC_COST_PARTS + (int)((ns >> (high - SHIFT)) & (TEC_COST_PARTS - 1));
    return bucket < TEC_COST_BUCKETS ? bucket : TEC_COST_BUCKETS - 1;
}

/* The largest value of a bucket. */
static int64_t value_of(int bucket)
{
    if (bucket < TEC_COST_PARTS)
        return bucket;
    int power = bucket / TEC_COST_PARTS - 1;
    return (((int64_t)TEC_COST_PARTS + bucket % TEC_COST_PARTS + 1) << power) - 1;
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

static int64_t rank_of(double q, int64_t n)
{
    int64_t rank = (int64_t)(q * (double)n + 0.999999);
    return rank < 1 ? 1 : rank;
}

int64_t tec_histogram_at(const struct tec_histogram *h, double q)
{
    int64_t rank = rank_of(q, h->n), seen = 0;
    if (rank >= h->n)
        return h->max;
    for (int b = bucket_of(h->min); b < TEC_COST_BUCKETS; b++) {
        seen += h->counts[b];
        if (seen >= rank)
            return value_of(b) < h->max ? value_of(b) : h->max;
    }
    return h->max;
}

/* --- a variant ------------------------------------------------------------------------------- */

/* All quantiles of both windows, in one pass over the buckets that can hold anything. */
static void renew(struct tec_cost_variant *v)
{
    const struct tec_histogram *a = &v->window[v->now], *b = &v->window[!v->now];
    int64_t n = a->n + b->n, seen = 0;
    int64_t min = b->n && b->min < a->min ? b->min : a->min;
    int64_t max = b->n && b->max > a->max ? b->max : a->max;
    int q = 0;
    int64_t rank = rank_of(quantiles[0], n);
    for (int at = bucket_of(min), last = bucket_of(max); at <= last; at++) {
        seen += (int64_t)a->counts[at] + b->counts[at];
        while (q < TEC_COST_QUANTILES && seen >= rank) {
            bool end = rank == n || value_of(at) > max; /* the longest is known exactly */
            v->base_ns[q] = (double)(end ? max : value_of(at));
            rank = rank_of(quantiles[++q < TEC_COST_QUANTILES ? q : 0], n);
        }
    }
}

static int64_t needed(const struct tec_cost_variant *v)
{
    return v->filed ? TRUSTED : KNOWN;
}

static void keep(struct tec_cost_variant *v, double ns)
{
    struct tec_histogram *h = &v->window[v->now];
    v->n++;
    if (v->filed && v->n <= SETTLING)
        return;
    if (h->n == WINDOW) {
        v->now = !v->now;
        h = &v->window[v->now];
        memset(h, 0, sizeof *h);
    }
    tec_histogram_add(h, (int64_t)(ns + 0.5));
    if (h->n == 1 || v->n < EAGER || v->n == needed(v) || v->n % RENEW == 0)
        renew(v);
    else if (ns > v->base_ns[TEC_COST_QUANTILES - 1])
        v->base_ns[TEC_COST_QUANTILES - 1] = ns;
    if (v->reference_ns <= 0.0 && v->n >= KNOWN)
        v->reference_ns = v->base_ns[0] > 1.0 ? v->base_ns[0] : 1.0;
}

static double base_of(const struct tec_cost_variant *v, int quantile)
{
    if (v->n >= needed(v))
        return v->base_ns[quantile];
    double prior = v->prior_ns[quantile], longest = (double)v->window[v->now].max;
    return !v->filed && quantile > 0 && longest > prior ? longest : prior;
}

/* --- drift ----------------------------------------------------------------------------------- */

static double median(const double *x)
{
    double low = x[0] < x[1] ? x[0] : x[1], high = x[0] < x[1] ? x[1] : x[0];
    return x[2] < low ? low : x[2] > high ? high : x[2];
}

static void follow(struct tec_cost_drift *d, double ratio)
{
    d->last[d->at] = ratio < drift_low ? drift_low : ratio > drift_high ? drift_high : ratio;
    d->at = (d->at + 1) % 3;
    d->factor += (median(d->last) - d->factor) * 0.5;
}

/* --- all variants ---------------------------------------------------------------------------- */

const char *const tec_cost_words[TEC_COST_KINDS] = {"prefill", "action", "decode",
                                                    "packed",  "shift",  "score"};

enum tec_cost_kind tec_costs_kind_of(const char *word)
{
    int kind = 0;
    while (kind < TEC_COST_KINDS && strcmp(tec_cost_words[kind], word) != 0)
        kind++;
    return (enum tec_cost_kind)kind;
}

enum tec_status tec_costs_init(struct tec_costs *costs, const struct tec_plan_spec *spec,
                               struct tec_arena *arena, struct tec_error *err)
{
    memset(costs, 0, sizeof *costs);
    costs->n_batches = spec->n_batches;
    memcpy(costs->batches, spec->batches, sizeof spec->batches);
    int behind = spec->stages - (spec->apart ? 0 : 1); /* rows of one ring in a decode */
    if (behind > 0) { /* captured once, but the rows that are not there cost nothing */
        int rows = spec->rings * behind;
        int most = spec->n_batches ? spec->batches[spec->n_batches - 1] : 0;
        costs->n_batches = rows > most ? rows : most;
        for (int i = 0; i < costs->n_batches; i++)
            costs->batches[i] = i + 1;
    }
    if (spec->stages)
        costs->points =
            1 + tec_launch_ring_point(spec, spec->rings, spec->rings * (spec->stages - 1));
    costs->n_actions = spec->n_actions ? spec->n_actions : 1;
    costs->together[costs->n_together++] = 1;
    for (int i = 0; i < spec->n_together; i++)
        costs->together[costs->n_together++] = spec->together[i];
    const int n[TEC_COST_KINDS] = {[TEC_COST_PREFILL] = costs->n_together,
                                   [TEC_COST_ACTION] = costs->n_actions * costs->n_together,
                                   [TEC_COST_DECODE] = costs->n_batches,
                                   [TEC_COST_PACKED] = costs->points};
    bool ok = true;
    for (int kind = 0; kind < TEC_COST_KINDS; kind++) {
        costs->drift[kind] =
            (struct tec_cost_drift){.factor = 1.0, .last = {1.0, 1.0, 1.0}, .share = 1.0};
        costs->variants[kind] =
            TEC_NEW(arena, n[kind] ? (size_t)n[kind] : 1, struct tec_cost_variant);
        ok &= costs->variants[kind] != NULL;
    }
    return ok ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for costs");
}

/* Which captured number of observations holds n. */
static int group_of(const struct tec_costs *costs, int n)
{
    int at = 0;
    while (at < costs->n_together - 1 && costs->together[at] < n)
        at++;
    return at;
}

int tec_costs_action(const struct tec_costs *costs, int at, int n)
{
    return at + costs->n_actions * group_of(costs, n);
}

/* The variant that a launch is of; the last one also of what is more than any holds. */
static int variant_of(const struct tec_costs *costs, enum tec_cost_kind kind, int rows)
{
    int i = 0, last = kind == TEC_COST_DECODE ? costs->n_batches - 1 : costs->points - 1;
    if (kind == TEC_COST_PREFILL)
        return group_of(costs, rows);
    if (kind == TEC_COST_ACTION)
        return rows > 0 && rows < costs->n_actions * costs->n_together ? rows : 0;
    if (kind == TEC_COST_DECODE)
        while (i < last && costs->batches[i] < rows)
            i++;
    if (kind == TEC_COST_PACKED)
        i = rows < last ? rows : last;
    return i > 0 ? i : 0;
}

static struct tec_cost_variant *find(const struct tec_costs *costs, enum tec_cost_kind kind,
                                     int rows)
{
    return &costs->variants[kind][variant_of(costs, kind, rows)];
}

static void take_row(struct tec_cost_variant *v, const struct tec_cost_row *row, double share)
{
    const double us[TEC_COST_QUANTILES] = {row->p50, row->p99, row->p999, row->max};
    double to_ns = 1000.0 * share;
    if (us[0] <= 0.0)
        return;
    for (int q = 0; q < TEC_COST_QUANTILES; q++)
        if (!v->filed || us[q] * to_ns > v->prior_ns[q])
            v->prior_ns[q] = us[q] * to_ns;
    v->filed = true;
    v->reference_ns = v->prior_ns[0];
}

/* A ring's launches have names of their own: they belong to two nodes. */
static void take_ring(struct tec_costs *costs, const struct tec_cost_table *table)
{
    for (int rows = 0; rows < costs->points; rows++) {
        const struct tec_cost_row *packed = tec_costs_table_row(table, costs->packed_name, rows);
        if (packed)
            take_row(find(costs, TEC_COST_PACKED, rows), packed, 1.0);
    }
    for (int i = 0; i < costs->n_batches; i++) {
        const struct tec_cost_row *alone =
            tec_costs_table_row(table, costs->alone_name, costs->batches[i]);
        if (alone)
            take_row(find(costs, TEC_COST_DECODE, costs->batches[i]), alone, 1.0);
    }
}

const struct tec_cost_row *tec_costs_prompt_row(const struct tec_cost_table *table,
                                                const struct tec_topology *topology, int chain,
                                                const char *node, int percent)
{
    const struct tec_cost_row *row = NULL;
    for (int i = 0; !row && i < topology->n_nodes; i++)
        if (topology->nodes[i].model == chain && tec_node_recalls(topology->nodes[i].kind))
            row = tec_costs_table_row(table, topology->nodes[i].name, percent);
    return row ? row : tec_costs_table_row(table, node, 0);
}

void tec_costs_prior(struct tec_costs *costs, const struct tec_cost_table *table,
                     const struct tec_topology *topology, int chain)
{
    if (costs->packed_name)
        take_ring(costs, table);
    for (int i = 0, actions = -1; i < topology->n_nodes; i++) {
        enum tec_cost_kind kind = tec_costs_kind_of(topology->nodes[i].kind);
        bool seen = kind == TEC_COST_PREFILL || kind == TEC_COST_ACTION;
        int n = kind == TEC_COST_KINDS    ? 0
                : kind == TEC_COST_DECODE ? costs->n_batches
                : seen                    ? costs->n_together
                                          : 1;
        int slices = topology->nodes[i].slices;
        if (topology->nodes[i].model != chain || topology->nodes[i].ring)
            continue;
        actions += kind == TEC_COST_ACTION;
        for (int b = 0; b < n; b++) {
            int rows = kind == TEC_COST_DECODE ? costs->batches[b]
                       : seen && b > 0         ? costs->together[b]
                                               : 0;
            const struct tec_cost_row *row =
                kind == TEC_COST_PREFILL && !rows
                    ? tec_costs_prompt_row(table, topology, chain, topology->nodes[i].name, 0)
                    : tec_costs_table_row(table, topology->nodes[i].name, rows);
            if (row)
                take_row(
                    find(costs, kind,
                         kind == TEC_COST_ACTION ? tec_costs_action(costs, actions, rows) : rows),
                    row, slices ? tec_costs_row_share(row, slices) : 1.0);
        }
    }
}

void tec_costs_warm(struct tec_costs *costs, enum tec_cost_kind kind, int rows, int64_t ns)
{
    struct tec_cost_variant *v = find(costs, kind, rows);
    double x = ns > 1 ? (double)ns : 1.0;
    if (v->filed)
        return;
    v->n_warm++;
    if (v->n_warm == 1 || x < v->prior_ns[0])
        v->prior_ns[0] = x;
    for (int q = 1; q < TEC_COST_QUANTILES; q++) /* the first replay touches memory */
        if (v->n_warm <= 2 || x > v->prior_ns[q])
            v->prior_ns[q] = x > v->prior_ns[0] ? x : v->prior_ns[0];
}

bool tec_costs_filed(const struct tec_costs *costs, enum tec_cost_kind kind, int rows)
{
    return find(costs, kind, rows)->filed;
}

/* A p99 that a few slow launches have raised is no excuse for the next one. */
static double usual_of(const struct tec_cost_variant *v)
{
    double p99 = base_of(v, 1), twice = 2.0 * base_of(v, 0);
    return p99 < twice ? p99 : twice;
}

int64_t tec_costs_add(struct tec_costs *costs, enum tec_cost_kind kind, int rows, int64_t ns)
{
    struct tec_cost_variant *v = find(costs, kind, rows);
    struct tec_cost_drift *d = &costs->drift[kind];
    double x = ns > 1 ? (double)ns : 1.0, known = usual_of(v);
    bool sure = v->filed || v->n >= KNOWN;
    if (v->n == 0 && v->prior_ns[0] <= 0.0)
        tec_costs_warm(costs, kind, rows, ns);
    if (v->reference_ns > 0.0) {
        double ratio = x / v->reference_ns;
        keep(v, x / d->factor);
        follow(d, ratio);
    } else {
        keep(v, x / d->factor);
    }
    d->ran = true;
    return sure && x > known ? (int64_t)(x - known) : 0;
}

void tec_costs_ran(const struct tec_costs *costs, double *sum, int *n)
{
    for (int kind = 0; kind < TEC_COST_KINDS; kind++)
        if (costs->drift[kind].ran) {
            *sum += costs->drift[kind].factor;
            *n += 1;
        }
}

void tec_costs_end_frame(struct tec_costs *costs, double others, bool wanted)
{
    double sum = 0.0;
    int n = 0;
    tec_costs_ran(costs, &sum, &n);
    double mean = n ? sum / n : others;
    for (int kind = 0; kind < TEC_COST_KINDS; kind++) {
        struct tec_cost_drift *d = &costs->drift[kind];
        if (!d->ran && mean > 0.0) {
            d->factor += (mean - d->factor) / REST;
            d->last[0] = d->last[1] = d->last[2] = d->factor;
        }
        if (d->ran || wanted)
            d->share += ((d->ran ? 1.0 : 0.0) - d->share) / REST;
        d->ran = false;
    }
}

double tec_costs_us(const struct tec_costs *costs, enum tec_cost_kind kind, int rows, double q)
{
    int quantile = q <= 0.5 ? 0 : q <= 0.99 ? 1 : q <= 0.999 ? 2 : 3;
    if (kind >= TEC_COST_KINDS)
        return 0.0;
    const struct tec_cost_variant *v = find(costs, kind, rows);
    const struct tec_cost_drift *d = &costs->drift[kind];
    double base = base_of(v, quantile), usual = 2.0 * base_of(v, 0);
    if (base > usual)
        base = usual + d->share * (base - usual);
    return base * d->factor / 1000.0;
}
