/* place.c - the pass that puts parts on streams. A CPU has one: its team of lanes runs one part at
 * a time, hard work first, so every part may use the same activations. */
#include "graph/compile/plan.h"

enum tec_status tec_pass_place(struct tec_plan *plan, struct tec_error *err)
{
    (void)err;
    plan->n_streams = 1;
    for (int i = 0; i < plan->n_parts; i++)
        plan->parts[i].stream = 0;
    return TEC_OK;
}
