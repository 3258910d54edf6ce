/* clock.c - monotonic time in nanoseconds, the CPU time of a thread, and a fake clock that is moved
 * by hand. */
#include "base/clock.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

enum { NS = 1000000000 };

static int64_t read_clock(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * NS + t.tv_nsec;
}

int64_t tec_clock_now(const struct tec_clock *clock)
{
    if (clock->fake_ns)
        return *clock->fake_ns;
    return read_clock(CLOCK_MONOTONIC);
}

void tec_clock_wait(const struct tec_clock *clock, int64_t until_ns)
{
    if (clock->fake_ns) {
        if (*clock->fake_ns < until_ns)
            *clock->fake_ns = until_ns;
        return;
    }
    struct timespec t = {.tv_sec = (time_t)(until_ns / NS), .tv_nsec = (long)(until_ns % NS)};
    while (until_ns > 0 && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

int64_t tec_clock_thread(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

int64_t tec_clock_process(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}
