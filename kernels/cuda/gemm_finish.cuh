/* gemm_finish.cuh - what becomes of finished sums: bias and gate, then a Then stores them.
 *
 * A thread's sums: lane l of a warp holds columns l / 4 and l / 4 + 8 of each of its panels, rows
 * l % 4 * 2 and the next of each group of 8. */
#pragma once

#include "kernels/cuda/gemm_tiles.cuh"

/* Live rows of a launch, and those of them that take the second gate. */
struct rows {
    int live, fixed;
};

/* gate * (sum + bias) of one column, each step rounded, never fused: the same in every kernel. */
struct scaled {
    float bias, gate, second;

    __device__ __forceinline__ scaled(const tec_gemm_args &a, int column, struct rows rows)
        : bias(a.bias ? a.bias[column] : 0.0F), gate(a.gate ? a.gate[column] : 1.0F),
          second(rows.fixed && a.fixed_gate ? a.fixed_gate[column] : 1.0F)
    {
    }
    __device__ __forceinline__ float operator()(float sum, int r, struct rows rows) const
    {
        return __fmul_rn(r < rows.fixed ? second : gate, __fadd_rn(sum, bias));
    }
};

/* f(j, e, r) for each live row of this thread: group j, the first (e = 0) or second of its two. */
template <int N, class F>
static __device__ __forceinline__ void each_row(int first, struct rows rows, F f)
{
    TEC_UNROLL
    for (int j = 0; j < N; j++) {
        TEC_UNROLL
        for (int e = 0; e < 2; e++) {
            int r = first + j * 8 + (int)threadIdx.x % 4 * 2 + e;
            if (r < rows.live)
                f(j, e, r);
        }
    }
}

/* All panels in their order; then(r, column, value). */
template <class Then> struct single_finish {
    enum : bool { PAIRS = false };
    struct tec_gemm_args a;
    Then then;

    __host__ __device__ int places() const
    {
        return a.n / 16;
    }
    __device__ int panel(int place) const
    {
        return place;
    }
    template <int M, int N>
    __device__ __forceinline__ void run(const sums<M, N> &c, const int (&panel)[M], int first,
                                        struct rows rows) const
    {
        TEC_UNROLL
        for (int i = 0; i < M; i++) {
            TEC_UNROLL
            for (int half = 0; half < 2; half++) {
                int column = panel[i] * 16 + half * 8 + (int)threadIdx.x % WARP / 4;
                if (column >= a.n)
                    continue;
                struct scaled scaled(a, column, rows);
                each_row<N>(first, rows, [&](int j, int e, int r) {
                    then(r, column, scaled(c[i][j][half * 2 + e], r, rows));
                });
            }
        }
    }
};

/* Panels in pairs: Then has pairs() and panel(pair, 0 or 1); then(r, column of the first, its
 * value, value of the second). */
template <class Then> struct pair_finish {
    enum : bool { PAIRS = true };
    struct tec_gemm_args a;
    Then then;

    __host__ __device__ int places() const
    {
        return 2 * then.pairs();
    }
    __device__ int panel(int place) const
    {
        return place < places() ? then.panel(place / 2, place % 2) : a.n / 16;
    }
    template <int M, int N>
    __device__ __forceinline__ void run(const sums<M, N> &c, const int (&panel)[M], int first,
                                        struct rows rows) const
    {
        TEC_UNROLL
        for (int i = 0; i + 1 < M; i += 2) {
            TEC_UNROLL
            for (int half = 0; half < 2; half++) {
                int in = half * 8 + (int)threadIdx.x % WARP / 4;
                int one = panel[i] * 16 + in, other = panel[i + 1] * 16 + in;
                if (one >= a.n || other >= a.n)
                    continue;
                struct scaled scale_one(a, one, rows), scale_other(a, other, rows);
                each_row<N>(first, rows, [&](int j, int e, int r) {
                    then(r, one, scale_one(c[i][j][half * 2 + e], r, rows),
                         scale_other(c[i + 1][j][half * 2 + e], r, rows));
                });
            }
        }
    }
};
