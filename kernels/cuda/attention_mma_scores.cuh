/* attention_mma_scores.cuh - queries times keys on tensor cores, and probabilities from them.
 *
 * Warps share the keys of a block for one group of 16 packed rows; each has SN tiles of eight keys,
 * so there are 8 / SN of them. */
#pragma once

#include "kernels/cuda/attention_mma_memory.cuh"

/* Row i % 16 and 8-column half i / 16 of a 16 x 16 matrix: whose address lane i gives. */
static __device__ __forceinline__ const bf16 *lane_row(const bf16 *at, int ld)
{
    int lane = (int)threadIdx.x % WARP;
    return at + lane % 16 * ld + lane / 16 * 8;
}

struct tile_scores : tile_memory {
    /* This thread: rows g and g + 8 of its group, columns 2t and 2t + 1 of tiles. */
    int group, part, g, t;

    __device__ __forceinline__ void take_place(int warps_in_group)
    {
        int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
        group = warp / warps_in_group;
        part = warp % warps_in_group;
        g = lane / 4;
        t = lane % 4;
    }

    /* Scores of this warp's keys, before the scale; products of high terms apart from the others to
     * the end. TERMS: of keys; the low ones are a block behind. Low times low is left out. */
    template <int SN, int TERMS>
    __device__ __forceinline__ void score(float s[SN][4], const bf16 *keys)
    {
        float low[SN][4];
        TEC_UNROLL
        for (int n = 0; n < SN; n++)
            TEC_UNROLL
        for (int i = 0; i < 4; i++)
            s[n][i] = low[n][i] = 0.0F;
        const bf16 *high_row = lane_row(q_high + group * 16 * ld, ld);
        const bf16 *low_row = lane_row(q_low + group * 16 * ld, ld);
        int lane = (int)threadIdx.x % WARP;
        const bf16 *key = keys + (part * SN * 8 + lane % 8) * ld + lane / 8 % 2 * 8;
        if (TERMS == 2)
            key += lane / 16 * KEYS * ld;
        TEC_UNROLL_BY(4) /* matrices are on their way while others are multiplied */
        for (int d = 0; d < dim; d += 16) {
            unsigned a_high[4], a_low[4];
            load_matrices_x4(a_high, high_row + d);
            load_matrices_x4(a_low, low_row + d);
            TEC_UNROLL
            for (int n = 0; n < SN; n++) {
                unsigned b[2 * TERMS];
                if constexpr (TERMS == 2)
                    load_matrices_x4(b, key + n * 8 * ld + d);
                else
                    load_matrices_x2(b, key + n * 8 * ld + d);
                mma_bf16(s[n], a_high, b);
                mma_bf16(low[n], a_low, b);
                if constexpr (TERMS == 2)
                    mma_bf16(low[n], a_high, b + 2);
            }
        }
        TEC_UNROLL
        for (int n = 0; n < SN; n++)
            TEC_UNROLL
        for (int i = 0; i < 4; i++)
            s[n][i] = plus(s[n][i], low[n][i]);
    }

    __device__ __forceinline__ int row_of(int half) const
    {
        return group * 16 + half * 8 + g;
    }

    /* The key of the block that s[n][2 * half] belongs to; that of s[n][2 * half + 1] is next. */
    __device__ __forceinline__ int key_of(int tile) const
    {
        return tile * 8 + 2 * t;
    }

    /* `left`: keys of this block that the two rows see. */
    template <int SN>
    __device__ __forceinline__ void find_tops(float s[SN][4], float scale, const int left[2])
    {
        TEC_UNROLL
        for (int h = 0; h < 2; h++) {
            float top = -INFINITY;
            TEC_UNROLL
            for (int n = 0; n < SN; n++)
                TEC_UNROLL
            for (int i = 0; i < 2; i++) {
                s[n][2 * h + i] = times(s[n][2 * h + i], scale);
                if (key_of(part * SN + n) + i < left[h])
                    top = fmaxf(top, s[n][2 * h + i]);
            }
            top = fmaxf(top, __shfl_xor_sync(ALL_LANES, top, 1));
            top = fmaxf(top, __shfl_xor_sync(ALL_LANES, top, 2));
            if (t == 0)
                tops[row_of(h) * (8 / SN) + part] = top;
        }
    }

    /* Scores become probabilities in shared memory, two terms each, and sums of eight of them. */
    template <int SN>
    __device__ __forceinline__ void weigh(const float s[SN][4], const int left[2], float top[2])
    {
        TEC_UNROLL
        for (int h = 0; h < 2; h++) {
            top[h] = -INFINITY;
            TEC_UNROLL
            for (int i = 0; i < 8 / SN; i++)
                top[h] = fmaxf(top[h], tops[row_of(h) * (8 / SN) + i]);
            TEC_UNROLL
            for (int n = 0; n < SN; n++) {
                float p[2];
                bf16 high[2], low[2];
                TEC_UNROLL
                for (int i = 0; i < 2; i++) {
                    bool seen = key_of(part * SN + n) + i < left[h];
                    p[i] = seen ? expf(s[n][2 * h + i] - top[h]) : 0.0F;
                    split(p[i], &high[i], &low[i]);
                }
                int at = row_of(h) * P_LD + key_of(part * SN + n);
                *reinterpret_cast<unsigned *>(p_high + at) = pack(high[0], high[1]);
                *reinterpret_cast<unsigned *>(p_low + at) = pack(low[0], low[1]);
                float sum = plus(p[0], p[1]);
                sum = plus(sum, __shfl_xor_sync(ALL_LANES, sum, 1));
                sum = plus(sum, __shfl_xor_sync(ALL_LANES, sum, 2));
                if (t == 0)
                    sums[row_of(h) * 8 + part * SN + n] = sum;
            }
        }
    }

    __device__ __forceinline__ float block_sum(int half) const
    {
        float sum = 0.0F;
        TEC_UNROLL
        for (int i = 0; i < 8; i++)
            sum = plus(sum, sums[row_of(half) * 8 + i]);
        return sum;
    }
};
