/* gemm_then_gated.cu - gelu or silu of one half of a product times the other half. */
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/gemm_int8.cuh"
#include "kernels/cuda/gemm_then.cuh"

/* Pairs of panels: 16 columns of the gate and those of up. Which of the two functions is asked at
 * run time: they differ in an exponent, and a kernel for each took twice as long to compile. */
struct store_gated : reads_nothing {
    struct tec_gated_args a;
    bool silu;

    __host__ __device__ int pairs() const
    {
        return gated_pairs(&a);
    }
    __device__ int panel(int pair, int which) const
    {
        return (which ? a.up_at : a.gate_at) / 16 + pair;
    }
    __device__ __forceinline__ float value(float gate, float up) const
    {
        float v = (silu ? activation_silu(gate) : activation_gelu(gate)) * up;
        return a.round ? round_bf16(v) : v;
    }
    __device__ __forceinline__ void operator()(nothing, nothing, int r, int column, float gate,
                                               float up) const
    {
        column -= a.gate_at;
        if (column >= a.cols)
            return;
        a.y[(size_t)r * (size_t)a.ldy + (size_t)column] = value(gate, up);
    }
};

static bool start(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                  const struct tec_gated_args *then, bool silu, struct tec_cuda_launch *launch)
{
    if (!gated_goes_along(a, then))
        return false;
    struct store_gated store = {{}, *then, silu};
    struct terms_out out = terms_out_of(launch, then->y);
    return out.at ? start_leaving_terms(a, pair_terms_finish<store_gated>{{*a, store}, out}, launch)
                  : start_pairs(a, norm, store, launch);
}

bool tec_cuda_gemm_then_gelu_mul(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                                 const struct tec_gated_args *then, struct tec_cuda_launch *launch)
{
    return start(a, norm, then, false, launch);
}

bool tec_cuda_gemm_then_silu_mul(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                                 const struct tec_gated_args *then, struct tec_cuda_launch *launch)
{
    return start(a, norm, then, true, launch);
}

static bool start_int8_gated(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                             const struct tec_gated_args *then, bool silu,
                             struct tec_cuda_launch *launch)
{
    struct store_gated store = {{}, *then, silu};
    return gated_goes_along(a, then) &&
           start_int8<true>(a, norm, pair_finish<store_gated>{*a, store}, launch);
}

bool tec_cuda_int8_then_gelu_mul(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                                 const struct tec_gated_args *then, struct tec_cuda_launch *launch)
{
    return start_int8_gated(a, norm, then, false, launch);
}

bool tec_cuda_int8_then_silu_mul(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                                 const struct tec_gated_args *then, struct tec_cuda_launch *launch)
{
    return start_int8_gated(a, norm, then, true, launch);
}
