/* attention_mma.cuh - attention on tensor cores, over bf16 memory or float32 memory.
 *
 * A block of eight warps takes a tile of M = 16 * MG packed rows. For the scores the warps of one
 * group of 16 rows share a block's keys, for the values the columns. Queries and probabilities are
 * float32 and enter as two bf16 terms. NT is the number of 8-column tiles that a warp holds sums
 * of: those of a chunk. Those of the answer wait in `out` from one chunk to the next, or in
 * registers where there are some left.
 *
 * bf16 memory (QUADS = 0): keys and values come in by asynchronous copies, STAGES blocks of 64 keys
 * ahead. float32 memory: they enter as two bf16 terms as well, without the product of both low
 * ones; a thread holds what it reads next, QUADS times four columns. */
#pragma once

#include "kernels/cuda/attention_mma_scores.cuh"
#include "kernels/cuda/row_terms.cuh"

/* The first `left` of a pair. */
static __device__ __forceinline__ unsigned keep(unsigned pair, int left)
{
    return left <= 0 ? 0 : left == 1 ? pair & 0xffffU : pair;
}

template <int MG, int NT, int STAGES, int QUADS> struct tile : tile_scores {
    enum {
        M = 16 * MG,
        CG = WARPS / MG,         /* warps that share 16 rows */
        SN = KEYS / 8 / CG,      /* 8-key tiles of scores in a warp */
        GROUP = NT % 4 ? NT : 4, /* 8-column tiles at a time */
        TERMS = QUADS ? 2 : 1,   /* of a key and of a value */
        KEPT = QUADS && NT <= 5, /* the answer is in registers */
    };
    static_assert(QUADS == 0 || STAGES == 1, "keys and values have one place");
    held_terms<QUADS> held;
    struct softmax chunk[2], answer[2];
    float chunk_sum[NT][4], answer_sum[KEPT ? NT : 1][4];
    float *answers; /* in shared memory; NULL: in `out` */
    const terms_out &terms;

    __device__ __forceinline__ tile(const struct tec_attention_args &a,
                                    const struct attention_plan &plan, const terms_out &terms_,
                                    unsigned char *shared)
        : terms(terms_)
    {
        lay_out(a.head_dim, shared, M, STAGES);
        answers =
            QUADS == 0 && plan.near ? reinterpret_cast<float *>(v + STAGES * KEYS * ld) : NULL;
        take_place(CG);
    }

    __device__ __forceinline__ void load_probabilities(unsigned high[4], unsigned low[4], int step)
    {
        int at = group * 16 * P_LD + step * 16;
        load_matrices_x4(high, lane_row(p_high + at, P_LD));
        load_matrices_x4(low, lane_row(p_low + at, P_LD));
    }

    /* First column of a tile: those of a warp lie apart, so that any head_dim is shared evenly. */
    __device__ __forceinline__ int column(int n) const
    {
        return (n * CG + part) * 8;
    }

    /* Sums of a block's values for GROUP tiles; `left` limits the keys for all rows alike. WHOLE:
     * no key and no column is left out, so nothing stands between the instructions. */
    template <bool WHOLE>
    __device__ __forceinline__ void sum_values(float sum[GROUP][4], const bf16 *values, int n0,
                                               int left)
    {
        TEC_UNROLL
        for (int n = 0; n < GROUP; n++)
            TEC_UNROLL
        for (int i = 0; i < 4; i++)
            sum[n][i] = 0.0F;
        TEC_UNROLL
        for (int step = 0; step < 4; step++) {
            unsigned high[4], low[4];
            load_probabilities(high, low, step);
            TEC_UNROLL
            for (int n = 0; n < GROUP; n++) {
                if (!WHOLE && column(n0 + n) >= dim)
                    continue;
                const bf16 *value = values + step * 16 * ld + column(n0 + n);
                TEC_UNROLL
                for (int term = 0; term < TERMS; term++) {
                    unsigned b[2];
                    load_matrices_x2_transposed(b, value + term * KEYS * ld);
                    if (!WHOLE && left < KEYS) {
                        b[0] = keep(b[0], left - step * 16 - 2 * t);
                        b[1] = keep(b[1], left - step * 16 - 2 * t - 8);
                    }
                    mma_bf16(sum[n], high, b);
                    if (term == 0)
                        mma_bf16(sum[n], low, b);
                }
            }
        }
    }

    /* A NaN in any lane's sums? */
    __device__ __forceinline__ bool spoiled(const float sum[GROUP][4]) const
    {
        bool bad = false;
        TEC_UNROLL
        for (int n = 0; n < GROUP; n++)
            TEC_UNROLL
        for (int i = 0; i < 4; i++)
            bad = bad || isnan(sum[n][i]);
        return __any_sync(ALL_LANES, bad) != 0;
    }

    /* Sums of a block's values, folded into the chunk; `left`: keys that rows see of the block;
     * `start` < 0: all rows see all of them.
     *
     * A value that is not finite, of a key that one row sees, must not reach the sums of a row that
     * does not see it as 0 * NaN. Such tiles are done again, once for each row, with zeros for what
     * that row does not see; the bytes of others stay as they are. */
    __device__ __forceinline__ void add_values(const bf16 *values, const struct fold f[2],
                                               const int left[2], int start)
    {
        values += (int)threadIdx.x % 16 * ld;
        TEC_UNROLL
        for (int n0 = 0; n0 < NT; n0 += GROUP) {
            ROLLED
            for (int row = -1; row < 16; row++) {
                float sum[GROUP][4];
                if (row < 0 && column(n0 + GROUP - 1) < dim)
                    sum_values<true>(sum, values, n0, KEYS);
                else
                    sum_values<false>(sum, values, n0,
                                      row < 0 ? KEYS : sees[group * 16 + row] - start);
                if (row < 0 && start >= 0 && spoiled(sum))
                    continue;
                TEC_UNROLL
                for (int n = 0; n < GROUP; n++)
                    TEC_UNROLL
                for (int i = 0; i < 4; i++)
                    if (left[i / 2] > 0 && (row < 0 || row == g + i / 2 * 8))
                        chunk_sum[n0 + n][i] = fold_sum(chunk_sum[n0 + n][i], sum[n][i], f[i / 2]);
                if (row < 0)
                    break;
            }
        }
    }

    __device__ __forceinline__ void clear_chunk()
    {
        TEC_UNROLL
        for (int n = 0; n < NT; n++)
            TEC_UNROLL
        for (int i = 0; i < 4; i++)
            chunk_sum[n][i] = 0.0F;
        chunk[0] = chunk[1] = {-INFINITY, 0.0F};
    }

    /* A chunk is complete: into the answer; the last one into shared memory, in place of the
     * queries. A row that sees no key has whatever was there, and a sum of 0. */
    __device__ __forceinline__ void fold_chunk(const struct tec_attention_args &a,
                                               const struct packing &packed, int number, bool last)
    {
        TEC_UNROLL
        for (int h = 0; h < 2; h++) {
            int p = row_of(h);
            bool sees_it = sees[p] > number * KEYS * CHUNK;
            if (p >= packed.count || (!sees_it && !last))
                continue;
            struct fold f = {1.0F, 0.0F};
            if (sees_it)
                f = fold_softmax(&answer[h], chunk[h]);
            float *out = answers ? answers + p * answer_row_stride(dim)
                                 : a.out + packed_at(packed, p, a.ldo, dim);
            out += column(0) + 2 * t;
            float *to =
                last ? reinterpret_cast<float *>(q_high) + p * dim + column(0) + 2 * t : out;
            int left = dim - column(0) - 2 * t;
            TEC_UNROLL
            for (int n = 0; n < NT; n++)
                TEC_UNROLL
            for (int i = 0; i < 2; i++) {
                int d = n * CG * 8 + i;
                float *sum = &chunk_sum[n][2 * h + i];
                float *kept = &answer_sum[KEPT ? n : 0][2 * h + i], v = 0.0F;
                if (number > 0 && d < left)
                    v = KEPT ? *kept : out[d];
                *sum = sees_it ? fold_sum(v, *sum, f) : v;
                *kept = *sum;
            }
            if (KEPT && !last)
                continue;
            TEC_UNROLL
            for (int n = 0; n < NT; n++)
                TEC_UNROLL
            for (int i = 0; i < 2; i++)
                if (n * CG * 8 + i < left)
                    to[n * CG * 8 + i] = chunk_sum[n][2 * h + i];
        }
    }

    /* A chunk is complete: where the last thread block to arrive will find it. */
    __device__ __forceinline__ void store_chunk(const struct attention_plan &plan, int number)
    {
        float *to = partial_of(plan, number, dim);
        TEC_UNROLL
        for (int h = 0; h < 2; h++) {
            int p = row_of(h);
            if (sees[p] <= number * KEYS * CHUNK)
                continue;
            if (part == 0 && t == 0)
                *partial_softmax(to, plan, p, dim) = make_float2(chunk[h].top, chunk[h].sum);
            float *row = to + p * partial_columns(dim) + column(0) + 2 * t;
            TEC_UNROLL
            for (int n = 0; n < NT; n++)
                if (column(n) + 2 * t < dim)
                    *reinterpret_cast<float2 *>(row + n * CG * 8) =
                        make_float2(chunk_sum[n][2 * h], chunk_sum[n][2 * h + 1]);
        }
    }

    /* Write a packed row as terms, two columns of a head at a time. */
    __device__ __forceinline__ void leave(const struct tec_attention_args &a,
                                          const struct packing &packed, int p, const float *from)
    {
        int r = packed.row + p / packed.heads, at = (packed.head + p % packed.heads) * dim;
        ROLLED
        for (int d = (int)threadIdx.x % WARP * 2; d < dim; d += 2 * WARP)
            terms.pair(r, at + d,
                       make_float2(attention_result(a, from[d], sums[p]),
                                   attention_result(a, from[d + 1], sums[p])));
    }

    /* Write the output, which the last chunk left in shared memory in place of the queries. */
    __device__ __forceinline__ void write(const struct tec_attention_args &a,
                                          const struct packing &packed)
    {
        const float *from = reinterpret_cast<float *>(q_high);
        __syncthreads(); /* `sums` is free */
        TEC_UNROLL
        for (int h = 0; h < 2; h++)
            if (part == 0 && t == 0)
                sums[row_of(h)] = answer[h].sum;
        __syncthreads();
        ROLLED
        for (int p = (int)threadIdx.x / WARP; p < packed.count; p += WARPS) {
            if (terms.at) {
                leave(a, packed, p, from + p * dim);
                continue;
            }
            float *out = a.out + packed_at(packed, p, a.ldo, dim);
            ROLLED
            for (int d = (int)threadIdx.x % WARP; d < dim; d += WARP)
                out[d] = attention_result(a, from[p * dim + d], sums[p]);
        }
    }

    /* One block of 64 keys, between its two copies. */
    __device__ __forceinline__ void add_block(const struct tec_attention_args &a,
                                              const struct share_of_chunks &s, int i, int size,
                                              const struct attention_run &run)
    {
        int start = share_block(s, i) * KEYS, left[2];
        float scores[SN][4], top[2];
        struct fold f[2] = {};
        copy_wait<2 * (STAGES - 1)>();
        __syncthreads();
        held.put(k, ld);
        if (QUADS)
            __syncthreads();
        load_values(a, i + STAGES - 1, size, (i + STAGES - 1) % STAGES, &held);
        score<SN, TERMS>(scores, k + i % STAGES * KEYS * ld);
        left[0] = sees[row_of(0)] - start;
        left[1] = sees[row_of(1)] - start;
        find_tops<SN>(scores, a.scale, left);
        __syncthreads();
        held.put(k, ld); /* values, in place of the keys */
        load_keys(a, s, i + STAGES, size, run.most, i % STAGES, &held);
        weigh<SN>(scores, left, top);
        copy_wait<2 * STAGES - 1>();
        __syncthreads();
        TEC_UNROLL
        for (int h = 0; h < 2; h++)
            if (left[h] > 0)
                f[h] = fold_softmax(&chunk[h], {top[h], block_sum(h)});
        add_values((QUADS ? k : v) + i % STAGES * KEYS * ld, f, left,
                   start + KEYS <= run.least ? -1 : start);
    }

    __device__ __forceinline__ void attend(const struct tec_attention_args &a,
                                           const struct attention_plan &plan)
    {
        const struct attention_run &run = job->run;
        const struct packing &packed = job->pack;
        const struct share_of_chunks &s = job->share;
        int size = share_size(s);
        walk = {run.span, run.end, 0};
        if (!QUADS)
            clear_padding(STAGES);
        TEC_UNROLL
        for (int i = 0; i < STAGES; i++) {
            load_keys(a, s, i, size, run.most, i, &held);
            if (i < STAGES - 1)
                load_values(a, i, size, i, &held);
        }
        load_queries(a, packed, run, M);
        clear_chunk();
        answer[0] = answer[1] = {-INFINITY, 0.0F};
        ROLLED
        for (int i = 0; i < size; i++) {
            int number = share_block(s, i) / CHUNK;
            add_block(a, s, i, size, run);
            if (i % CHUNK != CHUNK - 1 && i != size - 1)
                continue;
            if (s.split)
                store_chunk(plan, number);
            else
                fold_chunk(a, packed, number, i == size - 1);
            clear_chunk();
        }
        if (size == 0) { /* no row sees a key */
            __syncthreads();
            fold_chunk(a, packed, 0, true);
        }
        copy_wait<0>();
        if (!s.split)
            write(a, packed);
    }

    /* For shares that meet: the probabilities' place. */
    __device__ __forceinline__ float *room() const
    {
        return reinterpret_cast<float *>(p_high);
    }
};

template <int MG, int NT, int STAGES, int QUADS>
static __global__ void __launch_bounds__(THREADS, MG == 1 && QUADS == 0 ? 2 : 1)
    attention_mma_kernel(struct tec_attention_args a, struct attention_plan plan,
                         struct terms_out terms)
{
    TEC_SHARED(unsigned char, shared);
    release_next();
    tile<MG, NT, STAGES, QUADS> y(a, plan, terms, shared);
    wait_previous();
    each_run(a, plan, &y);
}

template <int MG, int NT, int STAGES, int QUADS>
static void start_mma(const struct tec_attention_args *a, const struct attention_choice *c,
                      struct tec_cuda_launch *launch)
{
    tec_cuda_start(launch, attention_mma_kernel<MG, NT, STAGES, QUADS>, attention_grid(a, &c->plan),
                   dim3(THREADS), c->shared, *a, attention_memory(c->plan, launch),
                   terms_out_of(launch, a->out));
}
