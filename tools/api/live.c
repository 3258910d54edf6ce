/* live.c - the frame thread: newest observation in, actions out, language in between. It takes no
 * lock; between frames it waits on one futex. */
#include "tools/api/live.h"

#include "base/clock.h"

#include <string.h>

static const struct tec_clock wall = {NULL};

void tec_live_released(void *user, int action, const float *chunk,
                       const struct tec_frame_record *record)
{
    struct tectum *t = user;
    const struct tec_action_record *of = &record->actions[action];
    struct tec_live_action *a = &t->actions[action];
    struct tec_live_output *out = &a->outputs[a->outbox.writing];
    const struct tec_observation_record *seen = tec_observation_records_find(&t->records, of->seen);
    if (!seen)
        return;
    memcpy(out->chunk, chunk, tec_engine_chunk(t->engine, action) * sizeof *chunk);
    memcpy(out->state_raw, seen->state_raw,
           (size_t)tec_session_state(t->engine->session) * sizeof(double));
    const struct tec_loop_options *loop = tec_loop_settings(t->engine->loop);
    bool ring = loop->chains[loop->actions[action].chain].ring != NULL;
    out->number = ring ? seen->number : t->tick;
    out->seen = seen->number;
    out->captured_ns = of->captured_ns;
    out->released_ns = of->release_ns;
    out->missed = of->missed;
    tec_triple_post(&a->outbox);
    tec_bell_ring(&t->done);
    tec_watchdog_post(&a->watchdog, t->tick, record, chunk, seen);
    if (action)
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

void tec_live_lost(void *user, int64_t seen, int64_t captured_ns)
{
    struct tectum *t = user;
    const struct tec_observation_record *of = tec_observation_records_find(&t->records, seen);
    if (of)
        lose(t, of->number, captured_ns, "eos");
}

/* Report a loss only when no older observation is in flight any more, because a consumer that waits
 * for an older one still gets that one's actions. Newer observations may be in flight, unless a
 * flush dropped them together with all older ones. */
static void tell_loss(struct tectum *t)
{
    if (t->loss.number < 0 ||
        tec_loop_live(t->engine->loop) > tec_observation_records_after(&t->records, t->loss.number))
        return;
    struct tec_live_loss *place = &t->losses[t->lossbox.writing];
    *place = t->loss;
    place->told_ns = tec_clock_now(&wall);
    t->loss.number = -1;
    tec_triple_post(&t->lossbox);
    tec_bell_ring(&t->done);
}

/* Reset a ring: drop the observations in flight and tell those who wait for their actions. */
static void empty(struct tectum *t)
{
    int64_t below = atomic_load(&t->forgets);
    tec_loop_reset(t->engine->loop);
    lose(t, below - 1, 0, "reset");
    tell_loss(t);
}

static bool push(struct tectum *t, struct tec_live_place *place, const struct tec_utterance *u,
                 int token, const char *reason)
{
    const struct tec_live_event event = {.request = u->id,
                                         .observation =
                                             t->observation_of[u->frame % TEC_LIVE_FRAMES],
                                         .reason = reason,
                                         .token = token,
                                         .decoder = u->decoder,
                                         .lost = place->lost};
    return tec_spsc_push(&t->events, &event);
}

static void post_ranking(struct tectum *t, const struct tec_utterance *u)
{
    struct tec_live_rankings *r = &t->rankings[u->decoder];
    struct tec_live_ranking *to = &r->places[r->box.writing];
    if (u->n_ranked == 0)
        return;
    to->request = u->id;
    to->observation = t->observation_of[u->frame % TEC_LIVE_FRAMES];
    to->n = u->n_ranked;
    memcpy(to->items, u->ranked, (size_t)u->n_ranked * sizeof *u->ranked);
    tec_triple_post(&r->box);
}

/* When the event queue is full, tokens are dropped so that the frame never waits; the text's last
 * event says so. */
static void tell(struct tectum *t)
{
    bool said = false;
    for (int i = 0; i < t->n_texts; i++) {
        const struct tec_utterance *u = tec_loop_utterance(t->engine->loop, i);
        struct tec_live_place *place = &t->places[i];
        if (u->id < 0)
            continue;
        if (u->id != place->id)
            *place = (struct tec_live_place){.id = u->id};
        for (int n = u->count; place->told < n; place->told++) {
            place->lost |= !push(t, place, u, u->tokens[place->told], NULL);
            said = true;
        }
        if (u->done && !place->ended) {
            if (!place->ranked)
                post_ranking(t, u);
            place->ranked = true;
            place->ended = push(t, place, u, -1, u->reason);
            said = true;
        }
    }
    if (said)
        tec_bell_ring(&t->said);
}

/* An observation's tick is the moment it was submitted: preparing it is in its deadline. */
static void run_frame(struct tectum *t, int64_t now)
{
    struct tec_loop *loop = t->engine->loop;
    struct tec_tick tick = tec_loop_tick(loop, t->running ? t->running->submitted_ns : now, 0);
    if (t->running)
        tick.late_ns = t->running->ready_ns - t->running->submitted_ns;
    if (t->running)
        tec_observation_records_put(&t->records, tick.frame, t->running->number,
                                    t->running->input.captured_ns, t->running->state_raw);
    tec_asks_put(&t->asks, &tick, t->running != NULL);
    tec_loop_run(loop, t->running ? &t->running->input : NULL, &tick);
    for (int i = 0; i < t->n_actions; i++)
        tec_watchdog_flush(&t->actions[i].watchdog);
    tell_loss(t);
    tec_asks_settle(&t->asks);
    if (tec_device_failure(t->engine->device, NULL) != TEC_OK) { /* who waits is told */
        tec_bell_ring(&t->done);
        tec_bell_ring(&t->said);
    }
}

/* Find the robot's tick that a frame acts for: its observation's, or without an observation the
 * newest tick that had none either. */
static void note_tick(struct tectum *t)
{
    int64_t blind = atomic_load(&t->blind);
    if (t->running)
        t->tick = t->running->number;
    else if (blind > t->tick)
        t->tick = blind;
}

/* Take a new observation, unless it was submitted before a reset. An observation taken before the
 * reset is noticed is older than the reset too, and is dropped with those in flight. */
static bool take_input(struct tectum *t)
{
    bool fresh = tec_triple_take(&t->inbox);
    if (atomic_exchange(&t->emptying, false))
        empty(t);
    return fresh && t->inputs[t->inbox.reading].number >= atomic_load(&t->forgets);
}

void *tec_live_run(void *engine)
{
    struct tectum *t = engine;
    struct tec_loop *loop = t->engine->loop;
    int64_t period = t->engine->topology.period_us * 1000, last = 0;
    bool ring = t->engine->topology.n_rings > 0;
    if (period <= 0)
        period = 10000000;
    if (ring) /* wait longer than a robot's period, so that its next observation comes first */
        period += period / 2;
    for (int64_t frame = 0;;) {
        uint32_t seen = atomic_load(&t->work.rings);
        if (atomic_load(&t->ending))
            return NULL;
        bool fresh = take_input(t);
        int64_t now = tec_clock_now(&wall);
        bool live = tec_loop_live(loop) > 0;
        if (!fresh && (live ? now < last + period : !tec_asks_cancels_wait(&t->asks))) {
            tec_bell_wait(&t->work, seen, live ? last + period : INT64_MAX);
            continue;
        }
        t->running = fresh ? &t->inputs[t->inbox.reading] : NULL;
        note_tick(t);
        t->observation_of[frame % TEC_LIVE_FRAMES] = fresh ? t->running->number : -1;
        run_frame(t, now);
        last = ring ? tec_clock_now(&wall) : now; /* a slow frame does not eat up the pause */
        tell(t);
        frame++;
    }
}
