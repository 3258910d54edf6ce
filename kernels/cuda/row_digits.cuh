/* row_digits.cuh - where a kernel writes its rows as signed digits (row_digits_room.h), as products
 * of bytes read them; and how a number becomes digits. */
#pragma once

#include "kernels/cuda/gemm_choice.h"
#include "kernels/cuda/lang.cuh"
#include "kernels/cuda/row_digits.h"
#include "kernels/int4.h"
#include "kernels/int8.h"

/* Rows of a part, the first of which is row 0 here. */
struct digits_out {
    unsigned char *at;
    float *units;
    int groups, steps, digits; /* of a row; of a group; of a number */

    /* 16 k of the highest digit in a step of a group, the first of the step; the other 16 are 128
     * bytes behind them, the next digit DIGITS_EIGHT. */
    __device__ __forceinline__ unsigned char *place(int r, int group, int step) const
    {
        size_t steps_before =
            ((size_t)(r / DIGITS_ROWS) * (size_t)groups + (size_t)group) * (size_t)steps +
            (size_t)step;
        size_t eights = steps_before * (DIGITS_ROWS / 8) + (size_t)(r % DIGITS_ROWS / 8);
        return at + eights * (size_t)(digits * DIGITS_EIGHT) + r % 8 * 16;
    }
    __device__ __forceinline__ float *unit(int r, int group) const
    {
        size_t before = (size_t)(r / DIGITS_ROWS) * (size_t)groups + (size_t)group;
        return units + before * DIGITS_ROWS + r % DIGITS_ROWS;
    }
};

/* For `rows` rows in the memory at `at`. */
static inline struct digits_out digits_out_of(void *at, const struct tec_cuda_digits *form,
                                              int rows)
{
    unsigned char *bytes = static_cast<unsigned char *>(at);
    void *units = bytes + tec_cuda_digits_units(form, rows);
    return {bytes, static_cast<float *>(units), tec_cuda_digits_groups(form),
            tec_cuda_digits_steps(form), form->digits};
}

/* Call start(base, count, digits) for each part of the rows of a product, as many as there is room
 * for, whose digits row_digits has written; for all where the kernel in front has left them. Such
 * products copy weights 16 bytes at a time. */
template <class Start>
static void each_part_of_digits(const struct tec_gemm_args *a, const struct digits_choice *choice,
                                const int *order, struct tec_cuda_launch *launch, Start start)
{
    unsigned char *ready = order ? NULL : tec_cuda_digits_ready(a, &choice->form, launch);
    if (!tec_cuda_need_aligned((uintptr_t)a->w % 16 == 0, launch))
        return;
    for (int base = 0; base < a->max_rows; base += choice->part) {
        int count = a->max_rows - base < choice->part ? a->max_rows - base : choice->part;
        if (!ready)
            tec_cuda_row_digits(a, &choice->form, order, base, count, launch);
        start(base, count, ready ? ready : launch->terms);
    }
}

/* The unit of a group whose largest |x| has these bits, and what x is multiplied by; of one that is
 * not finite NaN and 0. */
template <int DIGITS>
static __device__ __forceinline__ float digits_unit(unsigned largest, float *per)
{
    *per = 0.0F;
    if (largest >= 0x7f800000U)
        return __uint_as_float(0x7fc00000U);
    if (DIGITS == 1)
        return tec_int8_unit(__uint_as_float(largest), per);
    int finer = tec_int4_finer(largest, DIGITS); /* of two digits that of int8.h */
    *per = __uint_as_float((unsigned)(127 + finer) << 23);
    return __uint_as_float((unsigned)(127 - finer) << 23);
}

/* Digits of four numbers, the highest first: in each word those of the first in the lowest byte.
 * per = 0: zeros, whatever the numbers are. */
template <int DIGITS>
static __device__ __forceinline__ void digits_of(unsigned (&word)[DIGITS], const float (&v)[4],
                                                 float per)
{
    TEC_UNROLL
    for (int d = 0; d < DIGITS; d++)
        word[d] = 0;
    TEC_UNROLL
    for (int i = 0; i < 4; i++) {
        int whole = per > 0.0F ? __float2int_rn(__fmul_rn(v[i], per)) : 0;
        TEC_UNROLL
        for (int d = DIGITS - 1; d >= 0; d--) {
            int raised = whole + 128; /* the digit is what is over 256, less 128 */
            word[d] |= (((unsigned)raised & 0xffU) ^ 0x80U) << (8 * i);
            whole = raised >> 8;
        }
    }
}

/* Four columns of a row, of which the first is a multiple of four: all lanes of a warp, 128 columns
 * that begin at a group of 8-bit weights. */
template <int DIGITS>
static __device__ __forceinline__ void digits_quad(const struct digits_out &out, int r, int column,
                                                   const float (&v)[4])
{
    int group = column / TEC_INT8_GROUP, in = column % DIGITS_K;
    unsigned largest = 0, word[DIGITS];
    TEC_UNROLL
    for (int i = 0; i < 4; i++)
        largest = max(largest, __float_as_uint(v[i]) & 0x7fffffffU);
    TEC_UNROLL
    for (int other = WARP / 2; other; other /= 2)
        largest = max(largest, __shfl_xor_sync(ALL_LANES, largest, other));
    float per, unit = digits_unit<DIGITS>(largest, &per);
    digits_of<DIGITS>(word, v, per);
    unsigned char *to =
        out.place(r, group, column % TEC_INT8_GROUP / DIGITS_K) + in / 16 * 128 + in % 16;
    TEC_UNROLL
    for (int d = 0; d < DIGITS; d++)
        *reinterpret_cast<unsigned *>(to + d * DIGITS_EIGHT) = word[d];
    if (column % TEC_INT8_GROUP == 0)
        *out.unit(r, group) = unit;
}

/* For a kernel that makes `of`, which is taken from the launch; at NULL: it leaves no digits. */
static inline struct digits_out digits_left(struct tec_cuda_launch *launch, const float *of)
{
    struct tec_cuda_terms *leave = &launch->leave;
    struct digits_out out = {NULL, NULL, 0, 0, 0};
    if (leave->of == of && of && leave->digits) {
        struct tec_cuda_digits form = {leave->k, TEC_INT8_GROUP, leave->digits};
        out = digits_out_of(leave->at, &form, leave->rows);
        leave->of = NULL;
    }
    return out;
}
