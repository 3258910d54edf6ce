/* read_kv.c - y = the key or value rows in given slots.
 *   kv: one layer of a slot space; y [rows, kv_heads * head_dim]. args: slot. */
#include "ops/call.h"

static enum tec_status infer(const struct tec_program *program, struct tec_call *call,
                             struct tec_error *err)
{
    const struct tec_tensor *y = tec_out(program, call, 0);
    struct tec_read_kv_args *a = &call->args.read_kv;
    TEC_TRY(TEC_NEED(y && tec_in(program, call, 0) && a->slot, err, "lacks an argument"));
    a->rows = y->live;
    a->max_rows = y->rows;
    a->cols = y->cols;
    a->ldy = y->ld;
    return TEC_OK;
}

static void record(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture)
{
    struct tec_read_kv_args a = call->args.read_kv;
    a.kv = tec_in(program, call, 0)->at;
    a.y = (float *)(void *)tec_out(program, call, 0)->at;
    tec_capture_add(capture, call->bf16 ? TEC_KERNEL_read_kv_bf16 : TEC_KERNEL_read_kv_f32, &a,
                    call->barrier, call->label);
}

/* R rows of c elements out of their slots, as float32. */
static struct tec_cost cost(const struct tec_call *call, const struct tec_counts *counts)
{
    const struct tec_read_kv_args *a = &call->args.read_kv;
    int64_t rows = tec_counts_rows(counts, a->rows, a->max_rows), n = rows * a->cols;
    return (struct tec_cost){
        .read = rows * 4, .written = n * 4, .kv_read = n * (call->bf16 ? 2 : 4)};
}

const struct tec_op tec_op_read_kv = {.infer = infer, .record = record, .cost = cost};
