/* head_norm.c - each head of a row becomes x / sqrt(mean(x^2) + eps) * (offset + weight).
 *   x [rows, ..]: heads of head_dim columns from column `at` on, in place; weight [head_dim] or
 * NULL. args: weight, at, heads, head_dim, offset, eps, round. */
#include "ops/call.h"

static enum tec_status infer(const struct tec_program *program, struct tec_call *call,
                             struct tec_error *err)
{
    const struct tec_tensor *x = tec_out(program, call, 0);
    struct tec_head_norm_args *a = &call->args.head_norm;
    TEC_TRY(TEC_NEED(x != NULL, err, "needs x"));
    TEC_TRY(TEC_NEED(a->at >= 0 && a->heads > 0 && a->head_dim > 0, err, "%d heads of %d", a->heads,
                     a->head_dim));
    TEC_TRY(TEC_NEED(a->at + a->heads * a->head_dim <= x->cols, err,
                     "%d heads of %d from column %d on leave a row of %d", a->heads, a->head_dim,
                     a->at, x->cols));
    TEC_TRY(TEC_NEED(a->eps > 0.0F, err, "eps must be positive"));
    a->rows = x->live;
    a->max_rows = x->rows;
    a->ld = x->ld;
    return TEC_OK;
}

static void record(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture)
{
    struct tec_head_norm_args a = call->args.head_norm;
    a.x = (float *)(void *)tec_out(program, call, 0)->at;
    tec_capture_add(capture, TEC_KERNEL_head_norm, &a, call->barrier, call->label);
}

/* An element: square and sum 2, scale 1, weight and offset one each where they are there. A head: a
 * division by its width, + eps, root, reciprocal. */
static struct tec_cost cost(const struct tec_call *call, const struct tec_counts *counts)
{
    const struct tec_head_norm_args *a = &call->args.head_norm;
    int64_t heads = tec_counts_rows(counts, a->rows, a->max_rows) * a->heads;
    int64_t n = heads * a->head_dim;
    bool offset = a->offset > 0.0F || a->offset < 0.0F;
    return (struct tec_cost){
        .other = n * (3 + !!a->weight + offset) + heads * 4,
        .weights = a->weight ? (int64_t)a->head_dim * 4 : 0,
        .read = n * 4,
        .written = n * 4,
    };
}

const struct tec_op tec_op_head_norm = {
    .infer = infer, .record = record, .cost = cost, .rowwise = true};
