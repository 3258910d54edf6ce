/* attention_wide.cuh - heads of more than 256 columns, scores with a bias or a cap, and windows: a
 * thread block for each row and head.
 *
 * Encoders of short texts have a bias; layers that see a window of keys, or bend their scores, come
 * here too. It is simple and slow. Sums are kept in `out` itself. */
#pragma once

#include "kernels/cuda/attention.cuh"

enum { EACH = KEYS / WARPS };

static __device__ __forceinline__ float as_float(float v)
{
    return v;
}

static __device__ __forceinline__ float as_float(bf16 v)
{
    return __bfloat162float(v);
}

/* The bias of this block's row and head on the score of a key. */
static __device__ __forceinline__ float wide_bias(const struct tec_attention_args &a, int key)
{
    int d = key - a.pos[blockIdx.x], width = 2 * a.reach + 1;
    d = d < -a.reach ? -a.reach : d > a.reach ? a.reach : d;
    return a.bias[(size_t)blockIdx.y * (size_t)width + (size_t)(d + a.reach)];
}

/* Scores of the next block's keys, eight for each warp; at[key]: where the key's head begins.
 * Keys below `first` are outside of the window. */
template <class T>
static __device__ __forceinline__ void wide_scores(const struct tec_attention_args &a,
                                                   const float *q, struct key_walk *walk, int start,
                                                   int left, int first, float *s, size_t *at)
{
    int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    int kv_head = (int)blockIdx.y / (a.heads / a.kv_heads);
    for (int i = warp * EACH; i < (warp + 1) * EACH && i < left; i++) {
        size_t from =
            (size_t)slot_of_key(a, walk, start + i) * (size_t)a.kv_heads + (size_t)kv_head;
        float dot = 0.0F;
        from *= (size_t)a.head_dim;
        for (int d = lane; d < a.head_dim; d += WARP)
            dot = fmaf(q[d], as_float(static_cast<const T *>(a.k)[from + (size_t)d]), dot);
        dot = warp_sum(dot);
        if (lane == 0) {
            s[i] = times(dot, a.scale);
            if (a.cap > 0.0F)
                s[i] = times(a.cap, tanhf(s[i] / a.cap));
            if (a.bias)
                s[i] = plus(s[i], wide_bias(a, start + i));
            if (start + i < first)
                s[i] = -INFINITY;
            at[i] = from;
        }
    }
}

/* Scores become probabilities, the same in all threads. */
static __device__ __forceinline__ struct softmax wide_softmax(float *s, int n)
{
    struct softmax y = {-INFINITY, 0.0F};
    for (int i = 0; i < n; i++)
        y.top = fmaxf(y.top, s[i]);
    __syncthreads();
    if ((int)threadIdx.x < n)
        s[threadIdx.x] = expf(s[threadIdx.x] - y.top);
    __syncthreads();
    for (int i = 0; i < n; i++)
        y.sum = plus(y.sum, s[i]);
    return y;
}

template <class T>
static __global__ void __launch_bounds__(THREADS) attention_wide_kernel(struct tec_attention_args a)
{
    TEC_SHARED(size_t, at);
    float *s = reinterpret_cast<float *>(at + KEYS);
    int row = (int)blockIdx.x, tid = (int)threadIdx.x;
    size_t column = (size_t)blockIdx.y * (size_t)a.head_dim;
    release_next();
    wait_previous();
    if (row >= live_count(a.rows, a.max_rows))
        return;
    const struct attention_run run = find_run(a, row, row + 1);
    const float *q = a.q + (size_t)row * (size_t)a.ldq + column;
    float *out = a.out + (size_t)row * (size_t)a.ldo + column;
    struct key_walk walk = {run.span, run.end, 0};
    struct softmax y = {-INFINITY, 0.0F};
    for (int d = tid; d < a.head_dim; d += THREADS)
        out[d] = 0.0F;
    int visible = a.visible[row];
    int first = a.window > 0 && visible > a.window ? visible - a.window : 0;
    for (int start = first / KEYS * KEYS; start < run.most; start += KEYS) {
        int left = run.most - start < KEYS ? run.most - start : KEYS;
        wide_scores<T>(a, q, &walk, start, left, first, s, at);
        __syncthreads();
        struct fold f = fold_softmax(&y, wide_softmax(s, left));
        for (int d = tid; d < a.head_dim; d += THREADS) {
            float sum = 0.0F;
            for (int i = 0; i < left; i++)
                sum = fmaf(s[i], as_float(static_cast<const T *>(a.v)[at[i] + (size_t)d]), sum);
            out[d] = fold_sum(out[d], sum, f);
        }
        __syncthreads();
    }
    for (int d = tid; d < a.head_dim; d += THREADS)
        out[d] = attention_result(a, out[d], y.sum);
}

template <class T>
static void start_wide(const struct tec_attention_args *a, struct tec_cuda_launch *launch)
{
    tec_cuda_start(launch, attention_wide_kernel<T>,
                   dim3((unsigned)a->max_rows, (unsigned)a->heads), dim3(THREADS),
                   KEYS * (sizeof(size_t) + sizeof(float)), *a);
}
