/* observation.c - the buffers that an observer of a judge fills, from the judge's arena. */
#include "tests/judge/observation.h"

enum tec_status tec_verify_observation(struct tec_observation *seen,
                                       const struct tec_observation_sizes *sizes,
                                       struct tec_arena *arena, struct tec_error *err)
{
    size_t slots = (size_t)sizes->slots, width = (size_t)sizes->width;
    uint8_t **bytes = TEC_NEW(arena, slots + 1, uint8_t *);
    float **floats = TEC_NEW(arena, slots + 1, float *);
    seen->valid = TEC_NEW(arena, slots + 1, bool);
    seen->state = TEC_NEW(arena, width, float);
    seen->state_f64 = TEC_NEW(arena, width, double);
    seen->state_raw = TEC_NEW(arena, width, double);
    seen->bins = TEC_NEW(arena, width, int);
    seen->text = TEC_NEW(arena, (size_t)sizes->text + 1, char);
    bool all = bytes && floats && seen->valid && seen->state && seen->state_f64 &&
               seen->state_raw && seen->bins && seen->text;
    for (size_t i = 0; all && i < slots; i++) {
        void *picture = tec_arena_push(arena, sizes->picture_bytes, 1, 64);
        bytes[i] = picture;
        floats[i] = picture;
        all = picture != NULL;
    }
    seen->pictures = sizes->floats ? NULL : bytes;
    seen->pictures_f32 = sizes->floats ? floats : NULL;
    return all ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory to judge with");
}
