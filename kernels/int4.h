/* int4.h - the stored form of a matrix of 4-bit weights in groups, alike on every tier.
 *
 * w = (nibble - zero) * scale, one zero (0 .. 16) and one scale for each group of k of a column.
 * Panels of 16 columns; in a panel group by group: a line of 64 bytes with 16 float16 scales, then
 * 16 bytes of zeros; then a line for each 8 k: 16 words, one a column, whose nibbles are k, k + 1,
 * ... from the lowest. The last group may be short. k and the group are multiples of 8, so that
 * everything is read in whole lines. Columns that pad a panel are zeros: scale 0. */
#ifndef TEC_KERNELS_INT4_H
#define TEC_KERNELS_INT4_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define TEC_INT4_INLINE static inline __host__ __device__
#else
#define TEC_INT4_INLINE static inline
#endif

enum {
    TEC_INT4_LINE = 64,
    TEC_INT4_DEEP = 8, /* k of a line */
    TEC_INT4_ZEROS = 32,
    TEC_INT4_GROUP = 64,   /* of matrices that are rounded when they are loaded */
    TEC_INT4_MOST = 491280 /* the largest |w| of those: 65504, float16's largest, times 15 / 2 */
};

/* Bytes of a panel. */
TEC_INT4_INLINE size_t tec_int4_panel(int k, int group)
{
    size_t groups = ((size_t)k + (size_t)group - 1) / (size_t)group;
    return TEC_INT4_LINE * (groups + (size_t)k / TEC_INT4_DEEP);
}

/* Bytes of n columns, n a multiple of 16. */
TEC_INT4_INLINE size_t tec_int4_size(int n, int k, int group)
{
    return (size_t)n / 16 * tec_int4_panel(k, group);
}

/* The offset of a group's line of scales in a panel. */
TEC_INT4_INLINE size_t tec_int4_group(int index, int group)
{
    return (size_t)index * TEC_INT4_LINE * (1 + (size_t)group / TEC_INT4_DEEP);
}

/* float16 bits as float32. */
TEC_INT4_INLINE float tec_half_float(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000U) << 16, mantissa = bits & 0x3ffU;
    uint32_t exponent = (bits >> 10) & 0x1fU, out = sign | (mantissa << 13);
    float value;
    if (exponent == 0) { /* mantissa * 2^-24 */
        value = (float)mantissa * 0x1p-24F;
        return sign ? -value : value;
    }
    out |= exponent == 31 ? 0x7f800000U : (exponent + 112) << 23;
    memcpy(&value, &out, sizeof value);
    return value;
}

/* A product takes x as whole numbers of a unit of each group's own, a power of two:
 * round(x / unit), as signed digits of 8 bits, lowest first. So sums of a group are exact, and what
 * is left out is half a unit. Three digits are 24 bits with their sign: it is below 2^-22.9 of the
 * group's largest |x|. Two are 16 bits, as products with 8-bit weights have: below 2^-14.9. Where
 * that is smaller, it is 2^-127.
 *
 * log2 of 1 / unit, from the bits of that largest: it becomes at most 127 * (65536 + 256 + 1), or
 * 127 * (256 + 1). */
TEC_INT4_INLINE int tec_int4_finer(uint32_t largest, int digits)
{
    /* A larger mantissa would be rounded to more units than that: its unit is twice as large. */
    uint32_t most = digits > 2 ? 0x7efefeU : 0x7efeffU;
    int exponent = (int)(largest >> 23) - 127;
    int finer = 8 * digits - 2 - exponent - ((largest & 0x7fffffU) > most ? 1 : 0);
    return finer > 126 ? 126 : finer; /* of very small ones units of 2^-126 */
}

/* Pack rows first .. first + n - 1 (given as float32 [n, k], n a multiple of 16 or the last rows)
 * of a matrix of `rows` rows into `packed` (tec_int4_size(padded rows, k, group) bytes, zeroed by
 * the caller). first is a multiple of 16; k and group are multiples of 8. Magnitudes are at most
 * TEC_INT4_MOST. Each group is rounded to nearest even, with the zero and the scale that leave the
 * least squared error of 13 that are tried: low and high being the least and the largest of 0 and
 * the group's weights, and p = 1, 31 / 32 .. 20 / 32, the scale is that float16 of (high - low) p /
 * 15, the zero the whole number next to -low p / scale. */
#ifndef __CUDACC__
void tec_int4_pack(void *packed, int rows, int k, int group, int first, int n, const float *src);
#endif

enum {
    TEC_INT4_DIGITS = 3,       /* at most */
    TEC_INT4_LONGEST = 1 << 19 /* k of the longest group: sums fit 32 bits */
};

#endif
