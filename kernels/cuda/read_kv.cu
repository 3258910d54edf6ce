/* read_kv.cu - rows of key-value memory by slot, as float32. */
#include "kernels/cuda/row.cuh"

template <class T>
static __global__ void __launch_bounds__(ROW_THREADS)
    read_kv_kernel(struct tec_read_kv_args a, bool wide)
{
    wait_previous();
    release_next();
    int r = (int)blockIdx.x, c = quad_column(), n = a.cols - c;
    if (r >= live_count(a.rows, a.max_rows) || n <= 0)
        return;
    const T *kv = static_cast<const T *>(a.kv) + (size_t)a.slot[r] * (size_t)a.cols + c;
    quad_store(a.y + (size_t)r * (size_t)a.ldy + c, quad_load(kv, n, wide), n, wide);
}

template <class T>
static void read_kv(const struct tec_read_kv_args *a, struct tec_cuda_launch *launch)
{
    bool wide = floats_aligned(a->y, a->ldy) &&
                rows_aligned(a->kv, (size_t)a->cols * sizeof(T), QUAD * sizeof(T));
    tec_cuda_start(launch, read_kv_kernel<T>, quad_grid(a->max_rows, a->cols), dim3(ROW_THREADS), 0,
                   *a, wide);
}

void tec_cuda_read_kv_f32(const struct tec_read_kv_args *a, struct tec_cuda_launch *launch)
{
    read_kv<float>(a, launch);
}

void tec_cuda_read_kv_bf16(const struct tec_read_kv_args *a, struct tec_cuda_launch *launch)
{
    read_kv<bf16>(a, launch);
}
