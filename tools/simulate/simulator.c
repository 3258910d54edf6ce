/* simulator.c - a simulated robot on a virtual clock: sessions tick, inputs are late, and launches
 * take the time of a cost table, while the frame loop and the policy are the real ones. */
#include "tools/simulate/simulator.h"

#include "tools/simulate/simulated.h"

#include <math.h>
#include <string.h>

/* --- answers to the frame loop --------------------------------------------------------------- */

static const struct tec_topology *topology(const struct tec_simulator *w)
{
    return &w->o.engine->topology;
}

/* Whether something of the scenario happens in the open frame. */
static bool now(const struct tec_simulator *w, const struct tec_happening *h)
{
    return h->frame == w->frame && (h->session < 0 || h->session == w->running);
}

/* The same in any frame that is open. */
static bool now_anywhere(const struct tec_simulator *w, const struct tec_happening *h)
{
    bool any = false;
    for (int i = 0; i < w->n_sessions; i++)
        any |= w->sessions[i].open == h->frame && (h->session < 0 || h->session == i);
    return any;
}

static int64_t took(void *user, int model, int mark, int rows, int k)
{
    const struct tec_simulator *w = user;
    const char *name;
    int64_t ns = tec_simulated_took(w->o.engine, w->costs, model, mark, rows, k, &name);
    const struct tec_happenings *spikes = &w->o.scenario->spikes;
    for (int i = 0; name[0] && i < spikes->n; i++)
        if (now_anywhere(w, &spikes->item[i]) && strcmp(spikes->item[i].name, name) == 0)
            ns += spikes->item[i].value * 1000;
    return ns;
}

static int end_of(void *user, int64_t request)
{
    const struct tec_simulator *w = user;
    const struct tec_happenings *eos = &w->o.scenario->eos;
    for (int i = 0; i < eos->n; i++)
        if (eos->item[i].frame == request)
            return (int)eos->item[i].value;
    return 0;
}

/* The next tick may lie past the end of the scenario, because a robot does not know that it
 * ends. */
static int64_t next_tick(const struct tec_simulator *w, int session, int64_t after)
{
    const struct tec_simulator_session *s = &w->sessions[session];
    int64_t n = s->next, at = tec_simulator_tick(s, n);
    if (at <= after)
        n += (after - at) / s->period_ns + 1;
    return tec_simulator_tick(s, n);
}

/* The time at which a session that has no frame open needs the device: now, if a frame of it waits
 * or has a tick at this moment. */
static int64_t wanted(void *self, int64_t now_ns)
{
    const struct tec_simulator *w = self;
    int64_t first = INT64_MAX;
    for (int i = 0; w->paced && i < w->n_sessions; i++) {
        const struct tec_simulator_session *s = &w->sessions[i];
        bool ends = s->open >= 0 || tec_simulator_over(w, s);
        int64_t at = next_tick(w, i, ends ? now_ns : now_ns - 1);
        if (s->open < 0 && s->waiting >= 0)
            return now_ns;
        first = at < first ? at : first;
    }
    return first;
}

void tec_simulator_connect(struct tec_simulator *simulator, struct tec_virtual *device,
                           struct tec_engine_options *options)
{
    *device = (struct tec_virtual){
        .clock_ns = &simulator->now_ns, .user = simulator, .took = took, .end = end_of};
    options->events = (struct tec_event_sink){tec_simulator_tell, simulator};
    options->wanted = wanted;
    options->wanted_self = simulator;
}

/* --- frames ---------------------------------------------------------------------------------- */

static enum tec_status change_params(struct tec_simulator *w, struct tec_error *err)
{
    struct tec_happenings *params = &w->o.scenario->params, *costs = &w->o.scenario->costs_from;
    for (int i = 0; i < params->n; i++) {
        struct tec_happening *h = &params->item[i];
        if (h->frame > w->frame || !h->name || !w->o.policy)
            continue;
        TEC_TRY(tec_policy_set_param(w->o.policy, h->name, h->number, err));
        h->name = NULL; /* done */
    }
    w->costs = w->o.costs;
    for (int i = 0; i < costs->n; i++)
        if (costs->item[i].frame <= w->frame && costs->item[i].costs.rows)
            w->costs = &costs->item[i].costs;
    if (w->costs->contention > 0.0)
        w->o.device->contention = w->costs->contention;
    tec_loop_set_table(w->o.engine->loop, w->o.seen ? w->o.seen : w->costs);
    return TEC_OK;
}

static int decoder_of(const struct tec_simulator *w, const char *node)
{
    int at = 0;
    for (int i = 0; i < topology(w)->n_nodes; i++) {
        if (!tec_topology_decodes(topology(w), i))
            continue;
        if (!node || strcmp(topology(w)->nodes[i].name, node) == 0)
            return at;
        at++;
    }
    return 0;
}

