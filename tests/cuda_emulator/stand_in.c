/* stand_in.c - the stand-in for the CUDA runtime by itself: what it does like the runtime, and the
 * mistakes that it finds. Graphs are in stand_in_graph.c. */
#include "tests/cuda_emulator/stand_in.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

TEST(late_work_runs_when_asked_for)
{
    start();
    put(t.a, "a");
    put(t.b, "b");
    CHECK_STR(t.log, "");
    CHECK_INT(cuda_emulator_progress(1), ==, 1);
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
    cuda_emulator_fail("cudaLaunchKernelEx", 1, cudaErrorLaunchOutOfResources);
    GIVES(cuda_emulator_call(t.a, "a", note, NULL), cudaErrorLaunchOutOfResources);
    cuda_emulator_fail("cudaLaunchKernelEx", 1, cudaErrorLaunchOutOfResources);
    cuda_emulator_fail("cudaLaunchKernelEx", 1, cudaSuccess);
    put(t.a, "a");
}

TEST(the_device_keeps_some_errors)
{
    static const char *const at[] = {"cudaGraphLaunch", "cudaLaunchKernelEx", "kernel"};
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

/* What a question about clusters is told: see check_cluster and clusters_held. */
static cudaError_t ask(unsigned blocks, unsigned cluster, size_t shared, int *held)
{
    static const char function; /* any address */
    cudaLaunchAttribute attribute = {.id = cudaLaunchAttributeClusterDimension};
    cudaLaunchConfig_t config = {.gridDim = {1, 1, blocks},
                                 .blockDim = {256, 1, 1},
                                 .dynamicSmemBytes = shared,
                                 .attrs = &attribute,
                                 .numAttrs = 1};
    attribute.val.clusterDim.x = attribute.val.clusterDim.y = 1;
    attribute.val.clusterDim.z = cluster;
    if (cluster > 8)
        OK(cudaFuncSetAttribute(&function, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    if (shared)
        OK(cudaFuncSetAttribute(&function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                (int)shared));
    return cudaOccupancyMaxActiveClusters(held, &function, &config);
}

TEST(clusters_find_room)
{
    int held = 0;
    start();
    OK(ask(8, 8, 100 << 10, &held)); /* two blocks on each of 132: eight groups of 16 */
    CHECK_INT(held, ==, 32);
    CHECK_INT(ask(8, 3, 0, &held), ==, cudaErrorInvalidValue);
    OK(ask(16, 16, 200 << 10, &held)); /* one on each */
    CHECK_INT(held, ==, 8);
    CHECK_INT(ask(17, 17, 0, &held), ==, cudaErrorInvalidClusterSize);
    cuda_emulator_device(90, 4, (size_t)1 << 30);
    OK(ask(16, 16, 100 << 10, &held));
    CHECK_INT(held, ==, 0);
    cuda_emulator_device(89, 128, (size_t)1 << 30);
    CHECK_INT(ask(2, 2, 0, &held), ==, cudaErrorInvalidClusterSize);
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

TAP_MAIN
