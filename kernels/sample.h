/* sample.h - what sampling has in common on every device: numbers in order as integers, weights in
 * fixed point whose sums have no order, and the noise of a token.
 *
 * The largest of y + Gumbel noise is a draw from softmax(y) (Gumbel 1954), so a draw is an argmax.
 */
#ifndef TEC_KERNELS_SAMPLE_H
#define TEC_KERNELS_SAMPLE_H

#include "kernels/philox.h"

#include <math.h>
#include <string.h>

enum { TEC_SAMPLE_PURPOSE = 2, TEC_SAMPLE_DIGITS = 256 };

/* Larger for larger numbers, equal for equal ones (both zeros); 0 for what is no number. */
TEC_PHILOX_INLINE uint32_t tec_sample_key(float x)
{
    uint32_t bits;
    if (x != x)
        return 0;
    x += 0.0F; /* -0 + 0 is +0 */
    memcpy(&bits, &x, sizeof bits);
    return bits & 0x80000000U ? ~bits : bits | 0x80000000U;
}

/* e^(y - top) in units of 2^-40. */
TEC_PHILOX_INLINE uint64_t tec_sample_weight(float y, float top)
{
    float p = expf(y - top);
    return p <= 1.0F ? (uint64_t)(p * 0x1p40F) : 0;
}

/* The noise of token `id` where the newest input has position `pos`. */
TEC_PHILOX_INLINE float tec_sample_noise(const uint32_t seed[2], int pos, int id)
{
    const uint32_t counter[4] = {(uint32_t)id, TEC_SAMPLE_PURPOSE, (uint32_t)pos, 0};
    uint32_t words[4];
    tec_philox_words(counter, seed, words);
    float u = ((float)words[0] + 0.5F) * 0x1p-32F;
    return -logf(-log1pf(-(u < 1.0F ? u : 0x1.fffffep-1F)));
}

#endif
