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
    size_t size = (size_t)partial_rows(plan) * (size_t)(head_dim + 2);
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

/* Fold the chunks of every packed row in order, as one thread block with all of them would. */
static __device__ __forceinline__ void combine_chunks(const struct tec_attention_args &a,
                                                      const struct attention_plan &plan,
                                                      const struct attention_run &run,
                                                      const struct packing &pack)
{
    int total = pack.count * a.head_dim;
    ROLLED
    for (int i = (int)threadIdx.x; i < total; i += THREADS) {
        int p = i / a.head_dim, d = i % a.head_dim;
        int sees = keys_visible(a, pack.row + p / pack.heads, run.length);
        int chunks = (sees + KEYS * CHUNK - 1) / (KEYS * CHUNK);
        struct softmax y = {-INFINITY, 0.0F};
        float sum = 0.0F;
        ROLLED
        for (int c = 0; c < chunks; c++) {
            const volatile float *from = partial_of(plan, c, a.head_dim);
            const volatile float *state = from + partial_rows(plan) * a.head_dim + 2 * p;
            struct softmax next = {state[0], state[1]};
            float values = from[(size_t)p * (size_t)a.head_dim + (size_t)d];
            sum = fold_sum(sum, values, fold_softmax(&y, next));
        }
        a.out[packed_at(pack, p, a.ldo, a.head_dim) + (size_t)d] = attention_result(a, sum, y.sum);
    }
}
/* The state of a thread block. It lies in shared memory: registers are for sums. */
struct attention_job {
    struct attention_run run;
    struct packing pack;
    struct share_of_chunks share;
};
enum { JOB = 20 }; /* ints, a multiple of four */
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
