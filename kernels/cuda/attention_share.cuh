/* attention_share.cuh - which chunks of keys a thread block takes, and how shares meet again. */
#pragma once

#include "kernels/cuda/attention.cuh"

/* The chunks of a run that this thread block takes: first, first + step, ... */
struct share_of_chunks {
    int first, step, chunks, blocks;
    bool split; /* others take the rest */
};

static __device__ __forceinline__ struct share_of_chunks
share_chunks(const struct attention_plan &plan, int keys)
{
    struct share_of_chunks y;
    y.blocks = (keys + KEYS - 1) / KEYS;
    y.chunks = (y.blocks + CHUNK - 1) / CHUNK;
    y.split = plan.splits > 1 && y.chunks > 1 && y.chunks <= plan.capacity;
    y.first = (int)blockIdx.z;
    y.step = y.split ? plan.splits : 1;
    return y;
}

/* The thread block has anything to do? (Without a split the first one does it all.) */
static __device__ __forceinline__ bool has_share(const struct share_of_chunks &s)
{
    return s.first == 0 || (s.split && s.first < s.chunks);
}

/* Key blocks of the share, and the i-th of them. */
static __device__ __forceinline__ int share_size(const struct share_of_chunks &s)
{
    int mine = s.chunks > s.first ? (s.chunks - s.first + s.step - 1) / s.step : 0;
    bool last = s.chunks > 0 && (s.chunks - 1 - s.first) % s.step == 0;
    return mine * CHUNK - (last ? s.chunks * CHUNK - s.blocks : 0);
}

static __device__ __forceinline__ int share_block(const struct share_of_chunks &s, int i)
{
    return (s.first + i / CHUNK * s.step) * CHUNK + i % CHUNK;
}
/* Partial results of one chunk: [partial_rows, partial_columns] sums of values, [partial_rows]
 * softmaxes. What fills a row up to whole fours has no meaning. */
static __device__ __forceinline__ float *partial_of(const struct attention_plan &plan, int chunk,
                                                    int head_dim)
{
    size_t item = (size_t)blockIdx.y * gridDim.x + blockIdx.x;
    return plan.partials +
           (item * (size_t)plan.capacity + (size_t)chunk) * (size_t)partial_size(&plan, head_dim);
}

/* The softmax of packed row p in a chunk's partial results. */
static __device__ __forceinline__ float2 *
partial_softmax(float *chunk, const struct attention_plan &plan, int p, int head_dim)
{
    return reinterpret_cast<float2 *>(chunk + partial_rows(&plan) * partial_columns(head_dim)) + p;
}

/* All partial results of this thread block are written. True in the last block to arrive, which
 * then sees those of all. `flag` is shared memory. */
static __device__ __forceinline__ bool arrive_last(const struct attention_plan &plan,
                                                   const struct share_of_chunks &s, int *flag)
{
    int *ticket = plan.tickets + (size_t)blockIdx.y * gridDim.x + blockIdx.x;
    int sharers = s.chunks < s.step ? s.chunks : s.step;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        *flag = atomicAdd(ticket, 1) == sharers - 1;
        if (*flag)
            *ticket = 0;
        __threadfence();
    }
    __syncthreads();
    return *flag != 0;
}

/* What combining needs of a packed row in shared memory: the factors that the fold with each of
 * BATCH chunks has; the softmax so far; how many chunks the row sees. */
enum { BATCH = 16, SO_FAR = 2 * BATCH, SEEN = SO_FAR + 2, COMBINED = SO_FAR + 4 };

/* The last thread block to arrive folds the chunks of every packed row in order, as one with all of
 * them would.
 *
 * What others wrote is read past the L1 (load_far). Nothing more is needed: each thread of theirs
 * has its fence between its writes and the ticket, the last block's between the ticket and the
 * barrier behind which these loads stand (arrive_last). */
struct combination {
    const struct tec_attention_args &a;
    const struct attention_plan &plan;
    const struct packing pack;
    const int *sees;  /* keys that each packed row sees; shared memory */
    float *room;      /* COMBINED floats of it for each packed row */
    float *partials;  /* of chunk 0 */
    int size, across; /* floats of a chunk; fours of a row */
    bool whole;       /* fours in `out`, too */

    /* A thread has at most QUADS fours of a row, with AHEAD chunks of each on their way at once. */
    enum { QUADS = 2, AHEAD = 6 };
    static_assert(WIDE <= 4 * QUADS * WARP, "a row is one warp's at most");

