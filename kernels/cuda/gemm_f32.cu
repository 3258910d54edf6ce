/* gemm_f32.cu - y (+)= gate * (x W^T + bias), W float32: chains of multiply-adds of F32_CHAIN k.
 *
 * k is cut at multiples of F32_CHAIN; each part is one chain of fused multiply-adds from 0 in the
 * order of k, and the chains are added in their order, both in float32. So the sums are those of
 * the vector tiers of the CPU (kernels/panels/gemm_f32.inc), bit by bit, whatever the tile. A block
 * makes CHAINS of them side by side, each by threads of its own: with few rows there is no other
 * work for them. Small devices have next to no float64; bf16 terms of both operands have a wider
 * bound of the error (doc/decisions/043-no-float64-on-a-gpu.md). */
#include "kernels/cuda/gemm_choice.h"
#include "kernels/cuda/lang.cuh"

/* A block's COLUMNS x ROWS outputs, M x N of them a thread. In shared memory a line is F32_CHAIN k
 * of a column of W or of a row of x; each chain of a step has all lines of the tile. */
template <int COLUMNS_, int ROWS_, int M_, int N_, int CHAINS_, int STAGES_> struct tile {
    enum : int {
        COLUMNS = COLUMNS_,
        ROWS = ROWS_,
        M = M_,
        N = N_,
        CHAINS = CHAINS_,
        STAGES = STAGES_,
        K = CHAINS * F32_CHAIN,
        ACROSS = COLUMNS / M,
        OF_CHAIN = ACROSS * (ROWS / N), /* threads */
        THREADS = OF_CHAIN * CHAINS,
        LINE = F32_CHAIN + 4, /* floats: eight lanes on neighbouring lines meet no bank conflict */
        LINES = COLUMNS + ROWS,
        STAGE = CHAINS * LINES * LINE,
        OUTS = COLUMNS * ROWS,
        SUMS = CHAINS > 1 ? CHAINS *OUTS : 0, /* of chains, on their way to each other */
        OF_THREAD = OUTS / THREADS,           /* outputs that a thread finishes */
        SHARED = (STAGES * STAGE + SUMS) * 4
    };
    static_assert(SHARED <= 99 * 1024, "more than a block has on small devices");
};

/* Rows of floats; those in `wide` begin at 16 bytes. Beyond k a line is `pad`. */
struct floats {
    const float *at;
    int ld, rows, k;
    bool wide;
    float pad;
};

/* COUNT lines of a stage from line FIRST on: rows `row` .. of `from`, columns k .. k + K - 1. */
template <class T, int FIRST, int COUNT>
static __device__ __forceinline__ void fetch(float *stage, const struct floats &from, int row,
                                             int k)
{
    TEC_UNROLL
    for (int c = (int)threadIdx.x; c < COUNT * (T::K / 4); c += T::THREADS) {
        int line = c / (T::K / 4), in = c % (T::K / 4) * 4, left = from.k - (k + in);
        float *to = stage + (in / F32_CHAIN * T::LINES + FIRST + line) * T::LINE + in % F32_CHAIN;
        bool valid = row + line < from.rows && left > 0;
        const float *quad = from.at;
        if (valid)
            quad += (size_t)(row + line) * (size_t)from.ld + (size_t)(k + in);
        if (from.wide && (!valid || left >= 4))
            copy16_async(to, quad, valid);
        else
            for (int i = 0; i < 4; i++)
                to[i] = valid && i < left ? quad[i] : from.pad;
    }
}

