/* silu_mul.c - y = silu(gate) * up, both columns of x.
 *   x [rows, gate | up], y [rows, cols]. args: gate_at, up_at, round. */
#include "ops/rowwise.h"

static void record(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture)
{
    tec_rowwise_record_gated(program, call, capture, TEC_KERNEL_silu_mul);
}

/* silu takes 3 (silu.c), the product with the other half 1. */
static struct tec_cost cost(const struct tec_call *call, const struct tec_counts *counts)
{
    return tec_rowwise_cost_gated(call, counts, 4);
}

const struct tec_op tec_op_silu_mul = {.infer = tec_rowwise_infer_gated,
                                       .record = record,
                                       .cost = cost,
                                       .rounds = tec_rowwise_rounds_gated,
                                       .rowwise = true};