    __device__ __forceinline__ combination(const struct tec_attention_args &a_,
                                           const struct attention_plan &plan_,
                                           const struct packing &pack_, const int *sees_,
                                           float *room_)
        : a(a_), plan(plan_), pack(pack_), sees(sees_), room(room_)
    {
        partials = partial_of(plan, 0, a.head_dim);
        size = partial_size(&plan, a.head_dim);
        across = partial_columns(a.head_dim) / 4;
        whole =
            a.head_dim % 4 == 0 && a.ldo % 4 == 0 && reinterpret_cast<uintptr_t>(a.out) % 16 == 0;
    }

    /* The factors of `chunks` chunks (at most BATCH) from `base` on, a lane for each chunk of a
     * row. A factor wants the largest score in front of it and no sum: the maxima are a prefix over
     * lanes, and maxima are exact in any order. The sums are folded in theirs. */
    __device__ __forceinline__ void find_factors(int base, int chunks)
    {
        static_assert(WARP % BATCH == 0, "lanes of a row");
        __syncthreads();
        ROLLED
        for (int i = (int)threadIdx.x; i / WARP * WARP < pack.count * BATCH; i += THREADS) {
            int p = i / BATCH, c = i % BATCH, seen = 0;
            float *mine = room + p * COMBINED;
            struct softmax so_far = {-INFINITY, 0.0F}, own = so_far;
            if (p < pack.count)
                seen = (sees[p] + KEYS * CHUNK - 1) / (KEYS * CHUNK);
            if (base + c < seen) {
                float *chunk = partials + (size_t)(base + c) * (size_t)size;
                float2 v = load_far(partial_softmax(chunk, plan, p, a.head_dim));
                own = {v.x, v.y};
            }
            if (base > 0 && p < pack.count)
                so_far = {mine[SO_FAR], mine[SO_FAR + 1]};
            float top = own.top;
            for (int o = 1; o < BATCH; o *= 2)
                top = fmaxf(top, __shfl_up_sync(ALL_LANES, top, (unsigned)o, BATCH));
            float front = __shfl_up_sync(ALL_LANES, top, 1, BATCH);
            struct softmax y = so_far;
            if (c > 0)
                y.top = fmaxf(y.top, front);
            struct fold f = fold_softmax(&y, own);
            ROLLED
            for (int k = 0; k < chunks; k++) {
                float next = __shfl_sync(ALL_LANES, own.sum, k, BATCH);
                struct fold g = {__shfl_sync(ALL_LANES, f.old, k, BATCH),
                                 __shfl_sync(ALL_LANES, f.next, k, BATCH)};
                if (base + k < seen)
                    so_far.sum = fold_sum(so_far.sum, next, g);
            }
            if (p >= pack.count)
                continue;
            *reinterpret_cast<float2 *>(mine + 2 * c) = make_float2(f.old, f.next);
            if (c == BATCH - 1) {
                mine[SO_FAR] = y.top;
                mine[SO_FAR + 1] = so_far.sum;
                mine[SEEN] = (float)seen;
            }
        }
        __syncthreads();
    }

    /* Four columns of `out`, of which `left` are a head's. */
    __device__ __forceinline__ float4 load(const float *out, int left) const
    {
        if (whole)
            return *reinterpret_cast<const float4 *>(out);
        return make_float4(out[0], left > 1 ? out[1] : 0.0F, left > 2 ? out[2] : 0.0F,
                           left > 3 ? out[3] : 0.0F);
    }
    __device__ __forceinline__ void store(float *out, float4 v, int left) const
    {
        if (whole) {
            *reinterpret_cast<float4 *>(out) = v;
            return;
        }
        out[0] = v.x;
        if (left > 1)
            out[1] = v.y;
        if (left > 2)
            out[2] = v.z;
        if (left > 3)
            out[3] = v.w;
    }

