/* next_token.c - the AVX2 next_token kernel: the argmax of each row of logits, over vectors of 8
 * floats.
 *
 * Each element of a vector keeps its own maximum and the first column that has it, so a row is read
 * once; ties between elements go to the lowest column, as in the reference. */
#include "kernels/next_token.h"
#include "kernels/avx2/avx2.h"

#if defined(__x86_64__)
#include "kernels/avx2/panels.h"
#include "kernels/panels/argmax.inc"

/* Round to the nearest bf16, ties to even. The result for a NaN is never used. */
VEC_INLINE vec rounded(vec x)
{
    __m256i bits = _mm256_castps_si256(x);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    bits = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    return _mm256_castsi256_ps(_mm256_and_si256(bits, _mm256_set1_epi32((int)0xffff0000U)));
}

/* Take each element of x that is a number and larger than the maximum so far, with its column. */
VEC_INLINE void take_larger(struct most *most, vec x, int at, int round)
{
    vec number = _mm256_cmp_ps(x, x, _CMP_ORD_Q);
    vec y = round ? rounded(x) : x;
    vec larger = _mm256_and_ps(number, _mm256_cmp_ps(y, most->value, _CMP_GT_OQ));
    most->value = _mm256_blendv_ps(most->value, y, larger);
    most->at = _mm256_blendv_ps(most->at, _mm256_castsi256_ps(_mm256_set1_epi32(at)), larger);
}

VEC_TARGET static int argmax(const float *row, int cols, int round)
{
    return round ? argmax_row(row, cols, 1) : argmax_row(row, cols, 0);
}

void tec_next_token_avx2(const struct tec_next_token_args *a, struct tec_part part)
{
    tec_next_token_rows(a, part, argmax);
}

#endif
