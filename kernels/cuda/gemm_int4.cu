/* gemm_int4.cu - y (+)= gate * (x W^T + bias), W of 4-bit weights in groups (kernels/int4.h), on
 * tensor cores.
 *
 * One order of sums for one row and for a thousand: 16 k at a time within a group, groups in their
 * order within a split, splits in theirs. Few rows: a warp for each split, so that a matrix of few
 * columns still occupies the device; their sums meet in shared memory. Many rows: a warp walks over
 * the splits with a running total. The bytes are the same. */
#include "kernels/cuda/gemm_int4_tiles.cuh"
#include "kernels/cuda/row.cuh"

/* The part of the product that a block fetches and multiplies: panels from `panel` on, rows from
 * `first` on. */
template <class S> struct int4_feed {
    const struct tec_gemm_args &a;
    const struct int4_cut &cut;
    const int *order;
    unsigned char *shared;
    int panel, first, live, steps; /* steps of a split */

    int deep; /* the split of this thread; walking, 0 */

    __device__ __forceinline__ unsigned char *part(int step) const
    {
        return shared + step % S::STAGES * S::STAGE + deep * S::PART;
    }
    /* Walking, the splits follow one another. */
    __device__ __forceinline__ struct int4_step at(int step) const
    {
        return S::DEEP > 1 ? int4_step<S>(cut, deep, step)
                           : int4_step<S>(cut, step / steps, step % steps);
    }
    __device__ __forceinline__ int all() const
    {
        return S::DEEP > 1 ? steps : steps * cut.splits;
    }
    __device__ __forceinline__ void weights(int step) const
    {
        if (step < all())
            int4_fetch_weights<S>(part(step), a, panel, at(step));
    }
    __device__ __forceinline__ void rows(int step) const
    {
        if (step < all())
            int4_fetch_rows<S>(part(step), a, order, first, live, at(step));
    }
};

/* The sums of a warp's panels and rows; with DEEP, of its split. */
template <class S, int TERMS>
static __device__ __forceinline__ void run_steps(sums<S::M, S::N> &total,
                                                 const struct int4_feed<S> &feed)
{
    sums<S::M, S::N> c, split;
    clear(c);
    clear(split);
    for (int step = 0; step < feed.all(); step++) {
        copy_wait<S::STAGES - 2>();
        __syncthreads();
        feed.weights(step + S::STAGES - 1);
        feed.rows(step + S::STAGES - 1);
        copy_commit();
        struct int4_step now = feed.at(step);
        int4_multiply<S, TERMS>(c, feed.part(step), now.depth);
        if (now.ends)
            int4_scale<S>(split, c, feed.part(step));
        if (S::DEEP == 1 && (step + 1) % feed.steps == 0) {
            fold(total, split, step < feed.steps);
            clear(split);
        }
    }
    if (S::DEEP > 1)
        fold(total, split, true);
    copy_wait<0>();
    __syncthreads();
}

/* Splits of DEEP warps meet in the first of them. */
template <class S>
static __device__ __forceinline__ bool meet(sums<S::M, S::N> &total, unsigned char *shared,
                                            int splits)
{
    float *all = reinterpret_cast<float *>(shared);
    int deep = (int)threadIdx.x / S::EACH, thread = (int)threadIdx.x % S::EACH;
    float *sums = &total[0][0][0];
    TEC_UNROLL
    for (int i = 0; i < S::M * S::N * 4; i++)
        if (deep > 0)
            all[((deep - 1) * (S::M * S::N * 4) + i) * S::EACH + thread] = sums[i];
    __syncthreads();
    for (int d = 1; d < splits && deep == 0; d++) {
        TEC_UNROLL
        for (int i = 0; i < S::M * S::N * 4; i++)
            sums[i] = __fadd_rn(sums[i], all[((d - 1) * (S::M * S::N * 4) + i) * S::EACH + thread]);
    }
    return deep == 0;
}

/* Panels of the tile from `from` on that share the order of that one. */
template <class S>
static __device__ __forceinline__ int alike(const struct tec_gemm_args &a, int panel, int from)
{
    int n = 1;
    while (a.order && a.order_of && from + n < S::PANELS && panel + from + n < a.n / 16 &&
           a.order_of[panel + from + n] == a.order_of[panel + from])
        n++;
    return a.order && a.order_of ? n : S::PANELS;
}

