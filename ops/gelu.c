/* gelu.c - y = gelu_tanh(x).
 *   x, y [rows, cols]. args: round. */
#include "ops/program.h"

static enum tec_status infer(const struct tec_program *program, struct tec_call *call,
                             struct tec_error *err)
{
    const struct tec_tensor *x = tec_in(program, call, 0), *y = tec_out(program, call, 0);
    struct tec_map_args *a = &call->args.map;
    TEC_TRY(tec_need(call, x && y, err, "needs x and y"));
    TEC_TRY(tec_need(call, x->cols == y->cols && y->rows >= x->rows, err,
                     "x is [%d, %d], y is [%d, %d]", x->rows, x->cols, y->rows, y->cols));
    a->rows = x->live;
    a->max_rows = x->rows;
    a->cols = x->cols;
    a->ldx = x->ld;
    a->ldy = y->ld;
    return TEC_OK;
}

static void record(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture)
{
    struct tec_map_args a = call->args.map;
    a.x = (const float *)(const void *)tec_in(program, call, 0)->at;
    a.y = (float *)(void *)tec_out(program, call, 0)->at;
    tec_capture_add(capture, TEC_KERNEL_gelu, &a, call->barrier, call->label);
}

const struct tec_op tec_op_gelu = {.infer = infer, .record = record, .rowwise = true};
