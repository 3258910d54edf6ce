/* asks.c - the ring of tickets by which consumer threads start and cancel requests: consumers share
 * a lock, the frame thread takes none and never waits. */
#include "graph/live/asks.h"

void tec_asks_init(struct tec_asks *asks)
{
    *asks = (struct tec_asks){.oldest = 0};
    pthread_mutex_init(&asks->lock, NULL);
}

void tec_asks_finish(struct tec_asks *asks)
{
    pthread_mutex_destroy(&asks->lock);
}

/* A consumer writes a place only when its last ticket is settled; the frame thread writes it only
 * before that. */
int64_t tec_asks_leave(struct tec_asks *asks, const struct tec_ticket *ticket)
{
    pthread_mutex_lock(&asks->lock);
    int64_t number = atomic_load_explicit(&asks->taken, memory_order_relaxed);
    struct tec_ticket *place = &asks->tickets[number % TEC_ASKS_KEPT];
    bool free =
        number < TEC_ASKS_KEPT || atomic_load_explicit(&place->settled, memory_order_acquire);
    if (free) {
        place->cancel = ticket->cancel;
        place->ask = ticket->ask;
        place->request = ticket->request;
        atomic_store_explicit(&place->settled, false, memory_order_relaxed);
        atomic_store_explicit(&asks->taken, number + 1, memory_order_release);
    }
    pthread_mutex_unlock(&asks->lock);
    return free ? number : -1;
}

enum tec_asks_state tec_asks_look(struct tec_asks *asks, int64_t ticket, struct tec_ticket *out)
{
    enum tec_asks_state state = TEC_ASKS_UNKNOWN;
    pthread_mutex_lock(&asks->lock);
    int64_t taken = atomic_load_explicit(&asks->taken, memory_order_relaxed);
    if (ticket >= 0 && ticket < taken && ticket >= taken - TEC_ASKS_KEPT) {
        const struct tec_ticket *place = &asks->tickets[ticket % TEC_ASKS_KEPT];
        state = TEC_ASKS_WAITS;
        if (atomic_load_explicit(&place->settled, memory_order_acquire)) {
            out->cancel = place->cancel;
            out->ask = place->ask;
            out->request = place->request;
            out->live = place->live;
            state = TEC_ASKS_SETTLED;
        }
    }
    pthread_mutex_unlock(&asks->lock);
    return state;
}

bool tec_asks_cancels_wait(const struct tec_asks *asks)
{
    int64_t taken = atomic_load_explicit(&asks->taken, memory_order_acquire);
    for (int64_t t = asks->oldest; t < taken; t++)
        if (!asks->handled[t % TEC_ASKS_KEPT] && asks->tickets[t % TEC_ASKS_KEPT].cancel)
            return true;
    return false;
}

void tec_asks_put(struct tec_asks *asks, struct tec_tick *tick, bool observed)
{
    asks->seen = atomic_load_explicit(&asks->taken, memory_order_acquire);
    asks->n_asks = asks->n_cancels = 0;
    for (int64_t t = asks->oldest; t < asks->seen; t++) {
        const struct tec_ticket *place = &asks->tickets[t % TEC_ASKS_KEPT];
        if (asks->handled[t % TEC_ASKS_KEPT])
            continue;
        if (place->cancel) {
            asks->cancels[asks->n_cancels] = place->request;
            asks->cancel_of[asks->n_cancels++] = t;
        } else if (observed) {
            asks->asks[asks->n_asks] = place->ask;
            asks->ask_of[asks->n_asks++] = t;
        }
    }
    tick->asks = asks->asks;
    tick->n_asks = asks->n_asks;
    tick->cancels = asks->cancels;
    tick->n_cancels = asks->n_cancels;
    tick->cancelled = asks->cancelled;
}

/* From here on a consumer may reuse the place for a new ticket; `handled` is the frame thread's own
 * record of that. */
static void settle(struct tec_asks *asks, int64_t ticket)
{
    asks->handled[ticket % TEC_ASKS_KEPT] = true;
    atomic_store_explicit(&asks->tickets[ticket % TEC_ASKS_KEPT].settled, true,
                          memory_order_release);
}

void tec_asks_settle(struct tec_asks *asks)
{
    for (int i = 0; i < asks->n_asks; i++) {
        asks->tickets[asks->ask_of[i] % TEC_ASKS_KEPT].ask = asks->asks[i];
        settle(asks, asks->ask_of[i]);
    }
    for (int i = 0; i < asks->n_cancels; i++) {
        asks->tickets[asks->cancel_of[i] % TEC_ASKS_KEPT].live = asks->cancelled[i];
        settle(asks, asks->cancel_of[i]);
    }
    for (; asks->oldest < asks->seen && asks->handled[asks->oldest % TEC_ASKS_KEPT]; asks->oldest++)
        asks->handled[asks->oldest % TEC_ASKS_KEPT] = false;
    if (asks->n_asks + asks->n_cancels)
        tec_bell_ring(&asks->done);
    asks->n_asks = asks->n_cancels = 0;
}
