/* device.c - one NVIDIA GPU behind the seam: opening, memory, facts. */
#include "kernels/cuda/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A driver serves every runtime of its own major version that asks it for nothing newer: of what is
 * asked for here, loops in a graph came last, with 12.4. */
enum { DRIVER = CUDART_VERSION >= 13000 ? CUDART_VERSION / 1000 * 1000 : 12040 };

enum { OLDEST = 80 };

/* A record of each allocation, so that it can be counted when it comes back. */
struct tec_gpu_block {
    struct tec_gpu_block *next;
    void *at;
    size_t size;
};

/* --- what there is --------------------------------------------------------------------------- */

static cudaError_t capability_of(int index, int *capability)
{
    int major = 0, minor = 0;
    cudaError_t error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index);
    *capability = 10 * major + minor;
    return error;
}

static enum tec_status check(const struct tec_device_options *options, struct tec_error *err)
{
    int driver = 0, count = 0;
    cudaError_t error = cudaDriverGetVersion(&driver);
    if (error == cudaSuccess && driver > 0 && driver < DRIVER)
        return tec_fail(err, TEC_DEVICE,
                        "the NVIDIA driver is for CUDA %d.%d; this build needs %d.%d",
                        driver / 1000, driver % 1000 / 10, DRIVER / 1000, DRIVER % 1000 / 10);
    if (error == cudaSuccess && driver > 0)
        error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess || driver == 0 || count == 0)
        return tec_fail(err, TEC_DEVICE, "no CUDA device: %s",
                        driver == 0 ? "there is no NVIDIA driver here" : cudaGetErrorString(error));
    if (options->index < 0 || options->index >= count)
        return tec_fail(err, TEC_DEVICE, "cuda:%d: there are %d CUDA devices, counted from 0",
                        options->index, count);
    int capability;
    error = capability_of(options->index, &capability);
    if (error != cudaSuccess)
        return tec_fail(err, TEC_DEVICE, "cuda:%d: asking what it is: %s (%s)", options->index,
                        cudaGetErrorString(error), cudaGetErrorName(error));
    if (capability < OLDEST)
        return tec_fail(err, TEC_DEVICE, "cuda:%d is an sm_%d; sm_%d is the oldest that will do",
                        options->index, capability, OLDEST);
    return TEC_OK;
}

static int lanes(const struct tec_device_options *options)
{
    int n = 0;
    (void)cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, options->index);
    return n;
}

/* A device that multiplies by warp groups keeps the terms of rows in memory; one that cannot be
 * asked may be such a device. */
static bool keeps_terms(const struct tec_device_options *options)
{
    int capability = 0;
    return capability_of(options->index, &capability) != cudaSuccess || tec_cuda_groups(capability);
}

static int streams(const struct tec_device_options *options)
{
    return 1 + (options->beside > 0) + tec_gpu_branch_wanted(options);
}

static int64_t workspace(const struct tec_device_options *options)
{
    int64_t tickets = TEC_CUDA_TICKETS * (int64_t)sizeof(int);
    int64_t terms = keeps_terms(options) ? TEC_CUDA_TERMS : 0;
    return streams(options) *
           (TEC_CUDA_PARTIALS + TEC_CUDA_SQUARES + terms + tickets + (int64_t)sizeof(int));
}

static int64_t rows(const struct tec_device_options *options)
{
    return keeps_terms(options) ? 0 : streams(options) * (int64_t)TEC_CUDA_TERMS;
}

static size_t scratch(int n, int head_dim)
{
    (void)n, (void)head_dim;
    return sizeof(float); /* kernels use shared memory */
}

static enum tec_matrix_layout layout(const struct tec_device_options *options)
{
    (void)options;
    return TEC_MATRIX_TILES;
}

/* --- streams --------------------------------------------------------------------------------- */

static cudaError_t make_terms(struct tec_gpu_stream *s)
{
    if (s->launch.terms) /* it was the memory of another stream that ended */
        return cudaSuccess;
    cudaError_t error = cudaMalloc((void **)&s->launch.terms, TEC_CUDA_TERMS);
    s->launch.terms_size = error == cudaSuccess ? TEC_CUDA_TERMS : 0;
    return error;
}

