/* layer_norm.c - y = (x - mean) / sqrt(var + eps) * (offset + weight) + bias.
 *   x, y [rows, cols]; weight, bias [cols] or NULL. args: weight, bias, offset, eps, round. */
#include "ops/program.h"

static enum tec_status infer(const struct tec_program *program, struct tec_call *call,
                             struct tec_error *err)
{
    const struct tec_tensor *x = tec_in(program, call, 0), *y = tec_out(program, call, 0);
    struct tec_norm_args *a = &call->args.norm;
    TEC_TRY(tec_need(call, x && y, err, "needs x and y"));
    TEC_TRY(tec_need(call, x->cols == y->cols, err, "x has %d columns, y %d", x->cols, y->cols));
    TEC_TRY(tec_need(call, y->rows >= x->rows, err, "y holds %d rows, x has %d", y->rows, x->rows));
    TEC_TRY(tec_need(call, a->eps > 0.0F, err, "eps must be positive"));
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
    struct tec_norm_args a = call->args.norm;
    a.x = (const float *)(const void *)tec_in(program, call, 0)->at;
    a.y = (float *)(void *)tec_out(program, call, 0)->at;
    tec_capture_add(capture, TEC_KERNEL_layernorm, &a, call->barrier, call->label);
}

const struct tec_op tec_op_layer_norm = {.infer = infer, .record = record, .rowwise = true};