/* Make the requests of this frame that come from outside: first the scenario's, then the
 * generator's. */
static int ask(struct tec_simulator *w, struct tec_simulator_session *s)
{
    const struct tec_happenings *arrivals = &w->o.scenario->arrivals;
    struct tec_arrival made[TEC_MAX_ARRIVALS];
    int n = 0, more = w->o.arrivals ? tec_arrivals_at(w->o.arrivals, w->frame, made) : 0;
    for (int i = 0; i < arrivals->n; i++)
        if (now(w, &arrivals->item[i])) {
            s->cancel_after[n] = 0;
            s->asks[n++] = (struct tec_ask){.decoder = decoder_of(w, arrivals->item[i].name),
                                            .max_tokens = (int)arrivals->item[i].value,
                                            .prio = arrivals->item[i].prio};
        }
    for (int i = 0; i < more; i++) {
        s->cancel_after[n] = made[i].cancel_after;
        s->asks[n++] = (struct tec_ask){.max_tokens = made[i].max_tokens};
    }
    return n;
}

static int cancel(struct tec_simulator *w, struct tec_simulator_session *s)
{
    const struct tec_happenings *cancels = &w->o.scenario->cancel;
    int n = 0, kept = 0;
    for (int i = 0; i < cancels->n; i++)
        if (now(w, &cancels->item[i]))
            s->cancels[n++] = cancels->item[i].value;
    for (int i = 0; i < w->n_later; i++) {
        if (w->later[i].frame <= w->frame)
            s->cancels[n++] = w->later[i].request;
        else
            w->later[kept++] = w->later[i];
    }
    w->n_later = kept;
    return n;
}

/* Note which of the new requests will be cancelled. */
static void note_cancels(struct tec_simulator *w, const struct tec_simulator_session *s, int n_asks)
{
    for (int i = 0; i < n_asks; i++) {
        if (s->cancel_after[i] == 0 || s->asks[i].refused)
            continue;
        if (w->n_later == TEC_SIMULATOR_LATER)
            w->failed = TEC_UNSUPPORTED;
        else
            w->later[w->n_later++] =
                (struct tec_simulator_later){s->open + s->cancel_after[i], s->asks[i].id};
    }
}

static unsigned spawn(const struct tec_simulator *w, const struct tec_simulator_session *s)
{
    if (s->spawn_every < 0)
        return tec_loop_spawns(w->o.engine->loop, w->frame);
    return s->spawn_every > 0 && w->frame % s->spawn_every == 0 ? 1U : 0U;
}

/* Set the texts that the session has by now, and the length of its prompt. */
static void instruct(struct tec_simulator *w, struct tec_frame_input *input)
{
    const struct tec_scenario *s = w->o.scenario;
    int64_t tokens = s->text_tokens;
    uint64_t key = 0;
    for (int i = 0; i < s->instruction.n; i++) {
        const struct tec_happening *h = &s->instruction.item[i];
        if (h->frame > w->frame || (h->session >= 0 && h->session != w->running))
            continue;
        key++;
        tokens = h->value ? h->value : tokens;
    }
    if (tokens)
        input->chains[0].prefix.n_text = (int)tokens;
    tec_simulated_texts(w->o.engine, w->running, key, input); /* all that are given change */
}

/* Whether the frame has no observation. */
static bool missing(const struct tec_simulator *w)
{
    const struct tec_happenings *m = &w->o.scenario->missing;
    for (int i = 0; i < m->n; i++)
        if (m->item[i].frame == w->frame)
            return true;
    return false;
}

static int64_t late(const struct tec_simulator *w)
{
    const struct tec_happenings *lates = &w->o.scenario->late;
    int64_t us = 0;
    for (int i = 0; i < lates->n; i++)
        if (now(w, &lates->item[i]))
            us += lates->item[i].value;
    return us * 1000;
}

/* Open the frame that a session waits for; returns its tick, *input gets its observation. */
static struct tec_tick open_frame(struct tec_simulator *w, int session,
                                  const struct tec_frame_input **input)
{
    struct tec_simulator_session *s = &w->sessions[session];
    int64_t tick_ns = s->waiting_tick_ns;
    w->running = session;
    w->frame = s->open = s->waiting;
    s->waiting = -1;
    s->input.captured_ns = tick_ns;
    instruct(w, &s->input);
    *input = missing(w) ? NULL : &s->input;
    return (struct tec_tick){.frame = w->frame,
                             .session = session,
                             .name = s->name,
                             .tick_ns = tick_ns,
                             .deadline_ns = s->waiting_deadline_ns,
                             .next_ns = w->paced ? tick_ns + s->period_ns : INT64_MAX,
                             .late_ns = late(w),
                             .counted = w->frame,
                             .spawn = spawn(w, s),
                             .mute = s->spawn_every < 0 ? 0U : ~0U,
                             .asks = s->asks,
                             .n_asks = ask(w, s),
                             .cancels = s->cancels,
                             .n_cancels = cancel(w, s)};
}

