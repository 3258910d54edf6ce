/* copies.c - host to device and back through pinned memory, in stream order. */
#include "base/clock.h"
#include "base/spin.h"
#include "kernels/cuda/gpu.h"

#include <string.h>

enum { ASK_EVERY = 16 };

bool tec_gpu_drain(struct tec_gpu *gpu, struct tec_gpu_stream *s, const char *what)
{
    const struct tec_clock clock = {NULL};
    int64_t until = tec_clock_now(&clock) + gpu->patience_ns;
    cudaError_t error = cudaErrorNotReady;
    for (int turns = 0; error == cudaErrorNotReady;) {
        tec_spin(&turns);
        if (turns % ASK_EVERY)
            continue;
        error = cudaStreamQuery(s->stream);
        if (error == cudaErrorNotReady && tec_clock_now(&clock) > until) {
            gpu->hung = true;
            error = cudaErrorLaunchTimeout;
        }
    }
    if (error != cudaSuccess)
        tec_gpu_fail(gpu, error, what, NULL);
    s->staged = 0;
    return error == cudaSuccess;
}

/* Reserve staging memory for up to `size` bytes, after a wait if it is full, and return the
 * reserved bytes. 0: failed. */
static size_t take_staging(struct tec_gpu *gpu, struct tec_gpu_stream *s, size_t size)
{
    if (size > TEC_GPU_STAGING - s->staged && s->staged &&
        !tec_gpu_drain(gpu, s, "copy to the device"))
        return 0;
    return size < TEC_GPU_STAGING ? size : TEC_GPU_STAGING;
}

void tec_gpu_upload(struct tec_device *device, enum tec_stream stream, void *to, const void *from,
                    size_t size)
{
    struct tec_gpu *gpu = (struct tec_gpu *)device;
    struct tec_gpu_stream *s = &gpu->streams[stream];
    for (size_t at = 0, n; at < size && tec_gpu_use(gpu); at += n) {
        n = take_staging(gpu, s, size - at);
        if (!n)
            return;
        memcpy(s->staging + s->staged, (const unsigned char *)from + at, n);
        cudaError_t error = cudaMemcpyAsync((unsigned char *)to + at, s->staging + s->staged, n,
                                            cudaMemcpyHostToDevice, s->stream);
        if (error != cudaSuccess)
            tec_gpu_fail(gpu, error, "copy to the device", NULL);
        s->staged += (n + 63) / 64 * 64;
        if (s->staged > TEC_GPU_STAGING)
            s->staged = TEC_GPU_STAGING;
    }
}

static void download(struct tec_gpu *gpu, struct tec_gpu_stream *s, void *to, const void *from,
                     size_t size)
{
    for (size_t at = 0, n; at < size && tec_gpu_use(gpu); at += n) {
        n = take_staging(gpu, s, size - at);
        if (!n)
            return;
        unsigned char *place = s->staging + s->staged;
        cudaError_t error = cudaMemcpyAsync(place, (const unsigned char *)from + at, n,
                                            cudaMemcpyDeviceToHost, s->stream);
        if (error != cudaSuccess)
            tec_gpu_fail(gpu, error, "copy from the device", NULL);
        if (error != cudaSuccess || !tec_gpu_drain(gpu, s, "copy from the device"))
            return;
        memcpy((unsigned char *)to + at, place, n);
    }
}

void tec_gpu_download(struct tec_device *device, enum tec_stream stream, void *to, const void *from,
                      size_t size)
{
    struct tec_gpu *gpu = (struct tec_gpu *)device;
    download(gpu, &gpu->streams[stream], to, from, size);
}

void tec_gpu_fetch(struct tec_device *device, void *to, const void *from, size_t size)
{
    struct tec_gpu *gpu = (struct tec_gpu *)device;
    download(gpu, &gpu->branch.s, to, from, size);
}
