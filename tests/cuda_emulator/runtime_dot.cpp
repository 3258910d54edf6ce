/* runtime_dot.cpp - a graph as a DOT file, with the lines that a device's runtime writes. */
#include "runtime.h"

#include <cstdio>

namespace cuda_emulator::runtime
{

struct drawn {
    FILE *out;
    int graphs; /* numbered so far */
    std::vector<std::pair<cudaGraph_t, int>> bodies;
};

static const char *type_of(const task &t)
{
    switch (t.type) {
    case cudaGraphNodeTypeMemcpy:
        return "MEMCPY";
    case cudaGraphNodeTypeMemset:
        return "MEMSET";
    case cudaGraphNodeTypeGraph:
        return "GRAPH";
    case cudaGraphNodeTypeEventRecord:
        return "EVENT_RECORD";
    case cudaGraphNodeTypeConditional:
        return "CONDITIONAL";
    default:
        return "EMPTY";
    }
}

/* A grid of one dimension is its number, else all three stand in { }. */
static std::string blocks_of(const dim3 &d)
{
    std::string all = std::to_string(d.x);
    if (d.y == 1 && d.z == 1)
        return all;
    return "\\{" + all + "," + std::to_string(d.y) + "," + std::to_string(d.z) + "\\}";
}

/* Kernels have their names as the compiler writes them, of which this one knows the function. */
static void draw_kernel(const CUgraphNode_st &node, size_t order, FILE *out)
{
    const task &t = *node.what;
    std::string function = function_of(t.name);
    fprintf(out, "shape=\"record\" label=\"{KERNEL\n");
    fprintf(out, "| {ID | %u (topoId: %zu) | _Z%zu%s\\<\\<\\<%s,%s,%zu\\>\\>\\>}\n", node.number,
            order, function.size(), function.c_str(), blocks_of(t.grid).c_str(),
            blocks_of(t.block).c_str(), t.shared);
    fprintf(out, "| {{node handle | func handle} | {0x%016zX | 0x%016zX}}\n", (size_t)&node,
            (size_t)t.name);
    fprintf(out, "| {cooperative | 0}\n}\"];\n");
}

static void draw_other(const CUgraphNode_st &node, size_t order, drawn &to)
{
    fprintf(to.out, "shape=\"record\" label=\"{%s\n", type_of(*node.what));
    fprintf(to.out, "| {{ID | node handle} | {%u (topoId: %zu) | 0x%016zX}}\n", node.number, order,
            (size_t)&node);
    for (cudaGraph_t body : node.what->bodies) {
        to.bodies.push_back({body, ++to.graphs});
        fprintf(to.out, "| {body | graph_%d}\n", to.graphs);
    }
    fprintf(to.out, "}\"];\n");
}

static void draw(cudaGraph_t graph, int number, drawn &to)
{
    fprintf(to.out, "subgraph cluster_%d {\nlabel=\"graph_%d\" graph[style=\"dashed\"];\n", number,
            number);
    for (auto &node : graph->nodes) {
        bool kernel = node->what->type == cudaGraphNodeTypeKernel;
        size_t order = graph->nodes.size() - 1 - node->number;
        fprintf(to.out, "\"graph_%d_node_%u\"[style=\"%s\" ", number, node->number,
                kernel ? "bold" : "solid");
        if (kernel)
            draw_kernel(*node, order, to.out);
        else
            draw_other(*node, order, to);
    }
    for (auto &node : graph->nodes)
        for (const edge &e : node->deps)
            fprintf(to.out, "\"graph_%d_node_%u\" -> \"graph_%d_node_%u\" [headlabel=0];\n", number,
                    e.from->number, number, node->number);
    fprintf(to.out, "}\n");
}

static cudaError_t draw_all(cudaGraph_t graph, const char *path)
{
    drawn to = {fopen(path, "we"), 1, {{graph, 1}}};
    if (!to.out)
        return cudaErrorOperatingSystem;
    fprintf(to.out, "digraph dot {\n");
    for (size_t i = 0; i < to.bodies.size(); i++) {
        auto [body, number] = to.bodies[i];
        draw(body, number, to);
    }
    fprintf(to.out, "}\n");
    bool bad = ferror(to.out) != 0;
    return fclose(to.out) != 0 || bad ? cudaErrorOperatingSystem : cudaSuccess;
}

} // namespace cuda_emulator::runtime

using namespace cuda_emulator::runtime;

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned flags)
{
    return api(__func__, PLAIN, [&] {
        if (!the().graphs.count(graph) || !path)
            return cudaErrorInvalidValue;
        return flags == cudaGraphDebugDotFlagsVerbose ? draw_all(graph, path)
                                                      : cudaErrorNotSupported;
    });
}
