/* explain_print.c - a frame, and all misses of a recording, as text and as JSON. */
#include "tools/record/explain.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN = 20 /* misses of a summary */ };

static double ms(int64_t us)
{
    return (double)us / 1e3;
}

static int64_t period_us(const struct tec_flight *f)
{
    return json_integer_value(json_object_get(f->about, "period_us"));
}

/* --- JSON ------------------------------------------------------------------------------------- */

static json_t *launches_json(const struct tec_flight *f, const struct tec_flight_frame *frame)
{
    json_t *all = json_array();
    for (size_t i = tec_flight_next(f, frame, frame->launch); i != SIZE_MAX;
         i = tec_flight_next(f, frame, i + 1)) {
        const struct tec_flight_launch *l = &f->launches[i];
        const struct tec_usual *u = tec_flight_usual(f, l);
        json_array_append_new(
            all, json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:I}", "node",
                           tec_flight_node(f, l->node), "launch", l->what, "rows", l->rows,
                           "padded", l->padded, "k", l->k, "lane", l->lane, "start_us",
                           (json_int_t)((l->start_ns - frame->tick_ns) / 1000), "us",
                           (json_int_t)((l->end_ns - l->start_ns) / 1000), "p50_us",
                           (json_int_t)u->p50_us, "p99_us", (json_int_t)u->p99_us));
    }
    return all;
}

static enum tec_status miss_json(json_t **out, struct tec_flight *f,
                                 const struct tec_flight_frame *frame, struct tec_error *err)
{
    struct tec_miss miss;
    TEC_TRY(tec_explain_miss(&miss, f, frame, err));
    *out = json_pack("{s:I, s:i, s:s, s:s, s:I, s:s, s:o}", "frame", (json_int_t)frame->frame,
                     "session", frame->session, "cause", miss.cause, "node", miss.node, "us_over",
                     (json_int_t)miss.us_over, "words", miss.words, "notes",
                     tec_flight_notes(f, frame));
    return *out ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for an explanation");
}

enum tec_status tec_explain_frame_json(json_t **out, struct tec_flight *f,
                                       const struct tec_flight_frame *frame, struct tec_error *err)
{
    bool ended = frame->end_ns >= 0;
    TEC_TRY(miss_json(out, f, frame, err));
    json_t *j = *out;
    if (!frame->missed)
        json_object_set_new(j, "words",
                            json_string(ended ? "it was in time" : "the recording ends within it"));
    json_object_set_new(j, "missed", json_boolean(frame->missed));
    json_object_set_new(j, "policy", json_string(tec_flight_policy(f, frame)));
    json_object_set_new(j, "policy_us", json_integer(frame->planner_us));
    json_object_set_new(j, "host_us", json_integer(frame->host_us));
    json_object_set_new(j, "frame_us",
                        ended ? json_integer((frame->end_ns - frame->start_ns) / 1000)
                              : json_null());
    json_object_set_new(j, "deadline_us",
                        frame->deadline_us < 0 ? json_null() : json_integer(frame->deadline_us));
    json_object_set_new(j, "slack_us",
                        frame->deadline_us < 0 ? json_null() : json_integer(frame->slack_us));
    json_object_set_new(j, "age_us", frame->age_us < 0 ? json_null() : json_integer(frame->age_us));
    json_object_set_new(j, "late_us", json_integer(frame->late_ns / 1000));
    json_object_set_new(j, "tokens", json_integer(frame->tokens));
    json_object_set_new(j, "in_flight", json_integer(frame->in_flight));
    json_object_set_new(j, "snapped", json_integer(frame->snapped));
    json_object_set_new(j, "decisions", tec_flight_decisions(f, frame));
    json_object_set_new(j, "refused", tec_flight_refused(f, frame));
    json_object_set_new(j, "left_out", tec_flight_left_out(f, frame));
    json_object_set_new(j, "launches", launches_json(f, frame));
    return TEC_OK;
}

static void count_causes(const struct tec_flight *f, json_t *causes, size_t *missed)
{
    *missed = 0;
    for (size_t i = 0; i < f->n_frames; i++) {
        const struct tec_flight_frame *frame = &f->frames[i];
        if (!frame->missed)
            continue;
        json_int_t so_far = json_integer_value(json_object_get(causes, frame->cause));
        json_object_set_new(causes, frame->cause, json_integer(so_far + 1));
        ++*missed;
    }
}

/* In all that was recorded. */
static size_t count_left_out(const struct tec_flight *f)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n_events; i++)
        n += f->events[i].kind == TEC_EVENT_LEFT_OUT;
    return n;
}

/* The number of a frame of a session. */
struct numbered {
    int64_t session, frame;
};

static int by_number(const void *left, const void *right)
{
    const struct numbered *a = left, *b = right;
    int order = (a->session > b->session) - (a->session < b->session);
    return order ? order : (a->frame > b->frame) - (a->frame < b->frame);
}

