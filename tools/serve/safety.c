/* safety.c - counts of missed deadlines, and the latch of a stop. */
#include "tools/serve/safety.h"

#include "graph/live/action_output.h"

#include <stdio.h>
#include <string.h>

enum { SECOND_NS = 1000000000 };

static const char *const meanings[] = {
#define CAUSE(name, word, meaning) meaning,
#include "graph/run/launch/causes.def"
#undef CAUSE
};

void tec_safety_miss(struct tec_safety *s, int64_t frame, enum tec_cause cause, int64_t late_ns)
{
    /* The robot did not get its actions, although the frame says nothing: the time between. */
    if (cause == TEC_CAUSE_NONE)
        cause = TEC_CAUSE_HOST;
    atomic_store_explicit(&s->frame, frame, memory_order_relaxed);
    atomic_store_explicit(&s->late_us, late_ns > 0 ? late_ns / 1000 : 0, memory_order_relaxed);
    atomic_store_explicit(&s->cause, (int)cause, memory_order_relaxed);
    if (frame < 0)
        atomic_fetch_add(&s->not_begun[cause], 1);
    atomic_fetch_add(&s->misses[cause], 1);
}

void tec_safety_skip(struct tec_safety *s, int64_t received_ns, int64_t due_ns)
{
    atomic_store_explicit(&s->skipped_received_ns, received_ns, memory_order_relaxed);
    atomic_store_explicit(&s->skipped_due_ns, due_ns, memory_order_relaxed);
    atomic_fetch_add(&s->skipped, 1);
}

void tec_safety_settle(struct tec_safety *s, const struct tec_loop *loop, int64_t now)
{
    int64_t n = atomic_exchange(&s->skipped, 0);
    if (n == 0)
        return;
    int64_t received = atomic_load(&s->skipped_received_ns), due = atomic_load(&s->skipped_due_ns);
    enum tec_cause cause = tec_loop_blame(loop, received, due, now);
    for (; n > 0; n--)
        tec_safety_miss(s, -1, cause, 0);
}

void tec_safety_limit(struct tec_safety *s, const struct tec_beyond *b)
{
    atomic_store_explicit(&s->limit_kind, (int)b->kind, memory_order_relaxed);
    atomic_store_explicit(&s->limit_row, b->row, memory_order_relaxed);
    atomic_store_explicit(&s->limit_column, b->column, memory_order_relaxed);
    atomic_store_explicit(&s->limit_value, b->value, memory_order_relaxed);
    atomic_store_explicit(&s->limit, b->limit, memory_order_relaxed);
    atomic_fetch_add(&s->refused, tec_beyond_refused(b));
    atomic_fetch_add(&s->limited_values, b->n);
    atomic_fetch_add(&s->limited, 1);
}

int64_t tec_safety_misses(const struct tec_safety *s)
{
    int64_t sum = 0;
    for (int i = 0; i < TEC_CAUSES; i++)
        sum += atomic_load(&s->misses[i]);
    return sum;
}

void tec_safety_stop(struct tec_safety *s, const struct tec_safety_stop *stop)
{
    if (atomic_load(&s->stopped))
        return;
    const char *session = stop->session ? stop->session : "";
    size_t n = strlen(session);
    atomic_store(&s->stop_why, (int)stop->why);
    atomic_store(&s->stop_limit, stop->limit);
    atomic_store(&s->stop_node, stop->node);
    atomic_store(&s->stop_number, stop->number);
    atomic_store(&s->stop_client, stop->client);
    atomic_store(&s->stop_left, stop->left);
    for (size_t i = 0; i <= n && i < TEC_SAFETY_SESSION; i++)
        atomic_store(&s->stop_session[i], session[i]);
    if (!atomic_exchange(&s->stopped, true))
        atomic_fetch_add(&s->stops, 1);
}

struct tec_safety_stop tec_safety_stop_of(const struct tec_beyond *beyond, bool left_out,
                                          const struct tec_action_output_options *output)
{
    bool refused = tec_beyond_refused(beyond);
    bool at_once = refused ? beyond->on == TEC_LIMIT_STOP : output->on_miss == TEC_MISS_STOP;
    return (struct tec_safety_stop){.why = refused    ? TEC_STOP_LIMITS
                                           : left_out ? TEC_STOP_LEFT_OUT
                                                      : TEC_STOP_MISSES,
                                    .limit = at_once ? 0 : output->limit};
}

void tec_safety_leave(struct tec_safety *s, int64_t client)
{
    if (atomic_load(&s->stop_client) == client)
        atomic_store(&s->stop_left, true);
}

