/* exchange.c - what the two threads of the server share: jobs, and two rings of their numbers. */
#include "tools/serve/exchange.h"

bool tec_job_in_time(const struct tec_job *j)
{
    return j->due_acts && atomic_load_explicit(&j->acted, memory_order_acquire) &&
           j->released_ns <= j->due_ns;
}

enum tec_status tec_exchange_init(struct tec_exchange *x, int n, struct tec_runtime *engine,
                                  size_t reply, struct tec_arena *arena, struct tec_error *err)
{
    x->n = n;
    x->engine = engine;
    x->jobs = TEC_NEW(arena, (size_t)n, struct tec_job);
    x->pushes = TEC_NEW(arena, (size_t)n, struct tec_push);
    if (!x->jobs || !x->pushes)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %d connections", n);
    for (int i = 0; i < n; i++) {
        uint8_t *block = tec_arena_push(arena, TEC_REPLY_HEAD + reply, 1, 64);
        if (!block)
            return tec_fail(err, TEC_NO_MEMORY, "no memory for %d connections", n);
        x->jobs[i].reply = block + TEC_REPLY_HEAD;
        x->jobs[i].room = reply;
        TEC_TRY(tec_push_init(&x->pushes[i], arena, err));
    }
    TEC_TRY(tec_spsc_init(&x->inbox, arena, (uint32_t)n + 1, sizeof(int)));
    return tec_spsc_init(&x->outbox, arena, (uint32_t)n + 1, sizeof(int));
}

void tec_exchange_submit(struct tec_exchange *x, int job)
{
    tec_spsc_push(&x->inbox, &job);
    tec_runtime_ring(x->engine);
}

int tec_exchange_collect(struct tec_exchange *x)
{
    int job;
    return tec_spsc_pop(&x->outbox, &job) ? job : -1;
}

int tec_exchange_take(struct tec_exchange *x)
{
    int job;
    return tec_spsc_pop(&x->inbox, &job) ? job : -1;
}

int tec_exchange_peek(const struct tec_exchange *x, int i)
{
    int job;
    return tec_spsc_peek(&x->inbox, (uint32_t)i, &job) ? job : -1;
}

void tec_exchange_return(struct tec_exchange *x, int job)
{
    tec_spsc_push(&x->outbox, &job);
    x->wake(x->user);
}
