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
static __device__ __forceinline__ struct rows live_rows(const tec_gemm_args &a)
{
    return {live_count(a.rows, a.max_rows), a.fixed ? *a.fixed : 0};
}

/* gate * (sum + bias) of one column, each step rounded, never fused: the same in every kernel. */
struct scaled {
    float bias, gate, second;

    __device__ __forceinline__ void find(const tec_gemm_args &a, int column, struct rows rows)
    {
        bias = a.bias ? a.bias[column] : 0.0F;
        gate = a.gate ? a.gate[column] : 1.0F;
        second = rows.fixed && a.fixed_gate ? a.fixed_gate[column] : 1.0F;
    }
    __device__ __forceinline__ float operator()(float sum, int r, struct rows rows) const
    {
        return __fmul_rn(r < rows.fixed ? second : gate, __fadd_rn(sum, bias));
    }
};

/* A Then stores one value, or two of a pair, of a row. What it reads for that stands apart, so that
 * a thread has the reads of several rows on their way at once, not one behind each store:
 *
 *     place_of(r)              what a row's place depends on, by memory: its position, its slot
 *     load(place, r, column)   what is read there before the store
 *     operator()(place, loaded, r, column, value[, value of the other panel])
 *     after(n, panels, first, rows)  of single values: behind all stores of a warp, of few rows or
 *                              by mma: the product's columns, its panels, its first row
 *
 * This is a Then that reads nothing. */
struct reads_nothing {
    enum : int { TOGETHER = 2 }; /* groups of 8 rows that it has registers for at once */
    enum : bool {
        WIDE = true, /* a kernel with as few registers as terms_wide may end so */
        WHOLE = true /* by warp groups, so may one block with all of a tile's 17 to 64 rows */
    };
    struct nothing {
    };
    __device__ __forceinline__ nothing place_of(int) const
    {
        return nothing();
    }
    __device__ __forceinline__ nothing load(nothing, int, int) const
    {
        return nothing();
    }
    template <int M, int N>
    __device__ __forceinline__ void after(int, const int (&)[M], int, struct rows) const
    {
    }
};

/* Each value goes to its place in y. */
struct store_rows : reads_nothing {
    float *y;
    int ldy, add;

    __device__ __forceinline__ float load(nothing, int r, int column) const
    {
        return add ? y[(size_t)r * (size_t)ldy + (size_t)column] : 0.0F;
    }
    __device__ __forceinline__ void operator()(nothing, float old, int r, int column, float v) const
    {
        y[(size_t)r * (size_t)ldy + (size_t)column] = add ? __fadd_rn(old, v) : v;
    }
};

/* Store what a thread has of its rows: K values of each (load and store get which), rows in
 * batches. `first`: of the first group of 8 rows; load(place, k, r), store(place, loaded, k, j, e,
 * r) with group j, the first (e = 0) or second of its two. */
template <int N, int K, class Then, class Load, class Store>
static __device__ __forceinline__ void each_row(const Then &then, int first, struct rows rows,
                                                Load load, Store store)
{
    enum { TOGETHER = N < Then::TOGETHER ? N : Then::TOGETHER };
    first += (int)threadIdx.x % 4 * 2;
    TEC_UNROLL
    for (int at = 0; at < N; at += TOGETHER) {
        decltype(then.place_of(0)) place[TOGETHER][2] = {};
        decltype(load(place[0][0], 0, 0)) loaded[TOGETHER][2][K] = {};
        TEC_UNROLL
        for (int j = 0; j < TOGETHER; j++) {
            TEC_UNROLL
            for (int e = 0; e < 2; e++)
                if (first + (at + j) * 8 + e < rows.live)
                    place[j][e] = then.place_of(first + (at + j) * 8 + e);
        }
        TEC_UNROLL
        for (int j = 0; j < TOGETHER; j++) {
            TEC_UNROLL
            for (int e = 0; e < 2; e++) {
                TEC_UNROLL
                for (int k = 0; k < K; k++)
                    if (first + (at + j) * 8 + e < rows.live)
                        loaded[j][e][k] = load(place[j][e], k, first + (at + j) * 8 + e);
            }
        }
        TEC_UNROLL
        for (int j = 0; j < TOGETHER; j++) {
            TEC_UNROLL
            for (int e = 0; e < 2; e++) {
                TEC_UNROLL
                for (int k = 0; k < K; k++)
                    if (first + (at + j) * 8 + e < rows.live)
                        store(place[j][e], loaded[j][e][k], k, at + j, e, first + (at + j) * 8 + e);
            }
        }
    }
}

/* Both halves of the panels: columns 0 .. 7 and 8 .. 15 of each. */
template <class Finish, int M, int N>
static __device__ __forceinline__ void halves_of(const Finish &finish, const sums<M, N> &c,
                                                 const int (&panel)[M], int first, struct rows rows)
{
    TEC_UNROLL
    for (int half = 0; half < 2; half++)
        finish.template half<M, N>(half, panel, first, rows,
                                   [&](int i, int j, int e) { return c[i][j][half * 2 + e]; });
}

