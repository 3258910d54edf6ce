/* recording_write.c - the items of the frame thread, its flight recorder and its texts, as messages
 * of the file. On the writer's thread. */
#include "tools/record/recording_own.h"

#include "base/json_text.h"
#include "tools/record/ros2_types.h"

#include <stdlib.h>
#include <string.h>

static json_t *or_null(int64_t n)
{
    return n < 0 ? json_null() : json_integer(n);
}

static uint64_t wall(const struct tec_recording *r, int64_t t_ns)
{
    return (uint64_t)(t_ns + r->wall_ns);
}

/* --- inputs ----------------------------------------------------------------------------------- */

/* The channel of an input, made when its first value comes; -1: there is none left. */
static int input_channel(struct tec_recording *r, int session, const struct tec_value *v)
{
    char topic[160];
    bool image = tec_recording_is_image(v);
    if (session)
        snprintf(topic, sizeof topic, "/session%d/%s/%.100s", session, image ? "images" : "inputs",
                 v->name);
    else
        snprintf(topic, sizeof topic, "/%s/%.100s", image ? "images" : "inputs", v->name);
    for (int i = 0; i < r->n_inputs; i++)
        if (strcmp(r->inputs[i].topic, topic) == 0)
            return r->inputs[i].channel;
    if (r->n_inputs == TEC_MAX_INPUTS)
        return -1;
    char *kept = r->inputs[r->n_inputs].topic;
    memcpy(kept, topic, sizeof topic);
    const struct tec_mcap_channel picture = {.topic = kept,
                                             .encoding = "cdr",
                                             .schema = tec_ros2_image.name,
                                             .schema_encoding = "ros2msg",
                                             .schema_text = tec_ros2_image.definition};
    int channel =
        image ? tec_mcap_channel(&r->file, &picture) : tec_recording_channel(&r->file, kept);
    r->inputs[r->n_inputs++].channel = channel;
    return channel;
}

static void put_value(struct tec_recording *r, const struct tec_item_inputs *front,
                      const struct tec_value *v, uint64_t now)
{
    int channel = input_channel(r, front->session, v);
    if (!tec_recording_is_image(v)) {
        tec_recording_json(&r->file, channel, front->number, now, tec_recording_value(v));
        return;
    }
    struct tec_buffer image = {.heap = r->heap};
    tec_recording_image(&image, v, now);
    if (!image.failed)
        tec_mcap_message(&r->file, channel, (uint32_t)front->number, now, image.data, image.n);
    tec_buffer_finish(&image);
}

static void put_inputs(struct tec_recording *r, uint64_t now)
{
    struct tec_item_inputs front;
    const uint8_t *at = r->item;
    memcpy(&front, at, sizeof front);
    at += sizeof front;
    for (int i = 0; i < front.n; i++) {
        struct tec_item_value one;
        char name[160];
        memcpy(&one, at, sizeof one);
        at += sizeof one;
        size_t shown = one.name_bytes < sizeof name - 1 ? one.name_bytes : sizeof name - 1;
        memcpy(name, at, shown);
        name[shown] = '\0';
        at += one.name_bytes;
        struct tec_value v = {.name = name,
                              .kind = (enum tec_value_kind)one.kind,
                              .rank = one.rank,
                              .data = at,
                              .bytes = one.bytes};
        memcpy(v.shape, one.shape, sizeof v.shape);
        at += one.bytes;
        put_value(r, &front, &v, now);
    }
}

/* --- ticks, chunks, frames -------------------------------------------------------------------- */

static json_t *floats(const void *data, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        float f;
        memcpy(&f, (const uint8_t *)data + (size_t)i * sizeof f, sizeof f);
        json_array_append_new(list, tec_json_number((double)f));
    }
    return list;
}

static void put_tick(struct tec_recording *r, uint64_t now)
{
    static const char *const resets[] = {"none", "session", "all"};
    struct tec_item_tick t;
    memcpy(&t, r->item, sizeof t);
    const struct tec_loop_options *o = tec_loop_settings(r->o.opened->engine->loop);
    json_t *asks = json_array(), *cancels = json_array();
    for (int i = 0; i < t.n_asks; i++)
        json_array_append_new(asks, json_pack("{s:s, s:i, s:i}", "node",
                                              o->decoders[t.asks[i].decoder].name, "max_tokens",
                                              t.asks[i].max_tokens, "prio", t.asks[i].prio));
    for (int i = 0; i < t.n_cancels; i++)
        json_array_append_new(cancels, json_integer(t.cancels[i]));
    json_t *one = json_pack("{s:I, s:I, s:i, s:I, s:b, s:b, s:s, s:I, s:I, s:I, s:o, s:o}",
                            "number", (json_int_t)t.number, "frame", (json_int_t)t.frame, "session",
                            t.session, "tick_us", (json_int_t)(t.tick_ns / 1000), "observed",
                            (int)t.observed, "rests", (int)t.rests, "reset", resets[t.reset],
                            "counted", (json_int_t)t.counted, "spawn", (json_int_t)t.spawn, "mute",
                            (json_int_t)t.mute, "asks", asks, "cancels", cancels);
    if (t.ahead)
        json_object_set_new(one, "ahead", json_integer(t.ahead));
    if (t.noise_n)
        json_object_set_new(one, "noise", floats(r->item + sizeof t, t.noise_n));
    tec_recording_json(&r->file, r->ticks, t.number, now, one);
}

