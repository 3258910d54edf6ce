/* gemm_groups_kernel.cuh - the kernel of products by warp groups, for any finish, and how it is
 * started: on devices of compute capability 9.0, where the code for sm_90a is.
 *
 * Finishes, splits and what a row's bytes depend on are those of gemm_kernel.cuh; the instruction
 * is another one, so a device has one of the two for all its products of bf16 weights. */
#pragma once

#include "kernels/cuda/gemm_groups.cuh"
#include "kernels/cuda/gemm_kernel.cuh"
#include "kernels/cuda/gemm_terms.cuh"

/* The sums of a group's split. */
template <class S>
static __device__ __forceinline__ void multiply_steps(group_sums<S::N> &c, unsigned char *shared,
                                                      const struct stage_barriers<S> &barriers,
                                                      const struct group_work &work)
{
    int group = (int)threadIdx.x / (4 * WARP), lane = (int)threadIdx.x % WARP;
    int whole = (work.end - work.at) / S::STEP, step = 0;
    clear(c);
    for (; step < whole; step++) {
        barriers.wait_brought(step);
        begin_step<S>(c, shared + step % S::STAGES * S::STAGE, group);
        products_wait<1>();
        if (step > 0 && lane == 0)
            barrier_arrive(barriers.used(step - 1));
    }
    products_wait<0>();
    products_hold(c[0]);
    products_hold(c[1]);
    if (step > 0 && lane == 0)
        barrier_arrive(barriers.used(step - 1));
    if (step < work.step) {
        barriers.wait_brought(step);
        multiply_rest<S>(c, shared + step % S::STAGES * S::STAGE, group,
                         (work.end - work.at) % S::STEP);
        products_hold(c[0]);
        products_hold(c[1]);
    }
}

/* Scales of the tile's rows, by all warps but the one that brings them. */
template <class S>
static __device__ __forceinline__ void measure_tile(float *scales, const struct group_front &front,
                                                    const struct group_work &work)
{
    enum { WARPS = S::ROWS_WARP, TOGETHER = S::N >= 4 ? 1 : 2 };
    int last = min(work.live - work.first, (int)S::ROWS);
    if (front.left) {
        add_left<WARPS>(scales, front.a, front.left, work.first, last, last);
        return;
    }
    for (int r = (int)threadIdx.x / WARP * TOGETHER; r < last; r += WARPS * TOGETHER) {
        float scale[TOGETHER] = {};
        measure_rows<TOGETHER>(scale, front.a, work.first + r, work.live);
        TEC_UNROLL
        for (int i = 0; i < TOGETHER; i++)
            if (threadIdx.x % WARP == 0)
                scales[r + i] = scale[i];
    }
}

/* `begun`: steps whose weights are on their way. */
template <class S, class Finish>
static __device__ __forceinline__ void
bring_weights(const tec_gemm_args &a, const Finish &finish, const struct group_work &work,
              unsigned char *shared, const struct stage_barriers<S> &barriers, int begun)
{
    struct weight_bringer<S> bringer(a, finish, work);
    for (int step = begun; step < work.step; step++) {
        barriers.wait_used(step);
        bringer.bring(shared + step % S::STAGES * S::STAGE, barriers.weights(step), work, step);
    }
}

/* The steps from `step` to `stop`. */
template <class S>
static __device__ __forceinline__ void
bring_rows(const tec_gemm_args &a, const struct group_front &front, const struct group_work &work,
           unsigned char *shared, const struct stage_barriers<S> &barriers, int step, int stop)
{
    struct row_bringer<S> bringer(a, front, work);
    TEC_UNROLL_BY(1)
    for (; step < stop; step++) {
        barriers.wait_used(step);
        bringer.bring(shared + step % S::STAGES * S::STAGE, barriers.rows(step), work, step);
    }
}

template <class S, bool NORM, bool ROUND, bool FIXED>
static __device__ __forceinline__ void
make_terms_so(const struct group_front &front, const struct group_work &work, unsigned char *shared,
              const struct stage_barriers<S> &barriers, int fixed)
{
    const float *scales = reinterpret_cast<const float *>(shared + S::SCALES_AT);
    struct term_maker<S, NORM, ROUND, FIXED> maker = {
        front.a, work, scales, (int)threadIdx.x - S::SUMMING, fixed
    };
    maker.run(shared, barriers);
}

