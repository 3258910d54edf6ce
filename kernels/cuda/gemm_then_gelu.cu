/* gemm_then_gelu.cu - gelu of a product. */
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/gemm_then.cuh"

struct store_gelu {
    struct tec_map_args a;

    __device__ __forceinline__ void operator()(int r, int column, float v) const
    {
        if (column >= a.cols)
            return;
        v = activation_gelu(v);
        a.y[(size_t)r * (size_t)a.ldy + (size_t)column] = a.round ? round_bf16(v) : v;
    }
};

bool tec_cuda_gemm_then_gelu(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                             const struct tec_map_args *then, struct tec_cuda_launch *launch)
{
    bool same = then->rows == a->rows && then->max_rows == a->max_rows && then->ldx == a->ldy;
    if (!same || then->cols > a->n || !apart(a, then->y, then->ldy))
        return false;
    return start_singles<store_gelu>(a, norm, then, launch);
}
