/* trace_slots.c - who holds keys and values, from the events that tell of them. */
#include "tools/record/trace_slots.h"

#include <stdio.h>
#include <string.h>

enum {
    MOST = 4096 /* requests with keys at a time */,
    PREFIX = -1 /* request of a prefix's events */
};

/* What an event of keys and values says of who holds them. */
enum holds { SAYS_NOTHING, BEGINS, GOES_ON, ENDS, LEAVES_RING, ENDS_ALL };

struct holder {
    int word, session;
    int64_t request;
};

struct slots {
    const struct tec_flight *f;
    size_t n, n_before;
    struct holder now[MOST], before[MOST]; /* before: there already at the first event */
    int prefixes[TEC_FLIGHT_WORDS + 1], least[TEC_FLIGHT_WORDS + 1];
    int track[TEC_FLIGHT_WORDS + 1], last[TEC_FLIGHT_WORDS + 1]; /* last: as shown; -1: not yet */
};

static enum holds holds_of(const char *what)
{
    static const struct {
        const char *what;
        enum holds holds;
    } list[] = {{"alloc", BEGINS},   {"fork", BEGINS},       {"store", BEGINS},
                {"append", GOES_ON}, {"update", GOES_ON},    {"free", ENDS},
                {"remove", ENDS},    {"evict", LEAVES_RING}, {"flush", ENDS_ALL}};
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        if (strcmp(list[i].what, what) == 0)
            return list[i].holds;
    return SAYS_NOTHING;
}

/* Requests have numbers of their own in all sessions; what is in a ring has its frame's, in the
 * session's: -1 is any. */
static size_t find(const struct slots *s, int word, int session, int64_t request)
{
    size_t i = 0;
    while (i < s->n && (s->now[i].word != word || s->now[i].request != request ||
                        (session >= 0 && s->now[i].session != session)))
        i++;
    return i;
}

static void add(struct holder *list, size_t *n, int word, int session, int64_t request)
{
    if (*n < MOST)
        list[(*n)++] = (struct holder){word, session, request};
}

/* A ring of the session is emptied. */
static void drop_all(struct slots *s, int word, int session)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->now[i].word != word || s->now[i].session != session)
            s->now[kept++] = s->now[i];
    s->n = kept;
}

static void take_request(struct slots *s, enum holds holds, const struct tec_flight_event *e)
{
    int word = e->count, session = e->session;
    int64_t request = e->value;
    bool leaves = holds == ENDS || holds == LEAVES_RING;
    size_t at = find(s, word, holds == BEGINS || holds == LEAVES_RING ? session : -1, request);
    if (at == s->n && holds != BEGINS)
        add(s->before, &s->n_before, word, session, request);
    if (at == s->n && !leaves)
        add(s->now, &s->n, word, session, request);
    if (at < s->n && leaves)
        s->now[at] = s->now[--s->n];
}

static void take(struct slots *s, const struct tec_flight_event *e)
{
    int word = e->count;
    enum holds holds = holds_of(s->f->words[e->what]);
    if (holds == ENDS_ALL)
        drop_all(s, word, e->session);
    else if (e->value == PREFIX)
        s->prefixes[word] += (holds == BEGINS) - (holds == ENDS);
    else if (holds != SAYS_NOTHING)
        take_request(s, holds, e);
    if (s->prefixes[word] < s->least[word])
        s->least[word] = s->prefixes[word];
}

static bool of_slots(const struct tec_flight_event *e)
{
    return e->kind == TEC_EVENT_KV && e->count > 0;
}

static void show(struct slots *s, struct tec_tracing_sink *sink, const struct tec_flight_event *e)
{
    int word = e->count, n = s->prefixes[word];
    char name[96];
    for (size_t i = 0; i < s->n; i++)
        n += s->now[i].word == word;
    snprintf(name, sizeof name, "slots in use, %.70s", s->f->words[word]);
    if (!s->track[word])
        s->track[word] = tec_tracing_track(sink, name, "slots");
    if (n != s->last[word])
        tec_tracing_count(sink, s->track[word], name, e->t_ns, n);
    s->last[word] = n;
}

enum tec_status tec_tracing_slots(struct tec_tracing_sink *sink, const struct tec_flight *f,
                                  int64_t from_ns, struct tec_error *err)
{
    struct slots *s = tec_heap_get(sink->text.heap, sizeof *s);
    if (!s)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a trace");
    *s = (struct slots){.f = f};
    for (size_t i = 0; i < f->n_events; i++)
        if (of_slots(&f->events[i]))
            take(s, &f->events[i]);
    memcpy(s->now, s->before, sizeof s->now);
    s->n = s->n_before;
    for (int w = 0; w <= TEC_FLIGHT_WORDS; w++) {
        s->prefixes[w] = -s->least[w];
        s->last[w] = -1;
    }
    for (size_t i = 0; i < f->n_events; i++) {
        const struct tec_flight_event *e = &f->events[i];
        if (!of_slots(e))
            continue;
        take(s, e);
        if (e->t_ns >= from_ns)
            show(s, sink, e);
    }
    tec_heap_put(sink->text.heap, s);
    return TEC_OK;
}
