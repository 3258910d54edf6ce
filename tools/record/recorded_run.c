/* recorded_run.c - reads a recording's ticks, the frames that they opened, and how long texts were.
 */
#include "tools/record/recorded_run.h"

#include <stdlib.h>
#include <string.h>

enum { AHEAD = 1024 /* frames that are looked through for a tick's */ };

/* The state of reading. */
struct reading {
    struct tec_recorded_run *run;
    struct tec_recorded recorded;
    size_t room_parts, room_requests, flight; /* flight: index of the next frame */
    bool ran;                            /* something of the newest moment's frame has been read */
    struct tec_recorded_request **order; /* [n_requests] by id and frame */
};

static void *copy(struct tec_arena *arena, const void *from, size_t n, size_t size)
{
    void *to = n ? tec_arena_push(arena, n, size, 8) : NULL;
    if (to)
        memcpy(to, from, n * size);
    return to;
}

/* FNV-1a over the texts' names and bytes. */
static uint64_t hash_texts(const struct tec_frame_given *given)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; given->values && i < given->n; i++) {
        const struct tec_value *v = &given->values[i];
        if (v->kind != TEC_VALUE_TEXT)
            continue;
        for (const char *at = v->name; *at; at++)
            hash = (hash ^ (uint8_t)*at) * 0x100000001b3;
        for (size_t k = 0; k < v->bytes; k++)
            hash = (hash ^ ((const uint8_t *)v->data)[k]) * 0x100000001b3;
    }
    return hash;
}

/* --- ticks ------------------------------------------------------------------------------------ */

static struct tec_recorded_part *part_of(const struct tec_recorded_run *run, int64_t session)
{
    if (run->n_moments == 0)
        return NULL;
    const struct tec_recorded_moment *m = &run->moments[run->n_moments - 1];
    for (int i = 0; i < m->n; i++)
        if (run->parts[m->first + (size_t)i].session == session)
            return &run->parts[m->first + (size_t)i];
    return NULL;
}

/* The tick's frame: the next one of that number and session. */
static const struct tec_flight_frame *frame_of(struct reading *r,
                                               const struct tec_recorded_part *part)
{
    const struct tec_flight *f = &r->run->flight;
    for (size_t i = r->flight; i < f->n_frames && i < r->flight + AHEAD; i++)
        if (f->frames[i].frame == (part->frame & INT32_MAX) &&
            f->frames[i].session == part->session) {
            r->flight = i + 1;
            return &f->frames[i];
        }
    return NULL;
}

static void take_requests(struct reading *r, struct tec_recorded_part *part)
{
    struct tec_recorded_run *run = r->run;
    const struct tec_flight *f = &run->flight;
    part->first_request = run->n_requests;
    for (size_t i = part->flight->first; i <= part->flight->last && i < f->n_events; i++) {
        const struct tec_flight_event *e = &f->events[i];
        if (e->kind == TEC_EVENT_ARRIVE && e->session == part->session &&
            e->frame == part->flight->frame && run->n_requests < r->room_requests)
            run->requests[run->n_requests++] = (struct tec_recorded_request){
                .id = e->value, .frame = part->frame, .node = e->node, .now = -1};
    }
    part->n_requests = run->n_requests - part->first_request;
}

static void begin_moment(struct reading *r, int64_t session)
{
    struct tec_recorded_run *run = r->run;
    if (run->n_moments == 0 || r->ran || part_of(run, session))
        run->moments[run->n_moments++] = (struct tec_recorded_moment){.first = run->n_parts};
    r->ran = false;
}

static enum tec_status take_tick(struct reading *r, const struct tec_recorded_frame *tick,
                                 struct tec_error *err)
{
    struct tec_recorded_run *run = r->run;
    if (run->n_parts == r->room_parts)
        return TEC_OK; /* no more ticks than were counted */
    begin_moment(r, tick->again.session);
    struct tec_recorded_part *part = &run->parts[run->n_parts++];
    run->moments[run->n_moments - 1].n++;
    *part = (struct tec_recorded_part){
        .session = tick->again.session,
        .number = tick->again.number,
        .frame = tick->again.frame,
        .ahead = tick->again.ahead,
        .counted = tick->again.counted,
        .tick_ns = tick->tick_us < 0 || tick->tick_us > INT64_MAX / 4000 ? 0 : tick->tick_us * 1000,
        .deadline_ns = INT64_MIN,
        .spawn = tick->again.spawn,
        .mute = tick->again.mute,
        .observed = tick->again.given.values != NULL,
        .rests = tick->again.rests,
        .reset = tick->reset,
        .text = hash_texts(&tick->again.given),
        .n_asks = tick->asks.n_asks,
        .n_cancels = tick->asks.n_cancels,
        .cancels = copy(&run->arena, tick->asks.cancels, (size_t)tick->asks.n_cancels,
                        sizeof tick->asks.cancels[0])};
    struct tec_input_ask *asks =
        copy(&run->arena, tick->asks.asks, (size_t)tick->asks.n_asks, sizeof tick->asks.asks[0]);
    for (int i = 0; asks && i < part->n_asks; i++)
        asks[i].node = tec_arena_strdup(&run->arena, asks[i].node);
    part->asks = asks;
    if ((part->n_asks && !asks) || (part->n_cancels && !part->cancels))
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a recording's requests");
    part->flight = frame_of(r, part);
    if (!part->flight)
        return TEC_OK;
    part->late_ns = part->flight->late_ns > 0 ? part->flight->late_ns : 0;
    part->deadline_ns = part->flight->deadline_us < 0 ? -1 : part->flight->deadline_us * 1000;
    take_requests(r, part);
    return TEC_OK;
}