/* c = the first `quads` of four k of a chain, from 0 on. */
template <class T>
static __device__ __forceinline__ void multiply(float (&c)[T::N][T::M], const float *lines,
                                                int quads)
{
    int thread = (int)threadIdx.x % T::OF_CHAIN;
    const float *w = lines + thread % T::ACROSS * T::LINE;
    const float *x = lines + (T::COLUMNS + thread / T::ACROSS) * T::LINE;
    TEC_UNROLL
    for (int j = 0; j < T::N; j++) {
        TEC_UNROLL
        for (int i = 0; i < T::M; i++)
            c[j][i] = 0.0F;
    }
    TEC_UNROLL_BY(1)
    for (int q = 0; q < quads; q++, w += 4, x += 4) {
        float4 of_w[T::M];
        TEC_UNROLL
        for (int i = 0; i < T::M; i++)
            of_w[i] = *reinterpret_cast<const float4 *>(w + i * T::ACROSS * T::LINE);
        TEC_UNROLL
        for (int j = 0; j < T::N; j++) {
            float4 v = *reinterpret_cast<const float4 *>(x + j * (T::ROWS / T::N) * T::LINE);
            TEC_UNROLL
            for (int i = 0; i < T::M; i++) {
                float sum = fmaf(v.x, of_w[i].x, c[j][i]);
                sum = fmaf(v.y, of_w[i].y, sum);
                sum = fmaf(v.z, of_w[i].z, sum);
                c[j][i] = fmaf(v.w, of_w[i].w, sum);
            }
        }
    }
}

/* Output `at` of a thread's is row_of() and column_of() of the tile. Where a thread has a chain of
 * a block's CHAINS, it finishes other outputs than it multiplied. */
template <class T> static __device__ __forceinline__ int row_of(int at)
{
    return T::CHAINS > 1 ? (at * T::THREADS + (int)threadIdx.x) / T::COLUMNS
                         : (int)threadIdx.x / T::ACROSS + at / T::M * (T::ROWS / T::N);
}
template <class T> static __device__ __forceinline__ int column_of(int at)
{
    return T::CHAINS > 1 ? (at * T::THREADS + (int)threadIdx.x) % T::COLUMNS
                         : (int)threadIdx.x % T::ACROSS + at % T::M * T::ACROSS;
}

/* total += the chains of a step in their order, `chains` of them; the first one is the total. */
template <class T>
static __device__ __forceinline__ void fold(float (&total)[T::OF_THREAD],
                                            const float (&c)[T::N][T::M], float *sums, int chains,
                                            bool first)
{
    if (T::CHAINS == 1) {
        TEC_UNROLL
        for (int at = 0; at < T::OF_THREAD; at++) {
            float sum = c[at / T::M % T::N][at % T::M];
            total[at] = first ? sum : __fadd_rn(total[at], sum);
        }
        return;
    }
    int thread = (int)threadIdx.x % T::OF_CHAIN;
    float *mine = sums + (int)threadIdx.x / T::OF_CHAIN * T::OUTS +
                  thread / T::ACROSS * T::COLUMNS + thread % T::ACROSS;
    TEC_UNROLL
    for (int j = 0; j < T::N; j++) {
        TEC_UNROLL
        for (int i = 0; i < T::M; i++)
            mine[j * (T::ROWS / T::N) * T::COLUMNS + i * T::ACROSS] = c[j][i];
    }
    __syncthreads();
    TEC_UNROLL
    for (int at = 0; at < T::OF_THREAD; at++) {
        const float *from = sums + at * T::THREADS + (int)threadIdx.x;
        for (int s = 0; s < chains; s++, from += T::OUTS)
            total[at] = first && s == 0 ? *from : __fadd_rn(total[at], *from);
    }
}

static __device__ __forceinline__ void finish(const tec_gemm_args &a, int r, int column, float v,
                                              bool fixed)
{
    if (a.bias)
        v = __fadd_rn(v, a.bias[column]);
    const float *gate = fixed ? a.fixed_gate : a.gate;
    if (gate)
        v = __fmul_rn(v, gate[column]);
    float *y = a.y + (size_t)r * (size_t)a.ldy + (size_t)column;
    *y = a.add ? __fadd_rn(*y, v) : v;
}

