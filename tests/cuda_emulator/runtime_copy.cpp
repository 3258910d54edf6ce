/* runtime_copy.cpp - copies and sets: on a stream, captured, or waited for. */
#include "runtime.h"

namespace cuda_emulator::runtime
{

static bool on_device(const range &r)
{
    return r.where == place::device || r.where == place::managed;
}

/* Pinned memory may stand for either side. */
static bool fits(const range &r, bool device)
{
    return r.where == place::pinned || r.where == place::managed || on_device(r) == device;
}

static cudaError_t describe(task &t, void *dst, const void *src, size_t count, cudaMemcpyKind kind)
{
    t.type = cudaGraphNodeTypeMemcpy;
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    cudaError_t error = find_range(dst, count, t.to);
    if (error == cudaSuccess)
        error = find_range(src, count, t.from);
    if (error != cudaSuccess || kind == cudaMemcpyDefault)
        return error;
    bool to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    return fits(t.to, to) && fits(t.from, from) ? cudaSuccess : cudaErrorInvalidValue;
}

/* Pageable memory is read during the call and written before it returns; pinned memory is read and
 * written when the stream comes to it. In a graph both are. */
static cudaError_t copy_async(void *dst, const void *src, size_t count, cudaMemcpyKind kind,
                              cudaStream_t stream, bool wait)
{
    if (count == 0)
        return find_stream(stream) ? cudaSuccess : cudaErrorInvalidResourceHandle;
    auto t = std::make_shared<task>();
    cudaError_t error = describe(*t, dst, src, count, kind);
    if (error != cudaSuccess)
        return error;
    stream = find_stream(stream);
    if (!stream)
        return cudaErrorInvalidResourceHandle;
    if (!stream->capturing() && t->from.where == place::pageable)
        t->staged.assign(t->from.at, t->from.at + count);
    bool sync = wait || t->to.where == place::pageable;
    bool captured = stream->capturing();
    error = submit(stream, t);
    if (error == cudaSuccess && sync && !captured)
        error = wait_for(stream->tail);
    return error;
}

static cudaError_t set_async(void *to, int value, size_t count, cudaStream_t stream)
{
    if (!find_stream(stream))
        return cudaErrorInvalidResourceHandle;
    if (count == 0)
        return cudaSuccess;
    auto t = std::make_shared<task>();
    t->type = cudaGraphNodeTypeMemset;
    t->value = value;
    cudaError_t error = find_range(to, count, t->to);
    if (error == cudaSuccess && t->to.where == place::pageable)
        error = cudaErrorInvalidValue;
    return error != cudaSuccess ? error : submit(find_stream(stream), t);
}

} // namespace cuda_emulator::runtime

using namespace cuda_emulator::runtime;

cudaError_t cudaMemcpy(void *dst, const void *src, size_t count, cudaMemcpyKind kind)
{
    return api(__func__, UNSAFE, [&] { return copy_async(dst, src, count, kind, nullptr, true); });
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count, cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    return api(__func__, ASYNC, [&] { return copy_async(dst, src, count, kind, stream, false); });
}

cudaError_t cudaMemset(void *devPtr, int value, size_t count)
{
    return api(__func__, UNSAFE | ASYNC, [&] { return set_async(devPtr, value, count, nullptr); });
}

cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t stream)
{
    return api(__func__, ASYNC, [&] { return set_async(devPtr, value, count, stream); });
}
