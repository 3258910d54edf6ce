/* slot.c - one connection's messages and replies, and in which order they come. */
#include "tools/serve/slot.h"

#include <string.h>

enum { FIRST = 1 << 16, KEEP = 1 << 20 /* a larger buffer is freed after its message */ };

bool tec_slot_free(const struct tec_slot *s)
{
    return !s->connection && s->state != TEC_SLOT_ENGINE && !s->held;
}

static void give_back(struct tec_slot *s, struct tec_slot_message *m, size_t keep)
{
    m->n = 0;
    m->is_text = false;
    if (m->room <= keep)
        return;
    tec_heap_put(s->heap, m->data);
    m->data = NULL;
    m->room = 0;
}

void tec_slot_open(struct tec_slot *s, void *connection, int64_t now)
{
    s->connection = connection;
    s->client = ++s->exchange->clients;
    s->greeted = s->early = s->closing = s->replaced = false;
    s->state = TEC_SLOT_IDLE;
    s->began_ns = now;
    s->whole_by_ns = s->taken_by_ns = 0;
    s->previous_ms = -1.0;
    s->filling.n = 0;
    s->n_requests = s->tick = s->early_due_ns = 0;
    struct tec_job *job = &s->exchange->jobs[s->job];
    atomic_store_explicit(&job->gone, false, memory_order_relaxed);
    atomic_store_explicit(&job->connected, s->client, memory_order_relaxed);
    s->substituted = s->pushing = false;
}

void tec_slot_leave(struct tec_slot *s)
{
    s->connection = NULL;
    s->early = false;
    tec_safety_leave(&s->exchange->safety, s->client);
    atomic_store_explicit(&s->exchange->jobs[s->job].connected, 0, memory_order_relaxed);
    give_back(s, &s->filling, 0);
    if (s->state == TEC_SLOT_ENGINE || s->held) {
        s->state = s->held ? TEC_SLOT_IDLE : s->state;
        atomic_store_explicit(&s->exchange->jobs[s->job].gone, true, memory_order_relaxed);
        return;
    }
    give_back(s, &s->serving, 0);
    s->state = TEC_SLOT_IDLE;
}

bool tec_slot_append(struct tec_slot *s, const void *bytes, size_t n)
{
    struct tec_slot_message *m = &s->filling;
    if (n > m->room - m->n) {
        size_t room = 2 * m->room > m->n + n ? 2 * m->room : m->n + n;
        room = room < FIRST ? FIRST : room;
        uint8_t *more = tec_heap_get(s->heap, room);
        if (!more)
            return false;
        if (m->n)
            memcpy(more, m->data, m->n);
        tec_heap_put(s->heap, m->data);
        m->data = more;
        m->room = room;
    }
    if (n)
        memcpy(m->data + m->n, bytes, n);
    m->n += n;
    return true;
}

static void submit(struct tec_slot *s)
{
    struct tec_job *job = &s->exchange->jobs[s->job];
    struct tec_slot_message whole = s->filling;
    s->filling = s->serving;
    s->filling.n = 0;
    s->serving = whole;
    s->early = false;
    s->state = TEC_SLOT_ENGINE;
    job->message = whole.data;
    job->n = whole.n;
    job->is_text = whole.is_text;
    job->received_ns = s->filled_ns;
    job->due_ns = s->early_due_ns;
    job->due_acts = s->early_due_acts;
    s->tick = s->n_requests - 1;
    atomic_store_explicit(&job->answer, TEC_JOB_OPEN, memory_order_relaxed);
    atomic_store_explicit(&job->acted, false, memory_order_relaxed);
    job->client = s->client;
    job->previous_ms = s->previous_ms;
    job->replaced = s->substituted;
    s->substituted = false;
    tec_exchange_submit(s->exchange, s->job);
}

void tec_slot_whole(struct tec_slot *s, int64_t now, int64_t due_ns, bool due_acts)
{
    s->filled_ns = now;
    s->early_due_ns = due_ns;
    s->early_due_acts = due_acts;
    s->n_requests++;
    s->early = s->state != TEC_SLOT_IDLE || s->held;
    if (!s->early)
        submit(s);
}

bool tec_slot_answered(struct tec_slot *s)
{
    give_back(s, &s->serving, s->connection ? KEEP : 0);
    s->state = s->connection ? TEC_SLOT_ANSWERED : TEC_SLOT_IDLE;
    return s->connection != NULL;
}

void tec_slot_returned(struct tec_slot *s)
{
    s->held = false;
    give_back(s, &s->serving, s->connection ? KEEP : 0);
    if (!s->connection)
        s->state = TEC_SLOT_IDLE;
    if (s->early && s->state == TEC_SLOT_IDLE)
        submit(s);
}

void tec_slot_expired(struct tec_slot *s)
{
    s->held = true;
    s->held_tick = s->tick;
    s->state = TEC_SLOT_ANSWERED;
}

void tec_slot_early_expired(struct tec_slot *s)
{
    s->early = false;
    s->filling.n = 0;
    s->tick = s->n_requests - 1;
    s->state = TEC_SLOT_ANSWERED;
}

void tec_slot_sent(struct tec_slot *s, int64_t now)
{
    s->previous_ms = (double)(now - s->began_ns) / 1e6;
    s->began_ns = now;
    s->state = TEC_SLOT_IDLE;
    if (s->early && !s->held)
        submit(s);
}

void tec_slot_finish(struct tec_slot *s)
{
    tec_heap_put(s->heap, s->filling.data);
    tec_heap_put(s->heap, s->serving.data);
    s->filling = s->serving = (struct tec_slot_message){.data = NULL};
}
