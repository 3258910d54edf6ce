/* next_token.cu - greedy choice and the bookkeeping of a decode step.
 *
 * Several blocks share a row's logits, each leaving the best of its columns; the block that comes
 * last of all (a ticket tells) chooses for every row and does the bookkeeping. Which columns a
 * block takes never shows: the choice is the largest number, the lowest column among equals. */
#include "kernels/cuda/row.cuh"

enum { THREADS = 256, WARPS = THREADS / WARP, SHARE = 4096 /* columns a block, where room */ };

/* A column and its logit; column -1: none but NaN so far. */
struct best {
    float value;
    int column;
};

static __device__ __forceinline__ struct best better(struct best a, struct best b)
{
    if (a.column < 0 || b.column < 0)
        return a.column < 0 ? b : a;
    bool take = b.value > a.value || (b.value == a.value && b.column < a.column);
    return take ? b : a;
}

static __device__ __forceinline__ struct best warp_best(struct best a)
{
    for (int o = 16; o; o >>= 1) {
        struct best b = {__shfl_xor_sync(ALL_LANES, a.value, o),
                         __shfl_xor_sync(ALL_LANES, a.column, o)};
        a = better(a, b);
    }
    return a;
}

/* Best of the block's columns, in warp 0. */
static __device__ __forceinline__ struct best block_best(struct best a)
{
    __shared__ struct best room[WARPS];
    int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    a = warp_best(a);
    if (lane == 0)
        room[warp] = a;
    __syncthreads();
    struct best none = {0.0F, -1};
    return warp ? none : warp_best(lane < WARPS ? room[lane] : none);
}

/* Columns first .. last - 1 of a row, this thread's share; first is a multiple of 4. */
static __device__ __forceinline__ struct best scan(const float *row, int first, int last,
                                                   bool round, bool wide)
{
    struct best a = {0.0F, -1};
    for (int c = first + (int)threadIdx.x * QUAD; c < last; c += THREADS * QUAD) {
        struct quad x = quad_load(row + c, last - c, wide);
        TEC_UNROLL
        for (int i = 0; i < QUAD; i++) {
            float v = round ? round_bf16(x.v[i]) : x.v[i];
            if (c + i < last && (a.column < 0 ? v == v : v > a.value)) {
                a.value = v;
                a.column = c + i;
            }
        }
    }
    return a;
}

static __device__ __forceinline__ void next_input(const struct tec_next_token_args &a, int r,
                                                  int id)
{
    a.token[r] = id;
    a.pos[r]++;
    a.visible[r]++;
    a.slot[r] = a.tail[r] + a.visible[r] - 1 - a.prefix[r];
}

static __device__ __forceinline__ bool is_end(const struct tec_next_token_args &a, int r, int id)
{
    bool ends = id == a.eos[r];
    for (int i = 0; i < a.n_ends && a.eos[r] >= 0; i++)
        ends |= id == a.ends[i];
    return ends;
}

/* Move row r, which appended `id`, along its trie; true at a leaf. Same rule as
 * kernels/next_token.h. */
