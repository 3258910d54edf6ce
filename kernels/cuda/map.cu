/* map.cu - one function of every element, and the sum of two. */
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/row.cuh"

/* A block takes columns of one row. */
template <enum activation F>
static __global__ void __launch_bounds__(ROW_THREADS) map_kernel(struct tec_map_args a, bool wide)
{
    wait_previous();
    release_next();
    int r = (int)blockIdx.x, c = quad_column(), n = a.cols - c;
    if (r >= live_count(a.rows, a.max_rows) || n <= 0)
        return;
    struct quad v = quad_load(a.x + (size_t)r * (size_t)a.ldx + c, n, wide);
    TEC_UNROLL
    for (int i = 0; i < QUAD; i++) {
        v.v[i] = activation_of<F>(v.v[i]);
        v.v[i] = a.round ? round_bf16(v.v[i]) : v.v[i];
    }
    quad_store(a.y + (size_t)r * (size_t)a.ldy + c, v, n, wide);
}

template <enum activation F>
static void map(const struct tec_map_args *a, struct tec_cuda_launch *launch)
{
    bool wide = floats_aligned(a->x, a->ldx) && floats_aligned(a->y, a->ldy);
    tec_cuda_start(launch, map_kernel<F>, quad_grid(a->max_rows, a->cols), dim3(ROW_THREADS), 0, *a,
                   wide);
}

void tec_cuda_gelu(const struct tec_map_args *a, struct tec_cuda_launch *launch)
{
    map<GELU>(a, launch);
}

void tec_cuda_gelu_erf(const struct tec_map_args *a, struct tec_cuda_launch *launch)
{
    map<GELU_ERF>(a, launch);
}

void tec_cuda_silu(const struct tec_map_args *a, struct tec_cuda_launch *launch)
{
    map<SILU>(a, launch);
}

void tec_cuda_relu(const struct tec_map_args *a, struct tec_cuda_launch *launch)
{
    map<RELU>(a, launch);
}

void tec_cuda_copy_rows(const struct tec_map_args *a, struct tec_cuda_launch *launch)
{
    map<COPY>(a, launch);
}

static __global__ void __launch_bounds__(ROW_THREADS)
    soft_cap_kernel(struct tec_soft_cap_args a, bool wide)
{
    wait_previous();
    release_next();
    int r = (int)blockIdx.x, c = quad_column(), n = a.cols - c;
    if (r >= live_count(a.rows, a.max_rows) || n <= 0)
        return;
    struct quad v = quad_load(a.x + (size_t)r * (size_t)a.ldx + c, n, wide);
    TEC_UNROLL
    for (int i = 0; i < QUAD; i++)
        v.v[i] = activation_soft_cap(v.v[i], a.cap);
    quad_store(a.y + (size_t)r * (size_t)a.ldy + c, v, n, wide);
}

void tec_cuda_soft_cap(const struct tec_soft_cap_args *a, struct tec_cuda_launch *launch)
{
    bool wide = floats_aligned(a->x, a->ldx) && floats_aligned(a->y, a->ldy);
    tec_cuda_start(launch, soft_cap_kernel, quad_grid(a->max_rows, a->cols), dim3(ROW_THREADS), 0,
                   *a, wide);
}

static __global__ void __launch_bounds__(ROW_THREADS) add_kernel(struct tec_add_args a, bool wide)
{
    wait_previous();
    release_next();
    int r = (int)blockIdx.x, c = quad_column(), n = a.cols - c;
    if (r >= live_count(a.rows, a.max_rows) || n <= 0)
        return;
    float *y = a.y + (size_t)r * (size_t)a.ldy + c;
    struct quad sum = quad_load(y, n, wide);
    struct quad x = quad_load(a.x + (size_t)r * (size_t)a.ldx + c, n, wide);
    TEC_UNROLL
    for (int i = 0; i < QUAD; i++)
        sum.v[i] = __fadd_rn(sum.v[i], x.v[i]);
    quad_store(y, sum, n, wide);
}

void tec_cuda_add(const struct tec_add_args *a, struct tec_cuda_launch *launch)
{
    bool wide = floats_aligned(a->x, a->ldx) && floats_aligned(a->y, a->ldy);
    tec_cuda_start(launch, add_kernel, quad_grid(a->max_rows, a->cols), dim3(ROW_THREADS), 0, *a,
                   wide);
}
