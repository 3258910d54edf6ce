/* rope_store.c - rotate q and k by position, store k and v in their slots.
 *   qkv [rows, q | k | v]; q [rows, heads * head_dim]; k, v: one layer of a slot space.
 *   args: slot, pos, cos_sin, q_at, k_at, v_at, heads, kv_heads, head_dim. */
#include "ops/program.h"

static enum tec_status infer(const struct tec_program *program, struct tec_call *call,
                             struct tec_error *err)
{
    const struct tec_tensor *x = tec_in(program, call, 0), *q = tec_out(program, call, 0);
    struct tec_rope_args *a = &call->args.rope;
    int kv = a->kv_heads * a->head_dim;
    TEC_TRY(TEC_NEED(call, x && tec_out(program, call, 1) && tec_out(program, call, 2), err,
                     "needs qkv, k and v"));
    TEC_TRY(TEC_NEED(call, (q != NULL) == (a->q_at >= 0), err, "q and q_at must come together"));
    TEC_TRY(TEC_NEED(call, !q || q->cols == a->heads * a->head_dim, err, "q must have %d columns",
                     a->heads * a->head_dim));
    TEC_TRY(TEC_NEED(call, a->k_at >= 0 && a->k_at + kv <= x->ld && a->v_at + kv <= x->ld, err,
                     "k and v leave a row of %d", x->ld));
    TEC_TRY(TEC_NEED(call, !a->cos_sin || a->head_dim % 2 == 0, err,
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
    a.k = tec_out(program, call, 1)->at;
    a.v = tec_out(program, call, 2)->at;
    tec_capture_add(capture, call->bf16 ? TEC_KERNEL_rope_bf16 : TEC_KERNEL_rope_f32, &a,
                    call->barrier, call->label);
}

const struct tec_op tec_op_rope_store = {.infer = infer, .record = record, .rowwise = true};
