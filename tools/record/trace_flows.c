/* trace_flows.c - walks a flight's events and finds the flows of observations and requests. */
#include "tools/record/trace_flows.h"

#include "graph/run/loop/loop.h"

/* A request that is alive. */
struct alive {
    bool busy, old; /* old: it began before what the trace shows */
    int64_t request;
    size_t last; /* its newest event of tokens, from 1; 0 = none */
};

struct walk {
    const struct tec_flight *f;
    int64_t from_ns;
    struct tec_tracing_flows *flows;
    size_t *last_left; /* [n_frames] where actions left last, from 1; 0 = never */
    size_t begun, newest[TEC_MAX_SESSIONS]; /* frames so far; each session's newest, from 1 */
    struct alive alive[TEC_TRACE_REQUESTS];
};

/* --- observations ----------------------------------------------------------------------------- */

static void begin_frame(struct walk *w, const struct tec_flight_event *e)
{
    w->begun++; /* there is a frame for each such event, in their order */
    if (e->session < TEC_MAX_SESSIONS)
        w->newest[e->session] = w->begun;
}

static void leave_frame(struct walk *w, const struct tec_flight_event *e, size_t at)
{
    size_t newest = e->session < TEC_MAX_SESSIONS ? w->newest[e->session] : 0;
    const struct tec_flight_frame *frame = newest ? &w->f->frames[newest - 1] : NULL;
    if (!frame || frame->frame != e->frame || frame->end_ns < 0 || frame->start_ns < w->from_ns)
        return;
    w->flows->of_frame[newest - 1] = TEC_FLOW_BEGINS;
    w->flows->of_event[at] = TEC_FLOW_GOES_ON;
    w->last_left[newest - 1] = at + 1;
}

/* --- requests --------------------------------------------------------------------------------- */

static struct alive *find(struct walk *w, int64_t request, bool busy)
{
    for (int i = 0; i < TEC_TRACE_REQUESTS; i++)
        if (w->alive[i].busy == busy && (!busy || w->alive[i].request == request))
            return &w->alive[i];
    return NULL;
}

static void arrive(struct walk *w, const struct tec_flight_event *e)
{
    struct alive *a = find(w, e->value, false);
    if (a)
        *a = (struct alive){.busy = true, .old = e->t_ns < w->from_ns, .request = e->value};
}

static void take_tokens(struct walk *w, const struct tec_flight_event *e, size_t at)
{
    struct alive *a = find(w, e->value, true);
    if (!a || a->old || e->node < 0 || e->node >= w->f->n_nodes)
        return;
    a->last = at + 1;
    w->flows->of_event[at] = TEC_FLOW_GOES_ON;
}

static void end_request(struct walk *w, const struct tec_flight_event *e, size_t at)
{
    struct alive *a = find(w, e->value, true);
    if (!a)
        return;
    a->busy = false;
    if (a->last) {
        w->flows->of_event[at] = TEC_FLOW_BEGINS;
        w->flows->of_event[a->last - 1] = TEC_FLOW_ENDS;
    }
}

/* Those that are alive at the end have no slice where their flow would begin. */
static void drop_alive(struct walk *w)
{
    bool any = false;
    for (int i = 0; i < TEC_TRACE_REQUESTS; i++)
        any |= w->alive[i].busy;
    for (size_t i = w->f->n_events; any && i > 0; i--) {
        const struct tec_flight_event *e = &w->f->events[i - 1];
        struct alive *a = e->kind == TEC_EVENT_TOKENS ? find(w, e->value, true) : NULL;
        if (a && w->flows->of_event[i - 1] == TEC_FLOW_GOES_ON)
            w->flows->of_event[i - 1] = TEC_FLOW_NONE;
    }
}

/* --- the walk --------------------------------------------------------------------------------- */

static void step(struct walk *w, size_t at)
{
    const struct tec_flight_event *e = &w->f->events[at];
    if (e->kind == TEC_EVENT_FRAME)
        begin_frame(w, e);
    if (e->kind == TEC_EVENT_RELEASE)
        leave_frame(w, e, at);
    if (e->kind == TEC_EVENT_ARRIVE)
        arrive(w, e);
    if (e->kind == TEC_EVENT_TOKENS)
        take_tokens(w, e, at);
    if (e->kind == TEC_EVENT_FINISH || e->kind == TEC_EVENT_SHED || e->kind == TEC_EVENT_CANCEL ||
        e->kind == TEC_EVENT_REFUSE)
        end_request(w, e, at);
}

enum tec_status tec_tracing_flows_find(struct tec_tracing_flows *flows, const struct tec_flight *f,
                                       int64_t from_ns, struct tec_arena *arena,
                                       struct tec_error *err)
{
    struct walk w = {.f = f, .from_ns = from_ns, .flows = flows};
    flows->of_frame = TEC_NEW(arena, f->n_frames + 1, uint8_t);
    flows->of_event = TEC_NEW(arena, f->n_events + 1, uint8_t);
    w.last_left = TEC_NEW(arena, f->n_frames + 1, size_t);
    if (!flows->of_frame || !flows->of_event || !w.last_left)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the flows of a trace");
    for (size_t i = 0; i < f->n_events; i++)
        step(&w, i);
    drop_alive(&w);
    for (size_t i = 0; i < f->n_frames; i++)
        if (w.last_left[i])
            flows->of_event[w.last_left[i] - 1] = TEC_FLOW_ENDS;
    return TEC_OK;
}
