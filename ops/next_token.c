/* next_token.c - greedy choice and the bookkeeping of a decode step.
 *   logits [rows, vocabulary]; state: the request arrays, one block. args: all arrays of the
 * kernel. */
#include "ops/call.h"

static enum tec_status infer(const struct tec_program *program, struct tec_call *call,
                             struct tec_error *err)
{
    const struct tec_tensor *x = tec_in(program, call, 0);
    struct tec_next_token_args *a = &call->args.next_token;
    TEC_TRY(TEC_NEED(x && tec_out(program, call, 0), err, "needs logits and state"));
    TEC_TRY(TEC_NEED(a->token && a->tokens && a->stop && a->best, err, "lacks an array"));
    a->rows = x->live;
    a->max_rows = x->rows;
    a->ld = x->ld;
    a->cols = x->cols;
    return TEC_OK;
}

static void record(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture)
{
    struct tec_next_token_args a = call->args.next_token;
    a.logits = (const float *)(const void *)tec_in(program, call, 0)->at;
    tec_capture_add(capture, TEC_KERNEL_next_token, &a, call->barrier, call->label);
}

/* R rows of c logits: a comparison each. Of the request 8 integers are read (its position, visible
 * keys, tail, prefix, tokens left, done, end token, tokens made), and 8 written (token, position,
 * slot, visible keys, left, done, made, the list's new entry). */
static struct tec_cost cost(const struct tec_call *call, const struct tec_counts *counts)
{
    const struct tec_next_token_args *a = &call->args.next_token;
    int64_t rows = tec_counts_rows(counts, a->rows, a->max_rows), n = rows * a->cols;
    return (struct tec_cost){.other = n, .read = n * 4 + rows * 8 * 4, .written = rows * 8 * 4};
}

const struct tec_op tec_op_next_token = {.infer = infer, .record = record, .cost = cost};
