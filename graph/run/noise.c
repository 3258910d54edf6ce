#include "graph/run/noise.h"

#include <math.h>

void tec_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53U * c0, b = (uint64_t)0xCD9E8D57U * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9U;
        k1 += 0xBB67AE85U;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* Two words to two normals. The first uniform lies in (0, 1]: its logarithm is finite. */
static void box_muller(const uint32_t words[2], double out[2])
{
    const double two_pi = 6.283185307179586476925286766559;
    double u = ((double)words[0] + 1.0) * 0x1p-32, turn = (double)words[1] * 0x1p-32 * two_pi;
    double radius = sqrt(-2.0 * log(u));
    out[0] = radius * cos(turn);
    out[1] = radius * sin(turn);
}

void tec_noise(uint64_t seed, enum tec_noise_purpose purpose, int64_t frame, float *out, size_t n)
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t words[4];
    double normal[4];
    for (size_t i = 0; i < n; i += 4) {
        const uint32_t counter[4] = {(uint32_t)(i / 4), (uint32_t)purpose, (uint32_t)frame,
                                     (uint32_t)((uint64_t)frame >> 32)};
        tec_philox(counter, key, words);
        box_muller(words, normal);
        box_muller(words + 2, normal + 2);
        for (size_t j = 0; j < 4 && i + j < n; j++)
            out[i + j] = (float)normal[j];
    }
}
