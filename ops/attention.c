/* attention.c - out = softmax(scale q K^T) V over each row's visible keys.
 *   q, out [rows, heads * head_dim]; k, v: one layer of a slot space.
 *   args: scratch, row_seq, visible, seqs, spans, heads, kv_heads, head_dim, scale, round; bias
 * with pos and reach, or NULL. */
#include "ops/call.h"

static enum tec_status infer(const struct tec_program *program, struct tec_call *call,
                             struct tec_error *err)
{
    const struct tec_tensor *q = tec_in(program, call, 0), *out = tec_out(program, call, 0);
    struct tec_attention_args *a = &call->args.attention;
    int cols = a->heads * a->head_dim;
    TEC_TRY(TEC_NEED(q && out && tec_in(program, call, 1) && tec_in(program, call, 2), err,
                     "needs q, k, v and out"));
    TEC_TRY(TEC_NEED(q->cols == cols && out->cols == cols, err, "q and out must have %d columns",
                     cols));
    TEC_TRY(TEC_NEED(a->kv_heads > 0 && a->heads % a->kv_heads == 0, err,
                     "%d heads over %d kv heads", a->heads, a->kv_heads));
    TEC_TRY(TEC_NEED(a->scratch && a->row_seq && a->visible && a->seqs && a->spans, err,
                     "lacks a table"));
    TEC_TRY(TEC_NEED(!a->bias || (a->pos && a->reach >= 0 && a->reach < 1 << 24), err,
                     "a bias needs positions and a reach"));
    a->rows = q->live;
    a->max_rows = q->rows;
    a->ldq = q->ld;
    a->ldo = out->ld;
    return TEC_OK;
}

static void record(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture)
{
    struct tec_attention_args a = call->args.attention;
    a.q = (const float *)(const void *)tec_in(program, call, 0)->at;
    a.k = tec_in(program, call, 1)->at;
    a.v = tec_in(program, call, 2)->at;
    a.out = (float *)(void *)tec_out(program, call, 0)->at;
    tec_capture_add(capture, call->bf16 ? TEC_KERNEL_attention_bf16 : TEC_KERNEL_attention_f32, &a,
                    call->barrier, call->label);
}

/* R rows of h heads of d, which see V keys in all; S keys are read, g heads of d each.
 * Products: h d V multiply-adds for q K^T and as many for the sum over values. Besides, for each
 * head and key: scale, maximum, difference, exponential, sum, with a bias one more; for each result
 * one division.
 * Read: q, and each row's sequence and count, with a bias its position and the table. Keys and
 * values once a sequence: rows that share a prefix by different sequences count it each. */
static struct tec_cost cost(const struct tec_call *call, const struct tec_counts *counts)
{
    const struct tec_attention_args *a = &call->args.attention;
    struct tec_live live = tec_counts_live(counts, a->rows, a->max_rows);
    int64_t row = (int64_t)a->heads * a->head_dim;
    int64_t products = tec_cost_times(4 * row, live.visible);
    int64_t weighed = tec_cost_times((int64_t)(a->bias ? 6 : 5) * a->heads, live.visible);
    return (struct tec_cost){
        .products = call->bf16 ? products : 0,
        .products_f32 = call->bf16 ? 0 : products,
        .other = tec_cost_plus(weighed, live.rows * row),
        .weights = a->bias ? a->heads * (2 * (int64_t)a->reach + 1) * 4 : 0,
        .read = live.rows * (row + (a->bias ? 3 : 2)) * 4,
        .written = live.rows * row * 4,
        .kv_read = live.keys * 2 * a->kv_heads * a->head_dim * (call->bf16 ? 2 : 4),
    };
}

static bool rounds(const struct tec_call *call)
{
    return call->args.attention.round;
}

const struct tec_op tec_op_attention = {
    .infer = infer, .record = record, .cost = cost, .rounds = rounds};
