/* device.h - the seam: memory, copies, capture and replay. What is above does not know which device
 * it drives. A capture is recorded once at load and replayed every frame; on a CPU it is a command
 * list that a team of lanes runs, on a GPU a graph. Not thread-safe: one owner, the frame thread,
 * after load. */
#ifndef TEC_KERNELS_DEVICE_H
#define TEC_KERNELS_DEVICE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/thread.h"
#include "kernels/kernels.h"

#include <stdbool.h>
#include <stdint.h>

enum { TEC_MAX_MARKS = 64 };

struct tec_device_options {
    const char *kind;   /* a name of devices.def */
    int index;          /* which device of its kind */
    bool measure;       /* only count memory: nothing is taken, nothing can be replayed */
    int threads;        /* CPU: lanes; 0 = online processors */
    int spin_us;        /* how long idle lanes spin before they park; -1 = default */
    enum tec_tier tier; /* CPU: must run here */
    int beside;         /* of the lanes, those for the second stream; 0 .. lanes - 1 */
    bool branches;      /* captures of the main stream have branches: memory is taken for one */
    int patience_ms;    /* a replay that takes longer has failed, where a device can hang; 0 = 30 s,
                         * or what the environment says (doc/gpu.md) */
};

/* Copies and replays of one stream run in order. The second stream runs work concurrently with the
 * first. */
enum tec_stream { TEC_STREAM_MAIN, TEC_STREAM_BESIDE, TEC_STREAM_COUNT };

struct tec_device;

/* Lanes that a device of these options has: threads, or multiprocessors; 0 = there is none. */
int tec_device_threads(const struct tec_device_options *options);

/* Whether this build knows the kind, and the names of all kinds. */
bool tec_device_known(const char *kind);
extern const char *const tec_device_kinds[];

/* Whether such a device can be opened here, as far as can be told without opening it. */
enum tec_status tec_device_check(const struct tec_device_options *options, struct tec_error *err);

/* TEC_DEVICE: there is none here, or what is here will not do; in one sentence. */
enum tec_status tec_device_open(struct tec_device **out, const struct tec_device_options *options,
                                struct tec_heap *heap, struct tec_error *err);
void tec_device_close(struct tec_device *device); /* NULL is allowed */

/* Facts for reports: kind, what computes ("avx512", "sm_90"), lanes. */
const char *tec_device_kind(const struct tec_device *device);
const char *tec_device_computes(const struct tec_device *device);
int tec_device_lanes(const struct tec_device *device);
int tec_device_lanes_concurrent(const struct tec_device *device);

/* Whether a capture's branch runs concurrently to the rest of it: asked for, and the kind can. */
bool tec_device_branches(const struct tec_device *device);

/* Where a card is on the PCI bus ("0000:65:00.0"), as other tools name it; false: it is no card. */
bool tec_device_address(const struct tec_device *device, char address[32]);

/* Schedule the device's threads, if it has any; its owner is lane 0 of them. */
enum tec_status tec_device_schedule(struct tec_device *device, const struct tec_scheduling *how,
                                    struct tec_error *err);

/* The form that weight matrices must have. */
enum tec_matrix_layout tec_device_layout(const struct tec_device *device);

/* Whether kernels read host memory as it is; else everything they read is uploaded. */
bool tec_device_reads_host(const struct tec_device *device);

/* Bytes of scratch that attention needs on a stream, and bytes that the device takes for itself. */
size_t tec_device_scratch(const struct tec_device *device, enum tec_stream stream, int head_dim);
int64_t tec_device_workspace(const struct tec_device *device);

/* Before captures with products of 8-bit or 4-bit weights, or with sums of attention's weights, are
 * made: the device takes for itself what these need of rows, once, and the workspace has it from
 * then on. TEC_NO_MEMORY, TEC_DEVICE. */
enum tec_status tec_device_take_rows(struct tec_device *device, struct tec_error *err);

/* Zeroed device memory aligned to 64, or NULL. Kept apart from host memory by its owner. */
void *tec_device_get(struct tec_device *device, size_t size);
void tec_device_put(struct tec_device *device, void *memory);
int64_t tec_device_peak(const struct tec_device *device);
int64_t tec_device_room(const struct tec_device *device); /* free for get; -1 = not known */

/* Host memory that the device copies from by itself while others compute, or NULL: pinned; on a
 * device that reads the host's it is plain memory. Aligned to 64, of any content. */
