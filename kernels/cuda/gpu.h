/* gpu.h - between the files of this device: its streams, their pinned memory, how it fails. */
#ifndef TEC_KERNELS_CUDA_GPU_H
#define TEC_KERNELS_CUDA_GPU_H

#include "kernels/cuda/chain.h"
#include "kernels/device_kind.h"
#include "kernels/team.h"

/* Written by the device where the host looks, without a call: a mark is reached when its sequence
 * is that of the replay. The last one is the end. In pinned memory. */
struct tec_gpu_board {
    unsigned long long wanted; /* sequence of the running replay */
    unsigned long long seen[TEC_MAX_MARKS + 1];
};

/* One stream and all that its kernels use. One thread at a time drives it. */
struct tec_gpu_stream {
    cudaStream_t stream;
    cudaStream_t body; /* records loops; nothing ever runs on it */
    struct tec_cuda_launch launch;
    bool overlap_loops;                /* kernels overlap in the bodies of loops, too */
    int *turn;                         /* device: turns of the running loop */
    struct tec_gpu_board *board;       /* the same memory for the host */
    struct tec_gpu_board *board_there; /* and for the device */
    unsigned char *staging;            /* pinned: what is on its way; begun again when nothing is */
    size_t staged;
    unsigned long long sequence;
};

/* What the branches of captures of the main stream run on: a stream of its own with scratch of its
 * own, and the events at which a branch leaves that stream and comes back. Copies that do not wait
 * for the main stream run on it, too: nothing else does but while captures are made. */
struct tec_gpu_branch {
    struct tec_gpu_stream s;
    cudaEvent_t leaves, comes;
};

/* What copies to the device run on that no stream waits for by itself, and the events that stand
 * for them. */
struct tec_gpu_sends {
    cudaStream_t stream;
    cudaEvent_t notes[TEC_SEND_NOTES];
};

struct tec_gpu_green;

struct tec_gpu {
    struct tec_device base;
    struct tec_gpu_stream streams[TEC_STREAM_COUNT];
    struct tec_gpu_branch branch; /* where `branches` */
    bool branches;
    struct tec_gpu_sends sends;
    struct tec_gpu_green *green; /* the second stream's share of the multiprocessors; NULL: all */
    int n_streams, index;
    unsigned clusters;     /* tec_gpu_clusters */
    int dumped;            /* graphs: tec_gpu_dump */
    struct tec_team *team; /* NULL: one stream. Its second lane drives the other */
    void (*work)(void *user);
    void *user;
    struct tec_gpu_block *blocks; /* sizes of what was given out */
    char computes[16];
    int64_t patience_ns;
    _Atomic bool failing; /* somebody writes base.failure */
    _Atomic bool hung;    /* it may never answer again: nothing more is asked of it */
};

/* Pinned bytes of a stream; larger uploads wait for earlier ones. */
enum { TEC_GPU_STAGING = 4 << 20 };

/* Remember the first failure, `what` was asked of the device; `detail` may be NULL. */
void tec_gpu_fail(struct tec_gpu *gpu, cudaError_t error, const char *what, const char *detail);

/* Make the device current on this thread; false: the device has failed, now or before. */
bool tec_gpu_use(struct tec_gpu *gpu);

/* branch.c. Whether options ask for branches and the device has processors enough to gain by them,
 * by prediction: no device has run them yet. TECTUM_CUDA_BRANCH=0 in the environment switches them
 * off, =1 on wherever they are asked for. */
bool tec_gpu_branch_wanted(const struct tec_device_options *options);
/* Its events; the stream is made before. */
cudaError_t tec_gpu_branch_create(struct tec_gpu_branch *branch);
void tec_gpu_branch_destroy(struct tec_gpu_branch *branch);
/* While `s` is captured: the branch goes on behind all that is on it, and it behind all of the
 * branch. Kernels behind either begin when what is in front has ended. */
cudaError_t tec_gpu_branch_leave(struct tec_gpu_branch *branch, struct tec_gpu_stream *s);
cudaError_t tec_gpu_branch_join(struct tec_gpu_branch *branch, struct tec_gpu_stream *s);

/* Until everything on the stream has ended, by asking again and again; false: it has failed. */
bool tec_gpu_drain(struct tec_gpu *gpu, struct tec_gpu_stream *s, const char *what);

/* clusters.c: bit n is set if clusters of n blocks find room for products whose splits they have; a
 * call that fails finds none. TECTUM_CUDA_CLUSTERS=0 in the environment: there are none. */
