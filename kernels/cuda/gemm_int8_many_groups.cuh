/* gemm_int8_many_groups.cuh - products with 8-bit weights (kernels/int8.h) of many rows by warp
 * groups (sm_90a): the bytes of the CPU. The digits of x lie ready in device memory
 * (row_digits_room.h), so that weights, digits and units come by bulk copies alone.
 *
 * A tile is 128 columns and 8 N rows. Two groups of four warps multiply: one has the upper halves
 * of the eight panels, the other the lower halves, each with all rows of the tile. One warp more
 * starts the copies. A stage is one group of k. Its two barriers say that it is there, and that it
 * has been used. A block takes one tile after the other, and what the next one begins with comes
 * while the last one's sums are stored.
 *
 * Weights become operands in registers: lines of 4 k are none that the instruction could read in
 * shared memory. A group's whole sums are in registers as well. When its products are done, they
 * join the chains, in the order of k, and meanwhile the tensor cores would stand still: so the two
 * groups take turns. Each waits for its turn, starts the products of one digit and gives the turn
 * away at once; those of the other then stand in line behind its own, and are done while it shifts
 * or folds its sums. A turn orders nothing else: sums are those of any other order.
 *
 * Of two digits the sums of the high one, times 256, are what the low one's are added to: below
 * 128 * 127 * 127 * 256 < 2^31. */
#pragma once

#include "kernels/cuda/gemm_int8_choice.h"
#include "kernels/cuda/gemm_terms.cuh"
#include "kernels/cuda/row_digits.cuh"
#include "kernels/int8.h"

template <int DIGITS_, int N_, int STAGES_, int RESIDENT_> struct int8_many_groups_shape {
    enum : bool {
        AHEAD = RESIDENT_ == 1 /* weights are read a group ahead: there are registers for it */
    };
    enum : int {
        DIGITS = DIGITS_,
        N = N_, /* groups of 8 rows */
        STAGES = STAGES_,
        RESIDENT = RESIDENT_, /* blocks of a multiprocessor */
        PANELS = 8,
        COLUMNS = PANELS * 16,
        ROWS = N * 8,
        BLOCKS = ROWS / DIGITS_ROWS, /* of rows whose digits lie together */
        STEPS = TEC_INT8_GROUP / DIGITS_K,
        SUMMING = 2 * 4 * WARP,
        THREADS = SUMMING + WARP,
        LINES = TEC_INT8_GROUP / TEC_INT8_DEEP * TEC_INT8_LINE,
        PIECE = LINES + 32, /* two panels that a warp reads at once meet no bank conflict */
        SLAB = DIGITS * DIGITS_EIGHT, /* of 8 rows in a step */
        DIGITS_AT = PANELS * PIECE,   /* [STEPS][N][DIGITS]: at one distance along all rows */
        UNITS_AT = DIGITS_AT + STEPS * N * SLAB,
        STAGE = UNITS_AT + ROWS * 4,
        BARRIERS_AT = STAGES * STAGE,
        TURNS_AT = BARRIERS_AT + 2 * STAGES * 8,
        LEFT_AT = TURNS_AT + 2 * 8, /* tiles along the rows, and all */
        SHARED = LEFT_AT + 2 * 4
    };
    static_assert(STAGE % 16 == 0, "copies begin at multiples of 16");
    static_assert(RESIDENT * (SHARED + 1024) <= 228 * 1024, "more than a multiprocessor has");
};

/* Whose turn it is to start products: that of the two groups of warps, one after the other. */
struct product_turns {
    barrier *at;

    __device__ __forceinline__ void init() const
    {
        barrier_init(at, 4);
        barrier_init(at + 1, 4);
    }
    /* For the turn of this number, counted from 0. */
    __device__ __forceinline__ void wait(int number) const
    {
        int group = (int)threadIdx.x / (4 * WARP);
        barrier_wait(at + group, (number + group + 1) % 2);
    }
    __device__ __forceinline__ void give() const
    {
        if (threadIdx.x % WARP == 0)
            barrier_arrive(at + 1 - threadIdx.x / (4 * WARP));
    }
};

/* The rows of a launch whose digits are there: from `base` on, so many. */
struct int8_many_groups_work {
    const unsigned char *digits;
    int base, count;
};

/* A tile: which of the rows, which of the columns. Tiles of the same columns follow one another, so
 * that blocks that run together share weights. */
struct int8_many_groups_place {
    int down, across;
};
static __device__ __forceinline__ struct int8_many_groups_place int8_many_groups_place_of(int tile,
                                                                                          int down)
{
    return {tile % down, tile / down};
}

/* The warp that starts copies: a lane for each panel of weights, for each step of each block of
 * rows, and for the units of each. What there is not (panels beyond n, rows beyond the last block)
 * does not come, and nobody looks at its sums; nor do k beyond those of weights, whose digits are
 * zeros. */