static cudaError_t make_memory(struct tec_gpu_stream *s)
{
    size_t tickets = TEC_CUDA_TICKETS * sizeof(int);
    void *board = NULL;
    cudaError_t error = cudaMalloc((void **)&s->launch.partials, TEC_CUDA_PARTIALS);
    if (error == cudaSuccess)
        error = cudaMalloc((void **)&s->launch.squares, TEC_CUDA_SQUARES);
    s->launch.squares_size = TEC_CUDA_SQUARES;
    if (error == cudaSuccess)
        error = cudaMalloc((void **)&s->launch.tickets, tickets);
    if (error == cudaSuccess)
        error = cudaMemsetAsync(s->launch.tickets, 0, tickets, s->stream);
    if (error == cudaSuccess)
        error = cudaMalloc((void **)&s->turn, sizeof *s->turn);
    if (error == cudaSuccess)
        error = cudaMallocHost((void **)&s->staging, TEC_GPU_STAGING);
    if (error == cudaSuccess)
        error = cudaHostAlloc(&board, sizeof *s->board, cudaHostAllocMapped);
    s->board = board;
    if (error != cudaSuccess)
        return error;
    memset(board, 0, sizeof *s->board);
    return cudaHostGetDevicePointer((void **)&s->board_there, board, 0);
}

/* From 9.0 on a kernel may start while the one before it ends. TECTUM_CUDA_OVERLAP in the
 * environment: 0 switches that off, to find out whether a wrong result comes from it; `loops` has
 * it in the bodies of loops, too, which CUDA allows and nobody has run. */
static void set_overlap(struct tec_gpu_stream *s, int capability)
{
    s->launch.overlap = capability >= 90 && !tec_gpu_switched("TECTUM_CUDA_OVERLAP", "0");
    s->overlap_loops = s->launch.overlap && tec_gpu_switched("TECTUM_CUDA_OVERLAP", "loops");
}

/* The second stream and branches yield to the first. */
static cudaError_t create_stream(struct tec_gpu *gpu, const struct tec_gpu_stream *s,
                                 cudaStream_t *stream)
{
    int least = 0, greatest = 0;
    cudaError_t error = cudaDeviceGetStreamPriorityRange(&least, &greatest);
    if (error != cudaSuccess)
        return error;
    if (s == &gpu->streams[TEC_STREAM_BESIDE] && gpu->green)
        return tec_gpu_green_stream(gpu->green, stream, least);
    return cudaStreamCreateWithPriority(stream, cudaStreamNonBlocking,
                                        s == &gpu->streams[TEC_STREAM_MAIN] ? greatest : least);
}

static cudaError_t make_stream(struct tec_gpu *gpu, struct tec_gpu_stream *s, int capability)
{
    cudaError_t error = create_stream(gpu, s, &s->stream);
    if (error == cudaSuccess)
        error = create_stream(gpu, s, &s->body);
    if (error == cudaSuccess)
        error = make_memory(s);
    s->launch.stream = s->stream;
    s->launch.capability = capability;
    set_overlap(s, capability);
    s->launch.groups = tec_cuda_groups(capability);
    if (error == cudaSuccess && s->launch.groups)
        error = make_terms(s);
    /* a share of the device may have less room */
    s->launch.clusters = gpu->green && s == &gpu->streams[TEC_STREAM_BESIDE] ? 0 : gpu->clusters;
    s->launch.partials_size = TEC_CUDA_PARTIALS;
    return error != cudaSuccess
               ? error
               : cudaDeviceGetAttribute(&s->launch.processors, cudaDevAttrMultiProcessorCount,
                                        gpu->index);
}

/* Streams wait for what it copies. */
static cudaError_t make_sends(struct tec_gpu *gpu)
{
    int least = 0, greatest = 0;
    cudaError_t error = cudaDeviceGetStreamPriorityRange(&least, &greatest);
    return error != cudaSuccess ? error : tec_gpu_sends_create(&gpu->sends, greatest);
}

/* Its kernels run in graphs of the main stream, which does not wait for this one: what was begun on
 * it has ended here. A failure of that is remembered. */
static cudaError_t make_branch(struct tec_gpu *gpu, int capability)
{
    cudaError_t error = make_stream(gpu, &gpu->branch.s, capability);
    if (error == cudaSuccess)
        error = tec_gpu_branch_create(&gpu->branch);
    if (error == cudaSuccess && !tec_gpu_drain(gpu, &gpu->branch.s, "opening the device"))
        error = cudaErrorUnknown;
    return error;
}

static void drop_stream(struct tec_gpu_stream *s)
{
    if (s->stream)
        (void)cudaStreamDestroy(s->stream);
    if (s->body)
        (void)cudaStreamDestroy(s->body);
    (void)cudaFree(s->launch.partials);
    (void)cudaFree(s->launch.terms);
    (void)cudaFree(s->launch.squares);
    (void)cudaFree(s->launch.tickets);
    (void)cudaFree(s->turn);
    (void)cudaFreeHost(s->staging);
    (void)cudaFreeHost(s->board);
}

