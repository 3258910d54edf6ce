/* layer_norm.c - y = (x - mean) / sqrt(var + eps) * (offset + weight) + bias.
 *   x, y [rows, cols]; weight, bias [cols] or NULL. args: weight, bias, offset, eps, round. */
#include "ops/rowwise.h"

static void record(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture)
{
    tec_rowwise_record_norm(program, call, capture, TEC_KERNEL_layernorm);
}

/* An element: the mean's sum 1; difference, square and sum 3; difference and scale 2; and what
 * tec_rowwise_cost_norm adds. A row: two divisions by the width, + eps, root, reciprocal. */
static struct tec_cost cost(const struct tec_call *call, const struct tec_counts *counts)
{
    return tec_rowwise_cost_norm(call, counts, 6, 5);
}

const struct tec_op tec_op_layer_norm = {.infer = tec_rowwise_infer_norm,
                                         .record = record,
                                         .cost = cost,
                                         .rounds = tec_rowwise_rounds_norm,
                                         .rowwise = true};
