/* window.cu - windows over a picture: their pixels side by side, or the largest of them.
 *
 * A thread has columns of one window. Neighbouring windows share most pixels, which the caches
 * keep; what counts is that writes are whole lines. */
#include "kernels/cuda/row.cuh"

/* The pixel (i, j) of window r, or NULL where it lies outside the picture. */
static __device__ __forceinline__ const float *pixel(const struct tec_window_args &a, int r, int i,
                                                     int j)
{
    int y = r / a.out_w * a.stride - a.pad + i * a.dilation;
    int x = r % a.out_w * a.stride - a.pad + j * a.dilation;
    if (y < 0 || y >= a.in_h || x < 0 || x >= a.in_w)
        return nullptr;
    return a.x + ((size_t)y * (size_t)a.in_w + (size_t)x) * (size_t)a.ldx;
}

static __global__ void __launch_bounds__(ROW_THREADS) unfold_kernel(struct tec_window_args a)
{
    wait_previous();
    release_next();
    int r = (int)blockIdx.x, n = a.side * a.side * a.cols;
    int at = (int)(blockIdx.y * ROW_THREADS + threadIdx.x);
    if (r >= live_count(a.rows, a.max_rows) || at >= n)
        return;
    int k = at / a.cols;
    const float *x = pixel(a, r, k / a.side, k % a.side);
    float v = x ? x[at % a.cols] : 0.0F;
    a.y[(size_t)r * (size_t)a.ldy + at] = a.round ? round_bf16(v) : v;
}

void tec_cuda_unfold(const struct tec_window_args *a, struct tec_cuda_launch *launch)
{
    int n = a->side * a->side * a->cols;
    tec_cuda_start(launch, unfold_kernel,
                   dim3((unsigned)a->max_rows, (unsigned)ceil_div(n, ROW_THREADS)),
                   dim3(ROW_THREADS), 0, *a);
}

static __global__ void __launch_bounds__(ROW_THREADS)
    max_pool_kernel(struct tec_window_args a, bool wide)
{
    wait_previous();
    release_next();
    int r = (int)blockIdx.x, c = quad_column(), n = a.cols - c;
    if (r >= live_count(a.rows, a.max_rows) || n <= 0)
        return;
    struct quad most;
    TEC_UNROLL
    for (int i = 0; i < QUAD; i++)
        most.v[i] = -INFINITY;
    for (int k = 0; k < a.side * a.side; k++) {
        const float *x = pixel(a, r, k / a.side, k % a.side);
        if (!x)
            continue;
        struct quad v = quad_load(x + c, n, wide);
        TEC_UNROLL
        for (int i = 0; i < QUAD; i++)
            most.v[i] = v.v[i] > most.v[i] ? v.v[i] : most.v[i];
    }
    quad_store(a.y + (size_t)r * (size_t)a.ldy + c, most, n, wide);
}

void tec_cuda_max_pool(const struct tec_window_args *a, struct tec_cuda_launch *launch)
{
    bool wide = floats_aligned(a->x, a->ldx) && floats_aligned(a->y, a->ldy);
    tec_cuda_start(launch, max_pool_kernel, quad_grid(a->max_rows, a->cols), dim3(ROW_THREADS), 0,
                   *a, wide);
}
