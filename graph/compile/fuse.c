/* fuse.c - the pass that drops barriers: row-wise ops over the same rows run on without one.
 *
 * A barrier is needed before a call that touches memory which another lane may have touched since
 * the last one, when at least one of the two writes. Two row-wise calls with the same count of rows
 * give every lane the same rows, so what one lane wrote only it reads. Joining q | k | v and
 * gate | up is done where weights are packed. */
#include "graph/compile/plan.h"
#include "ops/call.h"

#include <stdbool.h>

struct access {
    const unsigned char *from, *to;
    const int *rows; /* count of a row-wise call, NULL for others */
    bool write;
};

enum { MAX_ACCESSES = 64 };

struct watch {
    struct access seen[MAX_ACCESSES];
    int n;
};

static int collect(const struct tec_program *program, const struct tec_call *call,
                   struct access out[TEC_OP_INPUTS + TEC_OP_OUTPUTS])
{
    int n = 0;
    const int *rows = NULL;
    if (tec_ops[call->op].op->rowwise && !call->out_row) {
        const struct tec_tensor *t = tec_in(program, call, 0);
        rows = t ? t->live : tec_out(program, call, 0)->live;
    }
    for (int i = 0; i < TEC_OP_INPUTS + TEC_OP_OUTPUTS; i++) {
        bool write = i >= TEC_OP_INPUTS;
        const struct tec_tensor *t =
            write ? tec_out(program, call, i - TEC_OP_INPUTS) : tec_in(program, call, i);
        if (t)
            out[n++] = (struct access){t->at, t->at + t->size, rows, write};
    }
    return n;
}

static bool conflict(const struct access *a, const struct access *b)
{
    if (!a->write && !b->write)
        return false;
    if (a->to <= b->from || b->to <= a->from)
        return false;
    /* The same rows of the same tensor: row r of both lies at the same place. */
    bool own_rows = a->rows && a->rows == b->rows && a->from == b->from && a->to == b->to;
    return !own_rows;
}

static void visit(struct watch *watch, const struct tec_program *program, struct tec_call *call)
{
    struct access now[TEC_OP_INPUTS + TEC_OP_OUTPUTS];
    int n = collect(program, call, now);
    call->barrier = watch->n + n > MAX_ACCESSES;
    for (int i = 0; i < n && !call->barrier; i++)
        for (int j = 0; j < watch->n && !call->barrier; j++)
            call->barrier = conflict(&now[i], &watch->seen[j]);
    if (call->barrier)
        watch->n = 0;
    for (int i = 0; i < n; i++)
        watch->seen[watch->n++] = now[i];
}

enum tec_status tec_pass_fuse(struct tec_plan *plan, struct tec_error *err)
{
    (void)err;
    for (int i = 0; i < plan->n_parts; i++) {
        struct tec_program *program = &plan->parts[i].program;
        struct watch watch = {.n = 0};
        for (int s = 0; s < program->n_steps; s++) {
            struct tec_step *step = &program->steps[s];
            if (step->kind == TEC_STEP_CALL && plan->spec.interpret)
                step->call.barrier = true;
            else if (step->kind == TEC_STEP_CALL)
                visit(&watch, program, &step->call);
            else
                watch.n = 0; /* marks and loops begin with a barrier */
        }
    }
    return TEC_OK;
}
