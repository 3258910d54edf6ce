/* int8.h - the stored form of a matrix of 8-bit weights, alike on every tier.
 *
 * w = q * scale, q a whole number of -127 .. 127, one float32 scale for each column. Panels of 16
 * columns: a line of 64 bytes with their 16 scales; then a line for each 4 k: of each column four
 * bytes, its q at k, k + 1, k + 2, k + 3. k is padded with zeros to a multiple of 8, columns to one
 * of 16, whose scales are zeros too.
 *
 * A product takes x as whole numbers as well: of a unit of its own for each row and each
 * TEC_INT8_GROUP k. So the sum of a group is exact and fits 32 bits. The sums of groups, each
 * rounded to float32, times their units are one chain of fused multiply-adds, whose end is
 * multiplied by the column's scale.
 *
 * In two digits of 8 bits the unit is a power of two such that the largest of the group fills 16
 * bits with sign. What is left out of x is half a unit: below 2^-14.9 of the group's largest |x|,
 * or 2^-127 where that is smaller still. In one digit the unit is the largest / 127, so half of it
 * is 1 / 254 of that, or below 2^-107 where the largest is below 2^-100; sums are not rounded. */
#ifndef TEC_KERNELS_INT8_H
#define TEC_KERNELS_INT8_H

#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define TEC_INT8_INLINE static inline __host__ __device__
#else
#define TEC_INT8_INLINE static inline
#endif

enum {
    TEC_INT8_LINE = 64,
    TEC_INT8_DEEP = 4,    /* k of a line */
    TEC_INT8_PAD = 8,     /* k come in so many */
    TEC_INT8_GROUP = 128, /* k of x that share a unit; the last group of a row may be short */
    TEC_INT8_MOST = 32639 /* the largest whole number of x: 127 * (256 + 1), so two bytes hold it as
                             signed digits */
};

/* Bytes of a panel. */
TEC_INT8_INLINE size_t tec_int8_panel(int k)
{
    size_t padded = ((size_t)k + TEC_INT8_PAD - 1) / TEC_INT8_PAD * TEC_INT8_PAD;
    return TEC_INT8_LINE * (1 + padded / TEC_INT8_DEEP);
}

/* Bytes of n columns, n a multiple of 16. */
TEC_INT8_INLINE size_t tec_int8_size(int n, int k)
{
    return (size_t)n / 16 * tec_int8_panel(k);
}

/* The offset in a panel of the line of k, a multiple of TEC_INT8_DEEP. */
TEC_INT8_INLINE size_t tec_int8_at(int k)
{
    return TEC_INT8_LINE * (1 + (size_t)k / TEC_INT8_DEEP);
}

/* log2 of 1 / unit, from the bits of the largest |x| of a group. */
TEC_INT8_INLINE int tec_int8_finer(uint32_t largest)
{
    int exponent = (int)(largest >> 23) - 127;
    int finer = 14 - exponent - ((largest & 0x7fffffU) > 0x7efeffU ? 1 : 0);
    return finer > 126 ? 126 : finer; /* below 2^-112, units of 2^-126 */
}

/* The unit of one digit where the largest |x| of a group is this, finite, and in *per what x is
 * multiplied by: three roundings, which take no x past 127.0001. */
TEC_INT8_INLINE float tec_int8_unit(float largest, float *per)
{
    float unit = (largest < 0x1p-100F ? 0x1p-100F : largest) * (1.0F / 127.0F);
    *per = 1.0F / unit;
    return unit;
}

/* Pack rows first .. first + n - 1 (given as float32 [n, k], n a multiple of 16 or the last rows)
 * of a matrix of `rows` rows into `packed` (tec_int8_size(padded rows, k) bytes, zeroed by the
 * caller). first is a multiple of 16. A column's scale is its largest |w| / 127; weights are
 * rounded to nearest even. Values must be finite; a column whose largest is below 2^-100 becomes
 * zeros. */
#ifndef __CUDACC__
void tec_int8_pack(void *packed, int rows, int k, int first, int n, const float *src);
#endif

#endif
