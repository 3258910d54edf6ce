/* team.c - teams of lanes: threads that run one function together, or for a while as two groups.
 *
 * Whoever waits here spins for a moment, then sleeps on a futex, so that its processor is there for
 * the lane it waits for: no system call is made where lanes have processors of their own. */
#include "kernels/team.h"

#include "base/clock.h"
#include "base/spin.h"
#include "base/thread.h"
#include "kernels/stages.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* A barrier for lanes. Its counters lie in separate cache lines, so that arriving lanes do not
 * disturb those that wait. */
struct gate {
    _Alignas(64) _Atomic int arrived;
    _Alignas(64) struct tec_bell passed;
};

/* A group of workers that is woken together. */
struct crew {
    void (*run)(void *user, int lane); /* these three are set before `begun` is rung */
    void *user;
    int first; /* the team's lane that is lane 0 of this run */
    int workers;
    _Alignas(64) struct tec_bell begun; /* one run is one ring */
    _Alignas(64) _Atomic int running;   /* workers not done with this run */
    struct tec_bell ended;              /* none is left */
    uint32_t ends;                      /* rings of that before this run */
};

struct worker {
    _Alignas(64) struct tec_team *team;
    struct crew *crew;
    pthread_t thread;
    int lane;
    bool started;
};

struct tec_team {
    struct tec_heap *heap;
    int lanes, beside; /* `beside`: the number of last lanes that can be split off */
    bool forked;       /* changed by the owner only, between runs */
    int64_t spin_ns;
    _Atomic bool ending;
    struct crew crew, split;                     /* of the first lanes; of those to split off */
    struct gate gate;                            /* of lanes that are split off */
    struct tec_stages stages, stages_concurrent; /* their claims lie behind the workers */
    struct worker workers[];
};

/* Between runs. The lane that begins the next one may need this processor, and so may others: this
 * one leaves it to them again and again, having nothing to do, and sleeps when the time is over. */
static void wait_for_work(const struct tec_team *team, struct crew *crew, uint32_t seen)
{
    const struct tec_clock clock = {NULL};
    int64_t until = tec_clock_now(&clock) + team->spin_ns;
    int turns = 0;
    while (atomic_load(&crew->begun.rings) == seen) {
        if (team->spin_ns && (turns % 64 || tec_clock_now(&clock) < until))
            tec_spin(&turns);
        else
            tec_bell_wait(&crew->begun, seen, INT64_MAX);
    }
}

static void *work(void *arg)
{
    const struct worker *self = arg;
    struct crew *crew = self->crew;
    tec_thread_warm_stack();
    for (uint32_t seen = 0;;) {
        wait_for_work(self->team, crew, seen);
        seen++;
        if (atomic_load(&self->team->ending))
            return NULL;
        crew->run(crew->user, self->lane - crew->first);
        if (atomic_fetch_sub(&crew->running, 1) == 1)
            tec_bell_ring(&crew->ended);
    }
}

enum tec_status tec_team_create(struct tec_team **out, int lanes, int spin_us,
                                struct tec_heap *heap, struct tec_error *err)
{
    return tec_team_create_split(out, lanes, 0, spin_us, heap, err);
}

enum tec_status tec_team_create_split(struct tec_team **out, int lanes, int beside, int spin_us,
                                      struct tec_heap *heap, struct tec_error *err)
{
    if (lanes < 1 || lanes > 1024)
        return tec_fail(err, TEC_INVALID, "threads must be 1 .. 1024, is %d", lanes);
    if (beside < 0 || beside >= lanes)
        return tec_fail(err, TEC_INVALID, "of %d lanes 0 .. %d can be split off, not %d", lanes,
                        lanes - 1, beside);
    size_t size = sizeof(struct worker) + 2 * sizeof(struct tec_claim);
    struct tec_team *team = tec_heap_get(heap, sizeof *team + (size_t)lanes * size);
    if (!team)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a team of %d lanes", lanes);
    team->heap = heap;
    team->lanes = lanes;
    team->beside = beside;
    team->spin_ns = (int64_t)spin_us * 1000;
    team->stages.claims = (struct tec_claim *)(void *)&team->workers[lanes];
    team->stages_concurrent.claims = team->stages.claims + lanes;
    team->split.workers = beside;
    team->crew.workers = lanes - beside - 1;
    for (int i = 1; i < lanes; i++) {
        struct worker *w = &team->workers[i];
        w->team = team;
        w->crew = i < lanes - beside ? &team->crew : &team->split;
        w->lane = i;
        w->started = tec_thread_start(&w->thread, work, w);
        if (!w->started) {
            tec_team_destroy(team);
            return tec_fail(err, TEC_NO_MEMORY, "no memory for thread %d of %d", i, lanes);
        }
    }
    *out = team;
    return TEC_OK;
}

