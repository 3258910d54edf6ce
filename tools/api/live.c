/* live.c - what the frame thread takes and tells behind tectum.h: newest observation in, actions
 * and texts out. It takes no lock. */
#include "tools/api/live.h"

#include "base/clock.h"

#include <string.h>

static const struct tec_clock wall = {NULL};

void tec_live_left(void *user, const struct tec_runtime_left *left)
{
    struct tectum *t = user;
    const struct tec_action_record *of = &left->record->actions[left->action];
    struct tec_live_action *a = &t->actions[left->action];
    struct tec_live_output *out = &a->outputs[a->outbox.writing];
    memcpy(out->chunk, left->chunk, tec_engine_chunk(t->engine, left->action) * sizeof *out->chunk);
    memcpy(out->state_raw, left->seen->state_raw,
           (size_t)tec_session_state(t->engine->session) * sizeof(double));
    const struct tec_loop_options *loop = tec_loop_settings(t->engine->loop);
    bool ring = loop->chains[loop->actions[left->action].chain].ring != NULL;
    out->number = ring ? left->seen->number : t->tick;
    out->seen = left->seen->number;
    out->captured_ns = of->captured_ns;
    out->released_ns = of->release_ns;
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

void tec_live_lost(void *user, const struct tec_observation_record *seen)
{
    lose(user, seen->number, seen->captured_ns, "eos");
}

/* Report a loss only when no older observation is in flight any more, because a consumer that waits
 * for an older one still gets that one's actions. Newer observations may be in flight, unless a
 * flush dropped them together with all older ones. */
static void tell_loss(struct tectum *t)
{
    if (t->loss.number < 0 || tec_loop_live(t->engine->loop) >
                                  tec_observation_records_after(t->runtime.records, t->loss.number))
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
    tec_transcript_tell(
        &t->transcript); /* texts that it ended, before their frames' numbers are used anew */
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

/* Run a frame, without an observation where `from` is NULL. An observation's tick is the moment it
 * was submitted: preparing it is in its deadline. */
static void run_frame(struct tectum *t, const struct tec_live_input *from)
{
    struct tec_runtime_seen seen = {.number = -1};
    struct tec_tick tick =
        tec_loop_tick(t->engine->loop, from ? from->submitted_ns : tec_clock_now(&wall), 0);
    if (from) {
        tick.late_ns = from->ready_ns - from->submitted_ns;
        seen = (struct tec_runtime_seen){&from->input, from->number, from->state_raw};
    }
    note_tick(t, from);
    tec_transcript_note(&t->transcript, tick.frame, seen.number);
    tec_runtime_frame(&t->runtime, &seen, &tick, 1, t->tick);
    tell_loss(t);
    tec_transcript_tell(&t->transcript);
    if (tec_engine_failure(t->engine, NULL) != TEC_OK) { /* who waits is told */
        tec_bell_ring(&t->done);
        tec_bell_ring(&t->transcript.said);
    }
}

/* Take a new observation, unless it was submitted before a reset. An observation taken before the
 * reset is noticed is older than the reset too, and is dropped with those in flight. */
static bool take_input(void *user)
{
    struct tectum *t = user;
    bool fresh = tec_triple_take(&t->inbox);
    const struct tec_live_input *from = &t->inputs[t->inbox.reading];
    if (atomic_exchange(&t->emptying, false))
        empty(t);
    if (!fresh || from->number < atomic_load(&t->forgets))
        return false;
    run_frame(t, from);
    return true;
}

static void go_on(void *user)
{
    run_frame(user, NULL);
}

/* Language goes on at the robot's period. A ring waits longer than that, so that its next
 * observation comes first, and a slow frame does not eat up the pause. */
struct tec_runtime_source tec_live_source(struct tectum *t)
{
    enum { NO_PERIOD_NS = 10000000 };
    bool ring = t->engine->topology.n_rings > 0;
    int64_t period = t->engine->topology.period_us * 1000;
    if (period <= 0)
        period = NO_PERIOD_NS;
    return (struct tec_runtime_source){.take = take_input,
                                       .go_on = go_on,
                                       .between_ns = ring ? period + period / 2 : period,
                                       .from_end = ring,
                                       .user = t};
}
