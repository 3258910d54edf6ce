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

/* A block's work. Blocks: rows (those that share weights run together), columns, splits. Without
 * blocks for them it walks over the splits, be there many or one: asked at run time, a kernel for
 * each was half of what took long to compile. */
template <class S, class Finish, class Front>
static __device__ __forceinline__ void
multiply_tile(const struct tec_gemm_args &a, const Finish &finish, const Front &front,
              const struct split &split, const struct exchange &exchange)
{
    TEC_SHARED(unsigned char, shared);
    int part = (int)blockIdx.z, at = part * split.each;
    bool walk = S::WALKS && gridDim.z == 1;
    int end = walk ? split.blocks : min(at + split.each, split.blocks);
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
    struct rows rows = live_rows(a);
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
        int stop = walk ? min(s * split.each / S::STEP, feed.steps) : feed.steps;
        step = run_steps<S>(c, feed, lane, step, stop, groups > 0);
        if (S::WALKS)
            fold(total, c, s == 1);
    }
    sums<S::M, S::N> &all = S::WALKS ? total : c;
    if (S::SHARES && !walk && split.count > 1 &&
        !gather<S::M, S::N, S::THREADS>(all, exchange, feed.tile * (int)gridDim.x + (int)blockIdx.x,
                                        part, split.count, groups))
        return;
    int taken[S::M];
    TEC_UNROLL
    for (int i = 0; i < S::M; i++)
        taken[i] = feed.panel(warp % S::ACROSS * S::M + i);
    finish.run(all, taken, mine, rows);
}

/* Code for sm_90a has the kernels of gemm_groups_kernel.cuh instead; these are not started there.
 */
template <class S, class Finish>
static __global__ void __launch_bounds__(S::THREADS, S::RESIDENT)
    gemm_kernel(struct tec_gemm_args a, Finish finish, struct split split, struct exchange exchange)
{
#ifndef __CUDA_ARCH_FEAT_SM90_ALL
    multiply_tile<S, Finish, no_front>(a, finish, no_front(), split, exchange);
#endif
}

template <class S, class Finish>
static __global__ void __launch_bounds__(S::THREADS, S::RESIDENT)
    gemm_normed_kernel(struct tec_gemm_args a, Finish finish, struct norm_front front,
                       struct split split, struct exchange exchange)
{
#ifndef __CUDA_ARCH_FEAT_SM90_ALL
    multiply_tile<normed_tile<S>, Finish, norm_front>(a, finish, front, split, exchange);
#endif
}

enum { TERMS = 2 };
#define MMA_TILE(name, terms, across, down, m, n, k, stages, ...)            \
    typedef shape<terms, across, down, m, n, k, stages> name;                \
    static_assert((int)name::SHARED == gemm_tiles[GEMM_##name].shared &&     \
                      (int)name::THREADS == gemm_tiles[GEMM_##name].threads, \
                  "gemm_choice.h counts with the same");
#include "kernels/cuda/gemm_tiles.def"

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
    template <class S> bool start(bool walk) const
    {
        struct exchange exchange = {reinterpret_cast<float4 *>(launch->partials), launch->tickets};
        dim3 blocks = grid<S>(), threads(S::THREADS);
        if (walk)
            blocks.z = 1;
        if constexpr (NORM)
            tec_cuda_start(launch, gemm_normed_kernel<S, Finish>, blocks, threads,
                           normed_tile<S>::SHARED, *a, finish, norm, split, exchange);
        else
            tec_cuda_start(launch, gemm_kernel<S, Finish>, blocks, threads, S::SHARED, *a, finish,
                           split, exchange);
        return true;
    }
    /* Start the tile that was chosen; false: none was. */
    template <bool FEW, class S64, class S128> bool start_chosen(const struct gemm_choice &c) const
    {
        typedef std::conditional_t<Finish::PAIRS, rows_8_pairs, rows_8> rows_8;
        if constexpr (FEW) {
            if (c.tile == GEMM_rows_8 || c.tile == GEMM_rows_8_pairs)
                return start<rows_8>(false);
            if (c.tile == GEMM_rows_16)
                return start<rows_16>(false);
            if (c.tile == GEMM_rows_32)
                return start<rows_32>(false);
        }
        if (c.tile == GEMM_rows_64_narrow)
            return start<rows_64_narrow>(false);
        if (c.tile == GEMM_rows_64 || c.tile == GEMM_rounded_rows_64)
            return start<S64>(c.walk);
        if constexpr (!NORM)
            return c.tile != GEMM_NONE && start<S128>(c.walk);
        return false;
    }
};
