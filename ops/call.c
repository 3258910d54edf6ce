/* call.c - what ops and passes read of a call: its tensors. */
#include "ops/call.h"

const struct tec_tensor *tec_in(const struct tec_program *program, const struct tec_call *call,
                                int i)
{
    return call->in[i] < 0 ? NULL : &program->tensors[call->in[i]];
}

const struct tec_tensor *tec_out(const struct tec_program *program, const struct tec_call *call,
                                 int i)
{
    return call->out[i] < 0 ? NULL : &program->tensors[call->out[i]];
}

bool tec_tensor_rounded(const struct tec_tensor *t)
{
    return t->rounded && !t->plain && !t->fixed;
}