static void take_frame(struct reading *r, json_t *json)
{
    struct tec_recorded_part *part =
        part_of(r->run, json_integer_value(json_object_get(json, "session")));
    if (part && !part->was && json_array_append(r->run->frames, json) == 0)
        part->was = json;
}

/* --- texts ------------------------------------------------------------------------------------ */

static int by_id(const void *a, const void *b)
{
    const struct tec_recorded_request *x = *(struct tec_recorded_request *const *)a;
    const struct tec_recorded_request *y = *(struct tec_recorded_request *const *)b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return (x->frame > y->frame) - (x->frame < y->frame);
}

static enum tec_status order_requests(struct reading *r, struct tec_error *err)
{
    struct tec_recorded_run *run = r->run;
    r->order = TEC_NEW(&run->arena, run->n_requests + 1, struct tec_recorded_request *);
    if (!r->order)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a recording's texts");
    for (size_t i = 0; i < run->n_requests; i++)
        r->order[i] = &run->requests[i];
    if (run->n_requests)
        qsort(r->order, run->n_requests, sizeof(struct tec_recorded_request *), by_id);
    return TEC_OK;
}

static void take_text(struct reading *r, const json_t *json)
{
    struct tec_recorded_request key = {.id = json_integer_value(json_object_get(json, "request")),
                                       .frame = json_integer_value(json_object_get(json, "frame"))};
    const struct tec_recorded_request *wanted = &key;
    struct tec_recorded_request **at = r->run->n_requests
                                           ? bsearch(&wanted, r->order, r->run->n_requests,
                                                     sizeof(struct tec_recorded_request *), by_id)
                                           : NULL;
    if (!at)
        return;
    (*at)->made += json_is_integer(json_object_get(json, "token")) && (*at)->made < INT32_MAX;
    if (tec_recorded_whole(json_string_value(json_object_get(json, "reason"))))
        (*at)->length = (*at)->made;
}

/* --- the whole -------------------------------------------------------------------------------- */

/* Read all messages; `texts`: those of texts alone, else the others. */
static enum tec_status read_all(struct reading *r, bool texts, struct tec_error *err)
{
    bool more = true;
    tec_mcap_rewind(&r->run->flight.file);
    while (more) {
        enum tec_recorded_message what;
        struct tec_recorded_frame tick;
        json_t *json = NULL;
        char node[120];
        enum tec_status status =
            tec_recorded_next(&r->recorded, &what, &tick, &json, node, &more, err);
        if (status == TEC_OK && texts && what == TEC_RECORDED_TEXT)
            take_text(r, json);
        if (status == TEC_OK && !texts && what == TEC_RECORDED_FRAME)
            take_frame(r, json);
        if (what != TEC_RECORDED_TICK && what != TEC_RECORDED_SAFETY && what != TEC_RECORDED_OTHER)
            r->ran = true;
        if (status == TEC_OK && !texts && what == TEC_RECORDED_TICK)
            status = take_tick(r, &tick, err);
        json_decref(json);
        TEC_TRY(status);
    }
    return TEC_OK;
}

static enum tec_status make_room(struct reading *r, struct tec_error *err)
{
    struct tec_recorded_run *run = r->run;
    struct tec_mcap_message m;
    tec_mcap_rewind(&run->flight.file);
    while (tec_mcap_next(&run->flight.file, &m))
        r->room_parts += tec_mcap_is(m.topic, "/tectum/ticks");
    for (size_t i = 0; i < run->flight.n_events; i++)
        r->room_requests += run->flight.events[i].kind == TEC_EVENT_ARRIVE;
    run->frames = json_array();
    run->parts = TEC_NEW(&run->arena, r->room_parts + 1, struct tec_recorded_part);
    run->moments = TEC_NEW(&run->arena, r->room_parts + 1, struct tec_recorded_moment);
    run->requests = TEC_NEW(&run->arena, r->room_requests + 1, struct tec_recorded_request);
    return run->frames && run->parts && run->moments && run->requests
               ? TEC_OK
               : tec_fail(err, TEC_NO_MEMORY, "no memory for a recording");
}

static enum tec_status read_run(struct reading *r, struct tec_error *err)
{
    TEC_TRY(make_room(r, err));
    TEC_TRY(read_all(r, false, err));
    TEC_TRY(order_requests(r, err));
    TEC_TRY(read_all(r, true, err));
    const char *damage = r->run->flight.file.damage;
    if (!r->run->n_moments && damage[0])
        return tec_fail(err, TEC_MALFORMED, "%s; there is no frame in what can be read", damage);
    return r->run->n_moments ? TEC_OK
                             : tec_fail(err, TEC_MALFORMED,
                                        "there is no frame with inputs in it: a dump of the "
                                        "flight recorder cannot be replayed");
}

enum tec_status tec_recorded_run_open(struct tec_recorded_run *run, const char *path,
                                      struct tec_heap *heap, struct tec_error *err)
{
    struct reading *r = tec_heap_get(heap, sizeof *r);
    *run = (struct tec_recorded_run){.n_parts = 0};
    tec_arena_init(&run->arena, heap);
    if (!r)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a recording");
    *r = (struct reading){.run = run};
    enum tec_status status = tec_flight_open(&run->flight, path, heap, err);
    if (status == TEC_OK) {
        tec_recorded_init(&r->recorded, &run->flight.file, heap);
        status = tec_context(err, read_run(r, err), "%s", path);
        tec_recorded_finish(&r->recorded);
    }
    tec_heap_put(heap, r);
    if (status != TEC_OK)
        tec_recorded_run_close(run);
    return status;
}

void tec_recorded_run_close(struct tec_recorded_run *run)
{
    json_decref(run->frames);
    run->frames = NULL;
    if (run->flight.arena.heap)
        tec_flight_close(&run->flight);
    if (run->arena.heap)
        tec_arena_finish(&run->arena);
}
