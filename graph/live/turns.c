/* turns.c - the loop around frames, of one runtime or of several: what has come, then language. */
#include "graph/live/turns.h"

enum { FIRST_PAUSE_NS = 500000, LONGEST_PAUSE_NS = 4000000 };

void tec_turns_join(struct tec_turns *t, struct tec_runtime *rt)
{
    t->since[t->n] = -1;
    t->of[t->n++] = rt;
    rt->turns = t;
    rt->bell = &t->bell;
}

static bool has_ended(const struct tec_runtime *rt)
{
    return atomic_load(&rt->ending);
}

/* --- what a frame knows of the others ----------------------------------------------------------
 */

/* When what has come to it is due; INT64_MAX: nothing has. */
static int64_t due_of(const struct tec_runtime *rt)
{
    bool asks = rt->source.due && !has_ended(rt);
    return asks ? rt->source.due(rt->source.user) : INT64_MAX;
}

static bool others_wait(void *runtime)
{
    const struct tec_runtime *rt = runtime;
    bool any = false;
    for (int i = 0; i < rt->turns->n && !any; i++)
        any = rt->turns->of[i] != rt && due_of(rt->turns->of[i]) < INT64_MAX;
    return any;
}

static int64_t others_next(void *runtime, int64_t now_ns)
{
    const struct tec_runtime *rt = runtime;
    int64_t first = INT64_MAX;
    for (int i = 0; i < rt->turns->n; i++) {
        const struct tec_runtime *one = rt->turns->of[i];
        if (one == rt || !one->source.expected || has_ended(one))
            continue;
        int64_t next =
            due_of(one) < INT64_MAX ? now_ns : one->source.expected(one->source.user, now_ns);
        first = next < first ? next : first;
    }
    return first;
}

struct tec_loop_others tec_turns_others(struct tec_runtime *rt)
{
    return (struct tec_loop_others){others_wait, others_next, rt};
}

/* --- what has come -----------------------------------------------------------------------------
 */

enum { WAITS, WAITS_BEHIND, NOTHING }; /* behind: it has had a frame since another began to wait */

/* Note who waits, since which frame. */
static void see(struct tec_turns *t, int64_t *due_ns)
{
    for (int i = 0; i < t->n; i++) {
        due_ns[i] = due_of(t->of[i]);
        if (due_ns[i] < INT64_MAX && t->since[i] < 0)
            t->since[i] = t->frames;
        else if (due_ns[i] == INT64_MAX)
            t->since[i] = -1;
    }
}

static int rank_of(const struct tec_turns *t, int i)
{
    bool behind = false;
    for (int other = 0; other < t->n; other++)
        behind |= t->since[other] >= 0 && t->newest[i] > t->since[other];
    return t->since[i] < 0 ? NOTHING : behind ? WAITS_BEHIND : WAITS;
}

/* The runtime that is to look next for what has come; -1: all have looked. */
static int next_of(struct tec_turns *t, unsigned looked)
{
    int best = -1, lowest = NOTHING;
    int64_t due_ns[TEC_MAX_TURNS];
    see(t, due_ns);
    for (int i = 0; i < t->n; i++) {
        int rank = rank_of(t, i);
        if ((looked >> i & 1U) || has_ended(t->of[i]))
            continue;
        if (best < 0 || rank < lowest || (rank == lowest && due_ns[i] < due_ns[best])) {
            best = i;
            lowest = rank;
        }
    }
    return best;
}

/* Let the runtimes look, until one had anything; *look_ns: else what has come waits for more until
 * then. */
static bool take(struct tec_turns *t, int64_t *look_ns)
{
    int i;
    for (unsigned looked = 0; (i = next_of(t, looked)) >= 0; looked |= 1U << i) {
        struct tec_runtime *rt = t->of[i];
        rt->look_ns = INT64_MAX;
        if (rt->source.take(rt->source.user)) {
            rt->pause_ns = 0;
            t->newest[i] = ++t->frames;
            t->since[i] = -1;
            return true;
        }
        *look_ns = rt->look_ns < *look_ns ? rt->look_ns : *look_ns;
    }
    return false;
}

/* --- language ----------------------------------------------------------------------------------
 */

static bool cancels_wait(const struct tec_runtime *rt)
{
    bool any = false;
    for (int i = 0; i < rt->engine->n_sessions; i++)
        any |= rt->sessions[i].asks && tec_asks_cancels_wait(rt->sessions[i].asks);
    return any;
}

/* When language is to go on without an observation; INT64_MAX: not before something comes. A device
 * that has failed makes no text any more. */
static int64_t next_without(const struct tec_runtime *rt)
{
    const struct tec_runtime_source *s = &rt->source;
    if (!s->go_on || has_ended(rt))
        return INT64_MAX;
    const struct tec_loop *loop = rt->engine->loop;
    int live = s->rests ? tec_loop_requests(loop) : tec_loop_live(loop);
    if (live == 0 || tec_engine_failure(rt->engine, NULL) != TEC_OK)
        return cancels_wait(rt) ? 0 : INT64_MAX;
    return (s->from_end || s->between_ns == 0 ? rt->ended_ns : rt->began_ns) + s->between_ns +
           rt->pause_ns;
}

/* The next pause behind a frame without an observation. */
static int64_t pause_behind(const struct tec_runtime *rt)
{
    if (rt->launched || rt->source.between_ns > 0)
        return 0;
    int64_t next = rt->pause_ns ? 2 * rt->pause_ns : FIRST_PAUSE_NS;
    return next < LONGEST_PAUSE_NS ? next : LONGEST_PAUSE_NS;
}

/* The runtime whose language is to go on first, which ended its newest frame earliest where all may
 * at once. */
static struct tec_runtime *goes_on(const struct tec_turns *t, int64_t *when_ns)
{
    struct tec_runtime *first = t->of[0];
    *when_ns = INT64_MAX;
    for (int i = 0; i < t->n; i++) {
        int64_t next = next_without(t->of[i]);
        if (next < *when_ns) {
            first = t->of[i];
            *when_ns = next;
        }
    }
    return first;
}

/* --- the thread --------------------------------------------------------------------------------
 */

static bool all_ended(const struct tec_turns *t)
{
    int n = 0;
    for (int i = 0; i < t->n; i++)
        n += has_ended(t->of[i]);
    return n == t->n || (n > 0 && !atomic_load(&t->drains));
}

void tec_turns_work(struct tec_turns *t)
{
    struct tec_bell *bell = t->of[0]->bell;
    for (;;) {
        uint32_t seen = atomic_load(&bell->rings); /* what comes from here on ends the wait */
        if (all_ended(t))
            return;
        int64_t look = INT64_MAX, next;
        if (take(t, &look))
            continue;
        struct tec_runtime *rt = goes_on(t, &next);
        bool gathers = look < INT64_MAX;
        next = gathers ? look : next;
        if (gathers || next > tec_clock_now(&rt->clock)) {
            tec_bell_wait(bell, seen, next);
            continue;
        }
        rt->source.go_on(rt->source.user);
        rt->pause_ns = pause_behind(rt);
    }
}
