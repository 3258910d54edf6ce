/* axis.h - the weights of one direction of a resize. */
#ifndef TEC_BASE_IMAGE_AXIS_H
#define TEC_BASE_IMAGE_AXIS_H

#include "base/image/resize.h"

#include <stdint.h>

/* Output i is the sum of `count[i]` inputs from `first[i]`, each with its weight in row i of the
 * table, `taps` apart. Weights of a row sum to 1. In the arena that made it. */
struct tec_axis {
    int in, out, taps;
    int *first, *count;
    int32_t *fixed; /* [out, taps], 22 bits after the point */
    float *real;    /* [out, taps] */
};

enum { TEC_AXIS_BITS = 22 };

/* Weights from `in` to `out` inputs. TEC_NO_MEMORY. */
enum tec_status tec_axis_plan(struct tec_axis *axis, int in, int out, enum tec_filter filter,
                              bool sharp, struct tec_arena *arena, struct tec_error *err);

#endif
