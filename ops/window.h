/* window.h - what ops over windows of a picture share; their arguments are struct
 * tec_window_args. */
#ifndef TEC_OPS_WINDOW_H
#define TEC_OPS_WINDOW_H

#include "ops/call.h"

/* y must have `side_by_side` times x's columns and a row for each window; fills what follows from
 * shapes. */
enum tec_status tec_window_infer(const struct tec_program *program, struct tec_call *call,
                                 int side_by_side, struct tec_error *err);

void tec_window_record(const struct tec_program *program, const struct tec_call *call,
                       struct tec_capture *capture, enum tec_kernel_id kernel);

/* Windows along one side of `n` pixels: (n + 2 pad - dilation (side - 1) - 1) / stride + 1. */
int tec_windows(int n, int side, int stride, int pad, int dilation);

#endif
