/* next_token.c - the AVX-512 next_token kernel: the argmax of each row of logits, over vectors of
 * 16 floats.
 *
 * Each element of a vector keeps its own maximum and the first column that has it, so a row is read
 * once; ties between elements go to the lowest column, as in the reference. */
#include "kernels/next_token.h"
#include "kernels/avx512/avx512.h"

#if defined(__x86_64__)
#include "kernels/avx512/panels.h"
#include "kernels/panels/argmax.inc"

/* Round to the nearest bf16, ties to even. The result for a NaN is never used. */
VEC_INLINE vec rounded(vec x)
{
    __m512i bits = _mm512_castps_si512(x);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    bits = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    return _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32((int)0xffff0000U)));
}

/* Take each element of x that is a number and larger than the maximum so far, with its column. */
VEC_INLINE void take_larger(struct most *most, vec x, int at, int round)
{
    __mmask16 number = _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q);
    vec y = round ? rounded(x) : x;
    __mmask16 larger = _mm512_mask_cmp_ps_mask(number, y, most->value, _CMP_GT_OQ);
    most->value = _mm512_mask_mov_ps(most->value, larger, y);
    most->at = _mm512_mask_mov_ps(most->at, larger, _mm512_castsi512_ps(_mm512_set1_epi32(at)));
}

VEC_TARGET static int argmax(const float *row, int cols, int round)
{
    return round ? argmax_row(row, cols, 1) : argmax_row(row, cols, 0);
}

void tec_next_token_avx512(const struct tec_next_token_args *a, struct tec_part part)
{
    tec_next_token_rows(a, part, argmax);
}

#endif
