/* verify.c - the pass that checks programs against what the other passes promise: tensors are
 * written before they are read, live tensors do not overlap, none is live into a loop (its place
 * could be taken before the next turn reads it), all lie inside the arena, and what may run beside
 * a branch touches nothing that it uses. A failure is a bug of ours, named. */
#include "graph/compile/plan.h"

#include <stdlib.h>

static enum tec_status check_places(const struct tec_plan *plan, const struct tec_plan_part *part,
                                    struct tec_error *err)
{
    const struct tec_program *program = &part->program;
    size_t bytes;
    const unsigned char *begin = tec_plan_activations(plan, part, &bytes);
    const unsigned char *end = begin + bytes;
    for (int i = 0; i < program->n_tensors; i++) {
        const struct tec_tensor *t = &program->tensors[i];
        if (t->first < 0)
            continue;
        if (!t->at || (!t->fixed && (t->at < begin || t->at + t->size > end)))
            return tec_fail(err, TEC_INVALID, "%s: tensor %d '%s' has no place", program->name, i,
                            t->name);
    }
    return TEC_OK;
}

static bool overlap(const struct tec_tensor *a, const struct tec_tensor *b)
{
    return a->first <= b->last && b->first <= a->last && a->at < b->at + b->size &&
           b->at < a->at + a->size;
}

static int begins_first(const void *a, const void *b)
{
    const struct tec_tensor *x = *(const struct tec_tensor *const *)a;
    const struct tec_tensor *y = *(const struct tec_tensor *const *)b;
    return x->first != y->first ? (x->first < y->first ? -1 : 1) : (x > y) - (x < y);
}

/* In the order in which tensors begin to live each is compared with those that live then: few,
 * where a part may have many thousands. `order` has room for all tensors of the program. */
static enum tec_status check_overlaps(const struct tec_program *program,
                                      const struct tec_tensor **order, struct tec_error *err)
{
    size_t n = 0, n_live = 0;
    for (int i = 0; i < program->n_tensors; i++)
        if (!program->tensors[i].fixed && program->tensors[i].first >= 0)
            order[n++] = &program->tensors[i];
    qsort(order, n, sizeof(struct tec_tensor *), begins_first);
    for (size_t i = 0; i < n; i++) {
        const struct tec_tensor *t = order[i];
        size_t kept = 0;
        for (size_t j = 0; j < n_live; j++) {
            if (order[j]->last < t->first)
                continue;
            if (overlap(order[j], t))
                return tec_fail(err, TEC_INVALID, "%s: tensors '%s' and '%s' overlap",
                                program->name, order[j]->name, t->name);
            order[kept++] = order[j];
        }
        order[kept] = t;
        n_live = kept + 1;
    }
    return TEC_OK;
}

static enum tec_status check_loops(const struct tec_program *program, struct tec_error *err)
{
    for (int s = 0; s < program->n_steps; s++) {
        if (program->steps[s].kind != TEC_STEP_REPEAT)
            continue;
        for (int i = 0; i < program->n_tensors; i++) {
            const struct tec_tensor *t = &program->tensors[i];
            if (!t->fixed && t->first >= 0 && t->first < s && t->last > s)
                return tec_fail(err, TEC_INVALID, "%s: tensor %d '%s' is live into a loop",
                                program->name, i, t->name);
        }
    }
    return TEC_OK;
}

static enum tec_status check_written(const struct tec_program *program, bool *written,
                                     struct tec_error *err)
{
    for (int s = 0; s < program->n_steps; s++) {
        if (program->steps[s].kind != TEC_STEP_CALL)
            continue;
        const struct tec_call *call = &program->steps[s].call;
        for (int i = 0; i < TEC_OP_INPUTS; i++)
            if (call->in[i] >= 0 && !program->tensors[call->in[i]].fixed && !written[call->in[i]])
                return tec_fail(err, TEC_INVALID, "%s: '%s' reads tensor '%s' before it is written",
                                program->name, call->label, program->tensors[call->in[i]].name);
        for (int i = 0; i < TEC_OP_OUTPUTS; i++)
            if (call->out[i] >= 0)
                written[call->out[i]] = true;
    }
    return TEC_OK;
}

/* By addresses: one of the calls writes memory that the other one uses. */
static const struct tec_tensor *meet(const struct tec_program *program, const struct tec_call *a,
                                     const struct tec_call *b)
{
    enum { ALL = TEC_OP_INPUTS + TEC_OP_OUTPUTS };
    int ids[2][ALL];
    for (int i = 0; i < ALL; i++) {
        ids[0][i] = i < TEC_OP_INPUTS ? a->in[i] : a->out[i - TEC_OP_INPUTS];
        ids[1][i] = i < TEC_OP_INPUTS ? b->in[i] : b->out[i - TEC_OP_INPUTS];
    }
    for (int i = 0; i < ALL * ALL; i++) {
        int x = ids[0][i / ALL], y = ids[1][i % ALL];
        bool write = i / ALL >= TEC_OP_INPUTS || i % ALL >= TEC_OP_INPUTS;
        if (x < 0 || y < 0 || !write)
            continue;
        const struct tec_tensor *s = &program->tensors[x], *t = &program->tensors[y];
        if (s->at < t->at + t->size && t->at < s->at + s->size)
            return s;
    }
    return NULL;
}

static enum tec_status check_branches(const struct tec_program *program, struct tec_error *err)
{
    int first = 0, behind = 0; /* the branch that has not ended */
    for (int s = 0; s < program->n_steps; s++) {
        const struct tec_step *step = &program->steps[s];
        bool ends = step->joins || (!step->branch && step->kind != TEC_STEP_CALL);
        first = ends ? behind : first;
        if (step->branch) {
            if (first == behind)
                first = s;
            else if (behind < s)
                return tec_fail(err, TEC_INVALID, "%s: a branch goes on at step %d", program->name,
                                s);
            behind = s + 1;
            continue;
        }
        for (int b = first; b < behind && step->kind == TEC_STEP_CALL; b++) {
            const struct tec_step *of = &program->steps[b];
            const struct tec_tensor *t =
                of->kind == TEC_STEP_CALL ? meet(program, &of->call, &step->call) : NULL;
            if (t)
                return tec_fail(err, TEC_INVALID, "%s: '%s' beside '%s' touches its tensor '%s'",
                                program->name, step->call.label, of->call.label, t->name);
        }
    }
    return TEC_OK;
}

enum tec_status tec_pass_verify(struct tec_plan *plan, struct tec_error *err)
{
    for (int i = 0; i < plan->n_parts; i++) {
        const struct tec_program *program = &plan->parts[i].program;
        struct tec_arena_mark mark = tec_arena_mark(&plan->arena);
        bool *written = TEC_NEW(&plan->arena, (size_t)program->n_tensors + 1, bool);
        const struct tec_tensor **order =
            TEC_NEW(&plan->arena, (size_t)program->n_tensors + 1, const struct tec_tensor *);
        if (!written || !order)
            return tec_fail(err, TEC_NO_MEMORY, "no memory to verify %s", program->name);
        TEC_TRY(check_places(plan, &plan->parts[i], err));
        TEC_TRY(check_overlaps(program, order, err));
        TEC_TRY(check_loops(program, err));
        TEC_TRY(check_written(program, written, err));
        TEC_TRY(check_branches(program, err));
        tec_arena_rewind(&plan->arena, mark);
    }
    return TEC_OK;
}
