/* conv3x3.c - y (+)= windows of 3 x 3 pixels of x, each a pixel from the next, times weights, +
 * bias. x [in_h * in_w, k], y [windows, n padded]; W of 16 points packed n x k (kernels/conv.h),
 * float32; bias [n] or NULL. args: in_h, in_w, pad, w, bias, n, k, add. */
#include "kernels/conv.h"
#include "ops/window.h"

static enum tec_status infer(const struct tec_program *program, struct tec_call *call,
                             struct tec_error *err)
{
    const struct tec_tensor *x = tec_in(program, call, 0), *y = tec_out(program, call, 0);
    struct tec_conv_args *a = &call->args.conv;
    TEC_TRY(TEC_NEED(x && y && x != y, err, "needs x and another y"));
    TEC_TRY(TEC_NEED(a->w != NULL, err, "needs a weight"));
    TEC_TRY(TEC_NEED(a->in_h >= 1 && a->in_w >= 1 && x->rows == a->in_h * a->in_w, err,
                     "a picture of %d x %d, x has %d rows", a->in_h, a->in_w, x->rows));
    TEC_TRY(TEC_NEED(a->pad >= 0, err, "%d pixels around a picture", a->pad));
    a->out_w = tec_windows(a->in_w, 3, 1, a->pad, 1);
    int rows = tec_windows(a->in_h, 3, 1, a->pad, 1) * a->out_w;
    TEC_TRY(
        TEC_NEED(rows >= 1 && y->rows == rows, err, "%d windows, y has %d rows", rows, y->rows));
    TEC_TRY(TEC_NEED(x->cols == a->k, err, "x must have %d columns, has %d", a->k, x->cols));
    TEC_TRY(TEC_NEED(a->n % 16 == 0 && a->n <= y->ld, err,
                     "%d weight columns do not fit a row of %d", a->n, y->ld));
    a->rows = y->live;
    a->max_rows = rows;
    a->ldx = x->ld;
    a->ldy = y->ld;
    return TEC_OK;
}

static void record(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture)
{
    struct tec_conv_args a = call->args.conv;
    a.x = (const float *)(const void *)tec_in(program, call, 0)->at;
    a.y = (float *)(void *)tec_out(program, call, 0)->at;
    tec_capture_add(capture, TEC_KERNEL_conv3x3, &a, call->barrier, call->label);
}

/* R windows in S squares of four, whole or cut off at the end of a line; n stored channels of y, k
 * of x. Products: 16 S n k multiply-adds. Besides, 32 sums for each of S k to points, 24 for each
 * of S n back, and for each of R n results one for each of bias and add. Bytes: W is 16 n k 4, bias
 * 4 n; the picture once, h w k 4; y 4 R n, read as well when it is added to. */
static struct tec_cost cost(const struct tec_call *call, const struct tec_counts *counts)
{
    const struct tec_conv_args *a = &call->args.conv;
    int64_t rows = tec_counts_rows(counts, a->rows, a->max_rows), results = rows * a->n;
    int64_t lines = (rows + a->out_w - 1) / a->out_w;
    int64_t squares = (int64_t)tec_conv_squares((int)lines) * tec_conv_squares(a->out_w);
    int64_t matrix = (int64_t)a->n * a->k, picture = (int64_t)a->in_h * a->in_w * a->k;
    return (struct tec_cost){
        .products_f32 = tec_cost_times(squares * TEC_CONV_POINTS * 2, matrix),
        .other =
            squares * (32 * (int64_t)a->k + 24 * (int64_t)a->n) + results * (!!a->bias + !!a->add),
        .weights = matrix * TEC_CONV_POINTS * 4 + (a->bias ? (int64_t)a->n * 4 : 0),
        .read = (rows ? picture * 4 : 0) + (a->add ? results * 4 : 0),
        .written = results * 4,
    };
}

/* Not row-wise: a lane reads rows that others wrote. */
const struct tec_op tec_op_conv3x3 = {.infer = infer, .record = record, .cost = cost};
