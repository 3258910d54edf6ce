/* bell.h - threads that wait for something to happen, and one that rings when it has.
 */
#ifndef TEC_BASE_BELL_H
#define TEC_BASE_BELL_H

#include <stdatomic.h>
#include <stdint.h>

/* A number that only grows, and threads that wait for it to leave a value. Ringing is one
 * non-blocking system call, and none when nobody waits. */
struct tec_bell {
    _Atomic uint32_t rings;
    char apart[60]; /* in another cache line: whoever rings reads it, while others look at rings */
    _Atomic int waiting;
};

void tec_bell_ring(struct tec_bell *bell);
/* Until rings leaves `seen` or `until_ns` (CLOCK_MONOTONIC; INT64_MAX: no end); may return early.
 */
void tec_bell_wait(struct tec_bell *bell, uint32_t seen, int64_t until_ns);
/* Until rings leaves `seen`: spins for `spin_ns`, then sleeps. */
void tec_bell_await(struct tec_bell *bell, uint32_t seen, int64_t spin_ns);

#endif
