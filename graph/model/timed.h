/* timed.h - the rows of a flow's program that the time of a step alone decides (program.h),
 * computed once in float64. */
#ifndef TEC_GRAPH_MODEL_TIMED_H
#define TEC_GRAPH_MODEL_TIMED_H

#include "graph/model/program.h"
#include "graph/model/source.h"
#include "kernels/device.h"

/* Rows at n times; immutable after create. What rows of the time are made of stays float64; what
 * calls of a frame read of them is float32. */
struct tec_timed {
    int steps;
    double *t;     /* [steps] */
    float **of;    /* [calls] device: [steps, columns padded to 16]; NULL = no frame reads it. Of a
                    * product that reads rows beside the time: what this and the bias add */
    int64_t bytes; /* device memory */
    const struct tec_model_program *program;
    struct tec_device *device;
    struct tec_arena arena;
};

/* `times` NULL: those of a flow of n steps, 1 .. 1000. Values that have names are kept, too, for
 * judges. TEC_NO_MEMORY; what tensors are wrong (source.h). */
enum tec_status tec_timed_create(struct tec_timed **out, const struct tec_model_program *program,
                                 const struct tec_weight_source *source, const double *times, int n,
                                 struct tec_device *device, struct tec_heap *heap,
                                 struct tec_error *err);
void tec_timed_destroy(struct tec_timed *timed); /* NULL is allowed */

/* The row of a call at a step; NULL where no frame reads one. */
const float *tec_timed_row(const struct tec_timed *timed, int call, int step);

#endif
