/* control.cu - one thread each: a mark for the host, a time stamp, the condition of a loop. */
#include "kernels/cuda/control.h"
#include "kernels/cuda/lang.cuh"

static __global__ void stamp_kernel(unsigned long long *to, const unsigned long long *value)
{
    wait_previous();
    release_next();
    publish(to, *(const volatile unsigned long long *)value); /* the host changes it */
}

void tec_cuda_stamp(struct tec_cuda_launch *launch, unsigned long long *to,
                    const unsigned long long *value)
{
    tec_cuda_start(launch, stamp_kernel, dim3(1), dim3(1), 0, to, value);
}

static __global__ void time_kernel(uint64_t *to)
{
    wait_previous();
    release_next();
    *to = device_clock();
}

void tec_cuda_time(struct tec_cuda_launch *launch, uint64_t *to)
{
    tec_cuda_start(launch, time_kernel, dim3(1), dim3(1), 0, to);
}

static __global__ void loop_kernel(cudaGraphConditionalHandle handle, const int *count,
                                   const int *stop, int *turn, bool first)
{
    wait_previous();
    release_next();
    int next = first ? 0 : *turn + 1;
    *turn = next;
    cudaGraphSetConditional(handle, next < *count && (first || !*stop) ? 1U : 0U);
}

void tec_cuda_loop(struct tec_cuda_launch *launch, cudaGraphConditionalHandle handle,
                   const int *count, const int *stop, int *turn, bool first)
{
    tec_cuda_start(launch, loop_kernel, dim3(1), dim3(1), 0, handle, count, stop, turn, first);
}
