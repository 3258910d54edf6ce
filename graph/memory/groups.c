/* groups.c - adds, updates and removes memory units and keeps their groups' centroids.
 *
 * Not thread-safe: the store calls it under its lock. The structure is two intrusive lists (groups
 * by id, members by age) over fixed arrays, so nothing is allocated after create.
 *
 * Centroids are exact: a unit vector is rounded to multiples of 2^-40 and summed in int64, which
 * holds 2^22 of them. Addition and removal then commute, and reading a store again gives the same
 * bits as the history that led to it. Cosines are doubles, summed from the first number to the
 * last. */
#include "graph/memory/groups_own.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

enum { FIXED_BITS = 40 };

static enum tec_status options_check(const struct tec_groups_options *is, struct tec_error *err)
{
    if (is->dim < 1 || is->dim > TEC_MAX_EMBEDDING)
        return tec_fail(err, TEC_INVALID, "embeddings have %d numbers; 1 .. %d are possible",
                        is->dim, TEC_MAX_EMBEDDING);
    if (is->max_units < 1 || is->max_units > 1u << 22)
        return tec_fail(err, TEC_INVALID, "%u memory units; 1 .. %u are possible", is->max_units,
                        1u << 22);
    if (!isfinite(is->threshold) || is->threshold < -1.0)
        return tec_fail(err, TEC_INVALID, "a cosine of %g cannot be a threshold", is->threshold);
    if (is->stable_steps < 1)
        return tec_fail(err, TEC_INVALID, "stable_steps is %lld, must be at least 1",
                        (long long)is->stable_steps);
    return TEC_OK;
}

enum tec_status tec_groups_create(struct tec_groups **out, const struct tec_groups_options *options,
                                  struct tec_heap *heap, struct tec_error *err)
{
    TEC_TRY(options_check(options, err));
    size_t n = options->max_units, dim = (size_t)options->dim;
    struct tec_groups *g = tec_heap_get(heap, sizeof *g);
    if (!g)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for groups of memory units");
    g->is = *options;
    g->heap = heap;
    g->units = tec_heap_get(heap, n * sizeof *g->units);
    g->groups = tec_heap_get(heap, n * sizeof *g->groups);
    g->embeddings = tec_heap_get(heap, n * dim * sizeof *g->embeddings);
    g->sums = tec_heap_get(heap, n * dim * sizeof *g->sums);
    g->promoted = tec_heap_get(heap, n * sizeof *g->promoted);
    g->ranked = tec_heap_get(heap, n * sizeof *g->ranked);
    g->buckets = tec_heap_get(heap, n * sizeof *g->buckets);
    if (!g->units || !g->groups || !g->embeddings || !g->sums || !g->promoted || !g->ranked ||
        !g->buckets) {
        tec_groups_destroy(g);
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %zu memory units of %zu numbers", n,
                        dim);
    }
    for (uint32_t i = 0; i < n; i++) {
        g->units[i].group = TEC_NO_UNIT;
        g->groups[i].next = i + 1 < n ? i + 1 : TEC_NO_UNIT;
        g->buckets[i] = TEC_NO_UNIT;
    }
    g->first = g->last = TEC_NO_UNIT;
    g->next_epoch = 1;
    *out = g;
    return TEC_OK;
}

void tec_groups_destroy(struct tec_groups *groups)
{
    if (!groups)
        return;
    tec_heap_put(groups->heap, groups->units);
    tec_heap_put(groups->heap, groups->groups);
    tec_heap_put(groups->heap, groups->embeddings);
    tec_heap_put(groups->heap, groups->sums);
    tec_heap_put(groups->heap, groups->promoted);
    tec_heap_put(groups->heap, groups->ranked);
    tec_heap_put(groups->heap, groups->buckets);
    tec_heap_put(groups->heap, groups);
}

/* 1 / length; the sum of squares of finite floats cannot overflow a double. */
double tec_groups_inverse(const float *v, int dim)
{
    double squares = 0.0;
    for (int i = 0; i < dim; i++)
        squares += (double)v[i] * (double)v[i];
    return squares > 0.0 ? 1.0 / sqrt(squares) : 0.0;
}

enum tec_status tec_groups_check(const struct tec_groups *g, const float *v, struct tec_error *err)
{
    for (int i = 0; i < g->is.dim; i++)
        if (!isfinite(v[i]))
            return tec_fail(err, TEC_INVALID, "embedding: number %d of %d is not finite", i,
                            g->is.dim);
    return TEC_OK;
}