template <class S, int TERMS>
static __global__ void __launch_bounds__(S::THREADS, S::RESIDENT)
    gemm_int4_kernel(struct tec_gemm_args a, struct int4_cut cut)
{
    TEC_SHARED(unsigned char, shared);
    struct int4_feed<S> feed = {
        a, cut, NULL, shared, (int)blockIdx.y *S::PANELS, (int)blockIdx.x *S::ROWS, 0, 0, 0
    };
    feed.steps = cut.each * cut.pieces;
    feed.deep = (int)threadIdx.x / S::EACH;
    bool early = feed.first == 0; /* rows that surely live do not wait for the count */
    for (int s = 0; early && s < S::STAGES - 1; s++)
        feed.weights(s);
    wait_previous();
    release_next();
    struct rows rows = {live_count(a.rows, a.max_rows), a.fixed ? *a.fixed : 0};
    feed.live = rows.live;
    if (feed.first >= rows.live) {
        copy_commit();
        copy_wait<0>();
        return;
    }
    int warp = (int)threadIdx.x / WARP;
    /* Panels of a tile that share an order are done together, those with another one in a further
     * pass. */
    for (int from = 0, n; from < S::PANELS && feed.panel + from < a.n / 16; from += n) {
        n = alike<S>(a, feed.panel, from);
        feed.order = a.order;
        if (a.order && a.order_of)
            feed.order += (size_t)a.order_of[feed.panel + from] * (size_t)a.k;
        for (int s = 0; s < S::STAGES - 1; s++) {
            if (!early || from > 0)
                feed.weights(s);
            feed.rows(s);
            copy_commit();
        }
        sums<S::M, S::N> total;
        run_steps<S, TERMS>(total, feed);
        int taken[S::M], mine = feed.first + warp / S::ACROSS % S::DOWN * (S::N * 8);
        TEC_UNROLL
        for (int i = 0; i < S::M; i++) {
            int place = warp % S::ACROSS * S::M + i;
            taken[i] = place >= from && place < from + n ? feed.panel + place : a.n / 16;
        }
        struct single_finish<store_rows> finish = {
            a,
            {
                {}, a.y, a.ldy, a.add
            }
        };
        if (S::DEEP == 1 || meet<S>(total, shared, cut.splits))
            finish.run(total, taken, mine, rows);
        __syncthreads();
    }
}

template <class S, int TERMS>
static void start(const struct tec_gemm_args *a, struct tec_cuda_launch *launch)
{
    dim3 grid((unsigned)ceil_div(a->max_rows, S::ROWS), (unsigned)ceil_div(a->n, S::COLUMNS));
    tec_cuda_start(launch, gemm_int4_kernel<S, TERMS>, grid, dim3(S::THREADS), S::SHARED, *a,
                   int4_cut(a->k, a->group, S::K));
}

#define INT4_TILE(name, deep, across, down, m, n, k, stages, ...)            \
    typedef int4_shape<deep, across, down, m, n, k, stages> name;            \
    static_assert((int)name::SHARED == gemm_tiles[GEMM_##name].shared &&     \
                      (int)name::THREADS == gemm_tiles[GEMM_##name].threads, \
                  "gemm_choice.h counts with the same");
#include "kernels/cuda/gemm_tiles.def"

template <int TERMS>
static void start_for(const struct tec_gemm_args *a, struct tec_cuda_launch *launch)
{
    struct tec_cuda_facts facts = tec_cuda_facts_of(launch);
    enum gemm_tile_id tile = int4_choose(a->n, a->max_rows, &facts);
    if (tile == GEMM_int4_rows_8)
        start<int4_rows_8, TERMS>(a, launch);
    else if (tile == GEMM_int4_rows_16)
        start<int4_rows_16, TERMS>(a, launch);
    else if (tile == GEMM_int4_rows_32)
        start<int4_rows_32, TERMS>(a, launch);
    else
        start<int4_rows_64, TERMS>(a, launch);
}

void tec_cuda_gemm_int4(const struct tec_gemm_args *a, struct tec_cuda_launch *launch)
{
    if (!floats_aligned(a->x, a->ldx) || (uintptr_t)a->w % 16) /* it is copied in 16 bytes */
        launch->error = launch->error != cudaSuccess ? launch->error : cudaErrorInvalidValue;
    else if (a->rounded)
        start_for<1>(a, launch);
    else
        start_for<3>(a, launch);
}
