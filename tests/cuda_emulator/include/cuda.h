/* cuda.h - the part of the driver API that the device looks up by name, for the stand-in: green
 * contexts. Names, types, values and layouts are those of the toolkit's header of the same name. */
#ifndef CUDA_EMULATOR_DRIVER_API_H
#define CUDA_EMULATOR_DRIVER_API_H

#include <cuda_runtime_api.h>

typedef enum cudaError CUresult; /* the same numbers */
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUgreenCtx_st *CUgreenCtx;
typedef struct CUdevResourceDesc_st *CUdevResourceDesc;
typedef cudaStream_t CUstream;

enum { CU_STREAM_NON_BLOCKING = 1, CU_GREEN_CTX_DEFAULT_STREAM = 1 };
typedef enum { CU_DEV_RESOURCE_TYPE_INVALID = 0, CU_DEV_RESOURCE_TYPE_SM = 1 } CUdevResourceType;

typedef struct {
    unsigned smCount;
    unsigned minSmPartitionSize;
    unsigned smCoscheduledAlignment;
} CUdevSmResource;

typedef struct {
    CUdevResourceType type;
    unsigned char _internal_padding[92];
    union {
        CUdevSmResource sm;
        unsigned char _oversize[48];
    };
} CUdevResource;

#endif
