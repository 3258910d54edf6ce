/* table.c - what AVX-512 does better than AVX2; it reads the same panels. */
#include "kernels/avx512/avx512.h"

void tec_kernels_add_avx512(struct tec_kernels *kernels)
{
#if defined(__x86_64__)
    kernels->gemm_f32 = tec_gemm_f32_avx512;
    kernels->conv3x3 = tec_conv3x3_avx512;
    kernels->gemm_bf16 = tec_tiles_permitted() ? tec_tiles_gemm_bf16_avx512
                         : tec_pairs_pay()     ? tec_pairs_gemm_bf16_avx512
                                               : tec_gemm_bf16_avx512;
    if (__builtin_cpu_supports("avx512vnni"))
        kernels->gemm_int4 = tec_gemm_int4_avx512;
    if (__builtin_cpu_supports("avx512vnni"))
        kernels->gemm_int8 =
            tec_tiles_permitted() ? tec_tiles_gemm_int8_avx512 : tec_gemm_int8_avx512;
    kernels->next_token = tec_next_token_avx512;
    kernels->log_prob = tec_log_prob_avx512;
    kernels->layernorm = tec_layernorm_avx512;
    kernels->rmsnorm = tec_rmsnorm_avx512;
    kernels->head_norm = tec_head_norm_avx512;
    kernels->rope_f32 = tec_rope_f32_avx512;
    kernels->rope_bf16 = tec_rope_bf16_avx512;
    bool vnni = __builtin_cpu_supports("avx512vnni");
    kernels->attention_f32 = vnni ? tec_whole_attention_f32_avx512 : tec_attention_f32_avx512;
    kernels->attention_bf16 = vnni ? tec_whole_attention_bf16_avx512 : tec_attention_bf16_avx512;
    kernels->attention_mass_f32 = tec_attention_mass_f32_avx512;
    kernels->attention_mass_bf16 = tec_attention_mass_bf16_avx512;
    kernels->place_kv_f32 = tec_place_kv_f32_avx512;
    kernels->place_kv_bf16 = tec_place_kv_bf16_avx512;
    kernels->gelu = tec_gelu_avx512;
    kernels->gelu_erf = tec_gelu_erf_avx512;
    kernels->silu = tec_silu_avx512;
    kernels->relu = tec_relu_avx512;
    kernels->soft_cap = tec_soft_cap_avx512;
    kernels->add = tec_add_avx512;
    kernels->guide = tec_guide_avx512;
    kernels->gelu_mul = tec_gelu_mul_avx512;
    kernels->silu_mul = tec_silu_mul_avx512;
    kernels->unfold = tec_unfold_avx512;
    kernels->max_pool = tec_max_pool_avx512;
#else
    (void)kernels;
#endif
}
