/* gemm_split.cuh - how the pieces of a product's inner length add up.
 *
 * k is cut in splits that depend on the matrix (n, k) alone (gemm_choice.h). The sum of a split
 * begins at zero and runs in the order of k; sums of splits are added in their order. Who does it
 * is free: a block for each split, the last of which to arrive adds them up, or which, where they
 * run at the same time, add a part of the rows each; or one block that walks over all of them with
 * a running total in registers. The bytes are the same, so the choice may follow the number of rows
 * and the device. */
#pragma once

#include "kernels/cuda/gemm_choice.h"
#include "kernels/cuda/lang.cuh"

/* Memory in which the blocks of a launch exchange the sums of splits: [tile][split][thread's
 * pieces], each piece in the order of threads; and a counter for each tile, 0 between launches. */
struct exchange {
    float4 *sums;
    int *tickets;
};

template <int M, int N> using sums = float[M][N][4];

template <int M, int N> static __device__ __forceinline__ void clear(sums<M, N> &c)
{
    TEC_UNROLL
    for (int i = 0; i < M; i++) {
        TEC_UNROLL
        for (int j = 0; j < N; j++) {
            TEC_UNROLL
            for (int e = 0; e < 4; e++)
                c[i][j][e] = 0.0F;
        }
    }
}

/* total = c for the first split, then total += c. */
template <int M, int N>
static __device__ __forceinline__ void fold(sums<M, N> &total, const sums<M, N> &c, bool first)
{
    TEC_UNROLL
    for (int i = 0; i < M; i++) {
        TEC_UNROLL
        for (int j = 0; j < N; j++) {
            TEC_UNROLL
            for (int e = 0; e < 4; e++)
                total[i][j][e] = first ? c[i][j][e] : total[i][j][e] + c[i][j][e];
        }
    }
}

/* True in the one block of a tile that arrives last; what the others wrote before is then seen. */
static __device__ __forceinline__ bool arrive_last(int *ticket, int count)
{
    __shared__ int last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(ticket, 1) == count - 1;
        if (last)
            *ticket = 0;
    }
    __syncthreads();
    if (last)
        __threadfence();
    return last != 0;
}

/* Leave c, the sums of split `at` counted over all tiles. Of N groups of 8 rows the first `groups`
 * are live; `thread` of the THREADS that have sums. */
template <int M, int N, int THREADS>
static __device__ __forceinline__ void leave_sums(const sums<M, N> &c, const struct exchange &e,
                                                  int at, int groups, int thread)
{
    float4 *mine = e.sums + (size_t)at * (M * N * THREADS) + thread;
    TEC_UNROLL
    for (int i = 0; i < M; i++) {
        TEC_UNROLL
        for (int j = 0; j < N; j++)
            if (j < groups)
                mine[(i * N + j) * THREADS] =
                    make_float4(c[i][j][0], c[i][j][1], c[i][j][2], c[i][j][3]);
    }
}

/* c = the sums of all splits of a tile, in their order. */
template <int M, int N, int THREADS>
static __device__ __forceinline__ void add_sums(sums<M, N> &c, const struct exchange &e, int tile,
                                                int count, int groups, int thread)
{
    const float4 *from = e.sums + (size_t)tile * (size_t)count * (M * N * THREADS) + thread;
    for (int s = 0; s < count; s++, from += M * N * THREADS) {
        TEC_UNROLL
        for (int i = 0; i < M; i++) {
            TEC_UNROLL
            for (int j = 0; j < N; j++) {
                if (j >= groups)
                    continue;
                float4 v = load_far(&from[(i * N + j) * THREADS]);
                c[i][j][0] = s ? c[i][j][0] + v.x : v.x;
                c[i][j][1] = s ? c[i][j][1] + v.y : v.y;
                c[i][j][2] = s ? c[i][j][2] + v.z : v.z;
                c[i][j][3] = s ? c[i][j][3] + v.w : v.w;
            }
        }
    }
}

/* c = the sums of all splits of a tile, in their order, of group `group` of 8 rows; TOGETHER splits
 * are on their way at once. */
template <int M, int N, int THREADS, int TOGETHER>
static __device__ __forceinline__ void add_group(sums<M, 1> &c, const struct exchange &e, int tile,
                                                 int count, int group, int thread)
{
    const float4 *from = e.sums + (size_t)tile * (size_t)count * (M * N * THREADS) + thread;
    for (int s = 0; s < count; s += TOGETHER) {
        float4 v[TOGETHER][M];
        TEC_UNROLL
        for (int t = 0; t < TOGETHER; t++) {
            TEC_UNROLL
            for (int i = 0; i < M; i++)
                if (s + t < count)
                    v[t][i] = load_far(&from[(((s + t) * M + i) * N + group) * THREADS]);
        }
        TEC_UNROLL
        for (int t = 0; t < TOGETHER; t++) {
            TEC_UNROLL
            for (int i = 0; i < M; i++) {
                if (s + t >= count)
                    continue;
                c[i][0][0] = s + t ? c[i][0][0] + v[t][i].x : v[t][i].x;
                c[i][0][1] = s + t ? c[i][0][1] + v[t][i].y : v[t][i].y;
                c[i][0][2] = s + t ? c[i][0][2] + v[t][i].z : v[t][i].z;
                c[i][0][3] = s + t ? c[i][0][3] + v[t][i].w : v[t][i].w;
            }
        }
    }
}

/* Leave c, the sums of one split; in the last block of the tile c becomes the sum of all. */
template <int M, int N, int THREADS>
static __device__ bool gather(sums<M, N> &c, const struct exchange &e, int tile, int at, int count,
                              int groups)
{
    int thread = (int)threadIdx.x;
    leave_sums<M, N, THREADS>(c, e, tile * count + at, groups, thread);
    if (!arrive_last(e.tickets + tile, count))
        return false;
    add_sums<M, N, THREADS>(c, e, tile, count, groups, thread);
    return true;
}
