/* emulated_start.h - tec_cuda_start: how a kernel is started. */
#pragma once

#include "kernels/cuda/launch.h"

#include <cuda_emulator.h>

namespace cuda_emulator
{
/* The kernel in the text of a call: its second argument. Lives as long as the process. `file` is
 * the one that is compiled: the kernel's __shared__ arrays are among those of that file. */
const char *kernel_of(const char *call, const char *file);

template <class... Params, class... Args>
static void start(const char *call, const char *file, struct tec_cuda_launch *launch,
                  void (*kernel)(Params...), dim3 grid, dim3 block, size_t shared, Args... args)
{
    if (launch->error != cudaSuccess || grid.x == 0 || grid.y == 0 || grid.z == 0)
        return;
    launch->error = cuda_emulator::launch(
        launch->stream, kernel_of(call, file), reinterpret_cast<const void *>(kernel), grid, block,
        shared, launch->overlap && !launch->first, [=]() { kernel((Params)args...); });
    launch->kernels++;
    launch->first = false;
}
} // namespace cuda_emulator

#define tec_cuda_start(...) cuda_emulator::start(#__VA_ARGS__, __BASE_FILE__, __VA_ARGS__)