template <class T>
static __global__ void __launch_bounds__(T::THREADS) gemm_kernel(struct tec_gemm_args a, bool wide)
{
    TEC_SHARED(float, shared);
    float *sums = shared + T::STAGES * T::STAGE;
    int row = (int)blockIdx.x * T::ROWS, column = (int)blockIdx.y * T::COLUMNS;
    int steps = ceil_div(a.k, T::K);
    /* 0 times -0 beyond k, added, changes no sum, be it a zero of either sign. */
    struct floats w = {static_cast<const float *>(a.w), a.k, a.n, a.k, a.k % 4 == 0, -0.0F};
    struct floats x = {a.x, a.ldx, 0, a.k, wide, 0.0F};
    for (int s = 0; s < T::STAGES - 1 && s < steps; s++)
        fetch<T, 0, T::COLUMNS>(shared + s * T::STAGE, w, column, s * T::K);
    wait_previous();
    release_next();
    int fixed = a.fixed ? *a.fixed : 0;
    x.rows = live_count(a.rows, a.max_rows);
    if (row >= x.rows) {
        copy_commit();
        copy_wait<0>();
        return;
    }
    for (int s = 0; s < T::STAGES - 1; s++) {
        if (s < steps)
            fetch<T, T::COLUMNS, T::ROWS>(shared + s * T::STAGE, x, row, s * T::K);
        copy_commit();
    }
    float total[T::OF_THREAD] = {}, c[T::N][T::M];
    for (int step = 0; step < steps; step++) {
        int next = step + T::STAGES - 1, k = step * T::K;
        copy_wait<T::STAGES - 2>();
        __syncthreads();
        if (next < steps) {
            float *stage = shared + next % T::STAGES * T::STAGE;
            fetch<T, 0, T::COLUMNS>(stage, w, column, next * T::K);
            fetch<T, T::COLUMNS, T::ROWS>(stage, x, row, next * T::K);
        }
        copy_commit();
        int chain = (int)threadIdx.x / T::OF_CHAIN, left = a.k - (k + chain * F32_CHAIN);
        multiply<T>(c, shared + step % T::STAGES * T::STAGE + chain * T::LINES * T::LINE,
                    min(max(ceil_div(left, 4), 0), F32_CHAIN / 4));
        fold<T>(total, c, sums, min(ceil_div(a.k - k, F32_CHAIN), (int)T::CHAINS), step == 0);
    }
    TEC_UNROLL
    for (int at = 0; at < T::OF_THREAD; at++) {
        int r = row + row_of<T>(at), to = column + column_of<T>(at);
        if (r < x.rows && to < a.n)
            finish(a, r, to, total[at], r < fixed);
    }
}

template <class T> static void start(const struct tec_gemm_args *a, struct tec_cuda_launch *launch)
{
    dim3 grid((unsigned)ceil_div(a->max_rows, T::ROWS), (unsigned)ceil_div(a->n, T::COLUMNS));
    tec_cuda_start(launch, gemm_kernel<T>, grid, dim3(T::THREADS), T::SHARED, *a,
                   floats_aligned(a->x, a->ldx));
}

#define F32_TILE(name, columns, rows, m, n, chains, stages, ...)               \
    typedef tile<columns, rows, m, n, chains, stages> name;                    \
    static_assert((int)name::SHARED == gemm_tiles[GEMM_##name].shared &&       \
                      (int)name::THREADS == gemm_tiles[GEMM_##name].threads && \
                      (int)name::K == gemm_tiles[GEMM_##name].k,               \
                  "gemm_choice.h counts with the same");
#include "kernels/cuda/gemm_tiles.def"

void tec_cuda_gemm_f32(const struct tec_gemm_args *a, struct tec_cuda_launch *launch)
{
    struct tec_cuda_facts facts = tec_cuda_facts_of(launch);
    if (f32_choose(a->n, a->max_rows, &facts) == GEMM_f32_large)
        start<f32_large>(a, launch);
    else
        start<f32_small>(a, launch);
}
