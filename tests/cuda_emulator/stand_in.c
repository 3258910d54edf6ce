/* stand_in.c - the stand-in for the CUDA runtime by itself: what it does like the runtime, and the
 * mistakes that it finds. */
#include "tests/tap.h"

#include <cuda_emulator_control.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#define OK(call) CHECK_STR(cudaGetErrorName(call), "cudaSuccess")
#define GIVES(call, error) CHECK_STR(cudaGetErrorName(call), #error)

/* Two streams, an event, ints on the device, in pinned memory and here. */
static struct {
    cudaStream_t a, b;
    cudaEvent_t event, other;
    int *device, *pinned;
    char log[64];
} t;

static void start(void)
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

static void note(void *letter)
{
    strncat(t.log, letter, 1);
}

static void put(cudaStream_t stream, const char *letter)
{
    OK(cuda_emulator_call(stream, letter, note, (void *)(size_t)letter));
}

static void write_7(void *user)
{
    (void)user;
    t.device[0] = 7;
}

static void double_it(void *user)
{
    (void)user;
    t.device[1] = 2 * t.device[0];
}

static int on_device(int i)
{
    int v = -1;
    OK(cudaMemcpy(&v, t.device + i, sizeof v, cudaMemcpyDeviceToHost));
    return v;
}

static cudaGraphExec_t instantiate(cudaGraph_t graph)
{
    cudaGraphExec_t exec = NULL;
    OK(cudaGraphInstantiate(&exec, graph, 0));
    return exec;
}

static void replay(cudaGraphExec_t exec)
{
    OK(cudaGraphLaunch(exec, t.a));
    OK(cudaStreamSynchronize(t.a));
}

/* a, then b and c on two streams, then d. */
static cudaGraph_t diamond(void)
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

TEST(late_work_runs_when_asked_for)
{
    start();
    put(t.a, "a");
    put(t.b, "b");
    CHECK_STR(t.log, "");
    CHECK_INT(cudaStreamQuery(t.b), ==, cudaErrorNotReady);
    CHECK_STR(t.log, "a");
    CHECK_INT(cudaStreamQuery(t.b), ==, cudaSuccess);
    CHECK_STR(t.log, "ab");

    cuda_emulator_timing(CUDA_EMULATOR_HIGHEST, 0);
    put(t.a, "c");
    put(t.b, "d");
    OK(cudaStreamSynchronize(t.a));
    CHECK_STR(t.log, "abdc");

    cuda_emulator_timing(CUDA_EMULATOR_EARLY, 0);
    put(t.b, "e");
    CHECK_STR(t.log, "abdce");
}

TEST(events_order_streams)
{
    static const enum cuda_emulator_when all[] = {CUDA_EMULATOR_LOWEST, CUDA_EMULATOR_HIGHEST,
                                                  CUDA_EMULATOR_SHUFFLED, CUDA_EMULATOR_EARLY};
    for (size_t i = 0; i < 4; i++) {
        start();
        cuda_emulator_timing(all[i], 3);
        put(t.b, "a");
        OK(cudaEventRecord(t.event, t.b));
        OK(cudaStreamWaitEvent(t.a, t.event, 0));
        OK(cudaEventRecord(t.event, t.b)); /* the wait is for the record before */
        put(t.a, "b");
        OK(cudaStreamSynchronize(t.a));
        CHECK_STR(t.log, "ab");
    }
}

TEST(event_times)
{
    start();
    float ms = -1;
    GIVES(cudaEventElapsedTime(&ms, t.other, t.other), cudaErrorInvalidResourceHandle);
    OK(cudaEventRecord(t.other, t.a));
    GIVES(cudaEventElapsedTime(&ms, t.other, t.other), cudaErrorNotReady);
    OK(cudaEventSynchronize(t.other));
    OK(cudaEventElapsedTime(&ms, t.other, t.other));
    CHECK(ms >= 0 && ms <= 0);
}

TEST(legacy_stream_waits_for_blocking_ones)
{
    start();
    cudaStream_t blocking;
    OK(cudaStreamCreate(&blocking));
    put(t.a, "n");
    put(blocking, "a");
    cuda_emulator_timing(CUDA_EMULATOR_HIGHEST, 0);
    put(NULL, "b");
    put(blocking, "c");
    OK(cudaStreamSynchronize(blocking));
    CHECK_STR(t.log, "anbc");
}

