/* log_prob.c - how likely chosen tokens are to follow a row.
 *   logits [rows, vocabulary]; y: [max_entries] anywhere. args: first, id, max_entries, round. */
#include "ops/call.h"

static enum tec_status infer(const struct tec_program *program, struct tec_call *call,
                             struct tec_error *err)
{
    const struct tec_tensor *x = tec_in(program, call, 0), *y = tec_out(program, call, 0);
    struct tec_log_prob_args *a = &call->args.log_prob;
    TEC_TRY(TEC_NEED(x && y, err, "needs logits and y"));
    TEC_TRY(TEC_NEED(a->first && a->id, err, "lacks its entries"));
    TEC_TRY(TEC_NEED(a->max_entries > 0 && y->size / sizeof(float) >= (size_t)a->max_entries, err,
                     "y has no room for %d entries", a->max_entries));
    a->rows = x->live;
    a->max_rows = x->rows;
    a->ld = x->ld;
    a->cols = x->cols;
    return TEC_OK;
}

static void record(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture)
{
    struct tec_log_prob_args a = call->args.log_prob;
    a.x = (const float *)(const void *)tec_in(program, call, 0)->at;
    a.y = (float *)(void *)tec_out(program, call, 0)->at;
    tec_capture_add(capture, TEC_KERNEL_log_prob, &a, call->barrier, call->label);
}

/* R rows of c: a comparison, a subtraction, an exponential and an addition each; read twice. The
 * few entries of a row are not counted. */
static struct tec_cost cost(const struct tec_call *call, const struct tec_counts *counts)
{
    const struct tec_log_prob_args *a = &call->args.log_prob;
    int64_t rows = tec_counts_rows(counts, a->rows, a->max_rows), n = rows * a->cols;
    return (struct tec_cost){.other = n * 4, .read = n * 4 * 2};
}

const struct tec_op tec_op_log_prob = {.infer = infer, .record = record, .cost = cost};
