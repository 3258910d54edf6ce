/* trace.c - writes the events of the frame loop as lines of JSON. */
#include "base/json_text.h"
#include "tools/simulate/simulator.h"

#include <string.h>

static void set(json_t *line, const char *field, json_t *value)
{
    json_object_set_new(line, field, value);
}

static void set_integer(json_t *line, const char *field, int64_t value)
{
    set(line, field, json_integer(value));
}

/* Round a printed time up to whole microseconds. */
static int64_t up(int64_t ns)
{
    return (ns + 999) / 1000;
}

/* Microseconds since the event that this one ends. */
static int64_t took(const struct tec_event *e)
{
    return up(e->t_ns - e->since_ns);
}

json_t *tec_trace_line(int64_t t_ns, const char *event, int64_t frame, const char *session)
{
    json_t *line = json_pack("{s:I,s:s,s:I}", "t_us", (json_int_t)up(t_ns), "event", event, "frame",
                             (json_int_t)frame);
    if (session)
        set(line, "session", json_string(session));
    return line;
}

static json_t *ids(const int64_t *list, int n)
{
    json_t *all = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(all, json_integer(list[i]));
    return all;
}

static void frame(json_t *line, const struct tec_topology *t, const struct tec_event *e)
{
    (void)t;
    set_integer(line, "tick_us", up(e->tick->tick_ns));
    set(line, "deadline_us",
        e->tick->deadline_ns >= 0 ? json_integer(up(e->tick->deadline_ns)) : json_null());
}

static void cancel(json_t *line, const struct tec_topology *t, const struct tec_event *e)
{
    (void)t;
    set_integer(line, "request", e->request);
    set(line, "live", json_boolean(e->flag));
}

static void reason(json_t *line, const struct tec_topology *t, const struct tec_event *e)
{
    (void)t;
    set_integer(line, "request", e->request);
    set(line, "reason", json_string(e->what));
}

static void arrive(json_t *line, const struct tec_topology *t, const struct tec_event *e)
{
    set_integer(line, "request", e->request);
    set(line, "node", json_string(t->nodes[e->node].name));
    set_integer(line, "max_tokens", e->tokens);
}

static void admit(json_t *line, const struct tec_topology *t, const struct tec_event *e)
{
    (void)t;
    set_integer(line, "request", e->request);
}

static void input(json_t *line, const struct tec_topology *t, const struct tec_event *e)
{
    (void)t;
    set_integer(line, "late_us", e->tick->late_ns / 1000);
}

static json_t *notes(const struct tec_decision *d)
{
    json_t *all = json_object();
    for (int i = 0; i < d->n_notes; i++) {
        const struct tec_note *n = &d->notes[i];
        bool whole = n->is_number && n->number == (double)(int64_t)n->number;
        set(all, n->key,
            whole          ? json_integer((int64_t)n->number)
            : n->is_number ? json_real(n->number)
                           : json_string(n->text));
    }
    return all;
}

static json_t *numbers(const int *list, int n)
{
    json_t *all = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(all, json_integer(list[i]));
    return all;
}

static const char *node_name(const struct tec_topology *t, const struct tec_event *e)
{
    return e->node >= 0 ? t->nodes[e->node].name : e->what;
}

/* Add what is done to a ring's keys and values. */
static void ring_kv(json_t *line, const struct tec_event *e)
{
    const struct tec_ring_event *r = e->ring;
    if (r->slot >= 0)
        set_integer(line, "slot", r->slot);
    if (r->base >= 0)
        set_integer(line, "base", r->base);
    if (r->slots)
        set(line, "slots", numbers(r->slots, e->n));
    else if (r->base < 0)
        set_integer(line, "tokens", e->tokens);
    if (r->bytes)
        set_integer(line, "bytes", r->bytes);
    if (!r->moves)
        return;
    json_t *moves = json_array();
    for (int i = 0; i < e->n; i++)
        json_array_append_new(
            moves, json_pack("[i,i,i]", r->moves[i].from, r->moves[i].to, r->moves[i].tokens));
    set(line, "moves", moves);
}

static void ring_start(json_t *line, const struct tec_topology *t, const struct tec_event *e)
{
    json_t *all = json_array();
    if (!e->ring->segments) {
        json_decref(all);
        return;
    }
    for (int i = 0; i < e->n; i++) {
        const struct tec_ring_segment *s = &e->ring->segments[i];
        json_t *one = json_pack("[I,i,i,i,i,i]", (json_int_t)s->request, s->stage, s->slot, s->rows,
                                s->pos, s->visible);
        if (t->n_rings > 1)
            json_array_append_new(one, json_string(t->rings[s->ring].name));
        if (e->tick->name)
            json_array_append_new(one, json_integer(s->session));
        json_array_append_new(all, one);
    }
    set_integer(line, "rows", e->rows);
    set(line, "segments", all);
}

