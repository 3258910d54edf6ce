/* memory.c - the pass that gives activations their place.
 *
 * A tensor is live from the first step that uses it to the last. Tensors are placed largest first,
 * each at the lowest offset where no tensor that is live at the same time lies. Parts of a stream
 * never run at the same time, so they overlay one arena; what is in pieces lies by itself. */
#include "graph/compile/plan.h"

#include <stdlib.h>

enum { ALIGN = 64, SPAN = 32 };

struct place {
    int tensor, first, last, asked; /* asked: the last tensor that this one was looked at for */
    size_t size, at;
};

/* The placed tensors that are live in a span of steps, so that a tensor is compared with those near
 * it alone: a part may have many thousands. */
struct resident {
    struct place *place;
    struct resident *next;
};

struct spans {
    struct resident **of; /* of each span, the tensors placed so far */
    const struct place **near;
    struct tec_arena *arena;
};

static int larger_first(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->size != y->size)
        return x->size < y->size ? 1 : -1;
    return x->tensor - y->tensor;
}

static int lower_first(const void *a, const void *b)
{
    const struct place *const *x = a, *const *y = b;
    return (*x)->at < (*y)->at ? -1 : (*x)->at > (*y)->at;
}

/* The lowest gap among the placed tensors that are live together with `p`, tensor `i` of those to
 * place. */
static size_t lowest_gap(const struct place *p, int i, const struct spans *spans)
{
    int n_near = 0;
    for (int s = p->first / SPAN; s <= p->last / SPAN; s++)
        for (const struct resident *r = spans->of[s]; r; r = r->next)
            if (r->place->first <= p->last && p->first <= r->place->last && r->place->asked != i) {
                r->place->asked = i;
                spans->near[n_near++] = r->place;
            }
    qsort(spans->near, (size_t)n_near, sizeof(struct place *), lower_first);
    size_t at = 0;
    for (int j = 0; j < n_near; j++) {
        if (at + p->size <= spans->near[j]->at)
            break;
        size_t end = spans->near[j]->at + spans->near[j]->size;
        if (end > at)
            at = end;
    }
    return at;
}

/* From now on `p` has its place. */
static bool settle(struct place *p, struct spans *spans)
{
    for (int s = p->first / SPAN; s <= p->last / SPAN; s++) {
        struct resident *r = TEC_NEW(spans->arena, 1, struct resident);
        if (!r)
            return false;
        *r = (struct resident){p, spans->of[s]};
        spans->of[s] = r;
    }
    return true;
}

/* Tensors in the order in which they are given; false if there is no memory. */
static bool overlay(struct place *places, int n, int n_steps, struct tec_arena *arena)
{
    struct spans spans = {TEC_NEW(arena, (size_t)n_steps / SPAN + 1, struct resident *),
                          TEC_NEW(arena, (size_t)n + 1, const struct place *), arena};
    if (!spans.of || !spans.near)
        return false;
    for (int i = 0; i < n; i++) {
        places[i].asked = -1;
        places[i].at = lowest_gap(&places[i], i, &spans);
        if (!settle(&places[i], &spans))
            return false;
    }
    return true;
}

/* Each tensor behind the one before: nothing is overlaid. */
static void place_apart(struct place *places, int n)
{
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        places[i].at = at;
        at += places[i].size;
    }
}

