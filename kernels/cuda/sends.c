/* sends.c - copies to the device beside its streams: pinned memory, a stream for the copies, and
 * events at which the other streams wait for them. */
#include "kernels/cuda/gpu.h"

cudaError_t tec_gpu_sends_create(struct tec_gpu_sends *sends, int priority)
{
    cudaError_t error =
        cudaStreamCreateWithPriority(&sends->stream, cudaStreamNonBlocking, priority);
    for (int i = 0; i < TEC_SEND_NOTES && error == cudaSuccess; i++)
        error = cudaEventCreateWithFlags(&sends->notes[i], cudaEventDisableTiming);
    return error;
}

void tec_gpu_sends_destroy(struct tec_gpu_sends *sends)
{
    for (int i = 0; i < TEC_SEND_NOTES; i++)
        if (sends->notes[i])
            (void)cudaEventDestroy(sends->notes[i]);
    if (sends->stream)
        (void)cudaStreamDestroy(sends->stream);
}

void *tec_gpu_pin(struct tec_device *device, size_t size)
{
    struct tec_gpu *gpu = (struct tec_gpu *)device;
    void *at = NULL;
    if (!tec_gpu_use(gpu))
        return NULL;
    cudaError_t error = cudaMallocHost(&at, size ? size : 1);
    if (error == cudaSuccess)
        return at;
    if (error == cudaErrorMemoryAllocation)
        (void)cudaGetLastError(); /* that one does not stay */
    else
        tec_gpu_fail(gpu, error, "taking pinned memory", NULL);
    return NULL;
}

/* Copies from it that are under way end first. */
void tec_gpu_unpin(struct tec_device *device, void *memory)
{
    const struct tec_gpu *gpu = (struct tec_gpu *)device;
    if (gpu->hung)
        return;
    (void)cudaSetDevice(gpu->index);
    (void)cudaStreamSynchronize(gpu->sends.stream);
    (void)cudaFreeHost(memory);
}

void tec_gpu_send(struct tec_device *device, void *to, const void *from, size_t size)
{
    struct tec_gpu *gpu = (struct tec_gpu *)device;
    if (!size || !tec_gpu_use(gpu))
        return;
    cudaError_t error = cudaMemcpyAsync(to, from, size, cudaMemcpyHostToDevice, gpu->sends.stream);
    if (error != cudaSuccess)
        tec_gpu_fail(gpu, error, "copy beside the streams", NULL);
}

void tec_gpu_note(struct tec_device *device, int note)
{
    struct tec_gpu *gpu = (struct tec_gpu *)device;
    if (!tec_gpu_use(gpu))
        return;
    cudaError_t error = cudaEventRecord(gpu->sends.notes[note], gpu->sends.stream);
    if (error != cudaSuccess)
        tec_gpu_fail(gpu, error, "copy beside the streams", NULL);
}

void tec_gpu_await(struct tec_device *device, enum tec_stream stream, int note)
{
    struct tec_gpu *gpu = (struct tec_gpu *)device;
    if (!tec_gpu_use(gpu))
        return;
    cudaError_t error = cudaStreamWaitEvent(gpu->streams[stream].stream, gpu->sends.notes[note], 0);
    if (error != cudaSuccess)
        tec_gpu_fail(gpu, error, "waiting for a copy beside the streams", NULL);
}
