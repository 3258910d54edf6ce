/* emulated_vectors.h - float4 and its like, aligned as a GPU needs them. */
#pragma once

#define EMULATOR_VECTORS(type, name, align2, align4)                     \
    struct alignas(sizeof(type)) name##1                                 \
    {                                                                    \
        type x;                                                          \
    };                                                                   \
    struct alignas(align2) name##2                                       \
    {                                                                    \
        type x, y;                                                       \
    };                                                                   \
    struct name##3                                                       \
    {                                                                    \
        type x, y, z;                                                    \
    };                                                                   \
    struct alignas(align4) name##4                                       \
    {                                                                    \
        type x, y, z, w;                                                 \
    };                                                                   \
    static inline name##1 make_##name##1(type x)                         \
    {                                                                    \
        return {x};                                                      \
    }                                                                    \
    static inline name##2 make_##name##2(type x, type y)                 \
    {                                                                    \
        return {x, y};                                                   \
    }                                                                    \
    static inline name##3 make_##name##3(type x, type y, type z)         \
    {                                                                    \
        return {x, y, z};                                                \
    }                                                                    \
    static inline name##4 make_##name##4(type x, type y, type z, type w) \
    {                                                                    \
        return {x, y, z, w};                                             \
    }

#define uint3 emulated_uint3 /* that of cuda_runtime_api.h stays */
EMULATOR_VECTORS(unsigned int, uint, 8, 16)
#undef uint3
EMULATOR_VECTORS(signed char, char, 2, 4)
EMULATOR_VECTORS(unsigned char, uchar, 2, 4)
EMULATOR_VECTORS(short, short, 4, 8)
EMULATOR_VECTORS(unsigned short, ushort, 4, 8)
EMULATOR_VECTORS(int, int, 8, 16)
EMULATOR_VECTORS(float, float, 8, 16)
EMULATOR_VECTORS(double, double, 16, 16)
EMULATOR_VECTORS(long long, longlong, 16, 16)
EMULATOR_VECTORS(unsigned long long, ulonglong, 16, 16)
