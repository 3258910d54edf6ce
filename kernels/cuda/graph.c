/* graph.c - a recorded list becomes one CUDA Graph: every command's kernels are captured on the
 * list's stream; a loop is a conditional node, so that k steps are one launch. Marks and the end
 * are kernels that write where the host looks. A branch is captured on a stream of its own between
 * two events, so that the graph has both ways side by side. Of a capture that is timed a kernel
 * behind each command's, in loops too, writes the clock. While it is captured an NVTX range with
 * its label is around each command, for profilers that map a graph's nodes to where they come from.
 */
#include "kernels/cuda/control.h"
#include "kernels/cuda/gpu.h"
#include "kernels/grids.h"

#include <nvtx3/nvToolsExt.h>
#include <stdio.h>

#if CUDART_VERSION < 13000      /* what takes edges has names of its own there */
#undef cudaStreamGetCaptureInfo /* CUDA 12 has a macro for its second form */
#define cudaStreamGetCaptureInfo cudaStreamGetCaptureInfo_v3
#define cudaStreamUpdateCaptureDependencies cudaStreamUpdateCaptureDependencies_v2
#define cudaGraphAddNode cudaGraphAddNode_v2
#endif

/* A recording. `open`: the loop whose body is being captured. */
struct recorder {
    struct tec_gpu_stream *s;
    struct tec_cuda_launch *launch;
    struct tec_gpu_graph *graph;
    const struct tec_capture_step *open;
    cudaGraphConditionalHandle handle;
    bool overlap;                  /* outside of loops */
    struct tec_gpu_branch *branch; /* NULL: it is captured where it stands */
    bool away;                     /* the branch has left and has not come back */
    int nodes;
    const char *label, *what; /* of the command in progress */
    int at;                   /* of it in the list, or: */
};
enum { AT_ALL = -1, AT_NONE = -2 };

/* --- loops ----------------------------------------------------------------------------------- */

/* The node behind what the stream has captured so far; its body's graph. */
static cudaError_t add_loop_node(struct recorder *r, cudaGraph_t *body)
{
    enum cudaStreamCaptureStatus status;
    cudaGraph_t graph;
    const cudaGraphNode_t *before;
    const cudaGraphEdgeData *edges;
    size_t n;
    cudaError_t error =
        cudaStreamGetCaptureInfo(r->s->stream, &status, NULL, &graph, &before, &edges, &n);
    if (error != cudaSuccess)
        return error;
    struct cudaGraphNodeParams params = {.type = cudaGraphNodeTypeConditional};
    params.conditional.handle = r->handle;
    params.conditional.type = cudaGraphCondTypeWhile;
    params.conditional.size = 1;
    cudaGraphNode_t node;
    error = cudaGraphAddNode(&node, graph, before, edges, n, &params);
    if (error != cudaSuccess)
        return error;
    *body = params.conditional.phGraph_out[0];
    return cudaStreamUpdateCaptureDependencies(r->s->stream, &node, NULL, 1,
                                               cudaStreamSetCaptureDependencies);
}

static cudaError_t make_handle(struct recorder *r)
{
    enum cudaStreamCaptureStatus status;
    cudaGraph_t graph;
    cudaError_t error =
        cudaStreamGetCaptureInfo(r->s->stream, &status, NULL, &graph, NULL, NULL, NULL);
    return error != cudaSuccess ? error : cudaGraphConditionalHandleCreate(&r->handle, graph, 0, 0);
}

static cudaError_t begin_loop(struct recorder *r, const struct tec_capture_step *c)
{
    cudaGraph_t body;
    cudaError_t error = make_handle(r);
    if (error != cudaSuccess)
        return error;
    tec_cuda_loop(r->launch, r->handle, c->count, c->stop, r->s->turn, true);
    if (r->launch->error != cudaSuccess)
        return r->launch->error;
    error = add_loop_node(r, &body);
    if (error == cudaSuccess)
        error = cudaStreamBeginCaptureToGraph(r->s->body, body, NULL, NULL, 0,
                                              cudaStreamCaptureModeRelaxed);
    if (error != cudaSuccess)
        return error;
    r->open = c;
    r->launch->stream = r->s->body;
    r->launch->first = true;
    r->overlap = r->launch->overlap;
    r->launch->overlap = r->s->overlap_loops;
    return cudaSuccess;
}

static cudaError_t end_loop(struct recorder *r)
{
    const struct tec_capture_step *c = r->open;
    cudaGraph_t body;
    size_t n = 0;
    tec_cuda_loop(r->launch, r->handle, c->count, c->stop, r->s->turn, false);
    cudaError_t error = cudaStreamEndCapture(r->s->body, &body);
    r->open = NULL;
    r->launch->stream = r->s->stream;
    r->launch->first = true;
    r->launch->overlap = r->overlap;
    if (error == cudaSuccess)
        error = cudaGraphGetNodes(body, NULL, &n);
    r->nodes += (int)n;
    return error;
}

/* --- commands -------------------------------------------------------------------------------- */