template <class S> struct int8_many_groups_copier {
    enum : int { DIGIT_LANE = S::PANELS, UNIT_LANE = DIGIT_LANE + S::BLOCKS * S::STEPS };
    const struct terms_stages<S> &stages;
    const unsigned char *from; /* of this lane, in the first group; NULL: it has nothing to copy */
    int to, bytes, far;        /* in a stage; of a group; from one group to the next */
    int lane, all, panels, lines;

    __device__ __forceinline__ int8_many_groups_copier(const struct terms_stages<S> &stages_, int k)
        : stages(stages_), from(NULL), to(0), bytes(0), far(0), lane((int)threadIdx.x % WARP),
          all(0), panels(0), lines((int)tec_int8_panel(k) - TEC_INT8_LINE)
    {
        static_assert(UNIT_LANE + (int)S::BLOCKS <= (int)WARP, "a lane for each");
    }
    /* Of the weights of a panel. */
    template <class Finish>
    __device__ __forceinline__ void weights_of(const tec_gemm_args &a, const Finish &finish,
                                               int across)
    {
        int panel = finish.panel(across * S::PANELS + lane);
        to = lane * S::PIECE;
        far = S::LINES;
        if (panel < a.n / 16)
            from = (const unsigned char *)a.w + (size_t)panel * tec_int8_panel(a.k) + TEC_INT8_LINE;
    }
    /* Of the digits of a step, or of the units, of DIGITS_ROWS rows of the tile. */
    __device__ __forceinline__ void rows_of(const struct tec_cuda_digits &d,
                                            const unsigned char *digits, int down, int count)
    {
        int step = (lane - DIGIT_LANE) % S::STEPS, block = (lane - DIGIT_LANE) / S::STEPS;
        bool units = lane >= UNIT_LANE;
        if (units)
            block = lane - UNIT_LANE;
        int in = down * S::BLOCKS + block;
        if (block >= S::BLOCKS || in * DIGITS_ROWS >= count)
            return;
        bytes = units ? DIGITS_ROWS * (int)sizeof(float) : DIGITS_ROWS / 8 * S::SLAB;
        far = units ? bytes : S::STEPS * bytes;
        to =
            units ? S::UNITS_AT + block * bytes : S::DIGITS_AT + (step * S::BLOCKS + block) * bytes;
        from = digits + (units ? tec_cuda_digits_units(&d, count) : (size_t)(step * bytes)) +
               (size_t)in * (size_t)tec_cuda_digits_groups(&d) * (size_t)far;
    }
    template <class Finish>
    __device__ __forceinline__ void aim(const tec_gemm_args &a, const Finish &finish,
                                        const struct int8_many_groups_work &work,
                                        struct int8_many_groups_place place)
    {
        from = NULL;
        bytes = 0;
        if (lane < DIGIT_LANE)
            weights_of(a, finish, place.across);
        else
            rows_of({a.k, TEC_INT8_GROUP, S::DIGITS}, work.digits, place.down, work.count);
        panels = __popc(__ballot_sync(ALL_LANES, lane < DIGIT_LANE && from));
        all = bytes;
        TEC_UNROLL
        for (int other = WARP / 2; other; other /= 2)
            all += __shfl_xor_sync(ALL_LANES, all, other);
    }
    __device__ __forceinline__ void bring(int step, int group) const
    {
        barrier *b = stages.there(step);
        int of_panel = min(lines - group * S::LINES, (int)S::LINES);
        if (lane == 0)
            barrier_expect(b, panels * of_panel + all);
        __syncwarp();
        if (from)
            copy_bulk(stages.stage(step) + to, from + (size_t)group * (size_t)far,
                      lane < DIGIT_LANE ? of_panel : bytes, b);
    }
};

/* A lane's words of a group of k: of each step those of four k and of the four 16 further, of a
 * column of one panel and of one of the next. The lines of 4 k of lanes 0 and 2, 1 and 3 begin at
 * the same banks, so half of the lanes read the other panel first. */
template <class S>
static __device__ __forceinline__ void load_weights(unsigned (&w)[S::STEPS][4],
                                                    const unsigned char *stage)
{
    int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP, late = lane % 4 / 2;
    const unsigned char *at = stage + warp % 4 * 2 * S::PIECE + lane % 4 * TEC_INT8_LINE +
                              (warp / 4 * 8 + lane / 4) * TEC_INT8_DEEP;
    TEC_UNROLL
    for (int s = 0; s < S::STEPS; s++) {
        TEC_UNROLL
        for (int half = 0; half < 2; half++) {
            const unsigned char *line = at + (s * 8 + half * 4) * TEC_INT8_LINE;
            unsigned one = *reinterpret_cast<const unsigned *>(line + late * S::PIECE);
            unsigned two = *reinterpret_cast<const unsigned *>(line + (1 - late) * S::PIECE);
            w[s][half * 2] = late ? two : one;
            w[s][half * 2 + 1] = late ? one : two;
        }
    }
}

