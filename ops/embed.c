/* embed.c - y[first + r] = scale * W[ids[r]].
 *   W packed n x k; ids [rows] int; y [.., k]. args: w, ids, rows, first, n, k, max_rows, scale. */
#include "ops/call.h"

static enum tec_status infer(const struct tec_program *program, struct tec_call *call,
                             struct tec_error *err)
{
    const struct tec_tensor *y = tec_out(program, call, 0);
    struct tec_embed_args *a = &call->args.embed;
    TEC_TRY(TEC_NEED(y && a->w && a->ids && a->rows && a->first, err, "lacks an argument"));
    TEC_TRY(TEC_NEED(y->cols == a->k, err, "y must have %d columns, has %d", a->k, y->cols));
    TEC_TRY(TEC_NEED(a->max_rows <= y->rows, err, "%d ids for %d rows", a->max_rows, y->rows));
    a->ldy = y->ld;
    return TEC_OK;
}

static void record(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture)
{
    struct tec_embed_args a = call->args.embed;
    a.y = (float *)(void *)tec_out(program, call, 0)->at;
    tec_capture_add(capture, call->bf16 ? TEC_KERNEL_embed_bf16 : TEC_KERNEL_embed_f32, &a,
                    call->barrier, call->label);
}

/* R rows of k: one multiplication an element; R rows of W, R ids, R k float32 written. */
static struct tec_cost cost(const struct tec_call *call, const struct tec_counts *counts)
{
    const struct tec_embed_args *a = &call->args.embed;
    int64_t rows = tec_counts_rows(counts, a->rows, a->max_rows);
    return (struct tec_cost){
        .other = rows * a->k,
        .weights = rows * a->k * (call->bf16 ? 2 : 4),
        .read = rows * 4,
        .written = rows * a->k * 4,
    };
}

const struct tec_op tec_op_embed = {.infer = infer, .record = record, .cost = cost};
