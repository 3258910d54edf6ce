/* window.c - infer and record of ops over windows of a picture. */
#include "ops/window.h"

int tec_windows(int n, int side, int stride, int pad, int dilation)
{
    int room = n + 2 * pad - dilation * (side - 1) - 1;
    return room < 0 ? 0 : room / stride + 1;
}

enum tec_status tec_window_infer(const struct tec_program *program, struct tec_call *call,
                                 int side_by_side, struct tec_error *err)
{
    const struct tec_tensor *x = tec_in(program, call, 0), *y = tec_out(program, call, 0);
    struct tec_window_args *a = &call->args.window;
    TEC_TRY(TEC_NEED(x && y && x != y, err, "needs x and another y"));
    TEC_TRY(TEC_NEED(a->side >= 1 && a->stride >= 1 && a->dilation >= 1 && a->pad >= 0, err,
                     "windows of %d pixels, %d from one to the next", a->side, a->stride));
    TEC_TRY(TEC_NEED(a->in_h >= 1 && a->in_w >= 1 && x->rows == a->in_h * a->in_w, err,
                     "a picture of %d x %d, x has %d rows", a->in_h, a->in_w, x->rows));
    a->out_w = tec_windows(a->in_w, a->side, a->stride, a->pad, a->dilation);
    int rows = tec_windows(a->in_h, a->side, a->stride, a->pad, a->dilation) * a->out_w;
    TEC_TRY(
        TEC_NEED(rows >= 1 && y->rows == rows, err, "%d windows, y has %d rows", rows, y->rows));
    TEC_TRY(TEC_NEED(y->cols == side_by_side * x->cols, err, "y must have %d columns, has %d",
                     side_by_side * x->cols, y->cols));
    a->rows = y->live;
    a->max_rows = rows;
    a->cols = x->cols;
    a->ldx = x->ld;
    a->ldy = y->ld;
    return TEC_OK;
}

void tec_window_record(const struct tec_program *program, const struct tec_call *call,
                       struct tec_capture *capture, enum tec_kernel_id kernel)
{
    struct tec_window_args a = call->args.window;
    a.x = (const float *)(const void *)tec_in(program, call, 0)->at;
    a.y = (float *)(void *)tec_out(program, call, 0)->at;
    tec_capture_add(capture, kernel, &a, call->barrier, call->label);
}
