/* program.c - builds programs (lists of calls over tensors) and records them into captures.
 *
 * Adding a call checks its shapes and notes for each tensor the first and last step that use it,
 * which is what memory planning works on. The first failure is kept with its message, so callers
 * need not check each call. */
#include "ops/program.h"

#include <string.h>
#include <xxhash.h>

enum { FIRST_ROOM = 64 };

void tec_program_init(struct tec_program *program, struct tec_arena *arena, const char *name)
{
    *program = (struct tec_program){.arena = arena, .name = name, .status = TEC_OK};
}

enum tec_status tec_program_status(const struct tec_program *program, struct tec_error *err)
{
    if (program->status != TEC_OK && err)
        *err = program->err;
    return program->status;
}

static void remember(struct tec_program *program, enum tec_status status)
{
    if (program->status == TEC_OK)
        program->status = status;
}

static void *grown(struct tec_program *program, void *old, int n, int *room, size_t size)
{
    if (n < *room)
        return old;
    int more = *room ? *room * 2 : FIRST_ROOM;
    void *new = tec_arena_push(program->arena, (size_t)more, size, 16);
    if (!new) {
        if (program->status == TEC_OK)
            program->status = tec_fail(&program->err, TEC_NO_MEMORY, "%s: no memory for %d steps",
                                       program->name, more);
        return NULL;
    }
    if (n)
        memcpy(new, old, (size_t)n * size);
    *room = more;
    return new;
}

static int add_tensor(struct tec_program *program, const struct tec_tensor *tensor)
{
    struct tec_tensor *tensors = grown(program, program->tensors, program->n_tensors,
                                       &program->tensor_room, sizeof *tensors);
    if (!tensors)
        return -1;
    program->tensors = tensors;
    tensors[program->n_tensors] = *tensor;
    return program->n_tensors++;
}

int tec_program_tensor(struct tec_program *program, const char *name, int rows, int cols,
                       const int *live)
{
    int ld = (cols + 15) / 16 * 16;
    return add_tensor(program, &(struct tec_tensor){.name = name,
                                                    .rows = rows,
                                                    .cols = cols,
                                                    .ld = ld,
                                                    .live = live,
                                                    .size = (size_t)rows * (size_t)ld * 4,
                                                    .first = -1,
                                                    .last = -1});
}

int tec_program_fixed(struct tec_program *program, const char *name, void *at, size_t size,
                      int rows, int cols, int ld, const int *live)
{
    return add_tensor(program, &(struct tec_tensor){.name = name,
                                                    .rows = rows,
                                                    .cols = cols,
                                                    .ld = ld,
                                                    .live = live,
                                                    .at = at,
                                                    .size = size,
                                                    .fixed = true,
                                                    .first = -1,
                                                    .last = -1});
}

static struct tec_step *add_step(struct tec_program *program, enum tec_step_kind kind)
{
    struct tec_step *steps =
        grown(program, program->steps, program->n_steps, &program->step_room, sizeof *steps);
    if (!steps)
        return NULL;
    program->steps = steps;
    steps[program->n_steps] =
        (struct tec_step){.kind = kind, .cut = program->cuts, .branch = program->branches};
    program->cuts = false;
    return &steps[program->n_steps++];
}

static void use(struct tec_program *program, int tensor, int step)
{
    if (tensor < 0)
        return;
    struct tec_tensor *t = &program->tensors[tensor];
    if (t->first < 0)
        t->first = step;
    t->last = step;
}

void tec_program_call(struct tec_program *program, const struct tec_call *call)
{
    struct tec_step *step = program->status == TEC_OK ? add_step(program, TEC_STEP_CALL) : NULL;
    if (!step)
        return;
    step->call = *call;
    step->call.label = tec_arena_strdup(program->arena, call->label);
    if (!step->call.label)
        step->call.label = tec_ops[call->op].name;
    const struct tec_op_entry *entry = &tec_ops[call->op];
    struct tec_error err;
    enum tec_status status = entry->op->infer(program, &step->call, &err);
    if (status != TEC_OK) {
        tec_context(&err, status, "%s: %s: %s", program->name, step->call.label, entry->name);
        program->err = err;
        remember(program, status);
        return;
    }
    bool rounds = entry->op->rounds && entry->op->rounds(call);
    for (int i = 0; i < TEC_OP_INPUTS; i++)
        use(program, call->in[i], program->n_steps - 1);
    for (int i = 0; i < TEC_OP_OUTPUTS; i++) {
        use(program, call->out[i], program->n_steps - 1);
        if (call->out[i] >= 0)
            *(rounds ? &program->tensors[call->out[i]].rounded
                     : &program->tensors[call->out[i]].plain) = true;
    }
}

void tec_program_mark(struct tec_program *program, int mark)
{
    struct tec_step *step = add_step(program, TEC_STEP_MARK);
    if (step)
        step->mark = mark;
}

void tec_program_repeat(struct tec_program *program, const int *count, const int *stop)
{
    struct tec_step *step = add_step(program, TEC_STEP_REPEAT);
    if (step) {
        step->count = count;
        step->stop = stop;
    }
}

void tec_program_repeat_end(struct tec_program *program)
{
    add_step(program, TEC_STEP_REPEAT_END);
}

void tec_program_cut(struct tec_program *program)
{
    program->cuts = true;
}

void tec_program_branch(struct tec_program *program, bool branch)
{
    program->branches = branch;
}

/* Calls of one kernel and label that compute and move as much take the same time, whatever they
 * read: the layers of a model. Counts are at their capacity here. */
static void weigh(const struct tec_call *call, struct tec_capture *capture)
{
    enum { FLOPS_PER_BYTE = 10 }; /* of machines in the field, so that work is about time */
    const struct tec_counts most = {NULL, 0};
    struct {
        struct tec_cost cost;
        uint64_t op, label;
    } of;
    memset(&of, 0, sizeof of);
    of.cost = tec_ops[call->op].op->cost(call, &most);
    of.op = (uint64_t)call->op;
    of.label = call->label ? XXH3_64bits(call->label, strlen(call->label)) : 0;
    tec_capture_weigh(capture, XXH3_64bits(&of, sizeof of) | 1,
                      (double)tec_cost_flops(&of.cost) +
                          FLOPS_PER_BYTE * (double)tec_cost_bytes(&of.cost));
}

void tec_program_record_piece(const struct tec_program *program, int from, int to,
                              struct tec_capture *capture)
{
    for (int i = from; i < to; i++) {
        const struct tec_step *step = &program->steps[i];
        tec_capture_branch(capture, step->branch);
        if (step->joins)
            tec_capture_join(capture);
        if (step->kind == TEC_STEP_CALL) {
            tec_ops[step->call.op].op->record(program, &step->call, capture);
            weigh(&step->call, capture);
            if (step->call.passes)
                tec_capture_pass(capture);
        } else if (step->kind == TEC_STEP_MARK)
            tec_capture_mark(capture, step->mark);
        else if (step->kind == TEC_STEP_REPEAT)
            tec_capture_repeat(capture, step->count, step->stop);
        else
            tec_capture_repeat_end(capture);
    }
}

struct tec_call tec_call_of(enum tec_op_id op, const char *label)
{
    struct tec_call call;
    memset(&call, 0, sizeof call);
    call.op = op;
    call.label = label;
    for (int i = 0; i < TEC_OP_INPUTS; i++)
        call.in[i] = -1;
    for (int i = 0; i < TEC_OP_OUTPUTS; i++)
        call.out[i] = -1;
    return call;
}
