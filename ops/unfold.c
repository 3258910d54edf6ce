/* unfold.c - y = the pixels of each window of x side by side, 0 outside the picture.
 *   x [in_h * in_w, cols], y [windows, side * side * cols]. args: in_h, in_w, side, stride, pad,
 *   dilation, round. */
#include "ops/window.h"

static enum tec_status infer(const struct tec_program *program, struct tec_call *call,
                             struct tec_error *err)
{
    const struct tec_window_args *a = &call->args.window;
    TEC_TRY(TEC_NEED(a->side >= 1 && a->side <= 64, err, "windows of %d pixels", a->side));
    return tec_window_infer(program, call, a->side * a->side, err);
}

static void record(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture)
{
    tec_window_record(program, call, capture, TEC_KERNEL_unfold);
}

/* The picture once, h w c; R windows of side^2 c. Nothing is computed. */
static struct tec_cost cost(const struct tec_call *call, const struct tec_counts *counts)
{
    const struct tec_window_args *a = &call->args.window;
    int64_t rows = tec_counts_rows(counts, a->rows, a->max_rows);
    int64_t window = (int64_t)a->side * a->side * a->cols;
    int64_t picture = (int64_t)a->in_h * a->in_w * a->cols;
    return (struct tec_cost){.read = rows ? picture * 4 : 0,
                             .written = tec_cost_times(rows, window * 4)};
}

static bool rounds(const struct tec_call *call)
{
    return call->args.window.round;
}

/* Not row-wise: a lane reads rows that others wrote. */
const struct tec_op tec_op_unfold = {
    .infer = infer, .record = record, .cost = cost, .rounds = rounds};
