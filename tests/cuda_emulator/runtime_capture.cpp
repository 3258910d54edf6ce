/* runtime_capture.cpp - stream capture: which calls it forbids, the edges it makes, its end. */
#include "runtime.h"

#include <algorithm>
#include <cstring>

namespace cuda_emulator::runtime
{

static thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

/* Forbidden to this thread: calls that a capture of its own, or a global one of another thread,
 * does not see. They end the captures that forbid them. */
cudaError_t capture_guard()
{
    if (thread_mode == cudaStreamCaptureModeRelaxed)
        return cudaSuccess;
    cudaError_t error = cudaSuccess;
    std::set<capture_ref> all = the().captures;
    for (const capture_ref &c : all) {
        bool own = c->thread == std::this_thread::get_id();
        bool other = c->mode == cudaStreamCaptureModeGlobal && thread_mode == c->mode;
        if (c->mode != cudaStreamCaptureModeRelaxed && (own || other))
            error = invalidate(c, cudaErrorStreamCaptureUnsupported);
    }
    return error;
}

cudaError_t invalidate(const capture_ref &c, cudaError_t error)
{
    if (c->invalid)
        return cudaErrorStreamCaptureInvalidated;
    c->invalid = true;
    return error;
}

/* The legacy stream would wait for blocking streams: none of them may be capturing. */
cudaError_t legacy_guard(cudaStream_t stream)
{
    if (!stream->legacy)
        return cudaSuccess;
    for (cudaStream_t other : the().streams)
        if (other->capturing() && other->blocking())
            return invalidate(other->capture, cudaErrorStreamCaptureImplicit);
    return cudaSuccess;
}

/* A kernel that may overlap the one before it is tied to it by a programmatic edge, which this
 * stand-in obeys like any other. */
cudaError_t add_captured(cudaStream_t stream, task_ref what)
{
    state &s = the();
    capture &c = *stream->capture;
    if (c.invalid)
        return cudaErrorStreamCaptureInvalidated;
    std::vector<edge> deps = stream->deps;
    if (what->overlap && deps.size() == 1 && deps[0].from->what->type == cudaGraphNodeTypeKernel) {
        deps[0].data.type = cudaGraphDependencyTypeProgrammatic;
        deps[0].data.from_port = cudaGraphKernelNodePortProgrammatic;
        s.count.overlap_edges++;
    }
    what->fails = s.late_error;
    s.late_error = cudaSuccess;
    cudaGraphNode_t node = add_node(c.graph, what, deps);
    stream->deps = {edge{node, {}}};
    return cudaSuccess;
}

static bool belongs(cudaGraph_t graph, const cudaGraphNode_t *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        auto same = [&](const std::unique_ptr<CUgraphNode_st> &n) { return n.get() == nodes[i]; };
        if (std::none_of(graph->nodes.begin(), graph->nodes.end(), same))
            return false;
    }
    return true;
}

static cudaError_t begin(cudaStream_t stream, cudaGraph_t graph, std::vector<edge> deps,
                         cudaStreamCaptureMode mode)
{
    state &s = the();
    stream = find_stream(stream);
    if (!stream)
        return cudaErrorInvalidResourceHandle;
    if (mode < cudaStreamCaptureModeGlobal || mode > cudaStreamCaptureModeRelaxed)
        return cudaErrorInvalidValue;
    if (stream->legacy)
        return cudaErrorStreamCaptureUnsupported;
    if (stream->capturing())
        return cudaErrorIllegalState;
    auto c = std::make_shared<capture>();
    c->id = ++s.serial;
    c->own = graph == nullptr;
    c->graph = graph ? graph : make_graph(nullptr);
    c->mode = mode;
    c->thread = std::this_thread::get_id();
    c->origin = stream;
    c->streams.insert(stream);
    stream->capture = c;
    stream->deps = std::move(deps);
    s.captures.insert(c);
    s.count.captures++;
    return cudaSuccess;
}

/* Every node that another stream ends on must lead to what the first stream ends on. */
static bool joined(const capture &c)
{
    std::set<cudaGraphNode_t> seen;
    std::vector<cudaGraphNode_t> left;
    for (const edge &e : c.origin->deps)
        left.push_back(e.from);
    while (!left.empty()) {
        cudaGraphNode_t node = left.back();
        left.pop_back();
        if (!seen.insert(node).second)
            continue;
        for (const edge &e : node->deps)
            left.push_back(e.from);
    }
    for (cudaStream_t stream : c.streams)
        for (const edge &e : stream->deps)
            if (!seen.count(e.from))
                return false;
    return true;
}

static void close(const capture_ref &c)
{
    c->over = true;
    for (cudaStream_t stream : c->streams) {
        stream->capture = nullptr;
        stream->deps.clear();
    }
    c->streams.clear();
    the().captures.erase(c);
}

