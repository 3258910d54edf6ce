/* green.c - a share of the multiprocessors for the second stream: a green context of the driver.
 *
 * Blocks of the second stream's kernels may lie on every multiprocessor, and a kernel of the first
 * one that wants them waits until they have ended, whatever its priority. In a green context they
 * lie on a given number, so that the others are always there for the first stream, which stays in
 * the device's own context and has all that are idle.
 *
 * The runtime has no calls for this before 13.1, so they are looked up in the driver: those of
 * 12.4, and 12.5's for streams. */
#include "kernels/cuda/gpu.h"

#include <cuda.h>
#include <stdlib.h>
#include <string.h>

/* The driver's functions, as the toolkit's cuda.h declares them. */
struct driver {
    CUresult (*device)(CUdevice *, int);
    CUresult (*resource)(CUdevice, CUdevResource *, CUdevResourceType);
    CUresult (*split)(CUdevResource *, unsigned *, const CUdevResource *, CUdevResource *, unsigned,
                      unsigned);
    CUresult (*describe)(CUdevResourceDesc *, CUdevResource *, unsigned);
    CUresult (*create)(CUgreenCtx *, CUdevResourceDesc, CUdevice, unsigned);
    CUresult (*destroy)(CUgreenCtx);
    CUresult (*context)(CUcontext *, CUgreenCtx);
    CUresult (*stream)(CUstream *, CUgreenCtx, unsigned, int);
    CUresult (*enter)(CUcontext);
};

struct tec_gpu_green {
    struct driver driver;
    CUgreenCtx green;
    CUcontext context; /* the same, in the form that can be made current */
};

/* Errors of the driver have the numbers of the runtime's. */
static cudaError_t of(CUresult result)
{
    return (cudaError_t)result;
}

static cudaError_t look_up(struct driver *driver)
{
    static const struct {
        const char *name;
        unsigned version;
        size_t at;
    } all[] = {{"cuDeviceGet", 2000, offsetof(struct driver, device)},
               {"cuDeviceGetDevResource", 12040, offsetof(struct driver, resource)},
               {"cuDevSmResourceSplitByCount", 12040, offsetof(struct driver, split)},
               {"cuDevResourceGenerateDesc", 12040, offsetof(struct driver, describe)},
               {"cuGreenCtxCreate", 12040, offsetof(struct driver, create)},
               {"cuGreenCtxDestroy", 12040, offsetof(struct driver, destroy)},
               {"cuCtxFromGreenCtx", 12040, offsetof(struct driver, context)},
               {"cuGreenCtxStreamCreate", 12050, offsetof(struct driver, stream)},
               {"cuCtxSetCurrent", 4000, offsetof(struct driver, enter)}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
        void *function = NULL;
        cudaError_t error = cudaGetDriverEntryPointByVersion(all[i].name, &function, all[i].version,
                                                             cudaEnableDefault, &found);
        if (error != cudaSuccess)
            return error;
        if (found != cudaDriverEntryPointSuccess || !function)
            return cudaErrorNotSupported;
        memcpy((char *)driver + all[i].at, &function, sizeof function);
    }
    return cudaSuccess;
}

/* At most `most` multiprocessors. The driver rounds what is asked for up, to groups that share a
 * cluster, so fewer are asked for until it fits. */
static cudaError_t split(const struct driver *driver, const CUdevResource *all, int most,
                         CUdevResource *part)
{
    for (int wanted = most; wanted > 0; wanted--) {
        CUdevResource rest;
        unsigned n = 1;
        cudaError_t error = of(driver->split(part, &n, all, &rest, 0, (unsigned)wanted));
        bool large =
            error == cudaErrorInvalidValue || error == cudaErrorInvalidResourceConfiguration;
        if (error != cudaSuccess && !large) /* rounded up it may be more than there is */
            return error;
        if (error == cudaSuccess && n == 1 && part->sm.smCount <= (unsigned)most)
            return cudaSuccess;
    }
    return cudaErrorInvalidResourceConfiguration;
}

static cudaError_t create(struct tec_gpu_green *g, int index, int most)
{
    CUdevResource all, part;
    CUdevResourceDesc description;
    CUdevice device;
    cudaError_t error = look_up(&g->driver);
    if (error == cudaSuccess)
        error = of(g->driver.device(&device, index));
    if (error == cudaSuccess)
        error = of(g->driver.resource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
    if (error == cudaSuccess)
        error = split(&g->driver, &all, most, &part);
    if (error == cudaSuccess)
        error = of(g->driver.describe(&description, &part, 1));
    if (error == cudaSuccess)
        error = of(g->driver.create(&g->green, description, device, CU_GREEN_CTX_DEFAULT_STREAM));
    if (error == cudaSuccess)
        error = of(g->driver.context(&g->context, g->green));
    return error;
}

cudaError_t tec_gpu_green_create(struct tec_gpu_green **out, int index, int most,
                                 struct tec_heap *heap)
{
    struct tec_gpu_green *g = tec_heap_get(heap, sizeof *g);
    if (!g)
        return cudaErrorMemoryAllocation;
    *out = g;
    return create(g, index, most);
}

cudaError_t tec_gpu_green_stream(struct tec_gpu_green *g, cudaStream_t *stream, int priority)
{
    return of(g->driver.stream(stream, g->green, CU_STREAM_NON_BLOCKING, priority));
}

cudaError_t tec_gpu_green_enter(struct tec_gpu_green *g)
{
    return of(g->driver.enter(g->context));
}

void tec_gpu_green_destroy(struct tec_gpu_green *g, bool hung, struct tec_heap *heap)
{
    if (g && g->green && !hung)
        (void)g->driver.destroy(g->green);
    tec_heap_put(heap, g);
}
