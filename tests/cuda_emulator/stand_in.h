/* stand_in.h - what the tests of the stand-in share: two streams, two events, some memory. */
#pragma once

#include "tests/tap.h"

#include <cuda_emulator_control.h>
#include <string.h>

#define OK(call) CHECK_STR(cudaGetErrorName(call), "cudaSuccess")
#define GIVES(call, error) CHECK_STR(cudaGetErrorName(call), #error)

/* Two streams, an event, ints on the device, in pinned memory and here. */
static struct {
    cudaStream_t a, b;
    cudaEvent_t event, other;
    int *device, *pinned;
    char log[64];
} t;

static inline void start(void)
{
    OK(cudaDeviceReset());
    cuda_emulator_reset();
    memset(&t, 0, sizeof t);
    OK(cudaStreamCreateWithPriority(&t.a, cudaStreamNonBlocking, 0));
    OK(cudaStreamCreateWithPriority(&t.b, cudaStreamNonBlocking, -5));
    OK(cudaEventCreateWithFlags(&t.event, cudaEventDisableTiming));
    OK(cudaEventCreate(&t.other));
    OK(cudaMalloc((void **)&t.device, 64 * sizeof(int)));
    OK(cudaMallocHost((void **)&t.pinned, 64 * sizeof(int)));
    memset(t.pinned, 0, 64 * sizeof(int));
}

/* Kernels. */

static inline void note(void *letter)
{
    strncat(t.log, letter, 1);
}

static inline void put(cudaStream_t stream, const char *letter)
{
    OK(cuda_emulator_call(stream, letter, note, (void *)(size_t)letter));
}

static inline int on_device(int i)
{
    int v = -1;
    OK(cudaMemcpy(&v, t.device + i, sizeof v, cudaMemcpyDeviceToHost));
    return v;
}

static inline cudaGraphExec_t instantiate(cudaGraph_t graph)
{
    cudaGraphExec_t exec = NULL;
    OK(cudaGraphInstantiate(&exec, graph, 0));
    return exec;
}

static inline void replay(cudaGraphExec_t exec)
{
    OK(cudaGraphLaunch(exec, t.a));
    OK(cudaStreamSynchronize(t.a));
}

/* a, then b and c on two streams, then d. */
static inline cudaGraph_t diamond(void)
{
    cudaGraph_t graph = NULL;
    OK(cudaStreamBeginCapture(t.a, cudaStreamCaptureModeThreadLocal));
    put(t.a, "a");
    OK(cudaEventRecord(t.event, t.a));
    OK(cudaStreamWaitEvent(t.b, t.event, 0));
    put(t.b, "b");
    put(t.a, "c");
    OK(cudaEventRecord(t.other, t.b));
    OK(cudaStreamWaitEvent(t.a, t.other, 0));
    put(t.a, "d");
    OK(cudaStreamEndCapture(t.a, &graph));
    return graph;
}