TEST(capture_forks_and_joins)
{
    start();
    cudaGraph_t graph = diamond();
    REQUIRE(graph);
    CHECK_STR(t.log, "");
    cudaGraphNode_t nodes[8], from[8], to[8];
    cudaGraphEdgeData data[8];
    size_t count = 8, edges = 8;
    OK(cudaGraphGetNodes(graph, nodes, &count));
    OK(cudaGraphGetEdges(graph, from, to, data, &edges));
    CHECK_INT(count, ==, 4);
    CHECK_INT(edges, ==, 4);
    enum cudaGraphNodeType type;
    OK(cudaGraphNodeGetType(nodes[3], &type));
    CHECK_INT(type, ==, cudaGraphNodeTypeKernel);
    CHECK(from[0] == nodes[0] && to[0] == nodes[1]);

    cudaGraphExec_t exec = instantiate(graph);
    OK(cudaGraphDestroy(graph));
    replay(exec);
    CHECK_STR(t.log, "abcd");
    cuda_emulator_timing(CUDA_EMULATOR_HIGHEST, 0);
    replay(exec);
    CHECK_STR(t.log, "abcdacbd");
    OK(cudaGraphExecDestroy(exec));
    GIVES(cudaGraphExecDestroy(exec), cudaErrorInvalidValue);
}

TEST(capture_misses_a_join)
{
    start();
    cudaGraph_t graph = (cudaGraph_t)&graph;
    OK(cudaStreamBeginCapture(t.a, cudaStreamCaptureModeThreadLocal));
    put(t.a, "a");
    OK(cudaEventRecord(t.event, t.a));
    OK(cudaStreamWaitEvent(t.b, t.event, 0));
    put(t.b, "b");
    GIVES(cudaStreamEndCapture(t.a, &graph), cudaErrorStreamCaptureUnjoined);
    CHECK(graph == NULL);
    enum cudaStreamCaptureStatus status;
    OK(cudaStreamIsCapturing(t.b, &status));
    CHECK_INT(status, ==, cudaStreamCaptureStatusNone);
    CHECK_INT(cudaStreamQuery(t.b), ==, cudaSuccess);
}

/* b doubles what a writes, and does not wait for it. */
TEST(one_order_finds_a_missing_edge)
{
    int right = 0, wrong = 0;
    for (int order = CUDA_EMULATOR_LOWEST; order <= CUDA_EMULATOR_HIGHEST; order++) {
        start();
        cudaGraph_t graph;
        OK(cudaStreamBeginCapture(t.a, cudaStreamCaptureModeThreadLocal));
        OK(cudaEventRecord(t.event, t.a));
        OK(cudaStreamWaitEvent(t.b, t.event, 0));
        OK(cuda_emulator_call(t.a, "write", write_7, NULL));
        OK(cuda_emulator_call(t.b, "double", double_it, NULL));
        OK(cudaEventRecord(t.event, t.b));
        OK(cudaStreamWaitEvent(t.a, t.event, 0));
        OK(cudaStreamEndCapture(t.a, &graph));
        cuda_emulator_timing((enum cuda_emulator_when)order, 0);
        replay(instantiate(graph));
        *(on_device(1) == 14 ? &right : &wrong) += 1;
    }
    CHECK_INT(right, ==, 1);
    CHECK_INT(wrong, ==, 1);
}

