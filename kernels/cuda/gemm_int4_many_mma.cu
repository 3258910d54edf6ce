/* gemm_int4_many_mma.cu - products with 4-bit weights (kernels/int4.h) of many rows, whose digits
 * are written first: the bytes of the CPU.
 *
 * A stage is up to INT4_K of a group: weights of 128 columns as they are stored, which become bytes
 * in registers, and one digit of the rows, with the line of scales and the rows' units. A group's
 * stages are those of its highest digit, then those of the next: so there is one set of whole sums.
 * Of two digits they are multiplied by 256 in between, and stay whole; else what they are so far is
 * kept as a float, as the reference joins digits. The floats of groups join the chain in a second
 * set, in the order of k. */
#include "kernels/cuda/gemm_int4.h"
#include "kernels/cuda/gemm_int4_weights.cuh"
#include "kernels/cuda/row_digits.cuh"

/* 4 x 2 warps of two panels and N groups of 8 rows. WHOLE: digits join as whole numbers. */
template <int N_, int STAGES_, bool WHOLE_> struct int4_many_mma_shape {
    enum : int {
        ACROSS = 4,
        DOWN = 2,
        M = 2,
        N = N_,
        STAGES = STAGES_,
        THREADS = ACROSS * DOWN * WARP,
        PANELS = ACROSS * M,
        EIGHTS = DOWN * N,
        ROWS = EIGHTS * 8,
        DIGIT = EIGHTS * INT4_STEPS * DIGITS_EIGHT,
        WEIGHTS = PANELS * INT4_PIECE,
        STAGE = WEIGHTS + DIGIT + ROWS * 4,
        SHARED = STAGES * STAGE,
        RESIDENT = N > 4 || !WHOLE_ ? 1 : 2 /* blocks that registers are for */
    };
    enum : bool { WHOLE = WHOLE_ };
    static_assert(SHARED <= 99 * 1024, "more than a block has on small devices");
    static_assert(PANELS == THREADS / WARP, "a warp fetches one");
};

/* Digits of a part of the rows, and where a block's tile is: its first row among them. */
struct int4_many_mma_part {
    const unsigned char *digits;
    const float *units;
    int base, rows;                   /* the part's first row, and how many */
    int groups, steps, pieces, count; /* of a row; of a group; digits */
};

/* Where a walk over stages is. */
struct int4_many_mma_place {
    int group, digit, piece;

    __device__ __forceinline__ void go_on(const struct int4_many_mma_part &p)
    {
        if (++piece < p.pieces)
            return;
        piece = 0;
        if (++digit < p.count)
            return;
        digit = 0;
        group++;
    }
};

template <class S> struct int4_many_mma_stage {
    const tec_gemm_args &a;
    const struct int4_many_mma_part &p;
    int size, panel, row; /* bytes of a panel; the block's first one, and its first row */

    /* A warp has one panel. */
    __device__ __forceinline__ void weights(unsigned char *stage,
                                            const struct int4_many_mma_place &at) const
    {
        int mine = panel + (int)threadIdx.x / WARP, k = at.piece * INT4_K;
        bool there = at.group < p.groups && mine < a.n / 16;
        size_t from = (size_t)mine * (size_t)size + tec_int4_group(at.group, a.group);
        int4_fetch<1>(stage + (int)threadIdx.x / WARP * INT4_PIECE,
                      (const unsigned char *)a.w + from, 0, there, at.piece * INT4_LINES,
                      min(a.group, a.k - at.group * a.group) - k);
    }
    /* Of a piece of 8 rows by 32 k the half with k 16 .. 31 has its upper and lower four rows
     * exchanged, so that lanes meet no bank conflict. A thread has 16 bytes of every fourth piece
     * of a step. All bytes of digits are fewer than an int counts. */
    __device__ __forceinline__ void rows(unsigned char *stage,
                                         const struct int4_many_mma_place &at) const
    {
        enum { DOWN = S::THREADS / 16 / INT4_STEPS };
        int thread = (int)threadIdx.x, in = thread % 16, step = thread / 16 % INT4_STEPS;
        int eight = thread / 16 / INT4_STEPS, nth = at.piece * INT4_STEPS + step;
        int each = p.count * DIGITS_EIGHT, all = p.groups * p.steps * (8 * each);
        int from = (at.group * p.steps + nth) * (8 * each) + at.digit * DIGITS_EIGHT + in * 16 +
                   eight * each + row / DIGITS_ROWS * all;
        unsigned char *to = stage + S::WEIGHTS + (eight * INT4_STEPS + step) * DIGITS_EIGHT +
                            (in ^ in / 8 * 4) * 16;
        bool there = at.group < p.groups && nth < p.steps;
        TEC_UNROLL
        for (int i = 0; i < S::EIGHTS / DOWN; i++)
            copy16_async(to + i * DOWN * (INT4_STEPS * DIGITS_EIGHT),
                         p.digits + (from + i * DOWN % 8 * each + i * DOWN / 8 * all),
                         there && row + i * DOWN / 8 * DIGITS_ROWS < p.rows);
        int r = thread * 4, place = row / DIGITS_ROWS + r / DIGITS_ROWS;
        if (thread < S::ROWS / 4)
            copy16_async(stage + S::WEIGHTS + S::DIGIT + thread * 16,
                         p.units + ((place * p.groups + at.group) * DIGITS_ROWS + r % DIGITS_ROWS),
                         at.group < p.groups && place * DIGITS_ROWS < p.rows);
    }
};

