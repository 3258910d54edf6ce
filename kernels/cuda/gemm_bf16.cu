/* gemm_bf16.cu - y (+)= gate * (x W^T + bias) on tensor cores, W bf16, x float32 in two terms. */
#include "kernels/cuda/gemm_finish.cuh"

/* What a block fetches: its columns and rows, from its first block of 16 k on. */
template <class S, class Finish> struct feed {
    const struct tec_gemm_args &a;
    const Finish &finish;
    unsigned char *shared;
    int tile, first, live; /* of columns; row; rows */
    int at, blocks, steps;

    __device__ __forceinline__ unsigned char *stage(int step) const
    {
        return shared + step % S::STAGES * S::STAGE;
    }
    __device__ __forceinline__ int panel(int p) const
    {
        return finish.panel(tile, S::PANELS, p);
    }
    __device__ __forceinline__ void weights(int step) const
    {
        if (step < steps)
            fetch_weights<S>(stage(step), a.w, finish.panels(), blocks, at + step * S::STEP,
                             [this](int p) { return panel(p); });
    }
    __device__ __forceinline__ void rows(int step) const
    {
        if (step < steps)
            fetch_rows<S>(stage(step), a, first, live, (at + step * S::STEP) * 16);
    }
};

/* The steps up to `stop`, while those STAGES - 1 ahead are fetched. */
template <class S, class Feed>
static __device__ __forceinline__ int run_steps(sums<S::M, S::N> &c, const Feed &feed, int step,
                                                int stop, bool live)
{
    for (; step < stop; step++) {
        copy_wait<S::STAGES - 2>();
        __syncthreads();
        feed.weights(step + S::STAGES - 1);
        feed.rows(step + S::STAGES - 1);
        copy_commit();
        if (live)
            multiply<S>(c, feed.stage(step));
    }
    return step;
}

/* Blocks: rows (those that share weights run together), columns, splits. */
template <class S, class Finish, bool WALK>
static __global__ void __launch_bounds__(S::THREADS, WALK && S::M * S::N > 8 ? 1 : 2)
    gemm_kernel(struct tec_gemm_args a, Finish finish, struct split split, struct exchange exchange)
{
    TEC_SHARED(unsigned char, shared);
    int part = (int)blockIdx.z, at = part * split.each;
    int end = WALK ? split.blocks : min(at + split.each, split.blocks);
    struct feed<S, Finish> feed = {
        a, finish, shared, (int)blockIdx.y, (int)blockIdx.x *S::ROWS, 0, at, split.blocks,
            ceil_div(end - at, S::STEP)
    };
    bool early = feed.first == 0; /* rows that surely live do not wait for the count */
    for (int s = 0; early && s < S::STAGES - 1; s++)
        feed.weights(s);
    wait_previous();
    release_next();
    struct rows rows = {live_count(a.rows, a.max_rows), a.fixed ? *a.fixed : 0};
    feed.live = rows.live;
    if (feed.first >= rows.live) {
        copy_commit();
        copy_wait<0>();
        return;
    }
    for (int s = 0; s < S::STAGES - 1; s++) {
        if (!early)
            feed.weights(s);
        feed.rows(s);
        copy_commit();
    }
    int warp = (int)threadIdx.x / WARP, mine = feed.first + warp / S::ACROSS * (S::N * 8);
    int groups = ceil_div(rows.live - mine, 8);
    sums<S::M, S::N> c, total;
    for (int step = 0, s = 1; step < feed.steps; s++) {
        clear(c);
        int stop = WALK ? min(s * split.each / S::STEP, feed.steps) : feed.steps;
        step = run_steps<S>(c, feed, step, stop, groups > 0);
        if (WALK)
            fold(total, c, s == 1);
    }
    if (!WALK && split.count > 1 &&
        !gather<S::M, S::N, S::THREADS>(c, exchange, feed.tile * (int)gridDim.x + (int)blockIdx.x,
                                        part, split.count, groups))
        return;
    int taken[S::M];
    TEC_UNROLL
    for (int i = 0; i < S::M; i++)
        taken[i] = feed.panel(warp % S::ACROSS * S::M + i);
    finish.run(WALK ? total : c, taken, mine, rows);
}

/* How a launch covers the product. */
struct cover {
    int down, across; /* tiles of rows, of columns */
    struct split split;
    bool walk;
};

/* Splits become blocks of their own where there is room for their sums and, with many rows, where
 * tiles alone would leave half of the device idle. */
template <class S>
static struct cover cover_of(int n, int k, int max_rows, const struct tec_cuda_launch *launch)
{
    struct cover c = {ceil_div(max_rows, S::ROWS), ceil_div(n, S::COLUMNS), split_of(n, k), false};
    size_t tiles = (size_t)c.down * (size_t)c.across;
    size_t needed = tiles * (size_t)c.split.count * S::COLUMNS * S::ROWS * sizeof(float);
    bool room = needed <= launch->partials_size && tiles <= TEC_CUDA_TICKETS;
    bool idle = max_rows <= 64 || tiles * 2 <= (size_t)launch->processors;
    c.walk = c.split.count > 1 && !(room && idle);
    return c;
}

template <class S> static void start(const struct tec_gemm_args *a, struct tec_cuda_launch *launch)
{
    struct cover c = cover_of<S>(a->n, a->k, a->max_rows, launch);
    struct exchange exchange = {reinterpret_cast<float4 *>(launch->partials), launch->tickets};
    struct plain_finish finish = {*a};
    dim3 grid((unsigned)c.down, (unsigned)c.across, c.walk ? 1U : (unsigned)c.split.count);
    if (c.walk)
        tec_cuda_start(launch, gemm_kernel<S, plain_finish, true>, grid, dim3(S::THREADS),
                       S::SHARED, *a, finish, c.split, exchange);
    else
        tec_cuda_start(launch, gemm_kernel<S, plain_finish, false>, grid, dim3(S::THREADS),
                       S::SHARED, *a, finish, c.split, exchange);
}

/* terms, warps across and down, blocks and groups of a warp, k of a step, stages */
enum { TERMS = 2 };
typedef shape<TERMS, 4, 1, 1, 1, 64, 6> rows_8;
typedef shape<TERMS, 4, 1, 1, 2, 64, 6> rows_16;
typedef shape<TERMS, 4, 1, 1, 4, 64, 5> rows_32;
typedef shape<TERMS, 4, 2, 2, 4, 32, 5> rows_64;
typedef shape<TERMS, 2, 4, 4, 4, 32, 3> rows_128;

void tec_cuda_gemm_bf16(const struct tec_gemm_args *a, struct tec_cuda_launch *launch)
{
    int wide = ceil_div(a->max_rows, rows_128::ROWS) * ceil_div(a->n, rows_128::COLUMNS);
    if (a->max_rows <= 8)
        start<rows_8>(a, launch);
    else if (a->max_rows <= 16)
        start<rows_16>(a, launch);
    else if (a->max_rows <= 32)
        start<rows_32>(a, launch);
    else if (a->max_rows <= 64 || wide < launch->processors)
        start<rows_64>(a, launch);
    else
        start<rows_128>(a, launch);
}