TEST(capture_forbids_what_it_does_not_see)
{
    start();
    cudaGraph_t graph;
    void *p = NULL;
    OK(cudaStreamBeginCapture(t.a, cudaStreamCaptureModeThreadLocal));
    GIVES(cudaMalloc(&p, 64), cudaErrorStreamCaptureUnsupported);
    GIVES(cuda_emulator_call(t.a, "a", note, NULL), cudaErrorStreamCaptureInvalidated);
    GIVES(cudaStreamEndCapture(t.a, &graph), cudaErrorStreamCaptureInvalidated);
    CHECK(graph == NULL);

    OK(cudaStreamBeginCapture(t.a, cudaStreamCaptureModeRelaxed));
    OK(cudaMalloc(&p, 64));
    OK(cudaFree(p));
    GIVES(cudaStreamSynchronize(t.a), cudaErrorStreamCaptureUnsupported);
    GIVES(cudaStreamEndCapture(t.a, &graph), cudaErrorStreamCaptureInvalidated);
    GIVES(cudaStreamEndCapture(t.a, &graph), cudaErrorIllegalState);
    GIVES(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeRelaxed),
          cudaErrorStreamCaptureUnsupported);
}

TEST(capture_keeps_to_itself)
{
    start();
    cudaGraph_t graph;
    OK(cudaEventRecord(t.event, t.b));
    OK(cudaStreamBeginCapture(t.a, cudaStreamCaptureModeThreadLocal));
    GIVES(cudaStreamWaitEvent(t.a, t.event, 0), cudaErrorStreamCaptureIsolation);
    GIVES(cudaStreamEndCapture(t.a, &graph), cudaErrorStreamCaptureInvalidated);

    OK(cudaStreamBeginCapture(t.a, cudaStreamCaptureModeRelaxed));
    OK(cudaStreamBeginCapture(t.b, cudaStreamCaptureModeRelaxed));
    OK(cudaEventRecord(t.event, t.a));
    GIVES(cudaStreamWaitEvent(t.b, t.event, 0), cudaErrorStreamCaptureMerge);
    GIVES(cudaStreamEndCapture(t.a, &graph), cudaErrorStreamCaptureInvalidated);
    GIVES(cudaStreamEndCapture(t.b, &graph), cudaErrorStreamCaptureInvalidated);
    GIVES(cudaEventQuery(t.event), cudaErrorCapturedEvent);
    OK(cudaEventRecord(t.event, t.a));
    OK(cudaEventSynchronize(t.event));

    OK(cudaStreamBeginCapture(t.a, cudaStreamCaptureModeThreadLocal));
    OK(cudaEventRecord(t.event, t.a));
    OK(cudaStreamWaitEvent(t.b, t.event, 0));
    GIVES(cudaStreamEndCapture(t.b, &graph), cudaErrorStreamCaptureUnmatched);
    GIVES(cudaStreamEndCapture(t.a, &graph), cudaErrorStreamCaptureInvalidated);
}

