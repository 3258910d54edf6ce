/* gemm_terms.cuh - products by warp groups of many rows (sm_90a): the terms of x lie ready in
 * device memory (row_terms.h), so that weights and rows come by bulk copies alone.
 *
 * A block works on ACROSS x 128 columns and 8 N rows. For each 128 columns two warp groups
 * multiply: one has the upper halves of the eight panels, the other the lower halves, each with all
 * rows of the block. One warp more starts the copies. A stage is TERMS_K columns of x with their
 * weights; its two barriers say that it is there, and that it has been used.
 *
 * The order of k, the order of terms and the splits are those of gemm_groups.cuh: a row has the
 * same bytes here. A block walks over all splits, with a running total beside the sums of one. */
#pragma once

#include "kernels/cuda/gemm_groups.cuh"
#include "kernels/cuda/row_terms.h"

template <int TERMS_, int N_, int ACROSS_, int STAGES_, int RESIDENT_> struct terms_shape {
    enum : int {
        TERMS = TERMS_,
        N = N_, /* groups of 8 rows */
        ACROSS = ACROSS_,
        STAGES = STAGES_,
        RESIDENT = RESIDENT_, /* blocks of a multiprocessor */
        PANELS = 8 * ACROSS,
        COLUMNS = PANELS * 16,
        ROWS = N * 8,
        K = TERMS_K,
        STEP = K / 16,
        SUMMING = ACROSS * 2 * 4 * WARP,
        THREADS = SUMMING + WARP,
        PIECE = K * 16 * 2,
        SLAB = TERMS * TERM_BYTES, /* bytes of 8 rows */
        WEIGHTS = PANELS * PIECE,
        STAGE = WEIGHTS + N * SLAB,
        BARRIERS_AT = STAGES * STAGE,
        SHARED = BARRIERS_AT + 2 * STAGES * 8
    };
    static_assert(STEP_BLOCKS % STEP == 0, "a split is whole steps");
    static_assert(ROWS % TERMS_ROWS == 0, "rows come in whole pieces");
    static_assert(RESIDENT * SHARED <= 227 * 1024, "more than a multiprocessor has");
};

/* Where a block's rows and columns are. */
struct terms_work {
    int tile, first, live; /* of columns; row; rows */
    int in;                /* the first row among those whose terms are there */
    int blocks, steps;     /* of 16 k; of the walk */
};

template <class S> struct terms_stages {
    unsigned char *shared;

    __device__ __forceinline__ unsigned char *stage(int step) const
    {
        return shared + step % S::STAGES * S::STAGE;
    }
    __device__ __forceinline__ barrier *there(int step) const
    {
        return reinterpret_cast<barrier *>(shared + S::BARRIERS_AT) + step % S::STAGES;
    }
    __device__ __forceinline__ barrier *used(int step) const
    {
        return there(step) + S::STAGES;
    }
    /* By one thread. */
    __device__ __forceinline__ void init() const
    {
        for (int s = 0; s < S::STAGES; s++) {
            barrier_init(there(s), 1);
            barrier_init(used(s), S::SUMMING / WARP);
        }
        barriers_ready();
    }
    __device__ __forceinline__ void wait_there(int step) const
    {
        barrier_wait(there(step), step / S::STAGES % 2);
    }
    __device__ __forceinline__ void wait_used(int step) const
    {
        barrier_wait(used(step), (step / S::STAGES + 1) % 2);
    }
};

/* The warp that starts copies: a lane for each panel of weights, one for each 64 rows. Panels
 * beyond n do not come, and nobody looks at their sums; of the last step only whole blocks of 16 k
 * are multiplied. */
