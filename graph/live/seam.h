/* seam.h - where one chunk of actions takes over from the one before it: by how much the robot's
 * command jumps at that moment.
 *
 * Rows of a chunk belong to moments: row r to the observation's and r rows' time more. Frame
 * thread; nothing here locks, waits or, after create, allocates. */
#ifndef TEC_GRAPH_LIVE_SEAM_H
#define TEC_GRAPH_LIVE_SEAM_H

#include "graph/run/engine/engine.h"

/* Nanoseconds from one row of an action node's chunk to the next: 1 / the robot's rate; where it
 * does not say one, the period over the rows that are executed of a chunk; 0 = not known. */
int64_t tec_seam_row_ns(const struct tec_engine *engine, int action);

/* Of one session and action node. Owned by the caller of create, as long as its arena. */
struct tec_seam {
    int rows, columns;
    int64_t row_ns, captured_ns; /* captured: of the chunk before; -1 = there is none */
    float *before;               /* [rows, columns] */
};

/* TEC_NO_MEMORY. */
enum tec_status tec_seam_create(struct tec_seam *seam, const struct tec_engine *engine, int action,
                                struct tec_arena *arena, struct tec_error *err);

/* A chunk [rows, columns] of the model has left at `now_ns`. Returns the largest difference of a
 * column between its row of that moment and that of the chunk before, whose last row stands for
 * moments behind its end; negative: there is none before, or rows have no time. The chunk is the
 * next one's `before`. */
float tec_seam_join(struct tec_seam *seam, const float *chunk, int64_t captured_ns, int64_t now_ns);

#endif
