/* gemm_tiles.cuh - weights and rows of x on their way to the tensor cores.
 *
 * Weights are the first operand (16 columns of the product by 16 k), rows of x the second (16 k by
 * 8 rows), for one row and for a thousand: one instruction, one order of k. A block works on
 * COLUMNS columns and ROWS rows in steps of K; STAGES steps are on their way. A stage holds the
 * weights as they are stored (TEC_MATRIX_TILES) and x as float32, each row padded by 32 bytes so
 * that lanes read it without conflicts. x becomes bf16 in registers: its nearest bf16 and, with two
 * terms, that of what remains, which carries about 17 bits together. */
#pragma once

#include "kernels/cuda/gemm_split.cuh"
#include "kernels/cuda/split_terms.cuh"

/* WARPS = ACROSS (columns) x DOWN (rows) warps of M blocks of 16 columns and N groups of 8 rows. */
template <int TERMS_, int ACROSS_, int DOWN_, int M_, int N_, int K_, int STAGES_> struct shape {
    enum : int {
        TERMS = TERMS_,
        ACROSS = ACROSS_,
        DOWN = DOWN_,
        M = M_,
        N = N_,
        K = K_,
        STAGES = STAGES_,
        THREADS = ACROSS * DOWN * WARP,
        PANELS = ACROSS * M,
        COLUMNS = PANELS * 16,
        ROWS = DOWN * N * 8,
        STEP = K / 16, /* blocks of 16 k */
        UNROLL = STEP,
        PIECE = K * 16 * 2, /* bytes of a panel's weights in a stage */
        LDX = K + 8,        /* floats */
        WEIGHTS = PANELS * PIECE,
        STAGE = WEIGHTS + ROWS * LDX * 4,
        SHARED = STAGES * STAGE,
        WALKS = M * N >= 8,           /* a block may walk over the splits */
        SHARES = M * N <= 8,          /* blocks may share them */
        RESIDENT = M * N <= 8 ? 2 : 1 /* blocks that there should be registers for */
    };
    static_assert(STEP_BLOCKS % STEP == 0, "a split is whole steps");
    static_assert(SHARED <= 99 * 1024, "more than a block has on small devices");
};

/* The step from block `at` on: weights of the tile's panels, zero beyond n and k. `panel` maps the
 * tile's panels to those of the matrix; a panel at or beyond `panels` is none. */
template <class S, class Panel>
static __device__ __forceinline__ void fetch_weights(unsigned char *stage, const void *w,
                                                     int panels, int blocks, int at, Panel panel)
{
    TEC_UNROLL
    for (int c = (int)threadIdx.x; c < S::WEIGHTS / 16; c += S::THREADS) {
        int p = panel(c / (S::PIECE / 16)), in = c % (S::PIECE / 16);
        bool valid = p < panels && at + in / 32 < blocks;
        size_t from = valid ? ((size_t)p * (size_t)blocks + (size_t)at) * 512 + (size_t)in * 16 : 0;
        copy16_async(stage + c * 16, (const unsigned char *)w + from, valid);
    }
}

/* Rows first .. of x, columns k .. k + K - 1; zero beyond `live` and beyond a.k. */
template <class S>
static __device__ __forceinline__ void fetch_rows(unsigned char *stage, const tec_gemm_args &a,
                                                  int first, int live, int k)
{
    float *to = reinterpret_cast<float *>(stage + S::WEIGHTS);
    TEC_UNROLL
    for (int c = (int)threadIdx.x; c < S::ROWS * (S::K / 4); c += S::THREADS) {
        int r = c / (S::K / 4), in = c % (S::K / 4) * 4, left = a.k - (k + in);
        bool valid = first + r < live && left > 0;
        const float *from = a.x;
        if (valid)
            from += (size_t)(first + r) * (size_t)a.ldx + (size_t)(k + in);
        float *place = to + r * S::LDX + in;
        if (!valid || left >= 4)
            copy16_async(place, from, valid);
        else
            for (int i = 0; i < 4; i++)
                place[i] = i < left ? from[i] : 0.0F;
    }
}

/* Four columns of x, or of a vector; zero from `columns` on. */
static __device__ __forceinline__ float4 quad_of(const float *x, int at, int columns)
{
    if (at + 4 <= columns)
        return *reinterpret_cast<const float4 *>(x + at);
    float4 v = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
    v.x = at < columns ? x[at] : 0.0F;
    v.y = at + 1 < columns ? x[at + 1] : 0.0F;
    v.z = at + 2 < columns ? x[at + 2] : 0.0F;
    return v;
}

/* The warp's part of a stage, added to c. Of each block the small term goes first. What x becomes
 * is its front's affair: gemm_norm.cuh. */
template <class S, class Lane>
static __device__ __forceinline__ void multiply(sums<S::M, S::N> &c, const unsigned char *stage,
                                                const Lane &front)
{
    int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    const unsigned char *w = stage + (warp % S::ACROSS) * (S::M * S::PIECE) + lane * 16;
    const float *x = reinterpret_cast<const float *>(stage + S::WEIGHTS) +
                     ((warp / S::ACROSS) * (S::N * 8) + lane / 4) * S::LDX + lane % 4 * 2;
    TEC_UNROLL_BY(S::UNROLL)
    for (int b = 0; b < S::STEP; b++) {
        unsigned wide[S::M][4], high[S::N][2], rest[S::N][2];
        TEC_UNROLL
        for (int i = 0; i < S::M; i++)
            load_matrices_x4(wide[i], w + i * S::PIECE + b * 512);
        TEC_UNROLL
        for (int h = 0; h < 2; h++) {
            auto vectors = front.at(stage, b * 16 + h * 8 + lane % 4 * 2);
            TEC_UNROLL
            for (int j = 0; j < S::N; j++) {
                const float *at = x + j * 8 * S::LDX + b * 16 + h * 8;
                float2 v = *reinterpret_cast<const float2 *>(at);
                high[j][h] = split_terms(front.value(v, j, vectors), &rest[j][h]);
            }
        }
        TEC_UNROLL
        for (int term = S::TERMS; term > 0; term--) {
            TEC_UNROLL
            for (int j = 0; j < S::N; j++) {
                TEC_UNROLL
                for (int i = 0; i < S::M; i++)
                    mma_bf16(c[i][j], wide[i], term == 2 ? rest[j] : high[j]);
            }
        }
    }
}
