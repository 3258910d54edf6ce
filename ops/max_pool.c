/* max_pool.c - y = the largest pixel of each window of x, column by column.
 *   x [in_h * in_w, cols], y [windows, cols]. args: in_h, in_w, side, stride, pad, dilation; no
 *   window may lie outside the picture as a whole. */
#include "ops/window.h"

static enum tec_status infer(const struct tec_program *program, struct tec_call *call,
                             struct tec_error *err)
{
    const struct tec_window_args *a = &call->args.window;
    TEC_TRY(TEC_NEED(2 * a->pad <= a->side && !a->round, err,
                     "windows of %d pixels with %d outside", a->side, a->pad));
    return tec_window_infer(program, call, 1, err);
}

static void record(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture)
{
    tec_window_record(program, call, capture, TEC_KERNEL_max_pool);
}

/* The picture once, h w c; R windows of c, side^2 comparisons each. */
static struct tec_cost cost(const struct tec_call *call, const struct tec_counts *counts)
{
    const struct tec_window_args *a = &call->args.window;
    int64_t n = tec_counts_rows(counts, a->rows, a->max_rows) * a->cols;
    int64_t picture = (int64_t)a->in_h * a->in_w * a->cols;
    return (struct tec_cost){.other = tec_cost_times(n, (int64_t)a->side * a->side),
                             .read = n ? picture * 4 : 0,
                             .written = n * 4};
}

/* Not row-wise: a lane reads rows that others wrote. */
const struct tec_op tec_op_max_pool = {.infer = infer, .record = record, .cost = cost};
