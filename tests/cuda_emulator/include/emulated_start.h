/* emulated_start.h - tec_cuda_start, tec_cuda_start_clusters: how a kernel is started. */
#pragma once

#include "kernels/cuda/launch.h"

#include <cuda_emulator.h>

namespace cuda_emulator
{
/* The kernel in the text of a call: its second argument. Lives as long as the process. `file` is
 * the one that is compiled: the kernel's __shared__ arrays are among those of that file. */
const char *kernel_of(const char *call, const char *file);

template <class... Params, class... Args>
static void start_clusters(const char *call, const char *file, struct tec_cuda_launch *launch,
                           void (*kernel)(Params...), dim3 grid, dim3 block, size_t shared,
                           int cluster, Args... args)
{
    const void *function = reinterpret_cast<const void *>(kernel);
    if (launch->error != cudaSuccess || grid.x == 0 || grid.y == 0 || grid.z == 0)
        return;
    if (cluster > TEC_CUDA_PORTABLE)
        launch->error =
            cudaFuncSetAttribute(function, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (launch->error != cudaSuccess)
        return;
    launch->error = cuda_emulator::launch(
        launch->stream, kernel_of(call, file), function, grid, block, shared, (unsigned)cluster,
        launch->overlap && !launch->first, [=]() { kernel((Params)args...); });
    launch->kernels++;
    launch->first = false;
}

template <class... Params, class... Args>
static void start(const char *call, const char *file, struct tec_cuda_launch *launch,
                  void (*kernel)(Params...), dim3 grid, dim3 block, size_t shared, Args... args)
{
    start_clusters(call, file, launch, kernel, grid, block, shared, 1, args...);
}
} // namespace cuda_emulator

#define tec_cuda_start(...) cuda_emulator::start(#__VA_ARGS__, __BASE_FILE__, __VA_ARGS__)
#define tec_cuda_start_clusters(...) \
    cuda_emulator::start_clusters(#__VA_ARGS__, __BASE_FILE__, __VA_ARGS__)
