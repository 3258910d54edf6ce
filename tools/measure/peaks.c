/* peaks.c - the machines of peaks.def. */
#include "tools/measure/roofline.h"

const struct tec_peak tec_peaks[] = {
#define PEAK(name, title, bf16, f32, memory, boundary, ...) \
    {#name, title, bf16, f32, memory, boundary, {__VA_ARGS__}, NULL},
#include "tools/measure/peaks.def"
};
const int tec_n_peaks = sizeof tec_peaks / sizeof tec_peaks[0];
_Static_assert(sizeof tec_peaks / sizeof tec_peaks[0] <= TEC_MAX_PEAKS, "room for all machines");
