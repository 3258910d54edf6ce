/* live.c - what the frame thread takes and tells behind tectum.h: each session's newest observation
 * in, its actions and texts out. It takes no lock. */
#include "tools/api/live.h"

#include "base/clock.h"

#include <string.h>

static const struct tec_clock wall = {NULL};

void tec_live_left(void *user, const struct tec_runtime_left *left)
{
    const struct tec_live_shared *live = user;
    struct tectum *t = &live->sessions[left->session];
    const struct tec_action_record *of = &left->record->actions[left->action];
    struct tec_live_action *a = &t->actions[left->action];
    struct tec_live_output *out = &a->outputs[a->outbox.writing];
    out->left_out = left->chunk == NULL;
    if (left->chunk)
        memcpy(out->chunk, left->chunk,
               tec_engine_chunk(t->engine, left->action) * sizeof *out->chunk);
    memcpy(out->state_raw, left->seen->state_raw,
           (size_t)tec_session_state(t->session) * sizeof(double));
    const struct tec_loop_options *loop = tec_loop_settings(t->engine->loop);
    bool ring = loop->chains[loop->actions[left->action].chain].ring != NULL;
    out->number = ring ? left->seen->number : t->tick;
    out->seen = left->seen->number;
    out->captured_ns = left->seen->captured_ns;
    out->released_ns = left->chunk ? of->release_ns : tec_clock_now(&wall);
    out->missed = of->missed;
    tec_triple_post(&a->outbox);
    tec_bell_ring(&t->done);
    if (left->action)
        return;
    t->released = out->number > t->released ? out->number : t->released;
    if (t->loss.number <= t->released)
        t->loss.number = -1;
}

static void lose(struct tectum *t, int64_t number, int64_t captured_ns, const char *reason)
{
    if (number <= t->loss.number || number <= t->released)
        return;
    t->loss = (struct tec_live_loss){number, captured_ns, 0, reason};
}

void tec_live_lost(void *user, int session, const struct tec_observation_record *seen)
{
    const struct tec_live_shared *live = user;
    lose(&live->sessions[session], seen->number, seen->captured_ns, "eos");
}

/* Report a loss only when no older observation is in flight any more, because a consumer that waits
 * for an older one still gets that one's actions. Newer observations may be in flight, unless a
 * flush dropped them together with all older ones. */
static void tell_loss(struct tectum *t)
{
    if (t->loss.number < 0 || tec_loop_in_flight(t->engine->loop, t->index) >
                                  tec_observation_records_after(
                                      &t->live->runtime.sessions[t->index].records, t->loss.number))
        return;
    struct tec_live_loss *place = &t->losses[t->lossbox.writing];
    *place = t->loss;
    place->told_ns = tec_clock_now(&wall);
    t->loss.number = -1;
    tec_triple_post(&t->lossbox);
    tec_bell_ring(&t->done);
}

/* The reset of a session: its ring is emptied at once, not with the next observation, so that those
 * who wait for actions of what is in flight are told. */
static void empty(struct tectum *t)
{
    int64_t below = atomic_load(&t->forgets);
    tec_loop_empty_rings(t->engine->loop, t->index);
    lose(t, below - 1, 0, "reset");
    tell_loss(t);
}

/* Find the robot's tick that a frame acts for: its observation's, or without an observation the
 * newest tick that had none either. */
static void note_tick(struct tectum *t, const struct tec_live_input *from)
{
    int64_t blind = atomic_load(&t->blind);
    if (from)
        t->tick = from->number;
    else if (blind > t->tick)
        t->tick = blind;
}

/* The tick of a session's frame. An observation's is the moment it was submitted: preparing it is
 * in its deadline. Texts come every so many observations of their own robot's episode: frames
 * in which language alone goes on do not count. */
static struct tec_tick make_tick(struct tectum *t, const struct tec_live_input *from)
{
    struct tec_loop *loop = t->engine->loop;
    int64_t due = from ? from->submitted_ns : tec_clock_now(&wall);
    struct tec_tick tick = tec_loop_tick(loop, due, 0);
    if (t->live->n_sessions > 1) {
        tick.session = t->index;
        tick.frame = t->frame++;
    }
    tec_loop_count(loop, &t->counted, from ? &from->input : NULL, &tick);
    if (from)
        tick.late_ns = from->ready_ns - from->submitted_ns;
    tick.ahead = from ? tick.frame - from->number : 0;
    return tick;
}

/* Tell the session's consumers what came of the frame. */
static void tell_session(struct tectum *t, bool failed)
{
    tell_loss(t);
    tec_transcript_tell(&t->transcript);
    if (failed) { /* who waits is told */
        tec_bell_ring(&t->done);
        tec_bell_ring(&t->transcript.said);
    }
}

