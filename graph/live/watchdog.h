/* watchdog.h - actions on their way to the robot: the frame thread posts chunks, a consumer takes
 * the chunk of its tick when it comes in time, and what on_miss says when the deadline comes first.
 *
 * This is the watchdog: the last command, the latch and the clock are the consumer's, so nothing
 * that happens to the frame thread, its device or its policy keeps actions from leaving. The frame
 * thread neither locks nor waits nor allocates here. */
#ifndef TEC_GRAPH_LIVE_WATCHDOG_H
#define TEC_GRAPH_LIVE_WATCHDOG_H

#include "base/bell.h"
#include "base/triple.h"
#include "graph/live/action_output.h"
#include "graph/live/observation_records.h"
#include "graph/run/engine/engine.h"

/* The actions that the robot is given in a tick. */
struct tec_watchdog_given {
    struct tec_handed handed; /* actions [n, columns] in the robot's units */
    int64_t handed_ns;        /* when the decision was made */
    int64_t age_ns;           /* age of the observation that the actions come from; -1 = none */
};

/* The newest chunk, frame -1: there is none; and behind it a frame that leaves the action out, -1:
 * there is none. */
struct tec_watchdog_place {
    int64_t frame, seen, captured_ns, released_ns;
    int over;     /* of struct tec_action_record */
    float *chunk; /* [horizon, dim] of the model */
    double *state_raw;
    struct tec_watchdog_left_out {
        int64_t frame, seen, told_ns;
    } left_out;
};

/* Owned by the caller of create, as long as its arena. */
struct tec_watchdog {
    struct tec_triple box;
    struct tec_watchdog_place places[TEC_TRIPLE_PLACES];
    struct tec_bell bell; /* rings when a chunk is posted */

    /* The frame thread's: places[box.writing] is complete, not posted; the place of the newest one.
     */
    bool holds;
    const struct tec_watchdog_place *newest;

    int action; /* whose: the loop's */

    /* The consumer's. */
    int64_t forgets; /* chunks of older observations are ignored */
    struct tec_session *session;
    struct tec_action_output *output;
    int actions, rows, columns;
    size_t chunk_bytes, state_bytes;
    struct tec_action_output_chunk chunk; /* the newest posted chunk; frame -1 = none */
    int64_t released_ns;                  /* when that chunk was released */
    double *numbers;                      /* [rows, columns] */
};

/* What a miss means: the hard deadline of the i-th node that makes actions; NULL = there is none.
 */
const struct tec_decl_deadline *tec_watchdog_deadline(const struct tec_pipeline *pipeline, int i);

/* What an action node's robot is given, by its session and this deadline (NULL: a miss holds):
 * what a miss means, limits, ensembling. `actions` a tick, 0 = all rows, or the one of an ensemble.
 */
struct tec_action_output_options tec_watchdog_output(const struct tec_engine *engine, int action,
                                                     const struct tec_decl_deadline *deadline,
                                                     int actions);

/* For one of the engine's sessions, which may have no actions; what a miss means is its pipeline's
 * `action`-th action node's. `actions` a tick: 1 to the session's rows, 0 = what the robot's
 * description executes, else all of them. Everything comes from the arena. */
enum tec_status tec_watchdog_create(struct tec_watchdog *o, const struct tec_engine *engine,
                                    int session, int action, int actions, struct tec_arena *arena,
                                    struct tec_error *err);

/* Frame thread: the action's chunk that left in a frame (the caller's number of it), with what its
 * observation was, which may be that of a frame before; NULL: the frame leaves the action out.
 * Frames do not go down. Of those of one action that leave in one frame the last one counts: one
 * that others will leave after (to_come of the record's row) is held back. */
void tec_watchdog_post(struct tec_watchdog *o, int64_t frame, const struct tec_frame_record *record,
                       const float *chunk, const struct tec_observation_record *seen);

/* Frame thread: the frame has ended. Post a chunk that is held back, because the chunks expected
 * after it were lost. */
void tec_watchdog_flush(struct tec_watchdog *o);

/* Consumer; one thread at a time here and below. Decide if it is time to: true when the chunk of
 * this frame (or of a later one) was released by the deadline, or the deadline has come. Frame
 * numbers increase, each is decided once; the actions are valid until the next call. A chunk with
 * rows that are not finite is not waited for. */
bool tec_watchdog_look(struct tec_watchdog *o, int64_t frame, int64_t deadline_ns,
                       struct tec_watchdog_given *given);

/* Wait for the chunk or the deadline, whichever is first, and decide. */
void tec_watchdog_hand(struct tec_watchdog *o, int64_t frame, int64_t deadline_ns,
                       struct tec_watchdog_given *given);

/* Stop the robot: no actions leave until tec_watchdog_reset. */
void tec_watchdog_stop(struct tec_watchdog *o);

/* Go on after a stop. */
void tec_watchdog_reset(struct tec_watchdog *o);

/* Ignore chunks of observations numbered below `from`, posted before or later. */
void tec_watchdog_forget(struct tec_watchdog *o, int64_t from);

#endif
