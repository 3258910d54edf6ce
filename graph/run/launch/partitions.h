/* partitions.h - requests beside the frame: the real executor where a pipeline declares partitions.
 *
 * A partition of a CPU is a set of lanes. What stands in another partition than the frame's hard
 * nodes runs on lanes of its own while they run, if the frame has any of it; else every launch has
 * all lanes. More than two partitions: the hard nodes' against all others, which run one after the
 * other. With one lane everything runs one after the other, in the order of priority.
 *
 * Keys and values are in one space for both. What is written at a time is disjoint: the frame
 * writes its region and the action's scratch, a request its tail, its slot nobody reads and, if it
 * does not share, a region of its own. So a request may share the frame's prefix, move to another
 * partition, or be unshared, from frame to frame; one that shares the prefix of the running frame
 * starts when the prefill has ended. A prompt of remembered segments is recalled by one owner: a
 * request that takes one of its own is not beside in that frame. Tables, activations and the
 * pictures' scratch exist twice. Bytes do not depend on any of this. */
#ifndef TEC_GRAPH_RUN_LAUNCH_PARTITIONS_H
#define TEC_GRAPH_RUN_LAUNCH_PARTITIONS_H

#include "graph/load/pipeline.h"
#include "graph/run/launch/executor.h"

/* Of so many lanes, those for work beside the hard nodes: the whole ones that the partitions'
 * shares give, and the hard nodes keep one. 0: nothing can run beside them. A device (`beside`) and
 * a plan (spec.beside) are made with it. */
int tec_partition_lanes(const struct tec_pipeline *pipeline, int lanes);

struct tec_partitions;

/* For a plan with spec.beside on a device that has lanes to split off; both are borrowed. `whole`
 * runs what is not beside: the plan's real executor, or a memory's over it (copied). */
enum tec_status tec_partitions_create(struct tec_partitions **out, struct tec_plan *plan,
                                      const struct tec_executor *whole, struct tec_heap *heap,
                                      struct tec_error *err);

/* Waits for jobs that were started and not joined: each ends, as nothing is awaited any more. */
void tec_partitions_destroy(struct tec_partitions *partitions); /* NULL is allowed */

/* Runs captures of the plan; jobs of `beside` run on the lanes split off. */
struct tec_executor tec_partitions_executor(struct tec_partitions *partitions);

#endif
