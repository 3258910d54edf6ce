/* recording.h - everything that happens to a robot, as an MCAP file: what came in, what was
 * decided, what ran when, and what left. `tectum replay` runs it again; Foxglove and Rerun show it.
 *
 * The frame thread copies what it has into a ring of bytes that was taken at the start, and a
 * thread beside it writes the file. Where frames have a clock the frame thread never waits: what
 * does not fit is left out and counted. A file that cannot be written any more ends the recording,
 * not the robot. A stop, and a miss that no frame was run for, may come when no frame runs, so the
 * writer looks for them itself.
 * doc/recording.md lists the channels. */
#ifndef TEC_TOOLS_RECORD_RECORDING_H
#define TEC_TOOLS_RECORD_RECORDING_H

#include "graph/live/runtime.h"
#include "graph/live/transcript.h"
#include "tools/cli/open_engine.h"
#include "tools/frames/inputs.h"
#include "tools/record/mcap_write.h"

struct tec_recording;

/* How frames come: replay runs them the same way. */
enum tec_recording_mode { TEC_RECORDING_FRAMES, TEC_RECORDING_PACED, TEC_RECORDING_SERVED };

/* How often the robot was stopped and a stop was reset so far, and whether it is stopped now. */
struct tec_recorded_stops {
    const _Atomic uint32_t *stops, *resets; /* NULL: it cannot be stopped */
    const _Atomic bool *stopped;            /* set before a stop is counted */
};

struct tec_recording_options {
    const char *path; /* borrowed until close */
    int limit_mib;    /* the file ends there; 0 = 4096 */
    enum tec_recording_mode mode;
    bool waits; /* frames wait for the file where there is no room */
    struct tec_opened *opened;
    const struct tec_recorder *recorder;
    const struct tec_figures *figures; /* of the same frames; for a view */
    struct tec_runtime *runtime;       /* that runs them; borrowed until close */
    struct tec_recorded_stops stops;   /* borrowed until close; any thread raises them */
    const _Atomic int64_t *not_begun;  /* the same: [TEC_CAUSES] requests or ticks that missed
                                        * before a frame of theirs began; NULL: nobody counts */
};

/* What was forgotten before a frame: nothing, the session's texts, or every request too. */
enum tec_recorded_reset { TEC_RESET_NONE, TEC_RESET_SESSION, TEC_RESET_ALL };

/* A frame of a session, before it runs. */
struct tec_recorded_tick {
    int64_t number; /* of its noise */
    int session;
    bool observed;
    enum tec_recorded_reset reset;
    const float *noise; /* [noise_n]; NULL: drawn */
    int noise_n;
    const struct tec_tick *tick; /* due when, with what it asks for and gives up */
};

/* Open the file, write what describes the run, and start the thread. No frame has run yet.
 * TEC_IO, TEC_NO_MEMORY. */
enum tec_status tec_recording_open(struct tec_recording **out,
                                   const struct tec_recording_options *options,
                                   struct tec_error *err);

/* Write what is left, and say on stderr what is missing. NULL is allowed. The engine is still open,
 * and no frame runs. The status of the file. */
enum tec_status tec_recording_close(struct tec_recording *r, struct tec_error *err);

/* Frame thread, in this order; r NULL: nothing is recorded. */

/* The values of an observation, as they were given, once its session has taken it: the next one has
 * the number of one that was refused. */
void tec_recording_inputs(struct tec_recording *r, int session, int64_t number,
                          const struct tec_value *values, size_t n);
void tec_recording_tick(struct tec_recording *r, const struct tec_recorded_tick *tick);
/* A chunk that has left. */
struct tec_recorded_chunk {
    int action, session;
    int64_t frame, seen, release_ns, age_us; /* seen: number of the observation that it is of */
    bool late;
    const float *chunk;    /* of the model */
    const double *actions; /* [rows, columns] of the robot; NULL: another thread makes them */
    int rows, columns;
};
void tec_recording_left(struct tec_recording *r, const struct tec_recorded_chunk *left);
/* Behind a frame, once for each of its sessions; texts are taken with the first. */
void tec_recording_frame(struct tec_recording *r, const struct tec_frame_record *record);

/* Write the flight recorder alone to a file, of the last `last_ns` (0 = all of it): a recording
 * without inputs. Any thread but the frame thread. */
enum tec_status tec_recording_dump(const char *path, struct tec_opened *opened,
                                   const struct tec_recorder *recorder,
                                   enum tec_recording_mode mode, int64_t last_ns,
                                   struct tec_error *err);

#endif
