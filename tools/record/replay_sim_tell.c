/* replay_sim_tell.c - simulated frames against recorded ones, as lines, as text and as JSON. */
#include "base/json_text.h"
#include "tools/measure/machine.h"
#include "tools/record/explain.h"
#include "tools/record/replay_plan.h"
#include "tools/record/replay_sim_own.h"

#include <stdlib.h>
#include <string.h>

static int64_t number(const json_t *json, const char *name)
{
    return json_integer_value(json_object_get(json, name));
}

static bool was_missed(const json_t *was)
{
    return json_is_true(json_object_get(was, "missed"));
}

static void count_was(struct tec_replay_sim *s, const json_t *was)
{
    const char *cause = json_string_value(json_object_get(was, "cause"));
    s->was_us[s->counts.was++] = number(was, "end_us") - number(was, "start_us");
    s->counts.was_missed += was_missed(was);
    for (int i = 0; cause && was_missed(was) && i < TEC_CAUSES; i++)
        s->counts.was_causes[i] += strcmp(cause, tec_cause_name((enum tec_cause)i)) == 0;
}

/* A line of one frame of both, `is` NULL: it opens none here. Takes the references of the lists. */
static json_t *line_of(const struct tec_replay_sim *s, const struct tec_recorded_part *part,
                       json_t *was, json_t *is, const struct tec_frame_record *now)
{
    bool late = json_is_true(json_object_get(part->was, "missed"));
    json_t *line = json_pack(
        "{s:I, s:i, s:o, s:o, s:I, s:o, s:b, s:o}", "frame", (json_int_t)part->number, "session",
        part->session, "was", was, "is", is ? is : json_null(), "was_us",
        (json_int_t)(number(part->was, "end_us") - number(part->was, "start_us")), "is_us",
        now ? json_integer((now->end_ns - now->start_ns) / 1000) : json_null(), "was_missed",
        (int)late, "is_missed", now ? json_boolean(now->missed) : json_null());
    if (line && now && now->missed)
        json_object_set_new(line, "is_cause", json_string(tec_cause_name(now->cause)));
    if (line && late)
        json_object_set(line, "was_cause", json_object_get(part->was, "cause"));
    if (line && (s->o->diff || s->o->html)) {
        json_object_set_new(line, "was_notes",
                            part->flight ? tec_flight_notes(&s->run.flight, part->flight)
                                         : json_object());
        json_object_set_new(line, "is_notes", now ? json_deep_copy(s->notes) : json_object());
    }
    return line;
}

/* Take the line's reference: a frame that differs is printed, with options.html all are kept. */
static enum tec_status tell_frame(struct tec_replay_sim *s, json_t *line, bool differs,
                                  struct tec_error *err)
{
    if (s->o->html)
        tec_replay_page_add(&s->page, line, differs);
    if (differs && !s->counts.first)
        s->counts.first = json_incref(line);
    enum tec_status status =
        !line ? tec_fail(err, TEC_NO_MEMORY, "no memory for a difference")
        : differs && s->o->diff
            ? tec_json_print(s->call->out, line, JSON_COMPACT, "a difference", err)
            : TEC_OK;
    json_decref(line);
    return status;
}

enum tec_status tec_replay_sim_compare(struct tec_replay_sim *s,
                                       const struct tec_recorded_part *part,
                                       const struct tec_frame_record *now, struct tec_error *err)
{
    if (!part->was)
        return TEC_OK; /* the recording ends before its frame does */
    count_was(s, part->was);
    json_t *was = tec_replay_plan_was(part->was), *is = tec_replay_plan_is(now);
    bool differs = !json_equal(was, is);
    s->counts.plans_equal += !differs;
    s->counts.plans_differ += differs;
    if (differs || s->o->html)
        return tell_frame(s, line_of(s, part, was, is, now), differs, err);
    json_decref(was);
    json_decref(is);
    return TEC_OK;
}

enum tec_status tec_replay_sim_skip(struct tec_replay_sim *s,
                                    const struct tec_recorded_moment *moment, struct tec_error *err)
{
    for (int i = 0; i < moment->n; i++) {
        const struct tec_recorded_part *part = &s->run.parts[moment->first + (size_t)i];
        if (!part->was)
            continue;
        count_was(s, part->was);
        s->counts.plans_differ++;
        TEC_TRY(
            tell_frame(s, line_of(s, part, tec_replay_plan_was(part->was), NULL, NULL), true, err));
    }
    return TEC_OK;
}

