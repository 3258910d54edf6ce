/* gated.cu - gelu or silu of one half of a row times the other half. */
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/row.cuh"

template <enum activation F>
static __global__ void __launch_bounds__(ROW_THREADS)
    gated_kernel(struct tec_gated_args a, bool wide)
{
    wait_previous();
    release_next();
    int r = (int)blockIdx.x, c = quad_column(), n = a.cols - c;
    if (r >= live_count(a.rows, a.max_rows) || n <= 0)
        return;
    const float *x = a.x + (size_t)r * (size_t)a.ldx + c;
    struct quad v = quad_load(x + a.gate_at, n, wide), up = quad_load(x + a.up_at, n, wide);
    TEC_UNROLL
    for (int i = 0; i < QUAD; i++) {
        v.v[i] = activation_of<F>(v.v[i]) * up.v[i];
        v.v[i] = a.round ? round_bf16(v.v[i]) : v.v[i];
    }
    quad_store(a.y + (size_t)r * (size_t)a.ldy + c, v, n, wide);
}

template <enum activation F>
static void gated(const struct tec_gated_args *a, struct tec_cuda_launch *launch)
{
    bool wide = floats_aligned(a->x + a->gate_at, a->ldx) &&
                floats_aligned(a->x + a->up_at, a->ldx) && floats_aligned(a->y, a->ldy);
    tec_cuda_start(launch, gated_kernel<F>, quad_grid(a->max_rows, a->cols), dim3(ROW_THREADS), 0,
                   *a, wide);
}

void tec_cuda_gelu_mul(const struct tec_gated_args *a, struct tec_cuda_launch *launch)
{
    gated<GELU>(a, launch);
}

void tec_cuda_silu_mul(const struct tec_gated_args *a, struct tec_cuda_launch *launch)
{
    gated<SILU>(a, launch);
}
