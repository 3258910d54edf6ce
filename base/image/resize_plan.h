/* resize_plan.h - what a resize plan holds; for the files that build and run it. */
#ifndef TEC_BASE_IMAGE_RESIZE_PLAN_H
#define TEC_BASE_IMAGE_RESIZE_PLAN_H

#include "base/image/axis.h"

struct tec_resize {
    struct tec_resize_spec spec;
    struct tec_axis across, down;
    int rows, columns;       /* of the picture inside the result */
    int top, left;           /* where it lies there */
    int first_row, last_row; /* input rows that any output needs: [first_row, last_row) */
};

#endif
