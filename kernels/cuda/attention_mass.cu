/* attention_mass.cu - weights of attention added up over ranges of keys, by multiply-adds: over
 * float32 memory, and of heads that attention_mass_bf16.cu has no code for.
 *
 * A block has the heads of a key-value head for one row or more, up to QUERIES queries, and
 * goes through all key-value heads of its rows, so that a row's result is written by it alone. The
 * keys of a run are walked twice: once for the softmax of each query, block of 64 keys by block in
 * order, once more for the weights. Those of a row's heads are added in order, then those of the
 * keys of a range in order, then to the result. Scores are one chain over the columns, by
 * multiply-adds in float32; keys come in pieces of PIECE columns. */
#include "kernels/cuda/attention_mass.cuh"
#include "kernels/cuda/row.cuh"

enum { QUERIES = 16, PIECE = 64, PIECE_LD = PIECE + 4, PER = THREADS / KEYS, TOGETHER = 4 };
static_assert(THREADS == QUERIES * PIECE / QUAD && QUERIES == PER * TOGETHER, "one share each");

struct mass_ranges {
    const int *ends, *count;
    int most;
    int heads;           /* that a block takes together */
    bool wide_k, wide_q; /* columns four at a time */
};

struct mass_room {
    float k[KEYS * PIECE_LD], q[QUERIES * PIECE_LD];
    float p[QUERIES][KEYS + 1]; /* scores; then in a row's first query the weights of its heads */
    struct softmax state[QUERIES];
    int first[QUERIES], end[QUERIES]; /* keys that a query sees */
    int range[KEYS];                  /* of each key of the block */
};

/* Queries of one run that a block has at a time. */
struct mass_tile {
    struct attention_run run;
    int kv_head, head, heads, count; /* count = run.rows * heads */
};

/* This thread's piece of its key and of its query. */
template <class T>
static __device__ __forceinline__ void
load_piece(const struct tec_attention_args &a, const struct mass_ranges &ranges,
           const struct mass_tile &y, struct mass_room *room, int slot, int column)
{
    int part = (int)threadIdx.x % PER, key = (int)threadIdx.x / PER, dim = a.head_dim;
    size_t at =
        ((size_t)(slot < 0 ? 0 : slot) * (size_t)a.kv_heads + (size_t)y.kv_head) * (size_t)dim;
    TEC_UNROLL
    for (int j = 0; j < PIECE / QUAD / PER; j++) {
        int c = (part + PER * j) * QUAD, n = slot < 0 ? 0 : dim - column - c;
        struct quad v = quad_load(static_cast<const T *>(a.k) + at + column + c, n, ranges.wide_k);
        quad_store(room->k + key * PIECE_LD + c, v, QUAD, true);
    }
    int i = (int)threadIdx.x / (PIECE / QUAD), c = (int)threadIdx.x % (PIECE / QUAD) * QUAD;
    int n = i < y.count ? dim - column - c : 0;
    i = i < y.count ? i : 0;
    const float *q = a.q + (size_t)(y.run.row + i / y.heads) * (size_t)a.ldq +
                     (size_t)(y.head + i % y.heads) * (size_t)dim;
    struct quad v = quad_load(q + column + c, n, ranges.wide_q);
    quad_store(room->q + (int)threadIdx.x / (PIECE / QUAD) * PIECE_LD + c, v, QUAD, true);
}

/* Scores of all queries against the block of keys that begins at `at`, into room->p. */
template <class T>
static __device__ __forceinline__ void
score_keys(const struct tec_attention_args &a, const struct mass_ranges &ranges,
           const struct mass_tile &y, struct mass_room *room, struct key_walk *walk, int at)
{
    int loads = at + (int)threadIdx.x / PER;
    int slot = loads < y.run.most ? slot_of_key(a, walk, loads) : -1;
    int key = (int)threadIdx.x % KEYS, first = (int)threadIdx.x / KEYS * TOGETHER;
    float sum[TOGETHER] = {};
    ROLLED
    for (int column = 0; column < a.head_dim; column += PIECE) {
        __syncthreads();
        load_piece<T>(a, ranges, y, room, slot, column);
        __syncthreads();
        ROLLED
        for (int c = 0; c < PIECE && column + c < a.head_dim; c += QUAD) {
            struct quad k = quad_load(room->k + key * PIECE_LD + c, QUAD, true);
            TEC_UNROLL
            for (int i = 0; i < TOGETHER; i++) {
                struct quad q = quad_load(room->q + (first + i) * PIECE_LD + c, QUAD, true);
                TEC_UNROLL
                for (int e = 0; e < QUAD; e++)
                    sum[i] = fmaf(q.v[e], k.v[e], sum[i]);
            }
        }
    }
    TEC_UNROLL
    for (int i = 0; i < TOGETHER; i++)
        room->p[first + i][key] = capped(a, times(a.scale, sum[i]));
}

/* Set up the keys that each query attends to; its softmax starts empty. */
static __device__ __forceinline__ void
begin_queries(const struct tec_attention_args &a, const struct mass_tile &y, struct mass_room *room)
{
    int i = (int)threadIdx.x;
    if (i >= y.count)
        return;
    int row = y.run.row + i / y.heads, visible = a.visible[row];
    room->first[i] = first_seen(a, visible);
    room->end[i] = keys_visible(a, row, y.run.length);
    room->state[i].top = -INFINITY;
    room->state[i].sum = 0.0F;
}

