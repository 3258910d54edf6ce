/* axis.h - the weights of one direction of a resize. */
#ifndef TEC_BASE_IMAGE_AXIS_H
#define TEC_BASE_IMAGE_AXIS_H

#include "base/image/resize.h"

#include <stdint.h>

/* Output i is the sum of `count[i]` inputs from `first[i]`, each with its weight in row i of the
 * table, `taps` apart. Weights of a row sum to 1. In the arena that made it. */
struct tec_axis {
    int in, out, taps, bits;
    int *first, *count;
    int32_t *fixed; /* [out, taps], `bits` bits after the point */
    float *real;    /* [out, taps] */
};

/* Weights from `in` to `out` inputs, with the filter and the options of `spec`. TEC_NO_MEMORY. */
enum tec_status tec_axis_plan(struct tec_axis *axis, int in, int out,
                              const struct tec_resize_spec *spec, struct tec_arena *arena,
                              struct tec_error *err);

#endif
