/* loading.c - decides which piece of KV to load next while a forward computes layer by layer.
 *
 * A state machine without a clock or a thread of its own: the prefetch thread drives it with real
 * times, the simulator with exact ones, so both obey the same rules. It always picks the lowest
 * layer that is not complete; the rules of overlaps.def differ only in how far ahead they look and,
 * for `bounded`, in how much of a distant load may start. Why that never delays a layer is proved
 * in loading.h. */
#include "graph/memory/loading.h"

#include <string.h>

#define MAX_TIME (INT64_C(1) << 40)

static const char *const names[] = {
#define OVERLAP(name, text, what) text,
#include "graph/memory/overlaps.def"
#undef OVERLAP
};

const char *tec_overlap_name(enum tec_overlap overlap)
{
    return (unsigned)overlap < TEC_OVERLAPS ? names[overlap] : NULL;
}

static enum tec_status times_check(const int64_t *times, size_t n, const char *what,
                                   struct tec_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (times[i] < 0 || times[i] > MAX_TIME)
            return tec_fail(err, TEC_INVALID, "loading: %s %zu takes %lld, 0 .. 2^40 are possible",
                            what, i, (long long)times[i]);
    return TEC_OK;
}

static enum tec_status order_check(const struct tec_loading_table *t, unsigned char *seen,
                                   struct tec_error *err)
{
    for (int i = 0; t->order && i < t->segments; i++) {
        int segment = t->order[i];
        if (segment < 0 || segment >= t->segments || seen[segment])
            return tec_fail(err, TEC_INVALID, "loading: order is no permutation of %d segments",
                            t->segments);
        seen[segment] = 1;
    }
    return TEC_OK;
}

static enum tec_status table_check(const struct tec_loading_table *t, struct tec_error *err)
{
    if (t->layers < 1 || t->layers > TEC_MAX_LOADING_LAYERS || t->segments < 0 ||
        t->segments > TEC_MAX_LOADING_SEGMENTS)
        return tec_fail(err, TEC_INVALID,
                        "loading: %d layers of %d segments; up to %d of %d are possible", t->layers,
                        t->segments, TEC_MAX_LOADING_LAYERS, TEC_MAX_LOADING_SEGMENTS);
    size_t layers = (size_t)t->layers, segments = (size_t)t->segments;
    TEC_TRY(times_check(t->attention, layers, "attention", err));
    TEC_TRY(times_check(t->importance, layers, "importance", err));
    TEC_TRY(times_check(t->mlp, layers, "mlp", err));
    TEC_TRY(times_check(t->load, layers * segments, "load", err));
    return times_check(&t->grain, 1, "grain", err);
}

/* Adopt a new set of computed segments; the segments that left it must be loaded for every layer
 * from the newest known one on. */
static void set_take(struct tec_loading *l, const unsigned char *set, bool first)
{
    int dropped = 0;
    l->n_live = 0;
    for (int u = 0; u < l->table.segments; u++) {
        dropped += (first || l->live[u]) && !set[u];
        l->live[u] = set[u] != 0;
        l->n_live += l->live[u];
    }
    for (int i = l->known; i < l->table.layers; i++)
        l->missing[i] += dropped;
}

enum tec_status tec_loading_init(struct tec_loading *l, const struct tec_loading_table *table,
                                 enum tec_overlap overlap, const unsigned char *set,
                                 struct tec_arena *arena, struct tec_error *err)
{
    TEC_TRY(table_check(table, err));
    if ((unsigned)overlap >= TEC_OVERLAPS)
        return tec_fail(err, TEC_INVALID, "loading: there is no rule %d", (int)overlap);
    size_t layers = (size_t)table->layers, segments = (size_t)table->segments;
    *l = (struct tec_loading){.table = *table, .overlap = overlap, .started = -1};
    l->live = TEC_NEW(arena, segments, unsigned char);
    l->left = TEC_NEW(arena, layers * segments, int64_t);
    l->missing = TEC_NEW(arena, layers, int);
    if (!l->live || !l->left || !l->missing)
        return tec_fail(err, TEC_NO_MEMORY, "loading: no memory for %zu layers of %zu segments",
                        layers, segments);
    TEC_TRY(order_check(table, l->live, err));
    if (layers * segments > 0)
        memcpy(l->left, table->load, layers * segments * sizeof *l->left);
    set_take(l, set, true);
    return TEC_OK;
}

