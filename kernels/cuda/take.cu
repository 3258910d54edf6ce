/* take.cu - chosen rows, some of them side by side. */
#include "kernels/cuda/row.cuh"

static __global__ void __launch_bounds__(ROW_THREADS)
    take_rows_kernel(struct tec_take_args a, bool wide)
{
    wait_previous();
    release_next();
    int r = (int)blockIdx.x, c = quad_column(), n = a.cols - c;
    if (r >= live_count(a.rows, a.max_rows) || n <= 0)
        return;
    int row = a.row[r];
    row = row >= 0 && row < a.x_rows ? row : 0;
    struct quad v = quad_load(a.x + (size_t)row * (size_t)a.ldx + c, n, wide);
    TEC_UNROLL
    for (int i = 0; i < QUAD; i++)
        v.v[i] = a.round ? round_bf16(v.v[i]) : v.v[i];
    float *y = a.y + (size_t)(r / a.group) * (size_t)a.ldy;
    quad_store(y + (size_t)(r % a.group) * (size_t)a.cols + c, v, n, wide);
}

void tec_cuda_take_rows(const struct tec_take_args *a, struct tec_cuda_launch *launch)
{
    bool wide = floats_aligned(a->x, a->ldx) && floats_aligned(a->y, a->ldy) &&
                (a->group == 1 || a->cols % QUAD == 0);
    tec_cuda_start(launch, take_rows_kernel, quad_grid(a->max_rows, a->cols), dim3(ROW_THREADS), 0,
                   *a, wide);
}
