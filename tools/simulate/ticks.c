/* ticks.c - what happens by itself: ticks that find their session busy, and actions that are due.
 * At equal times a frame's events come first, also those of one that opens, then actions, then
 * ticks that open nothing. */
#include "base/json_text.h"
#include "tools/simulate/simulator.h"

#include <string.h>

void tec_simulator_write(struct tec_simulator *w, json_t *line)
{
    enum tec_status status = tec_json_print(w->o.trace, line, JSON_COMPACT, "an event", NULL);
    if (w->failed == TEC_OK)
        w->failed = ferror(w->o.trace) ? TEC_IO : status;
    json_decref(line);
}

/* The made-up chunk of a frame: action i is [v, 2v, ...] with v = 1 + frame + i / 16. Of one that
 * leaves again so many rows are over; its last one is repeated. */
const double *tec_simulator_chunk(struct tec_simulator *w, int64_t frame, int over)
{
    int rows = w->o.engine->topology.horizon, width = w->o.scenario->output_dims;
    for (int i = 0; i < rows; i++)
        for (int c = 0; c < width; c++)
            w->chunk[(ptrdiff_t)i * width + c] =
                (1.0 + (double)frame + (double)(i + over < rows ? i + over : rows - 1) / 16.0) *
                (double)(c + 1);
    return w->chunk;
}

void tec_simulator_handed(struct tec_simulator *w, const struct tec_simulator_due *of, int64_t t_ns,
                          const struct tec_handed *handed)
{
    int width = w->o.scenario->output_dims;
    if (!w->o.trace)
        return;
    json_t *actions = json_array();
    json_t *line = tec_trace_line(t_ns, "handout", of->frame, w->sessions[of->session].name);
    if (of->action > 0)
        json_object_set_new(
            line, "node",
            json_string(tec_loop_settings(w->o.engine->loop)->actions[of->action].name));
    json_object_set_new(line, "source", json_string(tec_action_source_word(handed->source)));
    if (handed->left_out)
        json_object_set_new(line, "left_out", json_true());
    for (int i = 0; i < handed->n; i++) {
        json_t *row = json_array();
        for (int c = 0; c < width; c++)
            json_array_append_new(row, json_real(handed->actions[i * width + c]));
        json_array_append_new(actions, row);
    }
    json_object_set_new(line, "actions", actions);
    tec_simulator_write(w, line);
}

/* Frames of a session become due in their order. */
void tec_simulator_expect(struct tec_simulator *w, int session, int64_t frame, int64_t tick_ns,
                          int64_t deadline_ns)
{
    const struct tec_loop_options *loop = tec_loop_settings(w->o.engine->loop);
    for (int a = 0; a < loop->n_actions; a++) {
        int64_t after = loop->actions[a].deadline_ns;
        int64_t at = a == 0 ? deadline_ns : after ? tick_ns + after : -1;
        if (!w->sessions[session].outputs[a] || at < 0)
            continue;
        if (w->n_due == TEC_SIMULATOR_DUE) {
            w->failed = TEC_UNSUPPORTED;
            return;
        }
        w->due[w->n_due++] = (struct tec_simulator_due){session, a, frame, at};
    }
}

static void reset_due(struct tec_simulator *w, const struct tec_simulator_due *d)
{
    const struct tec_happenings *resets = &w->o.scenario->reset;
    for (int i = 0; i < resets->n; i++)
        if (resets->item[i].frame == d->frame)
            tec_action_output_reset(w->sessions[d->session].outputs[d->action]);
}

static int first_due(const struct tec_simulator *w)
{
    int first = -1;
    for (int i = 0; i < w->n_due; i++)
        if (first < 0 || w->due[i].at_ns < w->due[first].at_ns)
            first = i;
    return first;
}

static void hand_substitute(struct tec_simulator *w, int at)
{
    struct tec_simulator_due d = w->due[at];
    memmove(&w->due[at], &w->due[at + 1], (size_t)(--w->n_due - at) * sizeof w->due[0]);
    reset_due(w, &d);
    struct tec_handed handed =
        tec_action_output_missed(w->sessions[d.session].outputs[d.action], d.frame);
    tec_simulator_handed(w, &d, d.at_ns, &handed);
}