/* Add (sign 1) or take away (sign -1) a unit's vector. */
static void sum_move(struct tec_groups *g, uint32_t group, uint32_t unit, int sign)
{
    const float *v = tec_groups_vector(g, unit);
    int64_t *sum = tec_groups_sum(g, group);
    double scale = g->units[unit].inverse * (double)(INT64_C(1) << FIXED_BITS);
    for (int i = 0; i < g->is.dim; i++)
        sum[i] += sign * (int64_t)(rint((double)v[i] * scale));
}

double tec_groups_cosine(const float *a, double inverse_a, const int64_t *sum, int dim)
{
    double dot = 0.0, squares = 0.0;
    for (int i = 0; i < dim; i++) {
        double s = (double)sum[i];
        dot += (double)a[i] * s;
        squares += s * s;
    }
    return squares > 0.0 ? dot * inverse_a / sqrt(squares) : 0.0;
}

/* The group that a new embedding joins, or TEC_NO_UNIT; of equals the oldest. */
static uint32_t nearest(struct tec_groups *g, const float *v, double inverse)
{
    uint32_t best = TEC_NO_UNIT, i = g->last;
    double most = 0.0;
    for (int n = 0; i != TEC_NO_UNIT && n < TEC_NEAR_GROUPS; i = g->groups[i].prev, n++) {
        double cosine = tec_groups_cosine(v, inverse, tec_groups_sum(g, i), g->is.dim);
        g->totals.compared++;
        if (cosine >= g->is.threshold && (best == TEC_NO_UNIT || cosine >= most)) {
            best = i;
            most = cosine;
        }
    }
    return best;
}

/* Returns the head of an id's chain. The address is a seed: a file cannot make its ids meet in one
 * chain, and no result depends on the order within one. */
static uint32_t *bucket(const struct tec_groups *g, uint64_t id)
{
    return &g->buckets[XXH3_64bits_withSeed(&id, sizeof id, (uint64_t)(uintptr_t)g) %
                       g->is.max_units];
}

uint32_t tec_groups_find(const struct tec_groups *g, uint64_t id)
{
    uint32_t i = *bucket(g, id);
    while (i != TEC_NO_UNIT && g->groups[i].id != id)
        i = g->groups[i].chain;
    return i;
}

/* A new group with this id, at its place in the list: at the end but for restored ones. */
static uint32_t group_open(struct tec_groups *g, uint64_t id)
{
    uint32_t at = g->free, before = g->last;
    g->free = g->groups[at].next;
    while (before != TEC_NO_UNIT && g->groups[before].id > id)
        before = g->groups[before].prev;
    uint32_t after = before == TEC_NO_UNIT ? g->first : g->groups[before].next;
    g->groups[at] = (struct tec_groups_group){.id = id,
                                              .first = TEC_NO_UNIT,
                                              .last = TEC_NO_UNIT,
                                              .next = after,
                                              .prev = before,
                                              .chain = *bucket(g, id)};
    *bucket(g, id) = at;
    *(before == TEC_NO_UNIT ? &g->first : &g->groups[before].next) = at;
    *(after == TEC_NO_UNIT ? &g->last : &g->groups[after].prev) = at;
    memset(tec_groups_sum(g, at), 0, (size_t)g->is.dim * sizeof(int64_t));
    if (id >= g->next_group)
        g->next_group = id + 1;
    return at;
}

static void group_close(struct tec_groups *g, uint32_t at)
{
    struct tec_groups_group *group = &g->groups[at];
    *(group->prev == TEC_NO_UNIT ? &g->first : &g->groups[group->prev].next) = group->next;
    *(group->next == TEC_NO_UNIT ? &g->last : &g->groups[group->next].prev) = group->prev;
    uint32_t *link = bucket(g, group->id);
    while (*link != at)
        link = &g->groups[*link].chain;
    *link = group->chain;
    group->next = g->free;
    g->free = at;
}

static void member_append(struct tec_groups *g, uint32_t at, uint32_t unit)
{
    struct tec_groups_group *group = &g->groups[at];
    struct tec_groups_unit *u = &g->units[unit];
    u->group = at;
    u->prev = group->last;
    u->next = TEC_NO_UNIT;
    *(group->last == TEC_NO_UNIT ? &group->first : &g->units[group->last].next) = unit;
    group->last = unit;
    group->members++;
    group->tokens += u->tokens;
    sum_move(g, at, unit, 1);
}

static void member_drop(struct tec_groups *g, uint32_t unit)
{
    struct tec_groups_unit *u = &g->units[unit];
    struct tec_groups_group *group = &g->groups[u->group];
    *(u->prev == TEC_NO_UNIT ? &group->first : &g->units[u->prev].next) = u->next;
    *(u->next == TEC_NO_UNIT ? &group->last : &g->units[u->next].prev) = u->prev;
    group->members--;
    group->tokens -= u->tokens;
    sum_move(g, u->group, unit, -1);
    u->group = TEC_NO_UNIT;
}

