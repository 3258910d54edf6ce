/* mean.cu - the mean of a run of rows: sums in float64, in the order of rows.
 *
 * A thread has one column and walks the rows. Texts are short and few, so this is little work even
 * where float64 is slow. */
#include "kernels/cuda/row.cuh"

static __global__ void __launch_bounds__(ROW_THREADS) mean_rows_kernel(struct tec_mean_args a)
{
    wait_previous();
    release_next();
    int r = (int)blockIdx.x, c = (int)(blockIdx.y * ROW_THREADS + threadIdx.x);
    if (r >= live_count(a.rows, a.max_rows) || c >= a.cols)
        return;
    struct tec_span s = a.span[r];
    if (s.slot < 0 || s.slot >= a.x_rows || s.length < 0)
        s.slot = s.length = 0;
    if (s.length > a.x_rows - s.slot)
        s.length = a.x_rows - s.slot;
    const float *x = a.x + (size_t)s.slot * (size_t)a.ldx + c;
    double sum = 0.0;
    for (int i = 0; i < s.length; i++)
        sum += (double)x[(size_t)i * (size_t)a.ldx];
    a.y[(size_t)r * (size_t)a.ldy + c] = s.length ? (float)(sum / (double)s.length) : 0.0F;
}

void tec_cuda_mean_rows(const struct tec_mean_args *a, struct tec_cuda_launch *launch)
{
    tec_cuda_start(launch, mean_rows_kernel,
                   dim3((unsigned)a->max_rows, (unsigned)ceil_div(a->cols, ROW_THREADS)),
                   dim3(ROW_THREADS), 0, *a);
}
