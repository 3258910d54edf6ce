/* gemm_norm.cuh - what stands in front of a product: nothing, or a norm of the rows of x.
 *
 * A front has: fetch(), for each step; measure(), which the block calls once, before any row is
 * used, for what a lane needs to know: at(), of x[k] and x[k + 1] for all rows, and value(), what
 * these two become in one of them.
 *
 * A norm is applied where x is split into terms, so x lies in shared memory as it was, and its
 * vectors beside it. Each block needs the sums of squares of the rows of its tile: whole rows,
 * whatever its split. Where the product in front has left them, a number for each panel of 16
 * columns (gemm_bf16.cu), it adds these up, else it measures the rows: the same bytes (norm.cuh).
 */
#pragma once

#include "kernels/cuda/gemm_tiles.cuh"
#include "kernels/cuda/norm.cuh"

/* x is used as it is. */
struct no_front {
    struct nothing {
    };

    template <class S> __device__ __forceinline__ void fetch(unsigned char *, int) const
    {
    }
    template <class S> struct lane {
        __device__ __forceinline__ nothing at(const unsigned char *, int) const
        {
            return nothing();
        }
        __device__ __forceinline__ float2 value(float2 x, int, nothing) const
        {
            return x;
        }
    };
    template <class S>
    __device__ __forceinline__ lane<S> measure(unsigned char *, int, int, int) const
    {
        return lane<S>();
    }
};

/* Weight, bias, and both again for fixed rows: K floats each behind the rows of a stage. Behind the
 * stages: a scale for each row. */
enum { VECTORS = 4 };
template <class S> struct normed_tile : S {
    enum : int {
        VECTORS_AT = S::STAGE,
        STAGE = S::STAGE + VECTORS * S::K * 4,
        SCALES_AT = S::STAGES * STAGE,
        SHARED = SCALES_AT + S::ROWS * 4,
        WALKS = false,            /* few rows */
        LARGE = S::M * S::N >= 8, /* sums leave fewer registers */
        TOGETHER = LARGE ? 1 : 2, /* rows that a warp measures */
        UNROLL = LARGE ? 1 : S::STEP
    };
    static_assert(SHARED <= 99 * 1024, "more than a block has on small devices");
};

static __device__ __forceinline__ float squares_of(float4 v)
{
    const float quad[QUAD] = {v.x, v.y, v.z, v.w};
    return quad_squares(quad);
}

/* Quads of a row that a warp has on their way, four columns each; its columns are whole quads. */
struct row_part {
    float4 quads[NORM_WARPS];

    __device__ __forceinline__ void load(const float *x, int c, int cols)
    {
        TEC_UNROLL
        for (int i = 0; i < NORM_WARPS; i++) {
            int at = c + i * WARP * QUAD;
            quads[i] = at < cols ? *reinterpret_cast<const float4 *>(x + at)
                                 : make_float4(0.0F, 0.0F, 0.0F, 0.0F);
        }
    }
    __device__ __forceinline__ void add(float sums[NORM_WARPS]) const
    {
        TEC_UNROLL
        for (int i = 0; i < NORM_WARPS; i++)
            sums[i] += panel_squares(squares_of(quads[i]));
    }
};

static __device__ __forceinline__ float4 norm_quad(const tec_norm_args &a, int row, int column,
                                                   bool lives)
{
    bool is = lives && column < a.cols;
    const float *x = a.x + (size_t)row * (size_t)a.ldx + column;
    return is ? *reinterpret_cast<const float4 *>(x) : make_float4(0.0F, 0.0F, 0.0F, 0.0F);
}

