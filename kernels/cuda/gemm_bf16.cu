/* gemm_bf16.cu - y (+)= gate * (x W^T + bias) on tensor cores, W bf16, x float32 in two terms. */
#include "kernels/cuda/gemm_kernel.cuh"

/* Alone: each value goes to its place in y. */
struct store_rows {
    float *y;
    int ldy, add;

    __device__ __forceinline__ void operator()(int r, int column, float v) const
    {
        float *to = y + (size_t)r * (size_t)ldy + (size_t)column;
        *to = add ? __fadd_rn(*to, v) : v;
    }
};

void tec_cuda_gemm_bf16(const struct tec_gemm_args *a, struct tec_cuda_launch *launch)
{
    struct product<single_finish<store_rows>> product = {
        a, {*a, {a->y, a->ldy, a->add}}, split_of(a->n, a->k), launch
    };
    if (!product.start_few())
        product.start_many();
}
