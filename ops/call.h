/* call.h - what ops and passes read of a call: its tensors, and checks of their shapes. */
#ifndef TEC_OPS_CALL_H
#define TEC_OPS_CALL_H

#include "ops/program.h"

/* Input or output i of a call; NULL where it has none. */
const struct tec_tensor *tec_in(const struct tec_program *program, const struct tec_call *call,
                                int i);
const struct tec_tensor *tec_out(const struct tec_program *program, const struct tec_call *call,
                                 int i);

/* All that a planned tensor ever holds are bf16 values. Known when the program is complete. */
bool tec_tensor_rounded(const struct tec_tensor *t);

/* TEC_OK if it holds, otherwise TEC_SHAPE with the message in *err; the program puts its name, the
 * call's and the op's before it. The status is written out, so that whoever reads one file alone,
 * a static analyzer too, sees that nothing goes on after a failure. */
#define TEC_NEED(holds, err, ...) \
    ((holds) ? TEC_OK : (tec_fail(err, TEC_SHAPE, __VA_ARGS__), TEC_SHAPE))

#endif