static void unit_set(struct tec_groups *g, uint32_t unit, const struct tec_unit_given *given)
{
    struct tec_groups_unit *u = &g->units[unit];
    memcpy(tec_groups_vector(g, unit), given->embedding, (size_t)g->is.dim * sizeof(float));
    u->inverse = tec_groups_inverse(given->embedding, g->is.dim);
    u->tokens = given->tokens;
    u->text = given->text;
}

static void unit_replace(struct tec_groups *g, uint32_t unit, const struct tec_unit_given *given)
{
    uint32_t at = g->units[unit].group;
    sum_move(g, at, unit, -1);
    g->groups[at].tokens += (int64_t)given->tokens - (int64_t)g->units[unit].tokens;
    unit_set(g, unit, given);
    sum_move(g, at, unit, 1);
}

static struct tec_groups_change no_change(const struct tec_groups *g)
{
    return (struct tec_groups_change){
        .group = TEC_NO_GROUP, .demoted = TEC_NO_GROUP, .promoted = g->promoted};
}

/* The group was touched in this step: dynamic at once, with another epoch. */
static void group_touch(struct tec_groups *g, uint32_t at, struct tec_groups_change *change)
{
    struct tec_groups_group *group = &g->groups[at];
    change->group = group->id;
    if (group->is_static) {
        group->is_static = false;
        change->demoted = group->id;
        g->totals.demotions++;
    }
    group->changed = g->step;
    group->epoch = g->next_epoch++;
}

static void count(struct tec_groups *g, struct tec_groups_change *change, int64_t invalidated,
                  int64_t computed)
{
    change->invalidated += invalidated;
    change->computed += computed;
    g->totals.invalidated += invalidated;
    g->totals.computed += computed;
}

/* True when the members have one KV together: a change of one is a change of all. */
static bool joint(const struct tec_groups_group *group)
{
    return group->is_static && group->members > 1;
}

enum tec_status tec_groups_step(struct tec_groups *g, int64_t step,
                                struct tec_groups_change *change, struct tec_error *err)
{
    if (step < g->step)
        return tec_fail(err, TEC_INVALID, "step %lld comes after step %lld", (long long)step,
                        (long long)g->step);
    *change = no_change(g);
    if (step == g->step)
        return TEC_OK;
    g->step = step;
    for (uint32_t i = g->first; i != TEC_NO_UNIT; i = g->groups[i].next) {
        struct tec_groups_group *group = &g->groups[i];
        if (group->is_static || step - group->changed < g->is.stable_steps)
            continue;
        group->is_static = true;
        group->epoch = g->next_epoch++;
        g->promoted[change->n_promoted++] = group->id;
        g->totals.promotions++;
        if (group->members > 1)
            count(g, change, group->tokens, group->tokens);
    }
    return TEC_OK;
}

static enum tec_status unit_known(const struct tec_groups *g, uint32_t unit, struct tec_error *err)
{
    if (unit >= g->is.max_units || g->units[unit].group == TEC_NO_UNIT)
        return tec_fail(err, TEC_NOT_FOUND, "memory unit %u is not in any group", unit);
    return TEC_OK;
}

static enum tec_status unit_free(const struct tec_groups *g, uint32_t unit, struct tec_error *err)
{
    if (unit >= g->is.max_units)
        return tec_fail(err, TEC_INVALID, "memory unit %u: there is room for %u", unit,
                        g->is.max_units);
    if (g->units[unit].group != TEC_NO_UNIT)
        return tec_fail(err, TEC_INVALID, "memory unit %u is in a group already", unit);
    return TEC_OK;
}

enum tec_status tec_groups_choose(struct tec_groups *g, const float *embedding, uint64_t *group,
                                  struct tec_error *err)
{
    TEC_TRY(tec_groups_check(g, embedding, err));
    uint32_t at = nearest(g, embedding, tec_groups_inverse(embedding, g->is.dim));
    *group = at == TEC_NO_UNIT ? g->next_group : g->groups[at].id;
    return TEC_OK;
}

