/* guide.c - v -= gain * weight[r] * (previous - (x - time * v)).
 *   x, previous, v [rows, cols]. args: weight [rows], time, gain. */
#include "ops/call.h"

static bool same(const struct tec_tensor *a, const struct tec_tensor *b)
{
    return a && b && a->rows == b->rows && a->cols == b->cols;
}

static enum tec_status infer(const struct tec_program *program, struct tec_call *call,
                             struct tec_error *err)
{
    const struct tec_tensor *x = tec_in(program, call, 0), *previous = tec_in(program, call, 1);
    const struct tec_tensor *v = tec_out(program, call, 0);
    struct tec_guide_args *a = &call->args.guide;
    TEC_TRY(TEC_NEED(same(x, v) && same(previous, v), err,
                     "x, previous and v must have the same shape"));
    TEC_TRY(TEC_NEED(a->weight != NULL, err, "needs a weight for each row"));
    a->rows = v->live;
    a->max_rows = v->rows;
    a->cols = v->cols;
    a->ldv = v->ld;
    a->ldx = x->ld;
    a->ldp = previous->ld;
    return TEC_OK;
}

static void record(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture)
{
    struct tec_guide_args a = call->args.guide;
    a.x = (const float *)(const void *)tec_in(program, call, 0)->at;
    a.previous = (const float *)(const void *)tec_in(program, call, 1)->at;
    a.v = (float *)(void *)tec_out(program, call, 0)->at;
    tec_capture_add(capture, TEC_KERNEL_guide, &a, call->barrier, call->label);
}

/* R rows of c: three differences and two products an element, a product a row; rows of weight 0
 * count like others. */
static struct tec_cost cost(const struct tec_call *call, const struct tec_counts *counts)
{
    const struct tec_guide_args *a = &call->args.guide;
    int64_t rows = tec_counts_rows(counts, a->rows, a->max_rows), n = rows * a->cols;
    return (struct tec_cost){.other = n * 5 + rows, .read = n * 12 + rows * 4, .written = n * 4};
}

const struct tec_op tec_op_guide = {
    .infer = infer, .record = record, .cost = cost, .rowwise = true};
