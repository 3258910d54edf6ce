/* gemm_then_gelu.cu - gelu of a product, in either form. */
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/gemm_then.cuh"

template <enum activation F> struct store_activation : reads_nothing {
    struct tec_map_args a;

    __device__ __forceinline__ void operator()(nothing, nothing, int r, int column, float v) const
    {
        if (column >= a.cols)
            return;
        v = activation_of<F>(v);
        a.y[(size_t)r * (size_t)a.ldy + (size_t)column] = a.round ? round_bf16(v) : v;
    }
};

template <enum activation F>
static bool start(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                  const struct tec_map_args *then, struct tec_cuda_launch *launch)
{
    bool same = then->rows == a->rows && then->max_rows == a->max_rows && then->ldx == a->ldy;
    if (!same || then->cols > a->n || !apart(a, then->y, then->ldy))
        return false;
    return start_singles<store_activation<F>>(a, norm, then, launch);
}

bool tec_cuda_gemm_then_gelu(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                             const struct tec_map_args *then, struct tec_cuda_launch *launch)
{
    return start<GELU>(a, norm, then, launch);
}

bool tec_cuda_gemm_then_gelu_erf(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                                 const struct tec_map_args *then, struct tec_cuda_launch *launch)
{
    return start<GELU_ERF>(a, norm, then, launch);
}