enum tec_status tec_team_schedule(struct tec_team *team, const struct tec_scheduling *how,
                                  struct tec_error *err)
{
    if (how->n_cores && how->n_cores < team->lanes)
        return tec_fail(
            err, TEC_INVALID,
            "%d threads compute, and there are cores for %d: they wait for each other, so "
            "each needs one of its own",
            team->lanes, how->n_cores);
    for (int i = 1; i < team->lanes; i++)
        TEC_TRY(tec_thread_schedule(team->workers[i].thread, how, i, err));
    return TEC_OK;
}

void tec_team_destroy(struct tec_team *team)
{
    if (!team)
        return;
    tec_team_join(team); /* a lane that wakes late may still be awaited at a barrier */
    atomic_store(&team->ending, true);
    tec_bell_ring(&team->crew.begun);
    tec_bell_ring(&team->split.begun);
    for (int i = 1; i < team->lanes; i++)
        if (team->workers[i].started)
            pthread_join(team->workers[i].thread, NULL);
    tec_heap_put(team->heap, team);
}

int tec_team_lanes(const struct tec_team *team)
{
    return team->forked ? team->lanes - team->beside : team->lanes;
}

static void begin(struct crew *crew, int first, void (*run)(void *user, int lane), void *user)
{
    if (crew->workers == 0)
        return;
    crew->run = run;
    crew->user = user;
    crew->first = first;
    crew->ends = atomic_load(&crew->ended.rings);
    atomic_store(&crew->running, crew->workers);
    tec_bell_ring(&crew->begun);
}

static void await(struct crew *crew)
{
    tec_bell_await(&crew->ended, crew->ends, TEC_LANE_SPIN_NS);
}

void tec_team_run(struct tec_team *team, void (*run)(void *user, int lane), void *user)
{
    bool whole = !team->forked;
    begin(&team->crew, 0, run, user);
    if (whole)
        begin(&team->split, 0, run, user);
    run(user, 0);
    if (team->crew.workers)
        await(&team->crew);
    if (whole && team->beside)
        await(&team->split);
}

void tec_team_fork(struct tec_team *team, void (*run)(void *user, int lane), void *user)
{
    if (team->beside == 0 || team->forked)
        return;
    team->forked = true;
    begin(&team->split, team->lanes - team->beside, run, user);
}

void tec_team_join(struct tec_team *team)
{
    if (!team->forked)
        return;
    await(&team->split);
    team->forked = false;
}

void tec_team_barrier_concurrent(struct tec_team *team)
{
    struct gate *gate = &team->gate;
    if (team->beside == 1)
        return;
    uint32_t passed = atomic_load(&gate->passed.rings);
    if (atomic_fetch_add(&gate->arrived, 1) == team->beside - 1) {
        atomic_store(&gate->arrived, 0);
        tec_bell_ring(&gate->passed);
    } else {
        tec_bell_await(&gate->passed, passed, TEC_LANE_SPIN_NS);
    }
}

void tec_team_begin(struct tec_team *team, bool beside, int at)
{
    tec_lanes_begin(beside ? &team->stages_concurrent : &team->stages, at);
}

void tec_team_join_in(struct tec_team *team, bool beside, const struct tec_stage_work *work,
                      int lane)
{
    tec_lanes_join(beside ? &team->stages_concurrent : &team->stages, work, lane);
}