static __device__ __forceinline__ bool leaves_tree(const struct tec_next_token_args &a, int r,
                                                   int id)
{
    const struct tec_trie &p = a.trie;
    int at = p.n > 0 ? a.place[r] : -1;
    if (at < 0 || at >= p.n)
        return false;
    int low = p.first[at], end = p.first[at + 1], high = end;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (p.id[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    if (low >= end || p.id[low] != id)
        return true;
    at = a.place[r] = p.next[low];
    return at < 0 || at >= p.n || p.first[at] == p.first[at + 1];
}

/* Append `id` to a row that is alive and whose next input is not forced, as in
 * kernels/next_token.h. */
static __device__ __forceinline__ void step(const struct tec_next_token_args &a, int r, int id)
{
    if (a.produced[r] < 0 || a.produced[r] >= a.max_tokens) {
        a.done[r] = 1; /* no room: nothing can be appended */
        return;
    }
    a.tokens[(size_t)r * (size_t)a.max_tokens + (size_t)a.produced[r]++] = id;
    bool leaves = leaves_tree(a, r, id);
    if (--a.left[r] <= 0 || leaves || is_end(a, r, id))
        a.done[r] = 1;
    else
        next_input(a, r, id);
}

static __device__ __forceinline__ bool is_forced(const struct tec_next_token_args &a, int r)
{
    return a.max_forced > 0 && a.waiting[r] > 0 && a.waiting[r] <= a.max_forced;
}

/* Row r, whose partial results the blocks have left; a whole warp takes part. Whether it is done
 * afterwards, on lane 0. */
static __device__ __forceinline__ bool finish_row(const struct tec_next_token_args &a, int r,
                                                  const struct best *partials, int shares)
{
    int lane = (int)threadIdx.x % WARP;
    struct best found = {0.0F, -1};
    bool chooses = !a.done[r] && !is_forced(a, r);
    __syncwarp();
    for (int i = lane; chooses && i < shares; i += WARP) {
        const volatile struct best *p = &partials[(size_t)r * (size_t)shares + (size_t)i];
        struct best b = {p->value, p->column};
        found = better(found, b);
    }
    found = warp_best(found);
    if (lane != 0)
        return true;
    if (chooses) {
        a.best[r] = found.column < 0 ? 0 : found.column;
        step(a, r, a.best[r]);
    } else if (!a.done[r]) {
        size_t at = (size_t)r * (size_t)a.max_forced + (size_t)(a.max_forced - a.waiting[r]);
        a.waiting[r]--;
        next_input(a, r, a.forced[at]);
    }
    return a.done[r] != 0;
}

/* Whether this block is the last of `blocks` to come here; the others' writes are then seen. */
static __device__ __forceinline__ bool last_block(int *ticket, int blocks)
{
    __shared__ int mine;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        mine = atomicAdd(ticket, 1);
    __syncthreads();
    __threadfence();
    return mine == blocks - 1;
}

static __global__ void __launch_bounds__(THREADS)
    next_token_kernel(struct tec_next_token_args a, struct best *partials, int *ticket, bool wide)
{
    wait_previous();
    release_next();
    int rows = live_count(a.rows, a.max_rows), shares = (int)gridDim.x, r = (int)blockIdx.y;
    if (r >= (rows ? rows : 1)) /* without rows, one block's row still finds all of them done */
        return;
    if (r < rows && !a.done[r] && !is_forced(a, r)) {
        int share = (a.cols + shares - 1) / shares + QUAD - 1;
        int first = (int)blockIdx.x * (share / QUAD * QUAD), last = first + share / QUAD * QUAD;
        struct best found = block_best(
            scan(a.logits + (size_t)r * (size_t)a.ld, first, min(last, a.cols), a.round, wide));
        if (threadIdx.x == 0)
            partials[(size_t)r * (size_t)shares + blockIdx.x] = found;
    }
    if (!last_block(ticket, (rows ? rows : 1) * shares))
        return;
    __shared__ int living;
    if (threadIdx.x == 0) {
        *ticket = 0;
        living = 0;
    }
    __syncthreads();
    for (int i = (int)threadIdx.x / WARP; i < rows; i += WARPS)
        if (!finish_row(a, i, partials, shares))
            living = 1;
    __syncthreads();
    if (threadIdx.x == 0 && !living)
        *a.stop = 1;
}

void tec_cuda_next_token(const struct tec_next_token_args *a, struct tec_cuda_launch *launch)
{
    if (a->max_rows < 1)
        return;
    size_t room = launch->partials_size / sizeof(struct best) / (size_t)a->max_rows;
    int shares = ceil_div(a->cols, SHARE);
    if ((size_t)shares > room)
        shares = (int)room;
    if (shares < 1) {
        if (launch->error == cudaSuccess)
            launch->error = cudaErrorInvalidValue;
        return;
    }
    tec_cuda_start(launch, next_token_kernel, dim3((unsigned)shares, (unsigned)a->max_rows),
                   dim3(THREADS), 0, *a, reinterpret_cast<struct best *>(launch->partials),
                   launch->tickets, floats_aligned(a->logits, a->ld));
}