/* A warp's whole sums, and what they have been multiplied to. */
template <class S> struct int4_many_mma_sums {
    int whole[S::M][S::N][4];
    float part[S::WHOLE ? 1 : S::M][S::WHOLE ? 1 : S::N][4];
    sums<S::M, S::N> chain;

    __device__ __forceinline__ void begin()
    {
        TEC_UNROLL
        for (int i = 0; i < S::M * S::N * 4; i++)
            whole[i / 4 / S::N][i / 4 % S::N][i % 4] = 0;
    }
    /* The next digit comes. */
    __device__ __forceinline__ void next_digit(bool first)
    {
        TEC_UNROLL
        for (int i = 0; i < S::M * S::N * 4; i++) {
            int &sum = whole[i / 4 / S::N][i / 4 % S::N][i % 4];
            if (S::WHOLE) {
                sum = (int)((unsigned)sum << 8);
                continue;
            }
            float &before = part[i / 4 / S::N][i / 4 % S::N][i % 4];
            float now = __int2float_rn(sum);
            before = first ? now : fmaf(before, 256.0F, now);
            sum = 0;
        }
    }
    /* The group ends: its sum times unit and scale joins the chain. */
    __device__ __forceinline__ void join(const unsigned char *stage, int across, int down)
    {
        int lane = (int)threadIdx.x % WARP;
        const float *units =
            reinterpret_cast<const float *>(stage + S::WEIGHTS + S::DIGIT) + down * S::N * 8;
        TEC_UNROLL
        for (int i = 0; i < S::M; i++) {
            const uint16_t *scales =
                reinterpret_cast<const uint16_t *>(stage + (across * S::M + i) * INT4_PIECE);
            float scale[2] = {half_float(scales[lane / 4]), half_float(scales[lane / 4 + 8])};
            TEC_UNROLL
            for (int j = 0; j < S::N; j++) {
                float2 unit = *reinterpret_cast<const float2 *>(units + j * 8 + lane % 4 * 2);
                TEC_UNROLL
                for (int e = 0; e < 4; e++) {
                    float sum = __int2float_rn(whole[i][j][e]);
                    if (!S::WHOLE)
                        sum = fmaf(part[i][j][e], 256.0F, sum);
                    chain[i][j][e] =
                        fmaf(__fmul_rn(sum, e % 2 ? unit.y : unit.x), scale[e / 2], chain[i][j][e]);
                }
            }
        }
        begin();
    }
};

/* A stage's products; of its last step all 32 k, which are zeros of x behind the group. */
template <class S>
static __device__ __forceinline__ void
int4_many_mma_stage_products(struct int4_many_mma_sums<S> &sums, const unsigned char *stage,
                             int across, int down, int steps)
{
    int lane = (int)threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    const unsigned char *pieces = stage + across * S::M * INT4_PIECE;
    const unsigned char *x = stage + S::WEIGHTS + down * S::N * (INT4_STEPS * DIGITS_EIGHT) +
                             t / 2 * 128 + (g ^ t / 2 * 4) * 16 + t % 2 * 8;
    unsigned zeros[S::M][2];
    TEC_UNROLL
    for (int i = 0; i < S::M * 2; i++)
        zeros[i / 2][i % 2] = int4_zeros(pieces + i / 2 * INT4_PIECE, g + i % 2 * 8);
    TEC_UNROLL_BY(2)
    for (int s = 0; s < steps; s++) {
        unsigned w[S::M][4];
        TEC_UNROLL
        for (int i = 0; i < S::M; i++)
            int4_operand<true>(w[i], pieces + i * INT4_PIECE, s, zeros[i]);
        TEC_UNROLL
        for (int j = 0; j < S::N; j++) {
            uint2 two = *reinterpret_cast<const uint2 *>(x + (j * INT4_STEPS + s) * DIGITS_EIGHT);
            unsigned digits[2] = {two.x, two.y};
            TEC_UNROLL
            for (int i = 0; i < S::M; i++)
                mma_s8(sums.whole[i][j], w[i], digits);
        }
    }
}

