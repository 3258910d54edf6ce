/* rowwise.c - infer, record and cost of ops that make each output row from the same input row. */
#include "ops/rowwise.h"

#include <stddef.h>

static enum tec_status check(const struct tec_call *call, const struct tec_tensor *x,
                             const struct tec_tensor *y, struct tec_error *err)
{
    TEC_TRY(TEC_NEED(x && y, err, "needs x and y"));
    return TEC_NEED(x->cols == y->cols && y->rows >= call->out_row + x->rows, err,
                    "x is [%d, %d], y from row %d on is [%d, %d]", x->rows, x->cols, call->out_row,
                    y->rows - call->out_row, y->cols);
}

enum tec_status tec_rowwise_infer_map(const struct tec_program *program, struct tec_call *call,
                                      struct tec_error *err)
{
    const struct tec_tensor *x = tec_in(program, call, 0), *y = tec_out(program, call, 0);
    struct tec_map_args *a = &call->args.map;
    TEC_TRY(check(call, x, y, err));
    a->rows = x->live;
    a->max_rows = x->rows;
    a->cols = x->cols;
    a->ldx = x->ld;
    a->ldy = y->ld;
    return TEC_OK;
}

enum tec_status tec_rowwise_infer_norm(const struct tec_program *program, struct tec_call *call,
                                       struct tec_error *err)
{
    const struct tec_tensor *x = tec_in(program, call, 0), *y = tec_out(program, call, 0);
    struct tec_norm_args *a = &call->args.norm;
    TEC_TRY(check(call, x, y, err));
    TEC_TRY(TEC_NEED(!call->out_row, err, "a norm's rows begin at row 0"));
    TEC_TRY(TEC_NEED(a->eps > 0.0F, err, "eps must be positive"));
    a->rows = x->live;
    a->max_rows = x->rows;
    a->cols = x->cols;
    a->ldx = x->ld;
    a->ldy = y->ld;
    return TEC_OK;
}

enum tec_status tec_rowwise_infer_gated(const struct tec_program *program, struct tec_call *call,
                                        struct tec_error *err)
{
    const struct tec_tensor *x = tec_in(program, call, 0), *y = tec_out(program, call, 0);
    struct tec_gated_args *a = &call->args.gated;
    TEC_TRY(TEC_NEED(x && y, err, "needs x and y"));
    TEC_TRY(TEC_NEED(a->gate_at + y->cols <= x->ld && a->up_at + y->cols <= x->ld, err,
                     "gate and up leave a row of %d", x->ld));
    a->rows = x->live;
    a->max_rows = x->rows;
    a->cols = y->cols;
    a->ldx = x->ld;
    a->ldy = y->ld;
    return TEC_OK;
}

void tec_rowwise_record_map(const struct tec_program *program, const struct tec_call *call,
                            struct tec_capture *capture, enum tec_kernel_id kernel)
{
    struct tec_map_args a = call->args.map;
    a.x = (const float *)(const void *)tec_in(program, call, 0)->at;
    a.y = (float *)(void *)tec_out(program, call, 0)->at + (ptrdiff_t)call->out_row * a.ldy;
    tec_capture_add(capture, kernel, &a, call->barrier, call->label);
}

void tec_rowwise_record_norm(const struct tec_program *program, const struct tec_call *call,
                             struct tec_capture *capture, enum tec_kernel_id kernel)
{
    struct tec_norm_args a = call->args.norm;
    a.x = (const float *)(const void *)tec_in(program, call, 0)->at;
    a.y = (float *)(void *)tec_out(program, call, 0)->at;
    tec_capture_add(capture, kernel, &a, call->barrier, call->label);
}

void tec_rowwise_record_gated(const struct tec_program *program, const struct tec_call *call,
                              struct tec_capture *capture, enum tec_kernel_id kernel)
{
    struct tec_gated_args a = call->args.gated;
    a.x = (const float *)(const void *)tec_in(program, call, 0)->at;
    a.y = (float *)(void *)tec_out(program, call, 0)->at;
    tec_capture_add(capture, kernel, &a, call->barrier, call->label);
}

bool tec_rowwise_rounds_map(const struct tec_call *call)
{
    return call->args.map.round;
}

bool tec_rowwise_rounds_norm(const struct tec_call *call)
{
    return call->args.norm.round;
}

bool tec_rowwise_rounds_gated(const struct tec_call *call)
{
    return call->args.gated.round;
}

struct tec_cost tec_rowwise_cost_map(const struct tec_call *call, const struct tec_counts *counts,
                                     int flops)
{
    const struct tec_map_args *a = &call->args.map;
    int64_t n = tec_counts_rows(counts, a->rows, a->max_rows) * a->cols;
    return (struct tec_cost){.other = n * flops, .read = n * 4, .written = n * 4};
}

struct tec_cost tec_rowwise_cost_gated(const struct tec_call *call, const struct tec_counts *counts,
                                       int flops)
{
    const struct tec_gated_args *a = &call->args.gated;
    int64_t n = tec_counts_rows(counts, a->rows, a->max_rows) * a->cols;
    return (struct tec_cost){.other = n * flops, .read = n * 8, .written = n * 4};
}

struct tec_cost tec_rowwise_cost_norm(const struct tec_call *call, const struct tec_counts *counts,
                                      int flops, int row)
{
    const struct tec_norm_args *a = &call->args.norm;
    int64_t rows = tec_counts_rows(counts, a->rows, a->max_rows), n = rows * a->cols;
    int vectors = (!!a->weight + !!a->bias) * (a->fixed ? 2 : 1);
    bool offset = a->offset > 0.0F || a->offset < 0.0F;
    return (struct tec_cost){
        .other = n * (flops + !!a->weight + offset + !!a->bias) + rows * row,
        .weights = (int64_t)a->cols * 4 * vectors,
        .read = n * 4,
        .written = n * 4,
    };
}
