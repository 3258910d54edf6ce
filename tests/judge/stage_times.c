/* stage_times.c - collects how long launches took, and makes quantiles of it. */
#include "tests/judge/stage_times.h"

#include "base/json_text.h"

#include <stdlib.h>

static const char *const names[TEC_STAGE_TIMES] = {"prefill",
                                                   "action",
                                                   "decode",
                                                   "packed",
                                                   "score",
                                                   "prefill, for taps",
                                                   "action, for taps",
                                                   "decode, for taps",
                                                   "packed, for taps",
                                                   "score, for taps"};

static void keep(struct tec_stage_times *t, int stage, int64_t ns)
{
    if (t->stages[stage].n == t->stages[stage].room) {
        size_t room = t->stages[stage].room ? 2 * t->stages[stage].room : 64;
        int64_t *more = realloc(t->stages[stage].ns, room * sizeof *more);
        if (!more)
            return;
        t->stages[stage].ns = more;
        t->stages[stage].room = room;
    }
    t->stages[stage].ns[t->stages[stage].n++] = ns;
}

void tec_verify_replayed(struct tec_verify *v, const struct tec_plan *plan,
                         const struct tec_replay *replay)
{
    static const int marks[TEC_STAGE_KINDS] = {TEC_MARK_PREFILL, TEC_MARK_ACTION, TEC_MARK_DECODE,
                                               TEC_MARK_PACKED, TEC_MARK_SCORE};
    int64_t since = replay->start_ns;
    for (int i = 0; v->times && i < TEC_STAGE_KINDS; i++) {
        int64_t at = replay->mark_ns[marks[i]];
        if (at <= 0)
            continue;
        keep(v->times, plan->spec.taps ? TEC_STAGE_KINDS + i : i, at - since);
        since = at; /* the action follows the prefill */
    }
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static double us_at(const int64_t *ns, size_t n, double q)
{
    size_t rank = (size_t)(q * (double)n + 0.9999999);
    return (double)ns[rank > n ? n - 1 : rank ? rank - 1 : 0] / 1e3;
}

void tec_verify_put_times(json_t *rows, const char *name, struct tec_stage_times *t)
{
    for (int i = 0; i < TEC_STAGE_TIMES; i++) {
        size_t n = t->stages[i].n;
        int64_t *ns = t->stages[i].ns;
        if (n) {
            qsort(ns, n, sizeof *ns, by_value);
            json_array_append_new(
                rows, json_pack("{s:o, s:s, s:I, s:f, s:f, s:f}", "case", tec_json_shown(name),
                                "stage", names[i], "n", (json_int_t)n, "p50_us", us_at(ns, n, 0.5),
                                "p99_us", us_at(ns, n, 0.99), "max_us", us_at(ns, n, 1.0)));
        }
        free(ns);
    }
    *t = (struct tec_stage_times){0};
}
