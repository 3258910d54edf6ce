/* attention_mma_memory.cuh - shared memory of attention on tensor cores, and what is loaded there.
 *
 * Queries lie as two bf16 terms, loaded once. Keys and values of bf16 memory come in by
 * asynchronous copies, one block of 64 keys into each of `stages` places. Those of float32 memory
 * wait in registers and become two terms; keys and then values of a block have one place. */
#pragma once

#include "kernels/cuda/attention_share.cuh"

enum { P_LD = BF16_P_LD };

static __device__ __forceinline__ unsigned pack(bf16 low, bf16 high)
{
    return (unsigned)__bfloat16_as_ushort(low) | (unsigned)__bfloat16_as_ushort(high) << 16;
}

/* v as two terms; `low` of an infinite v is NaN, and shows. */
static __device__ __forceinline__ void split(float v, bf16 *high, bf16 *low)
{
    *high = __float2bfloat16(v);
    *low = __float2bfloat16(plus(v, -__bfloat162float(*high)));
}

/* Four values as two terms. */
static __device__ __forceinline__ void store_terms(bf16 *to_high, bf16 *to_low, float4 v)
{
    bf16 high[4], low[4];
    split(v.x, &high[0], &low[0]);
    split(v.y, &high[1], &low[1]);
    split(v.z, &high[2], &low[2]);
    split(v.w, &high[3], &low[3]);
    *reinterpret_cast<uint2 *>(to_high) =
        make_uint2(pack(high[0], high[1]), pack(high[2], high[3]));
    *reinterpret_cast<uint2 *>(to_low) = make_uint2(pack(low[0], low[1]), pack(low[2], low[3]));
}

/* Threads that load a key of a block. */
enum { PER_KEY = THREADS / KEYS };

/* Columns of one key or value of float32 memory on their way: QUADS times four for a thread. */
template <int QUADS> struct held_terms {
    float4 quad[QUADS];

    /* The first column of a thread's quad; the others are ACROSS columns apart. */
    enum { ACROSS = 4 * PER_KEY };
    static __device__ __forceinline__ int first_column()
    {
        return (int)threadIdx.x % PER_KEY * 4;
    }

    /* `from`: where the head begins, or NULL for zeros. */
    __device__ __forceinline__ void ask(const float *from, int dim)
    {
        int left = 0;
        if (from) {
            left = dim - first_column();
            from += first_column();
        }
        TEC_UNROLL
        for (int n = 0; n < QUADS; n++)
            quad[n] = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
        if (dim % 4 == 0) {
            TEC_UNROLL
            for (int n = 0; n < QUADS; n++)
                if (n * ACROSS < left)
                    quad[n] = *reinterpret_cast<const float4 *>(from + n * ACROSS);
            return;
        }
        TEC_UNROLL
        for (int n = 0; n < QUADS; n++) {
            quad[n].x = n * ACROSS < left ? from[n * ACROSS] : 0.0F;
            quad[n].y = n * ACROSS + 1 < left ? from[n * ACROSS + 1] : 0.0F;
            quad[n].z = n * ACROSS + 2 < left ? from[n * ACROSS + 2] : 0.0F;
            quad[n].w = n * ACROSS + 3 < left ? from[n * ACROSS + 3] : 0.0F;
        }
    }

    /* The low terms lie a block behind the high ones; columns up to whole instructions are
     * written. */
    __device__ __forceinline__ void put(bf16 *to, int ld) const
    {
        bf16 *high = to + (int)threadIdx.x / PER_KEY * ld + first_column(), *low = high + KEYS * ld;
        int left = ld - 8 - first_column();
        TEC_UNROLL
        for (int n = 0; n < QUADS; n++)
            if (n * ACROSS < left)
                store_terms(high + n * ACROSS, low + n * ACROSS, quad[n]);
    }
};

/* bf16 memory: nothing waits. */
template <> struct held_terms<0> {
    __device__ __forceinline__ void put(bf16 *, int) const
    {
    }
};

struct tile_memory {
    bf16 *q_high, *q_low, *k, *v, *p_high, *p_low;
    float *tops, *sums; /* [m, 8] largest scores, sums of probabilities */
    int *sees, *flag;   /* [m] keys that a packed row sees */
    struct attention_job *job;
    int ld, dim;
    int slot; /* of the key that was asked for last */
    struct key_walk walk;

    __device__ __forceinline__ void lay_out(int head_dim, unsigned char *shared, int m, int stages)
    {
        dim = head_dim;
        ld = bf16_row_stride(dim);
        p_high = reinterpret_cast<bf16 *>(shared); /* what has fixed places, then the rest */
        p_low = p_high + m * P_LD;
        tops = reinterpret_cast<float *>(p_low + m * P_LD);
        sums = tops + m * 8;
        sees = reinterpret_cast<int *>(sums + m * 8);
        flag = sees + m;
        job = reinterpret_cast<struct attention_job *>(flag + 4);
        q_high = reinterpret_cast<bf16 *>(flag + 4 + JOB);
        q_low = q_high + m * ld;
        k = q_low + m * ld;
        v = k + stages * KEYS * ld;
    }

