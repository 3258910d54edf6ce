/* flight.c - reads a flight recorder's events back, and finds frames and launches in them. */
#include "tools/record/flight.h"

#include "graph/run/loop/loop.h"

#include <string.h>

const char *tec_flight_node(const struct tec_flight *f, int node)
{
    return node >= 0 && node < f->n_nodes ? f->nodes[node] : "";
}

/* --- the messages ----------------------------------------------------------------------------- */

/* Takes the reference. */
static void take_about(struct tec_flight *f, json_t *about)
{
    if (!json_is_object(about)) {
        json_decref(about);
        return;
    }
    json_decref(f->about);
    f->about = about;
    f->wall_ns = json_integer_value(json_object_get(about, "wall_ns"));
    const json_t *nodes = json_object_get(about, "nodes");
    f->n_nodes = 0;
    for (size_t i = 0; i < json_array_size(nodes) && i < TEC_MAX_NODES; i++) {
        const char *name = json_string_value(json_object_get(json_array_get(nodes, i), "name"));
        f->nodes[f->n_nodes++] = name ? name : "";
    }
}

static void take_words(struct tec_flight *f, const struct tec_mcap_message *m)
{
    json_t *words = json_loadb((const char *)m->data, m->n, 0, NULL), *value;
    const char *key;
    json_object_foreach(words, key, value)
    {
        long n = strtol(key, NULL, 10);
        const char *word = json_string_value(value);
        char *kept =
            n > 0 && n <= TEC_FLIGHT_WORDS && word ? tec_arena_strdup(&f->arena, word) : NULL;
        if (kept)
            f->words[n] = kept;
    }
    json_decref(words);
}

/* Times and numbers so far apart that they cannot be of one machine are of a damaged file. */
static bool is_plausible(const struct tec_flight_event *e)
{
    const int64_t most = (int64_t)1 << 60;
    bool number = e->kind != TEC_FLIGHT_NOTE; /* a note's are the bits of a double */
    return e->t_ns >= 0 && e->t_ns < most && (!number || (e->value > -most && e->value < most));
}

static void take_events(struct tec_flight *f, const struct tec_mcap_message *m)
{
    for (size_t i = 0; i < m->n / sizeof *f->events; i++) {
        struct tec_flight_event *to = &f->events[f->n_events];
        memcpy(to, m->data + i * sizeof *to, sizeof *to);
        f->n_events += is_plausible(to);
    }
}

static bool is_flight(const struct tec_mcap_message *m)
{
    return tec_mcap_is(m->encoding, "x-tectum-flight-1");
}

static enum tec_status take_messages(struct tec_flight *f, struct tec_error *err)
{
    struct tec_mcap_message m;
    size_t bytes = 0;
    while (tec_mcap_next(&f->file, &m))
        bytes += is_flight(&m) ? m.n : 0;
    f->events = TEC_NEW(&f->arena, bytes / sizeof *f->events + 1, struct tec_flight_event);
    if (!f->events)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for its events", f->file.path);
    tec_mcap_rewind(&f->file);
    while (tec_mcap_next(&f->file, &m)) {
        if (tec_mcap_is(m.topic, "/tectum/recording"))
            take_about(f, json_loadb((const char *)m.data, m.n, 0, NULL));
        else if (tec_mcap_is(m.topic, "/tectum/words"))
            take_words(f, &m);
        else if (is_flight(&m))
            take_events(f, &m);
    }
    return TEC_OK;
}

static enum tec_status need_events(const struct tec_flight *f, struct tec_error *err)
{
    return f->n_events ? TEC_OK
                       : tec_fail(err, TEC_MALFORMED,
                                  "%s: there is no event of the flight recorder in it%s%s",
                                  f->file.path, f->file.damage[0] ? "; " : "", f->file.damage);
}

/* --- frames and launches ---------------------------------------------------------------------- */

