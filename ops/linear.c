/* linear.c - y (+)= gate * (x W^T + bias).
 *   x [rows, k], y [rows, n padded]; W packed n x k, f32 (bf16 = 0) or bf16, int8, or int4 where
 * group is not 0; bias, gate [n] or NULL. Rows below *fixed take fixed_gate.
 *   With windows, in f32: x [in_h * in_w, cols], and a row is a window of it; y [windows, ..]. */
#include "kernels/int4.h"
#include "kernels/int8.h"
#include "kernels/matrix.h"
#include "ops/window.h"

/* Rows are windows of x, all of them. */
static enum tec_status infer_windows(const struct tec_tensor *x, const struct tec_tensor *y,
                                     struct tec_call *call, struct tec_error *err)
{
    struct tec_gemm_args *a = &call->args.gemm;
    struct tec_windows *w = &call->windows;
    bool plain = !call->bf16 && !call->int8 && !a->group && !a->fixed && !a->rows;
    TEC_TRY(TEC_NEED(plain && !call->in_row && !call->out_row && x != y, err,
                     "windows are read in float32, all of them, into another y"));
    TEC_TRY(
        TEC_NEED(w->side >= 1 && w->side <= 64 && w->stride >= 1 && w->dilation >= 1 && w->pad >= 0,
                 err, "windows of %d pixels, %d from one to the next", w->side, w->stride));
    TEC_TRY(TEC_NEED(w->in_h >= 1 && w->in_w >= 1 && x->rows == w->in_h * w->in_w, err,
                     "a picture of %d x %d, x has %d rows", w->in_h, w->in_w, x->rows));
    w->cols = x->cols;
    w->out_w = tec_windows(w->in_w, w->side, w->stride, w->pad, w->dilation);
    int rows = tec_windows(w->in_h, w->side, w->stride, w->pad, w->dilation) * w->out_w;
    TEC_TRY(
        TEC_NEED(rows >= 1 && y->rows == rows, err, "%d windows, y has %d rows", rows, y->rows));
    TEC_TRY(TEC_NEED(a->k <= TEC_WINDOWS_K && a->k == w->side * w->side * w->cols, err,
                     "windows of %d columns; the weight has %d, up to %d are taken",
                     w->side * w->side * w->cols, a->k, TEC_WINDOWS_K));
    a->max_rows = rows;
    a->rows = y->live;
    return TEC_OK;
}

static enum tec_status infer_rows(const struct tec_tensor *x, const struct tec_tensor *y,
                                  struct tec_call *call, struct tec_error *err)
{
    struct tec_gemm_args *a = &call->args.gemm;
    TEC_TRY(TEC_NEED(x->cols == a->k, err, "x must have %d columns, has %d", a->k, x->cols));
    if (!a->rows) {
        a->max_rows = x->rows;
        a->rows = x->live;
    }
    TEC_TRY(TEC_NEED(call->in_row + a->max_rows <= x->rows, err, "x holds %d rows", x->rows));
    return TEC_NEED(call->out_row + a->max_rows <= y->rows, err,
                    "y holds %d rows, %d + %d are written", y->rows, call->out_row, a->max_rows);
}

static enum tec_status infer(const struct tec_program *program, struct tec_call *call,
                             struct tec_error *err)
{
    const struct tec_tensor *x = tec_in(program, call, 0), *y = tec_out(program, call, 0);
    struct tec_gemm_args *a = &call->args.gemm;
    TEC_TRY(TEC_NEED(x && y, err, "needs x and y"));
    TEC_TRY(TEC_NEED(a->w != NULL, err, "needs a weight"));
    TEC_TRY(TEC_NEED(a->n % 16 == 0 && a->n <= y->ld, err,
                     "%d weight columns do not fit a row of %d", a->n, y->ld));
    TEC_TRY(TEC_NEED(a->group >= 0 && a->group % 8 == 0 && (!a->group || a->k % 8 == 0), err,
                     "groups of %d in %d columns: both must be multiples of 8", a->group, a->k));
    TEC_TRY(TEC_NEED(a->group <= TEC_INT4_LONGEST, err, "groups of %d columns; up to %d are taken",
                     a->group, TEC_INT4_LONGEST));
    TEC_TRY(TEC_NEED(!a->fixed || (!call->in_row && !call->out_row), err,
                     "fixed rows are counted from row 0 of x and y"));
    TEC_TRY(call->windows.side ? infer_windows(x, y, call, err) : infer_rows(x, y, call, err));
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
    a.windows = call->windows.side ? &call->windows : NULL;
    a.rounded = call->bf16 && tec_tensor_rounded(tec_in(program, call, 0));
    enum tec_kernel_id kernel = a.group      ? TEC_KERNEL_gemm_int4
                                : call->int8 ? TEC_KERNEL_gemm_int8
                                : call->bf16 ? TEC_KERNEL_gemm_bf16
                                             : TEC_KERNEL_gemm_f32;
    tec_capture_add(capture, kernel, &a, call->barrier, call->label);
}

static int64_t bytes_of(const struct tec_call *call)
{
    const struct tec_gemm_args *a = &call->args.gemm;
    int64_t stride = (int64_t)tec_matrix_stride(a->k, call->bf16);
    return a->group     ? (int64_t)tec_int4_size(a->n, a->k, a->group)
           : call->int8 ? (int64_t)tec_int8_size(a->n, a->k)
                        : tec_cost_times(a->n, stride * (call->bf16 ? 2 : 4));
}

/* R rows, n stored columns, k inputs, e bytes a weight (bf16 lines are padded to even k).
 * Products: R n k multiply-adds. Besides, for each of R n results one FLOP for each of bias, gate
 * and add. Bytes: W is n k e (int8: its panels; int4: too, and one order of k); bias and gate 4 n
 * each, gate twice where rows may be fixed. x is 4 R k, of windows the picture once; y 4 R n, read
 * as well when it is added to. */
static struct tec_cost cost(const struct tec_call *call, const struct tec_counts *counts)
{
    const struct tec_gemm_args *a = &call->args.gemm;
    int64_t rows = tec_counts_rows(counts, a->rows, a->max_rows);
    int64_t results = rows * a->n, products = tec_cost_times(results * 2, a->k);
    int vectors = !!a->bias + !!a->gate + !!a->fixed;
    int64_t weights = bytes_of(call);
    bool reduced = call->bf16 || call->int8 || a->group;
    const struct tec_windows *w = &call->windows;
    int64_t read = w->side ? (rows ? (int64_t)w->in_h * w->in_w * w->cols : 0) : rows * a->k;
    if (a->order)
        weights += (int64_t)a->k * 4;
    return (struct tec_cost){
        .products = reduced ? products : 0,
        .products_bytes = call->int8 || a->group ? products : 0,
        .products_f32 = reduced ? 0 : products,
        .other = results * (!!a->bias + (a->gate || a->fixed) + !!a->add),
        .weights = weights + (int64_t)a->n * 4 * vectors,
        .read = read * 4 + (a->add ? results * 4 : 0),
        .written = results * 4,
    };
}

const struct tec_op tec_op_linear = {.infer = infer, .record = record, .cost = cost};
