/* runtime_work.cpp - who runs next, and what an operation does. */
#include "runtime.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fnmatch.h>
#include <set>
#include <utility>

namespace cuda_emulator::runtime
{

static bool body_runs(const char *name)
{
    if (the().bodies)
        return true;
    for (const std::string &pattern : the().always)
        if (fnmatch(pattern.c_str(), name, 0) == 0)
            return true;
    return false;
}

static cudaError_t run_kernel(const task &t)
{
    state &s = the();
    s.count.kernels++;
    s.kernels[t.name]++;
    cudaError_t error;
    if (injected("kernel", error))
        return error;
    if (body_runs(t.name)) {
        reach_device();
        run_grid(t.name, t.grid, t.block, t.shared, t.cluster, t.body);
    }
    return cudaSuccess;
}

static cudaError_t run_copy(const task &t)
{
    if (!alive(t.to) || !alive(t.from)) {
        report("a copy of %zu bytes %s memory that was freed after it was put on its stream or "
               "captured",
               t.to.size, alive(t.from) ? "writes" : "reads");
        return cudaErrorIllegalAddress;
    }
    within_reach to(t.to.at), source(t.from.at);
    const char *from = t.staged.empty() ? t.from.at : t.staged.data();
    memmove(t.to.at, from, t.to.size);
    the().count.copies++;
    the().count.copied_bytes += t.to.size;
    return cudaSuccess;
}

static cudaError_t run_set(const task &t)
{
    if (!alive(t.to)) {
        report("%zu bytes are set in memory that was freed since", t.to.size);
        return cudaErrorIllegalAddress;
    }
    within_reach to(t.to.at);
    memset(t.to.at, t.value, t.to.size);
    the().count.sets++;
    return cudaSuccess;
}

cudaError_t perform(const task &t)
{
    if (t.fails != cudaSuccess)
        return t.fails;
    switch (t.type) {
    case cudaGraphNodeTypeKernel:
        return run_kernel(t);
    case cudaGraphNodeTypeMemcpy:
        return run_copy(t);
    case cudaGraphNodeTypeMemset:
        return run_set(t);
    default:
        return cudaSuccess;
    }
}

static void end(operation &op)
{
    op.done->ns = now_ns();
    op.done->done = true;
}

/* After an error that the device keeps, nothing runs any more. */
void raise(cudaError_t error)
{
    the().sticky = error;
    drop_work();
}

void drop_work()
{
    for (cudaStream_t stream : the().streams) {
        for (operation &op : stream->work)
            end(op);
        stream->work.clear();
    }
}

static bool ready(operation &op)
{
    if (op.hung)
        return false;
    auto &w = op.waits;
    w.erase(std::remove_if(w.begin(), w.end(), [](const mark_ref &m) { return m->done; }), w.end());
    return w.empty();
}

static cudaStream_t choose()
{
    state &s = the();
    std::vector<cudaStream_t> able;
    for (cudaStream_t stream : s.streams)
        if (!stream->work.empty() && ready(stream->work.front()))
            able.push_back(stream);
    if (able.empty())
        return nullptr;
    if (s.when == CUDA_EMULATOR_HIGHEST)
        return able.back();
    return s.when == CUDA_EMULATOR_SHUFFLED ? able[draw((unsigned)able.size())] : able.front();
}

bool more_work()
{
    return choose() != nullptr;
}

bool progress()
{
    cudaStream_t stream = choose();
    if (!stream)
        return false;
    operation &op = stream->work.front();
    cudaError_t error = op.fails;
    if (error == cudaSuccess && op.graph)
        error = op.graph->step();
    else if (error == cudaSuccess && op.what)
        error = perform(*op.what);
    if (error != cudaSuccess) {
        raise(error);
        return true;
    }
    if (op.graph && !op.graph->ended())
        return true;
    end(op);
    stream->work.pop_front();
    return true;
}

static bool hanging()
{
    for (cudaStream_t stream : the().streams)
        if (!stream->work.empty() && stream->work.front().hung)
            return true;
    return false;
}

/* Until `m` is done, or the device is lost. Behind work that hangs it waits for as long as that
 * does, and lets other threads call meanwhile. */
cudaError_t wait_for(const mark_ref &m)
{
    state &s = the();
    while (m && !m->done && s.sticky == cudaSuccess) {
        if (progress())
            continue;
        if (!hanging()) {
            fprintf(stderr, "cuda_emulator: work waits for what was never put on a stream\n");
            abort();
        }
        out_of_reach();
        s.mutex.unlock();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        s.mutex.lock();
    }
    return s.sticky;
}

cudaError_t wait_for_all()
{
    std::vector<mark_ref> tails;
    for (cudaStream_t stream : the().streams)
        if (stream->tail)
            tails.push_back(stream->tail);
    for (const mark_ref &m : tails)
        wait_for(m);
    return the().sticky;
}

/* The legacy stream waits for every blocking stream, and they for it. */
static void order_legacy(cudaStream_t stream, operation &op)
{
    state &s = the();
    if (!stream->blocking())
        return;
    for (cudaStream_t other : s.streams) {
        bool counts = stream->legacy ? other->blocking() && other != stream : other->legacy;
        if (counts && other->tail && !other->tail->done)
            op.waits.push_back(other->tail);
    }
}

cudaError_t enqueue(cudaStream_t stream, operation &&op)
{
    state &s = the();
    order_legacy(stream, op);
    op.fails = s.late_error;
    s.late_error = cudaSuccess;
    stream->tail = op.done;
    stream->work.push_back(std::move(op));
    unsigned steps = s.when == CUDA_EMULATOR_SHUFFLED ? draw(3) : 0;
    while (s.when == CUDA_EMULATOR_EARLY || steps-- > 0)
        if (!progress())
            break;
    return cudaSuccess;
}

cudaError_t submit(cudaStream_t stream, task_ref what)
{
    cudaError_t error = legacy_guard(stream);
    if (error != cudaSuccess)
        return error;
    if (stream->capturing())
        return add_captured(stream, what);
    operation op;
    op.what = what;
    return enqueue(stream, std::move(op));
}

static cudaError_t check_launch(const task &t, const void *function)
{
    size_t threads = (size_t)t.block.x * t.block.y * t.block.z;
    if (!t.grid.x || !t.grid.y || !t.grid.z || !threads)
        return cudaErrorInvalidConfiguration;
    if (t.grid.x > 2147483647U || t.grid.y > 65535 || t.grid.z > 65535)
        return cudaErrorInvalidConfiguration;
    if (threads > 1024 || t.block.z > 64)
        return cudaErrorInvalidConfiguration;
    cudaError_t error = check_cluster(function, t.cluster, t.grid.z);
    if (error != cudaSuccess)
        return error;
    return t.shared > shared_limit(function) ? cudaErrorInvalidValue : cudaSuccess;
}

} // namespace cuda_emulator::runtime

