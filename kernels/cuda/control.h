/* control.h - kernels that the device itself needs: marks, stamps, and the condition of a loop. */
#ifndef TEC_KERNELS_CUDA_CONTROL_H
#define TEC_KERNELS_CUDA_CONTROL_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Tell the host that everything before this has ended: *to becomes *value as it is when the kernel
 * runs. Both are host memory that the device reads and writes. */
void tec_cuda_stamp(struct tec_cuda_launch *launch, unsigned long long *to,
                    const unsigned long long *value);

/* Write the device's clock, in nanoseconds, when everything before this has ended. To memory of the
 * device. */
void tec_cuda_time(struct tec_cuda_launch *launch, uint64_t *to);

/* Whether the body of a conditional WHILE node runs (again). `first`, in front of the node: *turn
 * becomes 0, and the body runs if *count > 0. Else, last in the body: one more turn has passed, and
 * another follows if turns remain and *stop is 0. */
void tec_cuda_loop(struct tec_cuda_launch *launch, cudaGraphConditionalHandle handle,
                   const int *count, const int *stop, int *turn, bool first);

#ifdef __cplusplus
}
#endif

#endif
