/* runtime_stream.cpp - streams and events. */
#include "runtime.h"

#include <algorithm>

namespace cuda_emulator::runtime
{

/* NULL and cudaStreamLegacy are the same; streams per thread there are none. */
cudaStream_t find_stream(cudaStream_t stream)
{
    state &s = the();
    if (s.streams.empty()) {
        cudaStream_t legacy = new CUstream_st;
        legacy->legacy = true;
        s.streams.push_back(legacy);
    }
    if (!stream || stream == cudaStreamLegacy)
        return s.streams.front();
    auto i = std::find(s.streams.begin(), s.streams.end(), stream);
    return i == s.streams.end() ? nullptr : stream;
}

cudaError_t create_stream(cudaStream_t *to, unsigned flags, int priority)
{
    if (!to || (flags & ~(unsigned)cudaStreamNonBlocking))
        return cudaErrorInvalidValue;
    find_stream(nullptr);
    cudaStream_t stream = new CUstream_st;
    stream->serial = ++the().serial;
    stream->flags = flags;
    stream->priority = std::max(-5, std::min(0, priority));
    the().streams.push_back(stream);
    the().count.streams++;
    *to = stream;
    return cudaSuccess;
}

/* What is on the stream still runs. */
static cudaError_t destroy_stream(cudaStream_t stream)
{
    state &s = the();
    if (!stream || !find_stream(stream) || stream == find_stream(nullptr))
        return cudaErrorInvalidResourceHandle;
    if (stream->capturing())
        invalidate(stream->capture, cudaErrorStreamCaptureUnsupported);
    wait_for(stream->tail);
    for (const capture_ref &c : s.captures)
        c->streams.erase(stream);
    s.streams.erase(std::find(s.streams.begin(), s.streams.end(), stream));
    s.count.streams--;
    bury(stream);
    return cudaSuccess;
}

/* A query or wait on a stream that captures, or on the legacy one beside it, ends the capture. */
static cudaError_t check_idle(cudaStream_t &stream)
{
    stream = find_stream(stream);
    if (!stream)
        return cudaErrorInvalidResourceHandle;
    if (stream->capturing())
        return invalidate(stream->capture, cudaErrorStreamCaptureUnsupported);
    return legacy_guard(stream);
}

/* Steps that a query makes. */
static void ask()
{
    state &s = the();
    unsigned steps = s.when == CUDA_EMULATOR_SHUFFLED ? 1 + draw(200) : 100;
    while (steps-- > 0 && progress())
        ;
}

static bool known(cudaEvent_t event)
{
    return event && the().events.count(event);
}

static bool captured(cudaEvent_t event)
{
    return event->capture != nullptr;
}

static cudaError_t record(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
    stream = find_stream(stream);
    if (!known(event) || !stream)
        return cudaErrorInvalidResourceHandle;
    if (flags & ~(unsigned)cudaEventRecordExternal)
        return cudaErrorInvalidValue;
    cudaError_t error = legacy_guard(stream);
    if (error != cudaSuccess)
        return error;
    if (stream->capturing() && flags == cudaEventRecordExternal) {
        auto t = std::make_shared<task>();
        t->type = cudaGraphNodeTypeEventRecord;
        t->event = event;
        return add_captured(stream, t);
    }
    if (stream->capturing()) {
        if (stream->capture->invalid)
            return cudaErrorStreamCaptureInvalidated;
        event->capture = stream->capture;
        event->deps = stream->deps;
        return cudaSuccess;
    }
    event->capture = nullptr;
    event->deps.clear();
    operation op;
    event->last = op.done;
    return enqueue(stream, std::move(op));
}

/* A wait for an event of the same capture adds edges, or takes the stream into the capture. */
static cudaError_t wait_captured(cudaStream_t stream, cudaEvent_t event)
{
    if (!captured(event))
        return invalidate(stream->capture, cudaErrorStreamCaptureIsolation);
    if (event->capture->over)
        return stream->capturing() ? invalidate(stream->capture, cudaErrorCapturedEvent)
                                   : cudaErrorCapturedEvent;
    if (event->capture->invalid)
        return cudaErrorStreamCaptureInvalidated;
    if (stream->legacy)
        return invalidate(event->capture, cudaErrorStreamCaptureImplicit);
    if (!stream->capturing()) {
        stream->capture = event->capture;
        stream->capture->streams.insert(stream);
        stream->deps = event->deps;
        return cudaSuccess;
    }
    if (stream->capture != event->capture) {
        invalidate(event->capture, cudaErrorStreamCaptureMerge);
        return invalidate(stream->capture, cudaErrorStreamCaptureMerge);
    }
    for (const edge &e : event->deps) {
        auto same = [&](const edge &o) { return o.from == e.from; };
        if (std::none_of(stream->deps.begin(), stream->deps.end(), same))
            stream->deps.push_back(e);
    }
    return cudaSuccess;
}

static cudaError_t wait_event(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    stream = find_stream(stream);
    if (!known(event) || !stream)
        return cudaErrorInvalidResourceHandle;
    if (flags & ~(unsigned)cudaEventWaitExternal)
        return cudaErrorInvalidValue;
    if (flags)
        return cudaErrorNotSupported;
    cudaError_t error = legacy_guard(stream);
    if (error != cudaSuccess)
        return error;
    if (stream->capturing() && stream->capture->invalid)
        return cudaErrorStreamCaptureInvalidated;
    if (stream->capturing() || captured(event))
        return wait_captured(stream, event);
    if (!event->last)
        return cudaSuccess;
    operation op;
    op.waits.push_back(event->last);
    return enqueue(stream, std::move(op));
}

static cudaError_t check_recorded(cudaEvent_t event)
{
    if (!known(event))
        return cudaErrorInvalidResourceHandle;
    if (!captured(event))
        return cudaSuccess;
    if (!event->capture->over)
        return invalidate(event->capture, cudaErrorCapturedEvent);
    return cudaErrorCapturedEvent;
}

static cudaError_t elapsed(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    if (!ms || !known(start) || !known(end))
        return !ms ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle;
    if (captured(start) || captured(end))
        return cudaErrorCapturedEvent;
    if (!start->last || !end->last || ((start->flags | end->flags) & cudaEventDisableTiming))
        return cudaErrorInvalidResourceHandle;
    if (!start->last->done || !end->last->done)
        return cudaErrorNotReady;
    double ns = (double)(long long)(end->last->ns - start->last->ns);
    *ms = (float)(ns / 1e6);
    return cudaSuccess;
}

} // namespace cuda_emulator::runtime

