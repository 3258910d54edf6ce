/* cuda_emulator_sites.h - in front of the device's C files and of start.cuh: each call of the API
 * tells the emulator where it stands, so that a test knows which places it has made fail. A
 * function that is missing here has no place, which tests/cuda/failure.c finds. */
#ifndef CUDA_EMULATOR_SITES_H
#define CUDA_EMULATOR_SITES_H

#include <cuda_emulator_control.h>

#define CUDA_EMULATOR_SITE(call) (cuda_emulator_site(__FILE__, __LINE__), call)

#define cudaDeviceGetAttribute(...) CUDA_EMULATOR_SITE(cudaDeviceGetAttribute(__VA_ARGS__))
#define cudaDeviceGetPCIBusId(...) CUDA_EMULATOR_SITE(cudaDeviceGetPCIBusId(__VA_ARGS__))
#define cudaDeviceGetStreamPriorityRange(...) \
    CUDA_EMULATOR_SITE(cudaDeviceGetStreamPriorityRange(__VA_ARGS__))
#define cudaDriverGetVersion(...) CUDA_EMULATOR_SITE(cudaDriverGetVersion(__VA_ARGS__))
#define cudaEventCreateWithFlags(...) CUDA_EMULATOR_SITE(cudaEventCreateWithFlags(__VA_ARGS__))
#define cudaEventDestroy(...) CUDA_EMULATOR_SITE(cudaEventDestroy(__VA_ARGS__))
#define cudaEventRecord(...) CUDA_EMULATOR_SITE(cudaEventRecord(__VA_ARGS__))
#define cudaFree(...) CUDA_EMULATOR_SITE(cudaFree(__VA_ARGS__))
#define cudaFreeHost(...) CUDA_EMULATOR_SITE(cudaFreeHost(__VA_ARGS__))
#define cudaFuncGetAttributes(...) CUDA_EMULATOR_SITE(cudaFuncGetAttributes(__VA_ARGS__))
#define cudaFuncSetAttribute(...) CUDA_EMULATOR_SITE(cudaFuncSetAttribute(__VA_ARGS__))
#define cudaGetDeviceCount(...) CUDA_EMULATOR_SITE(cudaGetDeviceCount(__VA_ARGS__))
#define cudaGetDriverEntryPointByVersion(...) \
    CUDA_EMULATOR_SITE(cudaGetDriverEntryPointByVersion(__VA_ARGS__))
#define cudaGraphAddNode(...) CUDA_EMULATOR_SITE(cudaGraphAddNode(__VA_ARGS__))
#define cudaGraphConditionalHandleCreate(...) \
    CUDA_EMULATOR_SITE(cudaGraphConditionalHandleCreate(__VA_ARGS__))
#define cudaGraphDebugDotPrint(...) CUDA_EMULATOR_SITE(cudaGraphDebugDotPrint(__VA_ARGS__))
#define cudaGraphDestroy(...) CUDA_EMULATOR_SITE(cudaGraphDestroy(__VA_ARGS__))
#define cudaGraphExecDestroy(...) CUDA_EMULATOR_SITE(cudaGraphExecDestroy(__VA_ARGS__))
#define cudaGraphGetNodes(...) CUDA_EMULATOR_SITE(cudaGraphGetNodes(__VA_ARGS__))
#define cudaGraphInstantiate(...) CUDA_EMULATOR_SITE(cudaGraphInstantiate(__VA_ARGS__))
#define cudaGraphLaunch(...) CUDA_EMULATOR_SITE(cudaGraphLaunch(__VA_ARGS__))
#define cudaGraphUpload(...) CUDA_EMULATOR_SITE(cudaGraphUpload(__VA_ARGS__))
#define cudaHostAlloc(...) CUDA_EMULATOR_SITE(cudaHostAlloc(__VA_ARGS__))
#define cudaHostGetDevicePointer(...) CUDA_EMULATOR_SITE(cudaHostGetDevicePointer(__VA_ARGS__))
#define cudaLaunchKernelEx(...) CUDA_EMULATOR_SITE(cudaLaunchKernelEx(__VA_ARGS__))
#define cudaMalloc(...) CUDA_EMULATOR_SITE(cudaMalloc(__VA_ARGS__))
#define cudaMallocHost(...) CUDA_EMULATOR_SITE(cudaMallocHost(__VA_ARGS__))
#define cudaMemGetInfo(...) CUDA_EMULATOR_SITE(cudaMemGetInfo(__VA_ARGS__))
#define cudaMemcpyAsync(...) CUDA_EMULATOR_SITE(cudaMemcpyAsync(__VA_ARGS__))
#define cudaMemsetAsync(...) CUDA_EMULATOR_SITE(cudaMemsetAsync(__VA_ARGS__))
#define cudaOccupancyMaxActiveClusters(...) \
    CUDA_EMULATOR_SITE(cudaOccupancyMaxActiveClusters(__VA_ARGS__))
#define cudaSetDevice(...) CUDA_EMULATOR_SITE(cudaSetDevice(__VA_ARGS__))
#define cudaStreamBeginCapture(...) CUDA_EMULATOR_SITE(cudaStreamBeginCapture(__VA_ARGS__))
#define cudaStreamBeginCaptureToGraph(...) \
    CUDA_EMULATOR_SITE(cudaStreamBeginCaptureToGraph(__VA_ARGS__))
#define cudaStreamCreateWithPriority(...) \
    CUDA_EMULATOR_SITE(cudaStreamCreateWithPriority(__VA_ARGS__))
#define cudaStreamDestroy(...) CUDA_EMULATOR_SITE(cudaStreamDestroy(__VA_ARGS__))
#define cudaStreamEndCapture(...) CUDA_EMULATOR_SITE(cudaStreamEndCapture(__VA_ARGS__))
#define cudaStreamGetCaptureInfo(...) CUDA_EMULATOR_SITE(cudaStreamGetCaptureInfo(__VA_ARGS__))
#define cudaStreamQuery(...) CUDA_EMULATOR_SITE(cudaStreamQuery(__VA_ARGS__))
#define cudaStreamSynchronize(...) CUDA_EMULATOR_SITE(cudaStreamSynchronize(__VA_ARGS__))
#define cudaStreamUpdateCaptureDependencies(...) \
    CUDA_EMULATOR_SITE(cudaStreamUpdateCaptureDependencies(__VA_ARGS__))
#define cudaStreamWaitEvent(...) CUDA_EMULATOR_SITE(cudaStreamWaitEvent(__VA_ARGS__))

#endif
