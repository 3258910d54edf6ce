/* euler.c - x += dt * v.
 *   v, x [rows, cols]. args: dt; fixed, a count of first rows that stay, or NULL. */
#include "ops/call.h"

static enum tec_status infer(const struct tec_program *program, struct tec_call *call,
                             struct tec_error *err)
{
    const struct tec_tensor *v = tec_in(program, call, 0), *x = tec_out(program, call, 0);
    struct tec_euler_args *a = &call->args.euler;
    TEC_TRY(TEC_NEED(v && x && v->cols == x->cols && v->rows == x->rows, err,
                     "v and x must have the same shape"));
    a->rows = x->live;
    a->max_rows = x->rows;
    a->cols = x->cols;
    a->ldx = x->ld;
    a->ldv = v->ld;
    return TEC_OK;
}

static void record(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture)
{
    struct tec_euler_args a = call->args.euler;
    a.v = (const float *)(const void *)tec_in(program, call, 0)->at;
    a.x = (float *)(void *)tec_out(program, call, 0)->at;
    tec_capture_add(capture, TEC_KERNEL_euler, &a, call->barrier, call->label);
}

/* R rows of c: a multiplication and an addition an element; rows that stay count like others. */
static struct tec_cost cost(const struct tec_call *call, const struct tec_counts *counts)
{
    const struct tec_euler_args *a = &call->args.euler;
    int64_t n = tec_counts_rows(counts, a->rows, a->max_rows) * a->cols;
    return (struct tec_cost){.other = n * 2, .read = n * 8, .written = n * 4};
}

const struct tec_op tec_op_euler = {
    .infer = infer, .record = record, .cost = cost, .rowwise = true};