/* --- opening --------------------------------------------------------------------------------- */

static void gpu_close(struct tec_device *device)
{
    struct tec_gpu *gpu = (struct tec_gpu *)device;
    tec_team_destroy(gpu->team);
    if (!gpu->hung)
        (void)cudaSetDevice(gpu->index);
    for (int i = 0; i < gpu->n_streams && !gpu->hung; i++)
        drop_stream(&gpu->streams[i]);
    if (gpu->branches && !gpu->hung) {
        drop_stream(&gpu->branch.s);
        tec_gpu_branch_destroy(&gpu->branch);
    }
    if (!gpu->hung)
        tec_gpu_sends_destroy(&gpu->sends);
    tec_gpu_green_destroy(gpu->green, gpu->hung, device->heap);
    while (gpu->blocks) {
        struct tec_gpu_block *next = gpu->blocks->next;
        tec_heap_put(device->heap, gpu->blocks);
        gpu->blocks = next;
    }
    tec_heap_put(device->heap, gpu);
}

static enum tec_status open_gpu(struct tec_gpu *gpu, const struct tec_device_options *options,
                                struct tec_error *err)
{
    int spin = options->spin_us < 0 ? 2000 : options->spin_us, capability = 0;
    cudaError_t error = cudaSetDevice(options->index);
    if (error == cudaSuccess)
        error = capability_of(options->index, &capability);
    snprintf(gpu->computes, sizeof gpu->computes, "sm_%d", capability);
    if (error == cudaSuccess)
        gpu->clusters = tec_gpu_clusters(capability);
    gpu->n_streams = options->beside > 0 ? 2 : 1;
    const char *what = "opening the device";
    if (error == cudaSuccess && gpu->n_streams == 2 && tec_gpu_switched("TECTUM_CUDA_GREEN", "1")) {
        error = tec_gpu_green_create(&gpu->green, gpu->index, options->beside, gpu->base.heap);
        if (error != cudaSuccess)
            what = "opening a green context (TECTUM_CUDA_GREEN)";
    }
    for (int i = 0; i < gpu->n_streams && error == cudaSuccess; i++)
        error = make_stream(gpu, &gpu->streams[i], capability);
    if (error == cudaSuccess)
        error = make_sends(gpu);
    gpu->branches = tec_gpu_branch_wanted(options);
    if (gpu->branches && error == cudaSuccess)
        error = make_branch(gpu, capability);
    if (error != cudaSuccess) {
        tec_gpu_fail(gpu, error, what, NULL);
        return tec_device_failure(&gpu->base, err);
    }
    if (gpu->n_streams == 1)
        return TEC_OK;
    enum tec_status status = tec_team_create_split(&gpu->team, 2, 1, spin, gpu->base.heap, err);
    gpu->base.team = gpu->team;
    return status;
}

static enum tec_status gpu_open(struct tec_device **out, const struct tec_device_options *options,
                                struct tec_heap *heap, struct tec_error *err)
{
    int64_t patience_ns = 0;
    TEC_TRY(tec_gpu_switches_check(err));
    TEC_TRY(tec_gpu_patience(options->patience_ms, &patience_ns, err));
    struct tec_gpu *gpu = tec_heap_get(heap, sizeof *gpu);
    if (!gpu)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a device");
    gpu->base.heap = heap;
    gpu->base.layout = TEC_MATRIX_TILES;
    gpu->base.computes = gpu->computes;
    gpu->index = options->index;
    gpu->patience_ns = patience_ns;
    enum tec_status status = open_gpu(gpu, options, err);
    if (status != TEC_OK) {
        gpu_close(&gpu->base);
        return status;
    }
    int64_t taken = workspace(options);
    atomic_store(&gpu->base.memory.bytes, taken);
    atomic_store(&gpu->base.memory.peak, taken);
    *out = &gpu->base;
    return TEC_OK;
}

/* --- memory ---------------------------------------------------------------------------------- */

static void count(struct tec_device *device, int64_t bytes)
{
    int64_t now = atomic_fetch_add(&device->memory.bytes, bytes) + bytes;
    if (now > atomic_load(&device->memory.peak))
        atomic_store(&device->memory.peak, now);
}

