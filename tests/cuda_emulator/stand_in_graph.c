/* stand_in_graph.c - the stand-in for the CUDA runtime: capture, graphs, conditional nodes. */
#include "tests/cuda_emulator/stand_in.h"

#include <stdlib.h>
#include <unistd.h>

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

TEST(programmatic_edges_are_not_lost)
{
    start();
    cudaGraph_t graph;
    cudaGraphNode_t node, from[2], to[2];
    const cudaGraphNode_t *deps;
    const cudaGraphEdgeData *data;
    enum cudaStreamCaptureStatus status;
    size_t n = 2;
    OK(cudaStreamBeginCapture(t.a, cudaStreamCaptureModeThreadLocal));
    put(t.a, "a");
    OK(cudaStreamGetCaptureInfo(t.a, &status, NULL, &graph, &deps, NULL, &n));
    CHECK_INT(n, ==, 1);
    node = deps[0];
    cudaGraphEdgeData overlap = {.type = cudaGraphDependencyTypeProgrammatic,
                                 .from_port = cudaGraphKernelNodePortProgrammatic};
    OK(cudaStreamUpdateCaptureDependencies(t.a, &node, &overlap, 1,
                                           cudaStreamSetCaptureDependencies));
    GIVES(cudaStreamGetCaptureInfo(t.a, &status, NULL, &graph, &deps, NULL, &n),
          cudaErrorLossyQuery);
    OK(cudaStreamGetCaptureInfo(t.a, &status, NULL, &graph, &deps, &data, &n));
    CHECK_INT(data[0].from_port, ==, cudaGraphKernelNodePortProgrammatic);
    put(t.a, "b");
    OK(cudaStreamEndCapture(t.a, &graph));
    n = 2;
    GIVES(cudaGraphGetEdges(graph, from, to, NULL, &n), cudaErrorLossyQuery);
}

static bool dump_has(const char *text, const char *line)
{
    return strstr(text, line) != NULL;
}

/* A kernel and a loop of one: what a device writes of kernels and edges, the rest by its
 * type. */
TEST(a_graph_is_written_as_dot)
{
    static char text[4000];
    char path[] = "/tmp/tec-dot-XXXXXX";
    start();
    cudaGraph_t graph, end;
    OK(cudaStreamBeginCapture(t.a, cudaStreamCaptureModeThreadLocal));
    put(t.a, "some_kernel<4>");
    OK(cudaStreamGetCaptureInfo(t.a, &(enum cudaStreamCaptureStatus){0}, NULL, &graph, NULL, NULL,
                                NULL));
    OK(cudaGraphConditionalHandleCreate(&loop, graph, 1, 0));
    cudaGraph_t *bodies = add_conditional(graph, cudaGraphCondTypeWhile, 1);
    OK(cudaStreamBeginCaptureToGraph(t.b, bodies[0], NULL, NULL, 0,
                                     cudaStreamCaptureModeThreadLocal));
    OK(cuda_emulator_call(t.b, "down", count_down, NULL));
    OK(cudaStreamEndCapture(t.b, &end));
    OK(cudaStreamEndCapture(t.a, &graph));
    int file = mkstemp(path);
    REQUIRE(file >= 0);
    GIVES(cudaGraphDebugDotPrint(graph, path, 0), cudaErrorNotSupported);
    GIVES(cudaGraphDebugDotPrint(graph, "/nowhere/x.dot", cudaGraphDebugDotFlagsVerbose),
          cudaErrorOperatingSystem);
    OK(cudaGraphDebugDotPrint(graph, path, cudaGraphDebugDotFlagsVerbose));
    ssize_t n = read(file, text, sizeof text - 1);
    close(file);
    unlink(path);
    CHECK_INT(n, >, 0);
    CHECK(dump_has(text, "digraph dot {\nsubgraph cluster_1 {\nlabel=\"graph_1\" "
                         "graph[style=\"dashed\"];\n\"graph_1_node_0\"[style=\"bold\" "
                         "shape=\"record\" label=\"{KERNEL\n| {ID | 0 (topoId: 1) | "
                         "_Z11some_kernel\\<\\<\\<1,1,0\\>\\>\\>}\n"));
    CHECK(dump_has(text, "\n\"graph_1_node_0\" -> \"graph_1_node_1\" [headlabel=0];\n}\n"
                         "subgraph cluster_2 {\n"));
    CHECK(dump_has(text, "label=\"{CONDITIONAL\n"));
    CHECK(dump_has(text, "| {ID | 0 (topoId: 0) | _Z4down\\<"));
    OK(cudaGraphDestroy(graph));
}

TAP_MAIN