template <class S>
static __global__ void __launch_bounds__(S::THREADS, S::RESIDENT)
    gemm_int4_many_mma_kernel(struct tec_gemm_args a, struct int4_many_mma_part p)
{
    TEC_SHARED(unsigned char, shared);
    int warp = (int)threadIdx.x / WARP, across = warp % S::ACROSS, down = warp / S::ACROSS;
    struct int4_many_mma_stage<S> stages = {
        a, p, (int)tec_int4_panel(a.k, a.group), (int)blockIdx.y *S::PANELS,
            (int)blockIdx.x *S::ROWS
    };
    struct int4_many_mma_place to = {0, 0, 0}, at = {0, 0, 0};
    for (int s = 0; s < S::STAGES - 1; s++, to.go_on(p)) /* constant: they wait for nothing */
        stages.weights(shared + s * S::STAGE, to);
    wait_previous();
    release_next();
    struct rows rows = live_rows(a);
    if (p.base + stages.row >= rows.live) {
        copy_commit();
        copy_wait<0>();
        return;
    }
    to = {0, 0, 0};
    for (int s = 0; s < S::STAGES - 1; s++, to.go_on(p)) {
        stages.rows(shared + s * S::STAGE, to);
        copy_commit();
    }
    struct int4_many_mma_sums<S> sums;
    sums.begin();
    clear(sums.chain);
    for (int now = 0, next = S::STAGES - 1; at.group < p.groups;
         now = now + 1 < S::STAGES ? now + 1 : 0, next = next + 1 < S::STAGES ? next + 1 : 0) {
        const unsigned char *stage = shared + now * S::STAGE;
        copy_wait<S::STAGES - 2>();
        __syncthreads();
        stages.weights(shared + next * S::STAGE, to);
        stages.rows(shared + next * S::STAGE, to);
        copy_commit();
        to.go_on(p);
        int4_many_mma_stage_products<S>(sums, stage, across, down,
                                        min(p.steps - at.piece * INT4_STEPS, (int)INT4_STEPS));
        if (at.piece + 1 == p.pieces && at.digit + 1 < p.count)
            sums.next_digit(at.digit == 0);
        else if (at.piece + 1 == p.pieces)
            sums.join(stage, across, down);
        at.go_on(p);
    }
    copy_wait<0>();
    int taken[S::M];
    TEC_UNROLL
    for (int i = 0; i < S::M; i++)
        taken[i] = min(stages.panel + across * S::M + i, a.n / 16);
    struct single_finish<store_rows> finish = rows_finish(a);
    finish.run(sums.chain, taken, p.base + stages.row + down * (S::N * 8), rows);
}

#define INT4_MANY_MMA_TILE(name, n, stages, whole, ...)                      \
    typedef int4_many_mma_shape<n, stages, whole> name;                      \
    static_assert((int)name::SHARED == gemm_tiles[GEMM_##name].shared &&     \
                      (int)name::THREADS == gemm_tiles[GEMM_##name].threads, \
                  "gemm_choice.h counts with the same");
#include "kernels/cuda/gemm_tiles.def"

/* Start a part of the rows. */
static void start_part(const struct gemm_start &start, const struct tec_gemm_args *a,
                       const struct int4_many_mma_part &part, struct tec_cuda_launch *launch)
{
    dim3 blocks((unsigned)start.x, (unsigned)start.y);
#define INT4_MANY_MMA_TILE(name, ...)                                                        \
    if (start.tile == GEMM_##name)                                                           \
        tec_cuda_start(launch, gemm_int4_many_mma_kernel<name>, blocks, dim3(name::THREADS), \
                       name::SHARED, *a, part);
#include "kernels/cuda/gemm_tiles.def"
}

void tec_cuda_int4_many_mma(const struct tec_gemm_args *a, const struct digits_choice *choice,
                            struct tec_cuda_launch *launch)
{
    struct tec_cuda_facts facts = tec_cuda_facts_of(launch);
    each_part_of_digits(a, choice, a->order, launch, [&](int base, int count, unsigned char *at) {
        struct digits_out out = digits_out_of(at, &choice->form, count);
        struct int4_many_mma_part part = {out.at,
                                          out.units,
                                          base,
                                          count,
                                          out.groups,
                                          out.steps,
                                          ceil_div(out.steps, (int)INT4_STEPS),
                                          out.digits};
        start_part(int4_many_start(choice, count, a->n / 16, &facts), a, part, launch);
    });
}
