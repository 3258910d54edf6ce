/* gemm_kernel.cuh - the kernel of products with bf16 weights, for any finish, and how it is
 * started.
 *
 * A finish has: PAIRS, whether places 2 i and 2 i + 1 of a tile's panels are wanted by one thread;
 * places(), how many panels the product takes; panel(place), which of the matrix that is, n / 16 or
 * more for none; run(), which gets each thread's sums once (gemm_finish.cuh). A front is what x
 * goes through before it is multiplied (gemm_norm.cuh). */
#pragma once

#include "kernels/cuda/gemm_finish.cuh"
#include "kernels/cuda/gemm_norm.cuh"

#include <type_traits>

/* The inputs of a block: its columns and rows, from its first block of 16 k on. */
template <class S, class Finish, class Front> struct feed {
    const struct tec_gemm_args &a;
    const Finish &finish;
    const Front &front;
    unsigned char *shared;
    int tile, first, live; /* of columns; row; rows */
    int at, blocks, steps;

    __device__ __forceinline__ unsigned char *stage(int step) const
    {
        return shared + step % S::STAGES * S::STAGE;
    }
    __device__ __forceinline__ int panel(int p) const
    {
        return finish.panel(tile * S::PANELS + p);
    }
    __device__ __forceinline__ void weights(int step) const
    {
        if (step < steps)
            fetch_weights<S>(stage(step), a.w, a.n / 16, blocks, at + step * S::STEP,
                             [this](int p) { return panel(p); });
    }
    __device__ __forceinline__ void rows(int step) const
    {
        if (step >= steps)
            return;
        int k = (at + step * S::STEP) * 16;
        fetch_rows<S>(stage(step), a, first, live, k);
        front.template fetch<S>(stage(step), k);
    }
};

/* The steps up to `stop`, while those STAGES - 1 ahead are fetched. */
template <class S, class Feed, class Lane>
static __device__ __forceinline__ int run_steps(sums<S::M, S::N> &c, const Feed &feed,
                                                const Lane &front, int step, int stop, bool live)
{
    for (; step < stop; step++) {
        copy_wait<S::STAGES - 2>();
        __syncthreads();
        feed.weights(step + S::STAGES - 1);
        feed.rows(step + S::STAGES - 1);
        copy_commit();
        if (live)
            multiply<S>(c, feed.stage(step), front);
    }
    return step;
}

