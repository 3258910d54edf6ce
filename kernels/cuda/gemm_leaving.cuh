/* gemm_leaving.cuh - a finish that stores rows and leaves their sums of squares for a norm. */
#pragma once

#include "kernels/cuda/gemm_finish.cuh"
#include "kernels/cuda/gemm_norm.cuh"

/* Stores rows, and leaves the sums of squares of what then stands in their panels, for a norm
 * behind. The warp reads again what its lanes have stored: by quads, as norm.cu has them, and when
 * no sum takes a register any more. */
struct store_leaving : store_rows {
    float *squares; /* [row][n / 16]; NULL: nobody asks for them */

    template <int M, int N>
    __device__ __forceinline__ void after(int n, const int (&panel)[M], int first,
                                          struct rows rows) const
    {
        enum { TOGETHER = N < 4 ? N : 4 };
        if (!squares)
            return;
        __syncwarp();
        int row = first + (int)threadIdx.x % WARP / 4, at = (int)threadIdx.x % 4 * QUAD;
        TEC_UNROLL
        for (int i = 0; i < M; i++) {
            TEC_UNROLL
            for (int j = 0; j < N; j += TOGETHER)
                if (panel[i] < n / 16)
                    leave<TOGETHER>(n, panel[i], row + j * 8, rows.live, at);
        }
    }
    /* Of groups of 8 rows; `row`: this lane's of the first, `at`: its columns of the panel. */
    template <int TOGETHER>
    __device__ __forceinline__ void leave(int n, int panel, int row, int live, int at) const
    {
        float4 v[TOGETHER];
        TEC_UNROLL
        for (int j = 0; j < TOGETHER; j++)
            v[j] = row + j * 8 < live ? quad_at(row + j * 8, panel * 16 + at)
                                      : make_float4(0.0F, 0.0F, 0.0F, 0.0F);
        TEC_UNROLL
        for (int j = 0; j < TOGETHER; j++) {
            float sum = panel_squares(squares_of(v[j]));
            if (at == 0 && row + j * 8 < live)
                squares[(size_t)(row + j * 8) * (size_t)(n / 16) + (size_t)panel] = sum;
        }
    }
    __device__ __forceinline__ float4 quad_at(int r, int column) const
    {
        return *reinterpret_cast<const float4 *>(y + (size_t)r * (size_t)ldy + (size_t)column);
    }
};

/* squares: NULL or where they are left. */
static inline struct single_finish<store_leaving> leaving_finish(const struct tec_gemm_args *a,
                                                                 float *squares) {
    struct store_leaving store;
    store.y = a->y;
    store.ldy = a->ldy;
    store.add = a->add;
    store.squares = squares;
    return {*a, store};
}