static cudaError_t end(cudaStream_t stream, cudaGraph_t *graph)
{
    if (graph)
        *graph = nullptr;
    stream = find_stream(stream);
    if (!stream || !graph)
        return stream ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle;
    if (!stream->capturing())
        return cudaErrorIllegalState;
    capture_ref c = stream->capture;
    if (c->mode != cudaStreamCaptureModeRelaxed && c->thread != std::this_thread::get_id())
        return cudaErrorStreamCaptureWrongThread;
    if (c->origin != stream)
        return invalidate(c, cudaErrorStreamCaptureUnmatched);
    cudaError_t error = c->invalid   ? cudaErrorStreamCaptureInvalidated
                        : joined(*c) ? cudaSuccess
                                     : cudaErrorStreamCaptureUnjoined;
    close(c);
    if (error == cudaSuccess)
        *graph = c->graph;
    else if (c->own)
        delete_graph(c->graph);
    return error;
}

static cudaError_t show(cudaStream_t stream, cudaStreamCaptureStatus *status,
                        unsigned long long *id, cudaGraph_t *graph, const cudaGraphNode_t **deps,
                        const cudaGraphEdgeData **data, size_t *count)
{
    stream = find_stream(stream);
    if (!stream || !status)
        return stream ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle;
    cudaError_t error = legacy_guard(stream);
    if (error != cudaSuccess)
        return error;
    *status = !stream->capturing()       ? cudaStreamCaptureStatusNone
              : stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                         : cudaStreamCaptureStatusActive;
    if (*status != cudaStreamCaptureStatusActive)
        return cudaSuccess;
    stream->shown.clear();
    stream->shown_data.clear();
    for (const edge &e : stream->deps) {
        stream->shown.push_back(e.from);
        stream->shown_data.push_back(e.data);
        if (deps && !data && (e.data.type || e.data.from_port))
            return cudaErrorLossyQuery;
    }
    if (id)
        *id = stream->capture->id;
    if (graph)
        *graph = stream->capture->graph;
    if (deps)
        *deps = stream->shown.data();
    if (data)
        *data = stream->shown_data.data();
    if (count)
        *count = stream->shown.size();
    return cudaSuccess;
}

static cudaError_t update(cudaStream_t stream, const cudaGraphNode_t *deps,
                          const cudaGraphEdgeData *data, size_t count, unsigned flags)
{
    stream = find_stream(stream);
    if (!stream || (count && !deps) || flags > cudaStreamSetCaptureDependencies)
        return stream ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle;
    if (!stream->capturing())
        return cudaErrorIllegalState;
    if (stream->capture->invalid)
        return cudaErrorStreamCaptureInvalidated;
    if (!belongs(stream->capture->graph, deps, count))
        return cudaErrorInvalidValue;
    if (flags == cudaStreamSetCaptureDependencies)
        stream->deps.clear();
    for (size_t i = 0; i < count; i++)
        stream->deps.push_back(edge{deps[i], data ? data[i] : cudaGraphEdgeData{}});
    return cudaSuccess;
}

} // namespace cuda_emulator::runtime

using namespace cuda_emulator::runtime;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode)
{
    return api(__func__, PLAIN, [&] { return begin(stream, nullptr, {}, mode); });
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t *dependencies,
                                          const cudaGraphEdgeData *dependencyData,
                                          size_t numDependencies, cudaStreamCaptureMode mode)
{
    return api(__func__, PLAIN, [&] {
        if (!graph || !the().graphs.count(graph) || (numDependencies && !dependencies) ||
            !belongs(graph, dependencies, numDependencies))
            return cudaErrorInvalidValue;
        std::vector<edge> deps;
        for (size_t i = 0; i < numDependencies; i++)
            deps.push_back(
                edge{dependencies[i], dependencyData ? dependencyData[i] : cudaGraphEdgeData{}});
        return begin(stream, graph, std::move(deps), mode);
    });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *pGraph)
{
    return api(__func__, PLAIN, [&] { return end(stream, pGraph); });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode)
{
    return api(__func__, PLAIN, [&] {
        if (!mode || *mode < cudaStreamCaptureModeGlobal || *mode > cudaStreamCaptureModeRelaxed)
            return cudaErrorInvalidValue;
        std::swap(*mode, thread_mode);
        return cudaSuccess;
    });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *pCaptureStatus)
{
    return api(__func__, PLAIN, [&] {
        return show(stream, pCaptureStatus, nullptr, nullptr, nullptr, nullptr, nullptr);
    });
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
                                     cudaStreamCaptureStatus *captureStatus_out,
                                     unsigned long long *id_out, cudaGraph_t *graph_out,
                                     const cudaGraphNode_t **dependencies_out,
                                     const cudaGraphEdgeData **edgeData_out,
                                     size_t *numDependencies_out)
{
    return api(__func__, PLAIN, [&] {
        return show(stream, captureStatus_out, id_out, graph_out, dependencies_out, edgeData_out,
                    numDependencies_out);
    });
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *dependencies,
                                                const cudaGraphEdgeData *dependencyData,
                                                size_t numDependencies, unsigned flags)
{
    return api(__func__, PLAIN, [&] {
        return update(stream, dependencies, dependencyData, numDependencies, flags);
    });
}