template <class S>
static __device__ __forceinline__ void
make_terms(const struct group_front &front, const struct group_work &work, unsigned char *shared,
           const struct stage_barriers<S> &barriers)
{
    int fixed = front.some && front.a.fixed ? *front.a.fixed : 0;
    if (!front.some)
        make_terms_so<S, false, false, false>(front, work, shared, barriers, fixed);
    else if (work.first < fixed && front.a.round)
        make_terms_so<S, true, true, true>(front, work, shared, barriers, fixed);
    else if (work.first < fixed)
        make_terms_so<S, true, false, true>(front, work, shared, barriers, fixed);
    else if (front.a.round)
        make_terms_so<S, true, true, false>(front, work, shared, barriers, fixed);
    else
        make_terms_so<S, true, false, false>(front, work, shared, barriers, fixed);
}

/* What products need of each step, by the warps that do not multiply. Rows of the first STAGES are
 * on their way, and weights of the first `begun`. */
template <class S, class Finish>
static __device__ __forceinline__ void
feed_steps(const tec_gemm_args &a, const Finish &finish, const struct group_front &front,
           const struct group_work &work, unsigned char *shared,
           const struct stage_barriers<S> &barriers, int begun)
{
    int warp = (int)threadIdx.x / WARP;
    if (warp < S::WEIGHTS_WARP)
        make_terms<S>(front, work, shared, barriers);
    else if (warp == S::WEIGHTS_WARP)
        bring_weights<S>(a, finish, work, shared, barriers, begun);
    else
        bring_rows<S>(a, front, work, shared, barriers, S::STAGES, work.step);
}

/* The blocks along k that this thread block takes. */
template <class S>
static __device__ __forceinline__ struct group_work own_work(const struct split &split)
{
    struct group_work work = {};
    work.tile = (int)blockIdx.y;
    work.first = (int)blockIdx.x * S::ROWS;
    work.at = (int)blockIdx.z * split.each;
    work.blocks = split.blocks;
    work.end = min(work.at + split.each, split.blocks);
    work.step = ceil_div(work.end - work.at, S::STEP);
    return work;
}

/* Rows that surely live do not wait for the count: the first weights are on their way. How many
 * steps that is; one warp starts them. */
template <class S, class Finish>
static __device__ __forceinline__ int
start_weights(const tec_gemm_args &a, const Finish &finish, const struct group_work &work,
              unsigned char *shared, struct stage_barriers<S> &barriers, bool starts)
{
    int begun = work.first == 0 ? min(work.step, (int)S::STAGES) : 0;
    if (!starts)
        return begun;
    if (threadIdx.x % WARP == 0)
        barriers.init();
    __syncwarp();
    struct weight_bringer<S> bringer(a, finish, work);
    for (int step = 0; step < begun; step++)
        bringer.bring(shared + step * S::STAGE, barriers.weights(step), work, step);
    return begun;
}

/* Of a block without rows: nothing lands after it has ended. */
template <class S>
static __device__ __forceinline__ void await_weights(const struct stage_barriers<S> &barriers,
                                                     int begun)
{
    for (int step = 0; step < begun; step++)
        barrier_wait(barriers.weights(step), 0);
}

/* The panels whose sums a thread has. */
template <class S, class Finish>
static __device__ __forceinline__ void take_panels(int (&taken)[S::M], const Finish &finish)
{
    int first = (int)blockIdx.y * S::PANELS + (int)threadIdx.x / WARP % 4 * S::M;
    TEC_UNROLL
    for (int i = 0; i < S::M; i++)
        taken[i] = finish.panel(first + i);
}

/* The rows of a tile whose splits are a cluster, shared by its blocks: of the groups of 8 that a
 * warp has, every count-th one, from sums to stores. The hardware starts the blocks of a cluster at
 * the same time or not at all, and they wait for one another here alone: each comes here whatever
 * the others do, for whether a tile's rows live is the same in all of them. */
