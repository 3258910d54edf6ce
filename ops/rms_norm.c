/* rms_norm.c - y = x / sqrt(mean(x^2) + eps) * (offset + weight) + bias.
 *   x, y [rows, cols]; weight, bias [cols] or NULL. args: weight, bias, offset, eps, round. */
#include "ops/rowwise.h"

static void record(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture)
{
    tec_record_norm(program, call, capture, TEC_KERNEL_rmsnorm);
}

const struct tec_op tec_op_rms_norm = {.infer = tec_infer_norm, .record = record, .rowwise = true};