static void stamp(struct recorder *r, int mark)
{
    struct tec_gpu_board *board = r->s->board_there;
    tec_cuda_stamp(r->launch, &board->seen[mark], &board->wanted);
    r->graph->labels[r->graph->n_marks] = r->label;
    r->graph->marks[r->graph->n_marks++] = mark;
}

/* Behind command `at`, or in front of all; nothing where the capture is not timed. */
static void note_time(struct recorder *r, const struct tec_capture *capture, int at)
{
    if (capture->stamps)
        tec_cuda_time(r->launch, capture->stamps + TEC_STAMPS_BEFORE + at);
}

static cudaError_t record_control(struct recorder *r, const struct tec_capture_step *c)
{
    if (c->kind == TEC_REPEAT)
        return begin_loop(r, c);
    if (c->kind == TEC_REPEAT_END)
        return end_loop(r);
    stamp(r, c->other);
    return r->launch->error;
}

/* The kernels from `at` on that are started together, or one; how many commands that were. */
static int record_kernels(struct recorder *r, const struct tec_capture *capture, int at)
{
    const struct tec_capture_step *c = &capture->commands[at];
    r->label = c->label;
    r->at = at;
    nvtxRangePushA(c->label ? c->label : tec_kernel_infos[c->kernel].name);
    int n = tec_gpu_start(capture, at, r->launch);
    nvtxRangePop();
    return n;
}

static cudaError_t join(struct recorder *r)
{
    bool away = r->away;
    r->away = false;
    r->launch = &r->s->launch;
    return away ? tec_gpu_branch_join(r->branch, r->s) : cudaSuccess;
}

/* To the stream that the command is captured on. */
static cudaError_t turn_to(struct recorder *r, const struct tec_capture_step *c)
{
    bool branches = c->branch && r->branch && !r->open;
    cudaError_t error = cudaSuccess;
    r->launch = &r->s->launch;
    if (c->joins || (c->kind != TEC_RUN && !branches))
        error = join(r);
    if (error != cudaSuccess || !branches)
        return error;
    r->launch = &r->branch->s.launch;
    if (r->away)
        return cudaSuccess;
    r->away = true;
    return tec_gpu_branch_leave(r->branch, r->s);
}

/* Start command `at`, and those that go with it; how many commands that were: *n. */
static cudaError_t record_one(struct recorder *r, const struct tec_capture *capture, int at, int *n)
{
    const struct tec_capture_step *c = &capture->commands[at];
    cudaError_t error = turn_to(r, c);
    r->at = AT_NONE;
    *n = 1;
    if (error != cudaSuccess)
        return error;
    if (c->kind != TEC_RUN)
        return record_control(r, c);
    *n = record_kernels(r, capture, at);
    return r->launch->error;
}

static cudaError_t record_all(struct recorder *r, const struct tec_capture *capture)
{
    cudaError_t error = cudaSuccess;
    r->what = "capture of";
    for (int i = -TEC_STAMPS_BEFORE; i < 0; i++)
        note_time(r, capture, i);
    for (int i = 0, n; i < capture->n && error == cudaSuccess; i += n) {
        error = record_one(r, capture, i, &n);
        if (error == cudaSuccess) {
            note_time(r, capture, i);
            error = r->launch->error;
        }
    }
    if (error == cudaSuccess)
        error = join(r);
    if (error != cudaSuccess)
        return error;
    r->label = "the end";
    r->at = AT_NONE;
    stamp(r, TEC_MAX_MARKS);
    return r->launch->error;
}

/* Leaves no stream capturing, whatever happened. */
static cudaError_t record(struct recorder *r, const struct tec_capture *capture, cudaGraph_t *graph)
{
    cudaGraph_t dropped;
    r->what = "begin of a capture";
    cudaError_t error = cudaStreamBeginCapture(r->s->stream, cudaStreamCaptureModeRelaxed);
    if (error != cudaSuccess)
        return error;
    error = record_all(r, capture);
    if (r->open) {
        r->launch->overlap = r->overlap;
        (void)cudaStreamEndCapture(r->s->body, &dropped);
    }
    if (error == cudaSuccess)
        r->what = "end of a capture, after";
    cudaError_t ended = cudaStreamEndCapture(r->s->stream, graph);
    return error != cudaSuccess ? error : ended;
}

static cudaError_t instantiate(struct recorder *r, cudaGraph_t graph)
{
    size_t n = 0;
    r->what = "making a graph";
    r->at = AT_ALL;
    cudaError_t error = cudaGraphGetNodes(graph, NULL, &n);
    r->nodes += (int)n;
    if (error == cudaSuccess)
        error =
            cudaGraphInstantiate(&r->graph->exec, graph, cudaGraphInstantiateFlagUseNodePriority);
    if (error == cudaSuccess)
        error = cudaGraphUpload(r->graph->exec, r->s->stream);
    return error;
}

/* Refuse marks inside a loop: each mark has one time stamp, which a further turn would overwrite.
 */