/* Whether the session has had its last tick. */
bool tec_simulator_over(const struct tec_simulator *w, const struct tec_simulator_session *s)
{
    int64_t at = tec_simulator_tick(s, s->next);
    return s->next >= w->o.scenario->frames || at >= INT64_MAX / 2 ||
           at / 1000 >= w->o.scenario->until_us;
}

int64_t tec_simulator_tick(const struct tec_simulator_session *s, int64_t n)
{
    int64_t at;
    bool over = __builtin_mul_overflow(n, s->period_ns, &at);
    return over || at > INT64_MAX / 2 ? INT64_MAX / 2 : at + s->offset_ns;
}

static int64_t tick_at(const struct tec_simulator *w, const struct tec_simulator_session *s)
{
    return !w->paced || tec_simulator_over(w, s) ? INT64_MAX
                                                 : s->offset_ns + s->next * s->period_ns;
}

static int first_tick(const struct tec_simulator *w)
{
    int first = 0;
    for (int i = 1; i < w->n_sessions; i++)
        if (tick_at(w, &w->sessions[i]) < tick_at(w, &w->sessions[first]))
            first = i;
    return first;
}

static void tell_skip(struct tec_simulator *w, const struct tec_simulator_due *skip)
{
    if (!w->o.trace)
        return;
    json_t *line =
        tec_trace_line(skip->at_ns, "skip", skip->frame, w->sessions[skip->session].name);
    json_object_set_new(line, "tick_us", json_integer(skip->at_ns / 1000));
    tec_simulator_write(w, line);
}

/* Report a skipped tick now, or `later`: once the frame that opens at this moment has reported
 * itself. */
static void skip(struct tec_simulator *w, int session, int64_t at, bool later)
{
    const struct tec_simulator_due skip = {
        .session = session, .frame = w->sessions[session].next, .at_ns = at};
    w->summary.skipped++;
    if (later && w->n_skips < TEC_MAX_SESSIONS)
        w->skips[w->n_skips++] = skip;
    else
        tell_skip(w, &skip);
}

static void tick(struct tec_simulator *w, int session, bool later)
{
    struct tec_simulator_session *s = &w->sessions[session];
    int64_t at = tick_at(w, s), deadline = s->deadline_ns < 0 ? -1 : at + s->deadline_ns;
    if (s->open >= 0 || s->waiting >= 0) {
        skip(w, session, at, later);
    } else {
        s->waiting = s->next;
        s->waiting_tick_ns = at;
        s->waiting_deadline_ns = deadline;
    }
    tec_simulator_expect(w, session, s->next, at, deadline);
    s->next++;
}

static void tell_first_skip(struct tec_simulator *w)
{
    const struct tec_simulator_due skip = w->skips[0];
    memmove(&w->skips[0], &w->skips[1], (size_t)--w->n_skips * sizeof w->skips[0]);
    tell_skip(w, &skip);
}

int64_t tec_simulator_next(const struct tec_simulator *w)
{
    return tick_at(w, &w->sessions[first_tick(w)]);
}

void tec_simulator_pass(struct tec_simulator *w, int64_t t_ns)
{
    for (;;) {
        int due = first_due(w), at = first_tick(w);
        int64_t handed = due < 0 ? INT64_MAX : w->due[due].at_ns;
        int64_t ticks = tick_at(w, &w->sessions[at]);
        int64_t skipped = w->n_skips ? w->skips[0].at_ns : INT64_MAX;
        if (handed >= t_ns && ticks >= t_ns && skipped >= t_ns)
            return;
        if (handed <= ticks && handed <= skipped)
            hand_substitute(w, due);
        else if (skipped <= ticks)
            tell_first_skip(w);
        else
            tick(w, at, false);
    }
}

void tec_simulator_release(struct tec_simulator *w)
{
    tec_simulator_pass(w, w->now_ns);
    for (int at = first_tick(w); tick_at(w, &w->sessions[at]) <= w->now_ns; at = first_tick(w))
        tick(w, at, true);
}
