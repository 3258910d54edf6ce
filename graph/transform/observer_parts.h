/* observer_parts.h - what a session holds; for the files that make it up. */
#ifndef TEC_GRAPH_TRANSFORM_OBSERVER_PARTS_H
#define TEC_GRAPH_TRANSFORM_OBSERVER_PARTS_H

#include "graph/transform/observer.h"
#include "graph/transform/picture.h"

struct tec_observer {
    struct tec_heap *heap;
    struct tec_arena arena; /* of all below but the pictures' own memory */
    const struct tec_robot *robot;
    struct tec_observer_needs needs;
    const char *said; /* the text, in place of the value of the prompt's name; NULL = that */
    size_t said_bytes;
    struct tec_picture *pictures; /* [n_cameras] */
    int *slot;                    /* [n_cameras] index among the model's slots */
    struct tec_transforms decode; /* the robot's, with the numbers of the model's tokens */
    struct tec_limits trained;    /* of the model's columns, un-normalised */
    double *x, *scratch, *binned;
    double *act_x, *act_scratch; /* of tec_robot_act alone, which may run beside the others */
};

/* Fill `decode`: the robot's steps, whose bins are the model's where the robot does not say.
 * TEC_MALFORMED when the two do not go together. */
enum tec_status tec_observer_fill_decode(struct tec_observer *o, struct tec_error *err);

#endif
