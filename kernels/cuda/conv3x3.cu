/* conv3x3.cu - convolutions of 3 x 3 pixels by squares of four windows; kernels/conv.h has the
 * arithmetic.
 *
 * A block has some squares and channels of y. For some channels of x at a time half of its threads
 * transform the squares' pixels to 16 points in shared memory; then each multiplies the points of a
 * square by its matrices. The sums are chains of gemm_f32: the bytes are those of the vector tiers
 * of the CPU (kernels/panels/conv3x3.inc). */
#include "kernels/cuda/gemm_choice.h"
#include "kernels/cuda/lang.cuh"

enum {
    CONV_SQUARES = 16,
    CONV_COLUMNS = 32,
    CONV_K = 8,
    CONV_THREADS = CONV_COLUMNS * CONV_K, /* one for each weight of a point */
    CONV_ACROSS = CONV_THREADS / CONV_SQUARES,
    CONV_EACH = CONV_COLUMNS / CONV_ACROSS, /* channels of y of a thread */
    CONV_POINTS = 16
};
static_assert(F32_CHAIN % CONV_K == 0, "a chain is whole steps");

/* B^T of four values, `step` apart, in place. */
static __device__ __forceinline__ void forth(float *d, int step)
{
    float d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step];
    d[0] = d0 - d2;
    d[step] = d1 + d2;
    d[2 * step] = d2 - d1;
    d[3 * step] = d1 - d3;
}

/* A^T: the first two of four become the result. */
static __device__ __forceinline__ void back(float *m, int step)
{
    float both = m[step] + m[2 * step], apart = m[step] - m[2 * step];
    m[0] += both;
    m[step] = apart - m[3 * step];
}

/* The points of channel k of a square. */
static __device__ __forceinline__ void points_of(const tec_conv_args &a, int square, int k,
                                                 float (&d)[CONV_POINTS])
{
    int across = (a.out_w + 1) / 2;
    int line = square / across * 2 - a.pad, column = square % across * 2 - a.pad;
    TEC_UNROLL
    for (int p = 0; p < CONV_POINTS; p++) {
        int y = line + p / 4, x = column + p % 4;
        bool inside = k < a.k && y >= 0 && y < a.in_h && x >= 0 && x < a.in_w;
        size_t row = (size_t)y * (size_t)a.in_w + (size_t)x;
        d[p] = inside ? a.x[row * (size_t)a.ldx + (size_t)k] : 0.0F;
    }
    TEC_UNROLL
    for (int i = 0; i < 4; i++)
        forth(d + i, 4);
    TEC_UNROLL
    for (int i = 0; i < 4; i++)
        forth(d + 4 * i, 1);
}

static __device__ __forceinline__ void finish(const tec_conv_args &a, int square, int live, int c,
                                              float (&m)[CONV_POINTS])
{
    int across = (a.out_w + 1) / 2, line = square / across * 2, column = square % across * 2;
    TEC_UNROLL
    for (int i = 0; i < 4; i++)
        back(m + i, 4);
    TEC_UNROLL
    for (int i = 0; i < 2; i++)
        back(m + 4 * i, 1);
    TEC_UNROLL
    for (int i = 0; i < 4; i++) {
        int r = (line + i / 2) * a.out_w + column + i % 2;
        if (column + i % 2 >= a.out_w || r >= live)
            continue;
        float v = m[i / 2 * 4 + i % 2], *y = a.y + (size_t)r * (size_t)a.ldy + c;
        if (a.bias)
            v = __fadd_rn(v, a.bias[c]);
        *y = a.add ? __fadd_rn(*y, v) : v;
    }
}

/* Channels k .. of the squares' points and of the weights. */
static __device__ __forceinline__ void load(const tec_conv_args &a, int first, int column, int k,
                                            float (*points)[CONV_K][CONV_SQUARES],
                                            float (*weights)[CONV_K][CONV_COLUMNS])
{
    const float *w = static_cast<const float *>(a.w);
    int i = (int)threadIdx.x % CONV_K, own = (int)threadIdx.x / CONV_K;
    bool there = column + own < a.n && k + i < a.k;
    size_t at = (size_t)(column + own) * (size_t)a.k + (size_t)(k + i);
    TEC_UNROLL
    for (int p = 0; p < CONV_POINTS; p++)
        weights[p][i][own] = there ? w[(size_t)p * (size_t)a.n * (size_t)a.k + at] : 0.0F;
    if (own >= CONV_SQUARES)
        return;
    float d[CONV_POINTS];
    points_of(a, first + own, k + i, d);
    TEC_UNROLL
    for (int p = 0; p < CONV_POINTS; p++)
        points[p][i][own] = d[p];
}

/* total += m, a chain, which begins anew; the first one is the total. */
static __device__ __forceinline__ void fold(float (&total)[CONV_EACH][CONV_POINTS],
                                            float (&m)[CONV_EACH][CONV_POINTS], bool first)
{
    TEC_UNROLL
    for (int c = 0; c < CONV_EACH; c++) {
        TEC_UNROLL
        for (int p = 0; p < CONV_POINTS; p++) {
            total[c][p] = first ? m[c][p] : __fadd_rn(total[c][p], m[c][p]);
            m[c][p] = 0.0F;
        }
    }
}

static __global__ void __launch_bounds__(CONV_THREADS) conv3x3_kernel(struct tec_conv_args a)
{
    __shared__ float points[CONV_POINTS][CONV_K][CONV_SQUARES];
    __shared__ float weights[CONV_POINTS][CONV_K][CONV_COLUMNS];
    int square = (int)threadIdx.x / CONV_ACROSS, to = (int)threadIdx.x % CONV_ACROSS;
    int first = (int)blockIdx.x * CONV_SQUARES, column = (int)blockIdx.y * CONV_COLUMNS;
    wait_previous();
    release_next();
    int live = live_count(a.rows, a.max_rows), lines = (live + a.out_w - 1) / a.out_w;
    if (first >= (lines + 1) / 2 * ((a.out_w + 1) / 2))
        return;
    float m[CONV_EACH][CONV_POINTS] = {}, total[CONV_EACH][CONV_POINTS];
    for (int k = 0; k < a.k; k += CONV_K) {
        __syncthreads();
        load(a, first, column, k, points, weights);
        __syncthreads();
        int channels = min(a.k - k, (int)CONV_K);
        for (int i = 0; i < channels; i++) {
            TEC_UNROLL
            for (int p = 0; p < CONV_POINTS; p++) {
                float v = points[p][i][square];
                TEC_UNROLL
                for (int c = 0; c < CONV_EACH; c++)
                    m[c][p] = fmaf(v, weights[p][i][to + c * CONV_ACROSS], m[c][p]);
            }
        }
        if ((k + CONV_K) % F32_CHAIN == 0 || k + CONV_K >= a.k)
            fold(total, m, k < F32_CHAIN);
    }
    TEC_UNROLL
    for (int c = 0; c < CONV_EACH; c++)
        if (column + to + c * CONV_ACROSS < a.n)
            finish(a, first + square, live, column + to + c * CONV_ACROSS, total[c]);
}

void tec_cuda_conv3x3(const struct tec_conv_args *a, struct tec_cuda_launch *launch)
{
    int across = (a->out_w + 1) / 2, down = (ceil_div(a->max_rows, a->out_w) + 1) / 2;
    dim3 grid((unsigned)ceil_div(across * down, CONV_SQUARES),
              (unsigned)ceil_div(a->n, CONV_COLUMNS));
    tec_cuda_start(launch, conv3x3_kernel, grid, dim3(CONV_THREADS), 0, *a);
}
