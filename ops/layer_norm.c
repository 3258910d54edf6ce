/* layer_norm.c - y = (x - mean) / sqrt(var + eps) * (offset + weight) + bias.
 *   x, y [rows, cols]; weight, bias [cols] or NULL. args: weight, bias, offset, eps, round. */
#include "ops/rowwise.h"

static void record(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture)
{
    tec_record_norm(program, call, capture, TEC_KERNEL_layernorm);
}

const struct tec_op tec_op_layer_norm = {
    .infer = tec_infer_norm, .record = record, .rowwise = true};
