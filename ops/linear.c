/* linear.c - y (+)= gate * (x W^T + bias).
 *   x [rows, k], y [rows, n padded]; W packed n x k, f32 (bf16 = 0) or bf16; bias, gate [n] or
 * NULL. Rows below *fixed take fixed_gate. */
#include "ops/program.h"

static enum tec_status infer(const struct tec_program *program, struct tec_call *call,
                             struct tec_error *err)
{
    const struct tec_tensor *x = tec_in(program, call, 0), *y = tec_out(program, call, 0);
    struct tec_gemm_args *a = &call->args.gemm;
    TEC_TRY(TEC_NEED(call, x && y, err, "needs x and y"));
    TEC_TRY(TEC_NEED(call, a->w != NULL, err, "needs a weight"));
    TEC_TRY(TEC_NEED(call, x->cols == a->k, err, "x must have %d columns, has %d", a->k, x->cols));
    TEC_TRY(TEC_NEED(call, a->n % 16 == 0 && a->n <= y->ld, err,
                     "%d weight columns do not fit a row of %d", a->n, y->ld));
    TEC_TRY(TEC_NEED(call, !a->fixed || (!call->in_row && !call->out_row), err,
                     "fixed rows are counted from row 0 of x and y"));
    if (!a->rows) {
        a->max_rows = x->rows;
        a->rows = x->live;
    }
    TEC_TRY(TEC_NEED(call, call->in_row + a->max_rows <= x->rows, err, "x holds %d rows", x->rows));
    TEC_TRY(TEC_NEED(call, call->out_row + a->max_rows <= y->rows, err,
                     "y holds %d rows, %d + %d are written", y->rows, call->out_row, a->max_rows));
    a->ldx = x->ld;
    a->ldy = y->ld;
    return TEC_OK;
}

static void record(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture)
{
    struct tec_gemm_args a = call->args.gemm;
    a.x =
        (const float *)(const void *)tec_in(program, call, 0)->at + (ptrdiff_t)call->in_row * a.ldx;
    a.y = (float *)(void *)tec_out(program, call, 0)->at + (ptrdiff_t)call->out_row * a.ldy;
    tec_capture_add(capture, call->bf16 ? TEC_KERNEL_gemm_bf16 : TEC_KERNEL_gemm_f32, &a,
                    call->barrier, call->label);
}

const struct tec_op tec_op_linear = {.infer = infer, .record = record};