TEST(a_legacy_call_beside_a_capturing_blocking_stream)
{
    start();
    cudaStream_t blocking;
    cudaGraph_t graph;
    OK(cudaStreamCreate(&blocking));
    OK(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
    GIVES(cudaMemsetAsync(t.device, 0, 4, NULL), cudaErrorStreamCaptureImplicit);
    GIVES(cudaStreamEndCapture(blocking, &graph), cudaErrorStreamCaptureInvalidated);
}

TEST(pinned_memory_is_read_when_the_copy_runs)
{
    start();
    t.pinned[0] = 1;
    OK(cudaMemcpyAsync(t.device, t.pinned, 4, cudaMemcpyHostToDevice, t.a));
    t.pinned[0] = 2; /* too early */
    OK(cudaStreamSynchronize(t.a));
    CHECK_INT(on_device(0), ==, 2);

    int pageable = 3;
    OK(cudaMemcpyAsync(t.device, &pageable, 4, cudaMemcpyHostToDevice, t.a));
    pageable = 4;
    OK(cudaStreamSynchronize(t.a));
    CHECK_INT(on_device(0), ==, 3);
    OK(cudaMemsetAsync(t.device, 1, 4, t.a));
    OK(cudaMemcpyAsync(&pageable, t.device, 4, cudaMemcpyDeviceToHost, t.a));
    CHECK_INT(pageable, ==, 0x01010101);
    CHECK_INT(on_device(1), ==, -1); /* fresh */
}

static cudaGraphExec_t captured_copy(void)
{
    cudaGraph_t graph;
    OK(cudaStreamBeginCapture(t.a, cudaStreamCaptureModeThreadLocal));
    OK(cudaMemcpyAsync(t.device, t.pinned, 4, cudaMemcpyHostToDevice, t.a));
    OK(cudaStreamEndCapture(t.a, &graph));
    return instantiate(graph);
}

TEST(a_captured_copy_reads_again)
{
    start();
    cudaGraphExec_t exec = captured_copy();
    for (int i = 5; i < 8; i++) {
        t.pinned[0] = i;
        replay(exec);
        CHECK_INT(on_device(0), ==, i);
    }
    int *again;
    OK(cudaFreeHost(t.pinned));
    OK(cudaMallocHost((void **)&again, 256));
    CHECK(again != t.pinned);
    OK(cudaGraphLaunch(exec, t.a));
    GIVES(cudaStreamSynchronize(t.a), cudaErrorIllegalAddress);
    CHECK(strstr(cuda_emulator_report(), "reads memory that was freed") != NULL);
}

TEST(ranges_are_checked)
{
    start();
    int here[80] = {0};
    GIVES(cudaMemcpy(t.device, here, 65 * sizeof(int), cudaMemcpyHostToDevice),
          cudaErrorInvalidValue);
    GIVES(cudaMemcpy(t.device, here, 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    OK(cudaMemcpy(t.device, here, 4, cudaMemcpyDefault));
    GIVES(cudaMemset(here, 0, 4), cudaErrorInvalidValue);
    GIVES(cudaFree(t.pinned), cudaErrorInvalidValue);
    GIVES(cudaFree(t.device + 1), cudaErrorInvalidValue);
    OK(cudaFree(t.device));
    GIVES(cudaMemset(t.device, 0, 4), cudaErrorInvalidValue);
    GIVES(cudaFree(t.device), cudaErrorInvalidValue);
    OK(cudaFree(NULL));
    struct cuda_emulator_counters c;
    cuda_emulator_counters(&c);
    CHECK_INT(c.reports, ==, 5);
}

TEST(memory_ends)
{
    start();
    cuda_emulator_device(90, 132, 1 << 20);
    size_t rest, all;
    void *p = &p;
    OK(cudaMemGetInfo(&rest, &all));
    CHECK_INT(all - rest, ==, 256);
    GIVES(cudaMalloc(&p, (1 << 20) - 255), cudaErrorMemoryAllocation);
    CHECK(p == NULL);
    OK(cudaMalloc(&p, (1 << 20) - 256));
    CHECK_INT((size_t)p % 256, ==, 0);
}

/* Does the child live? */
static bool survives(void (*act)(void))
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        close(2);
        act();
        _exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void nothing(void)
{
}

static void touch_device(void)
{
    *(volatile int *)t.device = 1;
}

static void touch_freed(void)
{
    cudaFreeHost(t.pinned);
    *(volatile int *)t.pinned = 1;
}

static void touch_behind(void)
{
    ((volatile int *)t.pinned)[64] = 1;
}

TEST(device_memory_is_out_of_reach)
{
    start();
    CHECK(survives(nothing));
    CHECK(!survives(touch_device));
    CHECK(!survives(touch_freed));
    CHECK(!survives(touch_behind));
}

/* A while node whose body counts down. */
static cudaGraphConditionalHandle loop;

static void count_down(void *user)
{
    (void)user;
    t.device[0]--;
    cudaGraphSetConditional(loop, t.device[0] > 0);
}

static cudaGraph_t *add_conditional(cudaGraph_t graph, enum cudaGraphConditionalNodeType type,
                                    unsigned size)
{
    struct cudaGraphNodeParams params = {.type = cudaGraphNodeTypeConditional};
    params.conditional.handle = loop;
    params.conditional.type = type;
    params.conditional.size = size;
    enum cudaStreamCaptureStatus status;
    const cudaGraphNode_t *deps;
    const cudaGraphEdgeData *data;
    size_t count;
    cudaGraphNode_t node;
    OK(cudaStreamGetCaptureInfo(t.a, &status, NULL, &graph, &deps, &data, &count));
    OK(cudaGraphAddNode(&node, graph, deps, NULL, count, &params));
    OK(cudaStreamUpdateCaptureDependencies(t.a, &node, NULL, 1, cudaStreamSetCaptureDependencies));
    return params.conditional.phGraph_out;
}

static cudaGraphExec_t countdown(unsigned flags)
{
    cudaGraph_t graph, end;
    OK(cudaStreamBeginCapture(t.a, cudaStreamCaptureModeThreadLocal));
    OK(cudaMemcpyAsync(t.device, t.pinned, 4, cudaMemcpyHostToDevice, t.a));
    OK(cudaStreamGetCaptureInfo(t.a, &(enum cudaStreamCaptureStatus){0}, NULL, &graph, NULL, NULL,
                                NULL));
    OK(cudaGraphConditionalHandleCreate(&loop, graph, 1, flags));
    cudaGraph_t *bodies = add_conditional(graph, cudaGraphCondTypeWhile, 1);
    OK(cudaStreamBeginCaptureToGraph(t.b, bodies[0], NULL, NULL, 0,
                                     cudaStreamCaptureModeThreadLocal));
    OK(cuda_emulator_call(t.b, "down", count_down, NULL));
    OK(cudaStreamEndCapture(t.b, &end));
    CHECK(end == bodies[0]);
    put(t.a, "e");
    OK(cudaStreamEndCapture(t.a, &graph));
    cudaGraphExec_t exec = instantiate(graph), second;
    GIVES(cudaGraphInstantiate(&second, graph, 0), cudaErrorNotSupported);
    OK(cudaGraphDestroy(graph));
    return exec;
}

TEST(while_node_runs_until_zero)
{
    start();
    cudaGraphExec_t exec = countdown(cudaGraphCondAssignDefault);
    for (int n = 1; n < 6; n += 2) {
        t.pinned[0] = n;
        cuda_emulator_counters_clear();
        replay(exec);
        CHECK_INT(cuda_emulator_kernels("down"), ==, n);
        CHECK_INT(on_device(0), ==, 0);
    }
    CHECK_STR(t.log, "eee");
    /* Without a default nothing sets the value. */
    exec = countdown(0);
    cuda_emulator_counters_clear();
    replay(exec);
    CHECK_INT(cuda_emulator_kernels("down"), ==, 0);
}

static void choose(void *user)
{
    cudaGraphSetConditional(loop, *(int *)user != 0);
}

TEST(if_node_takes_one_side)
{
    start();
    cudaGraph_t graph, end;
    int side = 1;
    OK(cudaStreamBeginCapture(t.a, cudaStreamCaptureModeThreadLocal));
    OK(cudaStreamGetCaptureInfo(t.a, &(enum cudaStreamCaptureStatus){0}, NULL, &graph, NULL, NULL,
                                NULL));
    OK(cudaGraphConditionalHandleCreate(&loop, graph, 0, 0));
    OK(cuda_emulator_call(t.a, "choose", choose, &side));
    cudaGraph_t *bodies = add_conditional(graph, cudaGraphCondTypeIf, 2);
    for (int i = 0; i < 2; i++) {
        OK(cudaStreamBeginCaptureToGraph(t.b, bodies[i], NULL, NULL, 0,
                                         cudaStreamCaptureModeThreadLocal));
        put(t.b, i ? "n" : "y");
        OK(cudaStreamEndCapture(t.b, &end));
    }
    OK(cudaStreamEndCapture(t.a, &graph));
    cudaGraphExec_t exec = instantiate(graph);
    replay(exec);
    side = 0;
    replay(exec);
    CHECK_STR(t.log, "yn");
}

TEST(update_keeps_the_shape)
{
    start();
    cudaGraphExecUpdateResultInfo info;
    cudaGraphExec_t exec = instantiate(diamond());
    OK(cudaGraphExecUpdate(exec, diamond(), &info));
    cudaGraph_t graph;
    OK(cudaStreamBeginCapture(t.a, cudaStreamCaptureModeThreadLocal));
    put(t.a, "x");
    OK(cudaStreamEndCapture(t.a, &graph));
    GIVES(cudaGraphExecUpdate(exec, graph, &info), cudaErrorGraphExecUpdateFailure);
    CHECK_INT(info.result, ==, cudaGraphExecUpdateErrorTopologyChanged);
    replay(exec);
    CHECK_STR(t.log, "abcd");
}

TEST(external_event_in_a_graph)
{
    start();
    cudaGraph_t graph;
    OK(cudaStreamBeginCapture(t.a, cudaStreamCaptureModeThreadLocal));
    put(t.a, "a");
    OK(cudaEventRecordWithFlags(t.other, t.a, cudaEventRecordExternal));
    put(t.a, "b");
    OK(cudaStreamEndCapture(t.a, &graph));
    cudaGraphExec_t exec = instantiate(graph);
    OK(cudaGraphLaunch(exec, t.a));
    OK(cudaEventSynchronize(t.other));
    CHECK_STR(t.log, "a");
    OK(cudaStreamSynchronize(t.a));
    CHECK_STR(t.log, "ab");
}

TEST(calls_fail_on_demand)
{
    start();
    void *p;
    cuda_emulator_fail("cudaMalloc", 2, cudaErrorMemoryAllocation);
    OK(cudaMalloc(&p, 64));
    GIVES(cudaMalloc(&p, 64), cudaErrorMemoryAllocation);
    OK(cudaMalloc(&p, 64));
    GIVES(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
    GIVES(cudaGetLastError(), cudaErrorMemoryAllocation);
    OK(cudaGetLastError());
    cudaGraphExec_t exec;
    cuda_emulator_fail("cudaGraphInstantiate", 1, cudaErrorMemoryAllocation);
    GIVES(cudaGraphInstantiate(&exec, diamond(), 0), cudaErrorMemoryAllocation);
    cuda_emulator_fail("cudaLaunchKernel", 1, cudaErrorLaunchOutOfResources);
    GIVES(cuda_emulator_call(t.a, "a", note, NULL), cudaErrorLaunchOutOfResources);
    cuda_emulator_fail("cudaLaunchKernel", 1, cudaErrorLaunchOutOfResources);
    cuda_emulator_fail("cudaLaunchKernel", 1, cudaSuccess);
    put(t.a, "a");
}

TEST(the_device_keeps_some_errors)
{
    static const char *const at[] = {"cudaGraphLaunch", "cudaLaunchKernel", "kernel"};
    for (size_t i = 0; i < 3; i++) {
        start();
        cuda_emulator_fail(at[i], (int)i + 1, cudaErrorIllegalAddress);
        cudaGraphExec_t exec = instantiate(diamond());
        OK(cudaGraphLaunch(exec, t.a));
        put(t.b, "x");
        GIVES(cudaStreamSynchronize(t.a), cudaErrorIllegalAddress);
        CHECK(!strchr(t.log, 'd'));
        void *p;
        GIVES(cudaMalloc(&p, 4), cudaErrorIllegalAddress);
        GIVES(cudaStreamQuery(t.b), cudaErrorIllegalAddress);
        GIVES(cudaGetLastError(), cudaErrorIllegalAddress);
        GIVES(cudaGetLastError(), cudaErrorIllegalAddress);
        OK(cudaDeviceReset());
        OK(cudaMalloc(&p, 4));
        GIVES(cudaStreamQuery(t.b), cudaErrorInvalidResourceHandle);
    }
}

TEST(a_launch_hangs)
{
    start();
    cudaGraphExec_t exec = instantiate(diamond());
    cuda_emulator_hang(2);
    replay(exec);
    OK(cudaGraphLaunch(exec, t.a));
    OK(cudaEventRecord(t.event, t.a));
    put(t.b, "x");
    for (int i = 0; i < 100; i++)
        CHECK_INT(cudaEventQuery(t.event), ==, cudaErrorNotReady);
    CHECK_STR(t.log, "abcdx");
    cuda_emulator_hang(0);
    OK(cudaEventSynchronize(t.event));
    CHECK_STR(t.log, "abcdxabcd");
}

TEST(no_device)
{
    start();
    int count = 42, version = 42;
    cuda_emulator_absent(cudaErrorInsufficientDriver);
    GIVES(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
    CHECK_INT(count, ==, 42);
    OK(cudaDriverGetVersion(&version));
    CHECK_INT(version, ==, 0);
    void *p;
    GIVES(cudaMalloc(&p, 4), cudaErrorInsufficientDriver);
    cuda_emulator_absent(cudaSuccess);
    OK(cudaGetDeviceCount(&count));
    CHECK_INT(count, ==, 1);
}

TEST(counters_count)
{
    start();
    cuda_emulator_counters_clear();
    cudaGraphExec_t exec = instantiate(diamond());
    OK(cudaGraphUpload(exec, t.a));
    for (int i = 0; i < 3; i++)
        replay(exec);
    (void)on_device(0);
    struct cuda_emulator_counters c;
    cuda_emulator_counters(&c);
    CHECK_INT(c.kernel_nodes, ==, 4);
    CHECK_INT(c.kernels, ==, 12);
    CHECK_INT(c.graph_nodes, ==, 12);
    CHECK_INT(c.graph_launches, ==, 3);
    CHECK_INT(c.captures, ==, 1);
    CHECK_INT(c.instantiations, ==, 1);
    CHECK_INT(c.uploads, ==, 1);
    CHECK_INT(c.copies, ==, 1);
    CHECK_INT(c.copied_bytes, ==, 4);
    CHECK_INT(c.allocations, ==, 0);
    CHECK_INT(c.device_bytes, ==, 256);
    CHECK_INT(c.pinned_bytes, ==, 256);
    CHECK_INT(c.streams, ==, 2);
    CHECK_INT(c.events, ==, 2);
    CHECK_INT(c.execs, ==, 1);
    CHECK_INT(cuda_emulator_calls("cudaGraphLaunch"), ==, 3);
    CHECK_INT(cuda_emulator_kernels("c"), ==, 3);
}

TEST(bodies_off)
{
    start();
    cudaGraphExec_t exec = instantiate(diamond());
    cuda_emulator_bodies(false);
    cuda_emulator_always("[d]");
    for (int i = 0; i < 3; i++)
        replay(exec);
    CHECK_STR(t.log, "ddd");
    CHECK_INT(cuda_emulator_kernels("a"), ==, 3);
}

TEST(a_watcher_of_mapped_memory_sees_progress)
{
    start();
    t.pinned[0] = 9;
    OK(cudaMemcpyAsync(t.device, t.pinned, 4, cudaMemcpyHostToDevice, t.a));
    OK(cudaMemcpyAsync(t.pinned + 1, t.device, 4, cudaMemcpyDeviceToHost, t.a));
    cuda_emulator_background(100);
    volatile int *flag = t.pinned + 1;
    for (int i = 0; *flag == 0 && i < 5000; i++)
        thrd_sleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    cuda_emulator_background(0);
    CHECK_INT(*flag, ==, 9);
}

static int drive(void *user)
{
    cudaStream_t stream = user;
    int bad = 0;
    for (int i = 0; i < 200; i++) {
        bad += cudaMemsetAsync(t.device + (stream == t.b), i, 4, stream) != cudaSuccess;
        bad += cudaStreamSynchronize(stream) != cudaSuccess;
    }
    return bad;
}

TEST(two_threads)
{
    start();
    thrd_t one, two;
    REQUIRE(thrd_create(&one, drive, t.a) == thrd_success);
    REQUIRE(thrd_create(&two, drive, t.b) == thrd_success);
    int bad = 1, worse = 1;
    thrd_join(one, &bad);
    thrd_join(two, &worse);
    CHECK_INT(bad + worse, ==, 0);
    CHECK_INT(on_device(0), ==, (int)0xc7c7c7c7);
    CHECK_INT(on_device(1), ==, (int)0xc7c7c7c7);
}

/* Whatever the order, a graph with all its edges gives the same. */
TEST(shuffled_keeps_edges)
{
    start();
    cudaGraphExec_t exec = instantiate(diamond());
    int bc = 0;
    for (unsigned seed = 1; seed <= 40; seed++) {
        cuda_emulator_timing(CUDA_EMULATOR_SHUFFLED, seed);
        t.log[0] = 0;
        replay(exec);
        CHECK(strcmp(t.log, "abcd") == 0 || strcmp(t.log, "acbd") == 0);
        bc += t.log[1] == 'b';
    }
    CHECK(bc > 0 && bc < 40);
}

TAP_MAIN