template <class S, class Finish>
static __device__ __forceinline__ void
finish_together(const Finish &finish, const struct exchange &exchange, int count,
                const struct group_work &work, struct rows rows)
{
    meet_cluster();
    int thread = (int)threadIdx.x, tile = work.tile * (int)gridDim.x + (int)blockIdx.x;
    int mine = work.first + thread / (4 * WARP) * (S::N * 8), taken[S::M];
    if (thread >= S::SUMMING)
        return;
    take_panels<S>(taken, finish);
    enum { AT_ONCE = Finish::WHOLE ? 4 * Finish::TOGETHER : 4 }; /* splits, by registers */
    int groups = min(ceil_div(rows.live - mine, 8), (int)S::N);
    for (int j = (int)blockIdx.z; j < groups; j += count) {
        sums<S::M, 1> c;
        add_group<S::M, S::N, S::SUMMING, AT_ONCE>(c, exchange, tile, count, j, thread);
        finish.run_eight(c, taken, mine + j * 8, rows);
    }
}

/* What becomes of the sums of this block's split, once all roles are done with their steps: they
 * are the tile's, or meet those of its other splits. */
template <class S, class Finish>
static __device__ __forceinline__ void
finish_split(sums<S::M, S::N> &c, const Finish &finish, const struct split &split,
             const struct exchange &exchange, const struct group_work &work, struct rows rows)
{
    int thread = (int)threadIdx.x, tile = work.tile * (int)gridDim.x + (int)blockIdx.x;
    int mine = work.first + thread / (4 * WARP) * (S::N * 8),
        groups = ceil_div(rows.live - mine, 8);
    bool summing = thread < S::SUMMING;
    constexpr bool shares = (int)S::ROWS >= (int)SHARED_ROWS, always = shares && !Finish::WHOLE;
    if (split.count > 1 || always) {
        if (summing)
            leave_sums<S::M, S::N, S::SUMMING>(c, exchange, tile * split.count + (int)blockIdx.z,
                                               groups, thread);
        if (always || (shares && cluster_blocks() > 1)) {
            finish_together<S>(finish, exchange, split.count, work, rows);
            return;
        }
        if (!arrive_last(exchange.tickets + tile, split.count))
            return;
        if (summing)
            add_sums<S::M, S::N, S::SUMMING>(c, exchange, tile, split.count, groups, thread);
    }
    if (!summing)
        return;
    int taken[S::M];
    take_panels<S>(taken, finish);
    finish.run(c, taken, mine, rows);
}

/* A block's work. Blocks: rows (those that share weights run together), columns, splits. */
template <class S, class Finish>
static __device__ __forceinline__ void
multiply_tile_by_groups(const struct tec_gemm_args &a, const Finish &finish,
                        const struct group_front &front, const struct split &split,
                        const struct exchange &exchange)
{
    TEC_SHARED(unsigned char, shared);
    struct stage_barriers<S> barriers = {
        reinterpret_cast<barrier *>(shared + S::BARRIERS_AT)
    };
    struct group_work work = own_work<S>(split);
    int warp = (int)threadIdx.x / WARP;
    int begun = start_weights<S>(a, finish, work, shared, barriers, warp == S::WEIGHTS_WARP);
    __syncthreads();
    wait_previous();
    release_next();
    struct rows rows = live_rows(a);
    work.live = rows.live;
    if (work.first >= rows.live) {
        await_weights<S>(barriers, warp == S::WEIGHTS_WARP ? begun : 0);
        return;
    }
    if (warp == S::ROWS_WARP) /* into the stages that nobody has used yet */
        bring_rows<S>(a, front, work, shared, barriers, 0, min(work.step, (int)S::STAGES));
    if (front.some) {
        if (warp < S::ROWS_WARP)
            measure_tile<S>(reinterpret_cast<float *>(shared + S::SCALES_AT), front, work);
        __syncthreads();
    }
    sums<S::M, S::N> c;
    if ((int)threadIdx.x < S::SUMMING) {
        group_sums<S::N> total;
        multiply_steps<S>(total, shared, barriers, work);
        by_panels<S::N>(c, total);
    } else {
        feed_steps<S>(a, finish, front, work, shared, barriers, begun);
    }
    finish_split<S>(c, finish, split, exchange, work, rows);
}

/* Code for other devices has no such instructions, and is never started. */
template <class S, class Finish>
static __global__ void __launch_bounds__(S::THREADS, 2)
    gemm_groups_kernel(struct tec_gemm_args a, Finish finish, struct group_front front,
                       struct split split, struct exchange exchange)
{
#if TEC_WARP_GROUPS
    multiply_tile_by_groups<S, Finish>(a, finish, front, split, exchange);
#endif
}

