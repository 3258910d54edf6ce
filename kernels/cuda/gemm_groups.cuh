/* gemm_groups.cuh - the stages of a product by warp groups (sm_90a): who brings what, who
 * multiplies.
 *
 * A warp group multiplies 64 columns of the product by 8 N rows at once, both from shared memory.
 * A block works on 128 columns. Its warps have roles: GROUPS groups of four multiply, two warps
 * make terms of rows, one brings weights and one rows, both as soon as a stage is free. They meet
 * at barriers in shared memory, four for each stage: weights are there, rows are there as they
 * were, their terms are there, all have been used.
 *
 * Weights come as they are stored (TEC_MATRIX_TILES) by bulk copies, a panel's piece of a stage in
 * one; no thread touches them. Their blocks of 8 x 8 are what products read, so nothing is
 * swizzled. A product wants 8 of them at equal distances: the upper halves of the tile's eight
 * panels are one operand, the lower halves another, and the sums that a thread gets are those of
 * two panels as in gemm_finish.cuh.
 *
 * Rows come as float32, as many steps ahead as there are stages, by asynchronous copies, which hold
 * no register; the norm's vectors come with them. Eight columns of a row take 32 bytes, and so do
 * their two terms: the halves of an eight land where its terms will be, in blocks of 8 x 8, and the
 * one thread that makes these reads both before it writes. Whoever writes for products has to fence
 * (barrier_arrive_written), which may wait for all that the thread has on its way, and a load's
 * first use waits for other loads, too: the warp that brings does neither, those that do bring
 * nothing. */
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
        MAKING = 2 * WARP,
        WEIGHTS_WARP = (SUMMING + MAKING) / WARP,
        ROWS_WARP = WEIGHTS_WARP + 1,
        THREADS = (ROWS_WARP + 1) * WARP,
        PIECE = K * 16 * 2, /* bytes of a panel's weights in a stage */
        CHUNKS = K / 8,
        SLAB = CHUNKS * 128, /* bytes of 8 rows of a term */
        WEIGHTS = PANELS * PIECE,
        TERM = ROWS / 8 * SLAB,
        VECTORS_AT = WEIGHTS + TERMS * TERM, /* of a norm: VECTORS of them, K floats each */
        STAGE = VECTORS_AT + VECTORS * K * 4,
        BARRIERS_AT = STAGES * STAGE,
        SCALES_AT = BARRIERS_AT + 4 * STAGES * 8,
        SHARED = SCALES_AT + ROWS * 4,
        HELD = ROWS * CHUNKS / MAKING, /* eights of x in a thread */
        M = 2                          /* panels of a thread's sums */
    };
    static_assert(STEP_BLOCKS % STEP == 0, "a split is whole steps");
    static_assert(TERMS == 2, "two terms take the bytes of a float32");
    static_assert(ROWS * CHUNKS % MAKING == 0, "each thread has as many eights");
    static_assert(MAKING % (8 * CHUNKS) == 0, "a thread's eights are of the same columns");
    static_assert(2 * (SHARED + 1024 + 128) <= 228 * 1024, "more than a multiprocessor has");
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
    __device__ __forceinline__ barrier *terms(int step) const
    {
        return at + 2 * S::STAGES + step % S::STAGES;
    }
    __device__ __forceinline__ barrier *used(int step) const
    {
        return at + 3 * S::STAGES + step % S::STAGES;
    }
    /* By one thread. */
    __device__ __forceinline__ void init() const
    {
        for (int s = 0; s < S::STAGES; s++) {
            barrier_init(weights(s), 1);
            barrier_init(rows(s), WARP);
            barrier_init(terms(s), S::MAKING / WARP);
            barrier_init(used(s), S::GROUPS * 4);
        }
        barriers_ready();
    }
    __device__ __forceinline__ void wait_rows(int step) const
    {
        barrier_wait(rows(step), step / S::STAGES % 2);
    }
    __device__ __forceinline__ void wait_brought(int step) const
    {
        barrier_wait(weights(step), step / S::STAGES % 2);
        barrier_wait(terms(step), step / S::STAGES % 2);
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

/* The warp that brings rows. A lane has quads of one row of each eight: 8 lanes those of a block's
 * 8 rows, so that they land side by side, two times 8 both halves of their eights, and all lanes
 * both eights of 16 k. */
template <class S> struct row_bringer {
    enum : int { PIECES = VECTORS * (S::K / QUAD) / WARP };

    const unsigned char *x;       /* this lane's first quad of k = 0, in the tile's first 8 rows */
    size_t eight;                 /* bytes from one block of 8 rows to the next */
    int column, live;             /* of that quad; rows that live, from this lane's first on */
    int to;                       /* its place in a stage */
    int k, cols;                  /* of x; of the norm, 0: there is none */
    const float *vectors[PIECES]; /* of which this lane brings a quad; NULL: zeros */

    __device__ __forceinline__ row_bringer(const tec_gemm_args &a, const struct group_front &front,
                                           const struct group_work &work)
    {
        int lane = (int)threadIdx.x % WARP, half = lane / 8 % 2, chunk = lane / 16;
        int first = work.first + lane % 8;
        column = chunk * 8 + half * QUAD;
        live = work.live - first;
        x = (const unsigned char *)(a.x + (size_t)first * (size_t)a.ldx + column);
        eight = (size_t)8 * (size_t)a.ldx * sizeof(float);
        to = S::WEIGHTS + half * S::TERM + chunk * 128 + lane % 8 * 16;
        k = a.k;
        cols = front.some ? front.a.cols : 0;
        TEC_UNROLL
        for (int i = 0; i < PIECES && front.some; i++) {
            int which = (lane + i * WARP) / (S::K / QUAD);
            const float *second = which % 2 ? front.a.fixed_bias : front.a.fixed_weight;
            const float *plain = which % 2 ? front.a.bias : front.a.weight;
            vectors[i] = which < 2 ? plain : front.a.fixed ? second : NULL;
        }
    }
    /* Zeros beyond k, and for rows that do not live; all quads are whole in a step before k ends.
     */
    template <bool WHOLE>
    __device__ __forceinline__ void bring_rows(unsigned char *stage, int at) const
    {
        const unsigned char *from = x + (size_t)at * sizeof(float);
        TEC_UNROLL
        for (int r = 0; r < S::ROWS / 8; r++, from += eight) {
            TEC_UNROLL
            for (int j = 0; j < S::STEP; j++) {
                unsigned char *place = stage + to + r * S::SLAB + j * 256;
                int left = min(max((k - at - column - j * 16) * 4, 0), 16);
                if (WHOLE)
                    copy16_async(place, from + j * 64, r * 8 < live);
                else
                    copy16_part_async(place, from + j * 64, r * 8 < live ? left : 0);
            }
        }
    }
    __device__ __forceinline__ void bring_vectors(unsigned char *stage, int at) const
    {
        TEC_UNROLL
        for (int i = 0; i < PIECES; i++) {
            int piece = (int)threadIdx.x % WARP + i * WARP, c = at + piece % (S::K / QUAD) * QUAD;
            bool is = vectors[i] && c < cols;
            copy16_async(stage + S::VECTORS_AT + piece * 16, is ? vectors[i] + c : NULL, is);
        }
    }
    __device__ __forceinline__ void bring(unsigned char *stage, barrier *b,
                                          const struct group_work &work, int step) const
    {
        int at = (work.at + step * S::STEP) * 16;
        if (at + S::K <= k)
            bring_rows<true>(stage, at);
        else
            bring_rows<false>(stage, at);
        if (cols > 0)
            bring_vectors(stage, at);
        barrier_arrive_copied(b);
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

static __device__ __forceinline__ float2 rounded_pair(float2 v)
{
    unsigned both = halves(v.x, v.y);
    return make_float2(__uint_as_float(both << 16), __uint_as_float(both & 0xffff0000U));
}

/* The warps that make terms of rows, where these lie. The i-th eight of a thread is the one at
 * 16 x (thread + i MAKING) bytes: 8 rows of 8 columns are 128 bytes in one piece, those of the next
 * columns follow, then the next rows.
 *
 * NORM: rows pass a norm, which rounds, or not; with FIXED some have its second vectors. A step has
 * no branch for these, so that the instructions of one eight fill the waits of another. */
template <class S, bool NORM, bool ROUND, bool FIXED> struct term_maker {
    const struct tec_norm_args &a;
    const struct group_work &work;
    const float *scales; /* of the tile's rows */
    int thread, fixed;   /* of MAKING; rows that take the norm's second vectors */

    __device__ __forceinline__ int row(int i) const
    {
        return (thread + i * S::MAKING) / (8 * S::CHUNKS) * 8 + thread % 8;
    }
    __device__ __forceinline__ unsigned char *place(unsigned char *stage, int i) const
    {
        return stage + S::WEIGHTS + (thread + i * S::MAKING) * 16;
    }
    static __device__ __forceinline__ struct eight read(const unsigned char *at, int apart)
    {
        return {
            {*reinterpret_cast<const float4 *>(at), *reinterpret_cast<const float4 *>(at + apart)}};
    }
    /* Of the i-th eight; all of them are of the same columns. */
    __device__ __forceinline__ struct eight_vectors vectors(const unsigned char *stage, int i) const
    {
        const unsigned char *at = stage + S::VECTORS_AT + thread / 8 % S::CHUNKS * 32;
        at += FIXED && work.first + row(i) < fixed ? 2 * S::K * 4 : 0;
        return {read(at, 16), read(at + S::K * 4, 16)};
    }
    /* Two columns of a row behind the norm. */
    __device__ __forceinline__ float2 behind(float x, float y, float scale, float2 w,
                                             float2 b) const
    {
        float2 v = make_float2(normed(x, scale, __fadd_rn(a.offset, w.x), b.x, 0),
                               normed(y, scale, __fadd_rn(a.offset, w.y), b.y, 0));
        return ROUND ? rounded_pair(v) : v;
    }
    __device__ __forceinline__ struct eight behind(struct eight v, float scale,
                                                   const struct eight_vectors &norm) const
    {
        TEC_UNROLL
        for (int h = 0; h < 2; h++) {
            float4 x = v.half[h], w = norm.weight.half[h], b = norm.bias.half[h];
            float2 low = behind(x.x, x.y, scale, make_float2(w.x, w.y), make_float2(b.x, b.y));
            float2 up = behind(x.z, x.w, scale, make_float2(w.z, w.w), make_float2(b.z, b.w));
            v.half[h] = make_float4(low.x, low.y, up.x, up.y);
        }
        return v;
    }
    static __device__ __forceinline__ void store(unsigned char *to, const struct eight &v)
    {
        uint4 high, rest;
        high.x = split_terms(make_float2(v.half[0].x, v.half[0].y), &rest.x);
        high.y = split_terms(make_float2(v.half[0].z, v.half[0].w), &rest.y);
        high.z = split_terms(make_float2(v.half[1].x, v.half[1].y), &rest.z);
        high.w = split_terms(make_float2(v.half[1].z, v.half[1].w), &rest.w);
        *reinterpret_cast<uint4 *>(to) = high;
        *reinterpret_cast<uint4 *>(to + S::TERM) = rest;
    }
    /* A step's. All are read before the first is written: nothing tells the compiler that they do
     * not overlap. */
    __device__ __forceinline__ void make(unsigned char *stage, const float (&scale)[S::HELD]) const
    {
        struct eight held[S::HELD];
        struct eight_vectors norm[FIXED ? S::HELD : 1];
        TEC_UNROLL
        for (int i = 0; i < S::HELD; i++) {
            held[i] = read(place(stage, i), S::TERM);
            if (NORM && (FIXED || i == 0))
                norm[i] = vectors(stage, i);
        }
        TEC_UNROLL
        for (int i = 0; i < S::HELD; i++) {
            if (NORM)
                held[i] = behind(held[i], scale[i], norm[FIXED ? i : 0]);
            store(place(stage, i), held[i]);
        }
    }
    __device__ __forceinline__ void run(unsigned char *shared,
                                        const struct stage_barriers<S> &barriers) const
    {
        float scale[S::HELD];
        TEC_UNROLL
        for (int i = 0; i < S::HELD; i++)
            scale[i] = NORM ? scales[row(i)] : 1.0F;
        TEC_UNROLL_BY(1)
        for (int step = 0; step < work.step; step++) {
            barriers.wait_rows(step);
            make(shared + step % S::STAGES * S::STAGE, scale);
            barrier_arrive_written(barriers.terms(step));
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
