/* gemm_int4_few_mma.cu - products with 4-bit weights (kernels/int4.h) of few rows, on tensor cores:
 * the bytes of the CPU.
 *
 * A group is 2 or 3 products of bytes, whose sums are whole numbers. Warps take groups beside one
 * another, so that a matrix of few columns still occupies the device: each for itself fetches
 * weights, makes digits of the rows in registers, and leaves its group's sums. They meet once for
 * DEEP groups; then sums and scales join one chain, in the order of k. */
#include "kernels/cuda/gemm_int4.h"
#include "kernels/cuda/gemm_int4_few_mma_rows.cuh"

/* X: what a lane has of rows. Warps with a group each; panels and groups of 8 rows of a block,
 * which all have; stages. A group of several pieces is taken by a block of 8 rows: its pieces come
 * once. */
template <class X_, int DEEP_, int M_, int N_, int STAGES_> struct int4_few_mma_shape {
    typedef X_ X;
    enum : int {
        DEEP = DEEP_,
        M = M_,
        N = N_,
        STAGES = STAGES_,
        THREADS = DEEP * WARP,
        ROWS = N * X::ROWS,
        STAGE = M * INT4_PIECE,                /* bytes of a warp */
        LEFT = M * N * WARP * 16 + M * 16 * 4, /* what it leaves of a group: sums, scales */
        BUFFERS = N > 2 ? 1 : 2,               /* for that */
        CHAINS = (M * N + DEEP - 1) / DEEP,    /* panels of 8 rows whose chain a warp has */
        SHARED = DEEP * (STAGES * STAGE + BUFFERS * LEFT + X::SHARED),
        RESIDENT = DEEP == 4 && N < 4 ? 3 : 2, /* blocks that registers are for */
        LONG = N == 1
    };
    static_assert(SHARED <= 99 * 1024, "more than a block has on small devices");
    static_assert(M <= 8, "a line of scales of each panel is fetched at once");
};

/* A warp's weights on their way: pieces of a group one after the other, then the group DEEP
 * further. */
template <class S> struct int4_few_mma_feed {
    const tec_gemm_args &a;
    unsigned char *ring;
    int size, panels; /* bytes of one; those from the block's first on */
    int groups, pieces;
    int group, piece;        /* what is fetched next */
    const unsigned char *at; /* that group of the first panel */
    int to, from;            /* stages to fetch to, to use next */

    __device__ __forceinline__ void begin(int panel)
    {
        group = (int)threadIdx.x / WARP;
        piece = to = from = 0;
        at = (const unsigned char *)a.w + (size_t)panel * (size_t)size +
             tec_int4_group(group, a.group);
    }
    /* So many k of a piece there are. */
    __device__ __forceinline__ int depth(int of, int nth) const
    {
        int in = nth * INT4_K;
        return min(min(a.group, a.k - of * a.group) - in, (int)INT4_K);
    }
    __device__ __forceinline__ void fetch()
    {
        if (group < groups)
            int4_fetch<S::M>(ring + to, at, size, panels, piece * INT4_LINES, depth(group, piece));
        copy_commit();
        to = to < (S::STAGES - 1) * S::STAGE ? to + S::STAGE : 0;
        if (S::LONG && ++piece < pieces)
            return;
        piece = 0;
        group += S::DEEP;
        at += tec_int4_group(S::DEEP, a.group);
    }
    /* The next piece is there; the one before has been used by all lanes, and its stage is filled
     * again. */
    __device__ __forceinline__ const unsigned char *next()
    {
        const unsigned char *now = ring + from;
        copy_wait<S::STAGES - 2>();
        __syncwarp();
        fetch();
        from = from < (S::STAGES - 1) * S::STAGE ? from + S::STAGE : 0;
        return now;
    }
};

/* What warps leave of DEEP groups. */
template <class S> struct int4_few_mma_left {
    unsigned char *at;

    __device__ __forceinline__ float4 *sums(int turn, int deep) const
    {
        return reinterpret_cast<float4 *>(at + (turn % S::BUFFERS * S::DEEP + deep) * S::LEFT);
    }
    __device__ __forceinline__ float *scales(int turn, int deep) const
    {
        return reinterpret_cast<float *>(sums(turn, deep) + S::M * S::N * WARP);
    }
};