/* A block's work. Blocks: rows (those that share weights run together), columns, splits. */
template <class S, class Finish, class Front, bool WALK>
static __device__ __forceinline__ void
multiply_tile(const struct tec_gemm_args &a, const Finish &finish, const Front &front,
              const struct split &split, const struct exchange &exchange)
{
    TEC_SHARED(unsigned char, shared);
    int part = (int)blockIdx.z, at = part * split.each;
    int end = WALK ? split.blocks : min(at + split.each, split.blocks);
    struct feed<S, Finish, Front> feed = {
        a, finish, front, shared, 0, 0, 0, at, split.blocks, 0
    };
    feed.tile = (int)blockIdx.y;
    feed.first = (int)blockIdx.x * S::ROWS;
    feed.steps = ceil_div(end - at, S::STEP);
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
    auto lane = front.template measure<S>(shared, feed.first, rows.live, mine);
    sums<S::M, S::N> c, total;
    for (int step = 0, s = 1; step < feed.steps; s++) {
        clear(c);
        int stop = WALK ? min(s * split.each / S::STEP, feed.steps) : feed.steps;
        step = run_steps<S>(c, feed, lane, step, stop, groups > 0);
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

/* Code for sm_90a has the kernels of gemm_groups_kernel.cuh instead; these are not started there.
 */
template <class S, class Finish, bool WALK>
static __global__ void __launch_bounds__(S::THREADS, S::resident(WALK))
    gemm_kernel(struct tec_gemm_args a, Finish finish, struct split split, struct exchange exchange)
{
#ifndef __CUDA_ARCH_FEAT_SM90_ALL
    multiply_tile<S, Finish, no_front, WALK>(a, finish, no_front(), split, exchange);
#endif
}

template <class S, class Finish>
static __global__ void __launch_bounds__(S::THREADS, S::resident(false))
    gemm_normed_kernel(struct tec_gemm_args a, Finish finish, struct norm_front front,
                       struct split split, struct exchange exchange)
{
#ifndef __CUDA_ARCH_FEAT_SM90_ALL
    multiply_tile<normed_tile<S>, Finish, norm_front, false>(a, finish, front, split, exchange);
#endif
}

/* terms, warps across and down, blocks and groups of a warp, k of a step, stages */
enum { TERMS = 2 };
typedef shape<TERMS, 4, 1, 1, 1, 64, 6> rows_8;
typedef shape<TERMS, 2, 1, 2, 1, 64, 6> rows_8_pairs;
typedef shape<TERMS, 2, 2, 2, 1, 64, 6> rows_16;
typedef shape<TERMS, 2, 2, 2, 2, 64, 5> rows_32;
typedef shape<TERMS, 2, 4, 2, 2, 32, 6> rows_64_narrow;
typedef shape<TERMS, 4, 2, 2, 4, 32, 5> rows_64;
typedef shape<TERMS, 2, 4, 4, 4, 32, 3> rows_128;
/* Many rows of bf16 values; with few, weights decide the time. */
typedef shape<1, 4, 2, 2, 4, 32, 5> rounded_rows_64;
typedef shape<1, 2, 4, 4, 4, 32, 3> rounded_rows_128;

/* One product that is to be started; NORM: its x is norm's output, and a is that of norm. */
template <class Finish, bool NORM = false> struct product {
    const struct tec_gemm_args *a;
    Finish finish;
    struct split split;
    struct tec_cuda_launch *launch;
    struct norm_front norm = {};

    template <class S> dim3 grid() const
    {
        return dim3((unsigned)ceil_div(a->max_rows, S::ROWS),
                    (unsigned)ceil_div(finish.places(), S::PANELS), (unsigned)split.count);
    }
    template <class S> int tiles() const
    {
        return (int)(grid<S>().x * grid<S>().y);
    }
    /* Blocks for the splits, where there is room for their sums. */
    template <class S> bool fits() const
    {
        size_t all = (size_t)tiles<S>() * (size_t)split.count;
        bool room = all * S::COLUMNS * S::ROWS * sizeof(float) <= launch->partials_size;
        return split.count == 1 || (room && tiles<S>() <= TEC_CUDA_TICKETS);
    }
    template <class S, bool WALK> void start() const
    {
        struct exchange exchange = {reinterpret_cast<float4 *>(launch->partials), launch->tickets};
        dim3 blocks = grid<S>(), threads(S::THREADS);
        if (WALK)
            blocks.z = 1;
        if constexpr (NORM)
            tec_cuda_start(launch, gemm_normed_kernel<S, Finish>, blocks, threads,
                           normed_tile<S>::SHARED, *a, finish, norm, split, exchange);
        else
            tec_cuda_start(launch, gemm_kernel<S, Finish, WALK>, blocks, threads, S::SHARED, *a,
                           finish, split, exchange);
    }
    /* Up to 32 rows; false: not done. */
    bool start_few() const
    {
        typedef std::conditional_t<Finish::PAIRS, rows_8_pairs, rows_8> rows_8;
        if (a->max_rows <= 8 && fits<rows_8>())
            start<rows_8, false>();
        else if (a->max_rows <= 16 && fits<rows_16>())
            start<rows_16, false>();
        else if (a->max_rows <= 32 && fits<rows_32>())
            start<rows_32, false>();
        else
            return false;
        return true;
    }
    /* Tiles of 64 rows, splits as blocks; false: not done. */
    template <class S64> bool start_64() const
    {
        bool idle = a->max_rows <= 64 || tiles<S64>() * 2 <= launch->processors;
        if (tiles<S64>() * split.count < launch->processors && fits<rows_64_narrow>())
            start<rows_64_narrow, false>();
        else if (split.count == 1 || (idle && fits<S64>()))
            start<S64, false>();
        else
            return false;
        return true;
    }
    /* Any number. Tiles are as large as leaves no processor idle; splits become blocks with few
     * rows, and with many where tiles alone would leave half of the device idle. */
    template <class S64, class S128> void start_many() const
    {
        if (a->max_rows > 64 && tiles<S128>() >= launch->processors) {
            if (split.count == 1)
                start<S128, false>();
            else
                start<S128, true>();
        } else if (!start_64<S64>()) {
            start<S64, true>();
        }
    }
};