static enum tec_status place_part(struct tec_plan *plan, struct tec_program *program,
                                  struct tec_error *err)
{
    struct tec_arena_mark mark = tec_arena_mark(&plan->arena);
    size_t n = (size_t)program->n_tensors;
    struct place *places = TEC_NEW(&plan->arena, n, struct place);
    if (!places)
        return tec_fail(err, TEC_NO_MEMORY, "no memory to place %zu tensors", n);
    int count = 0;
    for (int i = 0; i < program->n_tensors; i++) {
        const struct tec_tensor *t = &program->tensors[i];
        if (!t->fixed && t->first >= 0)
            places[count++] = (struct place){.tensor = i,
                                             .first = t->first,
                                             .last = t->last,
                                             .size = (t->size + ALIGN - 1) / ALIGN * ALIGN};
    }
    qsort(places, (size_t)count, sizeof *places, larger_first);
    program->planned = 0;
    if (plan->spec.interpret)
        place_apart(places, count);
    else if (!overlay(places, count, program->n_steps, &plan->arena))
        return tec_fail(err, TEC_NO_MEMORY, "no memory to place %zu tensors", n);
    for (int i = 0; i < count; i++) {
        size_t end = places[i].at + places[i].size;
        if (end > program->planned)
            program->planned = end;
    }
    /* Offsets for now; addresses when the arena is known. */
    for (int i = 0; i < count; i++) /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
        program->tensors[places[i].tensor].at = (unsigned char *)places[i].at;
    tec_arena_rewind(&plan->arena, mark);
    return TEC_OK;
}

/* The arena of one stream: as large as its largest part. */
static enum tec_status take_arena(struct tec_plan *plan, enum tec_stream stream,
                                  struct tec_error *err)
{
    size_t largest = ALIGN;
    for (int i = 0; i < plan->n_parts; i++)
        if (plan->parts[i].stream == stream && plan->parts[i].n_slices < 2 &&
            plan->parts[i].program.planned > largest)
            largest = plan->parts[i].program.planned;
    plan->activations[stream] = tec_device_get(plan->device, largest);
    plan->activation_bytes[stream] = largest;
    plan->bytes.activations += (int64_t)largest;
    if (!plan->activations[stream])
        return tec_fail(err, TEC_NO_MEMORY, "activations need %zu bytes", largest);
    return TEC_OK;
}

/* A part in pieces: other parts run between them. A recall's place is that of the branching one,
 * too: a prompt takes one of them. */
static enum tec_status take_own(struct tec_plan *plan, struct tec_plan_part *part,
                                struct tec_error *err)
{
    const struct tec_plan_part *recall = tec_plan_part(plan, TEC_PART_RECALL, 0);
    const struct tec_plan_part *twin = tec_plan_part(plan, TEC_PART_RECALL_BRANCH, 0);
    if (part->n_slices < 2)
        return TEC_OK;
    part->own_bytes = part->program.planned > ALIGN ? part->program.planned : ALIGN;
    if (part == twin) {
        part->own = recall->own;
        part->own_bytes = recall->own_bytes;
        return TEC_OK;
    }
    if (part == recall && twin && twin->program.planned > part->own_bytes)
        part->own_bytes = twin->program.planned;
    part->own = tec_device_get(plan->device, part->own_bytes);
    plan->bytes.activations += (int64_t)part->own_bytes;
    return part->own ? TEC_OK
                     : tec_fail(err, TEC_NO_MEMORY, "activations need %zu bytes", part->own_bytes);
}

enum tec_status tec_pass_memory(struct tec_plan *plan, struct tec_error *err)
{
    for (int i = 0; i < plan->n_parts; i++)
        TEC_TRY(place_part(plan, &plan->parts[i].program, err));
    for (int i = 0; i < plan->n_streams; i++)
        TEC_TRY(take_arena(plan, (enum tec_stream)i, err));
    for (int i = 0; i < plan->n_parts; i++)
        TEC_TRY(take_own(plan, &plan->parts[i], err));
    for (int i = 0; i < plan->n_parts; i++) {
        struct tec_program *program = &plan->parts[i].program;
        size_t bytes;
        unsigned char *base = tec_plan_activations(plan, &plan->parts[i], &bytes);
        for (int t = 0; t < program->n_tensors; t++)
            if (!program->tensors[t].fixed)
                program->tensors[t].at = base + (uintptr_t)program->tensors[t].at;
    }
    return TEC_OK;
}
