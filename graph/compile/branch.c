/* branch.c - the pass that says where a branch of a program ends: in front of the first later step
 * that reads what it writes or writes what it uses, in front of a cut, a mark or a loop.
 *
 * Up to there a device may run the branch concurrently to the steps of the program that are not of
 * it, so what the branch uses lives until there: nothing of theirs is laid over it. */
#include "graph/compile/plan.h"
#include "ops/call.h"

/* Planned tensors have no place yet, but each will have one of its own as long as it lives. */
static bool same_memory(const struct tec_tensor *a, const struct tec_tensor *b)
{
    bool overlap = a->fixed && b->fixed && a->at < b->at + b->size && b->at < a->at + a->size;
    return a == b || overlap;
}

static const struct tec_tensor *used(const struct tec_program *program, const struct tec_call *call,
                                     int i)
{
    return i < TEC_OP_INPUTS ? tec_in(program, call, i) : tec_out(program, call, i - TEC_OP_INPUTS);
}

/* One of the calls writes what the other one uses. */
static bool depend(const struct tec_program *program, const struct tec_call *a,
                   const struct tec_call *b)
{
    enum { ALL = TEC_OP_INPUTS + TEC_OP_OUTPUTS };
    for (int i = 0; i < ALL; i++)
        for (int k = 0; k < ALL; k++) {
            const struct tec_tensor *x = used(program, a, i), *y = used(program, b, k);
            bool write = i >= TEC_OP_INPUTS || k >= TEC_OP_INPUTS;
            if (x && y && write && same_memory(x, y))
                return true;
        }
    return false;
}

/* Whether step `at` has to wait for the branch, which is steps first .. behind - 1. */
static bool waits(const struct tec_program *program, int at, int first, int behind)
{
    const struct tec_step *step = &program->steps[at];
    if (step->kind != TEC_STEP_CALL || step->cut || step->branch)
        return true;
    for (int s = first; s < behind; s++)
        if (program->steps[s].kind == TEC_STEP_CALL &&
            depend(program, &program->steps[s].call, &step->call))
            return true;
    return false;
}

/* The branch's tensors live until `end`, the step that joins it, begins. */
static void extend(struct tec_program *program, int first, int behind, int end)
{
    for (int s = first; s < behind; s++) {
        const struct tec_call *call = &program->steps[s].call;
        for (int i = 0; program->steps[s].kind == TEC_STEP_CALL && i < TEC_OP_INPUTS; i++)
            if (call->in[i] >= 0 && program->tensors[call->in[i]].last < end - 1)
                program->tensors[call->in[i]].last = end - 1;
        for (int i = 0; program->steps[s].kind == TEC_STEP_CALL && i < TEC_OP_OUTPUTS; i++)
            if (call->out[i] >= 0 && program->tensors[call->out[i]].last < end - 1)
                program->tensors[call->out[i]].last = end - 1;
    }
}

enum tec_status tec_pass_branch(struct tec_plan *plan, struct tec_error *err)
{
    (void)err;
    for (int i = 0; i < plan->n_parts; i++) {
        struct tec_program *program = &plan->parts[i].program;
        for (int s = 0, behind, end; s < program->n_steps; s = end) {
            end = s + 1;
            if (!program->steps[s].branch)
                continue;
            for (behind = s; behind < program->n_steps && program->steps[behind].branch;)
                behind++;
            for (end = behind; end < program->n_steps && !waits(program, end, s, behind);)
                end++;
            if (end < program->n_steps)
                program->steps[end].joins = true;
            extend(program, s, behind, end);
        }
    }
    return TEC_OK;
}
