/* gemm_int8_many_mma.cuh - products with 8-bit weights (kernels/int8.h) of many rows, whose digits
 * lie ready in device memory (row_digits.h): the bytes of the CPU.
 *
 * A step is a group of k: its weights, as they are stored, its digits and its units come by
 * cp.async alone, and a warp multiplies two panels by N groups of 8 rows. It reads the weights of
 * the step once, as both digits of x want them, into registers. The whole sums of a group are those
 * of high digits, times 256 those of low ones too; of one digit they begin at the bits of 1.5 *
 * 2^23, so that they are floats already: |sum| < 2^21. Sums times their units join the chain of
 * their column in the order of groups. */
#pragma once

#include "kernels/cuda/gemm_finish.cuh"
#include "kernels/cuda/gemm_int8_choice.h"
#include "kernels/cuda/row_digits.cuh"

enum { INT8_MANY_MMA_ZERO = 0x4b400000 }; /* the bits of 1.5 * 2^23 */

/* Digits of x; warps across panels and along rows; groups of 8 rows of a warp; steps on their way;
 * blocks that registers are for. */
template <int EACH_, int ACROSS_, int DOWN_, int N_, int STAGES_, int RESIDENT_>
struct int8_many_mma_shape {
    enum : int {
        EACH = EACH_,
        ACROSS = ACROSS_,
        DOWN = DOWN_,
        M = 2,
        N = N_,
        STAGES = STAGES_,
        RESIDENT = RESIDENT_,
        THREADS = ACROSS * DOWN * WARP,
        PANELS = ACROSS * M,
        ROLLED = EACH > 1 && RESIDENT > 1, /* digits one after the other, weights read for each */
        ROWS = DOWN * N * 8,
        STEPS = TEC_INT8_GROUP / DIGITS_K,
        STEP = 16 * DIGITS_K,                       /* bytes of a panel in 32 k */
        PIECE = STEPS * STEP,                       /* in a group */
        EIGHT = EACH * DIGITS_EIGHT,                /* bytes of 8 rows in 32 k */
        TOGETHER = STEPS * EIGHT * DIGITS_ROWS / 8, /* of DIGITS_ROWS rows in a group */
        DIGITS_AT = PANELS * PIECE,
        COLUMNS = PANELS * 16,
        UNITS_AT = DIGITS_AT + ROWS / DIGITS_ROWS * TOGETHER,
        STAGE = UNITS_AT + ROWS * 4,
        SHARED = STAGES * STAGE
    };
    static_assert(SHARED <= 99 * 1024, "more than a block has on small devices");
    static_assert(PANELS * WARP == THREADS, "a warp copies a panel");
    static_assert(ROWS % DIGITS_ROWS == 0 && N % 2 == 0,
                  "rows come in whole pieces, by two eights");
    static_assert(TEC_INT8_DEEP == 4 && TEC_INT8_LINE == 64, "a word is a column's 4 k");
};

/* Digits of a part of the rows; the first of them is row `base`. */
struct int8_many_mma_in {
    const unsigned char *at;
    const float *units;
    int base;
};

/* What a thread copies of each group: a panel's lines, of which the halves stand the other way
 * round in every second pair, or lanes that read them would meet bank conflicts; digits; units. */
