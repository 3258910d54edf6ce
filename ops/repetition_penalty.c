/* repetition_penalty.c - tokens that were there before become less likely.
 *   x [rows, vocabulary], in place. args: seen, token, words, penalty. */
#include "ops/call.h"

static enum tec_status infer(const struct tec_program *program, struct tec_call *call,
                             struct tec_error *err)
{
    const struct tec_tensor *x = tec_out(program, call, 0);
    struct tec_repetition_penalty_args *a = &call->args.repetition_penalty;
    TEC_TRY(TEC_NEED(x && a->used && a->token, err, "needs x, seen and token"));
    TEC_TRY(TEC_NEED(a->words >= (x->cols + 31) / 32, err, "%d words do not hold %d tokens",
                     a->words, x->cols));
    TEC_TRY(TEC_NEED(a->penalty > 0.0F, err, "penalty must be above 0"));
    a->rows = x->live;
    a->max_rows = x->rows;
    a->ld = x->ld;
    a->cols = x->cols;
    return TEC_OK;
}

static void record(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture)
{
    struct tec_repetition_penalty_args a = call->args.repetition_penalty;
    a.x = (float *)(void *)tec_out(program, call, 0)->at;
    tec_capture_add(capture, TEC_KERNEL_repetition_penalty, &a, call->barrier, call->label);
}

/* R rows: of each the set is read, one word of it written, and its newest token read. How many
 * tokens it holds is not known here: their logits are not counted. */
static struct tec_cost cost(const struct tec_call *call, const struct tec_counts *counts)
{
    const struct tec_repetition_penalty_args *a = &call->args.repetition_penalty;
    int64_t rows = tec_counts_rows(counts, a->rows, a->max_rows);
    return (struct tec_cost){.read = rows * (a->words + 1) * 4, .written = rows * 4};
}

const struct tec_op tec_op_repetition_penalty = {.infer = infer, .record = record, .cost = cost};
