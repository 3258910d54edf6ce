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

#include "kernels/cuda/attention_plan.h"
#include "kernels/cuda/lang.cuh"

enum { WARPS = THREADS / WARP };

static inline dim3 attention_grid(const struct tec_attention_args *a,
                                  const struct attention_plan *plan)
{
    unsigned blocks[3];
    attention_blocks(a, plan, blocks);
    return dim3(blocks[0], blocks[1], blocks[2]);
}

/* The plan with its memory. */
static inline struct attention_plan attention_memory(struct attention_plan plan,
                                                     const struct tec_cuda_launch *launch)
{
    if (plan.splits > 1) {
        plan.partials = launch->partials;
        plan.tickets = launch->tickets;
    }
    return plan;
}

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
/* Neighbouring rows of one sequence within a tile. */
struct attention_run {
    int row, rows;
    int most, least; /* keys that its rows see: the largest and the smallest number */
    int length;      /* keys of the sequence */
    int span, end;   /* its spans in the table */
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

/* The number of keys that a row attends to. */
static __device__ __forceinline__ int keys_visible(const struct tec_attention_args &a, int row,
                                                   int length)
{
    int n = a.visible[row];
    return n < 0 ? 0 : n > length ? length : n;
}

/* The run that begins at `row`, cut at `end` (at most 64 rows on). For a whole warp. */
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
    y.span = seq.first;
    y.end = seq.first + seq.spans;
    y.length = 0;
    ROLLED
    for (int i = lane; i < seq.spans; i += WARP)
        y.length += a.spans[seq.first + i].length;
    y.length = warp_total(y.length);
    y.most = 0;
    int fewest = -0x7fffffff;
    ROLLED
    for (int i = lane; i < y.rows; i += WARP) {
        int n = keys_visible(a, row + i, y.length);
        y.most = n > y.most ? n : y.most;
        fewest = -n > fewest ? -n : fewest;
    }
    y.most = warp_largest(y.most);
    y.least = -warp_largest(fewest);
    return y;
}

/* One thread's way through the spans of a sequence, forward only. */
struct key_walk {
    int span, end;
    int before; /* keys of the spans in front of `span` */
};

static __device__ __forceinline__ int slot_of_key(const struct tec_attention_args &a,
                                                  struct key_walk *w, int key)
{
    ROLLED
    while (w->span < w->end) {
        struct tec_span span = a.spans[w->span];
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
    int kv_head;
};

static __device__ __forceinline__ struct packing packing_of(const struct tec_attention_args &a,
                                                            const struct attention_plan &plan,
                                                            const struct attention_run &run)
{
    int group = a.heads / a.kv_heads, tile = (int)blockIdx.y % plan.head_tiles;
    int left = group - tile * plan.heads;
    struct packing y;
    y.row = run.row;
    y.kv_head = (int)blockIdx.y / plan.head_tiles;
    y.head = y.kv_head * group + tile * plan.heads;
    y.heads = left < plan.heads ? left : plan.heads;
    y.count = run.rows * y.heads;
    return y;
}

/* The offset of the head of packed row p in a row-major matrix of rows of heads. */
static __device__ __forceinline__ size_t packed_at(const struct packing &y, int p, int ld,
                                                   int head_dim)
{
    return (size_t)(y.row + p / y.heads) * (size_t)ld +
           (size_t)(y.head + p % y.heads) * (size_t)head_dim;
}
