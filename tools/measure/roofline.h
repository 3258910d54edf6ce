/* roofline.h - times predicted from what calls compute and move, on machines of peaks.def and of
 * files. Nothing here is measured: a roofline says what no kernel can beat, not what one reaches.
 *
 *     time = sum over calls of max(FLOP / peak, bytes / bandwidth) + kernels x boundary
 *
 * Every call reads its weights from memory, also where a cache would still hold them: those of the
 * action are read again each step. Calls follow each other, but for a branch (tec_capture_branch):
 * with the calls beside it, it takes as long as the longer of the two, and not less than all of
 * their work together. */
#ifndef TEC_TOOLS_MEASURE_ROOFLINE_H
#define TEC_TOOLS_MEASURE_ROOFLINE_H

#include "graph/compile/work.h"
#include "graph/run/engine/engine.h"
#include "tools/cli/command.h"

enum { TEC_MAX_PEAKS = 8, TEC_ROOFLINE_OPS = 32 };

/* A machine's peak rates, from peaks.def or a file. */
struct tec_peak {
    const char *name, *title;
    double bf16, f32, memory, boundary;
    const char *from[4];
    const struct tec_chip
        *chip; /* of a file; NULL: that of peaks.def with this name (modelled.h) */
};
extern const struct tec_peak tec_peaks[];
extern const int tec_n_peaks;

/* The costs of a call that a bound counts. */
enum tec_bound {
    TEC_BOUND_PRODUCTS, /* matrix products alone, of bytes at the rate of bytes, all others at
                         * the bf16 peak, and their weights and keys:
                         * as if all else were fused into them and stayed on the chip */
    TEC_BOUND_ONE_TERM, /* everything; products of bf16 weights or keys take an activation as one
                         * bf16 number */
    TEC_BOUND_TWO_TERM, /* everything; such a product takes an activation as two bf16 numbers, which
                           doubles the products, as kernels/cuda does */
    TEC_BOUNDS
};
extern const char *const tec_bound_names[TEC_BOUNDS];

/* Microseconds of one call without its launch boundary. */
double tec_roofline_us(const struct tec_peak *peak, const struct tec_cost *cost,
                       enum tec_bound bound);

/* Adds the launch boundaries: `kernels` is a capture's own count, or the number of calls if each is
 * a kernel. */
double tec_roofline_bounded_us(const struct tec_peak *peak, double us, int64_t kernels);

/* Sums over the calls of one label, of a stage or of a part. */
struct tec_roofline_sum {
    const char *name;
    int64_t kernels, beside; /* calls; of them those of a branch */
    struct tec_cost cost;
    double us[TEC_MAX_PEAKS][TEC_BOUNDS]; /* by chosen machine */
};

/* A stage of a part; a decode part counts one step of a full batch, a verify part every token that
 * a draft can propose to one, a ring one frame at full depth, a recall as many segments as fit. */
struct tec_roofline_row {
    const struct tec_plan_part *part;
    const char *stage; /* NULL: all stages of the part */
    struct tec_roofline_sum sum;
    int n_ops;
    struct tec_roofline_sum ops[TEC_ROOFLINE_OPS]; /* by label; the last one sums up the rest */
};

struct tec_roofline {
    const struct tec_pipeline *pipeline;
    const struct tec_plan *plan;
    struct tec_work_size size;
    int n_peaks;
    const struct tec_peak *peaks[TEC_MAX_PEAKS];
    struct tec_roofline_row *rows; /* in the order of parts and stages */
    int n_rows;
};

/* Machines by name, or by a file that ends with ".json" (roofline_file.h), separated by commas;
 * what is read is the arena's. TEC_INVALID lists those there are; more than TEC_MAX_PEAKS are too
 * many. */
enum tec_status tec_roofline_choose(struct tec_roofline *roofline, const char *names,
                                    struct tec_arena *arena, struct tec_heap *heap,
                                    struct tec_error *err);

/* Make the rows in the arena. The caller has set pipeline, plan, machines and the size's pictures,
 * text (0: as many as fit) and made. */
enum tec_status tec_roofline_make(struct tec_roofline *roofline, struct tec_arena *arena,
                                  struct tec_error *err);

/* Fill in size.segments of a pipeline whose chain of frames has memories, as its file declares
 * them; the text is known. */
enum tec_status tec_roofline_segments(struct tec_roofline *roofline, struct tec_arena *arena,
                                      struct tec_error *err);

/* The sizes that a part's rows are made with: a full batch, a full ring, or what a launch that
 * keeps segments has room for. */
struct tec_work_size tec_roofline_size(const struct tec_roofline *roofline,
                                       const struct tec_plan_part *part);

/* Print the rows as tables, and as JSON. */
void tec_roofline_print(const struct tec_roofline *roofline, FILE *out);
enum tec_status tec_roofline_json(const struct tec_roofline *roofline, struct tec_arena *arena,
                                  FILE *out, struct tec_error *err);

#endif
