/* tables.h - everything of a flow that depends on its time alone, computed once in float64. */
#ifndef TEC_GRAPH_MODEL_TABLES_H
#define TEC_GRAPH_MODEL_TABLES_H

#include "graph/model/model.h"
#include "graph/model/source.h"
#include "kernels/device.h"

/* Tables of S Euler steps t = 1, 1 - 1/S, ...; immutable after create. `padded` = width rounded up
 * to 16. With `clean` there is one row more, t = 0, for actions that are given: times = S + 1. */
struct tec_flow_tables {
    int steps, times;
    int width, padded, n_norms; /* norms: two a layer, then the final one */
    double *t;                  /* [times] */
    float *sincos;              /* [times, width] host: sin | cos */
    float *condition;           /* [times, width] host, or NULL */
    float *modulation; /* [times, n_norms, 3, padded] device: scale, shift, gate; or NULL */
    float *time_bias;  /* [times, padded] device: what sincos adds to time1, or NULL */
    int64_t bytes;     /* device memory */
    struct tec_device *device;
    struct tec_arena arena;
};

enum tec_status tec_flow_tables_create(struct tec_flow_tables **out, const struct tec_flow *flow,
                                       const struct tec_weight_source *source, int steps,
                                       bool clean, struct tec_device *device, struct tec_heap *heap,
                                       struct tec_error *err);
void tec_flow_tables_destroy(struct tec_flow_tables *tables); /* NULL is allowed */

/* sin | cos of time t: angle i of width / 2 is 2 pi t / (min (max / min)^(i / (width / 2 - 1))). */
void tec_sincos(double t, double min_period, double max_period, int width, double *out);

/* Scale, shift and gate ([3, padded]) of one norm at one step; step S is t = 0, where there is one.
 */
const float *tec_modulation(const struct tec_flow_tables *tables, int step, int norm);

#endif
