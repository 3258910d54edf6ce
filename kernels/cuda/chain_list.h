/* chain_list.h - finds the commands of a recorded list that may be done by one kernel; plain C, for
 * the device and for the model of kernels (kernels/grids.h). */
#ifndef TEC_KERNELS_CUDA_CHAIN_LIST_H
#define TEC_KERNELS_CUDA_CHAIN_LIST_H

#include "kernels/cuda/chain_rules.h"
#include "kernels/device_kind.h"

#include <string.h>

static inline const struct tec_capture_step *chain_next(const struct tec_capture *capture, int at)
{
    const struct tec_capture_step *c = &capture->commands[at];
    bool passes = c->passes && at + 1 < capture->n && c[1].kind == TEC_RUN;
    return passes ? c + 1 : NULL;
}

/* `input`: where its argument has the product's y. */
static const struct chain_then {
    enum tec_kernel_id kernel;
    size_t input;
} chain_thens[TEC_CUDA_THEN_COUNT] = {
    [TEC_CUDA_THEN_NOTHING] = {TEC_KERNEL_COUNT, 0},
#define THEN(kernel, args, input) \
    [TEC_CUDA_THEN_##kernel] = {TEC_KERNEL_##kernel, offsetof(struct tec_##args##_args, input)},
#include "kernels/cuda/chains.def"
#undef THEN
};

/* Finds the entry of chains.def for a command that goes on with y. */
static inline enum tec_cuda_then chain_then_of(const struct tec_capture_step *c, const float *y)
{
    int then = TEC_CUDA_THEN_COUNT - 1;
    while (then > TEC_CUDA_THEN_NOTHING && chain_thens[then].kernel != c->kernel)
        then--;
    if (then == TEC_CUDA_THEN_NOTHING)
        return TEC_CUDA_THEN_NOTHING;
    const float *x;
    memcpy(&x, (const unsigned char *)c->args + chain_thens[then].input, sizeof x);
    return x == y ? (enum tec_cuda_then)then : TEC_CUDA_THEN_NOTHING;
}

/* The product at `at` and what is behind it, if that reads its output; the number of commands. */
static inline int chain_product(const struct tec_capture *capture, int at,
                                struct tec_cuda_chain *chain)
{
    const struct tec_capture_step *c = &capture->commands[at], *next = chain_next(capture, at);
    if (c->kernel != TEC_KERNEL_gemm_bf16 && c->kernel != TEC_KERNEL_gemm_int8)
        return 0;
    chain->gemm = c->args;
    chain->int8 = c->kernel == TEC_KERNEL_gemm_int8;
    chain->then = next ? chain_then_of(next, chain->gemm->y) : TEC_CUDA_THEN_NOTHING;
    chain->args = chain->then ? next->args : NULL;
    return chain->then ? 2 : 1;
}

/* With the norm in front. */
static inline int chain_normed(const struct tec_capture *capture, int at,
                               struct tec_cuda_chain *chain)
{
    const struct tec_capture_step *c = &capture->commands[at];
    if (c->kernel != TEC_KERNEL_rmsnorm || !chain_next(capture, at))
        return 0;
    int n = chain_product(capture, at + 1, chain);
    chain->norm = c->args;
    bool read = n > 0 && chain->gemm->x == chain->norm->y && chain->gemm->rows == chain->norm->rows;
    return read ? n + 1 : 0;
}

/* Whether the product at `at` leaves sums of squares for what stands directly behind it on the same
 * way: so nobody else can have written its y, or them, in between. */
static inline bool chain_leaves(const struct tec_capture *capture, int at,
                                const struct tec_cuda_facts *facts)
{
    struct tec_cuda_chain chain = {.gemm = NULL};
    if (at < 0 || at + 2 >= capture->n)
        return false;
    const struct tec_capture_step *c = &capture->commands[at];
    bool product = c->kernel == TEC_KERNEL_gemm_bf16 || c->kernel == TEC_KERNEL_gemm_int8;
    bool follows = product && c->kind == TEC_RUN && c[1].kind == TEC_RUN &&
                   c[1].branch == c->branch && !c[1].joins;
    const struct tec_cuda_chain first = {.gemm = product ? c->args : NULL,
                                         .int8 = c->kernel == TEC_KERNEL_gemm_int8};
    return follows && chain_normed(capture, at + 1, &chain) > 1 &&
           chain_left(&first, &chain, facts);
}

/* Offers the commands from `at` on to `take` as one kernel: all of them first, then fewer. Returns
 * how many were taken; 0: none, the command at `at` is started alone. */
static inline int chain_at(const struct tec_capture *capture, int at,
                           const struct tec_cuda_facts *facts,
                           bool (*take)(const struct tec_cuda_chain *chain, void *user), void *user)
{
    struct tec_cuda_chain chain = {.leaves = chain_leaves(capture, at, facts)};
    if (chain.leaves) {
        chain.gemm = capture->commands[at].args;
        chain.int8 = capture->commands[at].kernel == TEC_KERNEL_gemm_int8;
        return take(&chain, user);
    }
    int n = chain_normed(capture, at, &chain);
    chain.left = n > 1 && chain_leaves(capture, at - 1, facts);
    if (n > 1 && take(&chain, user))
        return n;
    chain.then = TEC_CUDA_THEN_NOTHING;
    chain.args = NULL;
    if (n > 2 && take(&chain, user))
        return 2; /* what is behind does not go with it */
    chain = (struct tec_cuda_chain){.gemm = NULL};
    n = chain_product(capture, at, &chain);
    return n > 1 && take(&chain, user) ? n : 0;
}

#endif