enum tec_status tec_loading_known(struct tec_loading *l, const unsigned char *set,
                                  struct tec_error *err)
{
    if (l->known != l->started || l->known + 1 >= l->table.layers)
        return tec_fail(err, TEC_INVALID, "loading: the set of layer %d comes while layer %d runs",
                        l->known + 1, l->started);
    for (int u = 0; u < l->table.segments; u++)
        if (set[u] && !l->live[u])
            return tec_fail(err, TEC_INVALID, "loading: segment %d comes back at layer %d", u,
                            l->known + 1);
    l->known++;
    set_take(l, set, false);
    return TEC_OK;
}

bool tec_loading_ready(const struct tec_loading *l)
{
    return l->known == l->started + 1 && l->missing[l->known] == 0;
}

void tec_loading_start(struct tec_loading *l, int64_t now)
{
    const struct tec_loading_table *t = &l->table;
    int i = ++l->started;
    l->reveals = now + t->attention[i] + t->importance[i];
    l->ends = now + t->attention[i] + t->mlp[i];
    l->computing = true;
}

void tec_loading_rest(struct tec_loading *l)
{
    l->computing = false;
}

/* The moment when the set after the newest known one will be known, so that loads appear which
 * nothing may delay. The newest known one is of the layer that runs, or of the next one, whose own
 * loads are then complete (they are picked before anything that asks). */
static int64_t next_reveal(const struct tec_loading *l, int64_t now)
{
    const struct tec_loading_table *t = &l->table;
    if (l->known == l->started)
        return l->reveals;
    int64_t start = l->started >= 0 && l->ends > now ? l->ends : now;
    return start + t->attention[l->known] + t->importance[l->known];
}

/* How much of a load may go onto the link now. */
static int64_t allowed(const struct tec_loading *l, int layer, int64_t left, int64_t now)
{
    bool near = layer <= l->known + 1, settled = l->n_live == 0;
    if (l->overlap != TEC_OVERLAP_BOUNDED || near || settled)
        return left;
    int64_t room = next_reveal(l, now) - now;
    if (left <= room)
        return left;
    int64_t grain = l->table.grain;
    return grain > 0 && room >= grain ? room / grain * grain : -1;
}

/* The last layer that the rule looks at. */
static int farthest(const struct tec_loading *l)
{
    int last = l->table.layers - 1, next = l->started + 1;
    if (l->overlap == TEC_OVERLAP_SEPARATE && l->computing)
        return -1;
    if (l->overlap == TEC_OVERLAP_SEPARATE || l->overlap == TEC_OVERLAP_NEXT)
        return next < last ? next : last;
    return last;
}

bool tec_loading_pick(struct tec_loading *l, int64_t now, struct tec_load *out)
{
    const struct tec_loading_table *t = &l->table;
    for (int layer = l->started + 1, end = farthest(l); layer <= end; layer++) {
        for (int i = 0; l->missing[layer] > 0 && i < t->segments; i++) {
            int segment = t->order ? t->order[i] : i;
            int64_t *left = &l->left[(size_t)layer * (size_t)t->segments + (size_t)segment];
            if (l->live[segment] || *left < 0)
                continue;
            int64_t take = allowed(l, layer, *left, now);
            if (take < 0)
                continue;
            int64_t whole = t->load[left - l->left], from = whole - *left;
            *out = (struct tec_load){layer, segment, from, from + take, take == *left};
            *left = take == *left ? -1 : *left - take;
            return true;
        }
    }
    return false;
}

void tec_loading_done(struct tec_loading *l, const struct tec_load *load)
{
    l->missing[load->layer] -= load->last;
}
