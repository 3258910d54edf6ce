/* runtime_graph.cpp - graphs before they are instantiated: nodes, edges, conditional handles. */
#include "runtime.h"

#include <algorithm>

namespace cuda_emulator::runtime
{

cudaGraph_t make_graph(cudaGraph_t parent)
{
    cudaGraph_t graph = new CUgraph_st;
    graph->parent = parent;
    the().graphs.insert(graph);
    the().count.graphs++;
    return graph;
}

void delete_graph(cudaGraph_t graph)
{
    for (auto &node : graph->nodes)
        for (cudaGraph_t body : node->what->bodies)
            delete_graph(body);
    for (auto &entry : the().handles) // an executable graph may still use it
        if (entry.second->graph == graph)
            entry.second->graph = nullptr;
    the().graphs.erase(graph);
    the().count.graphs--;
    bury(graph);
}

void forget_graphs()
{
    while (!the().graphs.empty()) {
        cudaGraph_t graph = *the().graphs.begin();
        while (graph->parent)
            graph = graph->parent;
        delete_graph(graph);
    }
    for (cudaGraphExec_t exec : the().execs)
        bury(exec);
    the().execs.clear();
    the().handles.clear();
    the().count.execs = 0;
}

cudaGraphNode_t add_node(cudaGraph_t graph, task_ref what, std::vector<edge> deps)
{
    auto node = std::make_unique<CUgraphNode_st>();
    node->what = what;
    node->graph = graph;
    node->deps = std::move(deps);
    node->number = (unsigned)graph->nodes.size();
    graph->nodes.push_back(std::move(node));
    return graph->nodes.back().get();
}

static bool known(cudaGraph_t graph)
{
    return graph && the().graphs.count(graph);
}

static bool capturing(cudaGraph_t graph)
{
    for (const capture_ref &c : the().captures)
        if (c->graph == graph)
            return true;
    return false;
}

static cudaError_t conditional(cudaGraph_t graph, cudaConditionalNodeParams &p, task &t)
{
    auto i = the().handles.find(p.handle);
    if (i == the().handles.end() || i->second->used)
        return cudaErrorInvalidValue;
    cudaGraph_t of = graph;
    while (of && of != i->second->graph)
        of = of->parent;
    bool sized = p.type == cudaGraphCondTypeWhile ? p.size == 1
                 : p.type == cudaGraphCondTypeIf  ? p.size == 1 || p.size == 2
                                                  : p.size > 0 && p.size < 1024;
    if (!of || !sized || p.type > cudaGraphCondTypeSwitch)
        return cudaErrorInvalidValue;
    i->second->used = true;
    t.condition = i->second;
    t.loop = p.type;
    for (unsigned k = 0; k < p.size; k++)
        t.bodies.push_back(make_graph(graph));
    p.phGraph_out = t.bodies.data();
    return cudaSuccess;
}

static cudaError_t fill(cudaGraph_t graph, cudaGraphNodeParams &p, task &t)
{
    t.type = p.type;
    switch (p.type) {
    case cudaGraphNodeTypeEmpty:
        return cudaSuccess;
    case cudaGraphNodeTypeEventRecord:
        t.event = p.eventRecord.event;
        return the().events.count(t.event) ? cudaSuccess : cudaErrorInvalidValue;
    case cudaGraphNodeTypeGraph:
        if (!known(p.graph.graph))
            return cudaErrorInvalidValue;
        return build_plan(p.graph.graph, false, t.child);
    case cudaGraphNodeTypeConditional:
        return conditional(graph, p.conditional, t);
    default:
        return cudaErrorNotSupported;
    }
}

static cudaError_t add(cudaGraphNode_t *to, cudaGraph_t graph, const cudaGraphNode_t *from,
                       const cudaGraphEdgeData *data, size_t count, cudaGraphNodeParams *params)
{
    if (!to || !known(graph) || !params || (count && !from))
        return cudaErrorInvalidValue;
    std::vector<edge> deps;
    for (size_t i = 0; i < count; i++) {
        auto same = [&](const std::unique_ptr<CUgraphNode_st> &n) { return n.get() == from[i]; };
        if (std::none_of(graph->nodes.begin(), graph->nodes.end(), same))
            return cudaErrorInvalidValue;
        deps.push_back(edge{from[i], data ? data[i] : cudaGraphEdgeData{}});
    }
    auto t = std::make_shared<task>();
    cudaError_t error = fill(graph, *params, *t);
    if (error == cudaSuccess)
        *to = add_node(graph, t, std::move(deps));
    return error;
}

static cudaError_t list_edges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                              cudaGraphEdgeData *data, size_t *count)
{
    if (!known(graph) || !count || !from != !to)
        return cudaErrorInvalidValue;
    size_t n = 0, room = *count;
    for (auto &node : graph->nodes)
        for (const edge &e : node->deps) {
            if (from && !data && (e.data.type || e.data.from_port))
                return cudaErrorLossyQuery;
            if (from && n < room) {
                from[n] = e.from;
                to[n] = node.get();
                if (data)
                    data[n] = e.data;
            }
            n++;
        }
    for (size_t i = n; from && i < room; i++)
        from[i] = to[i] = nullptr;
    *count = from && room < n ? room : n;
    return cudaSuccess;
}

} // namespace cuda_emulator::runtime

