/* chain.c - the pass that finds results which only the next step reads. A device may do such steps
 * as one and never write what lies between; what the first of them reads must then live until the
 * last has ended. */
#include "graph/compile/plan.h"
#include "ops/call.h"

/* The one planned tensor that a call writes is made there and used last by the step behind it. */
static bool passes(const struct tec_program *program, int at)
{
    const struct tec_step *step = &program->steps[at];
    if (step->kind != TEC_STEP_CALL || at + 1 == program->n_steps ||
        step[1].kind != TEC_STEP_CALL || step[1].cut || step[1].joins ||
        step[1].branch != step->branch)
        return false;
    const struct tec_tensor *made = tec_out(program, &step->call, 0);
    for (int i = 1; i < TEC_OP_OUTPUTS; i++)
        if (tec_out(program, &step->call, i))
            return false;
    return made && !made->fixed && made->first == at && made->last == at + 1;
}

/* From the last step to the first: `end` is where the chain that a step belongs to ends. */
static void extend(struct tec_program *program)
{
    int end = program->n_steps;
    for (int s = program->n_steps - 1; s >= 0; s--) {
        const struct tec_call *call = &program->steps[s].call;
        if (program->steps[s].kind != TEC_STEP_CALL || !call->passes) {
            end = s;
            continue;
        }
        for (int i = 0; i < TEC_OP_INPUTS; i++)
            if (call->in[i] >= 0 && program->tensors[call->in[i]].last < end)
                program->tensors[call->in[i]].last = end;
    }
}

enum tec_status tec_pass_chain(struct tec_plan *plan, struct tec_error *err)
{
    (void)err;
    for (int i = 0; i < plan->n_parts && !plan->spec.interpret; i++) {
        struct tec_program *program = &plan->parts[i].program;
        for (int s = 0; s < program->n_steps; s++)
            program->steps[s].call.passes = passes(program, s);
        extend(program);
    }
    return TEC_OK;
}