/* The products of one digit, begun. */
template <class S, bool FRESH>
static __device__ __forceinline__ void begin_products(int (&c)[S::N][4], unsigned (&w)[S::STEPS][4],
                                                      const unsigned char *stage, int digit)
{
    products_hold(c);
    products_hold(w);
    products_begin();
    TEC_UNROLL
    for (int s = 0; s < S::STEPS; s++) {
        unsigned long long x = shared_matrix(
            stage + S::DIGITS_AT + s * (S::N * S::SLAB) + digit * DIGITS_EIGHT, 128, S::SLAB);
        if (FRESH && s == 0)
            product_s8_async<true>(c, w[s], x);
        else
            product_s8_async<false>(c, w[s], x);
    }
    products_commit();
}

/* Whole sums of a group of k, of all digits. */
template <class S>
static __device__ __forceinline__ void sum_digits(int (&c)[S::N][4], unsigned (&w)[S::STEPS][4],
                                                  const unsigned char *stage,
                                                  const struct product_turns &turns, int step)
{
    turns.wait(step * S::DIGITS);
    begin_products<S, true>(c, w, stage, 0);
    turns.give();
    products_wait<0>();
    products_hold(c);
    products_hold(w);
    if constexpr (S::DIGITS == 2) {
        TEC_UNROLL
        for (int i = 0; i < S::N * 4; i++)
            c[i / 4][i % 4] *= 256;
        turns.wait(step * S::DIGITS + 1);
        begin_products<S, false>(c, w, stage, 1);
        turns.give();
        products_wait<0>();
        products_hold(c);
        products_hold(w);
    }
}

/* Sums of the groups of 8 rows from j on, up to `stop`, join their chains. */
template <class S>
static __device__ __forceinline__ void fold(float (&chain)[S::N][4], const int (&c)[S::N][4],
                                            const unsigned char *stage, int j, int stop)
{
    const float2 *units = reinterpret_cast<const float2 *>(stage + S::UNITS_AT) + threadIdx.x % 4;
    TEC_UNROLL
    for (; j < stop; j++) {
        float2 unit = units[j * 4];
        TEC_UNROLL
        for (int e = 0; e < 4; e++)
            chain[j][e] = fmaf(__int2float_rn(c[j][e]), e % 2 ? unit.y : unit.x, chain[j][e]);
    }
}

/* The chains of all groups of k, which are steps `step` and further of the block. */
template <class S>
static __device__ __forceinline__ int
sum_groups(float (&chain)[S::N][4], const struct terms_stages<S> &stages,
           const struct product_turns &turns, int step, int stop)
{
    int c[S::N][4] = {};
    unsigned w[S::STEPS][4];
    TEC_UNROLL
    for (int i = 0; i < S::N * 4; i++)
        chain[i / 4][i % 4] = 0.0F;
    if (S::AHEAD) {
        stages.wait_there(step);
        load_weights<S>(w, stages.stage(step));
    }
    for (; step < stop; step++) {
        if (!S::AHEAD) {
            stages.wait_there(step);
            load_weights<S>(w, stages.stage(step));
        }
        sum_digits<S>(c, w, stages.stage(step), turns, step);
        fold<S>(chain, c, stages.stage(step), 0, S::N / 2);
        if (S::AHEAD && step + 1 < stop) { /* there are registers now; on their way meanwhile */
            stages.wait_there(step + 1);
            load_weights<S>(w, stages.stage(step + 1));
        }
        fold<S>(chain, c, stages.stage(step), S::N / 2, S::N);
        __syncwarp(); /* all lanes have read their units */
        if (threadIdx.x % WARP == 0)
            barrier_arrive(stages.used(step));
    }
    return step;
}

/* What becomes of a thread's chains. Counts are read anew: kept, they would take registers. */
template <class S, class Finish>
static __device__ __forceinline__ void finish_tile(const float (&chain)[S::N][4],
                                                   const struct tec_gemm_args &a,
                                                   const Finish &finish, int first, int across)
{
    int warp = (int)threadIdx.x / WARP, half = warp / 4, taken[2];
    float scale[2];
    TEC_UNROLL
    for (int i = 0; i < 2; i++) {
        taken[i] = finish.panel(across * S::PANELS + warp % 4 * 2 + i);
        const unsigned char *panel =
            (const unsigned char *)a.w + (size_t)taken[i] * tec_int8_panel(a.k);
        int column = half * 8 + (int)threadIdx.x % WARP / 4;
        scale[i] = taken[i] < a.n / 16 ? reinterpret_cast<const float *>(panel)[column] : 0.0F;
    }
    finish.template half<2, S::N>(half, taken, first, live_rows(a), [&](int i, int j, int e) {
        return __fmul_rn(chain[j][i * 2 + e], scale[i]);
    });
}

