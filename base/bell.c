/* bell.c - the bell, on one futex. */
#include "base/bell.h"

#include "base/clock.h"
#include "base/spin.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void tec_bell_ring(struct tec_bell *bell)
{
    atomic_fetch_add(&bell->rings, 1);
    if (atomic_load(&bell->waiting))
        syscall(SYS_futex, &bell->rings, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void tec_bell_wait(struct tec_bell *bell, uint32_t seen, int64_t until_ns)
{
    struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                             .tv_nsec = (long)(until_ns % 1000000000)};
    atomic_fetch_add(&bell->waiting, 1);
    /* The bitset form takes an absolute, monotonic time. */
    if (atomic_load(&bell->rings) == seen)
        syscall(SYS_futex, &bell->rings, FUTEX_WAIT_BITSET_PRIVATE, seen,
                until_ns == INT64_MAX ? NULL : &until, NULL, FUTEX_BITSET_MATCH_ANY);
    atomic_fetch_sub(&bell->waiting, 1);
}

void tec_bell_await(struct tec_bell *bell, uint32_t seen, int64_t spin_ns)
{
    enum { TURNS_OF_A_LOOK = 32 }; /* at the clock */
    const struct tec_clock clock = {NULL};
    int64_t until = spin_ns ? tec_clock_now(&clock) + spin_ns : 0;
    int turns = 0;
    while (atomic_load(&bell->rings) == seen) {
        if (spin_ns && (turns % TURNS_OF_A_LOOK || tec_clock_now(&clock) < until))
            tec_pause(&turns);
        else
            tec_bell_wait(bell, seen, INT64_MAX);
    }
}
