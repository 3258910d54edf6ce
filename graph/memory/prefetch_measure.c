/* prefetch_measure.c - the time of a forward: measures its loads and layers, and estimates what the
 * next ones will take.
 *
 * Runs on the prefetch thread, but for what the frame asks. The time of a load is modelled as a
 * fixed part and a part for each byte, fitted by least squares in which older samples fade; where
 * all samples have about the same size only the ratio is known. At the end of a forward it adds up
 * bubbles (the forward waited for loads) and overlap (loads ran beside layers). */
#include "graph/memory/prefetch_own.h"

#include "base/clock.h"

#define FADE 0.97           /* weight of a pair after the next one */
#define LONGEST (1LL << 40) /* of what loading.h takes */
enum { MEAN_OF = 4 };

int64_t tec_prefetch_now(const struct tec_prefetch *s)
{
    const struct tec_clock clock = {0};
    return tec_clock_now(&clock) - s->begin;
}

void tec_prefetch_line_add(struct tec_prefetch_line *l, size_t bytes, int64_t ns)
{
    double x = (double)bytes, y = (double)ns;
    l->n = l->n * FADE + 1;
    l->x = l->x * FADE + x;
    l->y = l->y * FADE + y;
    l->xx = l->xx * FADE + x * x;
    l->xy = l->xy * FADE + x * y;
}

int64_t tec_prefetch_line_at(const struct tec_prefetch_line *l, size_t bytes)
{
    if (l->n <= 0 || l->x <= 0)
        return 0;
    /* Where all had nearly the same size, or the slope makes no sense: in proportion. */
    double spread = l->xx * l->n - l->x * l->x, slope = l->y / l->x, fixed = 0;
    if (spread > 1e-3 * l->x * l->x) {
        double fit = (l->xy * l->n - l->x * l->y) / spread, start = (l->y - fit * l->x) / l->n;
        slope = fit > 0 && start >= 0 ? fit : slope;
        fixed = fit > 0 && start >= 0 ? start : 0;
    }
    double ns = fixed + slope * (double)bytes;
    return ns < (double)LONGEST ? (int64_t)ns : (int64_t)LONGEST;
}

int64_t tec_prefetch_believed(const struct tec_prefetch *s, enum tec_kept_in tier, size_t bytes)
{
    return (unsigned)tier < TEC_KEPT_PLACES ? tec_prefetch_line_at(&s->lines[tier], bytes) : 0;
}

static void mean_add(int64_t *mean, int64_t ns)
{
    *mean = *mean > 0 ? *mean + (ns - *mean) / MEAN_OF : ns;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The time at which layer l and its importance ended; `end` if it is still running. */
static int64_t layer_end(const struct tec_prefetch *s, int l, int ended, int known, int64_t end)
{
    if (l >= ended)
        return end;
    return l + 1 < known ? later(s->ended_at[l], s->known_at[l + 1]) : s->ended_at[l];
}

void tec_prefetch_measure(struct tec_prefetch *s)
{
    int started = atomic_load(&s->started), known = atomic_load(&s->known);
    int ended = atomic_load(&s->ended);
    int64_t end = tec_prefetch_now(s);
    size_t next = 0;
    for (int l = 0; l < started; l++) {
        int64_t from = s->started_at[l], to = layer_end(s, l, ended, known, end);
        int64_t free = l == 0 ? 0 : layer_end(s, l - 1, ended, known, from);
        if (l < ended)
            mean_add(&s->mean_layer[l], s->ended_at[l] - from);
        if (l + 1 < known)
            mean_add(&s->mean_reveal[l], s->known_at[l + 1] - from);
        s->bubble_ns[l] = later(s->whole_at[l] - free, 0);
        s->counts.bubble_ns += s->bubble_ns[l];
        while (next < s->n_loads && s->loads[next].end <= from)
            next++;
        for (size_t i = next; i < s->n_loads && s->loads[i].start < to; i++) {
            int64_t a = later(s->loads[i].start, from);
            int64_t b = s->loads[i].end < to ? s->loads[i].end : to;
            s->counts.overlap_ns += later(b - a, 0);
        }
    }
}
