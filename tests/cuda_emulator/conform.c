/* conform.c - the stand-in's header holds the names, values and functions of the toolkit's own:
 * compiled against the one, and where a toolkit is, against the other. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stddef.h>

/* Declared again: a different signature does not compile. */
#include "tests/cuda_emulator/include/cuda_functions.def"

#define SAME(name, value) _Static_assert((int)(name) == (value), #name)

#define ERROR(name, value, text) SAME(name, value);
#include "tests/cuda_emulator/include/cuda_errors.def"
#undef ERROR

SAME(CU_STREAM_NON_BLOCKING, 1);
SAME(CU_GREEN_CTX_DEFAULT_STREAM, 1);
SAME(CU_DEV_RESOURCE_TYPE_SM, 1);
SAME(sizeof(CUdevResource), 144);
SAME(offsetof(CUdevResource, sm), 96);
SAME(cudaEnableDefault, 0);
SAME(cudaDriverEntryPointSuccess, 0);
SAME(cudaDriverEntryPointSymbolNotFound, 1);
SAME(cudaDriverEntryPointVersionNotSufficent, 2);
SAME(cudaDevAttrMaxThreadsPerBlock, 1);
SAME(cudaDevAttrMaxSharedMemoryPerBlock, 8);
SAME(cudaDevAttrWarpSize, 10);
SAME(cudaDevAttrClockRate, 13);
SAME(cudaDevAttrMultiProcessorCount, 16);
SAME(cudaDevAttrIntegrated, 18);
SAME(cudaDevAttrCanMapHostMemory, 19);
SAME(cudaDevAttrConcurrentKernels, 31);
SAME(cudaDevAttrMemoryClockRate, 36);
SAME(cudaDevAttrGlobalMemoryBusWidth, 37);
SAME(cudaDevAttrL2CacheSize, 38);
SAME(cudaDevAttrMaxThreadsPerMultiProcessor, 39);
SAME(cudaDevAttrUnifiedAddressing, 41);
SAME(cudaDevAttrComputeCapabilityMajor, 75);
SAME(cudaDevAttrComputeCapabilityMinor, 76);
SAME(cudaDevAttrStreamPrioritiesSupported, 78);
SAME(cudaDevAttrMaxSharedMemoryPerMultiprocessor, 81);
SAME(cudaDevAttrManagedMemory, 83);
SAME(cudaDevAttrPageableMemoryAccess, 88);
SAME(cudaDevAttrConcurrentManagedAccess, 89);
SAME(cudaDevAttrMaxSharedMemoryPerBlockOptin, 97);
SAME(cudaDevAttrMaxPersistingL2CacheSize, 108);
SAME(cudaDeviceScheduleAuto, 0);
SAME(cudaDeviceScheduleSpin, 1);
SAME(cudaDeviceScheduleYield, 2);
SAME(cudaDeviceScheduleBlockingSync, 4);
SAME(cudaDeviceMapHost, 8);
SAME(cudaFuncAttributeMaxDynamicSharedMemorySize, 8);
SAME(cudaFuncAttributePreferredSharedMemoryCarveout, 9);
SAME(cudaFuncAttributeNonPortableClusterSizeAllowed, 14);
SAME(cudaLaunchAttributeIgnore, 0);
SAME(cudaLaunchAttributeClusterDimension, 4);
SAME(cudaLaunchAttributeProgrammaticStreamSerialization, 6);
SAME(sizeof(((cudaLaunchAttributeValue *)0)->clusterDim), 12);
SAME(cudaMemcpyHostToHost, 0);
SAME(cudaMemcpyHostToDevice, 1);
SAME(cudaMemcpyDeviceToHost, 2);
SAME(cudaMemcpyDeviceToDevice, 3);
SAME(cudaMemcpyDefault, 4);
SAME(cudaMemoryTypeUnregistered, 0);
SAME(cudaMemoryTypeHost, 1);
SAME(cudaMemoryTypeDevice, 2);
SAME(cudaMemoryTypeManaged, 3);
SAME(cudaHostAllocDefault, 0);
SAME(cudaHostAllocPortable, 1);
SAME(cudaHostAllocMapped, 2);
SAME(cudaHostAllocWriteCombined, 4);
SAME(cudaMemAttachGlobal, 1);
SAME(cudaMemAttachHost, 2);
SAME(cudaStreamDefault, 0);
SAME(cudaStreamNonBlocking, 1);
SAME(cudaEventDefault, 0);
SAME(cudaEventBlockingSync, 1);
SAME(cudaEventDisableTiming, 2);
SAME(cudaEventInterprocess, 4);
SAME(cudaEventRecordDefault, 0);
SAME(cudaEventRecordExternal, 1);
SAME(cudaEventWaitDefault, 0);
SAME(cudaEventWaitExternal, 1);
SAME(cudaStreamCaptureStatusNone, 0);
SAME(cudaStreamCaptureStatusActive, 1);
SAME(cudaStreamCaptureStatusInvalidated, 2);
SAME(cudaStreamCaptureModeGlobal, 0);
SAME(cudaStreamCaptureModeThreadLocal, 1);
SAME(cudaStreamCaptureModeRelaxed, 2);
SAME(cudaStreamAddCaptureDependencies, 0);
SAME(cudaStreamSetCaptureDependencies, 1);
SAME(cudaGraphDependencyTypeDefault, 0);
SAME(cudaGraphDependencyTypeProgrammatic, 1);
SAME(cudaGraphKernelNodePortDefault, 0);
SAME(cudaGraphKernelNodePortProgrammatic, 1);
SAME(cudaGraphKernelNodePortLaunchCompletion, 2);
SAME(sizeof(cudaGraphEdgeData), 8);
SAME(cudaGraphNodeTypeKernel, 0);
SAME(cudaGraphNodeTypeMemcpy, 1);
SAME(cudaGraphNodeTypeMemset, 2);
SAME(cudaGraphNodeTypeHost, 3);
SAME(cudaGraphNodeTypeGraph, 4);
SAME(cudaGraphNodeTypeEmpty, 5);
SAME(cudaGraphNodeTypeWaitEvent, 6);
SAME(cudaGraphNodeTypeEventRecord, 7);
SAME(cudaGraphNodeTypeMemAlloc, 10);
SAME(cudaGraphNodeTypeMemFree, 11);
SAME(cudaGraphNodeTypeConditional, 13);
SAME(cudaGraphCondAssignDefault, 1);
SAME(cudaGraphCondTypeIf, 0);
SAME(cudaGraphCondTypeWhile, 1);
SAME(cudaGraphCondTypeSwitch, 2);
SAME(sizeof(struct cudaGraphNodeParams), 256);
SAME(cudaGraphDebugDotFlagsVerbose, 1);
SAME(cudaGraphInstantiateFlagAutoFreeOnLaunch, 1);
SAME(cudaGraphInstantiateFlagUpload, 2);
SAME(cudaGraphInstantiateFlagDeviceLaunch, 4);
SAME(cudaGraphInstantiateFlagUseNodePriority, 8);
SAME(cudaGraphExecUpdateSuccess, 0);
SAME(cudaGraphExecUpdateError, 1);
SAME(cudaGraphExecUpdateErrorTopologyChanged, 2);
SAME(cudaGraphExecUpdateErrorNodeTypeChanged, 3);
SAME(cudaGraphExecUpdateErrorFunctionChanged, 4);
SAME(cudaGraphExecUpdateErrorParametersChanged, 5);
SAME(cudaGraphExecUpdateErrorNotSupported, 6);
SAME(cudaGraphExecUpdateErrorUnsupportedFunctionChange, 7);
SAME(cudaGraphExecUpdateErrorAttributesChanged, 8);
