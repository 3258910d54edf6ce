/* attention_f32.cu - attention over float32 keys and values, by multiply-adds.
 *
 * A block takes a tile of M = 16 * RT packed rows; thread (y, x) of 16 x 16 has rows y + 16 i.
 * Keys and then values of a block come in pieces of KP keys through two buffers. Scores: columns
 * x + 16 j are keys; sums: columns x + 16 j, j < CT, are those of the head. A sum over keys is one
 * chain of fused multiply-adds in key order within a block of 64. Sums of the answer wait in `out`
 * from one chunk to the next. */
#include "kernels/cuda/attention_share.cuh"
#include "kernels/cuda/attention_terms.h"
#include "kernels/cuda/attention_wide.cuh"

enum { SIDE = 16, P_LD = F32_P_LD };

template <int RT, int CT, int KP> struct tile {
    enum { M = SIDE * RT, PIECES = KEYS / KP, PER = THREADS / KP };
    float *q, *memory, *p; /* [M, ld], two of [KP, ld], [M, P_LD] */
    int *sees, *flag;
    struct attention_job *job;
    int ld, dim, x, y;
    struct key_walk walk;
    struct softmax chunk[RT], answer[RT];
    float chunk_sum[RT][CT];

    __device__ __forceinline__ tile(const struct tec_attention_args &a, float *shared)
    {
        dim = a.head_dim;
        ld = f32_row_stride(dim);
        q = shared;
        memory = q + M * ld;
        p = memory + 2 * KP * ld;
        sees = reinterpret_cast<int *>(p + M * P_LD);
        flag = sees + M;
        job = reinterpret_cast<struct attention_job *>(flag + 4);
        x = (int)threadIdx.x % SIDE;
        y = (int)threadIdx.x / SIDE;
    }

    /* Columns that are read four at a time and that nothing else writes. */
    __device__ __forceinline__ void clear_padding()
    {
        if (dim % 4 == 0)
            return;
        ROLLED
        for (int i = (int)threadIdx.x; i < M + 2 * KP; i += THREADS)
            for (int d = dim; d % 4; d++)
                q[i * ld + d] = 0.0F;
    }

    __device__ __forceinline__ void load_queries(const struct tec_attention_args &a,
                                                 const struct packing &packed,
                                                 const struct attention_run &run)
    {
        enum {
            SOME = M / WARPS < 4 ? M / WARPS : 4
        }; /* rows whose reads are on their way at once */
        ROLLED
        for (int first = (int)threadIdx.x / WARP; first < M; first += SOME * WARPS) {
            const float *from[SOME];
            TEC_UNROLL
            for (int i = 0; i < SOME; i++) {
                int r = first + i * WARPS;
                from[i] = r < packed.count ? a.q + packed_at(packed, r, a.ldq, dim) : NULL;
            }
            ROLLED
            for (int d = (int)threadIdx.x % WARP; d < dim; d += WARP) {
                float v[SOME];
                TEC_UNROLL
                for (int i = 0; i < SOME; i++)
                    v[i] = from[i] ? from[i][d] : 0.0F;
                TEC_UNROLL
                for (int i = 0; i < SOME; i++)
                    q[(first + i * WARPS) * ld + d] = v[i];
            }
        }
        for (int r = (int)threadIdx.x; r < M; r += THREADS)
            sees[r] =
                r < packed.count ? keys_visible(a, packed.row + r / packed.heads, run.length) : 0;
    }

    /* Piece n of the share: the keys of each block, then its values. PER threads a key. */
    __device__ __forceinline__ void load(const struct tec_attention_args &a,
                                         const struct share_of_chunks &s, int n, int size, int most)
    {
        int i = n / (2 * PIECES), which = n % (2 * PIECES), slot = -1;
        if (i < size) {
            int key = share_block(s, i) * KEYS + which % PIECES * KP + (int)threadIdx.x / PER;
            if (which % PIECES == 0) /* back from the end of the block */
                rewind_walk(which == 0);
            if (key < most)
                slot = slot_of_key(a, &walk, key);
            load_row(a, which < PIECES ? a.k : a.v, slot, memory + n % 2 * KP * ld);
        }
        copy_commit();
    }

    struct key_walk block_begin;

    __device__ __forceinline__ void rewind_walk(bool begins)
    {
        if (begins)
            block_begin = walk;
        else
            walk = block_begin;
    }

    __device__ __forceinline__ void load_row(const struct tec_attention_args &a, const void *from_,
                                             int slot, float *to)
    {
        size_t key = (size_t)(slot < 0 ? 0 : slot) * (size_t)a.kv_heads;
        size_t at = (key + (size_t)job->pack.kv_head) * (size_t)dim;
        const float *from = static_cast<const float *>(from_) + at;
        to += (int)threadIdx.x / PER * ld;
        if (dim % 4 == 0)
            for (int i = (int)threadIdx.x % PER * 4; i < dim; i += PER * 4)
                copy16_async(to + i, from + i, slot >= 0);
        else
            for (int i = (int)threadIdx.x % PER; i < dim; i += PER)
                to[i] = slot >= 0 ? from[i] : 0.0F;
    }

    /* The chain of four columns' products, from d on; beyond the head, 0. */
    template <int JT>
    __device__ __forceinline__ void sum_four(const float *keys, int d, float sum[RT][JT])
    {
        TEC_UNROLL
        for (int i = 0; i < RT * JT; i++)
            sum[i / JT][i % JT] = 0.0F;
        if (d >= dim)
            return;
        float4 b[JT];
        TEC_UNROLL
        for (int j = 0; j < JT; j++)
            b[j] = *reinterpret_cast<const float4 *>(keys + (x + SIDE * j) * ld + d);
        TEC_UNROLL
        for (int i = 0; i < RT; i++) {
            float4 v = *reinterpret_cast<const float4 *>(q + (y + SIDE * i) * ld + d);
            TEC_UNROLL
            for (int j = 0; j < JT; j++) {
                sum[i][j] = fmaf(v.x, b[j].x, sum[i][j]);
                sum[i][j] = fmaf(v.y, b[j].y, sum[i][j]);
                sum[i][j] = fmaf(v.z, b[j].z, sum[i][j]);
                sum[i][j] = fmaf(v.w, b[j].w, sum[i][j]);
            }
        }
    }

    /* The sum of 16 columns: chains of four, then the tree of these. */
    template <int JT>
    __device__ __forceinline__ void sum_columns(const float *keys, int first, float sum[RT][JT])
    {
        TEC_UNROLL
        for (int half = 0; half < 2; half++) {
            float one[RT][JT], two[RT][JT];
            sum_four<JT>(keys, first + half * 8, one);
            sum_four<JT>(keys, first + half * 8 + 4, two);
            TEC_UNROLL
            for (int i = 0; i < RT * JT; i++) {
                float both = plus(one[i / JT][i % JT], two[i / JT][i % JT]);
                sum[i / JT][i % JT] = half ? plus(sum[i / JT][i % JT], both) : both;
            }
        }
    }

    /* Scores of one piece of keys, into shared memory. Each 16 columns have a sum of their own, as
     * a chain over a whole head, or over 16, would be several times as far from the score; what
     * they add up to waits there, and keys come two at a time, for registers are full. */
    __device__ __forceinline__ void score(const float *keys, int piece, float scale)
    {
        enum { JT = KP / SIDE, SOME = JT < 2 ? JT : 2, TOGETHER = 16 };
        ROLLED
        for (int from = 0; from < JT; from += SOME) {
            ROLLED
            for (int first = 0; first < dim; first += TOGETHER) {
                bool ends = first + TOGETHER >= dim;
                float some[RT][SOME];
                sum_columns<SOME>(keys + SIDE * from * ld, first, some);
                TEC_UNROLL
                for (int i = 0; i < RT * SOME; i++) {
                    int key = piece * KP + x + SIDE * (from + i % SOME);
                    float *to = p + (y + SIDE * (i / SOME)) * P_LD + key;
                    float sum = some[i / SOME][i % SOME];
                    sum = first > 0 ? plus(*to, sum) : sum;
                    *to = ends ? times(sum, scale) : sum;
                }
            }
        }
    }

    /* The 16 threads of a row, in one half of a warp: its scores become probabilities. */
    __device__ __forceinline__ struct softmax weigh(int row, int left)
    {
        struct softmax f = {-INFINITY, 0.0F};
        float s[KEYS / SIDE];
        TEC_UNROLL
        for (int j = 0; j < KEYS / SIDE; j++) {
            s[j] = p[row * P_LD + x + SIDE * j];
            if (x + SIDE * j < left)
                f.top = fmaxf(f.top, s[j]);
        }
        for (int o = SIDE / 2; o; o >>= 1)
            f.top = fmaxf(f.top, __shfl_xor_sync(ALL_LANES, f.top, o));
        TEC_UNROLL
        for (int j = 0; j < KEYS / SIDE; j++) {
            s[j] = x + SIDE * j < left ? expf(s[j] - f.top) : 0.0F;
            p[row * P_LD + x + SIDE * j] = s[j];
            f.sum = plus(f.sum, s[j]);
        }
        for (int o = SIDE / 2; o; o >>= 1)
            f.sum = plus(f.sum, __shfl_xor_sync(ALL_LANES, f.sum, o));
        return f;
    }

    /* sum += p values over one piece. PARTLY: some row does not see all keys; then what a row
     * does not see is left out, for 0 * NaN is not 0. */
    template <bool PARTLY>
    __device__ __forceinline__ void add_piece(float sum[RT][CT], const float *values, int piece,
                                              const int left[RT])
    {
        ROLLED
        for (int key = 0; key < KP; key++) {
            float w[RT], v[CT];
            TEC_UNROLL
            for (int i = 0; i < RT; i++)
                w[i] = p[(y + SIDE * i) * P_LD + piece * KP + key];
            TEC_UNROLL
            for (int j = 0; j < CT; j++)
                v[j] = x + SIDE * j < dim ? values[key * ld + x + SIDE * j] : 0.0F;
            TEC_UNROLL
            for (int i = 0; i < RT; i++)
                TEC_UNROLL
            for (int j = 0; j < CT; j++)
                if (!PARTLY || piece * KP + key < left[i])
                    sum[i][j] = fmaf(w[i], v[j], sum[i][j]);
        }
    }

    /* Piece n has landed, piece n + 1 is on its way; the threads meet. */
    __device__ __forceinline__ const float *next_piece(const struct tec_attention_args &a,
                                                       const struct share_of_chunks &s, int n,
                                                       int size, int most)
    {
        copy_wait<0>();
        __syncthreads();
        load(a, s, n + 1, size, most);
        return memory + n % 2 * KP * ld;
    }

    __device__ __forceinline__ void add_block(const struct tec_attention_args &a,
                                              const struct share_of_chunks &s, int i, int size,
                                              const struct attention_run &run)
    {
        int start = share_block(s, i) * KEYS, n = i * 2 * PIECES, left[RT];
        float sum[RT][CT] = {};
        struct softmax block[RT];
        ROLLED
        for (int piece = 0; piece < PIECES; piece++)
            score(next_piece(a, s, n + piece, size, run.most), piece, a.scale);
        __syncthreads();
        TEC_UNROLL
        for (int r = 0; r < RT; r++) {
            left[r] = sees[y + SIDE * r] - start;
            block[r] = weigh(y + SIDE * r, left[r]);
        }
        ROLLED
        for (int piece = 0; piece < PIECES; piece++) {
            const float *values = next_piece(a, s, n + PIECES + piece, size, run.most);
            if (start + KEYS <= run.least)
                add_piece<false>(sum, values, piece, left);
            else
                add_piece<true>(sum, values, piece, left);
        }
        TEC_UNROLL
        for (int r = 0; r < RT; r++) {
            if (left[r] <= 0)
                continue;
            struct fold f = fold_softmax(&chunk[r], block[r]);
            TEC_UNROLL
            for (int j = 0; j < CT; j++)
                chunk_sum[r][j] = fold_sum(chunk_sum[r][j], sum[r][j], f);
        }
    }

    __device__ __forceinline__ void clear_chunk()
    {
        TEC_UNROLL
        for (int r = 0; r < RT; r++) {
            chunk[r] = {-INFINITY, 0.0F};
            TEC_UNROLL
            for (int j = 0; j < CT; j++)
                chunk_sum[r][j] = 0.0F;
        }
    }

    /* A chunk is complete: where the last block to arrive will find it. */
    __device__ __forceinline__ void store_chunk(const struct attention_plan &plan, int number)
    {
        float *to = partial_of(plan, number, dim);
        TEC_UNROLL
        for (int r = 0; r < RT; r++) {
            int row = y + SIDE * r;
            if (sees[row] <= number * KEYS * CHUNK)
                continue;
            if (x == 0)
                *partial_softmax(to, plan, row, dim) = make_float2(chunk[r].top, chunk[r].sum);
            TEC_UNROLL
            for (int j = 0; j < CT; j++)
                if (x + SIDE * j < dim)
                    to[row * partial_columns(dim) + x + SIDE * j] = chunk_sum[r][j];
        }
    }

    /* A chunk is complete: into the answer, which is in `out`. A row that sees no key has whatever
     * was there, and a sum of 0. */
    __device__ __forceinline__ void fold_chunk(const struct tec_attention_args &a,
                                               const struct packing &packed, int number, bool last)
    {
        TEC_UNROLL
        for (int r = 0; r < RT; r++) {
            int row = y + SIDE * r;
            bool sees_it = sees[row] > number * KEYS * CHUNK;
            if (row >= packed.count || (!sees_it && !last))
                continue;
            struct fold f = {1.0F, 0.0F};
            if (sees_it)
                f = fold_softmax(&answer[r], chunk[r]);
            float *out = a.out + packed_at(packed, row, a.ldo, dim) + x;
            TEC_UNROLL
            for (int j = 0; j < CT; j++) {
                float v = number > 0 && x + SIDE * j < dim ? out[SIDE * j] : 0.0F;
                chunk_sum[r][j] = sees_it ? fold_sum(v, chunk_sum[r][j], f) : v;
            }
            TEC_UNROLL
            for (int j = 0; j < CT; j++)
                if (x + SIDE * j < dim)
                    out[SIDE * j] = last ? attention_result(a, chunk_sum[r][j], answer[r].sum)
                                         : chunk_sum[r][j];
        }
    }

    __device__ __forceinline__ void attend(const struct tec_attention_args &a,
                                           const struct attention_plan &plan)
    {
        const struct attention_run &run = job->run;
        const struct packing &packed = job->pack;
        const struct share_of_chunks &s = job->share;
        int size = share_size(s);
        walk = {run.span, run.end, 0};
        clear_padding();
        load(a, s, 0, size, run.most);
        load_queries(a, packed, run);
        clear_chunk();
        TEC_UNROLL
        for (int r = 0; r < RT; r++)
            answer[r] = {-INFINITY, 0.0F};
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
    }

    /* For shares that meet: the probabilities' place. */
    __device__ __forceinline__ float *room() const
    {
        return p;
    }
};