/* The block's softmax of each query, folded into what is known. A warp takes a query. */
static __device__ __forceinline__ void fold_queries(const struct mass_tile &y,
                                                    struct mass_room *room, int at)
{
    int lane = (int)threadIdx.x % WARP;
    for (int i = (int)threadIdx.x / WARP; i < y.count; i += WARPS) {
        int first = room->first[i] - at, end = room->end[i] - at;
        if (first >= KEYS || end <= 0 || first >= end)
            continue;
        bool low = lane >= first && lane < end, high = lane + WARP >= first && lane + WARP < end;
        float x = low ? room->p[i][lane] : -INFINITY;
        float z = high ? room->p[i][lane + WARP] : -INFINITY;
        struct softmax block;
        block.top = warp_max(fmaxf(x, z));
        block.sum =
            warp_sum(plus(low ? expf(x - block.top) : 0.0F, high ? expf(z - block.top) : 0.0F));
        if (lane == 0)
            fold_softmax(&room->state[i], block);
    }
}

/* The weights of a row's heads for each key of the block, added in the order of heads. */
static __device__ __forceinline__ void weigh_keys(const struct mass_tile &y, struct mass_room *room,
                                                  int at)
{
    for (int j = (int)threadIdx.x; j < y.run.rows * KEYS; j += THREADS) {
        int query = j / KEYS * y.heads, c = j % KEYS;
        float sum = 0.0F;
        for (int i = query; i < query + y.heads; i++)
            if (at + c >= room->first[i] && at + c < room->end[i])
                sum = plus(sum, expf(room->p[i][c] - room->state[i].top) / room->state[i].sum);
        room->p[query][c] = sum;
    }
}

/* The first key of a range adds up all that the block has of it. */
static __device__ __forceinline__ void add_ranges(const struct tec_attention_args &a,
                                                  const struct mass_tile &y,
                                                  const struct mass_room *room, int n)
{
    for (int j = (int)threadIdx.x; j < y.run.rows * KEYS; j += THREADS) {
        int row = j / KEYS, c = j % KEYS, s = room->range[c];
        if (s == n || (c > 0 && room->range[c - 1] == s))
            continue;
        float sum = 0.0F;
        for (; c < KEYS && room->range[c] == s; c++)
            sum = plus(sum, room->p[row * y.heads][c]);
        float *out = a.out + (size_t)(y.run.row + row) * (size_t)a.ldo + (size_t)s;
        *out = plus(*out, sum);
    }
}

template <class T>
static __device__ __forceinline__ void
add_tile(const struct tec_attention_args &a, const struct mass_ranges &ranges,
         const struct mass_tile &y, struct mass_room *room, int n)
{
    int begin = a.window > 0 && y.run.least > a.window ? (y.run.least - a.window) / KEYS * KEYS : 0;
    begin_queries(a, y, room);
    struct key_walk walk = {y.run.span, y.run.end, 0};
    ROLLED
    for (int at = begin; at < y.run.most; at += KEYS) {
        score_keys<T>(a, ranges, y, room, &walk, at);
        __syncthreads();
        fold_queries(y, room, at);
    }
    walk = {y.run.span, y.run.end, 0};
    ROLLED
    for (int at = begin; at < y.run.most; at += KEYS) {
        score_keys<T>(a, ranges, y, room, &walk, at);
        if (threadIdx.x < KEYS)
            room->range[threadIdx.x] = range_of(ranges.ends, n, at + (int)threadIdx.x);
        __syncthreads();
        weigh_keys(y, room, at);
        __syncthreads();
        add_ranges(a, y, room, n);
    }
}

template <class T>
static __global__ void __launch_bounds__(THREADS, 2)
    attention_mass_kernel(struct tec_attention_args a, struct mass_ranges ranges)
{
    __shared__ __align__(16) struct mass_room room;
    release_next();
    wait_previous();
    int n = live_count(ranges.count, ranges.most), group = a.heads / a.kv_heads;
    int rows = QUERIES / ranges.heads, row = (int)blockIdx.x * rows;
    int live = live_count(a.rows, a.max_rows), last = row + rows < live ? row + rows : live;
    if (row >= live || n == 0)
        return;
    for (int i = (int)threadIdx.x; i < (last - row) * n; i += THREADS)
        a.out[(size_t)(row + i / n) * (size_t)a.ldo + (size_t)(i % n)] = 0.0F;
    struct mass_tile y;
    ROLLED
    for (; row < last; row += y.run.rows) {
        y.run = find_run(a, row, last);
        ROLLED
        for (int head = 0; head < a.heads; head += y.heads) {
            int left = group - head % group;
            y.kv_head = head / group;
            y.head = head;
            y.heads = left < ranges.heads ? left : ranges.heads;
            y.count = y.run.rows * y.heads;
            add_tile<T>(a, ranges, y, &room, n);
        }
    }
}

template <class T>
static void attention_mass(const struct tec_mass_args *m, struct tec_cuda_launch *launch)
{
    if (m->max_rows <= 0)
        return;
    struct tec_attention_args a = attention_of(m);
    int group = a.heads / a.kv_heads;
    struct mass_ranges ranges = {
        m->ends, m->n_ranges, m->max_ranges, group < QUERIES ? group : QUERIES, false, false};
    ranges.wide_k = rows_aligned(a.k, (size_t)a.head_dim * sizeof(T), QUAD * sizeof(T));
    ranges.wide_q = a.head_dim % QUAD == 0 && floats_aligned(a.q, a.ldq);
    tec_cuda_start(launch, attention_mass_kernel<T>,
                   dim3((unsigned)ceil_div(a.max_rows, QUERIES / ranges.heads)), dim3(THREADS), 0,
                   a, ranges);
}

void tec_cuda_attention_mass_f32(const struct tec_mass_args *a, struct tec_cuda_launch *launch)
{
    attention_mass<float>(a, launch);
}

void tec_cuda_attention_mass_bf16(const struct tec_mass_args *a, struct tec_cuda_launch *launch)
{
    if (!tec_cuda_mass_terms(a, launch))
        attention_mass<bf16>(a, launch);
}
