/* gemm_groups.cuh - the stages of a product by warp groups (sm_90a): who brings what, who
 * multiplies.
 *
 * A warp group multiplies 64 columns of the product by 8 N rows at once, both from shared memory.
 * A block works on 128 columns. Its warps have roles: GROUPS groups of four multiply, three warps
 * bring rows of x, one brings weights. They meet at barriers in shared memory, three for each
 * stage: weights are there, rows are there, both have been used.
 *
 * Weights come as they are stored (TEC_MATRIX_TILES) by bulk copies, a panel's piece of a stage in
 * one; no thread touches them. Their blocks of 8 x 8 are what products read, so nothing is
 * swizzled. A product wants 8 of them at equal distances: the upper halves of the tile's eight
 * panels are one operand, the lower halves another, and the sums that a thread gets are those of
 * two panels as in gemm_finish.cuh.
 *
 * Rows are read as float32, pass their norm where there is one, and are written as two terms (or
 * one, where they hold bf16 values), in blocks of 8 x 8 too. A thread has the values of the next
 * step, and the norm's vectors at its columns, in registers while it writes those of this one. */
#pragma once

#include "kernels/cuda/gemm_finish.cuh"
#include "kernels/cuda/gemm_norm.cuh"

#ifdef __CUDACC__
#include "kernels/cuda/ptx_groups.cuh"
#else
#include <emulated_groups.h>
#endif

template <int TERMS_, int N_, int GROUPS_, int K_, int STAGES_> struct group_shape {
    enum : int {
        TERMS = TERMS_,
        N = N_, /* groups of 8 rows */
        GROUPS = GROUPS_,
        STAGES = STAGES_,
        PANELS = 8,
        COLUMNS = PANELS * 16,
        ROWS = GROUPS * N * 8,
        K = K_,
        STEP = K / 16, /* blocks of 16 k */
        SUMMING = GROUPS * 4 * WARP,
        BRINGING = 3 * WARP,
        THREADS = SUMMING + BRINGING + WARP,
        PIECE = K * 16 * 2, /* bytes of a panel's weights in a stage */
        CHUNKS = K / 8,
        SLAB = CHUNKS * 128, /* bytes of 8 rows of a term */
        WEIGHTS = PANELS * PIECE,
        TERM = ROWS / 8 * SLAB,
        STAGE = WEIGHTS + TERMS * TERM,
        BARRIERS_AT = STAGES * STAGE,
        SCALES_AT = BARRIERS_AT + 3 * STAGES * 8,
        SHARED = SCALES_AT + ROWS * 4,
        HELD = (ROWS * CHUNKS + BRINGING - 1) / BRINGING, /* eights of x in a thread */
        M = 2                                             /* panels of a thread's sums */
    };
    static_assert(STEP_BLOCKS % STEP == 0, "a split is whole steps");
    static_assert(2 * SHARED <= 227 * 1024, "more than a multiprocessor has");
};

/* A norm in front, or none. */
struct group_front {
    struct tec_norm_args a;
    int some;
    const float *left; /* as norm_front's */
};

/* Barriers of a stage. Both sides know a step's phase from its number. */
template <class S> struct stage_barriers {
    barrier *at;

    __device__ __forceinline__ barrier *weights(int step) const
    {
        return at + step % S::STAGES;
    }
    __device__ __forceinline__ barrier *rows(int step) const
    {
        return at + S::STAGES + step % S::STAGES;
    }
    __device__ __forceinline__ barrier *used(int step) const
    {
        return at + 2 * S::STAGES + step % S::STAGES;
    }
    /* By one thread. */
    __device__ __forceinline__ void init() const
    {
        for (int s = 0; s < S::STAGES; s++) {
            barrier_init(weights(s), 1);
            barrier_init(rows(s), S::BRINGING);
            barrier_init(used(s), S::GROUPS * 4);
        }
        barriers_ready();
    }
    __device__ __forceinline__ void wait_brought(int step) const
    {
        barrier_wait(weights(step), step / S::STAGES % 2);
        barrier_wait(rows(step), step / S::STAGES % 2);
    }
    /* Until the step that had this stage before is done with; at once for the first ones. */
    __device__ __forceinline__ void wait_used(int step) const
    {
        barrier_wait(used(step), (step / S::STAGES + 1) % 2);
    }
};

/* The place of a block's work. */
struct group_work {
    int tile, first, live;     /* of columns; row; rows */
    int at, end, blocks, step; /* blocks of 16 k: first, behind the last, of the matrix; steps */
};

/* The warp that brings weights, a lane for each panel. What is beyond n is not brought, and its
 * sums are not looked at. */