namespace cuda_emulator
{

using namespace runtime;

/* emulated_thread.h */
void previous_awaited();
void next_released();

/* names.cpp, shared_arrays.cpp */
const char *file_of_kernel(const char *name);
bool kernel_is_of(const void *function, const char *file);

/* A file starts its own kernels, and these are static: before a block only the arrays of the file
 * that started it become NaN. Of tests' own functions nobody said a file. */
static cudaError_t check_file(const char *name, const void *function)
{
    static std::set<std::pair<const char *, const void *>> known;
    const char *file = function ? file_of_kernel(name) : nullptr;
    if (!file || !known.insert({name, function}).second || kernel_is_of(function, file))
        return cudaSuccess;
    known.erase({name, function});
    runtime::report("%s starts %s, which is no static kernel of that file", file, name);
    return cudaErrorInvalidDeviceFunction;
}

static bool may_overlap(const cudaLaunchConfig_t &config)
{
    for (unsigned i = 0; i < config.numAttrs; i++)
        if (config.attrs[i].id == cudaLaunchAttributeProgrammaticStreamSerialization)
            return config.attrs[i].val.programmaticStreamSerializationAllowed != 0;
    return false;
}

cudaError_t launch(const cudaLaunchConfig_t &config, const char *name, const void *function,
                   std::function<void()> body)
{
    const dim3 &grid = config.gridDim, &block = config.blockDim;
    size_t shared = config.dynamicSmemBytes;
    unsigned cluster = cluster_of(config);
    bool overlap = may_overlap(config);
    return api("cudaLaunchKernelEx", ASYNC, [&] {
        auto t = std::make_shared<task>();
        t->type = cudaGraphNodeTypeKernel;
        t->name = name;
        t->grid = grid;
        t->block = block;
        t->shared = shared;
        t->cluster = cluster;
        t->overlap = overlap;
        t->body = std::move(body);
        cudaStream_t stream = find_stream(config.stream);
        if (!stream)
            return cudaErrorInvalidResourceHandle;
        t->green = stream->green;
        cudaError_t error = check_launch(*t, function);
        if (error == cudaSuccess)
            error = check_file(name, function);
        if (error != cudaSuccess)
            return error;
        the().count.overlaps += overlap;
        if (the().grids.size() < state::GRIDS)
            the().grids.push_back({{grid.x, grid.y, grid.z},
                                   block.x * block.y * block.z,
                                   shared,
                                   cluster,
                                   function_of(name)});
        the().count.kernel_nodes += stream->capturing();
        return submit(stream, t);
    });
}

} // namespace cuda_emulator

cudaError_t cuda_emulator_call(cudaStream_t stream, const char *name, void (*body)(void *user),
                               void *user)
{
    return cuda_emulator::launch({dim3(), dim3(), 0, stream, nullptr, 0}, name, nullptr, [=] {
        cuda_emulator::previous_awaited();
        cuda_emulator::next_released();
        body(user);
    });
}