/* All that a block's tiles read. */
template <class S, class Finish>
static __device__ __forceinline__ void
bring_tiles(const struct tec_gemm_args &a, const Finish &finish,
            const struct int8_many_groups_work &work, const struct terms_stages<S> &stages,
            int down, int tiles)
{
    struct int8_many_groups_copier<S> copier(stages, a.k);
    int groups = ceil_div(a.k, (int)TEC_INT8_GROUP), step = 0;
    for (int tile = (int)blockIdx.x; tile < tiles; tile += (int)gridDim.x) {
        copier.aim(a, finish, work, int8_many_groups_place_of(tile, down));
        for (int group = 0; group < groups; group++, step++) {
            stages.wait_used(step);
            copier.bring(step, group);
        }
    }
}

/* A number of shared memory, read where it is needed: kept, it would take a register. */
static __device__ __forceinline__ int again(const int *p)
{
    return *(const volatile int *)p;
}

/* The tile of a step of this block: the only thing that is kept from one to the next. */
static __device__ __forceinline__ int tile_of_step(int k, int step)
{
    return (int)blockIdx.x + step / ceil_div(k, TEC_INT8_GROUP) * (int)gridDim.x;
}

/* A block's tiles. */
template <class S, class Finish>
static __device__ __forceinline__ void multiply_tiles(const struct tec_gemm_args &a,
                                                      const Finish &finish,
                                                      const struct int8_many_groups_work &work)
{
    TEC_SHARED(unsigned char, shared);
    struct terms_stages<S> stages = {
        shared
    };
    struct product_turns turns = {reinterpret_cast<barrier *>(shared + S::TURNS_AT)};
    if ((int)threadIdx.x == S::SUMMING) {
        turns.init();
        stages.init();
    }
    __syncthreads();
    wait_previous();
    release_next();
    int *left = reinterpret_cast<int *>(shared + S::LEFT_AT);
    if (threadIdx.x == 0) {
        left[0] = ceil_div(min(live_rows(a).live - work.base, work.count), (int)S::ROWS);
        left[1] = max(left[0], 0) * ceil_div(finish.places(), (int)S::PANELS);
    }
    __syncthreads();
    if ((int)threadIdx.x >= S::SUMMING) {
        bring_tiles<S>(a, finish, work, stages, left[0], left[1]);
        return;
    }
    for (int step = 0; tile_of_step(a.k, step) < again(left + 1);) {
        float chain[S::N][4];
        step = sum_groups<S>(chain, stages, turns, step, step + ceil_div(a.k, TEC_INT8_GROUP));
        struct int8_many_groups_place place =
            int8_many_groups_place_of(tile_of_step(a.k, step - 1), again(left));
        finish_tile<S>(chain, a, finish, work.base + place.down * S::ROWS, place.across);
        if (S::RESIDENT > 1) /* a block for each tile: the other one multiplies meanwhile */
            return;
    }
}

#define INT8_MANY_GROUPS_TILE(name, digits, n, stages, resident, ...)        \
    typedef int8_many_groups_shape<digits, n, stages, resident> name;        \
    static_assert((int)name::SHARED == gemm_tiles[GEMM_##name].shared &&     \
                      (int)name::THREADS == gemm_tiles[GEMM_##name].threads, \
                  "gemm_choice.h counts with the same");
#include "kernels/cuda/gemm_tiles.def"

/* Code for other devices has no such instructions, and is never started. */
template <class S, class Finish>
static __global__ void __launch_bounds__(S::THREADS, S::RESIDENT)
    gemm_int8_many_groups_kernel(struct tec_gemm_args a, Finish finish,
                                 struct int8_many_groups_work work)
{
#if TEC_WARP_GROUPS
    multiply_tiles<S, Finish>(a, finish, work);
#endif
}

/* Start a part of the rows. */
template <class Finish>
static void int8_many_groups_launch(const struct gemm_start &start, const struct tec_gemm_args *a,
                                    const Finish &finish, const struct int8_many_groups_work &work,
                                    struct tec_cuda_launch *launch)
{
    dim3 blocks((unsigned)start.x, (unsigned)start.y);
#define INT8_MANY_GROUPS_TILE(name, ...)                                           \
    if (start.tile == GEMM_##name)                                                 \
        tec_cuda_start(launch, gemm_int8_many_groups_kernel<name, Finish>, blocks, \
                       dim3(name::THREADS), name::SHARED, *a, finish, work);
#include "kernels/cuda/gemm_tiles.def"
}