using namespace cuda_emulator::runtime;

cudaError_t cudaStreamCreate(cudaStream_t *pStream)
{
    return api(__func__, PLAIN, [&] { return create_stream(pStream, 0, 0); });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned flags)
{
    return api(__func__, PLAIN, [&] { return create_stream(pStream, flags, 0); });
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *pStream, unsigned flags, int priority)
{
    return api(__func__, PLAIN, [&] { return create_stream(pStream, flags, priority); });
}

cudaError_t cudaStreamGetPriority(cudaStream_t hStream, int *priority)
{
    return api(__func__, PLAIN, [&] {
        cudaStream_t stream = find_stream(hStream);
        if (!stream || !priority)
            return stream ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle;
        *priority = stream->priority;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
    return api(__func__, PLAIN, [&] {
        if (leastPriority)
            *leastPriority = 0;
        if (greatestPriority)
            *greatestPriority = -5;
        return cudaSuccess;
    });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    return api(__func__, PLAIN, [&] { return destroy_stream(stream); });
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    return api(__func__, UNSAFE, [&] {
        cudaError_t error = check_idle(stream);
        if (error != cudaSuccess)
            return error;
        ask();
        return !stream->tail || stream->tail->done ? cudaSuccess : cudaErrorNotReady;
    });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    return api(__func__, UNSAFE, [&] {
        cudaError_t error = check_idle(stream);
        return error != cudaSuccess ? error : wait_for(mark_ref(stream->tail));
    });
}

cudaError_t cudaDeviceSynchronize(void)
{
    return api(__func__, UNSAFE, [&] { return wait_for_all(); });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    return api(__func__, ASYNC, [&] { return wait_event(stream, event, flags); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    return api(__func__, PLAIN, [&] {
        if (!event || flags > 7 ||
            ((flags & cudaEventInterprocess) && !(flags & cudaEventDisableTiming)))
            return cudaErrorInvalidValue;
        *event = new CUevent_st;
        (*event)->flags = flags;
        the().events.insert(*event);
        the().count.events++;
        return cudaSuccess;
    });
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    return api(__func__, PLAIN, [&] {
        if (!known(event))
            return cudaErrorInvalidResourceHandle;
        the().events.erase(event);
        the().count.events--;
        bury(event);
        return cudaSuccess;
    });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    return api(__func__, ASYNC, [&] { return record(event, stream, 0); });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
    return api(__func__, ASYNC, [&] { return record(event, stream, flags); });
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return api(__func__, UNSAFE, [&] {
        cudaError_t error = check_recorded(event);
        if (error != cudaSuccess)
            return error;
        ask();
        return !event->last || event->last->done ? cudaSuccess : cudaErrorNotReady;
    });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    return api(__func__, UNSAFE, [&] {
        cudaError_t error = check_recorded(event);
        return error != cudaSuccess ? error : wait_for(mark_ref(event->last));
    });
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    return api(__func__, PLAIN, [&] { return elapsed(ms, start, end); });
}