/* --- the whole -------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t was_at(const struct tec_replay_sim *s, double q)
{
    int64_t n = s->counts.was, rank = (int64_t)(q * (double)n + 0.9999999) - 1;
    return n ? s->was_us[rank < 0 ? 0 : rank >= n ? n - 1 : rank] : 0;
}

static json_t *recorded_json(const struct tec_replay_sim *s)
{
    json_t *causes = json_object();
    for (int i = 1; i < TEC_CAUSES; i++)
        json_object_set_new(causes, tec_cause_name((enum tec_cause)i),
                            json_integer((json_int_t)s->counts.was_causes[i]));
    return json_pack("{s:I, s:I, s:o, s:{s:I, s:I, s:I}}", "frames", (json_int_t)s->counts.was,
                     "missed", (json_int_t)s->counts.was_missed, "causes", causes, "frame_us",
                     "p50", (json_int_t)was_at(s, 0.5), "p99", (json_int_t)was_at(s, 0.99), "max",
                     (json_int_t)was_at(s, 1.0));
}

static json_t *whole_json(struct tec_replay_sim *s)
{
    const char *costs = s->call->shared.costs;
    const json_t *was = json_object_get(s->run.flight.about, "policy");
    return json_pack("{s:s, s:O?, s:s, s:I, s:I, s:I, s:{s:I, s:I, s:O?}, s:o, s:o}", "policy",
                     tec_used_policy(&s->opened), "was_policy", was, "costs",
                     costs ? costs : "recorded", "frames", (json_int_t)s->counts.frames, "skipped",
                     (json_int_t)s->counts.skipped, "more", (json_int_t)s->counts.more, "plans",
                     "equal", (json_int_t)s->counts.plans_equal, "differ",
                     (json_int_t)s->counts.plans_differ, "first", s->counts.first, "recorded",
                     recorded_json(s), "simulated", tec_summary_json(&s->summary));
}

static void print_first(const struct tec_replay_sim *s)
{
    const json_t *first = s->counts.first;
    char *was = first ? tec_json_whole(json_object_get(first, "was"), JSON_COMPACT) : NULL;
    char *is =
        first ? tec_json_whole(json_object_get(first, "is"), JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    if (was && is)
        fprintf(s->call->out, "first    frame %lld: was %.300s, is %.300s\n",
                (long long)number(first, "frame"), was, is);
    free(was);
    free(is);
}

static json_t *copy_of(const json_t *object, const char *key)
{
    return json_incref(json_object_get(object, key));
}

/* Rates are of the simulation's clock. */
static enum tec_status write_page(struct tec_replay_sim *s, struct tec_error *err)
{
    const json_t *about = s->run.flight.about, *then = json_object_get(about, "machine");
    const char *name = json_string_value(json_object_get(about, "pipeline"));
    const char *costs = s->call->shared.costs;
    json_t *all = tec_summary_json(&s->summary);
    struct tec_replay_page *p = &s->page;
    tec_replay_page_fact(p, "policy", copy_of(about, "policy"),
                         tec_json_shown(tec_used_policy(&s->opened)));
    tec_replay_page_fact(p, "actions a second", NULL, copy_of(all, "action_hz"));
    tec_replay_page_fact(p, "tokens a second", NULL, copy_of(all, "tokens_s"));
    tec_replay_page_fact(p, "costs", json_string("what launches took"),
                         costs ? tec_json_shown(costs) : json_string("what launches took"));
    tec_replay_page_fact(p, "device", copy_of(about, "device"), json_string("a virtual clock"));
    tec_replay_page_fact(p, "processor", copy_of(then, "cpu"), NULL);
    tec_replay_page_fact(p, "commit", copy_of(about, "commit"), json_string(tec_machine_commit()));
    tec_replay_page_fact(p, "verb", copy_of(about, "verb"), json_string("replay --sim"));
    tec_replay_page_fact(p, "of", copy_of(about, "path"), tec_json_shown(s->o->path));
    json_decref(all);
    return tec_context(err, tec_replay_page_write(p, s->o->html, name ? name : "recording", err),
                       "--html");
}

enum tec_status tec_replay_sim_tell(struct tec_replay_sim *s, struct tec_error *err)
{
    const char *costs = s->call->shared.costs;
    if (s->counts.was)
        qsort(s->was_us, (size_t)s->counts.was, sizeof *s->was_us, by_value);
    if (s->o->html)
        TEC_TRY(write_page(s, err));
    if (s->call->shared.format != TEC_FORMAT_TEXT) {
        json_t *json = whole_json(s);
        enum tec_status status =
            tec_json_print(s->call->out, json, JSON_COMPACT | JSON_REAL_PRECISION(6),
                           "what a replay came to", err);
        json_decref(json);
        return status;
    }
    fprintf(s->call->out,
            "%lld frames simulated, %lld ticks skipped, %lld frames of ticks that were; costs: %s\n"
            "plans    %lld equal, %lld differ\n",
            (long long)s->counts.frames, (long long)s->counts.skipped, (long long)s->counts.more,
            costs ? costs : "what launches took in the recording", (long long)s->counts.plans_equal,
            (long long)s->counts.plans_differ);
    print_first(s);
    fprintf(s->call->out,
            "recorded: %lld frames, %lld missed; frame_us p50 %lld  p99 %lld  max %lld\n",
            (long long)s->counts.was, (long long)s->counts.was_missed, (long long)was_at(s, 0.5),
            (long long)was_at(s, 0.99), (long long)was_at(s, 1.0));
    tec_summary_print(&s->summary, tec_used_policy(&s->opened), s->call->out);
    return TEC_OK;
}