void *tec_device_pin(struct tec_device *device, size_t size);
void tec_device_unpin(struct tec_device *device, void *memory);

/* Host to device and back, in the order of replays of the stream. Between frames' replays nothing
 * here blocks as long as what is uploaded fits the device's staging (4 MiB); both sides may be
 * reused on return. */
void tec_device_upload(struct tec_device *device, enum tec_stream stream, void *to,
                       const void *from, size_t size);
void tec_device_download(struct tec_device *device, enum tec_stream stream, void *to,
                         const void *from, size_t size);

/* Host to device beside all streams: these copies run in their own order, and no stream waits for
 * them but by tec_device_await. `from` is of tec_device_pin and stays as it is until a stream that
 * has waited for the copy has ended; other memory may hold up the call. Nothing here waits for the
 * device. A device that reads the host's memory has no use for them, and does nothing. */
void tec_device_send(struct tec_device *device, void *to, const void *from, size_t size);
/* From now on `note` (0 .. TEC_SEND_NOTES - 1) stands for all that was sent so far. */
enum { TEC_SEND_NOTES = 8 };
void tec_device_note(struct tec_device *device, int note);
/* What is put on the stream from now on runs behind what the note stands for. */
void tec_device_await(struct tec_device *device, enum tec_stream stream, int note);

/* Device to host in the middle of a replay of the main stream: what is read is complete, as what a
 * branch made is once its mark is reached. Waits for this copy alone where the device runs
 * branches, else for the stream. */
void tec_device_fetch(struct tec_device *device, void *to, const void *from, size_t size);

/* The first thing that went wrong on the device since it was opened; TEC_OK = nothing. Such a
 * failure stays: later copies and replays do nothing, replays say so. */
enum tec_status tec_device_failure(const struct tec_device *device, struct tec_error *err);

/* A recording in progress, then a capture: immutable. Its list lies in `arena`; what a device made
 * of it is given back by tec_capture_free, before the arena and the device. */
struct tec_capture;

enum tec_status tec_capture_begin(struct tec_capture **out, struct tec_device *device,
                                  enum tec_stream stream, struct tec_arena *arena,
                                  struct tec_error *err);
void tec_capture_free(struct tec_capture *capture); /* NULL is allowed */

/* Append a kernel with its arguments (copied). `barrier`: it reads what other lanes wrote since the
 * last barrier. `label` is borrowed. A failure is remembered and returned by end. */
void tec_capture_add(struct tec_capture *capture, enum tec_kernel_id kernel, const void *args,
                     bool barrier, const char *label);

/* Declare that only the next command reads what the last one wrote. A device that runs both in one
 * kernel need not write it to memory. */
void tec_capture_pass(struct tec_capture *capture);

/* Commands from now on are of the capture's branch, or not (false, as at the beginning): behind
 * what is in front of the first of them, in their order, and concurrently to the others up to the
 * next join, if the device runs branches; else where they stand. What runs concurrently must share
 * nothing that is written. A mark of the branch says that the branch has come so far. In a loop,
 * and of captures of the second stream, a branch runs where it stands. */
void tec_capture_branch(struct tec_capture *capture, bool branch);

/* The next command waits for the branch. So do loops, marks that are not the branch's, and the end.
 */
void tec_capture_join(struct tec_capture *capture);

/* What the last command computes: `work`, its FLOP and bytes as one number, and a key that commands
 * have in common which take the same time. Commands without are of no work, and like no other. */
void tec_capture_weigh(struct tec_capture *capture, uint64_t key, double work);

/* Commands up to the matching repeat_end run *count times (read when the loop is reached), or until
 * *stop is not 0 at the end of a turn. Loops do not nest. Begins and ends with a barrier. */
void tec_capture_repeat(struct tec_capture *capture, const int *count, const int *stop);
void tec_capture_repeat_end(struct tec_capture *capture);

/* Here a node is finished: replay notes the time and tells the listener. On a GPU not in a loop:
 * TEC_INVALID at the end. */
void tec_capture_mark(struct tec_capture *capture, int mark);

/* End the recording. Data that was uploaded on the main stream before is visible to every stream
 * afterwards. */
enum tec_status tec_capture_end(struct tec_capture *capture, struct tec_error *err);

