/* attention_mass.c - how much weight the attention of each row gives to ranges of keys.
 *   q [rows, heads * head_dim]; k: one layer of a slot space; mass [rows, ranges].
 *   args: scratch, row_seq, visible, seqs, spans, ends, n_ranges, heads, kv_heads, head_dim, scale,
 *   window. */
#include "kernels/attention.h"
#include "ops/call.h"

static enum tec_status infer(const struct tec_program *program, struct tec_call *call,
                             struct tec_error *err)
{
    const struct tec_tensor *q = tec_in(program, call, 0), *mass = tec_out(program, call, 0);
    struct tec_mass_args *a = &call->args.mass;
    TEC_TRY(TEC_NEED(q && mass && tec_in(program, call, 1), err, "needs q, k and mass"));
    TEC_TRY(TEC_NEED(a->head_dim > 0 && q->cols == a->heads * a->head_dim, err,
                     "q must have %d columns", a->heads * a->head_dim));
    TEC_TRY(TEC_NEED(mass->rows >= q->rows, err, "mass has %d rows, q %d", mass->rows, q->rows));
    TEC_TRY(TEC_NEED(a->kv_heads > 0 && a->heads % a->kv_heads == 0, err,
                     "%d heads over %d kv heads", a->heads, a->kv_heads));
    TEC_TRY(TEC_NEED(mass->cols > 0 && mass->cols <= tec_mass_ranges(a->head_dim), err,
                     "%d ranges; 1 to %d are possible", mass->cols, tec_mass_ranges(a->head_dim)));
    TEC_TRY(TEC_NEED(a->scratch && a->row_seq && a->visible && a->seqs && a->spans, err,
                     "lacks a table"));
    TEC_TRY(TEC_NEED(a->ends && a->n_ranges, err, "lacks its ranges"));
    a->rows = mass->live ? mass->live : q->live; /* perhaps the first rows alone */
    a->max_rows = q->rows;
    a->max_ranges = mass->cols;
    a->ldq = q->ld;
    a->ldo = mass->ld;
    return TEC_OK;
}

static void record(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture)
{
    struct tec_mass_args a = call->args.mass;
    a.q = (const float *)(const void *)tec_in(program, call, 0)->at;
    a.k = tec_in(program, call, 1)->at;
    a.out = (float *)(void *)tec_out(program, call, 0)->at;
    tec_capture_add(capture,
                    call->bf16 ? TEC_KERNEL_attention_mass_bf16 : TEC_KERNEL_attention_mass_f32, &a,
                    call->barrier, call->label);
}

/* The first half of attention: R rows of h heads of d, which see V keys in all; S keys are read, g
 * heads of d each. Products: h d V multiply-adds. Besides, for each head and key: scale, maximum,
 * difference, exponential, and two sums, of all keys and of the range; for each head and range of a
 * row one division and one sum. Read: q, each row's sequence and count, the ends. */
static struct tec_cost cost(const struct tec_call *call, const struct tec_counts *counts)
{
    const struct tec_mass_args *a = &call->args.mass;
    struct tec_live live = tec_counts_live(counts, a->rows, a->max_rows);
    int64_t row = (int64_t)a->heads * a->head_dim;
    int64_t ranges = tec_counts_rows(counts, a->n_ranges, a->max_ranges);
    int64_t products = tec_cost_times(2 * row, live.visible);
    int64_t weighed = tec_cost_times((int64_t)6 * a->heads, live.visible);
    int64_t results = tec_cost_times(live.rows, ranges);
    return (struct tec_cost){
        .products = call->bf16 ? products : 0,
        .products_f32 = call->bf16 ? 0 : products,
        .other = tec_cost_plus(weighed, tec_cost_times(results, (int64_t)2 * a->heads)),
        .read = live.rows * (row + 2) * 4 + ranges * 4,
        .written = tec_cost_times(results, 4),
        .kv_read = live.keys * a->kv_heads * a->head_dim * (call->bf16 ? 2 : 4),
    };
}

const struct tec_op tec_op_attention_mass = {.infer = infer, .record = record, .cost = cost};
