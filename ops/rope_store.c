/* rope_store.c - rotate q and k by position, store k and v in their slots.
 *   qkv [rows, q | k | v]; q [rows, heads * head_dim]; k, v: one layer of a slot space, or neither
 *   where there are queries alone (kv_heads = 0). angles: where those of cos_sin are made by the
 *   same program, so that it comes behind.
 *   args: slot, pos, cos_sin, q_at, k_at, v_at, heads, kv_heads, head_dim. */
#include "ops/call.h"

static enum tec_status infer(const struct tec_program *program, struct tec_call *call,
                             struct tec_error *err)
{
    const struct tec_tensor *x = tec_in(program, call, 0), *q = tec_out(program, call, 0);
    struct tec_rope_args *a = &call->args.rope;
    int kv = a->kv_heads * a->head_dim;
    bool keys = tec_out(program, call, 1) && tec_out(program, call, 2);
    TEC_TRY(TEC_NEED(x && (keys || q), err, "needs qkv, and k and v or q"));
    TEC_TRY(TEC_NEED(keys == (kv > 0), err, "k, v and kv_heads must come together"));
    TEC_TRY(TEC_NEED((q != NULL) == (a->q_at >= 0), err, "q and q_at must come together"));
    TEC_TRY(TEC_NEED(!q || q->cols == a->heads * a->head_dim, err, "q must have %d columns",
                     a->heads * a->head_dim));
    TEC_TRY(TEC_NEED(a->k_at >= 0 && a->k_at + kv <= x->ld && a->v_at + kv <= x->ld, err,
                     "k and v leave a row of %d", x->ld));
    TEC_TRY(TEC_NEED(!a->cos_sin || a->head_dim % 2 == 0, err,
                     "head_dim must be even to rotate, is %d", a->head_dim));
    a->rows = x->live;
    a->max_rows = x->rows;
    a->ld = x->ld;
    a->ldq = q ? q->ld : 0;
    return TEC_OK;
}

static void record(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture)
{
    struct tec_rope_args a = call->args.rope;
    const struct tec_tensor *q = tec_out(program, call, 0);
    a.qkv = (const float *)(const void *)tec_in(program, call, 0)->at;
    a.q = q ? (float *)(void *)q->at : NULL;
    a.k = a.kv_heads ? tec_out(program, call, 1)->at : NULL;
    a.v = a.kv_heads ? tec_out(program, call, 2)->at : NULL;
    tec_capture_add(capture, call->bf16 ? TEC_KERNEL_rope_bf16 : TEC_KERNEL_rope_f32, &a,
                    call->barrier, call->label);
}

/* R rows, h query and g key heads of d. A pair takes 4 multiplications and 2 additions, so an
 * element 3; values are not rotated. Read: the row, its slot, and with a rotation its position and
 * d / 2 pairs of cos and sin. Written: q, and k and v in the form of the slot space. */
static struct tec_cost cost(const struct tec_call *call, const struct tec_counts *counts)
{
    const struct tec_rope_args *a = &call->args.rope;
    int64_t rows = tec_counts_rows(counts, a->rows, a->max_rows);
    int64_t q = a->q_at >= 0 ? (int64_t)a->heads * a->head_dim : 0;
    int64_t kv = (int64_t)a->kv_heads * a->head_dim;
    return (struct tec_cost){
        .other = a->cos_sin ? rows * (q + kv) * 3 : 0,
        .weights = a->cos_sin ? rows * a->head_dim * 4 : 0,
        .read = rows * (q + 2 * kv + 1 + !!a->cos_sin) * 4,
        .written = rows * q * 4,
        .kv_written = rows * 2 * kv * (call->bf16 ? 2 : 4),
    };
}

const struct tec_op tec_op_rope_store = {
    .infer = infer, .record = record, .cost = cost, .rowwise = true};