/* All panels in their order. */
template <class Then> struct single_finish {
    enum : bool { PAIRS = false, WIDE = Then::WIDE, WHOLE = Then::WHOLE };
    enum : int { TOGETHER = Then::TOGETHER };
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
    template <int M, int N, class Sum>
    __device__ __forceinline__ void half(int half, const int (&panel)[M], int first,
                                         struct rows rows, Sum sum) const
    {
        struct scaled scaled[M] = {};
        int in = half * 8 + (int)threadIdx.x % WARP / 4;
        TEC_UNROLL
        for (int i = 0; i < M; i++)
            if (panel[i] * 16 + in < a.n)
                scaled[i].find(a, panel[i] * 16 + in, rows);
        each_row<N, M>(
            then, first, rows,
            [&](auto place, int i, int r) {
                int column = panel[i] * 16 + in;
                decltype(then.load(place, r, column)) none = {};
                return column < a.n ? then.load(place, r, column) : none;
            },
            [&](auto place, auto loaded, int i, int j, int e, int r) {
                int column = panel[i] * 16 + in;
                if (column < a.n)
                    then(place, loaded, r, column, scaled[i](sum(i, j, e), r, rows));
            });
    }
    template <int M, int N>
    __device__ __forceinline__ void run(const sums<M, N> &c, const int (&panel)[M], int first,
                                        struct rows rows) const
    {
        halves_of(*this, c, panel, first, rows);
        then.template after<M, N>(a.n, panel, first, rows);
    }
    /* Of a block that has 8 rows at a time. */
    template <int M>
    __device__ __forceinline__ void run_eight(const sums<M, 1> &c, const int (&panel)[M], int first,
                                              struct rows rows) const
    {
        run(c, panel, first, rows);
    }
};

/* A finish that stores y. */
static __host__ __device__ __forceinline__ struct single_finish<store_rows>
rows_finish(const tec_gemm_args &a) {
    struct store_rows store;
    store.y = a.y;
    store.ldy = a.ldy;
    store.add = a.add;
    return {a, store};
}

/* Panels in pairs: Then has pairs() and panel(pair, 0 or 1), and gets the column of the first. */
template <class Then>
struct pair_finish {
    enum : bool { PAIRS = true, WIDE = Then::WIDE, WHOLE = Then::WHOLE };
    enum : int { TOGETHER = Then::TOGETHER };
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
    template <int M, int N, class Sum>
    __device__ __forceinline__ void half(int half, const int (&panel)[M], int first,
                                         struct rows rows, Sum sum) const
    {
        int in = half * 8 + (int)threadIdx.x % WARP / 4;
        TEC_UNROLL
        for (int i = 0; i + 1 < M; i += 2) {
            int one = panel[i] * 16 + in, other = panel[i + 1] * 16 + in;
            if (one >= a.n || other >= a.n)
                continue;
            struct scaled scale_one, scale_other;
            scale_one.find(a, one, rows);
            scale_other.find(a, other, rows);
            each_row<N, 1>(
                then, first, rows, [&](auto place, int, int r) { return then.load(place, r, one); },
                [&](auto place, auto loaded, int, int j, int e, int r) {
                    then(place, loaded, r, one, scale_one(sum(i, j, e), r, rows),
                         scale_other(sum(i + 1, j, e), r, rows));
                });
        }
    }
    template <int M, int N>
    __device__ __forceinline__ void run(const sums<M, N> &c, const int (&panel)[M], int first,
                                        struct rows rows) const
    {
        halves_of(*this, c, panel, first, rows);
    }
    /* The same of a block that has 8 rows at a time: what both halves read is on its way at once.
     */
    __device__ __forceinline__ void run_eight(const sums<2, 1> &c, const int (&panel)[2], int first,
                                              struct rows rows) const
    {
        struct scaled scaled[2][2]; /* [half][panel] */
        int in = (int)threadIdx.x % WARP / 4, one = panel[0] * 16 + in, other = panel[1] * 16 + in;
        if (max(one, other) + 8 >= a.n)
            return;
        TEC_UNROLL
        for (int half = 0; half < 2; half++) {
            scaled[half][0].find(a, one + half * 8, rows);
            scaled[half][1].find(a, other + half * 8, rows);
        }
        each_row<1, 2>(
            then, first, rows,
            [&](auto place, int half, int r) { return then.load(place, r, one + half * 8); },
            [&](auto place, auto loaded, int half, int, int e, int r) {
                then(place, loaded, r, one + half * 8,
                     scaled[half][0](c[0][0][half * 2 + e], r, rows),
                     scaled[half][1](c[1][0][half * 2 + e], r, rows));
            });
    }
};
