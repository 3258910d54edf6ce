/* op.c - the table of all ops, made from ops.def. */
#include "ops/op.h"

const struct tec_op_entry tec_ops[TEC_OP_COUNT] = {
#define OP(name, inputs, outputs, text) \
    [TEC_OP_##name] = {#name, inputs, outputs, text, &tec_op_##name},
#include "ops/ops.def"
#undef OP
};