/* Commands in it, kernels that one replay starts with one turn of each loop, and host bytes. */
int tec_capture_commands(const struct tec_capture *capture);
int tec_capture_kernels(const struct tec_capture *capture);
int tec_capture_nodes(const struct tec_capture *capture); /* of the graph, or the commands */
size_t tec_capture_bytes(const struct tec_capture *capture);

/* A second capture of the same list, which times its commands by the device's own clock: behind
 * what each starts it writes the clock into memory of its own. It costs a small start for each, so
 * it is made for profiles alone, and it lies in `arena`, freed by tec_capture_free, before `of`.
 * TEC_UNSUPPORTED where the device has no such clock, TEC_NO_MEMORY. */
enum tec_status tec_capture_stamped(struct tec_capture **out, const struct tec_capture *of,
                                    struct tec_arena *arena, struct tec_error *err);

/* Nanoseconds of each of its commands in the last replay, without what a stamp takes by itself: ns
 * [tec_capture_commands], by place in the list, marks and ends of loops among them. Of commands
 * that are done together the first one has the time and the others 0. Of a loop they are those of
 * the last turn; its begin has all turns before. Commands of a branch and those beside it have each
 * their own: their sum is not what both took. */
enum tec_status tec_capture_times(const struct tec_capture *stamped, int64_t *ns,
                                  struct tec_error *err);

/* Visit every command in order; for printing and checks. */
void tec_capture_visit(const struct tec_capture *capture,
                       void (*visit)(void *user, enum tec_kernel_id kernel, const void *args,
                                     bool barrier, const char *label),
                       void *user);

/* What captures take, without running all of their commands: of those that take the same time the
 * first one is run and stands for all, also in later captures. Zeroed but for `least`. */
enum { TEC_REPLAY_SAMPLES = 512 };
struct tec_replay_samples {
    double
        least;  /* captures of less work (FLOP and bytes, tec_capture_weigh) are run as they are */
    bool known; /* what others take is known: nothing of them is run, and they take no time */
    int n;
    struct tec_replay_sample {
        uint64_t key;
        int64_t ns;
    } items[TEC_REPLAY_SAMPLES];
    int64_t replays, commands, run; /* of large captures; of those that were sampled: commands in
                                     * all turns, and of these run */
};

/* Memory of the device that a capture both reads and changes, as rows of requests are, and what it
 * was uploaded from. */
struct tec_replay_table {
    void *device;
    const void *host;
    size_t size; /* bytes; 0: none */
};
enum { TEC_REPLAY_TABLES = 2 };

/* One run of a capture. The caller owns it; `marked` (may be NULL) is called on the thread that
 * replays the moment a mark is reached, and must not block but for tec_device_fetch. */
struct tec_replay {
    int64_t start_ns, end_ns;
    int64_t mark_ns[TEC_MAX_MARKS]; /* 0 = not reached; of lanes, one behind all commands is end_ns:
                                     * what it ends is over when the last lane has come */
    int64_t waited_ns;      /* of it, for what was not loaded yet; a device itself leaves it */
    enum tec_status status; /* TEC_OK, or the device has failed: nothing it made counts */
    struct tec_replay_samples
        *samples; /* not NULL: a large capture is sampled, where the device runs the
                   * list as it is: times are what a run would take, `marked` is not
                   * called, and what the capture makes is not made */
    void (*marked)(void *user, int mark, int64_t now_ns);
    void *user;
    struct tec_replay_table tables[TEC_REPLAY_TABLES]; /* uploaded again behind each run that is not
                                                        * the last one, with samples alone */
};

/* Run the capture on its stream and wait for its end. With samples, that is in a warm-up, and where
 * options.threads was 0 and options.beside too, a small capture is first run some times more with
 * fewer lanes, and later runs take as many as took the shortest time. Allocates nothing, and waits
 * for nothing but lanes or the GPU. Replays of the second stream are made inside work (fork). */
void tec_device_replay(struct tec_device *device, const struct tec_capture *capture,
                       struct tec_replay *replay);

/* Two captures at once. fork splits lanes off and calls work(user) on a thread of its own; it
 * returns at once, and until join the main stream has the other lanes. join waits for the end of
 * work. What work replays must share nothing that is written with what the owner replays.
 * A device that splits nothing off (lanes_beside 0) never calls work. */
void tec_device_fork(struct tec_device *device, void (*work)(void *user), void *user);
void tec_device_join(struct tec_device *device);

#endif
