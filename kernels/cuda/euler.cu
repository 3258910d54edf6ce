/* euler.cu - one step along a velocity. */
#include "kernels/cuda/row.cuh"

/* Product and sum round once each, as in every tier. */
static __global__ void __launch_bounds__(ROW_THREADS)
    euler_kernel(struct tec_euler_args a, bool wide)
{
    wait_previous();
    release_next();
    int r = (int)blockIdx.x, c = quad_column(), n = a.cols - c;
    if (r >= live_count(a.rows, a.max_rows) || n <= 0 || (a.fixed && r < *a.fixed))
        return;
    float *x = a.x + (size_t)r * (size_t)a.ldx + c;
    struct quad at = quad_load(x, n, wide);
    struct quad v = quad_load(a.v + (size_t)r * (size_t)a.ldv + c, n, wide);
    TEC_UNROLL
    for (int i = 0; i < QUAD; i++)
        at.v[i] = __fadd_rn(at.v[i], __fmul_rn(a.dt, v.v[i]));
    quad_store(x, at, n, wide);
}

void tec_cuda_euler(const struct tec_euler_args *a, struct tec_cuda_launch *launch)
{
    bool wide = floats_aligned(a->x, a->ldx) && floats_aligned(a->v, a->ldv);
    tec_cuda_start(launch, euler_kernel, quad_grid(a->max_rows, a->cols), dim3(ROW_THREADS), 0, *a,
                   wide);
}