/* Scales of ROWS rows by one warp: all loads are on their way before the first sum. */
template <int ROWS>
static __device__ __forceinline__ void measure_rows(float scale[ROWS], const tec_norm_args &a,
                                                    int first, int live)
{
    int lane = (int)threadIdx.x % WARP;
    float sums[ROWS][NORM_WARPS] = {};
    for (int c = 0; c < a.cols; c += NORM_THREADS * QUAD) {
        struct row_part part[ROWS];
        TEC_UNROLL
        for (int r = 0; r < ROWS; r++)
            part[r].load(a.x + (size_t)(first + r) * (size_t)a.ldx, c + lane * QUAD,
                         first + r < live ? a.cols : 0);
        TEC_UNROLL
        for (int r = 0; r < ROWS; r++)
            part[r].add(sums[r]);
    }
    TEC_UNROLL
    for (int r = 0; r < ROWS; r++) {
        float sum = 0.0F;
        TEC_UNROLL
        for (int i = 0; i < NORM_WARPS; i++)
            sum += sums[r][i];
        scale[r] = norm_scale(tree_of_eight(sum, 4) / (float)a.cols, a.eps);
    }
}

/* Scales of `count` rows from `first` on by all WARPS warps of the block, which each have the quads
 * of rows that one of the NORM_WARPS of a norm's block has: of few rows none of them waits alone.
 * `room`: of WARPS * WARP * NORM_WARPS floats; all rows wait for it, and then for the scales. */
template <int WARPS>
static __device__ __forceinline__ void
measure_together(float *scales, float *room, const tec_norm_args &a, int first, int count)
{
    enum { AT_ONCE = WARPS * WARP / 8, SETS = WARPS / NORM_WARPS, TOGETHER = 4 };
    static_assert(WARPS % NORM_WARPS == 0, "whole norms");
    int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP, of = warp % NORM_WARPS;
    for (int base = 0; base < count; base += AT_ONCE) {
        int n = min(count - base, (int)AT_ONCE);
        for (int r = warp / NORM_WARPS; r < n; r += SETS * TOGETHER) {
            float sums[TOGETHER] = {};
            for (int c = of * WARP * QUAD; c < a.cols; c += NORM_THREADS * QUAD) {
                float4 v[TOGETHER];
                TEC_UNROLL
                for (int i = 0; i < TOGETHER; i++)
                    v[i] = norm_quad(a, first + base + r + i * SETS, c + lane * QUAD,
                                     r + i * SETS < n);
                TEC_UNROLL
                for (int i = 0; i < TOGETHER; i++)
                    sums[i] += panel_squares(squares_of(v[i]));
            }
            TEC_UNROLL
            for (int i = 0; i < TOGETHER; i++)
                if (lane % 4 == 0 && r + i * SETS < n)
                    room[((r + i * SETS) * NORM_WARPS + of) * 8 + lane / 4] = sums[i];
        }
        __syncthreads();
        int r = (int)threadIdx.x / 8, at = lane % 8;
        float sum = 0.0F;
        TEC_UNROLL
        for (int i = 0; i < NORM_WARPS; i++)
            sum += r < n ? room[(r * NORM_WARPS + i) * 8 + at] : 0.0F;
        sum = tree_of_eight(sum, 1);
        if (at == 0 && r < n)
            scales[base + r] = norm_scale(sum / (float)a.cols, a.eps);
        __syncthreads();
    }
}

/* Scales of `rows` rows from `first` on, of which `live` live, from the sums of panels that were
 * left: by all WARPS warps of the block, eight lanes a row. */
template <int WARPS>
static __device__ __forceinline__ void add_left(float *scales, const tec_norm_args &a,
                                                const float *left, int first, int rows, int live)
{
    enum { AT_ONCE = WARP / 8 };
    int lane = (int)threadIdx.x % WARP, at = lane % 8, panels = a.cols / PANEL;
    for (int base = (int)threadIdx.x / WARP * AT_ONCE; base < rows; base += WARPS * AT_ONCE) {
        int r = base + lane / 8;
        const float *from = left + (size_t)(first + r) * (size_t)panels;
        float sums[NORM_WARPS] = {}, sum = 0.0F;
        for (int p = at; p - at < panels; p += NORM_SUMS) {
            float some[NORM_WARPS];
            TEC_UNROLL
            for (int i = 0; i < NORM_WARPS; i++)
                some[i] = r < live && p + i * 8 < panels ? from[p + i * 8] : 0.0F;
            TEC_UNROLL
            for (int i = 0; i < NORM_WARPS; i++)
                sums[i] += some[i];
        }
        TEC_UNROLL
        for (int i = 0; i < NORM_WARPS; i++)
            sum += sums[i];
        sum = tree_of_eight(sum, 1);
        if (at == 0 && r < rows)
            scales[r] = norm_scale(sum / (float)a.cols, a.eps);
    }
}

