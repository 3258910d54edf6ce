/* time_product.h - layers that a flow's time goes through, computed at load for all steps at once.
 */
#ifndef TEC_GRAPH_MODEL_TIME_PRODUCT_H
#define TEC_GRAPH_MODEL_TIME_PRODUCT_H

#include "graph/model/source.h"

/* y [steps, layer.rows], zero before, = x [steps, n] times columns `first` .. first + n of a layer,
 * and its bias.
 */
struct tec_time_product {
    struct tec_dense layer;
    struct tec_category category; /* categories 0: a plain layer */
    int steps, first, n;
    const double *x;
    double *y;
};

/* Reads few rows of the layer at a time; sums are in the order of the columns. What is wrong with a
 * tensor: source.h; TEC_NO_MEMORY. */
enum tec_status tec_time_multiply(const struct tec_weight_source *source,
                                  const struct tec_time_product *product, struct tec_heap *heap,
                                  struct tec_error *err);

double tec_time_activation(enum tec_activation f, double x);

#endif
