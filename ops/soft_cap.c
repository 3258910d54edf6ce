/* soft_cap.c - y = cap * tanh(x / cap).
 *   x, y [rows, cols]. args: cap. */
#include "ops/call.h"

static enum tec_status infer(const struct tec_program *program, struct tec_call *call,
                             struct tec_error *err)
{
    const struct tec_tensor *x = tec_in(program, call, 0), *y = tec_out(program, call, 0);
    struct tec_soft_cap_args *a = &call->args.soft_cap;
    TEC_TRY(TEC_NEED(x && y, err, "needs x and y"));
    TEC_TRY(TEC_NEED(x->cols == y->cols && y->rows >= x->rows, err, "x is [%d, %d], y is [%d, %d]",
                     x->rows, x->cols, y->rows, y->cols));
    TEC_TRY(TEC_NEED(a->cap > 0.0F, err, "cap must be positive"));
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
    struct tec_soft_cap_args a = call->args.soft_cap;
    a.x = (const float *)(const void *)tec_in(program, call, 0)->at;
    a.y = (float *)(void *)tec_out(program, call, 0)->at;
    tec_capture_add(capture, TEC_KERNEL_soft_cap, &a, call->barrier, call->label);
}

/* A division, a tanh, a product an element. */
static struct tec_cost cost(const struct tec_call *call, const struct tec_counts *counts)
{
    const struct tec_soft_cap_args *a = &call->args.soft_cap;
    int64_t n = tec_counts_rows(counts, a->rows, a->max_rows) * a->cols;
    return (struct tec_cost){.other = n * 3, .read = n * 4, .written = n * 4};
}

const struct tec_op tec_op_soft_cap = {
    .infer = infer, .record = record, .cost = cost, .rowwise = true};
