/* noise.c - makes standard normal noise from a counter-based generator (Philox) and Box-Muller.
 *
 * Runs on the consumer's thread. The noise is a function of seed, purpose, frame and element and
 * there is no generator state, so a frame gets the same noise whether or not the frames before it
 * ran. */
#include "graph/run/launch/noise.h"

#include "kernels/philox.h"

#include <math.h>

/* Turn two random words into two normals. The first uniform is in (0, 1], so its logarithm is
 * finite. */
static void box_muller(const uint32_t words[2], double out[2])
{
    const double two_pi = 6.283185307179586476925286766559;
    double u = ((double)words[0] + 1.0) * 0x1p-32, turn = (double)words[1] * 0x1p-32 * two_pi;
    double radius = sqrt(-2.0 * log(u));
    out[0] = radius * cos(turn);
    out[1] = radius * sin(turn);
}

enum tec_noise_purpose tec_noise_of_action(int i)
{
    return i ? (enum tec_noise_purpose)(TEC_NOISE_SECOND_ACTION + i - 1) : TEC_NOISE_ACTIONS;
}

void tec_noise(uint64_t seed, enum tec_noise_purpose purpose, int64_t frame, float *out, size_t n)
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t words[4];
    double normal[4];
    for (size_t i = 0; i < n; i += 4) {
        const uint32_t counter[4] = {(uint32_t)(i / 4), (uint32_t)purpose, (uint32_t)frame,
                                     (uint32_t)((uint64_t)frame >> 32)};
        tec_philox_words(counter, key, words);
        box_muller(words, normal);
        box_muller(words + 2, normal + 2);
        for (size_t j = 0; j < 4 && i + j < n; j++)
            out[i + j] = (float)normal[j];
    }
}

enum tec_status tec_noise_check(const float *noise, size_t n, struct tec_error *err)
{
    enum { MOST = 10 }; /* standard deviations */
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(noise[i]) <= (float)MOST))
            return tec_fail(err, TEC_INVALID,
                            "element %zu is %g; standard normal noise is within +-%d", i + 1,
                            (double)noise[i], MOST);
    return TEC_OK;
}
