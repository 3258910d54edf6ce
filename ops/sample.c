/* sample.c - the logits of a token drawn: its own becomes the largest.
 *   x [rows, vocabulary], in place. args: temperature, top_k, top_p, seed, pos, round. */
#include "ops/call.h"

static enum tec_status infer(const struct tec_program *program, struct tec_call *call,
                             struct tec_error *err)
{
    const struct tec_tensor *x = tec_out(program, call, 0);
    struct tec_sample_args *a = &call->args.sample;
    TEC_TRY(TEC_NEED(x != NULL, err, "needs x"));
    TEC_TRY(TEC_NEED(a->temperature && a->top_k && a->top_p && a->seed && a->pos, err,
                     "lacks an array"));
    a->rows = x->live;
    a->max_rows = x->rows;
    a->ld = x->ld;
    a->cols = x->cols;
    return TEC_OK;
}

static void record(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture)
{
    struct tec_sample_args a = call->args.sample;
    a.x = (float *)(void *)tec_out(program, call, 0)->at;
    tec_capture_add(capture, TEC_KERNEL_sample, &a, call->barrier, call->label);
}

/* R rows of c: each drawn, with top_k and top_p. A division; comparisons for the largest and for
 * nine passes of two digits sums each; exponentials, noise (two logarithms, 10 rounds of 6) and its
 * addition. Read and written three times and read by nine passes more; five numbers a row. */
static struct tec_cost cost(const struct tec_call *call, const struct tec_counts *counts)
{
    const struct tec_sample_args *a = &call->args.sample;
    int64_t rows = tec_counts_rows(counts, a->rows, a->max_rows), n = rows * a->cols;
    return (struct tec_cost){
        .other = n * 90, .read = n * 4 * 12 + rows * 6 * 4, .written = n * 4 * 2};
}

const struct tec_op tec_op_sample = {.infer = infer, .record = record, .cost = cost};
