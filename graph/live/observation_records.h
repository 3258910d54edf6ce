/* observation_records.h - the observations that actions may still be of: a ring hands out actions
 * frames after it saw what they answer, and a prefix or a text may be acted on for many frames.
 * What turns a chunk into a robot's actions is kept for as long as a sequence lives, and for as
 * long as the loop may act on it.
 *
 * One thread. After create nothing allocates. */
#ifndef TEC_GRAPH_LIVE_OBSERVATION_RECORDS_H
#define TEC_GRAPH_LIVE_OBSERVATION_RECORDS_H

#include "graph/run/engine/engine.h"

/* The newest, at least the stages of a ring, are kept besides those that the loop may act on. */
enum { TEC_OBSERVATION_RECORDS = 64 };

struct tec_observation_record {
    int64_t frame;  /* the loop's frame that took the observation in */
    int64_t number; /* the number that the owner of the list gives it */
    int64_t captured_ns;
    int64_t added;     /* counts on over all records of the list; 0: it is not used yet */
    double *state_raw; /* [tec_session_state], as tec_session_act_on takes it */
};

struct tec_observation_records {
    const struct tec_loop *loop;          /* borrowed */
    int room, next;                       /* next: where the next record goes, or behind it */
    struct tec_observation_record *items; /* [room] */
    int64_t n;                            /* records added so far */
    size_t width;
};

/* For one session of the engine; from its arena. */
enum tec_status tec_observation_records_create(struct tec_observation_records *list,
                                               const struct tec_engine *engine,
                                               struct tec_arena *arena, struct tec_error *err);

/* Add a record, before its frame runs. state_raw is copied; the oldest record that the loop does
 * not act on any more is overwritten. */
void tec_observation_records_put(struct tec_observation_records *list, int64_t frame,
                                 int64_t number, int64_t captured_ns, const double *state_raw);

/* Count the kept records whose number is above `number`. */
int tec_observation_records_after(const struct tec_observation_records *list, int64_t number);

/* The record of this frame, the newest if the loop's frame count was reset in between; NULL: it is
 * not kept any more. */
const struct tec_observation_record *
tec_observation_records_find(const struct tec_observation_records *list, int64_t frame);

#endif
