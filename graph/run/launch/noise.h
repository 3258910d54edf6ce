/* noise.h - standard normal noise as a function of (seed, purpose, frame, element). */
#ifndef TEC_GRAPH_RUN_LAUNCH_NOISE_H
#define TEC_GRAPH_RUN_LAUNCH_NOISE_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/* Purpose of a draw: equal frames of one seed must not share numbers. */
enum tec_noise_purpose {
    TEC_NOISE_ACTIONS,
    TEC_NOISE_REQUESTS,     /* their seeds */
    TEC_NOISE_SECOND_ACTION /* and behind it the third's ... */
};

/* Of the i-th action node of a pipeline. */
enum tec_noise_purpose tec_noise_of_action(int i);

/* n standard normal values: Box-Muller in float64 over Philox with the key `seed` and the counter
 * (purpose, frame, element / 4), rounded to float32. Element i depends on nothing else, so a longer
 * draw begins with a shorter one. Thread-safe. */
void tec_noise(uint64_t seed, enum tec_noise_purpose purpose, int64_t frame, float *out, size_t n);

/* Noise that somebody else made: TEC_INVALID with the first element that no standard normal draw
 * is, beyond +-10 or no number. A model starts from it: actions would be as large. */
enum tec_status tec_noise_check(const float *noise, size_t n, struct tec_error *err);

#endif
