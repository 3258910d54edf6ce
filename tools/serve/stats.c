/* stats.c - what the server tells about itself at its end. */
#include "tools/serve/stats.h"
#include "base/json_text.h"
#include "tools/frames/memory_text.h"

#include <jansson.h>

void tec_serve_stats_add(struct tec_serve_stats *s, const struct tec_job *job, int64_t now)
{
    if (job->failed) {
        s->errors++;
        return;
    }
    int64_t overhead = now - job->received_ns - job->infer_ns;
    s->requests++;
    tec_histogram_add(&s->infer, job->infer_ns);
    tec_histogram_add(&s->waited, job->picked_ns - job->received_ns);
    int64_t own = overhead - (job->picked_ns - job->received_ns);
    tec_histogram_add(&s->overhead, overhead > 0 ? overhead : 0);
    tec_histogram_add(&s->own, own > 0 ? own : 0);
}

static json_t *quantiles(const struct tec_histogram *h, double unit)
{
    return json_pack("{s:f, s:f, s:f}", "p50", (double)tec_histogram_at(h, 0.5) / unit, "p99",
                     (double)tec_histogram_at(h, 0.99) / unit, "max", (double)h->max / unit);
}

/* Calls of the policy, and how many of them failed: those frames had the default plan. */
static json_t *policy_json(const struct tec_policy *policy)
{
    if (!policy)
        return json_pack("{s:s, s:i, s:i, s:b}", "name", "default", "calls", 0, "failures", 0,
                         "quarantined", 0);
    const struct tec_policy_report *r = tec_policy_report(policy);
    return json_pack("{s:s, s:I, s:I, s:b}", "name", tec_policy_name(policy), "calls",
                     (json_int_t)r->calls, "failures", (json_int_t)r->failures, "quarantined",
                     (int)r->quarantined);
}

json_t *tec_serve_misses_json(const struct tec_safety *safety)
{
    json_t *json = json_pack("{s:I}", "total", (json_int_t)tec_safety_misses(safety));
    for (int i = 0; json && i < TEC_CAUSES; i++) {
        int64_t n = atomic_load(&safety->misses[i]);
        if (n > 0)
            json_object_set_new(json, tec_cause_name((enum tec_cause)i), json_integer(n));
    }
    return json;
}

json_t *tec_serve_limits_json(const struct tec_safety *safety)
{
    return json_pack("{s:I, s:I, s:I}", "requests", (json_int_t)atomic_load(&safety->limited),
                     "values", (json_int_t)atomic_load(&safety->limited_values), "refused",
                     (json_int_t)atomic_load(&safety->refused));
}

/* "tectum serve: 5 requests missed their deadline (plan 4, host 1)" */
static void say_misses(const struct tec_safety *safety, struct tec_invocation *call)
{
    char text[200] = "";
    size_t n = 0;
    for (int i = 0; i < TEC_CAUSES && n < sizeof text; i++) {
        long long misses = (long long)atomic_load(&safety->misses[i]);
        if (misses > 0)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s %lld", n ? ", " : "",
                                  tec_cause_name((enum tec_cause)i), misses);
    }
    if (n)
        tec_say(call, "%lld requests missed their deadline (%s)",
                (long long)tec_safety_misses(safety), text);
}

static void print_text(const struct tec_serve_stats *s, struct tec_invocation *call)
{
    tec_say(call,
            "%lld requests, %lld errors; infer p50 %.2f ms, p99 %.2f ms; server overhead p50 "
            "%.0f us, p99 %.0f us, without waiting for the engine p50 %.0f us, p99 %.0f us",
            (long long)s->requests, (long long)s->errors,
            (double)tec_histogram_at(&s->infer, 0.5) / 1e6,
            (double)tec_histogram_at(&s->infer, 0.99) / 1e6,
            (double)tec_histogram_at(&s->overhead, 0.5) / 1e3,
            (double)tec_histogram_at(&s->overhead, 0.99) / 1e3,
            (double)tec_histogram_at(&s->own, 0.5) / 1e3,
            (double)tec_histogram_at(&s->own, 0.99) / 1e3);
}

static void print_json(const struct tec_serve_stats *s, const struct tec_safety *safety,
                       const struct tec_policy *policy, const struct tec_engine *engine,
                       struct tec_invocation *call)
{
    struct tec_error err;
    json_t *json = json_pack(
        "{s:o, s:I, s:I, s:I, s:o, s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "pipeline",
        tec_json_shown(engine->options.pipeline->name), "requests", (json_int_t)s->requests,
        "substitutes", (json_int_t)s->substitutes, "left_out",
        (json_int_t)atomic_load(&safety->left_out), "misses", tec_serve_misses_json(safety),
        "limits", tec_serve_limits_json(safety), "rescued", (json_int_t)s->rescued, "errors",
        (json_int_t)s->errors, "connections", (json_int_t)s->connections, "infer_ms",
        quantiles(&s->infer, 1e6), "overhead_us", quantiles(&s->overhead, 1e3), "waited_us",
        quantiles(&s->waited, 1e3), "own_us", quantiles(&s->own, 1e3), "policy",
        policy_json(policy), "memory", tec_frame_memory_state_json(engine));
    if (tec_json_print(call->out, json, JSON_REAL_PRECISION(6) | JSON_COMPACT, "the summary",
                       &err) != TEC_OK)
        tec_say(call, "%s", err.message);
    json_decref(json);
}

void tec_serve_stats_print(const struct tec_serve_stats *s, const struct tec_safety *safety,
                           const struct tec_policy *policy, const struct tec_engine *engine,
                           struct tec_invocation *call)
{
    long long limited = (long long)atomic_load(&safety->limited);
    long long left_out = (long long)atomic_load(&safety->left_out);
    long long late = (long long)s->substitutes - left_out; /* those came before their deadline */
    tec_frame_memory_say_state(engine, call);
    say_misses(safety, call);
    if (limited)
        tec_say(call,
                "%lld requests had actions beyond the robot's limits, %lld of them were refused",
                limited, (long long)atomic_load(&safety->refused));
    if (left_out)
        tec_say(
            call,
            "%lld requests were answered with what on_miss says: a policy left their actions out",
            left_out);
    if (late > 0)
        tec_say(call, "%lld requests were answered at their deadline, before their result", late);
    if (s->rescued)
        tec_say(call, "%lld replies were sent while the connection thread did not come round",
                (long long)s->rescued);
    if (policy && tec_policy_report(policy)->failures)
        tec_say(call, "%lld of %lld calls of the policy failed; the last: %s",
                (long long)tec_policy_report(policy)->failures,
                (long long)tec_policy_report(policy)->calls, tec_policy_report(policy)->message);
    if (call->shared.format == TEC_FORMAT_JSON)
        print_json(s, safety, policy, engine, call);
    else
        print_text(s, call);
}
