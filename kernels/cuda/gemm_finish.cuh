/* gemm_finish.cuh - what becomes of finished sums: bias, gate, add, and where they are stored.
 *
 * A finish says which panels a tile of the product takes (so that sums that belong together meet in
 * one thread) and gets each thread's sums once. */
#pragma once

#include "kernels/cuda/gemm_tiles.cuh"

/* Live rows of a launch, and those of them that take the second gate. */
struct rows {
    int live, fixed;
};

/* y (+)= gate * (sum + bias), each step rounded, never fused: the same bytes in every kernel. */
struct plain_finish {
    struct tec_gemm_args a;

    __device__ int panels() const
    {
        return a.n / 16;
    }
    /* Panel p of tile t, of `each` panels a tile. */
    __device__ int panel(int t, int each, int p) const
    {
        return t * each + p;
    }
    __device__ __forceinline__ void store(int r, int column, float sum, float gate) const
    {
        float *y = a.y + (size_t)r * (size_t)a.ldy + (size_t)column;
        float v = __fmul_rn(gate, sum);
        *y = a.add ? __fadd_rn(*y, v) : v;
    }
    /* Sums of the blocks of 16 columns whose first panel is `panel`, rows `first` on: lane l holds
     * columns l / 4 and l / 4 + 8 of each block, rows l % 4 * 2 and the next of each group. */
    template <int M, int N>
    __device__ void run(const sums<M, N> &c, const int (&panel)[M], int first,
                        struct rows rows) const
    {
        int lane = (int)threadIdx.x % WARP;
        TEC_UNROLL
        for (int i = 0; i < M; i++) {
            TEC_UNROLL
            for (int half = 0; half < 2; half++) {
                int column = panel[i] * 16 + half * 8 + lane / 4;
                if (column >= a.n)
                    continue;
                float bias = a.bias ? a.bias[column] : 0.0F;
                float gate = a.gate ? a.gate[column] : 1.0F;
                float second = rows.fixed && a.fixed_gate ? a.fixed_gate[column] : 1.0F;
                TEC_UNROLL
                for (int j = 0; j < N; j++)
                    TEC_UNROLL
                for (int e = 0; e < 2; e++) {
                    int r = first + j * 8 + lane % 4 * 2 + e;
                    if (r < rows.live)
                        store(r, column, __fadd_rn(c[i][j][half * 2 + e], bias),
                              r < rows.fixed ? second : gate);
                }
            }
        }
    }
};
