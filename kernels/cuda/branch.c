/* branch.c - where the branch of a capture leaves its stream and comes back. */
#include "kernels/cuda/gpu.h"

bool tec_gpu_branch_wanted(const struct tec_device_options *options)
{
    enum { FEWEST = 64 }; /* multiprocessors; with fewer a layer fills the device (decision 050) */
    int n = 0;
    if (!options->branches || tec_gpu_switched("TECTUM_CUDA_BRANCH", "0"))
        return false;
    if (tec_gpu_switched("TECTUM_CUDA_BRANCH", "1"))
        return true;
    (void)cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, options->index);
    return n >= FEWEST;
}

cudaError_t tec_gpu_branch_create(struct tec_gpu_branch *branch)
{
    cudaError_t error = cudaEventCreateWithFlags(&branch->leaves, cudaEventDisableTiming);
    return error != cudaSuccess ? error
                                : cudaEventCreateWithFlags(&branch->comes, cudaEventDisableTiming);
}

void tec_gpu_branch_destroy(struct tec_gpu_branch *branch)
{
    if (branch->leaves)
        (void)cudaEventDestroy(branch->leaves);
    if (branch->comes)
        (void)cudaEventDestroy(branch->comes);
}

/* What is captured on `to` now follows what is on `from`. */
static cudaError_t follow(cudaStream_t to, cudaStream_t from, cudaEvent_t event)
{
    cudaError_t error = cudaEventRecord(event, from);
    return error != cudaSuccess ? error : cudaStreamWaitEvent(to, event, 0);
}

cudaError_t tec_gpu_branch_leave(struct tec_gpu_branch *branch, struct tec_gpu_stream *s)
{
    branch->s.launch.first = s->launch.first = true;
    return follow(branch->s.stream, s->stream, branch->leaves);
}

cudaError_t tec_gpu_branch_join(struct tec_gpu_branch *branch, struct tec_gpu_stream *s)
{
    s->launch.first = true;
    return follow(s->stream, branch->s.stream, branch->comes);
}
