/* dtype.c - element types of checkpoints: names, sizes, and conversion to and from float32.
 *
 * Conversion to a smaller format rounds to nearest, ties to even, in integer arithmetic, so that
 * the result does not depend on compiler or machine. */
#include "base/store/dtype.h"

#include <math.h>

static const struct {
    const char *name;
    int bits;
} dtypes[] = {
#define DTYPE(name, bits) {#name, bits},
#include "base/store/dtype.def"
#undef DTYPE
};

const char *tec_dtype_name(enum tec_dtype dtype)
{
    return (size_t)dtype < TEC_N_DTYPES ? dtypes[dtype].name : "?";
}

int tec_dtype_bits(enum tec_dtype dtype)
{
    return (size_t)dtype < TEC_N_DTYPES ? dtypes[dtype].bits : 0;
}

bool tec_dtype_find(const char *name, enum tec_dtype *dtype)
{
    for (int i = 0; i < TEC_N_DTYPES; i++) {
        if (strcmp(dtypes[i].name, name) == 0) {
            *dtype = (enum tec_dtype)i;
            return true;
        }
    }
    return false;
}

/* The code of |x|, where x is not NaN, in a format of `man` mantissa bits and exponent bias `bias`,
 * as if its exponent had no upper end: the caller clamps it to its largest code. One formula serves
 * normal and subnormal results: the significand is rounded to whole quanta of the result's
 * exponent, and a carry out of the mantissa increments the exponent field by itself. */
static uint32_t narrow(float x, int man, int bias)
{
    uint32_t u = tec_f32_to_bits(x) & 0x7fffffffU;
    int field = (int)(u >> 23);
    int e = (field ? field : 1) - 127, low = 1 - bias;
    uint32_t significand = (u & 0x7fffffU) | (field ? 0x800000U : 0);
    int shift = 23 - man + (e < low ? low - e : 0);
    if (shift > 25)
        return 0;
    uint32_t half = 1U << (shift - 1), odd = significand >> shift & 1U;
    uint32_t quanta = (significand + half - 1 + odd) >> shift;
    return ((uint32_t)((e < low ? low : e) + bias - 1) << man) + quanta;
}

uint16_t tec_f32_to_f16(float x)
{
    uint32_t sign = tec_f32_to_bits(x) >> 16 & 0x8000U;
    uint32_t code = isnan(x) ? 0x7e00U : narrow(x, 10, 15);
    if (!isnan(x) && code > 0x7c00U)
        code = 0x7c00U;
    return (uint16_t)(sign | code);
}

uint8_t tec_f32_to_f8_e5m2(float x)
{
    uint32_t sign = tec_f32_to_bits(x) >> 24 & 0x80U;
    uint32_t code = isnan(x) ? 0x7fU : narrow(x, 2, 15);
    if (!isnan(x) && code > 0x7cU)
        code = 0x7cU;
    return (uint8_t)(sign | code);
}

uint8_t tec_f32_to_f8_e4m3(float x)
{
    uint32_t sign = tec_f32_to_bits(x) >> 24 & 0x80U;
    uint32_t code = isnan(x) ? 0x7fU : narrow(x, 3, 7);
    return (uint8_t)(sign | (code > 0x7fU ? 0x7fU : code));
}

/* The value of an eight-bit code that is neither NaN nor infinite. */
static float widen(uint8_t b, int man, int bias)
{
    int field = (b & 0x7f) >> man, significand = b & ((1 << man) - 1);
    if (field)
        significand |= 1 << man;
    float x = ldexpf((float)significand, (field ? field : 1) - bias - man);
    return b & 0x80 ? -x : x;
}

float tec_f8_e5m2_to_f32(uint8_t b)
{
    if ((b & 0x7f) > 0x7c)
        return NAN;
    if ((b & 0x7f) == 0x7c)
        return b & 0x80 ? -INFINITY : INFINITY;
    return widen(b, 2, 15);
}

float tec_f8_e4m3_to_f32(uint8_t b)
{
    return (b & 0x7f) == 0x7f ? NAN : widen(b, 3, 7);
}

float tec_f8_e5m2fnuz_to_f32(uint8_t b)
{
    return b == 0x80 ? NAN : widen(b, 2, 16);
}

float tec_f8_e4m3fnuz_to_f32(uint8_t b)
{
    return b == 0x80 ? NAN : widen(b, 3, 8);
}

float tec_f8_e8m0_to_f32(uint8_t b)
{
    return b == 0xff ? NAN : ldexpf(1.0F, b - 127);
}

enum tec_status tec_to_f32(enum tec_dtype dtype, const void *src, float *dst, size_t n,
                           struct tec_error *err)
{
    const unsigned char *p = src;
#define CONVERT(name, type, expression)             \
    case TEC_##name:                                \
        for (size_t i = 0; i < n; i++) {            \
            type v;                                 \
            memcpy(&v, p + i * sizeof v, sizeof v); \
            dst[i] = (expression);                  \
        }                                           \
        return TEC_OK;
    switch (dtype) {
        CONVERT(BOOL, uint8_t, v ? 1.0F : 0.0F)
        CONVERT(U8, uint8_t, (float)v)
        CONVERT(I8, int8_t, (float)v)
        CONVERT(F8_E5M2, uint8_t, tec_f8_e5m2_to_f32(v))
        CONVERT(F8_E4M3, uint8_t, tec_f8_e4m3_to_f32(v))
        CONVERT(F8_E8M0, uint8_t, tec_f8_e8m0_to_f32(v))
        CONVERT(F8_E4M3FNUZ, uint8_t, tec_f8_e4m3fnuz_to_f32(v))
        CONVERT(F8_E5M2FNUZ, uint8_t, tec_f8_e5m2fnuz_to_f32(v))
        CONVERT(I16, int16_t, (float)v)
        CONVERT(U16, uint16_t, (float)v)
        CONVERT(F16, uint16_t, tec_f16_to_f32(v))
        CONVERT(BF16, uint16_t, tec_bf16_to_f32(v))
        CONVERT(I32, int32_t, (float)v)
        CONVERT(U32, uint32_t, (float)v)
        CONVERT(F32, float, v)
        CONVERT(I64, int64_t, (float)v)
        CONVERT(U64, uint64_t, (float)v)
        CONVERT(F64, double, (float)v)
    default:
        return tec_fail(err, TEC_UNSUPPORTED, "elements of %s have no reading as float",
                        tec_dtype_name(dtype));
    }
#undef CONVERT
}
