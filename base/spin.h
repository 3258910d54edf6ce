/* spin.h - one turn of a wait that does not block. */
#ifndef TEC_BASE_SPIN_H
#define TEC_BASE_SPIN_H

#include <sched.h>

/* A thread that has waited this many turns most likely occupies the core of the thread that it
 * waits for. It then offers the rest of its time slice, which is not a blocking wait. */
enum { TEC_SPIN_PATIENCE = 1 << 10 };

/* One turn, of a wait that will not last. */
static inline void tec_pause(int *turns)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::
                         : "memory"); /* waits about as long; `yield` is nothing on most cores */
#endif
    *turns = (*turns + 1) & 0xffffff;
}

static inline void tec_spin(int *turns)
{
    tec_pause(turns);
    if (*turns % TEC_SPIN_PATIENCE == 0)
        sched_yield();
}

#endif
