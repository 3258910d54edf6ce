/* peak_gemm.h - how many FLOP a second a device's matrix products reach on a large matrix: the
 * ceiling beside which a product of a model is seen. */
#ifndef TEC_TOOLS_MEASURE_PEAK_GEMM_H
#define TEC_TOOLS_MEASURE_PEAK_GEMM_H

#include "kernels/device.h"

/* The best of `times` products of [rows, side] with a matrix [side, side] by a kernel of that name:
 * gemm_f32, gemm_bf16, gemm_int8, gemm_int4 in groups of 64 as a bf16 plan has it. `rounded`: of
 * rows that hold bf16 values, and say so; by gemm_int8 of rows that it takes in one digit. rows >=
 * 1, side a multiple of 64. TEC_NO_MEMORY. */
struct tec_peak_gemm {
    enum tec_kernel_id kernel;
    bool rounded;
    int rows, side, times;
};
enum tec_status tec_peak_gemm_measure(double *flop_s, struct tec_device *device,
                                      const struct tec_peak_gemm *of, struct tec_heap *heap,
                                      struct tec_error *err);

#endif
