/* ptx.cuh - machine instructions under names; for nvcc. */
#pragma once

/* Shared memory sized at launch, as an array of T. */
#define TEC_SHARED(T, name)                                       \
    extern __shared__ __align__(128) unsigned char tec_shared_[]; \
    T *name = reinterpret_cast<T *>(tec_shared_)
#define TEC_UNROLL _Pragma("unroll")
#define TEC_PRAGMA(x) _Pragma(#x)
#define TEC_UNROLL_BY(n) TEC_PRAGMA(unroll(n))

static __device__ __forceinline__ unsigned shared_address(const void *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}

/* The first `bytes` of 16 from global to shared memory, both aligned to 16, and zeros behind them.
 * Lands some time before the wait that covers its group. */
static __device__ __forceinline__ void copy16_part_async(void *to, const void *from, int bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared_address(to)),
                 "l"(from), "r"(bytes)
                 : "memory");
}
/* All 16; zeros where !valid. */
static __device__ __forceinline__ void copy16_async(void *to, const void *from, bool valid)
{
    copy16_part_async(to, from, valid ? 16 : 0);
}
static __device__ __forceinline__ void copy_commit()
{
    asm volatile("cp.async.commit_group;\n" ::: "memory");
}
/* Wait until at most N of this thread's latest groups are in flight. */
template <int N> static __device__ __forceinline__ void copy_wait()
{
    asm volatile("cp.async.wait_group %0;\n" ::"n"(N) : "memory");
}

/* Four (two) 8 x 8 matrices of bf16: lane i gives the address of row i % 8 of matrix i / 8. */
static __device__ __forceinline__ void load_matrices_x4(unsigned r[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}
static __device__ __forceinline__ void load_matrices_x2(unsigned r[2], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];\n"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(shared_address(row))
                 : "memory");
}
/* Load two matrices, each transposed on the way. */
static __device__ __forceinline__ void load_matrices_x2_transposed(unsigned r[2], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];\n"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(shared_address(row))
                 : "memory");
}

/* c[16 x 8] += a[16 x 16] b[16 x 8], float32 sums. Lane l holds, with g = l / 4 and t = l % 4:
 * a: rows g, g + 8 (a[0], a[1]) at k = 2t, 2t + 1 and the same rows at k + 8 (a[2], a[3]);
 * b: k = 2t, 2t + 1 (b[0]) and k + 8 (b[1]) of column g;
 * c: row g, columns 2t, 2t + 1 (c[0], c[1]), row g + 8 (c[2], c[3]). */
static __device__ __forceinline__ void mma_bf16(float c[4], const unsigned a[4],
                                                const unsigned b[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* c[16 x 8] += a[16 x 32] b[32 x 8], signed bytes, whole sums of 32 bits: exact while they fit,
 * which the caller sees to. Lane l holds, with g = l / 4 and t = l % 4: a: rows g, g + 8 (a[0],
 * a[1]) at k = 4t .. 4t + 3 and the same rows at k + 16 (a[2], a[3]); b: k = 4t .. 4t + 3 (b[0])
 * and k + 16 (b[1]) of column g; c: as above. */
static __device__ __forceinline__ void mma_s8(int c[4], const unsigned a[4], const unsigned b[2])
{
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* c = from + a b: the first of a sum, whose 32 bits need not be set before. */
static __device__ __forceinline__ void mma_s8_from(int c[4], int from, const unsigned a[4],
                                                   const unsigned b[2])
{
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};\n"
                 : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(from));
}

/* Two bf16 plus two, each rounded: by a multiply-add, which devices from 8.0 on have. */
static __device__ __forceinline__ unsigned add_bf16_pairs(unsigned a, unsigned b)
{
    unsigned sum;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;\n" : "=r"(sum) : "r"(a), "r"(0x3f803f80U), "r"(b));
    return sum;
}

/* float16 bits as float32. */
static __device__ __forceinline__ float half_float(unsigned short bits)
{
    float value;
    asm("cvt.f32.f16 %0, %1;\n" : "=f"(value) : "h"(bits));
    return value;
}

/* Until every kernel in front of this one has ended and its writes are seen. */
static __device__ __forceinline__ void wait_previous()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;\n" ::: "memory");
#endif
}
/* The next kernel may be brought in. */
static __device__ __forceinline__ void release_next()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;\n" ::: "memory");
#endif
}

/* 16 (8) bytes that another block of this kernel wrote, past what is kept near. */
static __device__ __forceinline__ float4 load_far(const float4 *p)
{
    return __ldcg(p);
}
static __device__ __forceinline__ float2 load_far(const float2 *p)
{
    return __ldcg(p);
}

/* Store where the host looks, after everything before it. */
static __device__ __forceinline__ void publish(unsigned long long *to, unsigned long long value)
{
    __threadfence_system();
    *(volatile unsigned long long *)to = value;
}

/* Nanoseconds of a clock that all multiprocessors share. It moves in steps of its own: 32 ns to
 * 1 us, by the device. */
static __device__ __forceinline__ unsigned long long device_clock()
{
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;\n" : "=l"(now)::"memory");
    return now;
}
