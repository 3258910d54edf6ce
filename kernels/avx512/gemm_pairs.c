/* gemm_pairs.c - the AVX-512 gemm_bf16 kernel where dot products of bf16 pairs (AVX512-BF16) are
 * faster than float32: products whose x holds bf16 values.
 *
 * kernels/panels/gemm_pairs.inc has the algorithm. A `vdpbf16ps` is rounded to nearest even and
 * takes what is below the normal range as 0, whatever the thread's modes are. All other products go
 * the other way. */
#include "kernels/avx512/avx512.h"

#if defined(__x86_64__)
#include "kernels/avx512/panels.h"

typedef __m512i pairs;

VEC_INLINE pairs pairs_load(const char *at)
{
    return _mm512_rol_epi32(_mm512_loadu_si512(at), 16);
}
VEC_INLINE void pairs_store(float *to, vec x)
{
    __m512i first = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi64(0xffff0000));
    __m512i second = _mm512_srli_epi64(_mm512_castps_si512(x), 48);
    __m256i both = _mm512_cvtepi64_epi32(_mm512_or_si512(first, second));
    _mm256_storeu_si256((__m256i *)(void *)to, both);
}
VEC_INLINE void pairs_keep(float *to, pairs x)
{
    _mm512_storeu_si512(to, x);
}
VEC_INLINE pairs pairs_kept(const float *from)
{
    return _mm512_loadu_si512(from);
}
VEC_INLINE pairs pairs_set(const float *x)
{
    return _mm512_castps_si512(_mm512_set1_ps(*x));
}
/* Inline assembly, because the intrinsic's type differs from compiler to compiler. */
VEC_INLINE void pairs_dot(vec *sum, pairs w, pairs x)
{
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(*sum) : "v"(w), "v"(x));
}

#include "kernels/panels/gemm_pairs.inc"

void tec_pairs_gemm_bf16_avx512(const struct tec_gemm_args *a, struct tec_part part)
{
    if (a->rounded)
        run_pairs(a, part);
    else
        tec_gemm_bf16_avx512(a, part);
}

bool tec_pairs_pay(void)
{
    return __builtin_cpu_is("amd") && __builtin_cpu_supports("avx512bf16");
}

#endif
