/* ptx_groups.cuh - instructions of sm_90a: barriers in shared memory, bulk copies, clusters,
 * products by groups of four warps; for nvcc. As the PTX manual has them.
 *
 * A barrier counts arrivals and bytes of copies on their way; when both are complete its phase
 * ends and the next one begins. Phases are told apart by their parity: the first has 0. */
#pragma once

#include "kernels/cuda/lang.cuh"

/* Whether the code being compiled may have such instructions. */
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define TEC_WARP_GROUPS 1
#else
#define TEC_WARP_GROUPS 0
#endif

typedef unsigned long long barrier;

/* One thread, before a __syncthreads; then barriers_ready, also before it. */
static __device__ __forceinline__ void barrier_init(barrier *b, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(shared_address(b)), "r"(arrivals)
                 : "memory");
}
static __device__ __forceinline__ void barriers_ready()
{
    asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory"); /* copies see them, too */
}
static __device__ __forceinline__ void barrier_arrive(barrier *b)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(shared_address(b)) : "memory");
}
/* One arrival of a warp, and what its lanes wrote to shared memory is seen by products. */
static __device__ __forceinline__ void barrier_arrive_written(barrier *b)
{
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
    __syncwarp();
    if (threadIdx.x % WARP == 0)
        barrier_arrive(b);
}
/* Arrive as soon as every copy16_async that this thread has started before has landed, what they
 * brought is then seen by whoever waits; the thread goes on at once. */
static __device__ __forceinline__ void barrier_arrive_copied(barrier *b)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];\n" ::"r"(shared_address(b))
                 : "memory");
}
/* Arrive, with bytes of copies that this phase has to wait for. */
static __device__ __forceinline__ void barrier_expect(barrier *b, int bytes)
{
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(shared_address(b)),
        "r"(bytes)
        : "memory");
}
/* Until the phase of this parity has ended; the one before the first counts as ended. */
static __device__ __forceinline__ void barrier_wait(barrier *b, int parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}\n" ::"r"(shared_address(b)),
                 "r"(parity)
                 : "memory");
}

/* Bytes from global to shared memory, a multiple of 16, both ends aligned to 16; one thread. They
 * count at the barrier as they land. */
static __device__ __forceinline__ void copy_bulk(void *to, const void *from, int bytes, barrier *b)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];\n" ::"r"(shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(b))
                 : "memory");
}

/* Blocks along z that run at the same time as this one, itself included. */
static __device__ __forceinline__ int cluster_blocks()
{
    int n;
    asm("mov.u32 %0, %%cluster_nctaid.z;\n" : "=r"(n));
    return n;
}
/* All threads of the blocks of a cluster that have not ended meet; what each wrote before, to
 * global memory too, the others see behind it. By whole warps. */
static __device__ __forceinline__ void meet_cluster()
{
    __syncwarp();
    asm volatile("barrier.cluster.arrive.release.aligned;\n" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;\n" ::: "memory");
}

/* A matrix in shared memory, made of blocks of 8 rows x 8 k (of bytes: x 16), 128 bytes in one
 * piece and row-major.
 * From one block to the next along k, and along the rows: bytes, multiples of 16. */
static __device__ __forceinline__ unsigned long long shared_matrix(const void *first, int along_k,
                                                                   int along_rows)
{
    unsigned long long at = (shared_address(first) & 0x3ffffU) >> 4;
    return at | (unsigned long long)(along_k >> 4) << 16 |
           (unsigned long long)(along_rows >> 4) << 32;
}

/* Before the first product of sums that something else has written, and after every wait. */
static __device__ __forceinline__ void products_begin()
{
    asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
}
/* Products since the last one of these are a group. */
static __device__ __forceinline__ void products_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}
/* Until at most N groups are on their way. Sums and shared memory of the others may be used. */
template <int N> static __device__ __forceinline__ void products_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(N) : "memory");
}
/* The compiler leaves sums where they are, before or behind: it knows of no product on its way. */
template <int N> static __device__ __forceinline__ void products_hold(float (&c)[N][4])
{
    TEC_UNROLL
    for (int j = 0; j < N; j++) {
        TEC_UNROLL
        for (int e = 0; e < 4; e++)
            asm volatile("" : "+f"(c[j][e])::"memory");
    }
}
template <int N> static __device__ __forceinline__ void products_hold(int (&c)[N][4])
{
    TEC_UNROLL
    for (int j = 0; j < N; j++) {
        TEC_UNROLL
        for (int e = 0; e < 4; e++)
            asm volatile("" : "+r"(c[j][e])::"memory");
    }
}
/* The same of operands in registers: written before products_begin, and kept until the wait. */
template <int N> static __device__ __forceinline__ void products_hold(unsigned (&a)[N][4])
{
    TEC_UNROLL
    for (int i = 0; i < N * 4; i++)
        asm volatile("" : "+r"(a[i / 4][i % 4])::"memory");
}