enum tec_status tec_groups_add_to(struct tec_groups *g, uint32_t unit,
                                  const struct tec_unit_given *given, uint64_t group,
                                  struct tec_groups_change *change, struct tec_error *err)
{
    TEC_TRY(unit_free(g, unit, err));
    TEC_TRY(tec_groups_check(g, given->embedding, err));
    uint32_t at = tec_groups_find(g, group);
    if (at == TEC_NO_UNIT && group != g->next_group)
        return tec_fail(err, TEC_NOT_FOUND, "there is no group %llu", (unsigned long long)group);
    *change = no_change(g);
    if (at == TEC_NO_UNIT)
        at = group_open(g, group);
    unit_set(g, unit, given);
    bool whole = joint(&g->groups[at]);
    int64_t before = g->groups[at].tokens;
    member_append(g, at, unit);
    if (whole)
        count(g, change, before, g->groups[at].tokens);
    else
        count(g, change, 0, given->tokens);
    group_touch(g, at, change);
    return TEC_OK;
}

enum tec_status tec_groups_add(struct tec_groups *g, uint32_t unit,
                               const struct tec_unit_given *given, struct tec_groups_change *change,
                               struct tec_error *err)
{
    uint64_t group = 0;
    TEC_TRY(unit_free(g, unit, err));
    TEC_TRY(tec_groups_choose(g, given->embedding, &group, err));
    return tec_groups_add_to(g, unit, given, group, change, err);
}

enum tec_status tec_groups_update(struct tec_groups *g, uint32_t unit,
                                  const struct tec_unit_given *given,
                                  struct tec_groups_change *change, struct tec_error *err)
{
    TEC_TRY(unit_known(g, unit, err));
    TEC_TRY(tec_groups_check(g, given->embedding, err));
    *change = no_change(g);
    struct tec_groups_unit *u = &g->units[unit];
    struct tec_groups_group *group = &g->groups[u->group];
    change->group = group->id;
    if (u->text.low == given->text.low && u->text.high == given->text.high)
        return TEC_OK;
    int64_t all = group->tokens, one = u->tokens;
    unit_replace(g, unit, given);
    if (joint(group))
        count(g, change, all, group->tokens);
    else
        count(g, change, one, given->tokens);
    group_touch(g, u->group, change);
    return TEC_OK;
}

enum tec_status tec_groups_remove(struct tec_groups *g, uint32_t unit,
                                  struct tec_groups_change *change, struct tec_error *err)
{
    TEC_TRY(unit_known(g, unit, err));
    *change = no_change(g);
    uint32_t at = g->units[unit].group;
    struct tec_groups_group *group = &g->groups[at];
    bool whole = joint(group);
    int64_t before = group->tokens, one = g->units[unit].tokens;
    member_drop(g, unit);
    if (whole)
        count(g, change, before, group->tokens);
    else
        count(g, change, one, 0);
    if (group->members > 0) {
        group_touch(g, at, change);
    } else {
        change->group = group->id;
        group_close(g, at);
    }
    return TEC_OK;
}

enum tec_status tec_groups_restore(struct tec_groups *g, uint32_t unit,
                                   const struct tec_unit_given *given, uint64_t id, int64_t changed,
                                   struct tec_error *err)
{
    TEC_TRY(tec_groups_check(g, given->embedding, err));
    if (id == TEC_NO_GROUP)
        return tec_fail(err, TEC_INVALID, "memory unit %u is in no group", unit);
    uint32_t at;
    if (unit < g->is.max_units && g->units[unit].group != TEC_NO_UNIT) {
        at = g->units[unit].group;
        if (g->groups[at].id != id)
            return tec_fail(err, TEC_INVALID, "memory unit %u moves from group %llu to %llu", unit,
                            (unsigned long long)g->groups[at].id, (unsigned long long)id);
        unit_replace(g, unit, given);
    } else {
        TEC_TRY(unit_free(g, unit, err));
        unit_set(g, unit, given);
        at = tec_groups_find(g, id);
        if (at == TEC_NO_UNIT)
            at = group_open(g, id);
        member_append(g, at, unit);
    }
    g->groups[at].is_static = false;
    g->groups[at].changed = changed > 0 ? changed : 0; /* a file may say anything */
    g->groups[at].epoch = g->next_epoch++;
    return TEC_OK;
}

enum tec_status tec_groups_restore_group(struct tec_groups *g, uint64_t id, bool is_static,
                                         int64_t changed, uint64_t epoch, struct tec_error *err)
{
    uint32_t at = tec_groups_find(g, id);
    if (at == TEC_NO_UNIT)
        return tec_fail(err, TEC_NOT_FOUND, "there is no group %llu", (unsigned long long)id);
    g->groups[at].is_static = is_static;
    g->groups[at].changed = changed > 0 ? changed : 0; /* a file may say anything */
    g->groups[at].epoch = epoch;
    if (epoch >= g->next_epoch)
        g->next_epoch = epoch + 1;
    return TEC_OK;
}
