/* emulated_start.h - what kernels/cuda/start.cuh asks of the runtime, and the kernel's name beside
 * it. */
#pragma once

#include "tests/cuda_emulator/include/cuda_emulator_sites.h"

#include <cuda_emulator.h>

namespace cuda_emulator
{
/* The kernel in the text of a call: its second argument. Lives as long as the process. `file` is
 * the one that is compiled: the kernel's __shared__ arrays are among those of that file. */
const char *kernel_of(const char *call, const char *file);
/* The calling thread's next start is of that kernel; and which that was. */
void starts(const char *name);
const char *started();
} // namespace cuda_emulator

/* As in the toolkit, C++ has the kernel itself in place of its address. */
template <class T> static cudaError_t(cudaFuncGetAttributes)(cudaFuncAttributes *facts, T *kernel)
{
    return (cudaFuncGetAttributes)(facts, reinterpret_cast<const void *>(kernel));
}

template <class... Params, class... Args>
static cudaError_t(cudaLaunchKernelEx)(const cudaLaunchConfig_t *config, void (*kernel)(Params...),
                                       Args... args)
{
    return cuda_emulator::launch(*config, cuda_emulator::started(),
                                 reinterpret_cast<const void *>(kernel),
                                 [=]() { kernel(args...); });
}

#include "kernels/cuda/start.cuh"

#define tec_cuda_start(...)                                                        \
    (cuda_emulator::starts(cuda_emulator::kernel_of(#__VA_ARGS__, __BASE_FILE__)), \
     (tec_cuda_start)(__VA_ARGS__))
#define tec_cuda_start_clusters(...)                                               \
    (cuda_emulator::starts(cuda_emulator::kernel_of(#__VA_ARGS__, __BASE_FILE__)), \
     (tec_cuda_start_clusters)(__VA_ARGS__))