template <int RT, int CT, int KP>
static __global__ void __launch_bounds__(THREADS, 2)
    attention_f32_kernel(struct tec_attention_args a, struct attention_plan plan)
{
    TEC_SHARED(float, shared);
    release_next();
    tile<RT, CT, KP> y(a, shared);
    wait_previous();
    each_run(a, plan, &y);
}

template <int RT, int CT, int KP>
static void start(const struct tec_attention_args *a, const struct attention_choice *c,
                  struct tec_cuda_launch *launch)
{
    tec_cuda_start(launch, attention_f32_kernel<RT, CT, KP>, attention_grid(a, &c->plan),
                   dim3(THREADS), c->shared, *a, attention_memory(c->plan, launch));
}

void tec_cuda_attention_f32(const struct tec_attention_args *a, struct tec_cuda_launch *launch)
{
    if (a->max_rows <= 0)
        return;
    int dim = a->head_dim;
    if (attention_is_wide(a)) {
        start_wide<float>(a, launch);
        return;
    }
    struct tec_cuda_facts facts = tec_cuda_facts_of(launch);
    struct attention_choice c = attention_choose_f32(a, &facts);
    if (c.terms)
        tec_cuda_attention_terms(a, &c, launch);
    else if (dim <= 16)
        start<4, 1, 64>(a, &c, launch);
    else if (dim <= 64)
        start<4, 4, 64>(a, &c, launch);
    else if (dim <= 80)
        start<4, 5, 64>(a, &c, launch);
    else if (dim <= 128)
        start<2, 8, 64>(a, &c, launch);
    else
        start<1, 16, 16>(a, &c, launch);
}
