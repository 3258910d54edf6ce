/* next_token.c - the NEON next_token kernel: the argmax of each row of logits, over vectors of 4
 * floats.
 *
 * Each element of a vector keeps its own maximum and the first column that has it, so a row is read
 * once; ties between elements go to the lowest column, as in the reference. */
#include "kernels/next_token.h"
#include "kernels/neon/neon.h"

#if defined(__aarch64__)
#include "kernels/neon/panels.h"
#include "kernels/panels/argmax.inc"

/* Round to the nearest bf16, ties to even. The result for a NaN is never used. */
VEC_INLINE vec rounded(vec x)
{
    uint32x4_t bits = vreinterpretq_u32_f32(x);
    uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    bits = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
    return vreinterpretq_f32_u32(vandq_u32(bits, vdupq_n_u32(0xffff0000U)));
}

/* Take each element of x that is a number and larger than the maximum so far, with its column. */
VEC_INLINE void take_larger(struct most *most, vec x, int at, int round)
{
    vec y = round ? rounded(x) : x;
    uint32x4_t larger = vandq_u32(vceqq_f32(x, x), vcgtq_f32(y, most->value));
    most->value = vbslq_f32(larger, y, most->value);
    most->at = vbslq_f32(larger, vreinterpretq_f32_s32(vdupq_n_s32(at)), most->at);
}

VEC_TARGET static int argmax(const float *row, int cols, int round)
{
    return round ? argmax_row(row, cols, 1) : argmax_row(row, cols, 0);
}

void tec_next_token_neon(const struct tec_next_token_args *a, struct tec_part part)
{
    tec_next_token_rows(a, part, argmax);
}

#endif
