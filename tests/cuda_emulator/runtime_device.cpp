/* runtime_device.cpp - the one device, its facts, and functions of it. */
#include "runtime.h"

#include <cstdio>
#include <cstring>

namespace cuda_emulator::runtime
{

enum { VERSION = CUDART_VERSION, SHARED = 48 << 10, L2 = 50 << 20 };

/* Shared memory that a block may have at most. */
size_t shared_optin()
{
    switch (the().capability) {
    case 80:
    case 87:
        return 163 << 10;
    case 86:
    case 89:
    case 120:
    case 121:
        return 99 << 10;
    default:
        return 227 << 10;
    }
}

/* Blocks along z that are to be a cluster; 1: each is alone. */
unsigned cluster_of(const cudaLaunchConfig_t &config)
{
    for (unsigned i = 0; i < config.numAttrs; i++)
        if (config.attrs[i].id == cudaLaunchAttributeClusterDimension)
            return config.attrs[i].val.clusterDim.z;
    return 1;
}

/* What a start, or a question, with such clusters along z would be told. */
cudaError_t check_cluster(const void *function, unsigned cluster, unsigned blocks)
{
    enum { PORTABLE = 8, MOST = 16 };
    if (cluster == 1)
        return cudaSuccess;
    bool large = the().large_clusters.count(function) > 0;
    if (the().capability < 90 || cluster < 1 || cluster > (large ? MOST : PORTABLE))
        return cudaErrorInvalidClusterSize;
    return blocks % cluster ? cudaErrorInvalidValue : cudaSuccess;
}

/* What a kernel may have until it asks for more. */
size_t shared_limit(const void *function)
{
    auto limit = the().shared_limits.find(function);
    return limit == the().shared_limits.end() ? (size_t)SHARED : (size_t)limit->second;
}

/* A cluster lies in a group of at most 16 multiprocessors; blocks find room by their threads and
 * their shared memory. */
static cudaError_t clusters_held(int *to, const void *function, const cudaLaunchConfig_t &c)
{
    enum { GROUP = 16, THREADS = 2048, RESERVED = 1 << 10 };
    unsigned size = cluster_of(c), threads = c.blockDim.x * c.blockDim.y * c.blockDim.z;
    cudaError_t error = check_cluster(function, size, c.gridDim.z);
    if (error != cudaSuccess || !threads || c.dynamicSmemBytes > shared_limit(function))
        return error != cudaSuccess ? error : cudaErrorInvalidValue;
    size_t by_shared = (shared_optin() + RESERVED) / (c.dynamicSmemBytes + RESERVED);
    size_t each = THREADS / threads < by_shared ? THREADS / threads : by_shared;
    size_t processors = (size_t)the().processors, group = processors < GROUP ? processors : GROUP;
    *to = (int)(processors / group * (group * each / size));
    return cudaSuccess;
}

static void describe(cudaDeviceProp &p)
{
    state &s = the();
    memset(&p, 0, sizeof p);
    snprintf(p.name, sizeof p.name, "emulated sm_%d", s.capability);
    p.totalGlobalMem = s.memory;
    p.sharedMemPerBlock = SHARED;
    p.regsPerBlock = p.regsPerMultiprocessor = 65536;
    p.warpSize = 32;
    p.maxThreadsPerBlock = 1024;
    p.major = s.capability / 10;
    p.minor = s.capability % 10;
    p.multiProcessorCount = s.processors;
    p.canMapHostMemory = p.concurrentKernels = p.unifiedAddressing = 1;
    p.asyncEngineCount = 2;
    p.memoryBusWidth = 512;
    p.l2CacheSize = L2;
    p.maxThreadsPerMultiProcessor = 2048;
    p.streamPrioritiesSupported = p.managedMemory = p.concurrentManagedAccess = 1;
    p.sharedMemPerBlockOptin = shared_optin();
    p.reservedSharedMemPerBlock = 1024;
    p.sharedMemPerMultiprocessor = p.sharedMemPerBlockOptin + 1024;
    p.cooperativeLaunch = 1;
    p.maxBlocksPerMultiProcessor = 32;
}

static cudaError_t attribute(int *to, cudaDeviceAttr attr)
{
    cudaDeviceProp p;
    describe(p);
    const struct {
        cudaDeviceAttr attr;
        int value;
    } all[] = {
        {cudaDevAttrMaxThreadsPerBlock, p.maxThreadsPerBlock},
        {cudaDevAttrMaxSharedMemoryPerBlock, SHARED},
        {cudaDevAttrWarpSize, p.warpSize},
        {cudaDevAttrClockRate, 1980000},
        {cudaDevAttrMultiProcessorCount, p.multiProcessorCount},
        {cudaDevAttrIntegrated, p.integrated},
        {cudaDevAttrCanMapHostMemory, p.canMapHostMemory},
        {cudaDevAttrConcurrentKernels, p.concurrentKernels},
        {cudaDevAttrMemoryClockRate, 2619000},
        {cudaDevAttrGlobalMemoryBusWidth, p.memoryBusWidth},
        {cudaDevAttrL2CacheSize, p.l2CacheSize},
        {cudaDevAttrMaxThreadsPerMultiProcessor, p.maxThreadsPerMultiProcessor},
        {cudaDevAttrUnifiedAddressing, p.unifiedAddressing},
        {cudaDevAttrComputeCapabilityMajor, p.major},
        {cudaDevAttrComputeCapabilityMinor, p.minor},
        {cudaDevAttrStreamPrioritiesSupported, p.streamPrioritiesSupported},
        {cudaDevAttrMaxSharedMemoryPerMultiprocessor, (int)p.sharedMemPerMultiprocessor},
        {cudaDevAttrManagedMemory, p.managedMemory},
        {cudaDevAttrPageableMemoryAccess, p.pageableMemoryAccess},
        {cudaDevAttrConcurrentManagedAccess, p.concurrentManagedAccess},
        {cudaDevAttrMaxSharedMemoryPerBlockOptin, (int)p.sharedMemPerBlockOptin},
        {cudaDevAttrMaxPersistingL2CacheSize, p.persistingL2CacheMaxSize},
    };
    for (const auto &a : all)
        if (a.attr == attr) {
            *to = a.value;
            return cudaSuccess;
        }
    return cudaErrorInvalidValue;
}

static void forget_streams()
{
    state &s = the();
    drop_work();
    for (const capture_ref &c : s.captures)
        c->over = true;
    s.captures.clear();
    for (cudaStream_t stream : s.streams)
        bury(stream);
    s.streams.clear();
    for (cudaEvent_t event : s.events)
        bury(event);
    s.events.clear();
    s.count.streams = s.count.events = 0;
}

} // namespace cuda_emulator::runtime

