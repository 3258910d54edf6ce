/* device.h - the seam: memory, copies, capture and replay. What is above does not know which device
 * it drives. A capture is recorded once at load and replayed every frame; on a CPU it is a command
 * list that a team of lanes runs. Not thread-safe: one owner, the frame thread, after load. */
#ifndef TEC_KERNELS_DEVICE_H
#define TEC_KERNELS_DEVICE_H

#include "base/arena.h"
#include "base/error.h"
#include "kernels/kernels.h"

#include <stdint.h>

enum { TEC_MAX_MARKS = 64 };

struct tec_device_options {
    const char *kind;   /* "cpu"; "cuda" is refused until it is built in */
    int threads;        /* lanes; 0 = online processors */
    int spin_us;        /* how long idle lanes spin before they park; -1 = default */
    enum tec_tier tier; /* CPU only; must run here */
    int beside;         /* CPU only: of the lanes, those that fork splits off; 0 .. threads - 1 */
};

struct tec_device;

/* Lanes that a device of these options has. */
int tec_device_threads(const struct tec_device_options *options);

enum tec_status tec_device_open(struct tec_device **out, const struct tec_device_options *options,
                                struct tec_heap *heap, struct tec_error *err);
void tec_device_close(struct tec_device *device); /* NULL is allowed */

/* Facts for reports: "cpu", lanes, tier, and the table whose layout weights must have. */
const char *tec_device_kind(const struct tec_device *device);
int tec_device_lanes(const struct tec_device *device);
int tec_device_lanes_beside(const struct tec_device *device);
enum tec_tier tec_device_tier(const struct tec_device *device);
const struct tec_kernels *tec_device_kernels(const struct tec_device *device);

/* Zeroed device memory aligned to 64, or NULL. Kept apart from host memory by its owner. */
void *tec_device_get(struct tec_device *device, size_t size);
void tec_device_put(struct tec_device *device, void *memory);
int64_t tec_device_bytes(const struct tec_device *device); /* live now */
int64_t tec_device_peak(const struct tec_device *device);

/* Host to device and back, in the order of replays. */
void tec_device_upload(struct tec_device *device, void *to, const void *from, size_t size);
void tec_device_download(struct tec_device *device, void *to, const void *from, size_t size);

/* A recording in progress, then a capture: immutable, freed with the arena it was made in. */
struct tec_capture;

enum tec_status tec_capture_begin(struct tec_capture **out, struct tec_device *device,
                                  struct tec_arena *arena, struct tec_error *err);

/* Append a kernel with its arguments (copied). `barrier`: it reads what other lanes wrote since the
 * last barrier. `label` is borrowed. A failure is remembered and returned by end. */
void tec_capture_add(struct tec_capture *capture, enum tec_kernel_id kernel, const void *args,
                     bool barrier, const char *label);

/* Commands up to the matching repeat_end run *count times (read when the loop is reached), or until
 * *stop is not 0 at the end of a turn. Loops do not nest. Begins and ends with a barrier. */
void tec_capture_repeat(struct tec_capture *capture, const int *count, const int *stop);
void tec_capture_repeat_end(struct tec_capture *capture);

/* Here a node is finished: replay notes the time and tells the listener. */
void tec_capture_mark(struct tec_capture *capture, int mark);

enum tec_status tec_capture_end(struct tec_capture *capture, struct tec_error *err);

/* Commands in it, and bytes it holds. */
int tec_capture_commands(const struct tec_capture *capture);
size_t tec_capture_bytes(const struct tec_capture *capture);

/* Visit every command in order; for printing and checks. */
void tec_capture_visit(const struct tec_capture *capture,
                       void (*visit)(void *user, enum tec_kernel_id kernel, const void *args,
                                     bool barrier, const char *label),
                       void *user);

/* One run of a capture. The caller owns it; `marked` (may be NULL) is called on the frame thread
 * the moment a mark is reached, and must not block. */
struct tec_replay {
    int64_t start_ns, end_ns;
    int64_t mark_ns[TEC_MAX_MARKS]; /* 0 = not reached */
    void (*marked)(void *user, int mark, int64_t now_ns);
    void *user;
};

/* Run the capture on the device and wait for its end. Allocates nothing, blocks on nothing but the
 * lanes' spinning. */
void tec_device_replay(struct tec_device *device, const struct tec_capture *capture,
                       struct tec_replay *replay);

/* Two captures at once. fork splits lanes off and calls work(user) on the first of them; it returns
 * at once, and until join the owner's replays have the other lanes. join waits for the end of work,
 * spinning. What work replays must share nothing that is written with what the owner replays. A
 * device that splits nothing off (lanes_beside 0) never calls work. */
void tec_device_fork(struct tec_device *device, void (*work)(void *user), void *user);
void tec_device_join(struct tec_device *device);

/* Inside work: run the capture on the lanes that were split off and wait for its end; marks are
 * told on this thread. */
void tec_device_replay_beside(struct tec_device *device, const struct tec_capture *capture,
                              struct tec_replay *replay);

#endif
