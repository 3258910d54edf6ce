/* dump.c - each graph as a DOT file, as the runtime describes it: to see which kernels the commands
 * of a list became on a device, in which order. */
#include "kernels/cuda/gpu.h"

#include <stdio.h>
#include <stdlib.h>

cudaError_t tec_gpu_dump(struct tec_gpu *gpu, cudaGraph_t graph)
{
    const char *folder = getenv("TECTUM_CUDA_GRAPHS");
    char path[4096];
    if (!folder || !folder[0])
        return cudaSuccess;
    int n = snprintf(path, sizeof path, "%s/cuda%d_%04d.dot", folder, gpu->index, ++gpu->dumped);
    if (n < 0 || (size_t)n >= sizeof path)
        return cudaErrorInvalidValue;
    return cudaGraphDebugDotPrint(graph, path, cudaGraphDebugDotFlagsVerbose);
}
