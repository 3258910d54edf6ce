/* live.c - the frame thread: newest observation in, actions out, language in between. It takes no
 * lock; between frames it waits on one futex. */
#include "tools/live.h"

#include "base/clock.h"

#include <string.h>

static const struct tec_clock wall = {NULL};

void tec_live_released(void *user, const float *chunk, const struct tec_frame_record *record)
{
    struct tectum *t = user;
    const struct tec_flow *f = &t->engine->model->flow;
    struct tec_live_output *out = &t->outputs[t->outbox.writing];
    memcpy(out->chunk, chunk, (size_t)f->horizon * (size_t)f->dim * sizeof *chunk);
    memcpy(out->state_raw, t->running->state_raw, (size_t)tec_model_state(t->engine->model) * sizeof(double));
    out->number = t->running->number;
    out->captured_ns = t->running->input.captured_ns;
    out->released_ns = record->release_ns;
    out->missed = record->deadline_ns >= 0 && record->release_ns > record->deadline_ns;
    tec_mailbox_post(&t->outbox);
    tec_bell_ring(&t->done);
    tec_outlet_post(&t->outlet, t->running->number, t->running->input.captured_ns,
                    record->release_ns, chunk, t->running->state_raw);
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
    return tec_ring_push(&t->events, &event);
}

/* A full ring loses tokens, not time; the end of the text says so. */
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
    tec_asks_put(&t->asks, &tick, t->running != NULL);
    tec_loop_run(loop, t->running ? &t->running->input : NULL, &tick);
    tec_asks_settle(&t->asks);
    if (tec_device_failure(t->engine->device, NULL) != TEC_OK) { /* who waits is told */
        tec_bell_ring(&t->done);
        tec_bell_ring(&t->said);
    }
}

void *tec_live_run(void *engine)
{
    struct tectum *t = engine;
    struct tec_loop *loop = t->engine->loop;
    int64_t period = t->engine->topology.period_us * 1000, last = 0;
    if (period <= 0)
        period = 10000000;
    for (int64_t frame = 0;;) {
        uint32_t seen = atomic_load(&t->work.rings);
        if (atomic_load(&t->ending))
            return NULL;
        bool fresh = tec_mailbox_take(&t->inbox);
        int64_t now = tec_clock_now(&wall);
        bool live = tec_loop_live(loop) > 0;
        if (!fresh && (live ? now < last + period : !tec_asks_cancels_wait(&t->asks))) {
            tec_bell_wait(&t->work, seen, live ? last + period : INT64_MAX);
            continue;
        }
        t->running = fresh ? &t->inputs[t->inbox.reading] : NULL;
        t->observation_of[frame % TEC_LIVE_FRAMES] = fresh ? t->running->number : -1;
        last = now;
        run_frame(t, now);
        tell(t);
        frame++;
    }
}
