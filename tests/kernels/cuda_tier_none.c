/* cuda_tier_none.c - without CUDA in the build there is no tier of CUDA kernels. */
#include "tests/kernels/cuda_tier.h"

#include <stdlib.h>

#ifndef TECTUM_HAS_CUDA

enum cuda_tier_kind cuda_tier_open(const char **why)
{
    *why = "built without CUDA";
    return CUDA_TIER_NONE;
}

void cuda_tier_close(void)
{
}

struct tec_kernels cuda_tier_table(void)
{
    return (struct tec_kernels){0};
}

bool cuda_tier_chain(enum tec_kernel_id product, const struct tec_norm_args *norm,
                     const struct tec_gemm_args *gemm, enum tec_kernel_id next, const void *args,
                     bool left)
{
    (void)product, (void)norm, (void)gemm, (void)next, (void)args, (void)left;
    return false;
}

int cuda_tier_list(const struct tec_capture *list)
{
    (void)list;
    return 0;
}

bool cuda_tier_digits(const struct tec_gemm_args *a, const struct tec_cuda_digits *form,
                      const int *order, int first, int count, void *to, size_t size)
{
    (void)a, (void)form, (void)order, (void)first, (void)count, (void)to, (void)size;
    return false;
}

bool cuda_tier_reads_terms(void)
{
    return false;
}

void cuda_tier_leave(enum tec_kernel_id product, const struct tec_gemm_args *gemm)
{
    (void)product, (void)gemm;
}

int cuda_tier_norm_rows(enum tec_kernel_id product, const struct tec_gemm_args *gemm, bool left)
{
    (void)product, (void)gemm, (void)left;
    return 0;
}

bool cuda_tier_rope_fits(enum tec_kernel_id product, const struct tec_gemm_args *gemm,
                         const struct tec_rope_args *rope)
{
    (void)product, (void)gemm, (void)rope;
    return false;
}

const char *cuda_tier_trouble(void)
{
    return NULL;
}

void cuda_tier_schedule(int order, uint64_t seed)
{
    (void)order, (void)seed;
}

void cuda_tier_plan_for(int capability, int processors)
{
    (void)capability, (void)processors;
}

void cuda_tier_room(size_t partials, size_t terms)
{
    (void)partials, (void)terms;
}

void cuda_tier_clusters(bool wanted)
{
    (void)wanted;
}

void cuda_tier_like(int capability)
{
    (void)capability;
}

void *cuda_tier_alloc(size_t size)
{
    return aligned_alloc(64, size);
}

void cuda_tier_free(void *at)
{
    free(at);
}

#endif
