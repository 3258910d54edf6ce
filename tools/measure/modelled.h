/* modelled.h - the time of one start of a CUDA kernel, as a model predicts it: from its grid, the
 * blocks that a multiprocessor holds, waves of them, and what a block does in a step. Nothing here
 * is measured; the constants were fitted to a part of what an H100 took (doc/roofline.md).
 *
 *     time = start + max(waves x (around + steps x step), bytes / bandwidth) + sums of splits
 */
#ifndef TEC_TOOLS_MEASURE_MODELLED_H
#define TEC_TOOLS_MEASURE_MODELLED_H

#include "kernels/grids.h"
#include "tools/measure/roofline.h"

/* Facts of a machine's chip, from peaks.def or a file; units are in peaks.def. */
struct tec_chip {
    const char *name;
    int capability, processors, mhz, threads, shared, l2, l2_rate;
};

/* The chip of a machine; NULL: nothing is known of it. */
const struct tec_chip *tec_chip_of(const struct tec_peak *peak);

/* TOP/s of products of bytes: by the peak of bf16 and what a multiprocessor has; of no chip (NULL)
 * twice the peak. */
double tec_chip_byte_rate(const struct tec_peak *peak, const struct tec_chip *chip);

/* What launchers would decide by on such a device. */
struct tec_cuda_facts tec_chip_facts(const struct tec_chip *chip);

/* Changes of kernels that are planned, not made: what they would do to a time. And whether those
 * that were made are taken back: constants were fitted to kernels as an H100 measured them. */
struct tec_changes {
    bool loop_overlap; /* kernels overlap in the body of a loop, too */
    bool as_measured;  /* kernels are those of November 2026 */
};

/* What a start works on. */
struct tec_grid_work {
    int64_t rows;    /* live ones */
    double keys;     /* that a row sees, on average */
    double together; /* rows of a sequence, on average: neighbours share a tile */
    struct tec_cost cost;
    bool in_loop; /* kernels do not overlap there */
    bool alone;   /* it follows a start of the same kernel, as where one is measured by itself */
};

struct tec_grid_time {
    double us;
    int64_t busy;      /* blocks that have live rows */
    int resident;      /* blocks of a multiprocessor */
    int waves;         /* of busy blocks */
    const char *bound; /* what decides: launch, memory, multiply, wait, sums */
};

struct tec_grid_time tec_grid_time_of(const struct tec_peak *peak, const struct tec_chip *chip,
                                      const struct tec_grid *grid, const struct tec_grid_work *work,
                                      const struct tec_changes *changes);

/* --- the kernels of a pipeline --------------------------------------------------------------- */

/* Starts alike: of one stage, kernel, label and grid. */
struct tec_modelled_kernel {
    enum tec_stage stage;
    const char *label;
    struct tec_grid grid; /* of the first one */
    struct tec_grid_time time;
    int64_t calls;
    double us, changed_us; /* of all; with every planned change of struct tec_changes */
};

/* Sums of a part, by stage and, last, of all; kernels in the order of their first start. */
struct tec_modelled_part {
    const struct tec_plan_part *part;
    const struct tec_peak *peak;
    int n;
    struct tec_modelled_kernel *kernels;
    struct tec_modelled_sum {
        int64_t starts;
        double us, changed_us;
    } sums[TEC_STAGE_COUNT + 1];
};

/* Model a part on a machine, with the sizes of the roofline; arrays lie in the arena. A machine
 * without a chip (tec_chip_of) has no kernels. */
enum tec_status tec_modelled_make(struct tec_modelled_part *out,
                                  const struct tec_roofline *roofline,
                                  const struct tec_plan_part *part, const struct tec_peak *peak,
                                  struct tec_arena *arena, struct tec_error *err);

/* Print all parts for all machines of a roofline: sums, and with `kernels` a line for each of them.
 */
enum tec_status tec_modelled_print(const struct tec_roofline *roofline, bool kernels,
                                   struct tec_arena *arena, FILE *out, struct tec_error *err);

/* The same as JSON: an array with an object for each machine and part. Owned by the caller. */
struct json_t;
enum tec_status tec_modelled_json(struct json_t **out, const struct tec_roofline *roofline,
                                  struct tec_arena *arena, struct tec_error *err);

#endif
