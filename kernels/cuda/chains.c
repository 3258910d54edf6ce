/* chains.c - starts commands of a list: alone or together, with terms that go from one kernel to
 * the next. */
#include "kernels/cuda/chain_terms.h"
#include "kernels/cuda/gpu.h"

/* One line for each kernel: how it is started. */
typedef void (*launcher)(const void *args, struct tec_cuda_launch *launch);

#define KERNEL(name, args)                                              \
    static void launch_##name(const void *a, struct tec_cuda_launch *l) \
    {                                                                   \
        tec_cuda_##name((const struct tec_##args##_args *)a, l);        \
    }
#include "kernels/kernels.def"
#undef KERNEL

static const launcher launchers[TEC_KERNEL_COUNT] = {
#define KERNEL(name, args) [TEC_KERNEL_##name] = launch_##name,
#include "kernels/kernels.def"
#undef KERNEL
};

/* A start at command `at` of a capture. */
struct starting {
    const struct tec_capture *capture;
    int at;
    struct tec_cuda_launch *launch;
};

/* What the kernel in front of the command at `at` leaves for it. */
static struct tec_cuda_terms terms_for(const struct tec_capture *capture, int at,
                                       const struct tec_cuda_launch *launch)
{
    struct tec_cuda_facts facts = tec_cuda_facts_of(launch);
    struct chain_handed handed = chain_handed_to(capture, at, &facts);
    void *sums = launch->partials;
    return (struct tec_cuda_terms){handed.x,      handed.among_sums ? sums : launch->terms,
                                   handed.terms,  handed.k,
                                   handed.digits, handed.rows};
}

static bool start(const struct tec_cuda_chain *chain, void *user)
{
    const struct starting *s = user;
    s->launch->leave = terms_for(s->capture, s->at + chain_length(chain), s->launch);
    return tec_cuda_gemm_chain(chain, s->launch);
}

int tec_gpu_start(const struct tec_capture *capture, int at, struct tec_cuda_launch *launch)
{
    const struct tec_capture_step *c = &capture->commands[at];
    struct tec_cuda_facts facts = tec_cuda_facts_of(launch);
    struct starting s = {capture, at, launch};
    launch->ready = terms_for(capture, at, launch);
    int n = chain_at(capture, at, &facts, start, &s);
    if (n == 0) {
        launch->leave = terms_for(capture, at + 1, launch);
        launchers[c->kernel](c->args, launch);
    }
    if ((launch->ready.of || launch->leave.of) && launch->error == cudaSuccess)
        launch->error = cudaErrorInvalidValue; /* somebody would read what nobody wrote */
    return n ? n : 1;
}