    /* Columns of keys and values that instructions read and no copy writes. */
    __device__ __forceinline__ void clear_padding(int stages)
    {
        int width = ld - 8 - dim;
        if (width == 0)
            return;
        ROLLED
        for (int i = (int)threadIdx.x; i < 2 * stages * KEYS; i += THREADS)
            for (int d = dim; d < ld - 8; d++)
                k[i * ld + d] = __float2bfloat16(0.0F);
    }

    /* A warp takes two rows at a time, four columns a lane: all its reads are on their way at once.
     */
    __device__ __forceinline__ void load_query_quads(const struct tec_attention_args &a,
                                                     const struct packing &pack_, int m)
    {
        enum { QUADS = 2 }; /* of a lane: heads have at most 256 columns here */
        int first = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
        ROLLED
        for (int i = 0; i < m / WARPS; i += 2) {
            float4 v[2][QUADS];
            TEC_UNROLL
            for (int r = 0; r < 2; r++) {
                int p = first + (i + r) * WARPS;
                bool real = p < pack_.count;
                const float *from = a.q + (real ? packed_at(pack_, p, a.ldq, dim) : 0);
                TEC_UNROLL
                for (int n = 0; n < QUADS; n++) {
                    int d = (n * WARP + lane) * 4;
                    v[r][n] = real && d < dim ? *reinterpret_cast<const float4 *>(from + d)
                                              : make_float4(0.0F, 0.0F, 0.0F, 0.0F);
                }
            }
            TEC_UNROLL
            for (int r = 0; r < 2; r++) {
                TEC_UNROLL
                for (int n = 0; n < QUADS; n++)
                    if ((n * WARP + lane) * 4 < ld - 8) {
                        int at = (first + (i + r) * WARPS) * ld + (n * WARP + lane) * 4;
                        store_terms(q_high + at, q_low + at, v[r][n]);
                    }
            }
        }
    }

    __device__ __forceinline__ void load_queries(const struct tec_attention_args &a,
                                                 const struct packing &pack_,
                                                 const struct attention_run &run, int m)
    {
        bool quads = dim % 4 == 0 && a.ldq % 4 == 0 && reinterpret_cast<uintptr_t>(a.q) % 16 == 0;
        if (quads)
            load_query_quads(a, pack_, m);
        ROLLED
        for (int i = 0; i < (quads ? 0 : m / WARPS); i++) {
            int p = (int)threadIdx.x / WARP + i * WARPS;
            bool real = p < pack_.count;
            const float *from = a.q + (real ? packed_at(pack_, p, a.ldq, dim) : 0);
            for (int d = (int)threadIdx.x % WARP; d < ld - 8; d += WARP)
                split(real && d < dim ? from[d] : 0.0F, &q_high[p * ld + d], &q_low[p * ld + d]);
        }
        for (int p = (int)threadIdx.x; p < m; p += THREADS)
            sees[p] =
                p < pack_.count ? keys_visible(a, pack_.row + p / pack_.heads, run.length) : 0;
    }

    /* The head of the key that this thread loads a part of; NULL: there is no such key. */
    template <class T>
    __device__ __forceinline__ const T *head(const struct tec_attention_args &a,
                                             const void *memory) const
    {
        size_t at = ((size_t)slot * (size_t)a.kv_heads + (size_t)job->pack.kv_head) * (size_t)dim;
        return slot < 0 ? NULL : static_cast<const T *>(memory) + at;
    }

    /* Copies of a thread are unrolled, as their addresses differ by constants. */
    __device__ __forceinline__ void load(const struct tec_attention_args &a, const void *memory,
                                         bf16 *to, held_terms<0> *)
    {
        enum { ACROSS = 8 * PER_KEY };
        const bf16 *from = head<bf16>(a, memory);
        bool real = from != NULL;
        to += (int)threadIdx.x / PER_KEY * ld;
        if (dim % 8 == 0) {
            int first = (int)threadIdx.x % PER_KEY * 8, left = dim - first;
            from = (real ? from : static_cast<const bf16 *>(memory)) + first;
            to += first;
            TEC_UNROLL
            for (int i = 0; i < WIDE; i += ACROSS)
                if (i < left)
                    copy16_async(to + i, from + i, real);
            return;
        }
        ROLLED
        for (int i = (int)threadIdx.x % PER_KEY; i < dim; i += PER_KEY)
            to[i] = real ? from[i] : __float2bfloat16(0.0F);
    }

    template <int QUADS>
    __device__ __forceinline__ void load(const struct tec_attention_args &a, const void *memory,
                                         bf16 *, held_terms<QUADS> *held)
    {
        held->ask(head<float>(a, memory), dim);
    }

    /* The i-th block of the share. */
    template <int QUADS>
    __device__ __forceinline__ void load_keys(const struct tec_attention_args &a,
                                              const struct share_of_chunks &s, int i, int size,
                                              int most, int stage, held_terms<QUADS> *held)
    {
        if (i < size) {
            int key = share_block(s, i) * KEYS + (int)threadIdx.x / PER_KEY;
            slot = key < most ? slot_of_key(a, &walk, key) : -1;
            load(a, a.k, k + stage * KEYS * ld, held);
        }
        copy_commit();
    }

    /* Those of the keys that were asked for last. */
    template <int QUADS>
    __device__ __forceinline__ void load_values(const struct tec_attention_args &a, int i, int size,
                                                int stage, held_terms<QUADS> *held)
    {
        if (i < size)
            load(a, a.v, v + stage * KEYS * ld, held);
        copy_commit();
    }
};