/* Numbers that a recording's ticks and frames have, ascending, each once. A dump, and a robot
 * that runs, have none; NULL: nor is there memory. */
static struct numbered *numbers_of(struct tec_flight *f, size_t *n)
{
    struct tec_mcap_message m;
    size_t most = 0, all = 0;
    *n = 0;
    if (!f->file.data)
        return NULL;
    tec_mcap_rewind(&f->file);
    while (tec_mcap_next(&f->file, &m))
        most += tec_mcap_is(m.topic, "/tectum/ticks") || tec_mcap_is(m.topic, "/tectum/frames");
    struct numbered *to = TEC_NEW(&f->arena, most + 1, struct numbered);
    tec_mcap_rewind(&f->file);
    while (to && tec_mcap_next(&f->file, &m)) {
        if (!tec_mcap_is(m.topic, "/tectum/ticks") && !tec_mcap_is(m.topic, "/tectum/frames"))
            continue;
        json_t *json = json_loadb((const char *)m.data, m.n, 0, NULL);
        to[all++] = (struct numbered){json_integer_value(json_object_get(json, "session")),
                                      json_integer_value(json_object_get(json, "frame"))};
        json_decref(json);
    }
    if (all)
        qsort(to, all, sizeof *to, by_number);
    for (size_t i = 0; i < all; i++)
        if (*n == 0 || by_number(&to[*n - 1], &to[i]) != 0)
            to[(*n)++] = to[i];
    return to;
}

