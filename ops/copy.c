/* copy.c - y = x.
 *   x, y [rows, cols]. args: round. */
#include "ops/rowwise.h"

static void record(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture)
{
    tec_rowwise_record_map(program, call, capture, TEC_KERNEL_copy_rows);
}

static struct tec_cost cost(const struct tec_call *call, const struct tec_counts *counts)
{
    return tec_rowwise_cost_map(call, counts, 0);
}

const struct tec_op tec_op_copy = {.infer = tec_rowwise_infer_map,
                                   .record = record,
                                   .cost = cost,
                                   .rounds = tec_rowwise_rounds_map,
                                   .rowwise = true};
