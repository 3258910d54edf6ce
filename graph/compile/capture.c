/* capture.c - the pass that records every part. */
#include "graph/compile/plan.h"

enum tec_status tec_pass_capture(struct tec_plan *plan, struct tec_error *err)
{
    for (int i = 0; i < plan->n_parts; i++) {
        struct tec_plan_part *part = &plan->parts[i];
        TEC_TRY(tec_capture_begin(&part->capture, plan->device, part->stream, &plan->arena, err));
        tec_program_record(&part->program, part->capture);
        TEC_TRY(tec_capture_end(part->capture, err));
        plan->bytes.captures += (int64_t)tec_capture_bytes(part->capture);
    }
    return TEC_OK;
}