template <class S> struct terms_copier {
    enum : int { TOGETHER = PIECES * S::SLAB, ROW_LANE = 16 };
    const struct terms_stages<S> &stages;
    const unsigned char *from; /* of this lane, at step 0; NULL: it has nothing to copy */
    int lane, panels, blocks;

    template <class Finish>
    __device__ __forceinline__ terms_copier(const struct terms_stages<S> &stages_,
                                            const tec_gemm_args &a, const Finish &finish,
                                            const unsigned char *terms,
                                            const struct terms_work &work)
        : stages(stages_), from(NULL), lane((int)threadIdx.x % WARP), blocks(work.blocks)
    {
        static_assert((int)S::PANELS <= (int)ROW_LANE, "a lane for each");
        int panel = lane < S::PANELS ? finish.panel(work.tile * S::PANELS + lane) : a.n / 16;
        bool weights = panel < a.n / 16;
        panels = __popc(__ballot_sync(ALL_LANES, weights));
        if (weights)
            from = (const unsigned char *)a.w + (size_t)panel * (size_t)blocks * 512;
        size_t rows = (size_t)(work.in / TERMS_ROWS + lane - ROW_LANE);
        if (lane >= ROW_LANE && lane < ROW_LANE + S::ROWS / TERMS_ROWS)
            from = terms + rows * (size_t)work.steps * TOGETHER;
    }
    __device__ __forceinline__ void bring(int step) const
    {
        unsigned char *stage = stages.stage(step);
        barrier *b = stages.there(step);
        int bytes = min(blocks - step * S::STEP, (int)S::STEP) * 512;
        if (lane == 0)
            barrier_expect(b, panels * bytes + S::N * S::SLAB);
        __syncwarp();
        if (from && lane < ROW_LANE)
            copy_bulk(stage + lane * S::PIECE, from + (size_t)step * S::STEP * 512, bytes, b);
        else if (from)
            copy_bulk(stage + S::WEIGHTS + (lane - ROW_LANE) * TOGETHER,
                      from + (size_t)step * TOGETHER, TOGETHER, b);
    }
};

/* Products of block b of 16 k, begun; the small term goes first. */
template <class S>
static __device__ __forceinline__ void begin_terms(float (&c)[S::N][4], const unsigned char *stage,
                                                   int group, int b)
{
    const unsigned char *w = stage + group / 2 * (8 * S::PIECE) + group % 2 * 128 + b * 512;
    const unsigned char *x = stage + S::WEIGHTS + b * 256;
    TEC_UNROLL
    for (int term = S::TERMS - 1; term >= 0; term--)
        product_async(c, shared_matrix(w, 256, S::PIECE),
                      shared_matrix(x + term * TERM_BYTES, 128, S::SLAB));
}

/* A step's products, begun. */
template <class S>
static __device__ __forceinline__ void begin_whole(float (&c)[S::N][4], const unsigned char *stage,
                                                   int group)
{
    products_hold(c);
    products_begin();
    TEC_UNROLL
    for (int b = 0; b < S::STEP; b++)
        begin_terms<S>(c, stage, group, b);
    products_commit();
}

/* The last step of a matrix may have fewer blocks: one after the other. */
template <class S>
static __device__ __forceinline__ void multiply_few(float (&c)[S::N][4], const unsigned char *stage,
                                                    int group, int blocks)
{
    TEC_UNROLL_BY(1)
    for (int b = 0; b < blocks; b++) {
        products_hold(c);
        products_begin();
        begin_terms<S>(c, stage, group, b);
        products_commit();
        products_wait<0>();
    }
}

/* The steps from `step` to `stop` into c, which begins at zero; returns the next one. */
template <class S>
static __device__ __forceinline__ int sum_split(float (&c)[S::N][4],
                                                const struct terms_stages<S> &stages,
                                                const struct terms_work &work, int step, int stop)
{
    int group = (int)threadIdx.x / (4 * WARP), lane = (int)threadIdx.x % WARP;
    int whole = work.blocks / S::STEP, from = step;
    TEC_UNROLL
    for (int j = 0; j < S::N; j++) {
        TEC_UNROLL
        for (int e = 0; e < 4; e++)
            c[j][e] = 0.0F;
    }
    for (; step < min(stop, whole); step++) {
        stages.wait_there(step);
        begin_whole<S>(c, stages.stage(step), group);
        products_wait<1>();
        if (step > from && lane == 0)
            barrier_arrive(stages.used(step - 1));
    }
    products_wait<0>();
    products_hold(c);
    if (step > from && lane == 0)
        barrier_arrive(stages.used(step - 1));
    if (step == whole && step < stop) {
        stages.wait_there(step);
        multiply_few<S>(c, stages.stage(step), group, work.blocks % S::STEP);
        products_hold(c);
        step++; /* nobody waits for this stage */
    }
    return step;
}

