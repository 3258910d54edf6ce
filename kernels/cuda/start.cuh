/* start.cuh - how a kernel is started: on the launch's stream, with the shared memory that it
 * wants. */
#pragma once

#include "kernels/cuda/launch.h"

/* Start a kernel whose blocks run at the same time by `cluster` of them along z; 1: each by itself.
 * Does nothing after a failure, and remembers the first; an empty grid is nothing to do. */
template <class... Params, class... Args>
static void tec_cuda_start_clusters(struct tec_cuda_launch *launch, void (*kernel)(Params...),
                                    dim3 grid, dim3 block, size_t shared, int cluster, Args... args)
{
    cudaFuncAttributes facts = {};
    if (launch->error != cudaSuccess || grid.x == 0 || grid.y == 0 || grid.z == 0)
        return;
    launch->error = cudaFuncGetAttributes(&facts, kernel);
    if (launch->error == cudaSuccess && (int)shared > facts.maxDynamicSharedSizeBytes)
        launch->error = cudaFuncSetAttribute(
            (const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    if (launch->error == cudaSuccess && cluster > TEC_CUDA_PORTABLE)
        launch->error = cudaFuncSetAttribute((const void *)kernel,
                                             cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (launch->error != cudaSuccess)
        return;
    cudaLaunchAttribute attributes[2] = {};
    unsigned n = 0;
    /* Code for older devices waits for nothing: see wait_previous. */
    if (launch->overlap && !launch->first && facts.ptxVersion >= 90) {
        attributes[n].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attributes[n++].val.programmaticStreamSerializationAllowed = 1;
    }
    if (cluster > 1) {
        attributes[n].id = cudaLaunchAttributeClusterDimension;
        attributes[n].val.clusterDim.x = attributes[n].val.clusterDim.y = 1;
        attributes[n++].val.clusterDim.z = (unsigned)cluster;
    }
    cudaLaunchConfig_t config = {grid, block, shared, launch->stream, attributes, n};
    launch->error = cudaLaunchKernelEx(&config, kernel, (Params)args...);
    launch->kernels++;
    launch->first = false;
}

template <class... Params, class... Args>
static void tec_cuda_start(struct tec_cuda_launch *launch, void (*kernel)(Params...), dim3 grid,
                           dim3 block, size_t shared, Args... args)
{
    tec_cuda_start_clusters(launch, kernel, grid, block, shared, 1, args...);
}
