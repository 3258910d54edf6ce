/* cuda_runtime.h - the device language as C++: qualifiers, built-in variables and functions. */
#pragma once

#include <cuda_runtime_api.h>

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ /* so also in __attribute__((__noinline__)) of system headers */
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

/* One block runs at a time, so its arrays are static. They become NaN before each block, and so
 * would any other variable of a .cu file: kernels have none. Address sanitizer guards their ends.
 */
#define __shared__ static

#include <emulated_vectors.h>

#include <emulated_thread.h>

#include <emulated_math.h>

#include <emulated_warp.h>

#include <emulated_atomics.h>
