/* times.h - how long replies take, and how far the server's clock is from ours; nothing here reads
 * a clock. */
#ifndef TEC_TOOLS_CLIENT_TIMES_H
#define TEC_TOOLS_CLIENT_TIMES_H

#include <stdbool.h>
#include <stdint.h>

enum { TEC_CLIENT_TIMES = 128, TEC_CLIENT_STAMPS = 8 };

/* The newest durations. Zero-initialised is empty. */
struct tec_client_durations {
    int64_t ns[TEC_CLIENT_TIMES];
    int n, at;
};

void tec_client_durations_add(struct tec_client_durations *d, int64_t ns);

/* The smallest duration that a share q of them does not exceed; -1: there are none. */
int64_t tec_client_durations_at(const struct tec_client_durations *d, double q);

/* Four stamps of a request and its reply: sent and arrived by our clock, received and left by the
 * server's. */
struct tec_client_stamps {
    int64_t sent, received, left, arrived;
};

/* The newest exchanges. Zero-initialised is empty. */
struct tec_client_clock {
    struct {
        int64_t offset, trip; /* the server's clock minus ours; time on the way, there and back */
    } of[TEC_CLIENT_STAMPS];
    int n, at;
};

/* Stamps that contradict each other are left out. */
void tec_client_clock_add(struct tec_client_clock *c, const struct tec_client_stamps *s);

/* The offset by the exchange that was shortest on the way, as NTP's clock filter chooses, and the
 * most by which it may be wrong: half of that. False: nothing is known. */
bool tec_client_clock_offset(const struct tec_client_clock *c, int64_t *offset, int64_t *error);

#endif
