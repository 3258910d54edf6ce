/* map.cu - one function of every element: gelu, silu, copy. */
#include "kernels/cuda/lang.cuh"

enum { THREADS = 256 };

enum function { COPY, GELU, SILU };

template <enum function F> static __device__ __forceinline__ float apply(float x)
{
    if (F == GELU) {
        float t = tanhf(0.7978845608028654F * (x + 0.044715F * x * x * x));
        return 0.5F * x * (1.0F + t);
    }
    if (F == SILU)
        return x / (1.0F + expf(-x));
    return x;
}

/* A block takes columns of one row. */
template <enum function F> static __global__ void __launch_bounds__(THREADS)
map_kernel(struct tec_map_args a)
{
    wait_previous();
    release_next();
    int r = (int)blockIdx.y, c = (int)(blockIdx.x * THREADS + threadIdx.x);
    if (r >= live_count(a.rows, a.max_rows) || c >= a.cols)
        return;
    float v = apply<F>(a.x[(size_t)r * (size_t)a.ldx + (size_t)c]);
    a.y[(size_t)r * (size_t)a.ldy + (size_t)c] = a.round ? round_bf16(v) : v;
}

static dim3 blocks(const struct tec_map_args *a)
{
    return dim3((unsigned)ceil_div(a->cols, THREADS), (unsigned)a->max_rows);
}

void tec_cuda_gelu(const struct tec_map_args *a, struct tec_cuda_launch *launch)
{
    tec_cuda_start(launch, map_kernel<GELU>, blocks(a), dim3(THREADS), 0, *a);
}

void tec_cuda_silu(const struct tec_map_args *a, struct tec_cuda_launch *launch)
{
    tec_cuda_start(launch, map_kernel<SILU>, blocks(a), dim3(THREADS), 0, *a);
}

void tec_cuda_copy_rows(const struct tec_map_args *a, struct tec_cuda_launch *launch)
{
    tec_cuda_start(launch, map_kernel<COPY>, blocks(a), dim3(THREADS), 0, *a);
}
