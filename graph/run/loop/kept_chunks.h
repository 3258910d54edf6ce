/* kept_chunks.h - chunks of action nodes that do not run in every frame, which leave again. */
#ifndef TEC_GRAPH_RUN_LOOP_KEPT_CHUNKS_H
#define TEC_GRAPH_RUN_LOOP_KEPT_CHUNKS_H

#include "base/error.h"

#include <stdint.h>

struct tec_loop;

/* The newest chunk of an action that does not run in every frame. */
struct tec_kept_chunk {
    int left;                  /* frames in which it, or what was left of it, has left; 0 = none */
    int64_t first, episode;    /* the observation that its robot gave when it left first; of that */
    int64_t seen, captured_ns; /* the frame and the moment of the observation that it is of */
    float *chunk;              /* [horizon, dim] */
};

/* Places for the chunks of all actions and sessions, from the loop's arena; none where every action
 * runs in every frame. TEC_NO_MEMORY. */
enum tec_status tec_kept_chunks_create(struct tec_loop *l, struct tec_error *err);

/* The chain's chunk of this action has left, of the observation of frame `seen`: it is kept for the
 * frames up to the next one. */
void tec_kept_chunks_keep(struct tec_loop *l, int action, int64_t seen, int64_t captured_ns);

/* The chunk that leaves again in the frame of the session whose turn it is, because the action does
 * not run in it; NULL = the action runs. */
const struct tec_kept_chunk *tec_kept_chunk_of(const struct tec_loop *l, int action);

/* It leaves: its rows from this observation on, the last one repeated, are the chain's chunk. */
const struct tec_kept_chunk *tec_kept_chunk_leave(struct tec_loop *l, int action);

/* Observations that the robot has given since the chunk left first, those included that no frame
 * took: it has carried out a frame's actions at each. */
int64_t tec_kept_chunk_over(const struct tec_loop *l, const struct tec_kept_chunk *k);

/* Drop all of them. */
void tec_kept_chunks_reset(struct tec_loop *l);

#endif
