/* front_own.h - what the two threads of TLS and their owner share. */
#ifndef TEC_TOOLS_TLS_FRONT_OWN_H
#define TEC_TOOLS_TLS_FRONT_OWN_H

#include "base/clock.h"
#include "tools/tls/front.h"

enum { TEC_TLS_TAKER, TEC_TLS_RELAY }; /* of `wake` */

/* What goes through the pipe between them. */
struct tec_tls_passed {
    struct tec_tls_link *link;
};

/* The threads; `user` is the front. */
void *tec_tls_take(void *user);
void *tec_tls_pass(void *user);

static inline int64_t tec_tls_now(void)
{
    const struct tec_clock clock = {NULL};
    return tec_clock_now(&clock);
}

/* relay.c: close a link and give back its memory. */
void tec_tls_drop(struct tec_tls_front *f, struct tec_tls_link *link);

#endif
