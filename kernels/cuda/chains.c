/* chains.c - which commands of a list are started together. */
#include "kernels/cuda/gpu.h"

static const struct tec_command *next_of(const struct tec_capture *capture, int at)
{
    const struct tec_command *c = &capture->commands[at];
    bool passes = c->passes && at + 1 < capture->n && c[1].kind == TEC_RUN;
    return passes ? c + 1 : NULL;
}

/* The product at `at` and what is behind it, if that reads its output; the number of commands. */
static int product(const struct tec_capture *capture, int at, struct tec_cuda_chain *chain)
{
    const struct tec_command *c = &capture->commands[at], *next = next_of(capture, at);
    if (c->kernel != TEC_KERNEL_gemm_bf16)
        return 0;
    chain->gemm = c->args;
    if (!next)
        return 1;
    const struct tec_map_args *map = next->args;
    const struct tec_gated_args *gated = next->args;
    const struct tec_rope_args *rope = next->args;
    const float *y = chain->gemm->y;
    if (next->kernel == TEC_KERNEL_gelu && map->x == y)
        chain->gelu = map;
    else if (next->kernel == TEC_KERNEL_gelu_mul && gated->x == y)
        chain->gated = gated;
    else if ((next->kernel == TEC_KERNEL_rope_bf16 || next->kernel == TEC_KERNEL_rope_f32) &&
             rope->qkv == y)
        chain->rope = rope;
    else
        return 1;
    chain->rope_bf16 = next->kernel == TEC_KERNEL_rope_bf16;
    return 2;
}

/* With the norm in front. */
static int normed(const struct tec_capture *capture, int at, struct tec_cuda_chain *chain)
{
    const struct tec_command *c = &capture->commands[at];
    if (c->kernel != TEC_KERNEL_rmsnorm || !next_of(capture, at))
        return 0;
    int n = product(capture, at + 1, chain);
    chain->norm = c->args;
    bool read = n > 0 && chain->gemm->x == chain->norm->y && chain->gemm->rows == chain->norm->rows;
    return read ? n + 1 : 0;
}

int tec_gpu_start_chain(const struct tec_capture *capture, int at, struct tec_cuda_launch *launch)
{
    struct tec_cuda_chain chain = {NULL};
    int n = normed(capture, at, &chain);
    if (n > 1 && tec_cuda_gemm_chain(&chain, launch))
        return n;
    chain = (struct tec_cuda_chain){.norm = chain.norm, .gemm = chain.gemm};
    if (n > 2 && tec_cuda_gemm_chain(&chain, launch))
        return 2; /* what is behind does not go with it */
    chain = (struct tec_cuda_chain){NULL};
    n = product(capture, at, &chain);
    return n > 1 && tec_cuda_gemm_chain(&chain, launch) ? n : 0;
}
