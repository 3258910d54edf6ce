/* dtype.h - element types of stored tensors, and scalar conversions between them and float. */
#ifndef TEC_BASE_STORE_DTYPE_H
#define TEC_BASE_STORE_DTYPE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* TEC_F32, TEC_BF16, ...: see dtype.def. */
enum tec_dtype {
#define DTYPE(name, bits) TEC_##name,
#include "base/store/dtype.def"
#undef DTYPE
    TEC_N_DTYPES
};

/* Name as in a file ("BF16"); "?" for a value outside the list. */
const char *tec_dtype_name(enum tec_dtype dtype);

/* Bits of one element: 4, 6, 8, 16, 32 or 64; 0 for a value outside the list. */
int tec_dtype_bits(enum tec_dtype dtype);

/* The dtype of that exact name (upper case). False when there is none; *dtype is then unchanged. */
bool tec_dtype_find(const char *name, enum tec_dtype *dtype);

/* n elements of `dtype` at `src` (any alignment, little-endian) as float, rounded to nearest even
 * where float is too narrow (I32, U32, I64, U64, F64). BOOL gives 0 or 1. TEC_UNSUPPORTED for C64
 * and the types of less than a byte. */
enum tec_status tec_to_f32(enum tec_dtype dtype, const void *src, float *dst, size_t n,
                           struct tec_error *err);

static inline float tec_bits_to_f32(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t tec_f32_to_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float tec_bf16_to_f32(uint16_t h)
{
    return tec_bits_to_f32((uint32_t)h << 16);
}

/* Nearest, ties to even; beyond the largest value: infinity; NaN stays a NaN and becomes quiet. */
static inline uint16_t tec_f32_to_bf16(float x)
{
    uint32_t u = tec_f32_to_bits(x);
    if ((u & 0x7fffffffU) > 0x7f800000U)
        return (uint16_t)(u >> 16 | 0x40U);
    return (uint16_t)((u + 0x7fffU + (u >> 16 & 1U)) >> 16);
}

static inline float tec_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000U) << 16, exp = h >> 10 & 0x1fU, man = h & 0x3ffU;
    if (exp == 0x1fU)
        return tec_bits_to_f32(sign | 0x7f800000U | man << 13);
    if (exp == 0) {
        float x = (float)man * 0x1p-24F;
        return sign ? -x : x;
    }
    return tec_bits_to_f32(sign | (exp + 112U) << 23 | man << 13);
}

/* Nearest, ties to even, as tec_f32_to_bf16; subnormals are kept. */
uint16_t tec_f32_to_f16(float x);

/* Eight bits. E4M3 is the "fn" kind: no infinities, NaN is 0x7f and 0xff, largest 448. The FNUZ
 * kinds have no infinities and no negative zero: 0x80 is their NaN. E8M0 is a power of two. */
float tec_f8_e5m2_to_f32(uint8_t b);
float tec_f8_e4m3_to_f32(uint8_t b);
float tec_f8_e5m2fnuz_to_f32(uint8_t b);
float tec_f8_e4m3fnuz_to_f32(uint8_t b);
float tec_f8_e8m0_to_f32(uint8_t b);

/* Nearest, ties to even, nothing saturates: what rounds beyond the largest value becomes infinity
 * (E5M2) or NaN (E4M3). */
uint8_t tec_f32_to_f8_e5m2(float x);
uint8_t tec_f32_to_f8_e4m3(float x);

#endif
