/* attention_bf16.cu - attention over bf16 keys and values, on tensor cores.
 *
 * A block of eight warps takes a tile of M = 16 * MG packed rows. For the scores the warps of one
 * group of 16 rows share a block's keys, for the values the columns. Queries and probabilities are
 * float32 and enter as two bf16 terms. Keys and values come in by asynchronous copies, STAGES
 * blocks of 64 keys ahead; NT is the number of 8-column tiles that a warp holds sums of. */
#include "kernels/cuda/attention_wide.cuh"

enum { P_LD = KEYS + 8 };

/* In bf16: whole instructions, and eight more so that rows begin in different banks. */
static __host__ __device__ __forceinline__ int row_stride(int head_dim)
{
    return (head_dim + 15) / 16 * 16 + 8;
}

static size_t shared_size(int m, int stages, int head_dim)
{
    size_t row = (size_t)row_stride(head_dim) * sizeof(bf16);
    return (size_t)(2 * m + 2 * stages * KEYS) * row + (size_t)(2 * m * P_LD) * sizeof(bf16) +
           (size_t)m * (8 + 8 + 1) * sizeof(float) + 16;
}

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

/* The first `left` of a pair. */
static __device__ __forceinline__ unsigned keep(unsigned pair, int left)
{
    return left <= 0 ? 0 : left == 1 ? pair & 0xffffU : pair;
}

/* Row i % 16 and 8-column half i / 16 of a 16 x 16 matrix: whose address lane i gives. */
static __device__ __forceinline__ const bf16 *lane_row(const bf16 *at, int ld)
{
    int lane = (int)threadIdx.x % WARP;
    return at + lane % 16 * ld + lane / 16 * 8;
}