using namespace cuda_emulator::runtime;

/* On failure the count is left as it was, as without a driver. */
cudaError_t cudaGetDeviceCount(int *count)
{
    return api(__func__, PLAIN, [&] {
        if (!count)
            return cudaErrorInvalidValue;
        *count = 1;
        return cudaSuccess;
    });
}

cudaError_t cudaSetDevice(int device)
{
    return api(__func__, PLAIN, [&] {
        if (device)
            return cudaErrorInvalidDevice;
        leave_context();
        return cudaSuccess;
    });
}

cudaError_t cudaGetDevice(int *device)
{
    return api(__func__, PLAIN, [&] {
        if (!device)
            return cudaErrorInvalidValue;
        *device = 0;
        return cudaSuccess;
    });
}

cudaError_t cudaSetDeviceFlags(unsigned flags)
{
    return api(__func__, PLAIN,
               [&] { return flags & ~0x1fU ? cudaErrorInvalidValue : cudaSuccess; });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *prop, int device)
{
    return api(__func__, PLAIN, [&] {
        if (!prop || device)
            return prop ? cudaErrorInvalidDevice : cudaErrorInvalidValue;
        describe(*prop);
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attr, int device)
{
    return api(__func__, PLAIN, [&] {
        if (!value || device)
            return value ? cudaErrorInvalidDevice : cudaErrorInvalidValue;
        return attribute(value, attr);
    });
}

cudaError_t cudaDeviceGetPCIBusId(char *pciBusId, int len, int device)
{
    return api(__func__, PLAIN, [&] {
        if (!pciBusId || len < 13 || device)
            return cudaErrorInvalidValue;
        snprintf(pciBusId, (size_t)len, "0000:00:00.0");
        return cudaSuccess;
    });
}

cudaError_t cudaDriverGetVersion(int *driverVersion)
{
    return api(__func__, ANYWHERE, [&] {
        if (!driverVersion)
            return cudaErrorInvalidValue;
        int version = the().driver ? the().driver : VERSION;
        *driverVersion = the().absent == cudaErrorInsufficientDriver ? 0 : version;
        return cudaSuccess;
    });
}

cudaError_t cudaRuntimeGetVersion(int *runtimeVersion)
{
    return api(__func__, ANYWHERE, [&] {
        if (!runtimeVersion)
            return cudaErrorInvalidValue;
        *runtimeVersion = VERSION;
        return cudaSuccess;
    });
}

/* Every handle and pointer is void afterwards. */
cudaError_t cudaDeviceReset(void)
{
    return api(__func__, ANYWHERE, [&] {
        if (the().absent != cudaSuccess)
            return the().absent;
        forget_streams();
        forget_graphs();
        forget_memory();
        forget_contexts();
        the().shared_limits.clear();
        the().large_clusters.clear();
        the().sticky = cudaSuccess;
        return cudaSuccess;
    });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attr, const void *func)
{
    return api(__func__, PLAIN, [&] {
        if (!attr || !func)
            return func ? cudaErrorInvalidValue : cudaErrorInvalidDeviceFunction;
        *attr = {the().code, the().capability, (int)shared_limit(func)};
        return cudaSuccess;
    });
}

cudaError_t cudaFuncSetAttribute(const void *func, cudaFuncAttribute attr, int value)
{
    return api(__func__, PLAIN, [&] {
        if (!func)
            return cudaErrorInvalidDeviceFunction;
        if (attr == cudaFuncAttributePreferredSharedMemoryCarveout)
            return value < -1 || value > 100 ? cudaErrorInvalidValue : cudaSuccess;
        if (attr == cudaFuncAttributeNonPortableClusterSizeAllowed) {
            if (value)
                the().large_clusters.insert(func);
            return cudaSuccess;
        }
        if (attr != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
            (size_t)value > shared_optin())
            return cudaErrorInvalidValue;
        the().shared_limits[func] = value;
        return cudaSuccess;
    });
}

cudaError_t cudaOccupancyMaxActiveClusters(int *numClusters, const void *func,
                                           const cudaLaunchConfig_t *launchConfig)
{
    return api(__func__, PLAIN, [&] {
        if (!numClusters || !func || !launchConfig)
            return cudaErrorInvalidValue;
        return clusters_held(numClusters, func, *launchConfig);
    });
}
