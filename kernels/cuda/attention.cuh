/* attention.cuh - what the attention kernels share: who takes which rows and keys, and the sums.
 *
 * Variable-length attention over span tables. Query heads that read one key-value head and rows of
 * one sequence are packed into the rows of a tile, so that one decoded row with eight heads is a
 * tile as well. Who takes what is read from device memory; the launcher knows capacities alone.
 *
 * One order of sums for every row, whoever computes it: keys are cut at multiples of KEYS in
 * logical order, and CHUNK such blocks are a chunk. Each block of keys is a softmax of its own;
 * blocks are folded in order into their chunk, chunks in order into the answer. A block that a row
 * does not see is never folded. So chunks may be taken by different thread blocks. */
#pragma once

#include "kernels/cuda/lang.cuh"

enum { KEYS = 64, CHUNK = 4, THREADS = 256, WARPS = THREADS / WARP };

/* Products and sums that are rounded by themselves, whatever stands around them: the compiler
 * would join some to fused ones, and not the same ones in every instance of a template. */
#ifdef __CUDACC__
static __device__ __forceinline__ float times(float a, float b)
{
    return __fmul_rn(a, b);
}
static __device__ __forceinline__ float plus(float a, float b)
{
    return __fadd_rn(a, b);
}
#else
static inline float times(float a, float b)
{
    return a * b;
}
static inline float plus(float a, float b)
{
    return a + b;
}
#endif

/* A loop that stays one: its unrolled copies would cost registers that sums need. */
#ifdef __CUDACC__
#define ROLLED _Pragma("unroll 1")
#else
#define ROLLED
#endif

/* How the rows are cut, chosen by the launcher. Grid: x = row tiles * starts, y = kv_heads *
 * head_tiles, z = splits. */
struct attention_plan {
    int rows;       /* of a tile */
    int heads;      /* query heads that a tile takes of one row */
    int head_tiles; /* of one key-value head */
    int starts;     /* thread blocks that share the runs of a tile */
    int splits;     /* thread blocks that share the chunks of a run; 1 unless starts = rows */
    int capacity;   /* chunks that there is room for in `partials`, for each block in x and y */
    float *partials;
    int *tickets;
};

/* Neighbouring rows of one sequence within a tile. */
struct attention_run {
    int row, rows;
    int most, least; /* keys that its rows see: the largest and the smallest number */
    int length;      /* keys of the sequence */
    const struct tec_span *span, *end;
};

static __device__ __forceinline__ int warp_largest(int v)
{
    for (int o = 16; o; o >>= 1) {
        int other = __shfl_xor_sync(ALL_LANES, v, o);
        v = v > other ? v : other;
    }
    return v;
}

static __device__ __forceinline__ int warp_total(int v)
{
    for (int o = 16; o; o >>= 1)
        v += __shfl_xor_sync(ALL_LANES, v, o);
    return v;
}

/* How many keys a row sees. */
static __device__ __forceinline__ int keys_seen(const struct tec_attention_args &a, int row,
                                                int length)
{
    int n = a.visible[row];
    return n < 0 ? 0 : n > length ? length : n;
}

/* The run that begins at `row`, cut at `end` (at most 64 rows on). Each warp finds it for itself.
 */
static __device__ __forceinline__ struct attention_run find_run(const struct tec_attention_args &a,
                                                                int row, int end)
{
    struct attention_run y;
    int lane = (int)threadIdx.x % WARP, id = a.row_seq[row];
    struct tec_seq seq = a.seqs[id];
    y.row = row;
    y.rows = end - row;
    ROLLED
    for (int at = row; at < end; at += WARP) {
        bool other = at + lane < end && a.row_seq[at + lane] != id;
        unsigned others = __ballot_sync(ALL_LANES, other);
        if (others) {
            y.rows = at - row + __ffs((int)others) - 1;
            break;
        }
    }
    y.span = a.spans + seq.first;
    y.end = y.span + seq.spans;
    y.length = 0;
    ROLLED
    for (int i = lane; i < seq.spans; i += WARP)
        y.length += y.span[i].length;
    y.length = warp_total(y.length);
    y.most = 0;
    int fewest = -0x7fffffff;
    ROLLED
    for (int i = lane; i < y.rows; i += WARP) {
        int n = keys_seen(a, row + i, y.length);
        y.most = n > y.most ? n : y.most;
        fewest = -n > fewest ? -n : fewest;
    }
    y.most = warp_largest(y.most);
    y.least = -warp_largest(fewest);
    return y;
}

/* One thread's way through the spans of a sequence, forward only. */
struct key_walk {
    const struct tec_span *span, *end;
    int before; /* keys of the spans in front of *span */
};

static __device__ __forceinline__ int slot_of_key(struct key_walk *w, int key)
{
    ROLLED
    while (w->span < w->end) {
        struct tec_span span = *w->span;
        if (key - w->before < span.length)
            return span.slot + (key - w->before);
        w->before += span.length;
        w->span++;
    }
    return -1;
}

/* A softmax that is not finished: the largest score, and the sum of e^(score - top). */
struct softmax {
    float top, sum;
};

/* Fold what comes next in key order into `y`. Sums of values are folded alike: fold_sum. */
struct fold {
    float old, next;
};