/* Whole sums of a piece, added to those of the pieces before it. */
template <class S, int DIGITS>
static __device__ __forceinline__ void
int4_few_mma_multiply(int (&whole)[S::M][DIGITS][4], const unsigned char *pieces,
                      const typename S::X &x, const unsigned *shared, int depth)
{
    int g = (int)threadIdx.x % WARP / 4;
    unsigned zeros[S::M][2];
    TEC_UNROLL
    for (int i = 0; i < S::M * 2; i++)
        zeros[i / 2][i % 2] = int4_zeros(pieces + i / 2 * INT4_PIECE, g + i % 2 * 8);
    TEC_UNROLL
    for (int s = 0; s < INT4_STEPS; s++) {
        if (s * 32 >= depth)
            break;
        unsigned digits[DIGITS][2];
        x.template operand<DIGITS>(digits, shared, s);
        TEC_UNROLL
        for (int i = 0; i < S::M; i++) {
            unsigned w[4];
            int4_operand<false>(w, pieces + i * INT4_PIECE, s, zeros[i]);
            TEC_UNROLL
            for (int d = 0; d < DIGITS; d++)
                mma_s8(whole[i][d], w, digits[d]);
        }
    }
}

/* Sums of digits as one, as the reference joins them, in units of x: those of a lane's two rows. */
template <int DIGITS>
static __device__ __forceinline__ float4 int4_few_mma_join(const int (&whole)[DIGITS][4],
                                                           const float (&unit)[2])
{
    float sum[4];
    TEC_UNROLL
    for (int e = 0; e < 4; e++) {
        sum[e] = __int2float_rn(whole[0][e]);
        TEC_UNROLL
        for (int d = 1; d < DIGITS; d++)
            sum[e] = fmaf(sum[e], 256.0F, __int2float_rn(whole[d][e]));
        sum[e] = __fmul_rn(sum[e], unit[e % 2]);
    }
    return make_float4(sum[0], sum[1], sum[2], sum[3]);
}

/* A piece of the nth rows of the block for this warp; none behind the last group. */
template <class S>
static __device__ __forceinline__ void
int4_few_mma_load(typename S::X &x, const struct int4_few_mma_feed<S> &feed,
                  const struct int4_few_mma_rows &rows, int nth, int group, int piece)
{
    int depth = group < feed.groups ? feed.depth(group, piece) : 0;
    x.load(rows, rows.first + nth * 8, group * feed.a.group + piece * INT4_K, depth);
}

/* A warp's group: the sums of all panels and rows that live, and the scales. x has the first piece
 * of the first rows, and in the end that of the warp's next group. Where there are several pieces
 * all are read for the largest x before any is multiplied. */
template <class S, int DIGITS>
static __device__ __forceinline__ void
int4_few_mma_group(struct int4_few_mma_feed<S> &feed, const struct int4_few_mma_rows &rows,
                   typename S::X &x, unsigned *shared, int group, float4 *sums, float *scales)
{
    const unsigned char *pieces = NULL;
    int lane = (int)threadIdx.x % WARP, n = rows.groups<S::N>();
    int read = S::LONG && feed.pieces > 1 ? feed.pieces : 0, all = read + feed.pieces;
    TEC_UNROLL_BY(1)
    for (int j = 0; j < n; j++) {
        float unit[2] = {0.0F, 0.0F};
        int whole[S::M][DIGITS][4];
        TEC_UNROLL
        for (int i = 0; i < S::M * DIGITS * 4; i++)
            whole[i / 4 / DIGITS][i / 4 % DIGITS][i % 4] = 0;
        x.begin();
        TEC_UNROLL_BY(1)
        for (int at = 0; at < all; at++) {
            if (at < feed.pieces)
                x.look();
            if (at == read)
                x.template units<DIGITS>(unit);
            if (at >= read) {
                x.template share<DIGITS>(shared);
                if (j == 0)
                    pieces = feed.next();
                int4_few_mma_multiply<S, DIGITS>(whole, pieces, x, shared,
                                                 feed.depth(group, at - read));
            }
            bool last = at + 1 == all, over = last && j + 1 == n;
            int4_few_mma_load<S>(x, feed, rows,
                                 over   ? 0
                                 : last ? j + 1
                                        : j,
                                 over ? group + S::DEEP : group,
                                 last || at + 1 == read ? 0
                                 : at + 1 < read        ? at + 1
                                                        : at + 1 - read);
        }
        TEC_UNROLL
        for (int i = 0; i < S::M; i++)
            sums[(j * S::M + i) * WARP + lane] = int4_few_mma_join<DIGITS>(whole[i], unit);
    }
    for (int c = lane; c < S::M * 16; c += WARP)
        scales[c] =
            half_float(reinterpret_cast<const uint16_t *>(pieces + c / 16 * INT4_PIECE)[c % 16]);
}