template <int MG, int NT, int STAGES> struct tile {
    enum {
        M = 16 * MG,
        CG = WARPS / MG,         /* warps that share 16 rows */
        SN = KEYS / 8 / CG,      /* 8-key tiles of scores in a warp */
        GROUP = NT < 8 ? NT : 8, /* 8-column tiles at a time */
    };
    /* Shared memory. */
    bf16 *q_high, *q_low, *k, *v, *p_high, *p_low;
    float *tops, *sums; /* [M, CG] largest scores, [M, 8] sums of probabilities */
    int *sees, *flag;   /* [M] keys that a packed row sees */
    int ld, dim;
    /* This thread: rows g and g + 8 of its group, columns 2t and 2t + 1 of tiles. */
    int group, part, g, t;
    int slot; /* of the key that was asked for last */
    struct key_walk walk;
    struct softmax chunk[2], answer[2];
    float chunk_sum[NT][4], answer_sum[NT][4];

    __device__ __forceinline__ tile(const struct tec_attention_args &a, unsigned char *shared)
    {
        dim = a.head_dim;
        ld = row_stride(dim);
        q_high = reinterpret_cast<bf16 *>(shared);
        q_low = q_high + M * ld;
        k = q_low + M * ld;
        v = k + STAGES * KEYS * ld;
        p_high = v + STAGES * KEYS * ld;
        p_low = p_high + M * P_LD;
        tops = reinterpret_cast<float *>(p_low + M * P_LD);
        sums = tops + M * 8;
        sees = reinterpret_cast<int *>(sums + M * 8);
        flag = sees + M;
        int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
        group = warp / CG;
        part = warp % CG;
        g = lane / 4;
        t = lane % 4;
        clear_padding();
    }

    /* Columns of keys and values that no copy writes. */
    __device__ __forceinline__ void clear_padding()
    {
        int width = ld - dim;
        ROLLED
        for (int i = (int)threadIdx.x; i < 2 * STAGES * KEYS * width; i += THREADS)
            k[i / width * ld + dim + i % width] = __float2bfloat16(0.0F);
    }

    __device__ __forceinline__ void load_queries(const struct tec_attention_args &a,
                                                 const struct packing &pack_,
                                                 const struct attention_run &run)
    {
        ROLLED
        for (int i = 0; i < M / WARPS; i++) {
            int p = (int)threadIdx.x / WARP + i * WARPS;
            bool real = p < pack_.count;
            const float *from = a.q + (real ? packed_at(pack_, p, a.ldq, dim) : 0);
            for (int d = (int)threadIdx.x % WARP; d < ld; d += WARP)
                split(real && d < dim ? from[d] : 0.0F, &q_high[p * ld + d], &q_low[p * ld + d]);
        }
        for (int p = (int)threadIdx.x; p < M; p += THREADS)
            sees[p] = p < pack_.count ? keys_seen(a, pack_.row + p / pack_.heads, run.length) : 0;
    }

    /* Four threads for each key of a block. */
    __device__ __forceinline__ void load(const struct tec_attention_args &a, const void *memory,
                                         bf16 *to)
    {
        int kv_head = (int)blockIdx.y * a.kv_heads / (int)gridDim.y;
        size_t at =
            ((size_t)(slot < 0 ? 0 : slot) * (size_t)a.kv_heads + (size_t)kv_head) * (size_t)dim;
        const bf16 *from = static_cast<const bf16 *>(memory) + at;
        to += (int)threadIdx.x / 4 * ld;
        if (dim % 8 == 0)
            for (int i = (int)threadIdx.x % 4 * 8; i < dim; i += 32)
                copy16_async(to + i, from + i, slot >= 0);
        else
            ROLLED
        for (int i = (int)threadIdx.x % 4; i < dim; i += 4)
            to[i] = slot >= 0 ? from[i] : __float2bfloat16(0.0F);
    }

    __device__ __forceinline__ void load_keys(const struct tec_attention_args &a,
                                              const struct share_of_chunks &s, int i, int size,
                                              int most)
    {
        if (i < size) {
            int key = share_block(s, i) * KEYS + (int)threadIdx.x / 4;
            slot = key < most ? slot_of_key(&walk, key) : -1;
            load(a, a.k, k + i % STAGES * KEYS * ld);
        }
        copy_commit();
    }

    /* Those of the keys that were asked for last. */
    __device__ __forceinline__ void load_values(const struct tec_attention_args &a, int i, int size)
    {
        if (i < size)
            load(a, a.v, v + i % STAGES * KEYS * ld);
        copy_commit();
    }

    /* Scores of this warp's keys, before the scale; the two terms of a query apart to the end. */
    __device__ __forceinline__ void score(float s[SN][4], const bf16 *keys)
    {
        float low[SN][4];
        TEC_UNROLL
        for (int n = 0; n < SN; n++)
            TEC_UNROLL
        for (int i = 0; i < 4; i++)
            s[n][i] = low[n][i] = 0.0F;
        const bf16 *high_row = lane_row(q_high + group * 16 * ld, ld);
        const bf16 *low_row = lane_row(q_low + group * 16 * ld, ld);
        int lane = (int)threadIdx.x % WARP;
        const bf16 *key = keys + (part * SN * 8 + lane % 8) * ld + lane / 8 % 2 * 8;
        ROLLED
        for (int d = 0; d < dim; d += 16) {
            unsigned a_high[4], a_low[4];
            load_matrices_x4(a_high, high_row + d);
            load_matrices_x4(a_low, low_row + d);
            TEC_UNROLL
            for (int n = 0; n < SN; n++) {
                unsigned b[2];
                load_matrices_x2(b, key + n * 8 * ld + d);
                mma_bf16(s[n], a_high, b);
                mma_bf16(low[n], a_low, b);
            }
        }
        TEC_UNROLL
        for (int n = 0; n < SN; n++)
            TEC_UNROLL
        for (int i = 0; i < 4; i++)
            s[n][i] = plus(s[n][i], low[n][i]);
    }

    __device__ __forceinline__ int row_of(int half) const
    {
        return group * 16 + half * 8 + g;
    }

    /* Does row `half` see the key of s[n][2 * half + i]? `left`: keys it sees of this block. */
    __device__ __forceinline__ bool seen(int n, int i, int left) const
    {
        return (part * SN + n) * 8 + 2 * t + i < left;
    }

    __device__ __forceinline__ void find_tops(float s[SN][4], float scale, const int left[2])
    {
        TEC_UNROLL
        for (int h = 0; h < 2; h++) {
            float top = -INFINITY;
            TEC_UNROLL
            for (int n = 0; n < SN; n++)
                TEC_UNROLL
            for (int i = 0; i < 2; i++) {
                s[n][2 * h + i] = times(s[n][2 * h + i], scale);
                if (seen(n, i, left[h]))
                    top = fmaxf(top, s[n][2 * h + i]);
            }
            top = fmaxf(top, __shfl_xor_sync(ALL_LANES, top, 1));
            top = fmaxf(top, __shfl_xor_sync(ALL_LANES, top, 2));
            if (t == 0)
                tops[row_of(h) * CG + part] = top;
        }
    }

    /* Scores become probabilities in shared memory, two terms each, and sums of eight of them. */
    __device__ __forceinline__ void weigh(const float s[SN][4], const int left[2], float top[2])
    {
        TEC_UNROLL
        for (int h = 0; h < 2; h++) {
            top[h] = -INFINITY;
            TEC_UNROLL
            for (int i = 0; i < CG; i++)
                top[h] = fmaxf(top[h], tops[row_of(h) * CG + i]);
            TEC_UNROLL
            for (int n = 0; n < SN; n++) {
                float p[2];
                bf16 high[2], low[2];
                TEC_UNROLL
                for (int i = 0; i < 2; i++) {
                    p[i] = seen(n, i, left[h]) ? expf(s[n][2 * h + i] - top[h]) : 0.0F;
                    split(p[i], &high[i], &low[i]);
                }
                int at = row_of(h) * P_LD + (part * SN + n) * 8 + 2 * t;
                *reinterpret_cast<unsigned *>(p_high + at) = pack(high[0], high[1]);
                *reinterpret_cast<unsigned *>(p_low + at) = pack(low[0], low[1]);
                float sum = plus(p[0], p[1]);
                sum = plus(sum, __shfl_xor_sync(ALL_LANES, sum, 1));
                sum = plus(sum, __shfl_xor_sync(ALL_LANES, sum, 2));
                if (t == 0)
                    sums[row_of(h) * 8 + part * SN + n] = sum;
            }
        }
    }

    __device__ __forceinline__ float block_sum(int half) const
    {
        float sum = 0.0F;
        TEC_UNROLL
        for (int i = 0; i < 8; i++)
            sum = plus(sum, sums[row_of(half) * 8 + i]);
        return sum;
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

    /* Sums of a block's values for GROUP tiles; `left` limits the keys for all rows alike. */
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
            unsigned high[4], low[4], b[2];
            load_probabilities(high, low, step);
            TEC_UNROLL
            for (int n = 0; n < GROUP; n++) {
                if (column(n0 + n) >= dim)
                    continue;
                load_matrices_x2_transposed(b, values + step * 16 * ld + column(n0 + n));
                if (left < KEYS) {
                    b[0] = keep(b[0], left - step * 16 - 2 * t);
                    b[1] = keep(b[1], left - step * 16 - 2 * t - 8);
                }
                mma_bf16(sum[n], high, b);
                mma_bf16(sum[n], low, b);
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
                sum_values(sum, values, n0, row < 0 ? KEYS : sees[group * 16 + row] - start);
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

    __device__ __forceinline__ void clear(struct softmax state[2], float sum[NT][4])
    {
        TEC_UNROLL
        for (int n = 0; n < NT; n++)
            TEC_UNROLL
        for (int i = 0; i < 4; i++)
            sum[n][i] = 0.0F;
        state[0] = state[1] = {-INFINITY, 0.0F};
    }

    /* A chunk is complete: into the answer, or where the last block to arrive will find it. */
    __device__ __forceinline__ void end_chunk(const struct attention_plan &plan, int number,
                                              bool shared)
    {
        float *to = shared ? partial_of(plan, number, dim) : nullptr;
        float *state = shared ? to + partial_rows(plan) * dim : nullptr;
        TEC_UNROLL
        for (int h = 0; h < 2; h++) {
            int p = row_of(h);
            if (sees[p] <= number * KEYS * CHUNK)
                continue;
            struct fold f = {0.0F, 0.0F};
            if (!shared) {
                f = fold_softmax(&answer[h], chunk[h]);
            } else if (part == 0 && t == 0) {
                state[2 * p] = chunk[h].top;
                state[2 * p + 1] = chunk[h].sum;
            }
            TEC_UNROLL
            for (int n = 0; n < NT; n++)
                TEC_UNROLL
            for (int i = 2 * h; i < 2 * h + 2; i++) {
                int d = column(n) + 2 * t + i % 2;
                if (!shared)
                    answer_sum[n][i] = fold_sum(answer_sum[n][i], chunk_sum[n][i], f);
                else if (d < dim)
                    to[p * dim + d] = chunk_sum[n][i];
            }
        }
        clear(chunk, chunk_sum);
    }

    __device__ __forceinline__ void write(const struct tec_attention_args &a,
                                          const struct packing &packed)
    {
        TEC_UNROLL
        for (int h = 0; h < 2; h++) {
            if (row_of(h) >= packed.count)
                continue;
            float *to = a.out + packed_at(packed, row_of(h), a.ldo, dim);
            TEC_UNROLL
            for (int n = 0; n < NT; n++)
                TEC_UNROLL
            for (int i = 0; i < 2; i++)
                if (column(n) + 2 * t + i < dim)
                    to[column(n) + 2 * t + i] =
                        attention_result(a, answer_sum[n][2 * h + i], answer[h].sum);
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
        load_values(a, i + STAGES - 1, size);
        score(scores, k + i % STAGES * KEYS * ld);
        left[0] = sees[row_of(0)] - start;
        left[1] = sees[row_of(1)] - start;
        find_tops(scores, a.scale, left);
        __syncthreads();
        load_keys(a, s, i + STAGES, size, run.most);
        weigh(scores, left, top);
        copy_wait<2 * STAGES - 1>();
        __syncthreads();
        TEC_UNROLL
        for (int h = 0; h < 2; h++)
            if (left[h] > 0)
                f[h] = fold_softmax(&chunk[h], {top[h], block_sum(h)});
        add_values(v + i % STAGES * KEYS * ld, f, left, start + KEYS <= run.least ? -1 : start);
    }

    __device__ __forceinline__ void attend(const struct tec_attention_args &a,
                                           const struct attention_plan &plan,
                                           const struct attention_run &run)
    {
        struct share_of_chunks s = share_chunks(plan, run.most);
        if (!has_share(s))
            return;
        struct packing packed = packing_of(a, plan, run);
        int size = share_size(s);
        walk = {run.span, run.end, 0};
        TEC_UNROLL
        for (int i = 0; i < STAGES; i++) {
            load_keys(a, s, i, size, run.most);
            if (i < STAGES - 1)
                load_values(a, i, size);
        }
        load_queries(a, packed, run);
        clear(chunk, chunk_sum);
        clear(answer, answer_sum);
        ROLLED
        for (int i = 0; i < size; i++) {
            add_block(a, s, i, size, run);
            if (i % CHUNK == CHUNK - 1 || i == size - 1)
                end_chunk(plan, share_block(s, i) / CHUNK, s.split);
        }
        copy_wait<0>();
        if (!s.split)
            write(a, packed);
        else if (arrive_last(plan, s, flag))
            combine_chunks(a, plan, run, packed);
        __syncthreads();
    }
};

template <int MG, int NT, int STAGES>
static __global__ void __launch_bounds__(THREADS, MG * NT <= 16 ? 2 : 1)
    attention_bf16_kernel(struct tec_attention_args a, struct attention_plan plan)
{
    TEC_SHARED(unsigned char, shared);
    release_next();
    tile<MG, NT, STAGES> y(a, shared);
    wait_previous();
    each_run(a, plan, &y);
}

template <int MG, int NT, int STAGES>
static void start(const struct tec_attention_args *a, const struct attention_plan *plan,
                  struct tec_cuda_launch *launch)
{
    tec_cuda_start(launch, attention_bf16_kernel<MG, NT, STAGES>, attention_grid(a, plan),
                   dim3(THREADS), shared_size(16 * MG, STAGES, a->head_dim), *a, *plan);
}

/* Large tiles where they fill the device; else small ones whose keys are shared too. */
void tec_cuda_attention_bf16(const struct tec_attention_args *a, struct tec_cuda_launch *launch)
{
    if (a->max_rows <= 0)
        return;
    int dim = a->head_dim;
    if (dim > WIDE) {
        start_wide<bf16>(a, launch);
        return;
    }
    size_t limit = shared_limit(launch->capability);
    struct attention_plan large = attention_tiles(a, 64), small = attention_tiles(a, 16);
    bool fits = shared_size(64, dim <= 64 ? 2 : 1, dim) <= limit;
    if (fits && 2 * attention_tile_count(a, &large) >= launch->processors) {
        if (dim <= 64)
            start<4, 4, 2>(a, &large, launch);
        else if (dim <= 128)
            start<4, 8, 1>(a, &large, launch);
        else
            start<4, 16, 1>(a, &large, launch);
        return;
    }
    attention_split(a, launch, &small);
    if (dim <= 64)
        start<1, 1, 2>(a, &small, launch);
    else if (dim <= 128)
        start<1, 2, 2>(a, &small, launch);
    else if (shared_size(16, 2, dim) <= limit)
        start<1, 4, 2>(a, &small, launch);
    else
        start<1, 4, 1>(a, &small, launch);
}
