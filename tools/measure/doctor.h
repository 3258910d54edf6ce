/* doctor.h - what of this machine decides how fast and how evenly frames run, and what would help.
 */
#ifndef TEC_TOOLS_MEASURE_DOCTOR_H
#define TEC_TOOLS_MEASURE_DOCTOR_H

#include "base/alloc.h"
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Look at the machine whose /proc and /sys lie below the folder `system` ("" is this machine).
 *
 * A new object of the caller: {isa[], tier, tiers[], cores{online, physical, threads_a_core,
 * allowed, isolated, load}, clocks{now_mhz, min_mhz, max_mhz, source}, governor, huge_pages,
 * memory{total_bytes, available_bytes, swap_used_bytes, limit_bytes, read_bytes_s}, power{supply,
 * mode, counter, throttled, celsius}, scheduling{kernel, realtime, priority_limit}, gpu, advice[]}.
 * What the system does not say is null. `advice` are sentences, what matters most first.
 * `measure` also times a read of memory, which takes about a second. TEC_NO_MEMORY. */
enum tec_status tec_doctor_look(json_t **report, const char *system, bool measure,
                                struct tec_heap *heap, struct tec_error *err);

/* The report as lines of text, the advice last. */
void tec_doctor_print(const json_t *report, FILE *out);

#endif
