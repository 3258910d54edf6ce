/* emulated_math.h - arithmetic of the device that C++ lacks. Exactly rounded where CUDA says so;
 * fast forms (__expf and the like) are those of the host, more exact than a GPU's. */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

/* The C library has functions of its own by these names. */
#define __expf(x) cuda_emulator::fast_exp(x)
#define __exp10f(x) cuda_emulator::fast_exp10(x)
#define __logf(x) cuda_emulator::fast_log(x)
#define __log2f(x) cuda_emulator::fast_log2(x)
#define __log10f(x) cuda_emulator::fast_log10(x)
#define __powf(x, y) cuda_emulator::fast_pow(x, y)
#define __sinf(x) cuda_emulator::fast_sin(x)
#define __cosf(x) cuda_emulator::fast_cos(x)
#define __tanf(x) cuda_emulator::fast_tan(x)
#define __sincosf(x, s, c) cuda_emulator::fast_sincos(x, s, c)

namespace cuda_emulator
{
static inline float fast_exp(float x)
{
    return expf(x);
}
static inline float fast_exp10(float x)
{
    return powf(10.0F, x);
}
static inline float fast_log(float x)
{
    return logf(x);
}
static inline float fast_log2(float x)
{
    return log2f(x);
}
static inline float fast_log10(float x)
{
    return log10f(x);
}
static inline float fast_pow(float x, float y)
{
    return powf(x, y);
}
static inline float fast_sin(float x)
{
    return sinf(x);
}
static inline float fast_cos(float x)
{
    return cosf(x);
}
static inline float fast_tan(float x)
{
    return tanf(x);
}
static inline void fast_sincos(float x, float *s, float *c)
{
    *s = sinf(x);
    *c = cosf(x);
}
template <class To, class From> static inline To same_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "bits of another size");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
} // namespace cuda_emulator

static inline float __fdividef(float a, float b)
{
    return a / b;
}
static inline float __saturatef(float x)
{
    return x > 0.0F ? (x < 1.0F ? x : 1.0F) : 0.0F;
}
static inline float rsqrtf(float x)
{
    return (float)(1.0 / sqrt((double)x));
}
static inline double rsqrt(double x)
{
    return 1.0 / sqrt(x);
}

static inline float __fadd_rn(float a, float b)
{
    return a + b;
}
static inline float __fsub_rn(float a, float b)
{
    return a - b;
}
static inline float __fmul_rn(float a, float b)
{
    return a * b;
}
static inline float __fdiv_rn(float a, float b)
{
    return a / b;
}
static inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}
static inline float __frcp_rn(float x)
{
    return 1.0F / x;
}
static inline float __fsqrt_rn(float x)
{
    return sqrtf(x);
}
static inline float __frsqrt_rn(float x)
{
    return rsqrtf(x);
}
static inline double __dadd_rn(double a, double b)
{
    return a + b;
}
static inline double __dsub_rn(double a, double b)
{
    return a - b;
}
static inline double __dmul_rn(double a, double b)
{
    return a * b;
}
static inline double __ddiv_rn(double a, double b)
{
    return a / b;
}
static inline double __fma_rn(double a, double b, double c)
{
    return fma(a, b, c);
}
static inline double __drcp_rn(double x)
{
    return 1.0 / x;
}
static inline double __dsqrt_rn(double x)
{
    return sqrt(x);
}

static inline float __double2float_rn(double x)
{
    return (float)x;
}
static inline float __int2float_rn(int x)
{
    return (float)x;
}
static inline float __uint2float_rn(unsigned x)
{
    return (float)x;
}
static inline int __float2int_rn(float x)
{
    return (int)rintf(x);
}
static inline int __float2int_rz(float x)
{
    return (int)x;
}
static inline int __float2int_rd(float x)
{
    return (int)floorf(x);
}
static inline int __float2int_ru(float x)
{
    return (int)ceilf(x);
}
static inline unsigned __float2uint_rn(float x)
{
    return (unsigned)rintf(x);
}
static inline unsigned __float2uint_rz(float x)
{
    return (unsigned)x;
}