int tec_safety_stop_text(const struct tec_safety_stop *stop, char *text, size_t room)
{
    static const char *const whats[] = {[TEC_STOP_MISSES] = "was not there in time",
                                        [TEC_STOP_LEFT_OUT] = "was left out by the policy",
                                        [TEC_STOP_LIMITS] = "was beyond the robot's limits"};
    const char *node = stop->node ? stop->node : "", *what = whats[stop->why];
    if (stop->limit == 0)
        return snprintf(text, room, "'%.60s' %s, which stops it", node, what);
    return snprintf(text, room,
                    "'%.60s' had no actions of its own %d times in a row, limit = %d: the last %s",
                    node, stop->limit + 1, stop->limit, what);
}

static int tell_stop(const struct tec_safety *s, const char *who, char *text, size_t room)
{
    char session[TEC_SAFETY_SESSION + 1], why[200], last[200] = "";
    for (size_t i = 0; i < sizeof session; i++)
        session[i] = atomic_load(&s->stop_session[i]);
    const struct tec_safety_stop stop = {.why = (enum tec_safety_why)atomic_load(&s->stop_why),
                                         .limit = atomic_load(&s->stop_limit),
                                         .node = atomic_load(&s->stop_node)};
    tec_safety_stop_text(&stop, why, sizeof why);
    if (atomic_load(&s->stop_client) > 0)
        snprintf(last, sizeof last, ", request %lld of connection %lld%s%.80s%s%s",
                 (long long)atomic_load(&s->stop_number), (long long)atomic_load(&s->stop_client),
                 session[0] ? " (session " : "", session, session[0] ? ")" : "",
                 atomic_load(&s->stop_left) ? ", which has left" : "");
    return snprintf(text, room,
                    "tectum %.60s: the robot is stopped, for every client, until a request with "
                    "reset or `tectum policy reset`: %s%s\n",
                    who, why, last);
}

void tec_safety_reset(struct tec_safety *s)
{
    atomic_store(&s->stopped, false);
    atomic_fetch_add(&s->resets, 1);
}

static int tell_misses(const struct tec_safety *s, int64_t n, const char *who, char *text,
                       size_t room)
{
    int cause = atomic_load(&s->cause);
    long long frame = (long long)atomic_load(&s->frame);
    double late_ms = (double)atomic_load(&s->late_us) / 1e3;
    const char *name = tec_cause_name((enum tec_cause)cause), *meaning = meanings[cause];
    const char *count = n == 1 ? "request" : "requests";
    if (frame < 0)
        return snprintf(
            text, room,
            "tectum %.60s: %lld %s missed the deadline; the last was not begun: %s (%s)\n", who,
            (long long)n, count, name, meaning);
    return snprintf(
        text, room,
        "tectum %.60s: %lld %s missed the deadline; the last in frame %lld, %.2f ms late: "
        "%s (%s)\n",
        who, (long long)n, count, frame, late_ms, name, meaning);
}

static int tell_limits(const struct tec_safety *s, int64_t n, const char *who, char *text,
                       size_t room)
{
    static const char *const words[] = {"is", "is", "changes by"};
    return snprintf(
        text, room,
        "tectum %.60s: %lld request%s had actions beyond the robot's limits; the last: row "
        "%d, column %d %s %.6g, the limit is %.6g\n",
        who, (long long)n, n == 1 ? "" : "s", atomic_load(&s->limit_row) + 1,
        atomic_load(&s->limit_column) + 1, words[atomic_load(&s->limit_kind) % 3],
        atomic_load(&s->limit_value), atomic_load(&s->limit));
}

int tec_safety_tell(const struct tec_safety *s, struct tec_safety_log *log, int64_t now,
                    const char *who, char *text, size_t room)
{
    int64_t misses = tec_safety_misses(s), limited = atomic_load(&s->limited);
    uint32_t stops = atomic_load(&s->stops);
    bool stopped = log->stopped ? atomic_load(&s->stopped) : stops != log->stops;
    int n = 0;
    if (stopped != log->stopped) {
        log->stopped = stopped;
        log->stops = stops;
        n = stopped ? tell_stop(s, who, text, room)
                    : snprintf(text, room, "tectum %.60s: the stop was reset\n", who);
    } else if (misses > log->told && now >= log->due_ns) {
        n = tell_misses(s, misses - log->told, who, text, room);
        log->told = misses;
        log->due_ns = now + SECOND_NS;
    } else if (limited > log->limited && now >= log->limits_due_ns) {
        n = tell_limits(s, limited - log->limited, who, text, room);
        log->limited = limited;
        log->limits_due_ns = now + SECOND_NS;
    }
    return n < (int)room ? n : (int)room - 1;
}
