/* session_views.c - makes pictures at the size that a secondary chain's model sees.
 *
 * Runs on the session's thread, as the frames' pictures are made. Memory is taken when a camera is
 * seen for the first time or changes its size. */
#include "graph/run/launch/text_input.h"
#include "graph/run/session/session_state.h"

/* The robot's picture goes as it is to a model that sees what the frames' model sees. */
static bool same(const struct tec_model *a, struct tec_picture_size x, const struct tec_model *b,
                 struct tec_picture_size y)
{
    return x.h == y.h && x.w == y.w && a->vision.floats == b->vision.floats;
}

enum tec_status tec_session_view_init(struct tec_session_view *v, const struct tec_model *model,
                                      int index, struct tec_arena *arena, struct tec_error *err)
{
    const struct tec_model *frames = v->of->options.model;
    struct tec_picture_size size = tec_model_picture(model, index);
    v->wide = model->vision.floats;
    if (same(model, size, frames, tec_model_picture(frames, v->slot)))
        return TEC_OK;
    v->own = true;
    v->n = (size_t)size.h * (size_t)size.w * 3;
    tec_observer_picture(v->of->observer, v->slot, (struct tec_observer_size){size.h, size.w},
                         &v->picture);
    bool all = true;
    if (v->picture.as_float) {
        v->floats = TEC_NEW(arena, v->n, float);
        all = v->floats != NULL;
    }
    for (int i = 0; all && i < TEC_SESSION_SETS; i++) {
        v->at[i] = tec_arena_push(arena, v->n * (v->wide ? sizeof(float) : 1), 1, 64);
        all = v->at[i] != NULL;
    }
    return all ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for a picture");
}

bool tec_session_view_valid(const struct tec_session_view *v, int turn)
{
    return v->of->sets[turn].seen.valid[v->slot];
}

enum tec_status tec_session_view_make(struct tec_session_view *v, const struct tec_value *values,
                                      size_t n_values, int turn, const uint8_t **out,
                                      struct tec_error *err)
{
    *out = v->of->sets[turn].seen.pictures[v->slot];
    if (!v->own)
        return TEC_OK;
    const struct tec_value *value = tec_text_find(values, n_values, v->picture.camera->input, "");
    if (!value) /* of a valid picture it is there */
        return tec_fail(err, TEC_INVALID, "%s: the picture is gone", v->picture.camera->input);
    uint8_t *at = v->at[turn];
    TEC_TRY(tec_picture_run(&v->picture, value, v->floats ? NULL : at, v->floats, err));
    tec_session_give_picture(v->floats, at, v->n, v->wide);
    *out = at;
    return TEC_OK;
}

void tec_session_view_drop(struct tec_session_view *v)
{
    if (v->own)
        tec_arena_finish(&v->picture.arena);
}
