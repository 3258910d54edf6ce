/* cuda_runtime_api.h - temporary: until the stand-in for the runtime is here. */
#ifndef TEC_EMULATED_CUDA_RUNTIME_API_H
#define TEC_EMULATED_CUDA_RUNTIME_API_H

#include <stddef.h>

typedef enum cudaError { cudaSuccess = 0, cudaErrorInvalidValue = 1 } cudaError_t;
typedef struct CUstream_st *cudaStream_t;

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
#ifdef __cplusplus
    constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c)
    {
    }
#endif
};
#ifndef __cplusplus
typedef struct uint3 uint3;
typedef struct dim3 dim3;
#endif

#endif