static enum tec_status check_marks(const struct tec_capture *capture, struct tec_error *err)
{
    bool open = false;
    int n = 0;
    for (int i = 0; i < capture->n; i++) {
        const struct tec_capture_step *c = &capture->commands[i];
        open = c->kind == TEC_REPEAT || (open && c->kind != TEC_REPEAT_END);
        n += c->kind == TEC_MARK;
        if (open && c->kind == TEC_MARK)
            return tec_fail(err, TEC_INVALID,
                            "mark %d is a mark in a loop, which this device does not see; "
                            "mark the loop's end",
                            c->other);
    }
    return n <= TEC_MAX_MARKS ? TEC_OK
                              : tec_fail(err, TEC_INVALID, "%d marks in a capture; there can be %d",
                                         n, TEC_MAX_MARKS);
}

/* In the context of the stream: it ends with the next choice of the device. */
static cudaError_t record_there(struct recorder *r, const struct tec_capture *capture,
                                cudaGraph_t *graph)
{
    struct tec_gpu *gpu = (struct tec_gpu *)capture->device;
    bool green = gpu->green && capture->stream != TEC_STREAM_MAIN;
    r->what = "choosing a green context";
    cudaError_t error = green ? tec_gpu_green_enter(gpu->green) : cudaSuccess;
    if (error == cudaSuccess)
        error = record(r, capture, graph);
    if (error == cudaSuccess) { /* what follows is of the whole graph */
        r->label = NULL;
        r->what = "writing a graph into the folder of TECTUM_CUDA_GRAPHS";
        error = tec_gpu_dump(gpu, *graph);
    }
    if (error == cudaSuccess)
        error = instantiate(r, *graph);
    if (error != cudaSuccess || !green)
        return error;
    r->what = "leaving a green context";
    r->at = AT_NONE;
    return cudaSetDevice(gpu->index);
}

/* --- failures -------------------------------------------------------------------------------- */

static void note_cluster(void *user, const struct tec_grid *grid)
{
    unsigned *most = user;
    *most = grid->cluster > *most ? grid->cluster : *most;
}

/* The most blocks of a cluster that what failed would start. */
static unsigned clusters_of(const struct recorder *r, const struct tec_capture *capture)
{
    const struct tec_cuda_facts facts = tec_cuda_facts_of(r->launch);
    unsigned most = 0;
    if (r->at >= 0)
        (void)tec_grids_at(capture, r->at, &facts, note_cluster, &most);
    for (int i = 0; r->at == AT_ALL && i < capture->n;)
        i += tec_grids_at(capture, i, &facts, note_cluster, &most);
    return most;
}

/* What no GPU has run yet is switched off by a variable, which is named; it gives no memory. */
static void fail(const struct recorder *r, struct tec_gpu *gpu, const struct tec_capture *capture,
                 cudaError_t error)
{
    unsigned cluster = error == cudaErrorMemoryAllocation ? 1 : clusters_of(r, capture);
    char detail[200];
    bool all = r->at == AT_ALL;
    const char *label = r->label ? r->label : "?";
    snprintf(detail, sizeof detail,
             "%.60s%s in clusters of up to %u (without them: TECTUM_CUDA_CLUSTERS=0 in the "
             "environment)",
             all ? "with some kernels" : label, all ? "" : ", whose blocks are", cluster);
    tec_gpu_fail(gpu, error, r->what, cluster > 1 ? detail : r->label);
}

enum tec_status tec_gpu_compile(struct tec_capture *capture, struct tec_error *err)
{
    struct tec_gpu *gpu = (struct tec_gpu *)capture->device;
    struct tec_gpu_stream *s = &gpu->streams[capture->stream];
    TEC_TRY(check_marks(capture, err));
    struct tec_gpu_graph *compiled = TEC_NEW(capture->arena, 1, struct tec_gpu_graph);
    if (!compiled)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a graph");
    if (!tec_gpu_use(gpu))
        return tec_device_failure(capture->device, err);
    bool branches = gpu->branches && capture->stream == TEC_STREAM_MAIN;
    struct recorder r = {.s = s,
                         .launch = &s->launch,
                         .graph = compiled,
                         .branch = branches ? &gpu->branch : NULL,
                         .at = AT_NONE};
    cudaGraph_t graph = NULL;
    s->launch.kernels = gpu->branch.s.launch.kernels = 0;
    s->launch.first = true;
    s->launch.stream = s->stream;
    cudaError_t error = record_there(&r, capture, &graph);
    if (graph)
        (void)cudaGraphDestroy(graph);
    capture->compiled = compiled;
    capture->kernels = s->launch.kernels + gpu->branch.s.launch.kernels;
    capture->nodes = r.nodes;
    if (error == cudaSuccess && tec_gpu_drain(gpu, s, "making a graph"))
        return TEC_OK;
    if (error != cudaSuccess)
        fail(&r, gpu, capture, error);
    return tec_device_failure(capture->device, err);
}

void tec_gpu_discard(struct tec_capture *capture)
{
    const struct tec_gpu *gpu = (const struct tec_gpu *)capture->device;
    struct tec_gpu_graph *graph = capture->compiled;
    if (graph->exec && !gpu->hung)
        (void)cudaGraphExecDestroy(graph->exec);
    capture->compiled = NULL;
}
