/* gemm_then_gelu.cu - gelu of a product, in either form. */
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/gemm_int8.cuh"
#include "kernels/cuda/gemm_then.cuh"

/* Which form is asked at run time: a kernel for each took twice as long to compile. */
struct store_gelu : reads_nothing {
    struct tec_map_args a;
    bool erf;

    __device__ __forceinline__ float value(float v) const
    {
        v = erf ? activation_gelu_erf(v) : activation_gelu(v);
        return a.round ? round_bf16(v) : v;
    }
    __device__ __forceinline__ void operator()(nothing, nothing, int r, int column, float v) const
    {
        if (column >= a.cols)
            return;
        a.y[(size_t)r * (size_t)a.ldy + (size_t)column] = value(v);
    }
};

static bool start(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                  const struct tec_map_args *then, bool erf, struct tec_cuda_launch *launch)
{
    if (!gelu_goes_along(a, norm, then))
        return false;
    struct store_gelu store = {{}, *then, erf};
    struct terms_out out = terms_out_of(launch, then->y);
    return out.at
               ? start_leaving_terms(a, single_terms_finish<store_gelu>{{*a, store}, out}, launch)
               : start_singles(a, store, launch);
}

bool tec_cuda_gemm_then_gelu(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                             const struct tec_map_args *then, struct tec_cuda_launch *launch)
{
    return start(a, norm, then, false, launch);
}

bool tec_cuda_gemm_then_gelu_erf(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                                 const struct tec_map_args *then, struct tec_cuda_launch *launch)
{
    return start(a, norm, then, true, launch);
}

static bool start_int8_gelu(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                            const struct tec_map_args *then, bool erf,
                            struct tec_cuda_launch *launch)
{
    struct store_gelu store = {{}, *then, erf};
    return gelu_goes_along(a, norm, then) &&
           start_int8<false>(a, NULL, single_finish<store_gelu>{*a, store}, launch);
}

bool tec_cuda_int8_then_gelu(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                             const struct tec_map_args *then, struct tec_cuda_launch *launch)
{
    return start_int8_gelu(a, norm, then, false, launch);
}

bool tec_cuda_int8_then_gelu_erf(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                                 const struct tec_map_args *then, struct tec_cuda_launch *launch)
{
    return start_int8_gelu(a, norm, then, true, launch);
}