using namespace cuda_emulator::runtime;

cudaError_t cudaGraphCreate(cudaGraph_t *pGraph, unsigned flags)
{
    return api(__func__, PLAIN, [&] {
        if (!pGraph || flags)
            return cudaErrorInvalidValue;
        *pGraph = make_graph(nullptr);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    return api(__func__, PLAIN, [&] {
        if (!known(graph) || graph->parent || capturing(graph))
            return cudaErrorInvalidValue;
        for (cudaGraphExec_t exec : the().execs)
            if (exec->graph == graph)
                exec->graph = nullptr;
        delete_graph(graph);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                             const cudaGraphNode_t *pDependencies,
                             const cudaGraphEdgeData *dependencyData, size_t numDependencies,
                             cudaGraphNodeParams *nodeParams)
{
    return api(__func__, PLAIN, [&] {
        return add(pGraphNode, graph, pDependencies, dependencyData, numDependencies, nodeParams);
    });
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *pHandle_out,
                                             cudaGraph_t graph, unsigned defaultLaunchValue,
                                             unsigned flags)
{
    return api(__func__, PLAIN, [&] {
        if (!pHandle_out || !known(graph) || flags > cudaGraphCondAssignDefault)
            return cudaErrorInvalidValue;
        auto h = std::make_shared<handle>();
        unsigned first = flags ? defaultLaunchValue : 0;
        *h = {++the().serial << 8, graph, defaultLaunchValue, flags, first, false,
              current_context()};
        the().handles[h->id] = h;
        *pHandle_out = h->id;
        return cudaSuccess;
    });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *numNodes)
{
    return api(__func__, PLAIN, [&] {
        if (!known(graph) || !numNodes)
            return cudaErrorInvalidValue;
        size_t n = graph->nodes.size();
        for (size_t i = 0; nodes && i < *numNodes; i++)
            nodes[i] = i < n ? graph->nodes[i].get() : nullptr;
        *numNodes = nodes && *numNodes < n ? *numNodes : n;
        return cudaSuccess;
    });
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                              cudaGraphEdgeData *edgeData, size_t *numEdges)
{
    return api(__func__, PLAIN, [&] { return list_edges(graph, from, to, edgeData, numEdges); });
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType *pType)
{
    return api(__func__, PLAIN, [&] {
        if (!node || !pType)
            return cudaErrorInvalidValue;
        *pType = node->what->type;
        return cudaSuccess;
    });
}