static void open_frame(struct tec_flight *f, const struct tec_flight_event *e, size_t at)
{
    f->frames[f->n_frames++] = (struct tec_flight_frame){.frame = e->frame,
                                                         .session = e->session,
                                                         .tick_ns = e->value,
                                                         .start_ns = e->t_ns,
                                                         .end_ns = -1,
                                                         .deadline_us = e->more,
                                                         .slack_us = -1,
                                                         .age_us = -1,
                                                         .cause = "none",
                                                         .first = at,
                                                         .last = at,
                                                         .launch = f->n_launches};
}

/* The newest frame of that number and session; NULL: it began before the events do. */
static struct tec_flight_frame *frame_of(struct tec_flight *f, const struct tec_flight_event *e)
{
    for (size_t i = f->n_frames; i > 0 && i + TEC_MAX_SESSIONS > f->n_frames; i--)
        if (f->frames[i - 1].frame == e->frame && f->frames[i - 1].session == e->session)
            return &f->frames[i - 1];
    return NULL;
}

static void take_figure(struct tec_flight *f, struct tec_flight_frame *of,
                        const struct tec_flight_event *e)
{
    const char *name = f->words[e->what];
    const struct {
        const char *name;
        int64_t *to;
    } figures[] = {{"planner_us", &of->planner_us}, {"host_us", &of->host_us},
                   {"slack_us", &of->slack_us},     {"age_us", &of->age_us},
                   {"waited_us", &of->waited_us},   {"stood_us", &of->stood_us}};
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        if (strcmp(name, figures[i].name) == 0)
            *figures[i].to = e->value;
    if (strcmp(name, "tokens") == 0)
        of->tokens = (int)e->value;
    if (strcmp(name, "rows") == 0)
        of->rows = (int)e->value;
}

static void end_frame(struct tec_flight *f, struct tec_flight_frame *of,
                      const struct tec_flight_event *e)
{
    of->end_ns = e->t_ns;
    of->overrun_us = e->more;
    of->missed = e->flag;
    of->in_flight = e->count;
    of->cause = f->words[e->what];
}

/* A ring's forwards, and what it copies, are of no node, as one is of several rings and robots:
 * each such launch stands as one behind the nodes, by its own name. */
static int own_node(struct tec_flight *f, int node, const char *what)
{
    int i = 0;
    if (node >= 0 || !what[0])
        return node;
    while (i < f->n_nodes && strcmp(f->nodes[i], what) != 0)
        i++;
    if (i < f->n_nodes || f->n_nodes == TEC_MAX_NODES)
        return i < f->n_nodes ? i : -1;
    f->nodes[f->n_nodes] = what;
    return f->n_nodes++;
}

/* A launch by its end; rows and steps are those of the start before it, which is the same node's
 * unless the recorder begins between them. */
static void take_launch(struct tec_flight *f, const struct tec_flight_frame *of, size_t at)
{
    const struct tec_flight_event *e = &f->events[at];
    struct tec_flight_event start = {.kind = TEC_EVENT_START, .more = 1};
    for (size_t i = at; i > 0 && i + 4 > at; i--)
        if (f->events[i - 1].kind == TEC_EVENT_START && f->events[i - 1].node == e->node) {
            start = f->events[i - 1];
            break;
        }
    f->launches[f->n_launches++] =
        (struct tec_flight_launch){.frame = of ? (size_t)(of - f->frames) : SIZE_MAX,
                                   .node = own_node(f, e->node, f->words[e->what]),
                                   .rows = start.more % 1000,
                                   .padded = start.more / 1000,
                                   .k = start.count,
                                   .lane = e->lane,
                                   .what = f->words[e->what],
                                   .start_ns = e->value,
                                   .end_ns = e->t_ns};
}

