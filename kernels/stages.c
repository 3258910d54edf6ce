/* stages.c - parts of stages, each begun by the one lane that sets the number in its claim. */
#include "kernels/stages.h"

#include "base/spin.h"

#include <sched.h>

/* Turns of a wait in which the other lanes end when all are there; to look for their parts earlier
 * would take the cache lines of their claims from them. */
enum { TURNS_BEFORE_HELP = 256, YIELDS = 4 };

/* One lane at a time; whoever sees the stage sees what was stored before it. */
static void begin_stage(struct tec_stages *s, int at)
{
    uint64_t stage = atomic_load_explicit(&s->stage, memory_order_relaxed);
    atomic_store_explicit(&s->done, 0, memory_order_relaxed);
    atomic_store_explicit(&s->at, at, memory_order_relaxed);
    atomic_store_explicit(&s->stage, stage + 1, memory_order_release);
    tec_bell_ring(&s->bell);
}

void tec_lanes_begin(struct tec_stages *s, int at)
{
    begin_stage(s, at);
}

/* What a lane knows of the stage that it is at. `at` may be of a later one; the part is then begun
 * already. */
struct view {
    uint32_t rings;
    uint64_t stage;
    int at;
};

/* Begin a part, unless another lane has. A part that was not begun keeps its stage from ending, so
 * what was read of it is still true. */
static bool take(struct tec_stages *s, const struct tec_stage_work *work, const struct view *v,
                 int part)
{
    struct tec_claim *claim = &s->claims[part];
    uint64_t before = atomic_load(&claim->begun);
    if (before >= v->stage || !atomic_compare_exchange_strong(&claim->begun, &before, v->stage))
        return false;
    atomic_store_explicit(&claim->processor, sched_getcpu() + 1, memory_order_relaxed);
    work->run(work->user, v->at, part);
    atomic_store_explicit(&claim->processor, 0, memory_order_relaxed);
    if (atomic_fetch_add(&s->done, 1) == work->parts - 1)
        begin_stage(s, work->next(work->user, v->at));
    return true;
}

static bool help(struct tec_stages *s, const struct tec_stage_work *work, const struct view *v,
                 int lane)
{
    for (int part = lane != 0 && work->held(work->user, v->at); part < work->parts; part++)
        if (part != lane && take(s, work, v, part))
            return true;
    return false;
}

/* Whether a part that is awaited was begun on the processor of this lane. */
static bool in_the_way(const struct tec_stages *s, int parts)
{
    int here = sched_getcpu() + 1;
    for (int part = 0; here > 0 && part < parts; part++)
        if (atomic_load_explicit(&s->claims[part].processor, memory_order_relaxed) == here)
            return true;
    return false;
}

/* Whether the next stage began while this lane turned. */
static bool turn(struct tec_stages *s, const struct view *v, int most)
{
    for (int turns = 0; turns < most;) {
        if (atomic_load(&s->bell.rings) != v->rings)
            return true;
        tec_pause(&turns);
    }
    return false;
}

/* Whoever shares a processor leaves it to the other lane, but stays on its queue, from where the
 * system moves it to another processor: lanes that sleep and wake would stay together. */
static void wait_for_others(struct tec_stages *s, const struct tec_stage_work *work,
                            const struct view *v)
{
    for (int i = 0; i < YIELDS && in_the_way(s, work->parts); i++) {
        sched_yield();
        if (atomic_load(&s->bell.rings) != v->rings)
            return;
    }
    tec_bell_await(&s->bell, v->rings, TEC_LANE_SPIN_NS);
}

/* Where lanes were missing a stage ago, they are not expected at the next one. */
void tec_lanes_join(struct tec_stages *s, const struct tec_stage_work *work, int lane)
{
    bool missing = false;
    for (;;) {
        struct view v = {.rings = atomic_load(&s->bell.rings)};
        v.stage = atomic_load_explicit(&s->stage, memory_order_acquire);
        v.at = atomic_load_explicit(&s->at, memory_order_relaxed);
        if (v.at < 0)
            return;
        if (take(s, work, &v, lane) || turn(s, &v, missing ? 0 : TURNS_BEFORE_HELP))
            continue;
        missing = help(s, work, &v, lane);
        if (!missing)
            wait_for_others(s, work, &v);
    }
}
