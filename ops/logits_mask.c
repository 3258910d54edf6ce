/* logits_mask.c - tokens that may not follow a row's place in a trie are out.
 *   x [rows, vocabulary], in place. args: place, trie. */
#include "ops/call.h"

static enum tec_status infer(const struct tec_program *program, struct tec_call *call,
                             struct tec_error *err)
{
    const struct tec_tensor *x = tec_out(program, call, 0);
    struct tec_logits_mask_args *a = &call->args.logits_mask;
    const struct tec_trie *p = &a->trie;
    TEC_TRY(TEC_NEED(x && a->place, err, "needs x and place"));
    TEC_TRY(TEC_NEED(p->n >= 0 && p->first && p->id && p->next, err, "lacks its trie"));
    a->rows = x->live;
    a->max_rows = x->rows;
    a->ld = x->ld;
    a->cols = x->cols;
    return TEC_OK;
}

static void record(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture)
{
    struct tec_logits_mask_args a = call->args.logits_mask;
    a.x = (float *)(void *)tec_out(program, call, 0)->at;
    tec_capture_add(capture, TEC_KERNEL_logits_mask, &a, call->barrier, call->label);
}

/* R rows of c: each number is compared and written over; of a row its place is read. The few
 * entries of a place are not counted. */
static struct tec_cost cost(const struct tec_call *call, const struct tec_counts *counts)
{
    const struct tec_logits_mask_args *a = &call->args.logits_mask;
    int64_t rows = tec_counts_rows(counts, a->rows, a->max_rows), n = rows * a->cols;
    return (struct tec_cost){.other = n, .read = rows * 4, .written = n * 4};
}

const struct tec_op tec_op_logits_mask = {.infer = infer, .record = record, .cost = cost};
