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
/* Partial results of one chunk: [partial_rows, head_dim] sums of values, [partial_rows] softmaxes.
 */
static __device__ __forceinline__ float *partial_of(const struct attention_plan &plan, int chunk,
                                                    int head_dim)
{
    size_t item = (size_t)blockIdx.y * gridDim.x + blockIdx.x;
    size_t size = (size_t)partial_rows(&plan) * (size_t)(head_dim + 2);
    return plan.partials + (item * (size_t)plan.capacity + (size_t)chunk) * size;
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

/* What combining needs of a packed row in shared memory: for each of BATCH chunks its softmax, then
 * the factors that the fold with it has; the softmax so far; how many chunks the row sees. */
enum { BATCH = 16, SO_FAR = 2 * BATCH, SEEN = SO_FAR + 2, COMBINED = SO_FAR + 4 };

/* The factors of chunks base .. base + BATCH - 1 of every packed row. */
static __device__ __forceinline__ void
find_factors(const struct tec_attention_args &a, const struct attention_plan &plan,
             const struct attention_run &run, const struct packing &pack, int base, float *room)
{
    __syncthreads();
    ROLLED
    for (int i = (int)threadIdx.x; i < pack.count * BATCH; i += THREADS) {
        int p = i / BATCH, c = base + i % BATCH;
        int sees = keys_visible(a, pack.row + p / pack.heads, run.length);
        int chunks = (sees + KEYS * CHUNK - 1) / (KEYS * CHUNK);
        const volatile float *state =
            partial_of(plan, c, a.head_dim) + partial_rows(&plan) * a.head_dim + 2 * p;
        float *to = room + p * COMBINED;
        if (i % BATCH == 0)
            to[SEEN] = (float)chunks;
        if (c < chunks) {
            to[2 * (i % BATCH)] = state[0];
            to[2 * (i % BATCH) + 1] = state[1];
        }
    }
    __syncthreads();
    if ((int)threadIdx.x < pack.count) {
        float *mine = room + (int)threadIdx.x * COMBINED;
        struct softmax y = {-INFINITY, 0.0F};
        if (base > 0)
            y = {mine[SO_FAR], mine[SO_FAR + 1]};
        int chunks = (int)mine[SEEN] - base;
        ROLLED
        for (int c = 0; c < chunks && c < BATCH; c++) {
            struct fold f = fold_softmax(&y, {mine[2 * c], mine[2 * c + 1]});
            mine[2 * c] = f.old;
            mine[2 * c + 1] = f.next;
        }
        mine[SO_FAR] = y.top;
        mine[SO_FAR + 1] = y.sum;
    }
    __syncthreads();
}

/* Fold chunks base .. base + BATCH - 1 into ELEMENTS numbers of the output, with AHEAD chunks of
 * each on their way: from one chunk to the next a load would wait for the other. */
static __device__ __forceinline__ void fold_chunks(const struct tec_attention_args &a,
                                                   const struct attention_plan &plan,
                                                   const struct packing &pack, int base, int first,
                                                   const float *room)
{
    enum { ELEMENTS = 4, AHEAD = 4 };
    int total = pack.count * a.head_dim, most = 0, chunks[ELEMENTS];
    float sum[ELEMENTS];
    float *out[ELEMENTS];
    const float *row[ELEMENTS];
    TEC_UNROLL
    for (int e = 0; e < ELEMENTS; e++) {
        int i = first + e * THREADS, p = i / a.head_dim;
        bool is = i < total;
        row[e] = room + (is ? p : 0) * COMBINED;
        out[e] = is ? a.out + packed_at(pack, p, a.ldo, a.head_dim) + i % a.head_dim : NULL;
        chunks[e] = is ? (int)row[e][SEEN] - base : 0;
        sum[e] = is && base > 0 ? *out[e] : 0.0F;
        most = chunks[e] > most ? chunks[e] : most;
    }
    most = most < BATCH ? most : (int)BATCH;
    ROLLED
    for (int c = 0; c < most; c += AHEAD) {
        float v[ELEMENTS][AHEAD];
        TEC_UNROLL
        for (int e = 0; e < ELEMENTS; e++) {
            TEC_UNROLL
            for (int k = 0; k < AHEAD; k++) {
                const volatile float *from = partial_of(plan, base + c + k, a.head_dim);
                v[e][k] = c + k < chunks[e] && c + k < BATCH ? from[first + e * THREADS] : 0.0F;
            }
        }
        TEC_UNROLL
        for (int e = 0; e < ELEMENTS; e++) {
            const float *f = row[e] + 2 * c;
            TEC_UNROLL
            for (int k = 0; k < AHEAD; k++)
                if (c + k < chunks[e] && c + k < BATCH)
                    sum[e] = fold_sum(sum[e], v[e][k], {f[2 * k], f[2 * k + 1]});
        }
    }
    TEC_UNROLL
    for (int e = 0; e < ELEMENTS; e++)
        if (out[e] && (base == 0 || chunks[e] > 0)) /* else it was finished before */
            *out[e] = chunks[e] <= BATCH ? attention_result(a, sum[e], row[e][SO_FAR + 1]) : sum[e];
}

/* Fold the chunks of every packed row in order, as one thread block with all of them would.
 * `room`: COMBINED floats of shared memory for each packed row. */
static __device__ __forceinline__ void combine_chunks(const struct tec_attention_args &a,
                                                      const struct attention_plan &plan,
                                                      const struct attention_run &run,
                                                      const struct packing &pack, float *room)
{
    int total = pack.count * a.head_dim, chunks = (run.most + KEYS * CHUNK - 1) / (KEYS * CHUNK);
    ROLLED
    for (int base = 0; base < chunks; base += BATCH) {
        find_factors(a, plan, run, pack, base, room);
        ROLLED
        for (int first = (int)threadIdx.x; first < total; first += 4 * THREADS)
            fold_chunks(a, plan, pack, base, first, room);
    }
}
/* The state of a thread block. It lies in shared memory: registers are for sums. */
struct attention_job {
    struct attention_run run;
    struct packing pack;
    struct share_of_chunks share;
};
static_assert(sizeof(struct attention_job) <= JOB * sizeof(int), "JOB");

/* Every run that falls to this thread block, one after the other. */
template <class Tile>
static __device__ __forceinline__ void each_run(const struct tec_attention_args &a,
                                                const struct attention_plan &plan, Tile *tile)
{
    int live = live_count(a.rows, a.max_rows);
    int begin = (int)blockIdx.x / plan.starts * plan.rows, end = begin + plan.rows;
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
        if (has_share(tile->job->share))
            tile->attend(a, plan);
        __syncthreads();
    }
}