/* How deep each of several rings is. */
static json_t *depths(const struct tec_topology *t, const int *list)
{
    json_t *all = json_object();
    for (int i = 0; i < t->n_rings; i++)
        set(all, t->rings[i].name, json_integer(list[i]));
    return all;
}

static void plan(json_t *line, const struct tec_topology *t, const struct tec_event *e)
{
    json_t *decode = json_array(), *paused = json_array(), *unshared = json_array();
    const struct tec_decision *d = e->decision;
    json_t *slices = NULL;
    for (int i = 0; i < t->n_nodes; i++)
        if (t->nodes[i].slices) {
            slices = slices ? slices : json_object();
            set(slices, t->nodes[i].name, json_integer(d->nodes[i].slices));
        }
    for (int i = 0; i < e->n; i++)
        json_array_append_new(decode, json_pack("[I,i]", (json_int_t)e->view[e->order[i]].id,
                                                d->rows[e->order[i]].k));
    for (int i = 0; i < d->n_rows; i++) {
        if (d->rows[i].k == 0 && !d->rows[i].shed)
            json_array_append_new(paused, json_integer(e->view[i].id));
        if (d->rows[i].unshare && e->view[i].fresh && !d->rows[i].shed)
            json_array_append_new(unshared, json_integer(e->view[i].id));
    }
    set(line, "policy", json_string(e->what));
    set(line, "decode", decode);
    set(line, "paused", paused);
    set(line, "unshared", unshared);
    if (slices)
        set(line, "slices", slices);
    if (e->ring) {
        set_integer(line, "depth", e->ring->depth);
        set_integer(line, "forwards", e->ring->forwards);
        if (t->n_rings > 1)
            set(line, "depths", depths(t, e->ring->depths));
    }
    set_integer(line, "snapped", d->snapped);
    set(line, "notes", notes(d));
}

static void kv(json_t *line, const struct tec_topology *t, const struct tec_event *e)
{
    (void)t;
    set(line, "op", json_string(e->what));
    set(line, "kv", json_string(e->kv));
    if (e->from)
        set(line, "from", json_string(e->from));
    if (e->request >= 0)
        set_integer(line, "request", e->request);
    if (e->requests)
        set(line, "requests", ids(e->requests, e->n));
    if (e->ring)
        ring_kv(line, e);
    else if (!e->requests && strcmp(e->what, "store") != 0)
        set_integer(line, "tokens", e->tokens);
}

static void start(json_t *line, const struct tec_topology *t, const struct tec_event *e)
{
    set(line, "node", json_string(node_name(t, e)));
    if (e->request >= 0)
        set_integer(line, "request", e->request);
    if (e->ring)
        ring_start(line, t, e);
    if (e->of) {
        set_integer(line, "slices", e->slices);
        set_integer(line, "of", e->of);
    }
    if (e->observations > 1)
        set_integer(line, "observations", e->observations);
    if (!e->requests)
        return;
    set(line, "requests", ids(e->requests, e->n));
    set_integer(line, "batch", e->rows);
    set_integer(line, "padded", e->padded);
    set_integer(line, "k", e->k);
}

/* Tokens that a draft proposed, and those that were kept. */
static void drafts(json_t *line, const struct tec_event *e)
{
    if (e->drafted == 0)
        return;
    set_integer(line, "drafted", e->drafted);
    set_integer(line, "kept", e->kept);
}

static void end(json_t *line, const struct tec_topology *t, const struct tec_event *e)
{
    set(line, "node", json_string(node_name(t, e)));
    if (e->request >= 0)
        set_integer(line, "request", e->request);
    drafts(line, e);
    set_integer(line, "us", took(e));
}

static void release(json_t *line, const struct tec_topology *t, const struct tec_event *e)
{
    set(line, "node", json_string(t->nodes[e->node].name));
    set(line, "late", json_boolean(e->flag));
    if (e->ring) {
        set_integer(line, "request", e->request);
        set_integer(line, "age_frames", e->frames);
    } else if (e->frames > 0) { /* of an earlier frame's prefix */
        set_integer(line, "age_frames", e->frames);
        if (e->done > 0) /* the node did not run */
            set_integer(line, "again", e->done);
    }
    set_integer(line, "age_us", took(e));
}

