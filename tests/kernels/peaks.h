/* peaks.h - what this machine can do at most, measured next to what a kernel does. */
#ifndef TEC_TESTS_KERNELS_PEAKS_H
#define TEC_TESTS_KERNELS_PEAKS_H

#include "kernels/kernels.h"

#include <stdbool.h>
#include <stddef.h>

/* Run job(user, lane, lanes, rep) on `lanes` threads, `reps` times, all starting together; the
 * seconds of the fastest repetition, and of the middle one in *median unless NULL. */
double peaks_measure(void (*job)(void *user, struct tec_part part, int rep), void *user, int lanes,
                     int reps, double *median);

/* float32 multiply-adds with operands in registers, in GF/s, as wide as the tier's vectors. */
double peaks_fma(enum tec_tier tier, int lanes);

/* Products of bf16 pairs by the vectors of AVX512-BF16, likewise; 0 where the processor lacks them.
 */
double peaks_bf16(int lanes);

/* Products of bytes by the vectors of AVX512-VNNI, likewise. */
double peaks_int8(int lanes);

/* Products by a tile unit (AMX), likewise: of bytes, or of bf16 pairs. */
double peaks_tiles(bool bytes, int lanes);

/* Reading through `size` bytes, more than the caches hold, in GB/s. */
double peaks_read(const void *memory, size_t size, int lanes);

#endif
