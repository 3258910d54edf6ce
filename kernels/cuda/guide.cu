/* guide.cu - velocities pulled towards a chunk that was computed before. */
#include "kernels/cuda/row.cuh"

/* Products and differences round once each, as in every tier. */
static __global__ void __launch_bounds__(ROW_THREADS)
    guide_kernel(struct tec_guide_args a, bool wide)
{
    wait_previous();
    release_next();
    int r = (int)blockIdx.x, c = quad_column(), n = a.cols - c;
    if (r >= live_count(a.rows, a.max_rows) || n <= 0)
        return;
    float weight = a.weight[r], pull = __fmul_rn(a.gain, weight);
    if (weight == 0.0F)
        return;
    float *at = a.v + (size_t)r * (size_t)a.ldv + c;
    struct quad v = quad_load(at, n, wide);
    struct quad x = quad_load(a.x + (size_t)r * (size_t)a.ldx + c, n, wide);
    struct quad previous = quad_load(a.previous + (size_t)r * (size_t)a.ldp + c, n, wide);
    TEC_UNROLL
    for (int i = 0; i < QUAD; i++) {
        float end = __fsub_rn(x.v[i], __fmul_rn(a.time, v.v[i]));
        v.v[i] = __fsub_rn(v.v[i], __fmul_rn(pull, __fsub_rn(previous.v[i], end)));
    }
    quad_store(at, v, n, wide);
}

void tec_cuda_guide(const struct tec_guide_args *a, struct tec_cuda_launch *launch)
{
    bool wide = floats_aligned(a->x, a->ldx) && floats_aligned(a->v, a->ldv) &&
                floats_aligned(a->previous, a->ldp);
    tec_cuda_start(launch, guide_kernel, quad_grid(a->max_rows, a->cols), dim3(ROW_THREADS), 0, *a,
                   wide);
}
