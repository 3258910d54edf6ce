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
    int steps, times; /* times: one more where the time of actions is among them, the last one */
    double *t;        /* [times] */
    float **of;    /* [calls] device: [times, columns padded to 16]; NULL = no frame reads it. Of a
                    * product that reads rows beside the time: what this and the bias add */
    int64_t bytes; /* device memory */
    const struct tec_model_program *program;
    struct tec_device *device;
    struct tec_arena arena;
};

/* The times of a flow of `steps` steps, 1 .. 1000. */
struct tec_timed_options {
    const double *times; /* [steps] others than those; NULL = the flow's */
    int steps;
    bool actions; /* the time of actions, too: some of them are given */
};

/* Values that have names are kept, too, for judges. TEC_NO_MEMORY; what tensors are wrong
 * (source.h). */
enum tec_status tec_timed_create(struct tec_timed **out, const struct tec_model_program *program,
                                 const struct tec_weight_source *source,
                                 const struct tec_timed_options *options, struct tec_device *device,
                                 struct tec_heap *heap, struct tec_error *err);
void tec_timed_destroy(struct tec_timed *timed); /* NULL is allowed */

/* The row of a call at a step; NULL where no frame reads one. */
const float *tec_timed_row(const struct tec_timed *timed, int call, int step);

#endif
