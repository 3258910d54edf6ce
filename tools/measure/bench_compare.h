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
 *      quantile, before_us, after_us, ratio}], figures: [{policy, params, of, before, after}],
 *      alone: [{policy, params, in}], facts: [{what, before, after}], worst}
 *
 * `of` of rows is "frame", "action", "host" or "node NAME"; ratio is after / before, above 1
 * slower; `worst` is the largest of a frame's and an action's p50 and p99, null where no row is in
 * both. Figures are those of a row that are no times of frames: "action_hz", "tokens_s", "missed"
 * and the like, null where a report lacks them. `facts` are what the reports say of the machine,
 * the commit, the command and the measurement; `differs` are facts of the machine and the
 * measurement that make times hard to compare. TEC_MALFORMED for a file that is no such report,
 * with what it lacks; TEC_IO, TEC_NOT_FOUND, TEC_NO_MEMORY. */
enum tec_status tec_bench_compare(json_t **out, const char *before, const char *after,
                                  struct tec_heap *heap, struct tec_error *err);

/* The comparison as lines of text. */
void tec_bench_compare_print(const json_t *comparison, FILE *out);

/* The comparison as one HTML page (tools/picture/sides.h) at `path` (base/out_file.h). TEC_IO,
 * TEC_NO_MEMORY. */
enum tec_status tec_bench_compare_page(const json_t *comparison, const char *path,
                                       struct tec_error *err);

#endif
