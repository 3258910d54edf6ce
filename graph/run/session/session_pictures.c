/* session_pictures.c - pictures as the robot made them become what the model reads: bytes or
 * floats.
 *
 * Runs on the session's thread, in the buffers of the set in work. */
#include "graph/run/session/session_state.h"

#include <math.h>
#include <string.h>

/* Round to the u8 that a model reads: x = k / 255 gives k. */
static void round_picture(const float *from, uint8_t *to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float x = roundf(255.0F * from[i]);
        to[i] = (uint8_t)(x < 0.0F ? 0.0F : x > 255.0F ? 255.0F : x);
    }
}

/* Bytes to floats in their own place, the last one first, so that none is overwritten unread. */
static void widen_picture(uint8_t *at, size_t n)
{
    for (size_t i = n; i-- > 0;) {
        float x = (float)at[i] / 255.0F;
        memcpy(at + i * sizeof x, &x, sizeof x);
    }
}

void tec_session_give_picture(const float *from, uint8_t *at, size_t n, bool wide)
{
    if (from && wide)
        memcpy(at, from, n * sizeof *from);
    else if (from)
        round_picture(from, at, n);
    else if (wide)
        widen_picture(at, n);
}

void tec_session_give_pictures(const struct tec_session *s, struct tec_session_set *set)
{
    bool floats = s->options.model->vision.floats;
    for (int slot = 0; slot < s->options.model->n_slots; slot++) {
        struct tec_picture_size size = tec_model_picture(s->options.model, slot);
        size_t n = (size_t)size.h * (size_t)size.w * 3;
        if (set->seen.valid[slot])
            tec_session_give_picture(s->pictures_f32 ? s->pictures_f32[slot] : NULL,
                                     set->seen.pictures[slot], n, floats);
    }
}