static void left_out(json_t *line, const struct tec_topology *t, const struct tec_event *e)
{
    set(line, "node", json_string(t->nodes[e->node].name));
    set(line, "reason", json_string(e->what));
}

static void tokens(json_t *line, const struct tec_topology *t, const struct tec_event *e)
{
    if (e->ring) {
        json_t *rings = json_array();
        for (int i = 0; i < e->n; i++)
            json_array_append_new(rings, json_string(t->rings[e->ring->of[i]].name));
        set(line, "requests", ids(e->requests, e->n));
        set(line, "done", numbers(e->ring->done, e->n));
        if (t->n_rings > 1)
            json_object_set(line, "rings", rings);
        json_decref(rings);
        if (e->tick->name)
            set(line, "sessions", numbers(e->ring->sessions, e->n));
        return;
    }
    set_integer(line, "request", e->request);
    set_integer(line, "n", e->tokens);
    set_integer(line, "done", e->done);
}

static void finish(json_t *line, const struct tec_topology *t, const struct tec_event *e)
{
    reason(line, t, e);
    set_integer(line, "tokens", e->tokens);
    drafts(line, e);
    set_integer(line, "frames", e->frames);
    set_integer(line, "latency_us", took(e));
}

static void version(json_t *line, const struct tec_topology *t, const struct tec_event *e)
{
    (void)t;
    set(line, "stream", json_string(e->what));
    set_integer(line, "request", e->request);
    set_integer(line, "tokens", e->tokens);
}

static void read_text(json_t *line, const struct tec_topology *t, const struct tec_event *e)
{
    bool text = e->request >= 0;
    set(line, "node", json_string(t->nodes[e->node].name));
    set(line, "stream", json_string(e->what));
    set(line, "request", text ? json_integer(e->request) : json_null());
    set(line, "age_frames", text ? json_integer(e->frames) : json_null());
    set(line, "age_us", text ? json_integer(took(e)) : json_null());
}

static void unread(json_t *line, const struct tec_topology *t, const struct tec_event *e)
{
    set(line, "node", json_string(t->nodes[e->node].name));
    set(line, "stream", json_string(e->what));
    set_integer(line, "request", e->request);
    set(line, "reason", tec_json_shown(e->from));
}

static void frame_end(json_t *line, const struct tec_topology *t, const struct tec_event *e)
{
    const struct tec_frame_record *r = e->record;
    set_integer(line, "us", took(e));
    set_integer(line, "tokens", r->tokens);
    set_integer(line, "rows", r->rows);
    set_integer(line, "in_flight", r->in_flight);
    if (t->n_rings)
        set(line, "filling", json_boolean(r->filling));
    set(line, "missed", json_boolean(r->missed));
    set(line, "cause", json_string(tec_cause_name(r->cause)));
    set_integer(line, "overrun_us", r->overrun_us);
}

static const struct {
    const char *name;
    void (*fill)(json_t *line, const struct tec_topology *t, const struct tec_event *e);
} kinds[TEC_EVENTS] = {
    [TEC_EVENT_FRAME] = {"frame", frame},
    [TEC_EVENT_CANCEL] = {"cancel", cancel},
    [TEC_EVENT_SHED] = {"shed", reason},
    [TEC_EVENT_ARRIVE] = {"arrive", arrive},
    [TEC_EVENT_ADMIT] = {"admit", admit},
    [TEC_EVENT_REFUSE] = {"refuse", reason},
    [TEC_EVENT_INPUT] = {"input", input},
    [TEC_EVENT_PLAN] = {"plan", plan},
    [TEC_EVENT_KV] = {"kv", kv},
    [TEC_EVENT_START] = {"start", start},
    [TEC_EVENT_END] = {"end", end},
    [TEC_EVENT_RELEASE] = {"release", release},
    [TEC_EVENT_TOKENS] = {"tokens", tokens},
    [TEC_EVENT_FINISH] = {"finish", finish},
    [TEC_EVENT_VERSION] = {"version", version},
    [TEC_EVENT_READ] = {"read", read_text},
    [TEC_EVENT_UNREAD] = {"unread", unread},
    [TEC_EVENT_LEFT_OUT] = {"left_out", left_out},
    [TEC_EVENT_FRAME_END] = {"frame_end", frame_end},
};

json_t *tec_trace_event(const struct tec_topology *topology, const struct tec_event *event)
{
    json_t *line =
        tec_trace_line(event->t_ns, kinds[event->kind].name, event->tick->frame, event->tick->name);
    if (line)
        kinds[event->kind].fill(line, topology, event);
    return line;
}
