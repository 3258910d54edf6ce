/* events.c - what the frame loop tells a simulated robot: written as a trace, and actions that
 * leave handed to it. */
#include "tools/simulate/simulator.h"

#include <stdlib.h>
#include <string.h>

/* A release: its time, what it releases, and whether it was late. */
struct release {
    int action; /* whose: the loop's */
    int64_t t_ns;
    int64_t seen; /* frame whose observation the actions are of; captured_ns: of that observation */
    int64_t captured_ns;
    int over; /* ticks since their chunk left first */
    bool late;
    bool left_out; /* there are none: the frame leaves them out */
};

/* Which of the loop's actions a node is. */
static int action_of(const struct tec_simulator *w, int node)
{
    const struct tec_loop_options *loop = tec_loop_settings(w->o.engine->loop);
    for (int a = 0; a < loop->n_actions; a++)
        if (loop->actions[a].node == node)
            return a;
    return 0;
}

static struct release release_of(const struct tec_simulator *w, const struct tec_event *e)
{
    return (struct release){.action = action_of(w, e->node),
                            .t_ns = e->t_ns,
                            .seen = e->ring ? e->request : w->frame - e->frames,
                            .captured_ns = e->since_ns,
                            .over = e->ring ? 0 : e->k,
                            .late = e->flag,
                            .left_out = e->kind == TEC_EVENT_LEFT_OUT};
}

static void take_release(struct tec_simulator *w, const struct release *r)
{
    struct tec_action_output *output = w->sessions[w->running].outputs[r->action];
    const struct tec_happenings *resets = &w->o.scenario->reset;
    const struct tec_simulator_due of = {
        .session = w->running, .action = r->action, .frame = w->frame};
    if (!output)
        return;
    int over = r->over * w->o.scenario->output_actions;
    const struct tec_action_output_chunk chunk = {.frame = w->frame,
                                                  .captured_ns = r->captured_ns,
                                                  .actions = tec_simulator_chunk(w, r->seen, over),
                                                  .seen = r->seen,
                                                  .over = over,
                                                  .left_out = r->left_out};
    if (r->late) {
        tec_action_output_late(output, &chunk);
        return;
    }
    for (int i = 0; i < resets->n; i++)
        if (resets->item[i].frame == w->frame)
            tec_action_output_reset(output);
    for (int i = 0; i < w->n_due; i++)
        if (w->due[i].session == w->running && w->due[i].frame == w->frame &&
            w->due[i].action == r->action) {
            memmove(&w->due[i], &w->due[i + 1], (size_t)(w->n_due - i - 1) * sizeof w->due[0]);
            w->n_due--;
            break;
        }
    struct tec_handed handed = tec_action_output_fresh(output, &chunk);
    tec_simulator_handed(w, &of, r->t_ns, &handed);
}

/* Events of two partitions arrive one after the other, so they are held back and sorted by time,
 * the first partition first. */
struct held {
    int64_t t_ns;
    int lane;
    size_t at;
};

static int by_time(const void *a, const void *b)
{
    const struct held *x = a, *y = b;
    if (x->t_ns != y->t_ns)
        return x->t_ns < y->t_ns ? -1 : 1;
    if (x->lane != y->lane)
        return x->lane - y->lane;
    return x->at < y->at ? -1 : 1;
}

/* Hold back [time, lane, 1: a release in time, 2: a late one, 3: actions are left out, line, seen,
 * captured_ns, action and `over` of a release]. */
static void hold_back(struct tec_simulator *w, const struct tec_event *e, bool release)
{
    json_t *line = tec_trace_event(&w->o.engine->topology, e);
    struct release r = release_of(w, e);
    json_t *entry =
        json_pack("[I,i,i,o,I,I,i,i]", (json_int_t)e->t_ns, e->lane,
                  r.left_out ? 3 * !e->flag
                  : release  ? 1 + e->flag
                             : 0,
                  line, (json_int_t)r.seen, (json_int_t)r.captured_ns, r.action, r.over);
    if (json_array_append_new(w->held, entry) != 0)
        w->failed = TEC_NO_MEMORY;
}

static void write_held(struct tec_simulator *w)
{
    size_t n = json_array_size(w->held);
    struct held *order = tec_arena_push(w->arena, n + 1, sizeof *order, 16);
    if (!order) {
        w->failed = TEC_NO_MEMORY;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        json_t *entry = json_array_get(w->held, i);
        order[i] = (struct held){json_integer_value(json_array_get(entry, 0)),
                                 (int)json_integer_value(json_array_get(entry, 1)), i};
    }
    qsort(order, n, sizeof *order, by_time);
    for (size_t i = 0; i < n; i++) {
        json_t *entry = json_array_get(w->held, order[i].at);
        tec_simulator_pass(w, order[i].t_ns);
        tec_simulator_write(w, json_incref(json_array_get(entry, 3)));
        const struct release r = {.action = (int)json_integer_value(json_array_get(entry, 6)),
                                  .t_ns = order[i].t_ns,
                                  .seen = json_integer_value(json_array_get(entry, 4)),
                                  .captured_ns = json_integer_value(json_array_get(entry, 5)),
                                  .over = (int)json_integer_value(json_array_get(entry, 7)),
                                  .late = json_integer_value(json_array_get(entry, 2)) == 2,
                                  .left_out = json_integer_value(json_array_get(entry, 2)) == 3};
        if (json_integer_value(json_array_get(entry, 2)))
            take_release(w, &r);
    }
    json_array_clear(w->held);
}

void tec_simulator_tell(void *self, const struct tec_event *e)
{
    struct tec_simulator *w = self;
    bool hold = w->o.engine->topology.n_partitions > 1;
    w->running = e->tick->session;
    w->frame = e->tick->frame;
    if (!hold)
        tec_simulator_pass(w, e->t_ns);
    tec_summary_event(&w->summary, e);
    bool release = e->kind == TEC_EVENT_RELEASE || e->kind == TEC_EVENT_LEFT_OUT;
    if (w->o.trace && hold)
        hold_back(w, e, release);
    else if (w->o.trace)
        tec_simulator_write(w, tec_trace_event(&w->o.engine->topology, e));
    const struct release r = release_of(w, e);
    if (release && !hold)
        take_release(w, &r);
    if (hold && e->kind == TEC_EVENT_FRAME_END)
        write_held(w);
}