/* c[64 x 8 N] += a[64 x 16] b[8 N x 16]^T of bf16 in shared memory, float32 sums; some time before
 * the wait that covers it. All 128 threads; warp w has rows 16 w and further, lanes as in mma_bf16:
 * c[j] is columns 8 j .. 8 j + 7. */
#define SUMS_4(j) "+f"(c[j][0]), "+f"(c[j][1]), "+f"(c[j][2]), "+f"(c[j][3])
#define SUMS_16(j) SUMS_4(j), SUMS_4(j + 1), SUMS_4(j + 2), SUMS_4(j + 3)
static __device__ __forceinline__ void product_async(float (&c)[1][4], unsigned long long a,
                                                     unsigned long long b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 "
                 "{%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;\n"
                 : SUMS_4(0)
                 : "l"(a), "l"(b)
                 : "memory");
}
static __device__ __forceinline__ void product_async(float (&c)[2][4], unsigned long long a,
                                                     unsigned long long b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7}, %8, %9, 1, 1, 1, 0, 0;\n"
                 : SUMS_4(0), SUMS_4(1)
                 : "l"(a), "l"(b)
                 : "memory");
}
static __device__ __forceinline__ void product_async(float (&c)[4][4], unsigned long long a,
                                                     unsigned long long b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, "
                 "%16, %17, 1, 1, 1, 0, 0;\n"
                 : SUMS_16(0)
                 : "l"(a), "l"(b)
                 : "memory");
}
static __device__ __forceinline__ void product_async(float (&c)[8][4], unsigned long long a,
                                                     unsigned long long b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "
                 "%32, %33, 1, 1, 1, 0, 0;\n"
                 : SUMS_16(0), SUMS_16(4)
                 : "l"(a), "l"(b)
                 : "memory");
}
static __device__ __forceinline__ void product_async(float (&c)[16][4], unsigned long long a,
                                                     unsigned long long b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
                 "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
                 "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, "
                 "%64, %65, 1, 1, 1, 0, 0;\n"
                 : SUMS_16(0), SUMS_16(4), SUMS_16(8), SUMS_16(12)
                 : "l"(a), "l"(b)
                 : "memory");
}
#undef SUMS_4
#undef SUMS_16

/* c[64 x 8 N] (+)= a[64 x 32] b[8 N x 32]^T of signed bytes, whole sums of 32 bits; FRESH: what c
 * held does not count. b is in shared memory, of blocks of 8 rows x 16 k; a in registers, which
 * stay as they are until the wait: warp w has rows 16 w and further, lanes as in mma_s8. */
#define SUMS_4(j) "+r"(c[j][0]), "+r"(c[j][1]), "+r"(c[j][2]), "+r"(c[j][3])
#define SUMS_16(j) SUMS_4(j), SUMS_4(j + 1), SUMS_4(j + 2), SUMS_4(j + 3)
#define BYTES_4 "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3])
template <bool FRESH>
static __device__ __forceinline__ void product_s8_async(int (&c)[8][4], const unsigned (&a)[4],
                                                        unsigned long long b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "
                 "{%32,%33,%34,%35}, %36, %37;\n"
                 : SUMS_16(0), SUMS_16(4)
                 : BYTES_4, "l"(b), "n"(FRESH ? 0 : 1)
                 : "memory");
}
template <bool FRESH>
static __device__ __forceinline__ void product_s8_async(int (&c)[16][4], const unsigned (&a)[4],
                                                        unsigned long long b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
                 "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
                 "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, "
                 "{%64,%65,%66,%67}, %68, %69;\n"
                 : SUMS_16(0), SUMS_16(4), SUMS_16(8), SUMS_16(12)
                 : BYTES_4, "l"(b), "n"(FRESH ? 0 : 1)
                 : "memory");
}
#undef SUMS_4
#undef SUMS_16
#undef BYTES_4