/* Numbers at an address of any alignment. */
static json_t *rows_json(const uint8_t *at, int rows, int columns)
{
    json_t *all = json_array();
    for (int i = 0; i < rows; i++) {
        json_t *row = json_array();
        for (int k = 0; k < columns; k++, at += sizeof(double)) {
            double number;
            memcpy(&number, at, sizeof number);
            json_array_append_new(row, tec_json_number(number));
        }
        json_array_append_new(all, row);
    }
    return all;
}

static void put_left(struct tec_recording *r)
{
    struct tec_item_left l;
    memcpy(&l, r->item, sizeof l);
    const uint8_t *chunk = r->item + sizeof l;
    tec_recording_json(
        &r->file, r->actions[l.action], l.seen, wall(r, l.release_ns),
        json_pack("{s:I, s:I, s:i, s:I, s:o, s:b, s:o, s:o}", "frame", (json_int_t)l.frame, "seen",
                  (json_int_t)l.seen, "session", l.session, "release_us",
                  (json_int_t)(l.release_ns / 1000), "age_us", or_null(l.age_us), "late",
                  (int)l.late, "actions",
                  rows_json(chunk + (size_t)l.chunk_n * sizeof(float), l.rows, l.columns), "chunk",
                  floats(chunk, l.chunk_n)));
}

static json_t *launch_json(const struct tec_launch_record *l)
{
    return json_pack("{s:s, s:i, s:i, s:i, s:o, s:I, s:I}", "node", l->node, "rows", l->rows,
                     "batch", l->batch, "k", l->k, "request", or_null(l->request), "start_us",
                     (json_int_t)(l->start_ns / 1000), "end_us", (json_int_t)(l->end_ns / 1000));
}

static void put_frame(struct tec_recording *r)
{
    struct tec_item_frame f;
    json_t *launches = json_array();
    memcpy(&f, r->item, sizeof f);
    for (int i = 0; i < f.n_launches; i++) {
        struct tec_launch_record l;
        memcpy(&l, r->item + sizeof f + (size_t)i * sizeof l, sizeof l);
        json_array_append_new(launches, launch_json(&l));
    }
    json_t *one = json_pack(
        "{s:I, s:i, s:I, s:I, s:I, s:b, s:o, s:I, s:s, s:i, s:i, s:i, s:i, s:I, s:I, s:o}", "frame",
        (json_int_t)f.frame, "session", f.session, "tick_us", (json_int_t)(f.tick_ns / 1000),
        "start_us", (json_int_t)(f.start_ns / 1000), "end_us", (json_int_t)(f.end_ns / 1000),
        "missed", (int)f.missed, "cause",
        f.cause ? json_string(tec_cause_name((enum tec_cause)f.cause)) : json_null(), "overrun_us",
        (json_int_t)f.overrun_us, "policy", f.policy, "tokens", f.tokens, "rows", f.rows,
        "in_flight", f.in_flight, "snapped", f.snapped, "planner_us",
        (json_int_t)(f.planner_ns / 1000), "host_us", (json_int_t)(f.host_ns / 1000), "launches",
        launches);
    json_object_set_new(one, "age_us", or_null(f.age_us));
    json_object_set_new(one, "slack_us", json_integer(f.slack_us));
    json_object_set_new(one, "frame_ms", json_real((double)(f.end_ns - f.start_ns) / 1e6));
    tec_recording_json(&r->file, r->frames, f.frame, wall(r, f.end_ns), one);
}

void tec_recording_put_item(struct tec_recording *r, const struct tec_item_head *head)
{
    uint64_t now = wall(r, head->t_ns);
    if (r->told)
        return;
    if (head->kind == TEC_ITEM_INPUTS)
        put_inputs(r, now);
    else if (head->kind == TEC_ITEM_TICK)
        put_tick(r, now);
    else if (head->kind == TEC_ITEM_LEFT)
        put_left(r);
    else if (head->kind == TEC_ITEM_DECIDED)
        tec_recording_put_decided(r, now);
    else
        put_frame(r);
}

