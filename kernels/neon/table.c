/* table.c - what NEON overrides; whatever reads matrices does, because it wants panels. */
#include "kernels/neon/neon.h"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

void tec_kernels_add_neon(struct tec_kernels *kernels)
{
#if defined(__aarch64__)
    kernels->layout = TEC_MATRIX_PANELS;
    kernels->gemm_f32 = tec_gemm_f32_neon;
    kernels->conv3x3 = tec_conv3x3_neon;
    bool bf16 = getauxval(AT_HWCAP2) & HWCAP2_BF16;
    kernels->gemm_bf16 = bf16 ? tec_gemm_bf16_mm_neon : tec_gemm_bf16_neon;
    bool dot = getauxval(AT_HWCAP) & HWCAP_ASIMDDP;
    bool mm = dot && (getauxval(AT_HWCAP2) & HWCAP2_I8MM);
    kernels->gemm_int4 = mm    ? tec_gemm_int4_mm_neon
                         : dot ? tec_gemm_int4_dot_neon
                               : tec_gemm_int4_neon;
    kernels->gemm_int8 = mm    ? tec_gemm_int8_mm_neon
                         : dot ? tec_gemm_int8_dot_neon
                               : tec_gemm_int8_neon;
    kernels->embed_f32 = tec_embed_f32_neon;
    kernels->embed_bf16 = tec_embed_bf16_neon;
    kernels->next_token = tec_next_token_neon;
    kernels->log_prob = tec_log_prob_neon;
    kernels->layernorm = tec_layernorm_neon;
    kernels->rmsnorm = tec_rmsnorm_neon;
    kernels->head_norm = tec_head_norm_neon;
    kernels->rope_f32 = tec_rope_f32_neon;
    kernels->rope_bf16 = tec_rope_bf16_neon;
    kernels->attention_f32 = tec_attention_f32_neon;
    kernels->attention_bf16 = tec_attention_bf16_neon;
    kernels->attention_mass_f32 = tec_attention_mass_f32_neon;
    kernels->attention_mass_bf16 = tec_attention_mass_bf16_neon;
    kernels->place_kv_f32 = tec_place_kv_f32_neon;
    kernels->place_kv_bf16 = tec_place_kv_bf16_neon;
    kernels->gelu = tec_gelu_neon;
    kernels->gelu_erf = tec_gelu_erf_neon;
    kernels->silu = tec_silu_neon;
    kernels->relu = tec_relu_neon;
    kernels->soft_cap = tec_soft_cap_neon;
    kernels->add = tec_add_neon;
    kernels->guide = tec_guide_neon;
    kernels->gelu_mul = tec_gelu_mul_neon;
    kernels->silu_mul = tec_silu_mul_neon;
    kernels->unfold = tec_unfold_neon;
    kernels->max_pool = tec_max_pool_neon;
#else
    (void)kernels;
#endif
}