/* The sums of all splits, in their order. Without WALK there is one. */
template <class S, bool WALK>
static __device__ __forceinline__ void
sum_all(float (&total)[S::N][4], const struct terms_stages<S> &stages,
        const struct terms_work &work, const struct split &split)
{
    if constexpr (!WALK) {
        sum_split<S>(total, stages, work, 0, work.steps);
    } else {
        float c[S::N][4];
        for (int step = 0, s = 1; step < work.steps; s++) {
            step = sum_split<S>(c, stages, work, step, min(s * split.each / S::STEP, work.steps));
            TEC_UNROLL
            for (int j = 0; j < S::N; j++) {
                TEC_UNROLL
                for (int e = 0; e < 4; e++)
                    total[j][e] = s == 1 ? c[j][e] : total[j][e] + c[j][e];
            }
        }
    }
}

/* A block's work. Blocks: rows (those that share weights run together), columns. `base`: the row
 * whose terms come first. */
template <class S, class Finish, bool WALK>
static __device__ __forceinline__ void
multiply_terms(const struct tec_gemm_args &a, const Finish &finish, const struct split &split,
               const unsigned char *terms, int base)
{
    TEC_SHARED(unsigned char, shared);
    struct terms_stages<S> stages = {
        shared
    };
    struct terms_work work = {};
    work.tile = (int)blockIdx.y;
    work.in = (int)blockIdx.x * S::ROWS;
    work.first = base + work.in;
    work.blocks = split.blocks;
    work.steps = ceil_div(split.blocks, (int)S::STEP);
    if ((int)threadIdx.x == S::SUMMING)
        stages.init();
    __syncthreads();
    wait_previous();
    release_next();
    struct rows rows = live_rows(a);
    if (work.first >= rows.live)
        return;
    if ((int)threadIdx.x >= S::SUMMING) {
        struct terms_copier<S> copier(stages, a, finish, terms, work);
        for (int step = 0; step < work.steps; step++) {
            stages.wait_used(step);
            copier.bring(step);
        }
        return;
    }
    float total[S::N][4];
    sum_all<S, WALK>(total, stages, work, split);
    int warp = (int)threadIdx.x / WARP, group = warp / 4, taken[2];
    TEC_UNROLL
    for (int i = 0; i < 2; i++)
        taken[i] = finish.panel(work.tile * S::PANELS + group / 2 * 8 + warp % 4 * 2 + i);
    finish.template half<2, S::N>(group % 2, taken, work.first, rows,
                                  [&](int i, int j, int e) { return total[j][i * 2 + e]; });
}

/* Code for other devices has no such instructions, and is never started. */
template <class S, class Finish, bool WALK>
static __global__ void __launch_bounds__(S::THREADS, S::RESIDENT)
    gemm_terms_kernel(struct tec_gemm_args a, Finish finish, struct split split,
                      const unsigned char *terms, int base)
{
#if TEC_WARP_GROUPS
    multiply_terms<S, Finish, WALK>(a, finish, split, terms, base);
#endif
}

#define TERMS_TILE(name, n, across, stages, resident, ...)                               \
    template <int TERMS> struct name : terms_shape<TERMS, n, across, stages, resident> { \
    };                                                                                   \
    static_assert((int)name<2>::SHARED == gemm_tiles[GEMM_##name].shared &&              \
                      (int)name<2>::THREADS == gemm_tiles[GEMM_##name].threads,          \
                  "gemm_choice.h counts with the same");
#include "kernels/cuda/gemm_tiles.def"