template <class S> struct int8_many_mma_copier {
    enum : int {
        PIECES = S::ROWS / DIGITS_ROWS,
        CHUNKS = S::TOGETHER / 16,
        FEW = DIGITS_ROWS / 4,
        TURNS = CHUNKS / S::THREADS
    };
    static_assert(TURNS * S::THREADS == CHUNKS, "a thread has a part of each piece");
    unsigned char *shared;
    const unsigned char *weights, *digits; /* of this thread in the next group */
    const float *units;
    size_t apart; /* bytes from DIGITS_ROWS rows to the next */
    int left;     /* k of this thread's panel from its line on */

    __device__ __forceinline__ int8_many_mma_copier(unsigned char *shared_, const tec_gemm_args &a,
                                                    int panel, const struct int8_many_mma_in &in,
                                                    int row)
        : shared(shared_)
    {
        int t = (int)threadIdx.x, lane = t % WARP;
        size_t groups = (size_t)ceil_div(a.k, (int)TEC_INT8_GROUP), first = row / DIGITS_ROWS;
        weights = (const unsigned char *)a.w + tec_int8_at(0) + lane * 16;
        left = panel < a.n / 16 ? a.k - lane / 4 * TEC_INT8_DEEP : 0;
        if (left > 0)
            weights += (size_t)panel * tec_int8_panel(a.k);
        apart = groups * S::TOGETHER;
        digits = in.at + first * apart + t * 16;
        units = in.units + (first + t / FEW) * groups * DIGITS_ROWS + t % FEW * 4;
    }
    __device__ __forceinline__ unsigned char *stage(int group) const
    {
        return shared + group % S::STAGES * S::STAGE;
    }
    __device__ __forceinline__ void bring_weights(int group)
    {
        int lane = (int)threadIdx.x % WARP, line = lane / 4;
        unsigned char *to = stage(group) + (int)threadIdx.x / WARP * S::PIECE +
                            line * TEC_INT8_LINE + (lane % 4 ^ (line & 2)) * 16;
        TEC_UNROLL
        for (int s = 0; s < S::STEPS; s++)
            copy16_async(to + s * S::STEP, weights + s * S::STEP, s * DIGITS_K < left);
        weights += S::PIECE;
        left -= TEC_INT8_GROUP;
    }
    __device__ __forceinline__ void bring_rows(int group)
    {
        unsigned char *to = stage(group) + (int)threadIdx.x * 16;
        TEC_UNROLL
        for (int i = 0; i < PIECES * TURNS; i++)
            copy16_async(to + S::DIGITS_AT + i * S::THREADS * 16,
                         digits + i / TURNS * apart + i % TURNS * S::THREADS * 16, true);
        digits += S::TOGETHER;
        if ((int)threadIdx.x < PIECES * FEW)
            copy16_async(to + S::UNITS_AT, units, true);
        units += DIGITS_ROWS;
    }
};

/* A lane's operand of a panel in 32 k, from its place in the first: see copier. */
static __device__ __forceinline__ void int8_many_mma_weights(unsigned (&w)[4],
                                                             const unsigned char *panel, int at)
{
    TEC_UNROLL
    for (int e = 0; e < 4; e++)
        w[e] = *reinterpret_cast<const unsigned *>(panel + (at ^ e % 2 * 32) + e / 2 * 256);
}

/* The whole sums of a warp in a group, as they are joined: of one digit the bits of floats. */
template <class S>
static __device__ __forceinline__ void int8_many_mma_multiply(int (&c)[S::M][S::N][4],
                                                              const unsigned char *stage)
{
    int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    int across = warp % S::ACROSS, eights = warp / S::ACROSS * S::N, t = lane % 4;
    const unsigned char *panel = stage + across * (S::M * S::PIECE);
    int at = t * TEC_INT8_LINE + (lane / 4 * 4 ^ (t & 2) * 16);
    const unsigned char *x = stage + S::DIGITS_AT + eights / 8 * S::TOGETHER +
                             (eights % 8 + lane / 16) * S::EIGHT + lane % 16 * 16;
    unsigned w[S::STEPS][S::M][4];
    TEC_UNROLL
    for (int i = 0; S::ROLLED && i < S::M * S::N * 4; i++)
        c[i / 4 / S::N][i / 4 % S::N][i % 4] = 0;
    TEC_UNROLL_BY(S::ROLLED ? 1 : S::EACH)
    for (int d = 0; d < S::EACH; d++) {
        TEC_UNROLL
        for (int s = 0; s < S::STEPS; s++) {
            TEC_UNROLL
            for (int i = 0; (d == 0 || S::ROLLED) && i < S::M; i++)
                int8_many_mma_weights(w[s][i], panel + i * S::PIECE + s * S::STEP, at);
            TEC_UNROLL
            for (int j = 0; j < S::N; j += 2) {
                unsigned of_x[4]; /* of 8 rows, then of the next 8 */
                load_matrices_x4(of_x, x + (s * 8 + j) * S::EIGHT + d * DIGITS_EIGHT);
                TEC_UNROLL
                for (int i = 0; i < S::M * 2; i++) {
                    int(&sum)[4] = c[i % S::M][j + i / S::M];
                    if (!S::ROLLED && d == 0 && s == 0)
                        mma_s8_from(sum, S::EACH == 1 ? INT8_MANY_MMA_ZERO : 0, w[s][i % S::M],
                                    of_x + i / S::M * 2);
                    else
                        mma_s8(sum, w[s][i % S::M], of_x + i / S::M * 2);
                }
            }
        }
        TEC_UNROLL
        for (int i = 0; d + 1 < S::EACH && i < S::M * S::N * 4; i++)
            c[i / 4 / S::N][i / 4 % S::N][i % 4] *= 256; /* 127 * 127 * 128 * 256 < 2^31 */
    }
}