/* Language goes on at the robot's period. A ring waits longer than that, so that its next
 * observation comes first, and a slow frame does not eat up the pause. */
static int64_t pause_ns(const struct tec_live_shared *live)
{
    enum { NO_PERIOD_NS = 10000000 };
    int64_t period = live->engine->topology.period_us * 1000;
    if (period <= 0)
        period = NO_PERIOD_NS;
    return live->engine->topology.n_rings > 0 ? period + period / 2 : period;
}

/* Is a session in the next frame? One without an observation is where nobody has any, where its
 * requests are to be given up, and where its ring has waited so long for the next one. */
static bool takes_part(const struct tectum *t, bool observed)
{
    bool goes_on = tec_loop_in_flight(t->engine->loop, t->index) > 0 &&
                   tec_clock_now(&wall) - t->ran_ns >= pause_ns(t->live);
    return t->waits || !observed || goes_on || tec_asks_cancels_wait(&t->asks);
}

/* The sessions of the next frame, whose deadline is the earliest first. */
static int choose(struct tec_live_shared *live, bool observed, struct tectum **in)
{
    int n = 0;
    for (int i = 0; i < live->n_sessions; i++) {
        struct tectum *t = &live->sessions[i];
        int at = n;
        if (!takes_part(t, observed))
            continue;
        for (;
             at > 0 && t->waits &&
             (!in[at - 1]->waits || t->inputs[t->inbox.reading].submitted_ns <
                                        in[at - 1]->inputs[in[at - 1]->inbox.reading].submitted_ns);
             at--)
            in[at] = in[at - 1];
        in[at] = t;
        n++;
    }
    return n;
}

/* Run a frame of what has come; of all sessions without observations where nothing has. */
static void run_frame(struct tec_live_shared *live, bool observed)
{
    struct tectum *in[TEC_MAX_SESSIONS];
    struct tec_runtime_seen seen[TEC_MAX_SESSIONS];
    struct tec_tick ticks[TEC_MAX_SESSIONS];
    int n = choose(live, observed, in);
    for (int i = 0; i < n; i++) {
        struct tectum *t = in[i];
        const struct tec_live_input *from = t->waits ? &t->inputs[t->inbox.reading] : NULL;
        ticks[i] = make_tick(t, from);
        note_tick(t, from);
        seen[i] = (struct tec_runtime_seen){.number = -1};
        if (from)
            seen[i] = (struct tec_runtime_seen){&from->input, from->number, from->state_raw, 0};
        seen[i].acts_for = t->tick;
        tec_transcript_note(&t->transcript, ticks[i].frame, seen[i].number);
        t->waits = false;
        t->ran_ns = tec_clock_now(&wall);
    }
    tec_runtime_frame(&live->runtime, seen, ticks, n);
    bool failed = tec_engine_failure(live->engine, NULL) != TEC_OK;
    for (int i = 0; i < live->n_sessions; i++)
        tell_session(&live->sessions[i], failed);
}

/* Take a session's new observation, unless it was submitted before a reset. An observation taken
 * before the reset is noticed is older than the reset too, and is dropped with those in flight. */
static void take_input(struct tectum *t)
{
    bool fresh = tec_triple_take(&t->inbox);
    if (fresh && !t->waits)
        t->since_ns = tec_clock_now(&wall);
    t->waits |= fresh;
    if (atomic_exchange(&t->emptying, false))
        empty(t);
    if (t->waits && t->inputs[t->inbox.reading].number < atomic_load(&t->forgets))
        t->waits = false;
}

/* Run a frame when all sessions have an observation, or the first one has waited for the others as
 * long as the pipeline says. One that has been silent for a second is not waited for. */
static bool take(void *user)
{
    enum { SILENT_NS = 1000000000 };
    struct tec_live_shared *live = user;
    int64_t now = tec_clock_now(&wall), first = INT64_MAX, expected = 0;
    for (int i = 0; i < live->n_sessions; i++) {
        struct tectum *t = &live->sessions[i];
        take_input(t);
        if (t->waits && t->since_ns < first)
            first = t->since_ns;
        if (!t->waits && t->since_ns && t->since_ns + SILENT_NS > expected)
            expected = t->since_ns + SILENT_NS;
    }
    if (first == INT64_MAX)
        return false;
    int64_t until = first + live->gather_ns < expected ? first + live->gather_ns : expected;
    if (until > now) {
        tec_runtime_look(&live->runtime, until);
        return false;
    }
    run_frame(live, true);
    return true;
}

static void go_on(void *user)
{
    run_frame(user, false);
}

struct tec_runtime_source tec_live_source(struct tec_live_shared *live)
{
    return (struct tec_runtime_source){.take = take,
                                       .go_on = go_on,
                                       .between_ns = pause_ns(live),
                                       .from_end = live->engine->topology.n_rings > 0,
                                       .user = live};
}
