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
static __global__ void __launch_bounds__(S::THREADS, WALK &&S::M *S::N > 8 ? 1 : 2)
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

template <class S> static int tiles_of(const struct tec_gemm_args *a)
{
    return ceil_div(a->max_rows, S::ROWS) * ceil_div(a->n, S::COLUMNS);
}

/* Blocks for the splits, where there is room for their sums. */
template <class S> static bool fits(const struct tec_gemm_args *a, const struct tec_cuda_launch *l)
{
    int splits = split_of(a->n, a->k).count;
    size_t tiles = (size_t)tiles_of<S>(a);
    size_t size = tiles * (size_t)splits * S::COLUMNS * S::ROWS * sizeof(float);
    return splits == 1 || (size <= l->partials_size && tiles <= TEC_CUDA_TICKETS);
}

template <class S, bool WALK>
static void start(const struct tec_gemm_args *a, struct tec_cuda_launch *launch)
{
    struct split split = split_of(a->n, a->k);
    struct exchange exchange = {reinterpret_cast<float4 *>(launch->partials), launch->tickets};
    struct plain_finish finish = {*a};
    dim3 grid((unsigned)ceil_div(a->max_rows, S::ROWS), (unsigned)ceil_div(a->n, S::COLUMNS),
              WALK ? 1U : (unsigned)split.count);
    tec_cuda_start(launch, gemm_kernel<S, plain_finish, WALK>, grid, dim3(S::THREADS), S::SHARED,
                   *a, finish, split, exchange);
}

/* terms, warps across and down, blocks and groups of a warp, k of a step, stages */
enum { TERMS = 2 };
typedef shape<TERMS, 4, 1, 1, 1, 64, 6> rows_8;
typedef shape<TERMS, 4, 1, 1, 2, 64, 6> rows_16;
typedef shape<TERMS, 4, 1, 1, 4, 64, 5> rows_32;
typedef shape<TERMS, 4, 2, 2, 4, 32, 5> rows_64;
typedef shape<TERMS, 2, 4, 4, 4, 32, 3> rows_128;

/* With many rows splits become blocks where tiles alone would leave half of the device idle. */
static void start_many(const struct tec_gemm_args *a, struct tec_cuda_launch *launch)
{
    bool whole = split_of(a->n, a->k).count == 1;
    bool idle = a->max_rows <= 64 || tiles_of<rows_64>(a) * 2 <= launch->processors;
    if (a->max_rows > 64 && tiles_of<rows_128>(a) >= launch->processors) {
        if (whole)
            start<rows_128, false>(a, launch);
        else
            start<rows_128, true>(a, launch);
    } else if (whole || (idle && fits<rows_64>(a, launch))) {
        start<rows_64, false>(a, launch);
    } else {
        start<rows_64, true>(a, launch);
    }
}

void tec_cuda_gemm_bf16(const struct tec_gemm_args *a, struct tec_cuda_launch *launch)
{
    if (a->max_rows <= 8 && fits<rows_8>(a, launch))
        start<rows_8, false>(a, launch);
    else if (a->max_rows <= 16 && fits<rows_16>(a, launch))
        start<rows_16, false>(a, launch);
    else if (a->max_rows <= 32 && fits<rows_32>(a, launch))
        start<rows_32, false>(a, launch);
    else
        start_many(a, launch);
}