static __device__ __forceinline__ struct fold fold_softmax(struct softmax *y, struct softmax next)
{
    float top = fmaxf(y->top, next.top);
    struct fold f = {expf(y->top - top), expf(next.top - top)};
    y->sum = fmaf(next.sum, f.next, times(y->sum, f.old));
    y->top = top;
    return f;
}

static __device__ __forceinline__ float fold_sum(float sum, float next, struct fold f)
{
    return fmaf(next, f.next, times(sum, f.old));
}

static __device__ __forceinline__ float attention_result(const struct tec_attention_args &a,
                                                         float sum_of_values, float sum)
{
    float v = sum == 0.0F ? 0.0F : sum_of_values / sum; /* a NaN is shown */
    return a.round ? round_bf16(v) : v;
}

/* Packed row p of a run: `heads` heads of its first row, then of the second ... */
struct packing {
    int row, head, heads, count;
};

static __device__ __forceinline__ struct packing packing_of(const struct tec_attention_args &a,
                                                            const struct attention_plan &plan,
                                                            const struct attention_run &run)
{
    int group = a.heads / a.kv_heads, tile = (int)blockIdx.y % plan.head_tiles;
    int kv_head = (int)blockIdx.y / plan.head_tiles, left = group - tile * plan.heads;
    struct packing y;
    y.row = run.row;
    y.head = kv_head * group + tile * plan.heads;
    y.heads = left < plan.heads ? left : plan.heads;
    y.count = run.rows * y.heads;
    return y;
}

/* Where the head of packed row p begins in a row-major matrix of rows of heads. */
static __device__ __forceinline__ size_t packed_at(const struct packing &y, int p, int ld,
                                                   int head_dim)
{
    return (size_t)(y.row + p / y.heads) * (size_t)ld +
           (size_t)(y.head + p % y.heads) * (size_t)head_dim;
}

/* Which chunks of a run this thread block takes: first, first + step, ... */
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

/* Packed rows of a tile at most. */
static __host__ __device__ __forceinline__ int partial_rows(const struct attention_plan &plan)
{
    return plan.rows * plan.heads;
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
        int sees = keys_seen(a, pack.row + p / pack.heads, run.length);
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

/* How the launcher cuts: tiles of m packed rows, at most `splits` blocks along the keys. */
static inline struct attention_plan attention_tiles(const struct tec_attention_args *a, int m)
{
    int group = a->heads / a->kv_heads;
    struct attention_plan y = {};
    y.heads = group < m ? group : m;
    y.head_tiles = ceil_div(group, y.heads);
    y.rows = m / y.heads;
    if (y.rows > a->max_rows)
        y.rows = a->max_rows;
    y.starts = 1;
    y.splits = 1;
    return y;
}

static inline int attention_row_tiles(const struct tec_attention_args *a,
                                      const struct attention_plan *plan)
{
    return ceil_div(a->max_rows, plan->rows);
}

/* Tiles of one launch, whole or not. */
static inline int attention_tile_count(const struct tec_attention_args *a,
                                       const struct attention_plan *plan)
{
    return attention_row_tiles(a, plan) * a->kv_heads * plan->head_tiles;
}

/* Let several blocks share the keys of a tile, where there are too few tiles for the device. */
static inline void attention_split(const struct tec_attention_args *a,
                                   const struct tec_cuda_launch *launch,
                                   struct attention_plan *plan)
{
    enum { MOST = 16 };
    int tiles = attention_tile_count(a, plan), blocks = tiles * plan->rows;
    int splits = ceil_div(2 * launch->processors, tiles);
    size_t item =
        (size_t)blocks * (size_t)partial_rows(*plan) * (size_t)(a->head_dim + 2) * sizeof(float);
    size_t capacity = launch->partials ? launch->partials_size / item : 0;
    if (splits < 2 || capacity < 2 || blocks > TEC_CUDA_TICKETS || !launch->tickets)
        return;
    plan->starts = plan->rows;
    plan->splits = splits < MOST ? splits : MOST;
    plan->capacity = capacity < 1U << 20 ? (int)capacity : 1 << 20;
    plan->partials = launch->partials;
    plan->tickets = launch->tickets;
}

static inline dim3 attention_grid(const struct tec_attention_args *a,
                                  const struct attention_plan *plan)
{
    return dim3((unsigned)(attention_row_tiles(a, plan) * plan->starts),
                (unsigned)(a->kv_heads * plan->head_tiles), (unsigned)plan->splits);
}

/* Shared memory that a block may ask for, bytes. */
static inline size_t shared_limit(int capability)
{
    if (capability == 80 || capability == 87)
        return 163U * 1024U;
    if (capability == 90 || capability == 100 || capability == 103)
        return 227U * 1024U;
    return 99U * 1024U;
}

/* Every run that falls to this thread block: f(run). */
template <class Tile>
static __device__ __forceinline__ void each_run(const struct tec_attention_args &a,
                                                const struct attention_plan &plan, Tile *tile)
{
    int live = live_count(a.rows, a.max_rows);
    int begin = (int)blockIdx.x / plan.starts * plan.rows, end = begin + plan.rows;
    end = end < live ? end : live;
    ROLLED
    for (int row = begin + (int)blockIdx.x % plan.starts; row < end; row += plan.starts)
        if (row == begin || a.row_seq[row] != a.row_seq[row - 1])
            tile->attend(a, plan, find_run(a, row, end));
}
