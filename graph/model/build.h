/* build.h - the functions of a description, run once: what they compute becomes a program. */
#ifndef TEC_GRAPH_MODEL_BUILD_H
#define TEC_GRAPH_MODEL_BUILD_H

#include "base/lua.h"
#include "graph/model/program.h"

/* What the functions of a description compute, in its arena; NULL where it has none such. */
struct tec_model_programs {
    struct tec_model_program *own;                    /* prefill and action, or an action alone */
    struct tec_model_program *text;                   /* what the rows of its text go through, */
    struct tec_model_program *towers[TEC_MAX_TOWERS]; /* those of each tower, */
    struct tec_model_program *project;                /* what leaves all of them, */
    struct tec_model_program *state;                  /* and a row of the robot's state */
};

/* `root`: the folder of descriptions, below which Lua's names of files are.
 *
 * Takes the functions `prefill` and `action`, or an action alone, the table `flow`, and of the
 * table `text` and of those of `vision.towers` the functions `enter`, `layer` and `leave`,
 * `layers`, `width` and `image_size`, `vision.project` and `chunk.state`, out of the table on top
 * of the stack, which stays there as data, and runs them. TEC_MALFORMED with "file:line: word: ..."
 * for what does not fit; TEC_TIME, TEC_NO_MEMORY.
 */
enum tec_status tec_model_build(struct tec_model_programs *out, struct tec_lua *lua,
                                const char *root, struct tec_arena *arena, struct tec_error *err);

#endif