#define GROUP_TILE(name, terms, n, groups, k, stages, ...)                   \
    typedef group_shape<terms, n, groups, k, stages> name;                   \
    static_assert((int)name::SHARED == gemm_tiles[GEMM_##name].shared &&     \
                      (int)name::THREADS == gemm_tiles[GEMM_##name].threads, \
                  "gemm_choice.h counts with the same");
#include "kernels/cuda/gemm_tiles.def"

/* One product that is to be started. */
template <class Finish> struct group_product : product<Finish> {
    struct group_front front;

    template <class S> bool start(const struct gemm_choice &c) const
    {
        struct tec_cuda_launch *launch = this->launch;
        struct tec_cuda_facts facts = tec_cuda_facts_of(launch);
        struct exchange exchange = {reinterpret_cast<float4 *>(launch->partials), launch->tickets};
        dim3 blocks = this->template grid<S>(), threads(S::THREADS);
        int cluster = gemm_cluster(&c, &facts);
        if ((int)S::ROWS >= (int)SHARED_ROWS && !Finish::WHOLE && cluster == 1)
            return false;
        tec_cuda_start_clusters(launch, gemm_groups_kernel<S, Finish>, blocks, threads, S::SHARED,
                                cluster, *this->a, this->finish, front, this->split, exchange);
        return true;
    }
    /* Rows base .. base + count - 1, whose terms are there. */
    template <class S, bool WALK>
    void multiply_rows(const unsigned char *terms, int base, int count) const
    {
        dim3 blocks((unsigned)ceil_div(count, S::ROWS),
                    (unsigned)ceil_div(this->finish.places(), S::PANELS));
        tec_cuda_start(this->launch, gemm_terms_kernel<S, Finish, WALK>, blocks, dim3(S::THREADS),
                       S::SHARED, *this->a, this->finish, this->split, terms, base);
    }
    template <int TERMS>
    void multiply_part(const struct gemm_ask &ask, const unsigned char *terms, int base,
                       int count) const
    {
        struct tec_cuda_facts facts = tec_cuda_facts_of(this->launch);
        enum gemm_tile_id tile = terms_choose(count, &ask, &this->split, &facts);
        if constexpr (Finish::WIDE)
            if (tile == GEMM_terms_wide)
                multiply_rows<terms_wide<TERMS>, false>(terms, base, count);
        if (tile == GEMM_terms_128)
            multiply_rows<terms_128<TERMS>, true>(terms, base, count);
        else if (tile == GEMM_terms_64)
            multiply_rows<terms_64<TERMS>, true>(terms, base, count);
    }
    /* Many rows, as many at a time as there is room for their terms; all where they are ready. */
    template <int TERMS> bool start_many(const struct gemm_ask &ask) const
    {
        struct tec_cuda_launch *launch = this->launch;
        struct tec_cuda_facts facts = tec_cuda_facts_of(launch);
        int rows = this->a->max_rows, part = terms_part(&ask, &facts);
        if (part == 0)
            launch->error = launch->error != cudaSuccess ? launch->error : cudaErrorInvalidValue;
        if (const unsigned char *ready = tec_cuda_terms_ready(this->a, TERMS, launch)) {
            multiply_part<TERMS>(ask, ready, 0, rows);
            return true;
        }
        for (int base = 0; part && base < rows; base += part) {
            int count = rows - base < part ? rows - base : part;
            tec_cuda_row_terms(this->a, TERMS, base, count, launch);
            multiply_part<TERMS>(ask, launch->terms, base, count);
        }
        return true;
    }
    /* Start the tile that was chosen; false: none was. */
    template <bool FEW>
    bool start_chosen(const struct gemm_choice &c, const struct gemm_ask &ask) const
    {
        if constexpr (FEW) {
            if (c.tile == GEMM_groups_8)
                return start<groups_8>(c);
            if (c.tile == GEMM_groups_16)
                return start<groups_16>(c);
            if (c.tile == GEMM_groups_32)
                return start<groups_32>(c);
        }
        if (c.tile == GEMM_groups_64)
            return start<groups_64>(c);
        if (gemm_tiles[c.tile].terms != 0 || c.tile == GEMM_NONE)
            return false;
        return ask.rounded ? start_many<1>(ask) : start_many<2>(ask);
    }
};