static enum tec_status take_rows(struct tec_device *device, struct tec_error *err)
{
    struct tec_gpu *gpu = (struct tec_gpu *)device;
    if (!tec_gpu_use(gpu))
        return tec_device_failure(device, err);
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < gpu->n_streams && error == cudaSuccess; i++)
        error = make_terms(&gpu->streams[i]);
    if (gpu->branches && error == cudaSuccess)
        error = make_terms(&gpu->branch.s);
    if (error == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError(); /* that one does not stay */
        return tec_fail(err, TEC_NO_MEMORY,
                        "cuda:%d: no memory for rows of products, %d MiB on each stream",
                        gpu->index, TEC_CUDA_TERMS >> 20);
    }
    if (error != cudaSuccess) {
        tec_gpu_fail(gpu, error, "taking memory", NULL);
        return tec_device_failure(device, err);
    }
    count(device, (int64_t)(gpu->n_streams + gpu->branches) * TEC_CUDA_TERMS);
    return TEC_OK;
}

/* Zeroed, or NULL with nothing taken. No stream waits for the default one, and memory may be used
 * on any of them: it is waited for. */
static void *take(struct tec_gpu *gpu, size_t size)
{
    struct tec_gpu_stream *s = &gpu->streams[TEC_STREAM_MAIN];
    void *at = NULL;
    cudaError_t error = cudaMalloc(&at, size ? size : 1);
    if (error == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError(); /* that one does not stay */
        return NULL;
    }
    if (error == cudaSuccess)
        error = cudaMemsetAsync(at, 0, size ? size : 1, s->stream);
    if (error == cudaSuccess && tec_gpu_drain(gpu, s, "taking memory"))
        return at;
    if (error != cudaSuccess)
        tec_gpu_fail(gpu, error, "taking memory", NULL);
    if (!gpu->hung)
        (void)cudaFree(at);
    return NULL;
}

static void *get(struct tec_device *device, size_t size)
{
    struct tec_gpu *gpu = (struct tec_gpu *)device;
    if (!tec_gpu_use(gpu))
        return NULL;
    struct tec_gpu_block *block = tec_heap_get(device->heap, sizeof *block);
    void *at = block ? take(gpu, size) : NULL;
    if (!at) {
        tec_heap_put(device->heap, block);
        return NULL;
    }
    *block = (struct tec_gpu_block){gpu->blocks, at, size};
    gpu->blocks = block;
    count(device, (int64_t)size);
    return at;
}

static void put(struct tec_device *device, void *memory)
{
    struct tec_gpu *gpu = (struct tec_gpu *)device;
    struct tec_gpu_block **link = &gpu->blocks;
    while (*link && (*link)->at != memory)
        link = &(*link)->next;
    struct tec_gpu_block *block = *link;
    if (!block)
        return;
    *link = block->next;
    count(device, -(int64_t)block->size);
    tec_heap_put(device->heap, block);
    if (gpu->hung)
        return;
    (void)cudaSetDevice(gpu->index);
    (void)cudaFree(memory);
}

static int64_t room(const struct tec_device *device)
{
    size_t free = 0, total = 0;
    (void)cudaSetDevice(((const struct tec_gpu *)device)->index);
    return cudaMemGetInfo(&free, &total) == cudaSuccess ? (int64_t)free : -1;
}

static bool address_of(const struct tec_device *device, char address[32])
{
    int index = ((const struct tec_gpu *)device)->index;
    if (cudaDeviceGetPCIBusId(address, 32, index) == cudaSuccess)
        return true;
    (void)cudaGetLastError(); /* reports do without */
    return false;
}

const struct tec_device_kind tec_device_kind_cuda = {.name = "cuda",
                                                     .stamps = true,
                                                     .check = check,
                                                     .layout = layout,
                                                     .lanes = lanes,
                                                     .workspace = workspace,
                                                     .rows = rows,
                                                     .branches = tec_gpu_branch_wanted,
                                                     .scratch = scratch,
                                                     .open = gpu_open,
                                                     .close = gpu_close,
                                                     .take_rows = take_rows,
                                                     .get = get,
                                                     .put = put,
                                                     .pin = tec_gpu_pin,
                                                     .unpin = tec_gpu_unpin,
                                                     .send = tec_gpu_send,
                                                     .note = tec_gpu_note,
                                                     .await = tec_gpu_await,
                                                     .room = room,
                                                     .address = address_of,
                                                     .upload = tec_gpu_upload,
                                                     .download = tec_gpu_download,
                                                     .fetch = tec_gpu_fetch,
                                                     .compile = tec_gpu_compile,
                                                     .discard = tec_gpu_discard,
                                                     .replay = tec_gpu_replay,
                                                     .fork = tec_gpu_fork,
                                                     .join = tec_gpu_join};
