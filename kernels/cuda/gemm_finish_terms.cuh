/* gemm_finish_terms.cuh - finishes whose values go on as the bf16 terms of the next product's rows
 * (row_terms.cuh), for products by warp groups that have theirs as terms, too.
 *
 * A Then has value(), which gives what operator() would store, and made(column), where that is in
 * the rows it makes. Of a half of a panel and 8 rows a warp has all 64 values, two rows of a column
 * a lane. Lanes of neighbouring columns trade, so that each has two columns of a row, and a warp
 * writes the 128 bytes of a term at once. All lanes take part, those of rows that do not live, too.
 */
#pragma once

#include "kernels/cuda/gemm_finish.cuh"
#include "kernels/cuda/row_terms.cuh"

/* Rows of a column of what is made; value(j, e, r) as in each_row. */
template <int N, class Value>
static __device__ __forceinline__ void leave_rows(const terms_out &out, int first, struct rows rows,
                                                  int column, Value value)
{
    int odd = (int)threadIdx.x / 4 % 2;
    first += (int)threadIdx.x % 4 * 2;
    TEC_UNROLL
    for (int j = 0; j < N; j++) {
        float one = value(j, 0, first + j * 8), other = value(j, 1, first + j * 8 + 1);
        float got = __shfl_xor_sync(ALL_LANES, odd ? one : other, 4);
        int r = first + j * 8 + odd;
        if (r < rows.live)
            out.pair(r, column - odd, odd ? make_float2(got, other) : make_float2(one, got));
    }
}

template <class Then> struct single_terms_finish : single_finish<Then> {
    struct terms_out out;

    template <int M, int N, class Sum>
    __device__ __forceinline__ void half(int half, const int (&panel)[M], int first,
                                         struct rows rows, Sum sum) const
    {
        TEC_UNROLL
        for (int i = 0; i < M; i++) {
            int column = panel[i] * 16 + half * 8 + (int)threadIdx.x % WARP / 4;
            if (column >= this->then.a.cols) /* whole panels */
                continue;
            struct scaled scaled;
            scaled.find(this->a, column, rows);
            leave_rows<N>(out, first, rows, column, [&](int j, int e, int r) {
                return this->then.value(scaled(sum(i, j, e), r, rows));
            });
        }
    }
};

template <class Then> struct pair_terms_finish : pair_finish<Then> {
    struct terms_out out;

    template <int M, int N, class Sum>
    __device__ __forceinline__ void half(int half, const int (&panel)[M], int first,
                                         struct rows rows, Sum sum) const
    {
        int in = half * 8 + (int)threadIdx.x % WARP / 4;
        TEC_UNROLL
        for (int i = 0; i + 1 < M; i += 2) {
            int one = panel[i] * 16 + in, other = panel[i + 1] * 16 + in;
            if (one >= this->a.n || other >= this->a.n)
                continue;
            struct scaled scale_one, scale_other;
            scale_one.find(this->a, one, rows);
            scale_other.find(this->a, other, rows);
            leave_rows<N>(out, first, rows, one - this->then.a.gate_at, [&](int j, int e, int r) {
                return this->then.value(scale_one(sum(i, j, e), r, rows),
                                        scale_other(sum(i + 1, j, e), r, rows));
            });
        }
    }
};
