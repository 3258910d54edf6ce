/* gemm_int4_weights.cuh - 4-bit weights as signed bytes for mma_s8, in registers.
 *
 * A nibble minus its zero is a whole number of -16 .. 15. Which k of 32 a lane holds is free, as
 * long as both operands agree. So lane l (t = l % 4) takes the word of line t of four lines, eight
 * k of one column: its even nibbles are four bytes of an operand, its odd ones four more. Of x it
 * takes the same eight k, which lie in one piece. */
#pragma once

#include "kernels/cuda/gemm_finish.cuh"
#include "kernels/int4.h"

enum {
    INT4_K = 128, /* k of a group that are fetched at once */
    INT4_STEPS = INT4_K / 32,
    INT4_LINES = INT4_K / TEC_INT4_DEEP,
    INT4_PIECE = (1 + INT4_LINES) * TEC_INT4_LINE /* bytes of a panel, with its line of scales */
};

/* Fetch one piece of M panels, by a warp: the line of scales of a group and INT4_K / 8 lines from
 * `skip` lines behind it on. w: that line of the first panel; panels are `size` bytes apart, the
 * first `there` of them are. Halves of every second pair of lines are exchanged, so that lanes meet
 * no bank conflict. What there is no k for, beyond depth, is zero. */
template <int M>
static __device__ __forceinline__ void int4_fetch(unsigned char *to, const unsigned char *w,
                                                  int size, int there, int skip, int depth)
{
    int lane = (int)threadIdx.x % WARP, in = lane % 4, line = lane / 4;
    int swapped = 16 * (in ^ (line >> 1 & 1) * 2);
    const unsigned char *from = w + ((1 + skip) * TEC_INT4_LINE + lane * 16);
    TEC_UNROLL
    for (int i = 0; i < M; i++) {
        TEC_UNROLL
        for (int half = 0; half < 2; half++) {
            int after = half * 8 * TEC_INT4_LINE;
            bool valid = i < there && (line + half * 8) * TEC_INT4_DEEP < depth;
            copy16_async(to + i * INT4_PIECE + (1 + line) * TEC_INT4_LINE + after + swapped,
                         from + after, valid);
        }
        from += size;
    }
    if (line < M)
        copy16_async(to + line * INT4_PIECE + in * 16, w + (line * size + in * 16), line < there);
}

/* Nibbles of four bytes less the zero, which is in each of four, as signed bytes: no byte borrows
 * from the next, as 128 + nibble is more than any zero. */
static __device__ __forceinline__ unsigned int4_bytes(unsigned nibbles, unsigned zeros)
{
    return (((nibbles & 0x0f0f0f0fU) | 0x80808080U) - zeros) ^ 0x80808080U;
}

/* The zero of a column, four times. */
static __device__ __forceinline__ unsigned int4_zeros(const unsigned char *piece, int column)
{
    return piece[TEC_INT4_ZEROS + column] * 0x01010101U;
}

/* The operand of 32 k of a panel, from lines step * 4 .. of its piece; zeros: of columns lane / 4
 * and 8 more. Of a line's eight k even ones come first, or all IN_ORDER. */
template <bool IN_ORDER>
static __device__ __forceinline__ void int4_operand(unsigned (&a)[4], const unsigned char *piece,
                                                    int step, const unsigned (&zeros)[2])
{
    int lane = (int)threadIdx.x % WARP, t = lane % 4, swap = (t >> 1) * 8;
    const unsigned *words =
        reinterpret_cast<const unsigned *>(piece + (1 + step * 4 + t) * TEC_INT4_LINE);
    TEC_UNROLL
    for (int half = 0; half < 2; half++) {
        unsigned word = words[(lane / 4 + half * 8) ^ swap];
        unsigned even = int4_bytes(word, zeros[half]), odd = int4_bytes(word >> 4, zeros[half]);
        a[half] = IN_ORDER ? __byte_perm(even, odd, 0x5140) : even;
        a[half + 2] = IN_ORDER ? __byte_perm(even, odd, 0x7362) : odd;
    }
}