    /* Fold chunks base .. base + BATCH - 1 of packed row p into four columns and, `apart` floats
     * on, into four others; apart = 0: there are none, and the first are read twice. */
    __device__ __forceinline__ void fold_row(int base, int p, int column, int apart)
    {
        const float *mine = room + p * COMBINED;
        int seen = (int)mine[SEEN] - base, most = seen < BATCH ? seen : (int)BATCH;
        if (base > 0 && seen <= 0)
            return; /* it was finished before */
        float4 sum[QUADS];
        float *out = a.out + packed_at(pack, p, a.ldo, a.head_dim) + column;
        const float *from = partials + (size_t)base * (size_t)size + p * across * 4 + column;
        TEC_UNROLL
        for (int q = 0; q < QUADS; q++)
            sum[q] = base > 0 ? load(out + q * apart, a.head_dim - column - q * apart)
                              : make_float4(0.0F, 0.0F, 0.0F, 0.0F);
        ROLLED
        for (int c = 0; c < most; c += AHEAD) {
            float4 v[QUADS][AHEAD];
            TEC_UNROLL
            for (int k = 0; k < AHEAD; k++, from += size) {
                TEC_UNROLL
                for (int q = 0; q < QUADS; q++)
                    if (c + k < most)
                        v[q][k] = load_far(reinterpret_cast<const float4 *>(from + q * apart));
            }
            TEC_UNROLL
            for (int k = 0; k < AHEAD; k++)
                if (c + k < most) {
                    struct fold f = {mine[2 * (c + k)], mine[2 * (c + k) + 1]};
                    TEC_UNROLL
                    for (int q = 0; q < QUADS; q++)
                        fold(&sum[q], v[q][k], f);
                }
        }
        TEC_UNROLL
        for (int q = 0; q < QUADS; q++)
            if (q == 0 || apart > 0)
                store(out + q * apart, seen <= BATCH ? result(sum[q], mine[SO_FAR + 1]) : sum[q],
                      a.head_dim - column - q * apart);
    }

    static __device__ __forceinline__ void fold(float4 *sum, float4 next, struct fold f)
    {
        sum->x = fold_sum(sum->x, next.x, f);
        sum->y = fold_sum(sum->y, next.y, f);
        sum->z = fold_sum(sum->z, next.z, f);
        sum->w = fold_sum(sum->w, next.w, f);
    }

    __device__ __forceinline__ float4 result(float4 v, float sum) const
    {
        return make_float4(attention_result(a, v.x, sum), attention_result(a, v.y, sum),
                           attention_result(a, v.z, sum), attention_result(a, v.w, sum));
    }

    /* Threads of a row are a power of two, so that none divides by the width of a head. */
    __device__ __forceinline__ void all(int chunks)
    {
        int power = 0;
        while (QUADS << power < across)
            power++;
        int lane = (int)threadIdx.x & ((1 << power) - 1);
        int apart = lane + (1 << power) < across ? 4 << power : 0;
        ROLLED
        for (int base = 0; base < chunks; base += BATCH) {
            find_factors(base, chunks - base < BATCH ? chunks - base : (int)BATCH);
            ROLLED
            for (int p = (int)threadIdx.x >> power; p < pack.count; p += THREADS >> power)
                fold_row(base, p, 4 * lane, apart);
        }
    }
};
/* The state of a thread block. It lies in shared memory: registers are for sums. */
struct attention_job {
    struct attention_run run;
    struct packing pack;
    struct share_of_chunks share;
};
static_assert(sizeof(struct attention_job) <= JOB * sizeof(int), "JOB");

/* Every run that falls to this thread block, one after the other. Where thread blocks share chunks
 * each has one run at most, so shares meet behind the loop: there no register holds what the loop
 * wants again. */
template <class Tile>
static __device__ __forceinline__ void each_run(const struct tec_attention_args &a,
                                                const struct attention_plan &plan, Tile *tile)
{
    int live = live_count(a.rows, a.max_rows);
    int begin = (int)blockIdx.x / plan.starts * plan.rows, end = begin + plan.rows;
    bool shared = false;
    end = end < live ? end : live;
    ROLLED
    for (int row = begin + (int)blockIdx.x % plan.starts; row < end; row += plan.starts) {
        if (row > begin && a.row_seq[row] == a.row_seq[row - 1])
            continue;
        if (threadIdx.x < WARP) {
            struct attention_run run = find_run(a, row, end);
            if (threadIdx.x == 0)
                *tile->job = {run, packing_of(a, plan, run), share_chunks(plan, run.most)};
        }
        __syncthreads();
        if (has_share(tile->job->share)) {
            tile->attend(a, plan);
            shared = tile->job->share.split;
        }
        __syncthreads();
    }
    if (shared && arrive_last(plan, tile->job->share, tile->flag))
        combination(a, plan, tile->job->pack, tile->sees, tile->room())
            .all(tile->job->share.chunks);
}
