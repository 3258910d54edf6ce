/* groups.c - adds, updates and removes memory segments and keeps their groups' centroids.
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
    if (is->max_segments < 1 || is->max_segments > 1u << 22)
        return tec_fail(err, TEC_INVALID, "%u memory segments; 1 .. %u are possible",
                        is->max_segments, 1u << 22);
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
    size_t n = options->max_segments, dim = (size_t)options->dim;
    struct tec_groups *g = tec_heap_get(heap, sizeof *g);
    if (!g)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for groups of memory segments");
    g->is = *options;
    g->heap = heap;
    g->segments = tec_heap_get(heap, n * sizeof *g->segments);
    g->groups = tec_heap_get(heap, n * sizeof *g->groups);
    g->embeddings = tec_heap_get_sparse(heap, n * dim * sizeof *g->embeddings);
    g->sums = tec_heap_get_sparse(heap, n * dim * sizeof *g->sums);
    g->promoted = tec_heap_get(heap, n * sizeof *g->promoted);
    g->ranked = tec_heap_get(heap, n * sizeof *g->ranked);
    g->buckets = tec_heap_get(heap, n * sizeof *g->buckets);
    if (!g->segments || !g->groups || !g->embeddings || !g->sums || !g->promoted || !g->ranked ||
        !g->buckets) {
        tec_groups_destroy(g);
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %zu memory segments of %zu numbers", n,
                        dim);
    }
    for (uint32_t i = 0; i < n; i++) {
        g->segments[i].group = TEC_NO_SEGMENT;
        g->groups[i].next = i + 1 < n ? i + 1 : TEC_NO_SEGMENT;
        g->buckets[i] = TEC_NO_SEGMENT;
    }
    g->first = g->last = TEC_NO_SEGMENT;
    g->next_epoch = 1;
    *out = g;
    return TEC_OK;
}

void tec_groups_destroy(struct tec_groups *groups)
{
    if (!groups)
        return;
    tec_heap_put(groups->heap, groups->segments);
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

/* Add (sign 1) or take away (sign -1) a segment's vector. */
static void sum_move(struct tec_groups *g, uint32_t group, uint32_t segment, int sign)
{
    const float *v = tec_groups_vector(g, segment);
    int64_t *sum = tec_groups_sum(g, group);
    double scale = g->segments[segment].inverse * (double)(INT64_C(1) << FIXED_BITS);
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

/* The group that a new embedding joins, or TEC_NO_SEGMENT; of equals the oldest. */
static uint32_t nearest(struct tec_groups *g, const float *v, double inverse)
{
    uint32_t best = TEC_NO_SEGMENT, i = g->last;
    double most = 0.0;
    for (int n = 0; i != TEC_NO_SEGMENT && n < TEC_NEAR_GROUPS; i = g->groups[i].prev, n++) {
        double cosine = tec_groups_cosine(v, inverse, tec_groups_sum(g, i), g->is.dim);
        g->totals.compared++;
        if (cosine >= g->is.threshold && (best == TEC_NO_SEGMENT || cosine >= most)) {
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
                       g->is.max_segments];
}

uint32_t tec_groups_find(const struct tec_groups *g, uint64_t id)
{
    uint32_t i = *bucket(g, id);
    while (i != TEC_NO_SEGMENT && g->groups[i].id != id)
        i = g->groups[i].chain;
    return i;
}

/* A new group with this id, at its place in the list: at the end but for restored ones. */
static uint32_t group_open(struct tec_groups *g, uint64_t id)
{
    uint32_t at = g->free, before = g->last;
    g->free = g->groups[at].next;
    while (before != TEC_NO_SEGMENT && g->groups[before].id > id)
        before = g->groups[before].prev;
    uint32_t after = before == TEC_NO_SEGMENT ? g->first : g->groups[before].next;
    g->groups[at] = (struct tec_groups_group){.id = id,
                                              .first = TEC_NO_SEGMENT,
                                              .last = TEC_NO_SEGMENT,
                                              .next = after,
                                              .prev = before,
                                              .chain = *bucket(g, id)};
    *bucket(g, id) = at;
    *(before == TEC_NO_SEGMENT ? &g->first : &g->groups[before].next) = at;
    *(after == TEC_NO_SEGMENT ? &g->last : &g->groups[after].prev) = at;
    memset(tec_groups_sum(g, at), 0, (size_t)g->is.dim * sizeof(int64_t));
    if (id >= g->next_group)
        g->next_group = id + 1;
    return at;
}

static void group_close(struct tec_groups *g, uint32_t at)
{
    struct tec_groups_group *group = &g->groups[at];
    *(group->prev == TEC_NO_SEGMENT ? &g->first : &g->groups[group->prev].next) = group->next;
    *(group->next == TEC_NO_SEGMENT ? &g->last : &g->groups[group->next].prev) = group->prev;
    uint32_t *link = bucket(g, group->id);
    while (*link != at)
        link = &g->groups[*link].chain;
    *link = group->chain;
    group->next = g->free;
    g->free = at;
}

static void member_append(struct tec_groups *g, uint32_t at, uint32_t segment)
{
    struct tec_groups_group *group = &g->groups[at];
    struct tec_groups_segment *u = &g->segments[segment];
    u->group = at;
    u->prev = group->last;
    u->next = TEC_NO_SEGMENT;
    *(group->last == TEC_NO_SEGMENT ? &group->first : &g->segments[group->last].next) = segment;
    group->last = segment;
    group->members++;
    group->tokens += u->tokens;
    sum_move(g, at, segment, 1);
}

static void member_drop(struct tec_groups *g, uint32_t segment)
{
    struct tec_groups_segment *u = &g->segments[segment];
    struct tec_groups_group *group = &g->groups[u->group];
    *(u->prev == TEC_NO_SEGMENT ? &group->first : &g->segments[u->prev].next) = u->next;
    *(u->next == TEC_NO_SEGMENT ? &group->last : &g->segments[u->next].prev) = u->prev;
    group->members--;
    group->tokens -= u->tokens;
    sum_move(g, u->group, segment, -1);
    u->group = TEC_NO_SEGMENT;
}

static void segment_set(struct tec_groups *g, uint32_t segment,
                        const struct tec_segment_input *given)
{
    struct tec_groups_segment *u = &g->segments[segment];
    memcpy(tec_groups_vector(g, segment), given->embedding, (size_t)g->is.dim * sizeof(float));
    u->inverse = tec_groups_inverse(given->embedding, g->is.dim);
    u->tokens = given->tokens;
    u->text = given->text;
}

static void segment_replace(struct tec_groups *g, uint32_t segment,
                            const struct tec_segment_input *given)
{
    uint32_t at = g->segments[segment].group;
    sum_move(g, at, segment, -1);
    g->groups[at].tokens += (int64_t)given->tokens - (int64_t)g->segments[segment].tokens;
    segment_set(g, segment, given);
    sum_move(g, at, segment, 1);
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
    for (uint32_t i = g->first; i != TEC_NO_SEGMENT; i = g->groups[i].next) {
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

static enum tec_status segment_known(const struct tec_groups *g, uint32_t segment,
                                     struct tec_error *err)
{
    if (segment >= g->is.max_segments || g->segments[segment].group == TEC_NO_SEGMENT)
        return tec_fail(err, TEC_NOT_FOUND, "memory segment %u is not in any group", segment);
    return TEC_OK;
}

static enum tec_status segment_free(const struct tec_groups *g, uint32_t segment,
                                    struct tec_error *err)
{
    if (segment >= g->is.max_segments)
        return tec_fail(err, TEC_INVALID, "memory segment %u: there is room for %u", segment,
                        g->is.max_segments);
    if (g->segments[segment].group != TEC_NO_SEGMENT)
        return tec_fail(err, TEC_INVALID, "memory segment %u is in a group already", segment);
    return TEC_OK;
}

enum tec_status tec_groups_choose(struct tec_groups *g, const float *embedding, uint64_t *group,
                                  struct tec_error *err)
{
    TEC_TRY(tec_groups_check(g, embedding, err));
    uint32_t at = nearest(g, embedding, tec_groups_inverse(embedding, g->is.dim));
    *group = at == TEC_NO_SEGMENT ? g->next_group : g->groups[at].id;
    return TEC_OK;
}

enum tec_status tec_groups_add_to(struct tec_groups *g, uint32_t segment,
                                  const struct tec_segment_input *given, uint64_t group,
                                  struct tec_groups_change *change, struct tec_error *err)
{
    TEC_TRY(segment_free(g, segment, err));
    TEC_TRY(tec_groups_check(g, given->embedding, err));
    uint32_t at = tec_groups_find(g, group);
    if (at == TEC_NO_SEGMENT && group != g->next_group)
        return tec_fail(err, TEC_NOT_FOUND, "there is no group %llu", (unsigned long long)group);
    *change = no_change(g);
    if (at == TEC_NO_SEGMENT)
        at = group_open(g, group);
    segment_set(g, segment, given);
    bool whole = joint(&g->groups[at]);
    int64_t before = g->groups[at].tokens;
    member_append(g, at, segment);
    if (whole)
        count(g, change, before, g->groups[at].tokens);
    else
        count(g, change, 0, given->tokens);
    group_touch(g, at, change);
    return TEC_OK;
}

enum tec_status tec_groups_add(struct tec_groups *g, uint32_t segment,
                               const struct tec_segment_input *given,
                               struct tec_groups_change *change, struct tec_error *err)
{
    uint64_t group = 0;
    TEC_TRY(segment_free(g, segment, err));
    TEC_TRY(tec_groups_choose(g, given->embedding, &group, err));
    return tec_groups_add_to(g, segment, given, group, change, err);
}

enum tec_status tec_groups_update(struct tec_groups *g, uint32_t segment,
                                  const struct tec_segment_input *given,
                                  struct tec_groups_change *change, struct tec_error *err)
{
    TEC_TRY(segment_known(g, segment, err));
    TEC_TRY(tec_groups_check(g, given->embedding, err));
    *change = no_change(g);
    struct tec_groups_segment *u = &g->segments[segment];
    struct tec_groups_group *group = &g->groups[u->group];
    change->group = group->id;
    if (u->text.low == given->text.low && u->text.high == given->text.high)
        return TEC_OK;
    int64_t all = group->tokens, one = u->tokens;
    segment_replace(g, segment, given);
    if (joint(group))
        count(g, change, all, group->tokens);
    else
        count(g, change, one, given->tokens);
    group_touch(g, u->group, change);
    return TEC_OK;
}

enum tec_status tec_groups_embed(struct tec_groups *g, uint32_t segment, const float *embedding,
                                 struct tec_error *err)
{
    TEC_TRY(segment_known(g, segment, err));
    TEC_TRY(tec_groups_check(g, embedding, err));
    const struct tec_groups_segment *u = &g->segments[segment];
    segment_replace(g, segment, &(struct tec_segment_input){embedding, u->tokens, u->text});
    return TEC_OK;
}

enum tec_status tec_groups_count(struct tec_groups *g, uint32_t segment, uint32_t tokens,
                                 struct tec_error *err)
{
    TEC_TRY(segment_known(g, segment, err));
    struct tec_groups_segment *u = &g->segments[segment];
    g->groups[u->group].tokens += (int64_t)tokens - (int64_t)u->tokens;
    u->tokens = tokens;
    return TEC_OK;
}

enum tec_status tec_groups_remove(struct tec_groups *g, uint32_t segment,
                                  struct tec_groups_change *change, struct tec_error *err)
{
    TEC_TRY(segment_known(g, segment, err));
    *change = no_change(g);
    uint32_t at = g->segments[segment].group;
    struct tec_groups_group *group = &g->groups[at];
    bool whole = joint(group);
    int64_t before = group->tokens, one = g->segments[segment].tokens;
    member_drop(g, segment);
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

enum tec_status tec_groups_restore(struct tec_groups *g, uint32_t segment,
                                   const struct tec_segment_input *given, uint64_t id,
                                   int64_t changed, struct tec_error *err)
{
    TEC_TRY(tec_groups_check(g, given->embedding, err));
    if (id == TEC_NO_GROUP)
        return tec_fail(err, TEC_INVALID, "memory segment %u is in no group", segment);
    uint32_t at;
    if (segment < g->is.max_segments && g->segments[segment].group != TEC_NO_SEGMENT) {
        at = g->segments[segment].group;
        if (g->groups[at].id != id)
            return tec_fail(err, TEC_INVALID, "memory segment %u moves from group %llu to %llu",
                            segment, (unsigned long long)g->groups[at].id, (unsigned long long)id);
        segment_replace(g, segment, given);
    } else {
        TEC_TRY(segment_free(g, segment, err));
        segment_set(g, segment, given);
        at = tec_groups_find(g, id);
        if (at == TEC_NO_SEGMENT)
            at = group_open(g, id);
        member_append(g, at, segment);
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
    if (at == TEC_NO_SEGMENT)
        return tec_fail(err, TEC_NOT_FOUND, "there is no group %llu", (unsigned long long)id);
    g->groups[at].is_static = is_static;
    g->groups[at].changed = changed > 0 ? changed : 0; /* a file may say anything */
    g->groups[at].epoch = epoch;
    if (epoch >= g->next_epoch)
        g->next_epoch = epoch + 1;
    return TEC_OK;
}
