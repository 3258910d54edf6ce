/* observation.h - the buffers that an observer of a judge fills. */
#ifndef TEC_TESTS_JUDGE_OBSERVATION_H
#define TEC_TESTS_JUDGE_OBSERVATION_H

#include "graph/transform/observer.h"

struct tec_observation_sizes {
    int slots;            /* pictures */
    size_t picture_bytes; /* of the largest */
    bool floats;          /* pictures are float32 */
    int width, text;      /* the state's padded entries; bytes of the instruction */
};

/* Every buffer of `seen`, from the arena and as long as it. TEC_NO_MEMORY. */
enum tec_status tec_verify_observation(struct tec_observation *seen,
                                       const struct tec_observation_sizes *sizes,
                                       struct tec_arena *arena, struct tec_error *err);

#endif
