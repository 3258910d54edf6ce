/* mean_rows.c - y[r] = the mean of rows span[r] of x.
 *   x [.., cols], y [rows, cols], another tensor than x. args: span. */
#include "ops/call.h"

static enum tec_status infer(const struct tec_program *program, struct tec_call *call,
                             struct tec_error *err)
{
    const struct tec_tensor *x = tec_in(program, call, 0), *y = tec_out(program, call, 0);
    struct tec_mean_args *a = &call->args.mean;
    TEC_TRY(TEC_NEED(x && y && x != y && a->span, err, "needs x, another y and spans"));
    TEC_TRY(TEC_NEED(x->cols == y->cols, err, "x has %d columns, y %d", x->cols, y->cols));
    a->rows = y->live;
    a->max_rows = y->rows;
    a->x_rows = x->rows;
    a->cols = x->cols;
    a->ldx = x->ld;
    a->ldy = y->ld;
    return TEC_OK;
}

static void record(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture)
{
    struct tec_mean_args a = call->args.mean;
    a.x = (const float *)(const void *)tec_in(program, call, 0)->at;
    a.y = (float *)(void *)tec_out(program, call, 0)->at;
    tec_capture_add(capture, TEC_KERNEL_mean_rows, &a, call->barrier, call->label);
}

/* R means of c columns. How many rows lie in the runs the counts do not say: all of x are in one.
 * One addition an element of x, one division an element of y; R spans. */
static struct tec_cost cost(const struct tec_call *call, const struct tec_counts *counts)
{
    const struct tec_mean_args *a = &call->args.mean;
    int64_t rows = tec_counts_rows(counts, a->rows, a->max_rows), n = rows * a->cols;
    int64_t all = (int64_t)a->x_rows * a->cols;
    return (struct tec_cost){.other = all + n, .read = all * 4 + rows * 8, .written = n * 4};
}

/* Not row-wise: a lane reads rows that others wrote. */
const struct tec_op tec_op_mean_rows = {.infer = infer, .record = record, .cost = cost};
