/* guide.h - how much each row of a chunk is pulled to the chunk before it, while that is executed.
 */
#ifndef TEC_GRAPH_TRANSFORM_GUIDE_H
#define TEC_GRAPH_TRANSFORM_GUIDE_H

/* Rows that are executed before the new chunk can be are kept; guides.def says what becomes of
 * those behind, up to the horizon. */
enum tec_guide_schedule {
#define GUIDE(name, text, what) TEC_GUIDE_##name,
#include "graph/transform/guides.def"
#undef GUIDE
};

/* pulls[i] of rows i < rows, 0 .. 1. `delay`: rows that are executed meanwhile; `horizon`: how far
 * the earlier chunk, of which `left` rows are left, counts. */
void tec_guide_pulls(enum tec_guide_schedule schedule, int delay, int horizon, int left, int rows,
                     float *pulls);

#endif