static inline float __int_as_float(int x)
{
    return cuda_emulator::same_bits<float>(x);
}
static inline float __uint_as_float(unsigned x)
{
    return cuda_emulator::same_bits<float>(x);
}
static inline int __float_as_int(float x)
{
    return cuda_emulator::same_bits<int>(x);
}
static inline unsigned __float_as_uint(float x)
{
    return cuda_emulator::same_bits<unsigned>(x);
}
static inline long long __double_as_longlong(double x)
{
    return cuda_emulator::same_bits<long long>(x);
}
static inline double __longlong_as_double(long long x)
{
    return cuda_emulator::same_bits<double>(x);
}

static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
static inline int __popcll(unsigned long long x)
{
    return __builtin_popcountll(x);
}
static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}
static inline int __ffsll(long long x)
{
    return __builtin_ffsll(x);
}
static inline int __clz(int x)
{
    return x ? __builtin_clz((unsigned)x) : 32;
}
static inline int __clzll(long long x)
{
    return x ? __builtin_clzll((unsigned long long)x) : 64;
}
static inline int __mulhi(int a, int b)
{
    return (int)((int64_t)a * b >> 32);
}
static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((uint64_t)a * b >> 32);
}
static inline unsigned __brev(unsigned x)
{
    unsigned y = 0;
    for (int i = 0; i < 32; i++)
        y |= (x >> i & 1U) << (31 - i);
    return y;
}
/* Byte i of the result is byte (s >> 4 i) & 7 of y:x. */
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned s)
{
    uint64_t both = (uint64_t)y << 32 | x;
    unsigned r = 0;
    for (int i = 0; i < 4; i++)
        r |= (unsigned)(both >> 8 * (s >> 4 * i & 7U) & 0xffU) << 8 * i;
    return r;
}
static inline int __dp4a(int a, int b, int c)
{
    for (int i = 0; i < 32; i += 8)
        c += (int)(int8_t)(a >> i) * (int)(int8_t)(b >> i);
    return c;
}

#define EMULATOR_MIN_MAX(result, a_type, b_type)              \
    static inline result min(a_type a, b_type b)              \
    {                                                         \
        return (result)a < (result)b ? (result)a : (result)b; \
    }                                                         \
    static inline result max(a_type a, b_type b)              \
    {                                                         \
        return (result)a > (result)b ? (result)a : (result)b; \
    }
EMULATOR_MIN_MAX(int, int, int)
EMULATOR_MIN_MAX(unsigned, unsigned, unsigned)
EMULATOR_MIN_MAX(unsigned, int, unsigned)
EMULATOR_MIN_MAX(unsigned, unsigned, int)
EMULATOR_MIN_MAX(long, long, long)
EMULATOR_MIN_MAX(unsigned long, unsigned long, unsigned long)
EMULATOR_MIN_MAX(long long, long long, long long)
EMULATOR_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
#undef EMULATOR_MIN_MAX
static inline float min(float a, float b)
{
    return fminf(a, b);
}
static inline float max(float a, float b)
{
    return fmaxf(a, b);
}
static inline double min(double a, double b)
{
    return fmin(a, b);
}
static inline double max(double a, double b)
{
    return fmax(a, b);
}

/* Cached in whatever way: a load is a load. */
template <class T> static inline T __ldg(const T *p)
{
    return *p;
}
template <class T> static inline T __ldca(const T *p)
{
    return *p;
}
template <class T> static inline T __ldcg(const T *p)
{
    return *p;
}
template <class T> static inline T __ldcs(const T *p)
{
    return *p;
}
template <class T> static inline T __ldlu(const T *p)
{
    return *p;
}
template <class T> static inline void __stcg(T *p, T v)
{
    *p = v;
}
template <class T> static inline void __stcs(T *p, T v)
{
    *p = v;
}
template <class T> static inline void __stwt(T *p, T v)
{
    *p = v;
}