/* rmsnorm, of whole quads of columns. */
struct norm_front {
    struct tec_norm_args a;
    const float *left; /* [row][cols / 16] sums of squares of a.x; NULL: rows are measured */

    /* The step from k on; zero beyond a.cols, so that 0 stays 0 there. */
    template <class S> __device__ __forceinline__ void fetch(unsigned char *stage, int k) const
    {
        TEC_UNROLL
        for (int c = (int)threadIdx.x; c < VECTORS * (S::K / QUAD); c += S::THREADS) {
            int which = c / (S::K / QUAD), at = k + c % (S::K / QUAD) * QUAD;
            const float *fixed = which % 2 ? a.fixed_bias : a.fixed_weight;
            const float *from = which >= 2 ? fixed : which % 2 ? a.bias : a.weight;
            bool valid = from && at < a.cols;
            copy16_async(stage + S::VECTORS_AT + c * 16, valid ? from + at : a.x, valid);
        }
    }
    struct pair {
        float2 weight, bias;
    };
    struct pairs {
        struct pair first, second; /* second: of fixed rows */
    };

    template <class S> struct lane {
        float offset, scale[S::N];
        int round, fixed; /* rows of the tile below it, from this thread's first on */

        __device__ __forceinline__ struct pair load(const float *from) const
        {
            float2 weight = *reinterpret_cast<const float2 *>(from);
            weight.x = __fadd_rn(offset, weight.x);
            weight.y = __fadd_rn(offset, weight.y);
            return {weight, *reinterpret_cast<const float2 *>(from + S::K)};
        }
        __device__ __forceinline__ struct pairs at(const unsigned char *stage, int k) const
        {
            const float *from = reinterpret_cast<const float *>(stage + S::VECTORS_AT) + k;
            struct pairs p = {load(from), {}};
            p.second = fixed > 0 ? load(from + 2 * S::K) : p.first;
            return p;
        }
        /* Normalises the pair x of group j. */
        __device__ __forceinline__ float2 value(float2 x, int j, const struct pairs &p) const
        {
            bool second = j * 8 < fixed; /* values, for a place chosen here would be on a stack */
            float2 weight = second ? p.second.weight : p.first.weight;
            float2 bias = second ? p.second.bias : p.first.bias;
            return make_float2(normed(x.x, scale[j], weight.x, bias.x, round),
                               normed(x.y, scale[j], weight.y, bias.y, round));
        }
    };

    /* Scales of the tile's rows, from `first` of the product on; `mine`: the warp's first. */
    template <class S>
    __device__ __forceinline__ lane<S> measure(unsigned char *shared, int first, int live,
                                               int mine) const
    {
        enum { WARPS = S::THREADS / WARP, TOGETHER = S::TOGETHER };
        float *scales = reinterpret_cast<float *>(shared + S::SCALES_AT);
        int last = min(live - first, (int)S::ROWS);
        if (left)
            add_left<WARPS>(scales, a, left, first, S::ROWS, last);
        for (int r = (int)threadIdx.x / WARP * TOGETHER; !left && r < S::ROWS;
             r += WARPS * TOGETHER) {
            float scale[TOGETHER] = {};
            if (r < last)
                measure_rows<TOGETHER>(scale, a, first + r, live);
            TEC_UNROLL
            for (int i = 0; i < TOGETHER; i++)
                if (threadIdx.x % WARP == 0)
                    scales[r + i] = scale[i];
        }
        __syncthreads();
        int row = mine + (int)threadIdx.x % WARP / 4;
        lane<S> lane;
        lane.offset = a.offset;
        lane.round = a.round;
        lane.fixed = a.fixed ? max(*a.fixed, 0) - row : 0;
        TEC_UNROLL
        for (int j = 0; j < S::N; j++)
            lane.scale[j] = scales[row - first + j * 8];
        return lane;
    }
};