/* --- events and texts ------------------------------------------------------------------------- */

/* Words of the recorder's table that the file does not have yet. */
static void put_words(struct tec_mcap_writer *file, const struct tec_recorder *from, int *n_words,
                      int channel, uint64_t now)
{
    int n = atomic_load_explicit(&from->n_words, memory_order_acquire);
    if (n == *n_words)
        return;
    json_t *words = json_object();
    char number[16];
    for (; *n_words < n; (*n_words)++) {
        snprintf(number, sizeof number, "%d", *n_words + 1);
        json_object_set_new(words, number, tec_json_shown(tec_recorder_word(from, *n_words + 1)));
    }
    tec_recording_json(file, channel, 0, now, words);
}

void tec_recording_put_flight(struct tec_mcap_writer *file, const struct tec_recorder *from,
                              uint64_t *next, int *n_words, int words, int events, int64_t wall_ns,
                              int64_t since_ns)
{
    enum { AT_ONCE = 512 };
    struct tec_flight_event some[AT_ONCE];
    for (;;) {
        size_t n = tec_recorder_copy(from, next, some, AT_ONCE), first = 0;
        if (n == 0)
            return;
        *next += n;
        while (first < n && some[first].t_ns < since_ns)
            first++;
        if (first == n)
            continue;
        uint64_t now = (uint64_t)(some[n - 1].t_ns + wall_ns);
        put_words(file, from, n_words, words, now);
        tec_mcap_message(file, events, (uint32_t)some[n - 1].frame, now, some + first,
                         (n - first) * sizeof some[0]);
    }
}

static void put_stop(struct tec_recording *r, bool stopped, uint32_t stops, uint32_t resets)
{
    int64_t now = tec_clock_now(&r->clock);
    r->stops = stops;
    r->resets = resets;
    tec_recording_json(&r->file, r->safety, 0, wall(r, now),
                       json_pack("{s:b, s:I, s:I, s:I}", "stopped", (int)stopped, "stops",
                                 (json_int_t)stops, "resets", (json_int_t)resets, "at_us",
                                 (json_int_t)(now / 1000)));
}

void tec_recording_put_stops(struct tec_recording *r)
{
    const struct tec_recorded_stops *s = &r->o.stops;
    if (!s->stops || r->told)
        return;
    uint32_t stops = atomic_load(s->stops), resets = atomic_load(s->resets);
    /* A reset ends the stop before it counts. */
    bool stopped = atomic_load(s->stopped) || (stops != r->stops && resets == r->resets);
    if (stops != r->stops && !stopped) /* stopped and reset since the last look */
        put_stop(r, true, stops, r->resets);
    if (stops != r->stops || resets != r->resets)
        put_stop(r, stopped, stops, resets);
}

void tec_recording_put_not_begun(struct tec_recording *r)
{
    int64_t now = tec_clock_now(&r->clock), sum = 0;
    json_t *causes = r->o.not_begun && !r->told ? json_object() : NULL;
    for (int i = 0; causes && i < TEC_CAUSES; i++) {
        int64_t n = atomic_load(&r->o.not_begun[i]);
        sum += n;
        if (n)
            json_object_set_new(causes, tec_cause_name((enum tec_cause)i), json_integer(n));
    }
    if (sum == r->n_not_begun || !causes) {
        json_decref(causes);
        return;
    }
    r->n_not_begun = sum;
    tec_recording_json(&r->file, r->not_begun, 0, wall(r, now),
                       json_pack("{s:I, s:o, s:I}", "number", (json_int_t)sum, "causes", causes,
                                 "at_us", (json_int_t)(now / 1000)));
}

void tec_recording_put_texts(struct tec_recording *r)
{
    struct tec_transcript_event e;
    char text[TEC_DETOKENIZER_BYTES + 1];
    size_t n = 0;
    for (;;) {
        pthread_mutex_lock(&r->texts.lock);
        bool any = tec_transcript_read(&r->texts, &e, text, TEC_DETOKENIZER_BYTES, &n);
        pthread_mutex_unlock(&r->texts.lock);
        if (!any)
            return;
        text[n] = '\0';
        json_t *one = json_pack(
            "{s:I, s:i, s:I, s:o, s:o, s:b, s:o, s:b}", "request", (json_int_t)e.request, "session",
            e.session, "frame", (json_int_t)e.observation, "token", or_null(e.ends ? -1 : e.token),
            "text", tec_json_shown(text), "done", (int)e.ends, "reason",
            e.ends ? tec_json_shown(e.reason) : json_null(), "lost", (int)e.lost);
        tec_recording_json(&r->file, r->decoders[e.decoder], e.observation,
                           wall(r, tec_clock_now(&r->clock)), one);
    }
}