template <class S> struct weight_bringer {
    const unsigned char *from; /* of this lane's panel; NULL: it has none */
    int lane, panels;

    template <class Finish>
    __device__ __forceinline__ weight_bringer(const tec_gemm_args &a, const Finish &finish,
                                              const struct group_work &work)
        : from(NULL), lane((int)threadIdx.x % WARP)
    {
        int panel = lane < S::PANELS ? finish.panel(work.tile * S::PANELS + lane) : a.n / 16;
        bool is = panel < a.n / 16;
        panels = __popc(__ballot_sync(ALL_LANES, is));
        if (is)
            from = (const unsigned char *)a.w + (size_t)panel * (size_t)work.blocks * 512;
    }
    __device__ __forceinline__ void bring(unsigned char *stage, barrier *b,
                                          const struct group_work &work, int step) const
    {
        int at = work.at + step * S::STEP, bytes = min(work.end - at, (int)S::STEP) * 512;
        if (lane == 0)
            barrier_expect(b, panels * bytes);
        __syncwarp();
        if (from)
            copy_bulk(stage + lane * S::PIECE, from + (size_t)at * 512, bytes, b);
    }
};

/* Eight columns of a row on their way to the products. */
struct eight {
    float4 half[2];
};

/* A norm's vectors at a thread's eight columns. */
struct eight_vectors {
    struct eight weight, bias;
};

/* The warps that bring rows. */
template <class S> struct row_bringer {
    /* Of a thread's eights, this many after one another differ in their columns. */
    enum : int { PERIOD = S::CHUNKS > 4 ? 2 : 1, DIFFER = S::HELD < PERIOD ? S::HELD : PERIOD };
    static_assert(S::BRINGING / 8 * PERIOD % S::CHUNKS == 0, "columns of eights come back");

    const tec_gemm_args &a;
    const struct group_front &front;
    const struct group_work &work;
    const float *scales; /* of the tile's rows */
    int thread, fixed;   /* of BRINGING; rows that take the norm's second vectors */

    /* The row of this thread's i-th group of eight: eight threads in a row hold the eight rows of a
     * block. */
    __device__ __forceinline__ int row(int i) const
    {
        return (thread + i * S::BRINGING) / (8 * S::CHUNKS) * 8 + thread % 8;
    }
    __device__ __forceinline__ int chunk(int i) const
    {
        return (thread + i * S::BRINGING) / 8 % S::CHUNKS;
    }
    __device__ __forceinline__ int k_of(int i, int step) const
    {
        return (work.at + step * S::STEP) * 16 + chunk(i) * 8;
    }
    __device__ __forceinline__ struct eight load(int i, int step) const
    {
        struct eight v = {};
        int r = work.first + row(i);
        if (row(i) >= S::ROWS || r >= work.live)
            return v;
        const float *x = a.x + (size_t)r * (size_t)a.ldx;
        v.half[0] = quad_of(x, k_of(i, step), a.k);
        v.half[1] = quad_of(x, k_of(i, step) + QUAD, a.k);
        return v;
    }
    /* Columns k .. k + 3 of a vector of the norm, whose columns are whole quads. */
    __device__ __forceinline__ float4 of_vector(const float *vector, int k) const
    {
        return vector ? quad_of(vector, k, front.a.cols) : make_float4(0.0F, 0.0F, 0.0F, 0.0F);
    }
    /* Of the i-th eight, for rows that are not fixed. */
    __device__ __forceinline__ struct eight_vectors vectors(int i, int step) const
    {
        struct eight_vectors v = {};
        TEC_UNROLL
        for (int h = 0; h < 2 && front.some; h++) {
            v.weight.half[h] = of_vector(front.a.weight, k_of(i, step) + h * QUAD);
            v.bias.half[h] = of_vector(front.a.bias, k_of(i, step) + h * QUAD);
        }
        return v;
    }
    /* Four columns of a row behind the norm. */
    __device__ __forceinline__ float4 behind(float4 v, float scale, float4 w, float4 b) const
    {
        const struct tec_norm_args &n = front.a;
        return make_float4(normed(v.x, scale, __fadd_rn(n.offset, w.x), b.x, n.round),
                           normed(v.y, scale, __fadd_rn(n.offset, w.y), b.y, n.round),
                           normed(v.z, scale, __fadd_rn(n.offset, w.z), b.z, n.round),
                           normed(v.w, scale, __fadd_rn(n.offset, w.w), b.w, n.round));
    }
    /* The i-th eight of a step, as terms in its stage. */
    __device__ __forceinline__ void store(unsigned char *stage, struct eight v,
                                          const struct eight_vectors &norm, int i, int step) const
    {
        int r = row(i);
        if (r >= S::ROWS)
            return;
        TEC_UNROLL
        for (int h = 0; h < 2 && front.some; h++) {
            float4 w = norm.weight.half[h], b = norm.bias.half[h];
            if (work.first + r < fixed) {
                w = of_vector(front.a.fixed_weight, k_of(i, step) + h * QUAD);
                b = of_vector(front.a.fixed_bias, k_of(i, step) + h * QUAD);
            }
            v.half[h] = behind(v.half[h], scales[r], w, b);
        }
        uint4 high, rest;
        high.x = split_terms(make_float2(v.half[0].x, v.half[0].y), &rest.x);
        high.y = split_terms(make_float2(v.half[0].z, v.half[0].w), &rest.y);
        high.z = split_terms(make_float2(v.half[1].x, v.half[1].y), &rest.z);
        high.w = split_terms(make_float2(v.half[1].z, v.half[1].w), &rest.w);
        unsigned char *to = stage + S::WEIGHTS + r / 8 * S::SLAB + chunk(i) * 128 + r % 8 * 16;
        *reinterpret_cast<uint4 *>(to) = high;
        if (S::TERMS == 2)
            *reinterpret_cast<uint4 *>(to + S::TERM) = rest;
    }
    __device__ __forceinline__ void run(unsigned char *shared,
                                        const struct stage_barriers<S> &barriers) const
    {
        struct eight held[S::HELD];
        struct eight_vectors norm[DIFFER];
        TEC_UNROLL
        for (int i = 0; i < S::HELD; i++)
            held[i] = load(i, 0);
        TEC_UNROLL
        for (int i = 0; i < DIFFER; i++)
            norm[i] = vectors(i, 0);
        for (int step = 0; step < work.step; step++) {
            barriers.wait_used(step);
            TEC_UNROLL
            for (int i = 0; i < S::HELD; i++) {
                store(shared + step % S::STAGES * S::STAGE, held[i], norm[i % DIFFER], i, step);
                if (step + 1 < work.step)
                    held[i] = load(i, step + 1);
            }
            TEC_UNROLL
            for (int i = 0; i < DIFFER; i++)
                if (step + 1 < work.step)
                    norm[i] = vectors(i, step + 1);
            barrier_arrive_written(barriers.rows(step));
        }
    }
};

