/* picture.h - a camera's picture as it came, to the model's size; planned once a size. */
#ifndef TEC_GRAPH_TRANSFORM_PICTURE_H
#define TEC_GRAPH_TRANSFORM_PICTURE_H

#include "base/image/reshape.h"
#include "base/image/resize.h"
#include "graph/transform/observer.h"

/* One camera of one session: what is known since its first picture. Not thread-safe. */
struct tec_picture {
    const struct tec_robot_camera *camera; /* borrowed */
    int out_h, out_w;                      /* the model's size */
    bool as_float;                         /* the robot makes floats: tec_robot_floats */
    enum tec_fit fit;                      /* where black bars go, of a resize to floats or bytes */
    bool resizes;                          /* false: another size is refused */
    bool reshapes;                         /* the robot's resize is RESHAPE */
    struct tec_reshape_spec reshape;       /* of which the sizes come with a picture */
    struct tec_arena arena;                /* of all below; emptied when the size changes */
    int h, w;                              /* of the last picture, 0 = none yet */
    int first_h, first_w;                  /* of the session's first */
    const struct tec_resize *plan;         /* NULL: the picture has the model's size, or */
    const struct tec_reshape *shape;       /* its plan is this one */
    uint8_t *bytes;                        /* [h, w, 3] */
    float *floats;                         /* [h, w, 3], only as_float */
    void *scratch;                         /* of the plan */
};

/* Check a value and bring it to [out_h, out_w, 3]: into `bytes`, or into `floats` when as_float.
 * Memory is taken only when the size differs from the last picture's. Failures name the key. */
enum tec_status tec_picture_run(struct tec_picture *p, const struct tec_value *value,
                                uint8_t *bytes, float *floats, struct tec_error *err);

/* Bytes of one element; 0 for text. */
size_t tec_value_size(enum tec_value_kind kind);

/* "text", "u8", "f32", "f64", "i32"; "?" for no kind. */
const char *tec_value_word(enum tec_value_kind kind);

/* "u8[3,224,224]" into buffer, which is returned. */
const char *tec_value_shape(const struct tec_value *value, char *buffer, size_t size);

#endif
