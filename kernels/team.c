#include "kernels/team.h"

#include "base/clock.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A lane that waits this many turns has most likely lost its core to another process: it then
 * offers the rest of its time slice, which is not a wait. */
enum { PATIENCE = 1 << 10 };

struct worker {
    struct tec_team *team;
    pthread_t thread;
    int lane;
    bool started;
};

struct tec_team {
    struct tec_heap *heap;
    int lanes;
    int64_t spin_ns;
    void (*run)(void *user, int lane); /* set before `epoch` moves */
    void *user;
    _Atomic bool ending;
    _Alignas(64) _Atomic uint32_t epoch; /* one run = one step; what parked workers wait on */
    _Atomic int parked;
    _Alignas(64) _Atomic int finished;      /* workers done with this run */
    _Alignas(64) _Atomic int arrived;       /* lanes at the barrier */
    _Alignas(64) _Atomic uint32_t barriers; /* barriers passed */
    struct worker workers[];
};

static void relax(int *turns)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
    if (++*turns % PATIENCE == 0)
        sched_yield();
}

static long futex(_Atomic uint32_t *word, int op, uint32_t value)
{
    return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

/* Spin until the epoch leaves `seen`, then park. */
static void wait_for_work(struct tec_team *team, uint32_t seen)
{
    const struct tec_clock clock = {NULL};
    int64_t until = tec_clock_now(&clock) + team->spin_ns;
    int turns = 0;
    while (atomic_load(&team->epoch) == seen) {
        if (team->spin_ns && (turns % 64 || tec_clock_now(&clock) < until)) {
            relax(&turns);
            continue;
        }
        atomic_fetch_add(&team->parked, 1);
        futex(&team->epoch, FUTEX_WAIT, seen);
        atomic_fetch_sub(&team->parked, 1);
    }
}

/* Whoever asks the program to end asks the thread that can end it. */
static void leave_signals(void)
{
    sigset_t others;
    sigemptyset(&others);
    sigaddset(&others, SIGINT);
    sigaddset(&others, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &others, NULL);
}

static void *work(void *arg)
{
    struct worker *self = arg;
    struct tec_team *team = self->team;
    leave_signals();
    for (uint32_t seen = 0;;) {
        wait_for_work(team, seen);
        seen++;
        if (atomic_load(&team->ending))
            return NULL;
        team->run(team->user, self->lane);
        atomic_fetch_add(&team->finished, 1);
    }
}

enum tec_status tec_team_create(struct tec_team **out, int lanes, int spin_us,
                                struct tec_heap *heap, struct tec_error *err)
{
    if (lanes < 1 || lanes > 1024)
        return tec_fail(err, TEC_INVALID, "threads must be 1 .. 1024, is %d", lanes);
    struct tec_team *team =
        tec_heap_get(heap, sizeof *team + (size_t)lanes * sizeof team->workers[0]);
    if (!team)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a team of %d lanes", lanes);
    team->heap = heap;
    team->lanes = lanes;
    team->spin_ns = (int64_t)spin_us * 1000;
    for (int i = 1; i < lanes; i++) {
        struct worker *w = &team->workers[i];
        w->team = team;
        w->lane = i;
        w->started = pthread_create(&w->thread, NULL, work, w) == 0;
        if (!w->started) {
            tec_team_destroy(team);
            return tec_fail(err, TEC_NO_MEMORY, "cannot start thread %d of %d", i, lanes);
        }
    }
    *out = team;
    return TEC_OK;
}

static void wake(struct tec_team *team)
{
    atomic_fetch_add(&team->epoch, 1);
    if (atomic_load(&team->parked))
        futex(&team->epoch, FUTEX_WAKE, INT_MAX);
}

void tec_team_destroy(struct tec_team *team)
{
    if (!team)
        return;
    atomic_store(&team->ending, true);
    wake(team);
    for (int i = 1; i < team->lanes; i++)
        if (team->workers[i].started)
            pthread_join(team->workers[i].thread, NULL);
    tec_heap_put(team->heap, team);
}

int tec_team_lanes(const struct tec_team *team)
{
    return team->lanes;
}

void tec_team_run(struct tec_team *team, void (*run)(void *user, int lane), void *user)
{
    team->run = run;
    team->user = user;
    atomic_store(&team->finished, 0);
    if (team->lanes > 1)
        wake(team);
    run(user, 0);
    for (int turns = 0; atomic_load(&team->finished) != team->lanes - 1;)
        relax(&turns);
}

void tec_team_barrier(struct tec_team *team)
{
    if (team->lanes == 1)
        return;
    uint32_t passed = atomic_load(&team->barriers);
    if (atomic_fetch_add(&team->arrived, 1) == team->lanes - 1) {
        atomic_store(&team->arrived, 0);
        atomic_fetch_add(&team->barriers, 1);
        return;
    }
    for (int turns = 0; atomic_load(&team->barriers) == passed;)
        relax(&turns);
}