/* What warps have left of `count` groups joins the chains of this warp. */
template <class S>
static __device__ __forceinline__ void int4_few_mma_chain(float (&total)[S::CHAINS][4],
                                                          const struct int4_few_mma_left<S> &left,
                                                          int turn, int count, int groups_of_rows)
{
    int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    TEC_UNROLL
    for (int q = 0; q < S::CHAINS; q++) {
        int at = q * S::DEEP + warp;
        if (at >= S::M * groups_of_rows)
            break;
        TEC_UNROLL_BY(4)
        for (int d = 0; d < count; d++) {
            const float *scales = left.scales(turn, d) + at % S::M * 16 + lane / 4;
            float4 sum = left.sums(turn, d)[at * WARP + lane];
            float low = scales[0], up = scales[8];
            total[q][0] = fmaf(sum.x, low, total[q][0]);
            total[q][1] = fmaf(sum.y, low, total[q][1]);
            total[q][2] = fmaf(sum.z, up, total[q][2]);
            total[q][3] = fmaf(sum.w, up, total[q][3]);
        }
    }
}

/* All groups of the block's panels and rows. */
template <class S, int DIGITS>
static __device__ __forceinline__ void
int4_few_mma_run(float (&total)[S::CHAINS][4], struct int4_few_mma_feed<S> &feed,
                 const struct int4_few_mma_rows &rows, const struct int4_few_mma_left<S> &left)
{
    int warp = (int)threadIdx.x / WARP;
    typename S::X x;
    unsigned *shared = reinterpret_cast<unsigned *>(left.at + S::DEEP * S::BUFFERS * S::LEFT) +
                       warp * (S::X::SHARED / 4);
    int4_few_mma_load<S>(x, feed, rows, 0, warp, 0);
    TEC_UNROLL
    for (int i = 0; i < S::CHAINS * 4; i++)
        total[i / 4][i % 4] = 0.0F;
    for (int turn = 0; turn * S::DEEP < feed.groups; turn++) {
        int group = turn * S::DEEP + warp;
        if (group < feed.groups)
            int4_few_mma_group<S, DIGITS>(feed, rows, x, shared, group, left.sums(turn, warp),
                                          left.scales(turn, warp));
        __syncthreads();
        int4_few_mma_chain<S>(total, left, turn, min(feed.groups - turn * S::DEEP, (int)S::DEEP),
                              rows.groups<S::N>());
        if (S::BUFFERS == 1)
            __syncthreads();
    }
    copy_wait<0>();
    __syncthreads();
}

/* Panels of the tile from `from` on that share the order of that one. */
template <class S>
static __device__ __forceinline__ int alike(const struct tec_gemm_args &a, int panel, int from)
{
    int n = 1;
    while (a.order && a.order_of && from + n < S::M && panel + from + n < a.n / 16 &&
           a.order_of[panel + from + n] == a.order_of[panel + from])
        n++;
    return a.order && a.order_of ? n : S::M;
}

