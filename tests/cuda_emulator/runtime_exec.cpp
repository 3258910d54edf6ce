/* runtime_exec.cpp - instantiated graphs: built, updated, launched, run node by node. */
#include "runtime.h"

#include <algorithm>

namespace cuda_emulator::runtime
{

/* A heap by the order: what comes first is at the front. */
static bool later(unsigned a, unsigned b)
{
    return the().when == CUDA_EMULATOR_HIGHEST ? a < b : a > b;
}

graph_run::graph_run(std::shared_ptr<plan> p) : of(std::move(p)), left(of->steps.size())
{
    top = this;
    first = true;
    for (unsigned i = 0; i < of->steps.size(); i++) {
        waits.push_back(of->steps[i].waits);
        if (waits[i] == 0)
            ready.push_back(i);
    }
    std::make_heap(ready.begin(), ready.end(), later);
}

void graph_run::finish(unsigned i)
{
    left--;
    for (unsigned next : of->steps[i].next)
        if (--waits[next] == 0) {
            ready.push_back(next);
            std::push_heap(ready.begin(), ready.end(), later);
        }
}

bool graph_run::open(unsigned i)
{
    const plan::step &s = of->steps[i];
    std::shared_ptr<plan> body;
    if (s.what->type == cudaGraphNodeTypeGraph) {
        body = s.inner.at(0);
    } else {
        unsigned v = s.what->condition->value;
        size_t n = s.inner.size();
        size_t k = s.what->loop == cudaGraphCondTypeSwitch ? v : v ? 0 : 1;
        if (k >= n)
            return false;
        body = s.inner[k];
    }
    auto run = std::make_unique<graph_run>(body);
    run->top = top;
    inside[i] = std::move(run);
    return true;
}

void graph_run::record(cudaEvent_t event)
{
    auto i = top->records.find(event);
    if (i == top->records.end())
        return;
    i->second->ns = now_ns();
    i->second->done = true;
}

/* One step of node i; `ends` says whether it is done with. */
cudaError_t graph_run::advance(unsigned i, bool &ends)
{
    const task &t = *of->steps[i].what;
    bool nested = t.type == cudaGraphNodeTypeGraph || t.type == cudaGraphNodeTypeConditional;
    auto in = inside.find(i);
    if (!nested || in == inside.end()) {
        the().count.graph_nodes++;
        ends = !nested || !open(i);
        if (t.type == cudaGraphNodeTypeEventRecord)
            record(t.event);
        return nested ? cudaSuccess : perform(t);
    }
    cudaError_t error = in->second->ended() ? cudaSuccess : in->second->step();
    ends = false;
    if (error != cudaSuccess || !in->second->ended())
        return error;
    inside.erase(in);
    bool again = t.type == cudaGraphNodeTypeConditional && t.loop == cudaGraphCondTypeWhile;
    if (again && ++rounds > 1000000) {
        report("a while node went round a million times");
        return cudaErrorLaunchTimeout;
    }
    ends = !again || !open(i);
    return cudaSuccess;
}

cudaError_t graph_run::step()
{
    if (first && top == this)
        for (const auto &h : of->handles)
            if (h->flags & cudaGraphCondAssignDefault)
                h->value = h->first;
    first = false;
    if (ended())
        return cudaSuccess;
    if (the().when == CUDA_EMULATOR_SHUFFLED) {
        std::swap(ready[draw((unsigned)ready.size())], ready.back());
    } else {
        std::make_heap(ready.begin(), ready.end(), later); // the order may have been changed
        std::pop_heap(ready.begin(), ready.end(), later);
    }
    unsigned i = ready.back();
    ready.pop_back();
    bool ends = true;
    cudaError_t error = advance(i, ends);
    if (ends) {
        finish(i);
    } else {
        ready.push_back(i);
        std::push_heap(ready.begin(), ready.end(), later);
    }
    return error;
}

static bool allowed_in_body(cudaGraphNodeType type)
{
    return type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeEmpty ||
           type == cudaGraphNodeTypeGraph || type == cudaGraphNodeTypeMemset ||
           type == cudaGraphNodeTypeMemcpy || type == cudaGraphNodeTypeConditional;
}

/* Kernels of a body are of the context that was current when its handle was made. */
static bool same_context(const CUgraph_st &body, CUgreenCtx green)
{
    for (auto &node : body.nodes)
        if (node->what->type == cudaGraphNodeTypeKernel && node->what->green != green)
            return false;
    return true;
}

/* The caller may change or destroy the graph afterwards: nodes' tasks are shared and never
 * changed. Nesting is as deep as the caller nested conditionals. */
cudaError_t build_plan(cudaGraph_t graph, bool body, std::shared_ptr<plan> &to)
{
    auto p = std::make_shared<plan>();
    p->steps.resize(graph->nodes.size());
    for (auto &node : graph->nodes) {
        plan::step &s = p->steps[node->number];
        s.what = node->what;
        s.node = node.get();
        s.waits = (unsigned)node->deps.size();
        for (const edge &e : node->deps) {
            s.before.push_back(e.from->number);
            p->steps[e.from->number].next.push_back(node->number);
        }
        if (body && !allowed_in_body(s.what->type))
            return cudaErrorNotSupported;
        if (s.what->child)
            s.inner.push_back(s.what->child);
        if (s.what->condition)
            p->handles.push_back(s.what->condition);
        p->conditional |= s.what->type == cudaGraphNodeTypeConditional;
        for (cudaGraph_t inner : s.what->bodies) {
            std::shared_ptr<plan> built;
            cudaError_t error = build_plan(inner, true, built);
            if (error == cudaSuccess && !same_context(*inner, s.what->condition->green))
                error = cudaErrorInvalidValue;
            if (error != cudaSuccess)
                return error;
            p->handles.insert(p->handles.end(), built->handles.begin(), built->handles.end());
            s.inner.push_back(built);
        }
    }
    to = p;
    return cudaSuccess;
}

static cudaError_t instantiate(cudaGraphExec_t *to, cudaGraph_t graph, unsigned long long flags)
{
    state &s = the();
    if (!to || !s.graphs.count(graph) || graph->parent ||
        (flags & ~(unsigned long long)cudaGraphInstantiateFlagUseNodePriority))
        return cudaErrorInvalidValue;
    for (auto &entry : s.handles)
        if (entry.second->graph == graph && !entry.second->used)
            return cudaErrorInvalidValue;
    std::shared_ptr<plan> p;
    cudaError_t error = build_plan(graph, false, p);
    if (error != cudaSuccess)
        return error;
    for (cudaGraphExec_t other : s.execs)
        if (p->conditional && other->graph == graph)
            return cudaErrorNotSupported;
    cudaGraphExec_t exec = new CUgraphExec_st;
    exec->plan = p;
    exec->graph = graph;
    s.execs.insert(exec);
    s.count.execs++;
    s.count.instantiations++;
    *to = exec;
    return cudaSuccess;
}

static cudaGraphExecUpdateResult compare(const plan &old, const plan &now, size_t &at)
{
    at = now.steps.size();
    if (old.steps.size() != now.steps.size())
        return cudaGraphExecUpdateErrorTopologyChanged;
    for (at = 0; at < now.steps.size(); at++) {
        const plan::step &a = old.steps[at], &b = now.steps[at];
        if (a.before != b.before || a.inner.size() != b.inner.size())
            return cudaGraphExecUpdateErrorTopologyChanged;
        if (a.what->type != b.what->type)
            return cudaGraphExecUpdateErrorNodeTypeChanged;
        if (a.what->condition != b.what->condition || a.what->to.where != b.what->to.where ||
            a.what->from.where != b.what->from.where)
            return cudaGraphExecUpdateErrorParametersChanged;
        for (size_t k = 0; k < a.inner.size(); k++) {
            size_t inside;
            cudaGraphExecUpdateResult r = compare(*a.inner[k], *b.inner[k], inside);
            if (r != cudaGraphExecUpdateSuccess)
                return r;
        }
    }
    return cudaGraphExecUpdateSuccess;
}

static cudaError_t update(cudaGraphExec_t exec, cudaGraph_t graph,
                          cudaGraphExecUpdateResultInfo *info)
{
    if (!info)
        return cudaErrorInvalidValue;
    *info = {cudaGraphExecUpdateError, nullptr, nullptr};
    if (!the().execs.count(exec) || !the().graphs.count(graph))
        return cudaErrorInvalidValue;
    std::shared_ptr<plan> p;
    cudaError_t error = build_plan(graph, false, p);
    if (error != cudaSuccess)
        return error;
    size_t at;
    info->result = compare(*exec->plan, *p, at);
    if (info->result != cudaGraphExecUpdateSuccess) {
        info->errorNode = at < p->steps.size() ? p->steps[at].node : nullptr;
        return cudaErrorGraphExecUpdateFailure;
    }
    exec->plan = p;
    the().count.updates++;
    return cudaSuccess;
}

/* Work of one executable graph never overlaps itself. */
static cudaError_t launch_graph(cudaGraphExec_t exec, cudaStream_t stream)
{
    state &s = the();
    stream = find_stream(stream);
    if (!s.execs.count(exec) || !stream)
        return cudaErrorInvalidResourceHandle;
    if (stream->capturing()) {
        if (exec->plan->conditional)
            return invalidate(stream->capture, cudaErrorNotSupported);
        auto t = std::make_shared<task>();
        t->type = cudaGraphNodeTypeGraph;
        t->child = exec->plan;
        return add_captured(stream, t);
    }
    cudaError_t error = legacy_guard(stream);
    if (error != cudaSuccess)
        return error;
    operation op;
    op.graph = std::make_shared<graph_run>(exec->plan);
    op.hung = s.hang > 0 && --s.hang == 0;
    if (exec->last && !exec->last->done)
        op.waits.push_back(exec->last);
    exec->last = op.done;
    for (const plan::step &step : exec->plan->steps)
        if (step.what->type == cudaGraphNodeTypeEventRecord && s.events.count(step.what->event)) {
            step.what->event->last = std::make_shared<mark>();
            step.what->event->capture = nullptr;
            op.graph->records[step.what->event] = step.what->event->last;
        }
    s.count.graph_launches++;
    return enqueue(stream, std::move(op));
}

} // namespace cuda_emulator::runtime

