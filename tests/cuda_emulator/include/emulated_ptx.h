/* emulated_ptx.h - the twin of kernels/cuda/ptx.cuh: every name there, with the same meaning. */
#pragma once

#include <cuda_bf16.h>
#include <cuda_emulator_control.h>
#include <cuda_runtime.h>
#include <emulated_matrix.h>
#include <emulated_start.h>
#include <string.h>
#include <time.h>

#define TEC_SHARED(T, name) T *name = reinterpret_cast<T *>(cuda_emulator::shared_memory)
#define TEC_UNROLL
#define TEC_UNROLL_BY(n)

static inline void copy16_part_async(void *to, const void *from, int bytes, EMULATOR_HERE)
{
    cuda_emulator::copy_issue(to, from, bytes, file, line);
}
static inline void copy16_async(void *to, const void *from, bool valid, EMULATOR_HERE)
{
    cuda_emulator::copy_issue(to, from, valid ? 16 : 0, file, line);
}
static inline void copy_commit()
{
    cuda_emulator::copy_close_group();
}
template <int N> static inline void copy_wait()
{
    cuda_emulator::copy_settle(N);
}

static inline void load_matrices_x4(unsigned r[4], const void *row, EMULATOR_HERE)
{
    cuda_emulator::matrix_load load = {row, 4, false, {}};
    cuda_emulator::load_fragments(&load, file, line);
    memcpy(r, load.registers, 4 * sizeof *r);
}
static inline void load_matrices_x2(unsigned r[2], const void *row, EMULATOR_HERE)
{
    cuda_emulator::matrix_load load = {row, 2, false, {}};
    cuda_emulator::load_fragments(&load, file, line);
    memcpy(r, load.registers, 2 * sizeof *r);
}
static inline void load_matrices_x2_transposed(unsigned r[2], const void *row, EMULATOR_HERE)
{
    cuda_emulator::matrix_load load = {row, 2, true, {}};
    cuda_emulator::load_fragments(&load, file, line);
    memcpy(r, load.registers, 2 * sizeof *r);
}
static inline void load_matrices_x4_transposed(unsigned r[4], const void *row, EMULATOR_HERE)
{
    cuda_emulator::matrix_load load = {row, 4, true, {}};
    cuda_emulator::load_fragments(&load, file, line);
    memcpy(r, load.registers, 4 * sizeof *r);
}

static inline unsigned add_bf16_pairs(unsigned a, unsigned b)
{
    unsigned sum = 0;
    for (int half = 0; half < 32; half += 16) {
        float x = __uint_as_float(a >> half << 16), y = __uint_as_float(b >> half << 16);
        sum |= (unsigned)__bfloat16_as_ushort(__float2bfloat16(x + y)) << half;
    }
    return sum;
}

static inline void mma_bf16(float c[4], const unsigned a[4], const unsigned b[2], EMULATOR_HERE)
{
    cuda_emulator::mma_fragments f;
    memcpy(f.a, a, sizeof f.a);
    memcpy(f.b, b, sizeof f.b);
    memcpy(f.c, c, sizeof f.c);
    cuda_emulator::multiply_fragments(&f, file, line);
    memcpy(c, f.c, sizeof f.c);
}

static inline void mma_s8(int c[4], const unsigned a[4], const unsigned b[2], EMULATOR_HERE)
{
    cuda_emulator::mma_s8_fragments f;
    memcpy(f.a, a, sizeof f.a);
    memcpy(f.b, b, sizeof f.b);
    memcpy(f.c, c, sizeof f.c);
    cuda_emulator::multiply_s8_fragments(&f, file, line);
    memcpy(c, f.c, sizeof f.c);
}

static inline void mma_s8_from(int c[4], int from, const unsigned a[4], const unsigned b[2],
                               EMULATOR_HERE)
{
    for (int i = 0; i < 4; i++)
        c[i] = from;
    mma_s8(c, a, b, file, line);
}

static inline float half_float(unsigned short bits)
{
    int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    float size = exponent == 31 ? (mantissa ? NAN : INFINITY)
                 : exponent     ? ldexpf((float)(mantissa + 1024), exponent - 25)
                                : ldexpf((float)mantissa, -24);
    return bits & 0x8000 ? -size : size;
}

static inline void wait_previous()
{
    cuda_emulator::previous_awaited();
}
static inline void release_next()
{
    cuda_emulator::next_released();
}

static inline float4 load_far(const float4 *p)
{
    return *p;
}
static inline float2 load_far(const float2 *p)
{
    return *p;
}

/* 1000 ns for each kernel that has run, the one that asks included. */
static inline unsigned long long device_clock()
{
    return cuda_emulator_clock();
}

static inline void publish(unsigned long long *to, unsigned long long value)
{
    __atomic_store_n(to, value, __ATOMIC_RELEASE);
}