/* Sums as products leave them: [half of the panels][group of 8 rows]. */
template <int N> using group_sums = float[2][N][4];

/* Products of block b of a stage for the group's rows, begun; the small term goes first. */
template <class S>
static __device__ __forceinline__ void begin_block(group_sums<S::N> &c, const unsigned char *stage,
                                                   int group, int b)
{
    const unsigned char *w = stage + b * 512;
    const unsigned char *x = stage + S::WEIGHTS + group * (S::N * S::SLAB) + b * 256;
    TEC_UNROLL
    for (int term = S::TERMS - 1; term >= 0; term--) {
        unsigned long long rows = shared_matrix(x + term * S::TERM, 128, S::SLAB);
        product_async(c[0], shared_matrix(w, 256, S::PIECE), rows);
        product_async(c[1], shared_matrix(w + 128, 256, S::PIECE), rows);
    }
}

/* A step's products, begun. Within it nothing may branch, or the compiler lets them wait for one
 * another. */
template <class S>
static __device__ __forceinline__ void begin_step(group_sums<S::N> &c, const unsigned char *stage,
                                                  int group)
{
    products_hold(c[0]);
    products_hold(c[1]);
    products_begin();
    TEC_UNROLL
    for (int b = 0; b < S::STEP; b++)
        begin_block<S>(c, stage, group, b);
    products_commit();
}

/* The last step of a matrix may have fewer blocks: one after the other. */
template <class S>
static __device__ __forceinline__ void
multiply_rest(group_sums<S::N> &c, const unsigned char *stage, int group, int blocks)
{
    TEC_UNROLL_BY(1)
    for (int b = 0; b < blocks; b++) {
        products_hold(c[0]);
        products_hold(c[1]);
        products_begin();
        begin_block<S>(c, stage, group, b);
        products_commit();
        products_wait<0>();
    }
}

/* To the order of gemm_finish.cuh: panels 2 w and 2 w + 1 of the tile, where w is the warp. */
template <int N>
static __device__ __forceinline__ void by_panels(sums<2, N> &to, const group_sums<N> &c)
{
    TEC_UNROLL
    for (int half = 0; half < 2; half++) {
        TEC_UNROLL
        for (int j = 0; j < N; j++) {
            TEC_UNROLL
            for (int e = 0; e < 4; e++)
                to[e / 2][j][half * 2 + e % 2] = c[half][j][e];
        }
    }
}