using namespace cuda_emulator::runtime;

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
                                 unsigned long long flags)
{
    return api(__func__, PLAIN, [&] { return instantiate(pGraphExec, graph, flags); });
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t hGraphExec, cudaGraph_t hGraph,
                                cudaGraphExecUpdateResultInfo *resultInfo)
{
    return api(__func__, PLAIN, [&] { return update(hGraphExec, hGraph, resultInfo); });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec)
{
    return api(__func__, PLAIN, [&] {
        if (!the().execs.count(graphExec))
            return cudaErrorInvalidValue;
        the().execs.erase(graphExec);
        the().count.execs--;
        bury(graphExec);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t graphExec, cudaStream_t stream)
{
    return api(__func__, ASYNC, [&] {
        stream = find_stream(stream);
        if (!the().execs.count(graphExec) || !stream)
            return cudaErrorInvalidResourceHandle;
        if (stream->capturing())
            return invalidate(stream->capture, cudaErrorStreamCaptureUnsupported);
        the().count.uploads++;
        operation op;
        return enqueue(stream, std::move(op));
    });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream)
{
    return api(__func__, ASYNC, [&] { return launch_graph(graphExec, stream); });
}

/* Called from a kernel, under the mutex. */
void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned value)
{
    auto i = the().handles.find(handle);
    if (i == the().handles.end())
        report("a kernel sets a conditional value whose handle does not exist");
    else
        i->second->value = value;
}
