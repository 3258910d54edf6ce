/* rms_norm.c - y = x / sqrt(mean(x^2) + eps) * (offset + weight) + bias.
 *   x, y [rows, cols]; weight, bias [cols] or NULL. args: weight, bias, offset, eps, round. */
#include "ops/rowwise.h"

static void record(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture)
{
    tec_rowwise_record_norm(program, call, capture, TEC_KERNEL_rmsnorm);
}

/* An element: square and sum 2; scale 1; and what tec_rowwise_cost_norm adds. A row: a division by
 * the width, + eps, root, reciprocal. */
static struct tec_cost cost(const struct tec_call *call, const struct tec_counts *counts)
{
    return tec_rowwise_cost_norm(call, counts, 3, 4);
}

const struct tec_op tec_op_rms_norm = {.infer = tec_rowwise_infer_norm,
                                       .record = record,
                                       .cost = cost,
                                       .rounds = tec_rowwise_rounds_norm,
                                       .rowwise = true};
