#include "kernels/avx2/avx2.h"

#if defined(__x86_64__)
#include "kernels/avx2/panels.h"
#include "kernels/int4.h"

enum { INT4_MOST = 8, INT4_GROUP = 8 };

VEC_INLINE vec int4_zeros(const char *at)
{
    return _mm256_cvtepi32_ps(
        _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)at)));
}
/* Once a group: not worth an instruction set of its own. */
VEC_INLINE vec int4_scales(const char *at)
{
    uint16_t bits[VEC_WIDTH];
    float scales[VEC_WIDTH];
    memcpy(bits, at, sizeof bits);
    for (int i = 0; i < VEC_WIDTH; i++)
        scales[i] = tec_half_float(bits[i]);
    return vec_load(scales);
}
VEC_INLINE vec int4_nibbles(const char *at, int j)
{
    __m256i words = _mm256_loadu_si256((const __m256i *)(const void *)at);
    return _mm256_cvtepi32_ps(
        _mm256_and_si256(_mm256_srli_epi32(words, 4 * j), _mm256_set1_epi32(15)));
}

#include "kernels/panels/gemm_int4.inc"

INT4(1, 2)
INT4(2, 2)
INT4(1, 1)
INT4(2, 1)
INT4(3, 1)
INT4(4, 1)

static const struct int4_tiles tiles[] = {{2, int4_1_2, int4_1_1},
                                          {2, int4_2_2, int4_2_1},
                                          {1, int4_3_1, int4_3_1},
                                          {1, int4_4_1, int4_4_1}};

void tec_gemm_int4_avx2(const struct tec_gemm_args *a, struct tec_part part)
{
    run_int4(a, part, tiles, 4);
}

#endif
