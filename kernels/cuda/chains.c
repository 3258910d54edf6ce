/* chains.c - which commands of a list are started together. */
#include "kernels/cuda/gpu.h"

#include <stddef.h>
#include <string.h>

static const struct tec_capture_step *next_of(const struct tec_capture *capture, int at)
{
    const struct tec_capture_step *c = &capture->commands[at];
    bool passes = c->passes && at + 1 < capture->n && c[1].kind == TEC_RUN;
    return passes ? c + 1 : NULL;
}

static const struct {
    enum tec_kernel_id kernel;
    size_t input; /* where its argument has the product's y */
} thens[TEC_CUDA_THEN_COUNT] = {
    [TEC_CUDA_THEN_NOTHING] = {TEC_KERNEL_COUNT, 0},
#define THEN(kernel, args, input) \
    [TEC_CUDA_THEN_##kernel] = {TEC_KERNEL_##kernel, offsetof(struct tec_##args##_args, input)},
#include "kernels/cuda/chains.def"
#undef THEN
};

/* Finds the entry of chains.def for a command that goes on with y. */
static enum tec_cuda_then then_of(const struct tec_capture_step *c, const float *y)
{
    int then = TEC_CUDA_THEN_COUNT - 1;
    while (then > TEC_CUDA_THEN_NOTHING && thens[then].kernel != c->kernel)
        then--;
    if (then == TEC_CUDA_THEN_NOTHING)
        return TEC_CUDA_THEN_NOTHING;
    const float *x;
    memcpy(&x, (const unsigned char *)c->args + thens[then].input, sizeof x);
    return x == y ? (enum tec_cuda_then)then : TEC_CUDA_THEN_NOTHING;
}

/* The product at `at` and what is behind it, if that reads its output; the number of commands. */
static int product(const struct tec_capture *capture, int at, struct tec_cuda_chain *chain)
{
    const struct tec_capture_step *c = &capture->commands[at], *next = next_of(capture, at);
    if (c->kernel != TEC_KERNEL_gemm_bf16)
        return 0;
    chain->gemm = c->args;
    chain->then = next ? then_of(next, chain->gemm->y) : TEC_CUDA_THEN_NOTHING;
    chain->args = chain->then ? next->args : NULL;
    return chain->then ? 2 : 1;
}

/* With the norm in front. */
static int normed(const struct tec_capture *capture, int at, struct tec_cuda_chain *chain)
{
    const struct tec_capture_step *c = &capture->commands[at];
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
