/* runtime_green.cpp - green contexts: functions of the driver, looked up by name, and which context
 * is a thread's own. */
#include "runtime.h"

#include <algorithm>
#include <cstring>

struct CUdevResourceDesc_st {
    unsigned processors;
};

namespace cuda_emulator::runtime
{

static thread_local CUgreenCtx current;

CUgreenCtx current_context()
{
    return current;
}

void leave_context()
{
    current = nullptr;
}

void forget_contexts()
{
    state &s = the();
    for (CUgreenCtx green : s.greens)
        bury(green);
    s.greens.clear();
    s.count.greens = 0;
    s.newest_green = nullptr;
    current = nullptr;
}

/* As the driver rounds: groups that share a cluster. */
static unsigned group()
{
    return the().capability >= 90 ? 8 : 2;
}

static CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    return api(__func__, PLAIN, [&] {
        *device = ordinal;
        return ordinal ? cudaErrorInvalidDevice : cudaSuccess;
    });
}

static CUresult cuDeviceGetDevResource(CUdevice, CUdevResource *resource, CUdevResourceType type)
{
    return api(__func__, PLAIN, [&] {
        if (type != CU_DEV_RESOURCE_TYPE_SM)
            return cudaErrorInvalidValue;
        memset(resource, 0, sizeof *resource);
        resource->type = type;
        resource->sm.smCount = (unsigned)the().processors;
        return cudaSuccess;
    });
}

static CUresult cuDevSmResourceSplitByCount(CUdevResource *result, unsigned *n,
                                            const CUdevResource *input, CUdevResource *rest,
                                            unsigned flags, unsigned least)
{
    return api(__func__, PLAIN, [&] {
        unsigned rounded = (std::max(least, 1U) + group() - 1) / group() * group();
        if (!result || !n || *n != 1 || input->type != CU_DEV_RESOURCE_TYPE_SM || flags ||
            rounded > input->sm.smCount)
            return cudaErrorInvalidValue;
        *result = *rest = *input;
        result->sm.smCount = rounded;
        rest->sm.smCount = input->sm.smCount - rounded;
        return cudaSuccess;
    });
}

static CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *to, CUdevResource *resources,
                                          unsigned n)
{
    return api(__func__, PLAIN, [&] {
        if (n != 1 || resources->type != CU_DEV_RESOURCE_TYPE_SM)
            return cudaErrorInvalidValue;
        static CUdevResourceDesc_st description; // the driver keeps its own, too
        description.processors = resources->sm.smCount;
        *to = &description;
        return cudaSuccess;
    });
}

static CUresult cuGreenCtxCreate(CUgreenCtx *to, CUdevResourceDesc description, CUdevice device,
                                 unsigned flags)
{
    return api(__func__, PLAIN, [&] {
        if (device || flags != CU_GREEN_CTX_DEFAULT_STREAM)
            return cudaErrorInvalidValue;
        *to = new CUgreenCtx_st;
        (*to)->processors = description->processors;
        the().greens.insert(*to);
        the().newest_green = *to;
        the().count.greens++;
        return cudaSuccess;
    });
}

/* Streams of it that are left would leak. */
static CUresult cuGreenCtxDestroy(CUgreenCtx green)
{
    return api(__func__, PLAIN, [&] {
        if (!the().greens.erase(green))
            return cudaErrorInvalidResourceHandle;
        for (cudaStream_t stream : the().streams)
            if (stream->green == green)
                report("a green context was destroyed before one of its streams");
        the().count.greens--;
        if (the().newest_green == green)
            the().newest_green = nullptr;
        if (current == green)
            current = nullptr;
        bury(green);
        return cudaSuccess;
    });
}

static CUresult cuCtxFromGreenCtx(CUcontext *to, CUgreenCtx green)
{
    return api(__func__, PLAIN, [&] {
        if (!the().greens.count(green))
            return cudaErrorInvalidResourceHandle;
        *to = (CUcontext)green;
        return cudaSuccess;
    });
}

static CUresult cuGreenCtxStreamCreate(CUstream *to, CUgreenCtx green, unsigned flags, int priority)
{
    return api(__func__, PLAIN, [&] {
        if (!the().greens.count(green) || flags != CU_STREAM_NON_BLOCKING)
            return cudaErrorInvalidValue;
        cudaError_t error = create_stream(to, flags, priority);
        if (error == cudaSuccess)
            (*to)->green = green;
        return error;
    });
}

static CUresult cuCtxSetCurrent(CUcontext context)
{
    return api(__func__, PLAIN, [&] {
        CUgreenCtx green = (CUgreenCtx)context;
        if (green && !the().greens.count(green))
            return cudaErrorDeviceUninitialized;
        current = green;
        return cudaSuccess;
    });
}

} // namespace cuda_emulator::runtime

using namespace cuda_emulator::runtime;

int cuda_emulator_green_processors(void)
{
    std::lock_guard<std::mutex> lock(the().mutex);
    return the().newest_green ? (int)the().newest_green->processors : 0;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **funcPtr,
                                             unsigned cudaVersion, unsigned long long flags,
                                             cudaDriverEntryPointQueryResult *driverStatus)
{
    static const struct {
        const char *name;
        unsigned version;
        void *function;
    } all[] = {{"cuDeviceGet", 2000, (void *)cuDeviceGet},
               {"cuDeviceGetDevResource", 12040, (void *)cuDeviceGetDevResource},
               {"cuDevSmResourceSplitByCount", 12040, (void *)cuDevSmResourceSplitByCount},
               {"cuDevResourceGenerateDesc", 12040, (void *)cuDevResourceGenerateDesc},
               {"cuGreenCtxCreate", 12040, (void *)cuGreenCtxCreate},
               {"cuGreenCtxDestroy", 12040, (void *)cuGreenCtxDestroy},
               {"cuCtxFromGreenCtx", 12040, (void *)cuCtxFromGreenCtx},
               {"cuGreenCtxStreamCreate", 12050, (void *)cuGreenCtxStreamCreate},
               {"cuCtxSetCurrent", 4000, (void *)cuCtxSetCurrent}};
    return api(__func__, PLAIN, [&] {
        if (!symbol || !funcPtr || !driverStatus || flags)
            return cudaErrorInvalidValue;
        unsigned driver = (unsigned)(the().driver ? the().driver : CUDART_VERSION);
        *driverStatus = cudaDriverEntryPointSymbolNotFound;
        *funcPtr = nullptr;
        cudaError_t ignored;
        if (injected((std::string("no ") + symbol).c_str(), ignored))
            return cudaSuccess;
        for (const auto &f : all)
            if (strcmp(f.name, symbol) == 0) {
                bool there = cudaVersion >= f.version && driver >= f.version;
                *funcPtr = there ? f.function : nullptr;
                *driverStatus =
                    there ? cudaDriverEntryPointSuccess : cudaDriverEntryPointVersionNotSufficent;
            }
        return cudaSuccess;
    });
}
