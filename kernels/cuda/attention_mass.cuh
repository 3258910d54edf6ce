/* attention_mass.cuh - what the kernels that add up weights of attention share. */
#pragma once

#include "kernels/cuda/attention.cuh"

static __device__ __forceinline__ float capped(const struct tec_attention_args &a, float s)
{
    return a.cap > 0.0F ? times(a.cap, tanhf(s / a.cap)) : s;
}

/* The first key that a row sees. */
static __device__ __forceinline__ int first_seen(const struct tec_attention_args &a, int visible)
{
    return a.window > 0 && visible > a.window ? visible - a.window : 0;
}

/* The range of a key: the first that ends behind it, or `n`. */
static __device__ __forceinline__ int range_of(const int *ends, int n, int key)
{
    int low = 0, high = n;
    while (low < high) {
        int middle = (low + high) / 2;
        if (ends[middle] > key)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static struct tec_attention_args attention_of(const struct tec_mass_args *m)
{
    struct tec_attention_args a = {};
    a.q = m->q;
    a.k = m->k;
    a.out = m->out;
    a.row_seq = m->row_seq;
    a.visible = m->visible;
    a.seqs = m->seqs;
    a.spans = m->spans;
    a.rows = m->rows;
    a.max_rows = m->max_rows;
    a.ldq = m->ldq;
    a.ldo = m->ldo;
    a.heads = m->heads;
    a.kv_heads = m->kv_heads;
    a.head_dim = m->head_dim;
    a.window = m->window;
    a.scale = m->scale;
    a.cap = m->cap;
    return a;
}

/* Over bf16 keys, by tensor cores; false: for such heads there is no code, nothing was started. */
bool tec_cuda_mass_terms(const struct tec_mass_args *a, struct tec_cuda_launch *launch);
