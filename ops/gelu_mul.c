/* gelu_mul.c - y = gelu_tanh(gate) * up, both columns of x.
 *   x [rows, gate | up], y [rows, cols]. args: gate_at, up_at, round. */
#include "ops/program.h"

static enum tec_status infer(const struct tec_program *program, struct tec_call *call,
                             struct tec_error *err)
{
    const struct tec_tensor *x = tec_in(program, call, 0), *y = tec_out(program, call, 0);
    struct tec_gated_args *a = &call->args.gated;
    TEC_TRY(TEC_NEED(call, x && y, err, "needs x and y"));
    TEC_TRY(TEC_NEED(call, a->gate_at + y->cols <= x->ld && a->up_at + y->cols <= x->ld, err,
                     "gate and up leave a row of %d", x->ld));
    a->rows = x->live;
    a->max_rows = x->rows;
    a->cols = y->cols;
    a->ldx = x->ld;
    a->ldy = y->ld;
    return TEC_OK;
}

static void record(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture)
{
    struct tec_gated_args a = call->args.gated;
    a.x = (const float *)(const void *)tec_in(program, call, 0)->at;
    a.y = (float *)(void *)tec_out(program, call, 0)->at;
    tec_capture_add(capture, TEC_KERNEL_gelu_mul, &a, call->barrier, call->label);
}

/* R rows of c: gelu takes 9 (gelu.c), the product with the other half 1; two halves are read. */
static struct tec_cost cost(const struct tec_call *call, const struct tec_counts *counts)
{
    const struct tec_gated_args *a = &call->args.gated;
    int64_t n = tec_counts_rows(counts, a->rows, a->max_rows) * a->cols;
    return (struct tec_cost){.other = n * 10, .read = n * 8, .written = n * 4};
}

const struct tec_op tec_op_gelu_mul = {
    .infer = infer, .record = record, .cost = cost, .rowwise = true};
