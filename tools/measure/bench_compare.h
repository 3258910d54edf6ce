/* bench_compare.h - two reports of `tectum bench` side by side: what became faster or slower. */
#ifndef TEC_TOOLS_MEASURE_BENCH_COMPARE_H
#define TEC_TOOLS_MEASURE_BENCH_COMPARE_H

#include "base/alloc.h"
#include "base/error.h"

#include <jansson.h>
#include <stdio.h>

/* Compare the reports in two files, as `bench --format json` prints them, row by row of one policy
 * and parameters. A new object of the caller:
 *
 *     {before: FILE, after: FILE, differs: [{what, before, after}], rows: [{policy, params, of,
 *      quantile, before_us, after_us, ratio}], alone: [{policy, params, in}], worst}
 *
 * `of` is "frame", "action", "host" or "node NAME"; ratio is after / before, above 1 slower;
 * `worst` is the largest of a frame's and an action's p50 and p99, null where no row is in both.
 * `differs` are facts of the machine and the measurement that make times hard to compare.
 * TEC_MALFORMED for a file that is no such report, with what it lacks; TEC_IO, TEC_NOT_FOUND,
 * TEC_NO_MEMORY. */
enum tec_status tec_bench_compare(json_t **out, const char *before, const char *after,
                                  struct tec_heap *heap, struct tec_error *err);

/* The comparison as lines of text. */
void tec_bench_compare_print(const json_t *comparison, FILE *out);

#endif