/* How many of them lie in front of this one. */
static size_t before(const struct numbered *numbers, size_t n, struct numbered one)
{
    size_t low = 0;
    while (low < n) {
        size_t middle = low + (n - low) / 2;
        if (by_number(&numbers[middle], &one) < 0)
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}

/* Ticks of a paced run that opened no frame, because the one before was not over: their numbers are
 * those that are missing between two frames of a session. Where a tick or a frame has the number,
 * only its events are missing. */
static size_t count_skipped(struct tec_flight *f)
{
    const char *mode = json_string_value(json_object_get(f->about, "mode"));
    const struct numbered *numbers = NULL;
    size_t skipped = 0, n = 0;
    for (size_t i = 1; mode && strcmp(mode, "paced") == 0 && i < f->n_frames; i++) {
        const struct tec_flight_frame *now = &f->frames[i], *last = now;
        while (last > f->frames && (--last)->session != now->session)
            continue;
        if (last == now || last->session != now->session || now->frame <= last->frame + 1)
            continue;
        if (!numbers)
            numbers = numbers_of(f, &n);
        const struct numbered from = {now->session, last->frame + 1},
                              to = {now->session, now->frame};
        size_t known = before(numbers, n, to) - before(numbers, n, from);
        skipped += (size_t)(now->frame - last->frame - 1) - known;
    }
    return skipped;
}

enum tec_status tec_explain_all_json(json_t **out, struct tec_flight *f, struct tec_error *err)
{
    json_t *misses = json_array(), *causes = json_object();
    size_t missed;
    enum tec_status status = TEC_OK;
    count_causes(f, causes, &missed);
    for (size_t i = 0; i < f->n_frames && status == TEC_OK; i++) {
        json_t *one = NULL;
        if (f->frames[i].missed)
            status = miss_json(&one, f, &f->frames[i], err);
        if (one)
            json_array_append_new(misses, one);
    }
    *out = json_pack("{s:I, s:I, s:I, s:I, s:o, s:o, s:s}", "frames", (json_int_t)f->n_frames,
                     "missed", (json_int_t)missed, "skipped", (json_int_t)count_skipped(f),
                     "left_out", (json_int_t)count_left_out(f), "causes", causes, "misses", misses,
                     "damage", f->file.damage);
    return status;
}

/* --- text ------------------------------------------------------------------------------------- */

static void print_launches(FILE *out, const struct tec_flight *f,
                           const struct tec_flight_frame *frame)
{
    for (size_t i = tec_flight_next(f, frame, frame->launch); i != SIZE_MAX;
         i = tec_flight_next(f, frame, i + 1)) {
        const struct tec_flight_launch *l = &f->launches[i];
        char shape[64] = "";
        const struct tec_usual *u = tec_flight_usual(f, l);
        if (l->k > 0 || l->rows > 1)
            snprintf(shape, sizeof shape, "%d row%s of %d%s%.0d", l->rows, l->rows > 1 ? "s" : "",
                     l->padded > l->rows ? l->padded : l->rows, l->k ? ", k=" : "", l->k);
        fprintf(out, "  %-12s %-22s at %8.2f ms  took %8.2f ms   p50 %.2f  p99 %.2f\n",
                tec_flight_node(f, l->node), shape, ms((l->start_ns - frame->tick_ns) / 1000),
                ms((l->end_ns - l->start_ns) / 1000), ms(u->p50_us), ms(u->p99_us));
    }
}

static void print_notes(FILE *out, const struct tec_flight *f, const struct tec_flight_frame *frame)
{
    json_t *notes = tec_flight_notes(f, frame), *value;
    const char *name;
    fputs(json_object_size(notes) ? "  notes:" : "", out);
    json_object_foreach(notes, name, value)
    {
        if (json_is_string(value))
            fprintf(out, " %s=%s", name, json_string_value(value));
        else
            fprintf(out, " %s=%g", name, json_number_value(value));
    }
    fputs(json_object_size(notes) ? "\n" : "", out);
    json_decref(notes);
}

static void print_refused(FILE *out, const struct tec_flight *f,
                          const struct tec_flight_frame *frame)
{
    json_t *all = tec_flight_refused(f, frame), *one;
    size_t i;
    json_array_foreach(all, i, one)
    {
        fprintf(out, "  refused: request %lld of '%s', %s\n",
                (long long)json_integer_value(json_object_get(one, "request")),
                json_string_value(json_object_get(one, "node")),
                json_string_value(json_object_get(one, "reason")));
    }
    json_decref(all);
}

/* Action nodes that the policy left out of the frame. */
static void print_left_out(FILE *out, const struct tec_flight *f,
                           const struct tec_flight_frame *frame)
{
    json_t *all = tec_flight_left_out(f, frame), *one;
    size_t i;
    json_array_foreach(all, i, one)
    {
        fprintf(out, "  left out: '%s', %s\n", json_string_value(json_object_get(one, "node")),
                json_string_value(json_object_get(one, "reason")));
    }
    json_decref(all);
}

enum tec_status tec_explain_frame_text(FILE *out, struct tec_flight *f,
                                       const struct tec_flight_frame *frame, struct tec_error *err)
{
    fprintf(out, "frame %lld", (long long)frame->frame);
    if (json_integer_value(json_object_get(f->about, "sessions")) > 1)
        fprintf(out, "  session %d", frame->session);
    if (period_us(f) > 0)
        fprintf(out, "  period %.1f ms", ms(period_us(f)));
    if (frame->deadline_us >= 0)
        fprintf(out, "  deadline %.1f ms", ms(frame->deadline_us));
    if (frame->end_ns >= 0)
        fprintf(out, "  took %.2f ms", ms((frame->end_ns - frame->start_ns) / 1000));
    if (frame->deadline_us >= 0 && frame->age_us >= 0)
        fprintf(out, "  slack %.2f ms", ms(frame->slack_us));
    fprintf(out, "  policy %s (%.3f ms)  host %.3f ms\n", tec_flight_policy(f, frame),
            ms(frame->planner_us), ms(frame->host_us));
    if (frame->late_ns > 0)
        fprintf(out, "  inputs came %.2f ms after the tick\n", ms(frame->late_ns / 1000));
    print_launches(out, f, frame);
    print_notes(out, f, frame);
    print_refused(out, f, frame);
    print_left_out(out, f, frame);
    if (!frame->missed)
        return TEC_OK;
    struct tec_miss miss;
    TEC_TRY(tec_explain_miss(&miss, f, frame, err));
    fprintf(out, "  missed by %.2f ms, cause %s: %s\n", ms(miss.us_over), miss.cause, miss.words);
    return TEC_OK;
}

enum tec_status tec_explain_all_text(FILE *out, struct tec_flight *f, struct tec_error *err)
{
    json_t *causes = json_object(), *value;
    const char *cause;
    size_t missed, shown = 0, left_out = count_left_out(f), skipped = count_skipped(f);
    count_causes(f, causes, &missed);
    fprintf(out, "%zu frame%s, %zu missed", f->n_frames, f->n_frames == 1 ? "" : "s", missed);
    json_object_foreach(causes, cause, value)
    {
        fprintf(out, ", %s %lld", cause, (long long)json_integer_value(value));
    }
    if (left_out)
        fprintf(out, ", %zu left out", left_out);
    if (skipped)
        fprintf(out, "; %zu tick%s between them opened no frame: %zu of %zu ticks missed", skipped,
                skipped == 1 ? "" : "s", missed + skipped, f->n_frames + skipped);
    fputc('\n', out);
    json_decref(causes);
    for (size_t i = 0; i < f->n_frames && shown < SHOWN; i++) {
        struct tec_miss miss;
        if (!f->frames[i].missed)
            continue;
        shown++;
        TEC_TRY(tec_explain_miss(&miss, f, &f->frames[i], err));
        fprintf(out, "frame %lld missed by %.2f ms, cause %s: %s\n", (long long)f->frames[i].frame,
                ms(miss.us_over), miss.cause, miss.words);
    }
    if (shown < missed)
        fprintf(out, "and %zu more; --format json has them all\n", missed - shown);
    return TEC_OK;
}
