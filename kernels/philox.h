/* philox.h - Philox 4x32-10 (Salmon et al. 2011): random words as a function of counter and key,
 * the same wherever they are computed. */
#ifndef TEC_KERNELS_PHILOX_H
#define TEC_KERNELS_PHILOX_H

#include <stdint.h>

#ifdef __CUDACC__
#define TEC_PHILOX_INLINE static inline __host__ __device__
#else
#define TEC_PHILOX_INLINE static inline
#endif

TEC_PHILOX_INLINE void tec_philox_words(const uint32_t counter[4], const uint32_t key[2],
                                        uint32_t out[4])
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

#endif
