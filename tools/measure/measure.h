/* measure.h - how many bytes a pipeline would take, exactly, without taking them. */
#ifndef TEC_TOOLS_MEASURE_MEASURE_H
#define TEC_TOOLS_MEASURE_MEASURE_H

#include "graph/run/engine/engine.h"
#include "tools/cli/command.h"

/* The source of the measured sizes: a checkpoint (--weights or the pipeline's), a size of
 * --random-weights, or the full-size model description if the pipeline's checkpoint is not here. */
enum tec_measured_by { TEC_MEASURED_CHECKPOINT, TEC_MEASURED_SIZE, TEC_MEASURED_FULL };

enum tec_measured_by tec_measured_by(const struct tec_invocation *call,
                                     const struct tec_pipeline *pipeline);

/* That a checkpoint which --set names is there, as one of --weights must be: that of a file may be
 * on the robot. On failure *where is its option. */
enum tec_status tec_measure_named(const struct tec_where **where, const struct tec_invocation *call,
                                  const struct tec_pipeline *pipeline, struct tec_error *err);

/* Measure with the shared options of `call`. Texts are owned by its arena. `found` (may be NULL)
 * gets what inputs and kv.frame have that does not fit, see engine.h. Fails as
 * tec_measure_named, with the place. */
enum tec_status tec_measure(struct tec_measured *out, enum tec_measured_by *by,
                            struct tec_invocation *call, const struct tec_pipeline *pipeline,
                            struct tec_diagnostics *found, struct tec_error *err);

/* The captures themselves, with nothing behind their addresses; tec_engine_close. `branches`: those
 * with a branch, too, where the device runs none. Fails as
 * tec_measure_named, with the place. */
enum tec_status tec_measure_plan(struct tec_engine **out, enum tec_measured_by *by,
                                 struct tec_invocation *call, const struct tec_pipeline *pipeline,
                                 bool branches, struct tec_error *err);

/* Steps of denoising of each node [n_nodes]: the file's, else its model's. 0: it is no action, or
 * the model's description cannot be read. */
void tec_measure_steps(int *steps, struct tec_invocation *call,
                       const struct tec_pipeline *pipeline);

/* "6.12 GiB: weights 5.96 GiB, KV 150 MiB, ..." in the arena; NULL when it is full. */
const char *tec_measure_text(const struct tec_byte_plan *bytes, struct tec_arena *arena);

/* "; host plan 8.94 GiB: KV on its way 960 MiB, KV kept at most 8.00 GiB, captures 400 KiB; budget
 * 10 GiB", or "" for a pipeline without a memory. */
const char *tec_measure_host_text(const struct tec_measured *measured,
                                  const struct tec_pipeline *pipeline, struct tec_arena *arena);

#endif
