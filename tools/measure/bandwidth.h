/* bandwidth.h - how fast this machine reads memory, and what a decode step must read. */
#ifndef TEC_TOOLS_MEASURE_BANDWIDTH_H
#define TEC_TOOLS_MEASURE_BANDWIDTH_H

#include "base/alloc.h"
#include "base/error.h"
#include "graph/model/weights.h"

#include <stdint.h>

/* Bytes a second of a streaming read by `lanes` threads over `size` bytes (take more than the last
 * cache holds): the best of `times` passes. TEC_NO_MEMORY. */
enum tec_status tec_bandwidth_read(double *bytes_s, int lanes, size_t size, int times,
                                   struct tec_heap *heap, struct tec_error *err);

/* Bytes of weights that one decode step touches, whatever its batch: every layer of the text and
 * the head. */
int64_t tec_bandwidth_step(const struct tec_weights *weights, const struct tec_model *model);

#endif
