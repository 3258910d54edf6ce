/* bench_cuda.h - what the CUDA kernels take on the layers of real models, by the device's clock. */
#ifndef TEC_TESTS_KERNELS_BENCH_CUDA_H
#define TEC_TESTS_KERNELS_BENCH_CUDA_H

#include <stdbool.h>

/* One line for each layer whose kernel's name matches: `# {"kernel": ..., "layer": ..., "us": ...,
 * "gb_s": ..., "tflop_s": ..., "of_ceiling": ..., "calls": ..., "lost_us": ...}`; before them
 * `# {"ceiling": ...}` with what this device copies and multiplies at most, and after them a table
 * of the five that lose most time in a frame. `calls`: in a pi0 frame of two views, ten steps and
 * five decoding steps of six texts. `peak`: TFLOP/s of bf16 products that something else measured
 * here; 0: the best of the kernels themselves. `slow`: tiny shapes, to see it work. Returns whether
 * there are such layers, all were timed and all wrote something; what did not has a line with its
 * error. */
bool conform_bench_cuda(const char *pattern, double peak, bool slow);

#endif
