/* session_views.h - the pictures that a secondary chain's prefill reads: those of the frames' model
 * as they are, or where its own model sees another size, made from what the robot sent. */
#ifndef TEC_GRAPH_RUN_SESSION_SESSION_VIEWS_H
#define TEC_GRAPH_RUN_SESSION_SESSION_VIEWS_H

#include "graph/model/model.h"
#include "graph/run/session/session.h"
#include "graph/transform/picture.h"

/* One picture of a prompt. */
struct tec_session_view {
    int slot;                      /* of the observation's pictures */
    bool own;                      /* it has a size of its own: what follows is there */
    size_t n;                      /* values of the picture: height x width x 3 */
    bool wide;                     /* the model reads floats, not bytes */
    struct tec_picture picture;    /* how the robot's is brought to that size */
    float *floats;                 /* [n] where the robot makes floats, before they are rounded */
    uint8_t *at[TEC_SESSION_SETS]; /* [n] bytes, or floats in their bytes */
};

/* The picture of `slot` for a model's picture `index`; `frames` is the model of the observer. The
 * arena must outlive the view; tec_session_view_drop gives back what the heap gave. */
enum tec_status tec_session_view_init(struct tec_session_view *view, int slot,
                                      const struct tec_model *model, int index,
                                      const struct tec_model *frames,
                                      const struct tec_observer *observer, struct tec_arena *arena,
                                      struct tec_error *err);

/* Make it of an observation whose picture is valid, in set `turn`: *out is in that set's buffers or
 * the observation's. Errors name the camera's key. */
enum tec_status tec_session_view_make(struct tec_session_view *view, const struct tec_value *values,
                                      size_t n_values, const struct tec_observation *seen, int turn,
                                      const uint8_t **out, struct tec_error *err);

void tec_session_view_drop(struct tec_session_view *view);

#endif
