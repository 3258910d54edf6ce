/* failure.c - what a GPU has failed with, the first time, and whether it may still be used. */
#include "base/spin.h"
#include "kernels/cuda/gpu.h"

void tec_gpu_fail(struct tec_gpu *gpu, cudaError_t error, const char *what, const char *detail)
{
    if (atomic_exchange(&gpu->failing, true)) {
        for (int turns = 0; !atomic_load(&gpu->base.failed);)
            tec_spin(&turns); /* the other stream's thread is writing it */
        return;
    }
    enum tec_status status = error == cudaErrorMemoryAllocation ? TEC_NO_MEMORY : TEC_DEVICE;
    tec_fail(&gpu->base.failure, status, "cuda:%d: %s%s%s: %s (%s)", gpu->index, what,
             detail ? " " : "", detail ? detail : "", cudaGetErrorString(error),
             cudaGetErrorName(error));
    atomic_store(&gpu->base.failed, true);
}

bool tec_gpu_use(struct tec_gpu *gpu)
{
    if (atomic_load(&gpu->base.failed))
        return false;
    cudaError_t error = cudaSetDevice(gpu->index);
    if (error != cudaSuccess)
        tec_gpu_fail(gpu, error, "choosing the device", NULL);
    return error == cudaSuccess;
}
