/* table.c - what AVX2 overrides; whatever reads matrices does, because it wants panels. */
#include "kernels/avx2/avx2.h"

#if defined(__x86_64__)
#include <cpuid.h>

/* Compilers do not all know its name. It needs no more of the system than AVX2 does. */
static bool has_avx_vnni(void)
{
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1U << 4);
}
#endif

void tec_kernels_add_avx2(struct tec_kernels *kernels)
{
#if defined(__x86_64__)
    kernels->layout = TEC_MATRIX_PANELS;
    kernels->gemm_f32 = tec_gemm_f32_avx2;
    kernels->conv3x3 = tec_conv3x3_avx2;
    kernels->gemm_bf16 = tec_gemm_bf16_avx2;
    kernels->gemm_int4 = has_avx_vnni() ? tec_vnni_gemm_int4_avx2 : tec_gemm_int4_avx2;
    kernels->gemm_int8 = has_avx_vnni() ? tec_vnni_gemm_int8_avx2 : tec_gemm_int8_avx2;
    kernels->embed_f32 = tec_embed_f32_avx2;
    kernels->embed_bf16 = tec_embed_bf16_avx2;
    kernels->next_token = tec_next_token_avx2;
    kernels->log_prob = tec_log_prob_avx2;
    kernels->layernorm = tec_layernorm_avx2;
    kernels->rmsnorm = tec_rmsnorm_avx2;
    kernels->head_norm = tec_head_norm_avx2;
    kernels->rope_f32 = tec_rope_f32_avx2;
    kernels->rope_bf16 = tec_rope_bf16_avx2;
    kernels->attention_f32 = tec_attention_f32_avx2;
    kernels->attention_bf16 = tec_attention_bf16_avx2;
    kernels->attention_mass_f32 = tec_attention_mass_f32_avx2;
    kernels->attention_mass_bf16 = tec_attention_mass_bf16_avx2;
    kernels->place_kv_f32 = tec_place_kv_f32_avx2;
    kernels->place_kv_bf16 = tec_place_kv_bf16_avx2;
    kernels->gelu = tec_gelu_avx2;
    kernels->gelu_erf = tec_gelu_erf_avx2;
    kernels->silu = tec_silu_avx2;
    kernels->relu = tec_relu_avx2;
    kernels->soft_cap = tec_soft_cap_avx2;
    kernels->add = tec_add_avx2;
    kernels->guide = tec_guide_avx2;
    kernels->gelu_mul = tec_gelu_mul_avx2;
    kernels->silu_mul = tec_silu_mul_avx2;
    kernels->unfold = tec_unfold_avx2;
    kernels->max_pool = tec_max_pool_avx2;
#else
    (void)kernels;
#endif
}