/* Run the frames of sessions that wait, together. */
static enum tec_status run_frame(struct tec_simulator *w, const int *sessions, int n,
                                 struct tec_error *err)
{
    const struct tec_frame_input *inputs[TEC_MAX_SESSIONS] = {NULL};
    struct tec_tick ticks[TEC_MAX_SESSIONS];
    w->frame = w->sessions[sessions[0]].waiting;
    TEC_TRY(change_params(w, err));
    for (int i = 0; i < n; i++)
        ticks[i] = open_frame(w, sessions[i], &inputs[i]);
    tec_loop_run_sessions(w->o.engine->loop, inputs, ticks, n);
    for (int i = 0; i < n; i++) {
        note_cancels(w, &w->sessions[sessions[i]], ticks[i].n_asks);
        w->sessions[sessions[i]].open = -1;
    }
    w->running = -1;
    return w->failed == TEC_OK          ? TEC_OK
           : w->failed == TEC_NO_MEMORY ? tec_fail(err, TEC_NO_MEMORY, "no memory for an event")
           : w->failed == TEC_IO        ? tec_fail(err, TEC_IO, "the trace cannot be written")
                                        : tec_fail(err, TEC_UNSUPPORTED,
                                                   "more than %d actions or %d cancellations are "
                                                          "due at once",
                                                   TEC_SIMULATOR_DUE, TEC_SIMULATOR_LATER);
}

static enum tec_status run_saturated(struct tec_simulator *w, struct tec_error *err)
{
    int all[TEC_MAX_SESSIONS] = {0}, n = w->o.pipeline->frame.sessions > 1 ? w->n_sessions : 1;
    for (int64_t frame = 0; frame < w->o.scenario->frames; frame++) {
        int64_t tick = w->now_ns;
        if (tick / 1000 >= w->o.scenario->until_us)
            break;
        for (int i = 0; i < n; i++) {
            struct tec_simulator_session *s = &w->sessions[i];
            s->waiting = frame;
            s->next = frame + 1;
            s->waiting_tick_ns = tick;
            s->waiting_deadline_ns = s->deadline_ns < 0 ? -1 : tick + s->deadline_ns;
            tec_simulator_expect(w, i, frame, tick, s->waiting_deadline_ns);
            all[i] = i;
        }
        TEC_TRY(run_frame(w, all, n, err));
    }
    return TEC_OK;
}

static int64_t due(const struct tec_simulator_session *s)
{
    return s->waiting_deadline_ns < 0 ? INT64_MAX : s->waiting_deadline_ns;
}

/* The released frames, the earliest deadline first; ties go by the order of sessions. Returns how
 * many there are. */
static int choose(const struct tec_simulator *w, int *order)
{
    int n = 0;
    for (int i = 0; i < w->n_sessions; i++) {
        if (w->sessions[i].waiting < 0)
            continue;
        int at = n++;
        for (; at > 0 && due(&w->sessions[i]) < due(&w->sessions[order[at - 1]]); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    return n;
}

/* Until when frames that wait are kept back, so that others run with them: the next tick of a
 * session that has none waiting, if that is within gather_ms of the first; now = they run. */
static int64_t gather(const struct tec_simulator *w, int waiting)
{
    int64_t first = INT64_MAX, next = tec_simulator_next(w);
    for (int i = 0; i < w->n_sessions; i++)
        if (w->sessions[i].waiting >= 0 && w->sessions[i].waiting_tick_ns < first)
            first = w->sessions[i].waiting_tick_ns;
    int64_t until = first + llround(w->o.pipeline->frame.gather_ms * 1e6);
    return waiting < w->o.pipeline->frame.sessions && next <= until ? next : w->now_ns;
}

static enum tec_status run_paced(struct tec_simulator *w, struct tec_error *err)
{
    int order[TEC_MAX_SESSIONS], most = w->o.pipeline->frame.sessions;
    for (;;) {
        tec_simulator_release(w);
        int n = choose(w, order);
        int64_t next = n ? gather(w, n) : tec_simulator_next(w);
        if (next == INT64_MAX)
            return TEC_OK;
        if (n == 0 || next > w->now_ns)
            w->now_ns = next;
        else
            TEC_TRY(run_frame(w, order, n < most ? n : most, err));
    }
}

enum tec_status tec_simulator_run(struct tec_simulator *simulator, struct tec_error *err)
{
    struct tec_simulator *w = simulator;
    enum tec_status status = w->paced ? run_paced(w, err) : run_saturated(w, err);
    if (status == TEC_OK)
        tec_simulator_pass(w, INT64_MAX);
    return status;
}

void tec_simulator_finish(struct tec_simulator *simulator)
{
    json_decref(simulator->held);
    simulator->held = NULL;
}
