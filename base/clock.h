/* clock.h - monotonic nanoseconds, real or driven by hand. */
#ifndef TEC_BASE_CLOCK_H
#define TEC_BASE_CLOCK_H

#include <stdint.h>

/* A source of time. A fake one reads a variable that a test or the simulator moves. Immutable but
 * for *fake_ns, which belongs to the thread that moves it. */
struct tec_clock {
    int64_t *fake_ns; /* NULL: CLOCK_MONOTONIC */
};

/* Nanoseconds since an arbitrary start; never goes back. No system call (vDSO). */
int64_t tec_clock_now(const struct tec_clock *clock);

/* CPU time of the calling thread in nanoseconds since an arbitrary start. A system call. */
int64_t tec_clock_thread(void);

/* CPU time of all threads of the process, as tec_clock_thread. A system call. */
int64_t tec_clock_process(void);

/* Real: sleep until then (absolute, monotonic). Fake: set the variable to it if it is later. */
void tec_clock_wait(const struct tec_clock *clock, int64_t until_ns);

#endif
