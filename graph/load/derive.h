/* derive.h - the pipeline of a checkpoint that describes its robot, as the text of a file. */
#ifndef TEC_GRAPH_LOAD_DERIVE_H
#define TEC_GRAPH_LOAD_DERIVE_H

#include "base/arena.h"
#include "base/store/checkpoint.h"
#include "graph/load/diagnostics.h"

/* The text, in the arena, of the pipeline that the folder at from->path, of LeRobot's layout or
 * with experiment_cfg/metadata.json, describes; `root` is the folder of the shipped pipelines.
 * Loading it gives what loading the folder gives. TEC_MALFORMED: the folder is of another layout;
 * or what it describes is not run, which is reported in `d` with its place. Else as
 * tec_checkpoint_open and tec_model_open. */
enum tec_status tec_pipeline_derive(const char **text, size_t *n,
                                    const struct tec_checkpoint_source *from, const char *root,
                                    struct tec_arena *arena, struct tec_diagnostics *d,
                                    struct tec_error *err);

#endif
