/* random_input.h - random values of declared inputs, for measurements and tests. */
#ifndef TEC_TOOLS_FRAMES_RANDOM_INPUT_H
#define TEC_TOOLS_FRAMES_RANDOM_INPUT_H

#include "base/arena.h"
#include "graph/load/pipeline.h"
#include "graph/run/session/session.h"

/* Pixels a side of pictures that no robot resizes, 0: as declared; tokens of a prompt; ids are
 * below vocab. */
struct tec_random_sizes {
    int side, prompt_tokens, vocab;
};

/* Values of every input of a pipeline, in the order of its inputs, under the names that the robots
 * of its sessions (may be NULL) know them by: pictures of random pixels, numbers from -1 to 1, a
 * prompt of `prompt_tokens` random ids (at most as many as declared; of a vocabulary of `vocab`,
 * not the first three), six texts that are put into a memory. A picture has the declared size, or
 * that of the model where the robot resizes none. `state` is the generator's, and moves on; what a
 * named robot sees is drawn by its name, so it is the same without the other robots. `values` holds
 * `room`; *n is how many there are. TEC_NO_MEMORY. */
enum tec_status tec_random_inputs(struct tec_value *values, size_t room, size_t *n,
                                  const struct tec_pipeline *pipeline,
                                  const struct tec_session *session, struct tec_random_sizes sizes,
                                  uint64_t *state, struct tec_arena *arena, struct tec_error *err);

#endif
