/* cuda_bf16.h - bfloat16: the upper half of a float, rounded to nearest, ties to even. */
#pragma once

#include <emulated_vectors.h>
#include <stdint.h>
#include <string.h>

struct __nv_bfloat16_raw {
    unsigned short x;
};

struct alignas(2) __nv_bfloat16 {
    unsigned short bits;

    __nv_bfloat16() = default;
    __nv_bfloat16(__nv_bfloat16_raw raw) : bits(raw.x)
    {
    }
    __nv_bfloat16(float f)
    {
        uint32_t u;
        memcpy(&u, &f, sizeof u);
        bool nan = (u & 0x7fffffffU) > 0x7f800000U;
        bits = nan ? 0x7fff : (unsigned short)((u + 0x7fffU + (u >> 16 & 1U)) >> 16);
    }
    operator float() const
    {
        uint32_t u = (uint32_t)bits << 16;
        float f;
        memcpy(&f, &u, sizeof f);
        return f;
    }
};
struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

static inline float __bfloat162float(__nv_bfloat16 v)
{
    return v;
}
static inline __nv_bfloat16 __float2bfloat16(float v)
{
    return __nv_bfloat16(v);
}
static inline __nv_bfloat16 __float2bfloat16_rn(float v)
{
    return __nv_bfloat16(v);
}
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 v)
{
    return v.bits;
}
static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits)
{
    return __nv_bfloat16(__nv_bfloat16_raw{bits});
}

static inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y)
{
    return {x, y};
}
static inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y)
{
    return {x, y};
}
static inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y)
{
    return {__nv_bfloat16(x), __nv_bfloat16(y)};
}
static inline __nv_bfloat162 __float22bfloat162_rn(float2 v)
{
    return {__nv_bfloat16(v.x), __nv_bfloat16(v.y)};
}
static inline float2 __bfloat1622float2(__nv_bfloat162 v)
{
    return {v.x, v.y};
}
static inline float __low2float(__nv_bfloat162 v)
{
    return v.x;
}
static inline float __high2float(__nv_bfloat162 v)
{
    return v.y;
}
static inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v)
{
    return v.x;
}
static inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v)
{
    return v.y;
}
