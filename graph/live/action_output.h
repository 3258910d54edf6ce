/* action_output.h - what the robot is given for a frame: its chunk when that is in time, else what
 * the pipeline's on_miss says. Held by whoever hands actions out, not by the frame loop: a stuck
 * device or script cannot stop it.
 *
 * For frame n the caller calls one of fresh (the chunk came by the deadline) or missed (it did not,
 * or the tick opened no frame); when the chunk comes after all, late. Of a frame that leaves the
 * action out, fresh gives what on_miss says, and counts no miss. Numbers are the robot's own:
 * [rows, width] double. After create nothing allocates. One thread.
 *
 * Numbers that are not finite never leave: a chunk is worth its leading rows that are finite. One
 * that has too few for its frame counts as a miss; a late one without any is forgotten. What
 * substitutes are made of is therefore finite always.
 *
 * With ensembling a chunk's rows are means of what it and those before say; what `chunk` and
 * substitutes hold are these. Frames without a chunk move time on, a reset forgets all.
 *
 * Nor do numbers beyond the robot's limits. A chunk that was refused for them (on = "hold", "stop")
 * is forgotten, and the robot is given its last command, or stopped. The change from the command
 * before to the first of a chunk is judged here; substitutes are held to the limits whatever `on`
 * says. */
#ifndef TEC_GRAPH_LIVE_ACTION_OUTPUT_H
#define TEC_GRAPH_LIVE_ACTION_OUTPUT_H

#include "base/arena.h"
#include "base/error.h"
#include "graph/load/pipeline.h"
#include "graph/transform/limits.h"

enum tec_action_source {
#define SOURCE(name, word, meaning) TEC_SOURCE_##name,
#include "graph/live/sources.def"
#undef SOURCE
    TEC_SOURCES
};

/* "fresh" */
const char *tec_action_source_word(enum tec_action_source source);

struct tec_action_output_options {
    int on_miss;                     /* enum tec_on_miss of a hard deadline */
    int limit;                       /* misses in a row that are bridged, then stop; 0 = all */
    int decay_actions;               /* DECAY: actions until the command is zero */
    int actions;                     /* handed out a frame, 1 .. rows */
    int rows, width;                 /* of a chunk */
    int executed;                    /* of its rows, until the next one comes; 0 = `actions` */
    const struct tec_limits *limits; /* of the robot, borrowed; NULL = none */
    bool ensembles; /* actions are means of what all chunks say of them (ensemble.h): one a frame */
    double ensemble; /* how fast older ones count less than the oldest, m of ensemble.h */
};

struct tec_action_output;

/* In the arena; no close. TEC_INVALID for numbers out of range. */
enum tec_status tec_action_output_create(struct tec_action_output **out,
                                         const struct tec_action_output_options *options,
                                         struct tec_arena *arena, struct tec_error *err);

/* A frame's chunk. */
struct tec_action_output_chunk {
    int64_t frame;
    int64_t captured_ns;   /* of its observation; any clock */
    const double *actions; /* [rows, width] */
    int64_t seen; /* the observation, by the caller's count: a ring's is of an older frame */
    int over;     /* rows at its end that repeat its last one, because as many at its beginning were
                   * over; 0 = all are the model's */
    struct tec_beyond beyond; /* what was beyond its limits */
    bool left_out; /* there is none: the frame's decision leaves the action out. Of the others,
                    * frame alone counts */
};

/* Actions for a frame: [n, width], n 0 or `actions`; valid until the next call. */
struct tec_handed {
    enum tec_action_source source;
    int n;
    const double *actions;
    int64_t frame;            /* whose chunk they come from; -1: none, as zeros and no actions do */
    int64_t captured_ns;      /* of its observation; 0 for none */
    int64_t seen;             /* of its chunk; -1: none */
    const double *chunk;      /* FRESH: all its finite rows, `actions` are the first of them */
    bool moved;               /* ... which are not as they were given: the step to the first one */
    bool left_out;            /* a substitute of a frame that leaves the action out: no miss */
    struct tec_beyond beyond; /* of the frame's own chunk */
};
struct tec_handed tec_action_output_fresh(struct tec_action_output *h,
                                          const struct tec_action_output_chunk *chunk);
/* Frames only go up. A stop stays until reset. */
struct tec_handed tec_action_output_missed(struct tec_action_output *h, int64_t frame);

/* A chunk that came after its deadline: never handed out for its own frame. Older ones than the
 * newest that is known are forgotten. */
void tec_action_output_late(struct tec_action_output *h,
                            const struct tec_action_output_chunk *chunk);

/* As after create: for another robot. */
void tec_action_output_forget(struct tec_action_output *h);

/* Nothing leaves from now on, until reset. */
void tec_action_output_stop(struct tec_action_output *h);

/* Go on after a stop; the last command stays, misses are counted from 0. */
void tec_action_output_reset(struct tec_action_output *h);

#endif