unsigned tec_gpu_clusters(int capability);

/* A toolkit of before asks for functions of its own version, and has no name for what a newer
 * driver may answer. */
#if CUDART_VERSION < 12050
#define cudaErrorInvalidResourceConfiguration ((cudaError_t)915)
#define cudaGetDriverEntryPointByVersion(name, f, version, flags, found) \
    cudaGetDriverEntryPoint(name, f, flags, found)
#endif

/* switches.c: whether a variable of the environment is set to a word; TEC_INVALID where one of the
 * device's is set to a word that it does not know, or to a folder that is none. */
bool tec_gpu_switched(const char *name, const char *word);
enum tec_status tec_gpu_switches_check(struct tec_error *err);

/* How long a replay or a copy may take before the device counts as hung, nanoseconds: what is asked
 * for (milliseconds), or with 0 TECTUM_CUDA_PATIENCE (seconds), or 30 s. TEC_INVALID for another
 * word there. */
enum tec_status tec_gpu_patience(int patience_ms, int64_t *ns, struct tec_error *err);

/* green.c: the second stream in a context of a share of the multiprocessors. TECTUM_CUDA_GREEN=1 in
 * the environment asks for it: no device has run it yet. */
/* At most `most` multiprocessors of device `index`, whose own context is there. *out is set as soon
 * as there is something to destroy. cudaErrorNotSupported: the build or the driver is older
 * than 12.5.
 * cudaErrorInvalidResourceConfiguration: the device gives out no share that small. */
cudaError_t tec_gpu_green_create(struct tec_gpu_green **out, int index, int most,
                                 struct tec_heap *heap);
cudaError_t tec_gpu_green_stream(struct tec_gpu_green *g, cudaStream_t *stream, int priority);
/* Make it this thread's context, until cudaSetDevice: a loop is of the context that is current when
 * its handle is made, and must be of that of its kernels. */
cudaError_t tec_gpu_green_enter(struct tec_gpu_green *g);
/* After its streams. NULL is allowed. */
void tec_gpu_green_destroy(struct tec_gpu_green *g, bool hung, struct tec_heap *heap);

/* sends.c. destroy: of one that was made in part, too. */
cudaError_t tec_gpu_sends_create(struct tec_gpu_sends *sends, int priority);
void tec_gpu_sends_destroy(struct tec_gpu_sends *sends);

/* copies.c, sends.c, graph.c, replay.c: members of the kind. */
void tec_gpu_upload(struct tec_device *device, enum tec_stream stream, void *to, const void *from,
                    size_t size);
void tec_gpu_download(struct tec_device *device, enum tec_stream stream, void *to, const void *from,
                      size_t size);
void tec_gpu_fetch(struct tec_device *device, void *to, const void *from, size_t size);
void *tec_gpu_pin(struct tec_device *device, size_t size);
void tec_gpu_unpin(struct tec_device *device, void *memory);
void tec_gpu_send(struct tec_device *device, void *to, const void *from, size_t size);
void tec_gpu_note(struct tec_device *device, int note);
void tec_gpu_await(struct tec_device *device, enum tec_stream stream, int note);
enum tec_status tec_gpu_compile(struct tec_capture *capture, struct tec_error *err);
void tec_gpu_discard(struct tec_capture *capture);
void tec_gpu_replay(struct tec_device *device, const struct tec_capture *capture,
                    struct tec_replay *replay);
void tec_gpu_fork(struct tec_device *device, void (*work)(void *user), void *user);
void tec_gpu_join(struct tec_device *device);

/* chains.c: start the command at `at`, a kernel, with those behind it that go along; how many
 * commands that were. */
int tec_gpu_start(const struct tec_capture *capture, int at, struct tec_cuda_launch *launch);

/* dump.c: write the graph, the next one of this device, as DOT: cuda<index>_<number from 0001>.dot
 * in the folder that TECTUM_CUDA_GRAPHS in the environment names; without, nothing is done. check:
 * TEC_INVALID where it is no folder that can be written to. */
enum tec_status tec_gpu_dump_check(struct tec_error *err);
cudaError_t tec_gpu_dump(struct tec_gpu *gpu, cudaGraph_t graph);

/* The CUDA graph of a command list. Marks are in the order of the list; the end is the last one. */
struct tec_gpu_graph {
    cudaGraphExec_t exec;
    int marks[TEC_MAX_MARKS + 1], n_marks;
    const char *labels[TEC_MAX_MARKS + 1]; /* of the last command before each */
};

#endif