static enum tec_status find_frames(struct tec_flight *f, struct tec_error *err)
{
    size_t frames = 0, launches = 0;
    for (size_t i = 0; i < f->n_events; i++) {
        frames += f->events[i].kind == TEC_EVENT_FRAME;
        launches += f->events[i].kind == TEC_EVENT_END;
    }
    f->frames = TEC_NEW(&f->arena, frames + 1, struct tec_flight_frame);
    f->launches = TEC_NEW(&f->arena, launches + 1, struct tec_flight_launch);
    if (!f->frames || !f->launches)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for frames");
    for (size_t i = 0; i < f->n_events; i++) {
        const struct tec_flight_event *e = &f->events[i];
        if (e->kind == TEC_EVENT_FRAME)
            open_frame(f, e, i);
        struct tec_flight_frame *of = frame_of(f, e);
        if (e->kind == TEC_EVENT_END)
            take_launch(f, of, i);
        if (!of)
            continue;
        of->last = i;
        if (e->kind == TEC_EVENT_INPUT)
            of->late_ns = e->value;
        if (e->kind == TEC_EVENT_PLAN)
            of->snapped = (int)e->value;
        if (e->kind == TEC_FLIGHT_FIGURE)
            take_figure(f, of, e);
        if (e->kind == TEC_EVENT_FRAME_END)
            end_frame(f, of, e);
    }
    return tec_flight_find_usual(f, err);
}

static void init(struct tec_flight *f, struct tec_heap *heap)
{
    *f = (struct tec_flight){.about = json_object()};
    tec_arena_init(&f->arena, heap);
    for (int i = 0; i <= TEC_FLIGHT_WORDS; i++)
        f->words[i] = "";
}

enum tec_status tec_flight_now(struct tec_flight *f, const struct tec_recorder *recorder,
                               json_t *about, struct tec_heap *heap, struct tec_error *err)
{
    return tec_flight_newest(f, recorder, about, TEC_FLIGHT_EVENTS, heap, err);
}

enum tec_status tec_flight_newest(struct tec_flight *f, const struct tec_recorder *recorder,
                                  json_t *about, size_t most, struct tec_heap *heap,
                                  struct tec_error *err)
{
    uint64_t written = atomic_load(&recorder->written), from = written > most ? written - most : 0;
    init(f, heap);
    take_about(f, json_incref(about));
    f->events = TEC_NEW(&f->arena, most + 1, struct tec_flight_event);
    enum tec_status status =
        f->events ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for a recorder's events");
    if (status == TEC_OK)
        f->n_events = tec_recorder_copy(recorder, &from, f->events, most);
    f->first_event = from;
    for (int i = 1; i <= TEC_FLIGHT_WORDS; i++)
        f->words[i] = tec_recorder_word(recorder, i); /* a word stays once it is there */
    if (status == TEC_OK)
        status = find_frames(f, err);
    if (status != TEC_OK)
        tec_flight_close(f);
    return status;
}

static enum tec_status open_file(struct tec_flight *f, const char *path, bool idle,
                                 struct tec_heap *heap, struct tec_error *err)
{
    init(f, heap);
    enum tec_status status = tec_mcap_read(&f->file, path, err);
    if (status == TEC_OK)
        status = take_messages(f, err);
    if (status == TEC_OK && !idle)
        status = need_events(f, err);
    if (status == TEC_OK)
        status = find_frames(f, err);
    if (status != TEC_OK)
        tec_flight_close(f);
    return status;
}

enum tec_status tec_flight_open(struct tec_flight *f, const char *path, struct tec_heap *heap,
                                struct tec_error *err)
{
    return open_file(f, path, false, heap, err);
}

enum tec_status tec_flight_open_idle(struct tec_flight *f, const char *path, struct tec_heap *heap,
                                     struct tec_error *err)
{
    return open_file(f, path, true, heap, err);
}

void tec_flight_close(struct tec_flight *f)
{
    json_decref(f->about);
    f->about = NULL;
    tec_mcap_read_close(&f->file);
    if (f->arena.heap)
        tec_arena_finish(&f->arena);
}