/* Panels from .. from + n - 1 of the tile get their values. */
template <class S>
static __device__ __forceinline__ void
int4_few_mma_store(const float (&total)[S::CHAINS][4], const struct tec_gemm_args &a, int panel,
                   int from, int n, int first, struct rows rows)
{
    struct single_finish<store_rows> finish = rows_finish(a);
    TEC_UNROLL
    for (int q = 0; q < S::CHAINS; q++) {
        int at = q * S::DEEP + (int)threadIdx.x / WARP, i = at % S::M;
        bool mine = at < S::M * S::N && i >= from && i < from + n;
        int taken[1] = {mine ? panel + i : a.n / 16};
        sums<1, 1> c;
        TEC_UNROLL
        for (int e = 0; e < 4; e++)
            c[0][0][e] = total[q][e];
        finish.run(c, taken, first + at / S::M * 8, rows);
    }
}

template <class S, int DIGITS>
static __global__ void __launch_bounds__(S::THREADS, S::RESIDENT)
    gemm_int4_few_mma_kernel(struct tec_gemm_args a)
{
    TEC_SHARED(unsigned char, shared);
    int panel = (int)blockIdx.y * S::M, first = (int)blockIdx.x * S::ROWS;
    int warp = (int)threadIdx.x / WARP;
    struct int4_few_mma_left<S> left = {
        shared + S::DEEP *S::STAGES *S::STAGE
    };
    struct int4_few_mma_feed<S> feed = {
        a, shared + warp *(S::STAGES *S::STAGE), (int)tec_int4_panel(a.k, a.group), a.n / 16 - panel
            ,
            ceil_div(a.k, a.group), S::LONG ? ceil_div(min(a.group, a.k), (int)INT4_K) : 1, 0,
            0, NULL, 0, 0
    };
    feed.begin(panel);
    bool early = first == 0; /* rows that surely live do not wait for the count */
    for (int s = 0; early && s < S::STAGES - 1; s++)
        feed.fetch();
    wait_previous();
    release_next();
    struct rows rows = live_rows(a);
    if (first >= rows.live) {
        copy_wait<0>();
        return;
    }
    /* Panels of a tile that share an order are done together, those with another one in a further
     * pass. */
    for (int from = 0, n; from < S::M && panel + from < a.n / 16; from += n) {
        n = alike<S>(a, panel, from);
        struct int4_few_mma_rows taken = {a.x, a.order, a.ldx, first, rows.live};
        if (a.order && a.order_of)
            taken.order += (size_t)a.order_of[panel + from] * (size_t)a.k;
        if (!early || from > 0) {
            feed.begin(panel);
            for (int s = 0; s < S::STAGES - 1; s++)
                feed.fetch();
        }
        float total[S::CHAINS][4];
        int4_few_mma_run<S, DIGITS>(total, feed, taken, left);
        int4_few_mma_store<S>(total, a, panel, from, n, first, rows);
    }
}

#define INT4_FEW_MMA_TILE(name, x, deep, m, n, stages, ...)                  \
    typedef int4_few_mma_shape<x, deep, m, n, stages> name;                  \
    static_assert((int)name::SHARED == gemm_tiles[GEMM_##name].shared &&     \
                      (int)name::THREADS == gemm_tiles[GEMM_##name].threads, \
                  "gemm_choice.h counts with the same");
#include "kernels/cuda/gemm_tiles.def"

void tec_cuda_int4_few_mma(const struct tec_gemm_args *a, const struct digits_choice *choice,
                           struct tec_cuda_launch *launch)
{
    struct tec_cuda_facts facts = tec_cuda_facts_of(launch);
    struct gemm_start start = int4_few_start(choice, a->max_rows, a->n / 16, &facts);
    dim3 blocks((unsigned)start.x, (unsigned)start.y);
    if (!tec_cuda_need_aligned(floats_aligned(a->x, a->ldx) && (uintptr_t)a->w % 16 == 0, launch))
        return;
#define INT4_FEW_MMA_TILE(name, ...)                                       \
    if (start.tile == GEMM_##name)                                         \
        tec_cuda_start(launch,                                             \
                       a->digits == 2 ? gemm_int4_few_mma_kernel<name, 2>  \
                                      : gemm_int4_few_mma_kernel<name, 3>, \
                       blocks, dim3(name::THREADS), name::SHARED, *a);
#include "kernels/cuda/gemm_tiles.def"
}
