/* replay.c - launching a graph and watching it from the host, without a call that blocks. */
#include "base/clock.h"
#include "base/spin.h"
#include "kernels/cuda/gpu.h"

#include <stdio.h>

enum { ASK_EVERY = 64 }; /* turns of the watch between two questions whether the stream is well */

static bool reached(const struct tec_gpu_stream *s, int mark)
{
    return __atomic_load_n(&s->board->seen[mark], __ATOMIC_ACQUIRE) == s->sequence;
}

/* The device answers that it is working, or has ended; else, or when it takes too long, it has
 * failed, in the work behind the last mark that was reached. */
static bool ask(struct tec_gpu *gpu, struct tec_gpu_stream *s, int mark, int64_t until,
                const char *label)
{
    const struct tec_clock clock = {NULL};
    char detail[120];
    cudaError_t error = cudaStreamQuery(s->stream);
    if (error == cudaErrorNotReady && tec_clock_now(&clock) <= until)
        return true;
    if (reached(s, mark)) /* meanwhile: what has failed is behind it */
        return true;
    if (error == cudaSuccess)
        error = cudaErrorUnknown; /* it has ended without the mark */
    if (error == cudaErrorNotReady) {
        gpu->hung = true;
        error = cudaErrorLaunchTimeout;
    }
    snprintf(detail, sizeof detail, "at or before '%s'", label ? label : "its end");
    tec_gpu_fail(gpu, error, "replay", detail);
    return false;
}

static bool await_mark(struct tec_gpu *gpu, struct tec_gpu_stream *s, int mark, int64_t until,
                       const char *label)
{
    for (int turns = 0; !reached(s, mark);) {
        tec_spin(&turns);
        if (turns % ASK_EVERY == 0 && !ask(gpu, s, mark, until, label))
            return false;
    }
    return true;
}

static void watch(struct tec_gpu *gpu, struct tec_gpu_stream *s, const struct tec_gpu_graph *graph,
                  struct tec_replay *replay)
{
    const struct tec_clock clock = {NULL};
    int64_t until = replay->start_ns + gpu->patience_ns;
    for (int i = 0; i < graph->n_marks; i++) {
        int mark = graph->marks[i];
        if (!await_mark(gpu, s, mark, until, graph->labels[i]))
            return;
        int64_t now = tec_clock_now(&clock);
        if (mark == TEC_MAX_MARKS)
            break; /* the end */
        replay->mark_ns[mark] = now;
        if (replay->marked)
            replay->marked(replay->user, mark, now);
    }
    s->staged = 0; /* all copies in front of the end have been made */
}

void tec_gpu_replay(struct tec_device *device, const struct tec_capture *capture,
                    struct tec_replay *replay)
{
    const struct tec_clock clock = {NULL};
    struct tec_gpu *gpu = (struct tec_gpu *)device;
    struct tec_gpu_stream *s = &gpu->streams[capture->stream];
    const struct tec_gpu_graph *graph = capture->compiled;
    replay->start_ns = tec_clock_now(&clock);
    if (tec_gpu_use(gpu)) {
        __atomic_store_n(&s->board->wanted, ++s->sequence, __ATOMIC_RELEASE);
        cudaError_t error = cudaGraphLaunch(graph->exec, s->stream);
        if (error == cudaSuccess)
            watch(gpu, s, graph, replay);
        else
            tec_gpu_fail(gpu, error, "launch of a graph", NULL);
    }
    replay->status = tec_device_failure(device, NULL);
    replay->end_ns = tec_clock_now(&clock);
}

/* --- beside ---------------------------------------------------------------------------------- */

/* The second lane is the thread that drives the second stream. */
static void serve(void *user, int lane)
{
    struct tec_gpu *gpu = user;
    (void)lane;
    gpu->work(gpu->user); /* on a failed device too: it ends at once, and its owner waits for it */
}

void tec_gpu_fork(struct tec_device *device, void (*work)(void *user), void *user)
{
    struct tec_gpu *gpu = (struct tec_gpu *)device;
    if (!gpu->team)
        return;
    gpu->work = work;
    gpu->user = user;
    tec_team_fork(gpu->team, serve, gpu);
}

void tec_gpu_join(struct tec_device *device)
{
    struct tec_gpu *gpu = (struct tec_gpu *)device;
    if (gpu->team)
        tec_team_join(gpu->team);
}
