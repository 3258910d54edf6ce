/* place.c - the pass that puts parts on streams: those that run beside others on a second one. A
 * device runs one part of a stream at a time, hard work first, so every part of it may use the same
 * activations. */
#include "graph/compile/plan.h"

enum tec_status tec_pass_place(struct tec_plan *plan, struct tec_error *err)
{
    (void)err;
    plan->n_streams = 1;
    for (int i = 0; i < plan->n_parts; i++) {
        plan->parts[i].stream = plan->parts[i].beside ? TEC_STREAM_BESIDE : TEC_STREAM_MAIN;
        if (plan->parts[i].beside)
            plan->n_streams = 2;
    }
    return TEC_OK;
}