/* A group's sums times its units join the chains. */
template <class S>
static __device__ __forceinline__ void int8_many_mma_join(sums<S::M, S::N> &chain,
                                                          const int (&c)[S::M][S::N][4],
                                                          const unsigned char *stage)
{
    int warp = (int)threadIdx.x / WARP, t = (int)threadIdx.x % 4;
    const float *units = reinterpret_cast<const float *>(stage + S::UNITS_AT) +
                         warp / S::ACROSS * (S::N * 8) + t * 2;
    TEC_UNROLL
    for (int j = 0; j < S::N; j++) {
        float2 unit = *reinterpret_cast<const float2 *>(units + j * 8);
        TEC_UNROLL
        for (int i = 0; i < S::M * 4; i++) {
            int sum = c[i / 4][j][i % 4];
            float whole = S::EACH == 1
                              ? __fadd_rn(__int_as_float(sum), -__int_as_float(INT8_MANY_MMA_ZERO))
                              : __int2float_rn(sum);
            float &to = chain[i / 4][j][i % 4];
            to = fmaf(whole, i % 2 ? unit.y : unit.x, to);
        }
    }
}

/* Blocks: rows (those that share weights run together), columns. */
template <class S, class Finish>
static __global__ void __launch_bounds__(S::THREADS, S::RESIDENT)
    gemm_int8_many_mma_kernel(struct tec_gemm_args a, Finish finish, struct int8_many_mma_in in)
{
    TEC_SHARED(unsigned char, shared);
    int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    int row = (int)blockIdx.x * S::ROWS, groups = ceil_div(a.k, (int)TEC_INT8_GROUP);
    const unsigned char *w = (const unsigned char *)a.w;
    struct int8_many_mma_copier<S> copier(
        shared, a, finish.panel((int)blockIdx.y * S::PANELS + warp), in, row);
    for (int g = 0; g < S::STAGES - 1; g++) /* constant: they do not wait for the kernel in front */
        copier.bring_weights(g);
    wait_previous();
    release_next();
    struct rows rows = live_rows(a);
    if (in.base + row >= rows.live) {
        copy_commit();
        copy_wait<0>(); /* what is on its way would come into the next block's memory */
        return;
    }
    for (int g = 0; g < S::STAGES - 1; g++) {
        if (g < groups)
            copier.bring_rows(g);
        copy_commit();
    }
    sums<S::M, S::N> chain = {};
    for (int g = 0; g < groups; g++) {
        int next = g + S::STAGES - 1;
        copy_wait<S::STAGES - 2>();
        __syncthreads();
        if (next < groups) {
            copier.bring_weights(next);
            copier.bring_rows(next);
        }
        copy_commit();
        int c[S::M][S::N][4];
        int8_many_mma_multiply<S>(c, copier.stage(g));
        int8_many_mma_join<S>(chain, c, copier.stage(g));
    }
    int taken[S::M];
    TEC_UNROLL
    for (int i = 0; i < S::M; i++) {
        taken[i] = finish.panel((int)blockIdx.y * S::PANELS + warp % S::ACROSS * S::M + i);
        if (taken[i] >= a.n / 16)
            continue;
        const float *scales =
            reinterpret_cast<const float *>(w + (size_t)taken[i] * tec_int8_panel(a.k)) + lane / 4;
        TEC_UNROLL
        for (int e = 0; e < S::N * 4; e++)
            chain[i][e / 4][e % 4] = __fmul_rn(chain[i][e / 4][e % 4], scales[e % 4 / 2 * 8]);
    }
    finish.run(chain, taken, in.base + row + warp / S::ACROSS * (S::N * 8), rows);
}

#define INT8_MANY_MMA_TILE(name, each, across, down, n, stages, resident, ...) \
    typedef int8_many_mma_shape<each, across, down, n, stages, resident> name; \
    static_assert((int)name::SHARED == gemm_tiles[GEMM_##name].shared &&       \
                      (int)name::THREADS == gemm_tiles[GEMM_##name].threads,   \
                  "gemm_choice.h counts with the same");
#include "kernels/cuda/gemm_tiles.def"

/* Start a part of the rows. */
template <class Finish>
static void int8_many_mma_launch(const struct gemm_start &start, const struct tec_gemm_args *a,
                                 const Finish &finish, const struct int8_many_mma_in &in,
                                 struct tec_cuda_launch *launch)
{
    dim3 blocks((unsigned)start.x, (unsigned)start.y);
#define INT8_MANY_MMA_TILE(name, ...)                                           \
    if (start.tile == GEMM_##name)                                              \
        tec_cuda_start(launch, gemm_int8_many_mma_kernel<name, Finish>, blocks, \
                       dim3(name::THREADS), name::SHARED, *a, finish, in);
#include "kernels/cuda/gemm_tiles.def"
}
