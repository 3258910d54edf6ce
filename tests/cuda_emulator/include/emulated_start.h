/* emulated_start.h - tec_cuda_start: how a kernel is started. */
#pragma once

#include "kernels/cuda/launch.h"

#include <cuda_emulator.h>

namespace cuda_emulator
{
/* The kernel in the text of a call: its second argument. Lives as long as the process. */
const char *kernel_of(const char *call);

template <class... Params, class... Args>
static void start(const char *call, struct tec_cuda_launch *launch, void (*kernel)(Params...),
                  dim3 grid, dim3 block, size_t shared, Args... args)
{
    if (launch->error != cudaSuccess || grid.x == 0 || grid.y == 0 || grid.z == 0)
        return;
    launch->error = cuda_emulator::launch(
        launch->stream, kernel_of(call), reinterpret_cast<const void *>(kernel), grid, block,
        shared, launch->overlap && !launch->first, [=]() { kernel((Params)args...); });
    launch->kernels++;
    launch->first = false;
}
} // namespace cuda_emulator

#define tec_cuda_start(...) cuda_emulator::start(#__VA_ARGS__, __VA_ARGS__)
