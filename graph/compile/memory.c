/* memory.c - the pass that gives activations their place.
 *
 * A tensor is live from the first step that uses it to the last. Tensors are placed largest first,
 * each at the lowest offset where no tensor that is live at the same time lies. Parts of a stream
 * never run at the same time, so they overlay one arena; what is in pieces lies by itself. */
#include "graph/compile/plan.h"

#include <stdlib.h>

enum { ALIGN = 64 };

struct place {
    int tensor, first, last;
    size_t size, at;
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

/* The lowest gap among the n placed tensors that are live together with `p`. */
static size_t lowest_gap(const struct place *p, const struct place *placed, int n,
                         const struct place **near)
{
    int n_near = 0;
    for (int i = 0; i < n; i++)
        if (placed[i].first <= p->last && p->first <= placed[i].last)
            near[n_near++] = &placed[i];
    qsort(near, (size_t)n_near, sizeof(struct place *), lower_first);
    size_t at = 0;
    for (int i = 0; i < n_near; i++) {
        if (at + p->size <= near[i]->at)
            break;
        size_t end = near[i]->at + near[i]->size;
        if (end > at)
            at = end;
    }
    return at;
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
    const struct place **near = TEC_NEW(&plan->arena, n, const struct place *);
    if (!places || !near)
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
    for (int i = 0; i < count; i++) {
        if (!plan->spec.interpret)
            places[i].at = lowest_gap(&places[i], places, i, near);
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

/* A part in pieces: other parts run between them. */
static enum tec_status take_own(struct tec_plan *plan, struct tec_plan_part *part,
                                struct tec_error *err)
{
    if (part->n_slices < 2)
        return TEC_OK;
    part->own_bytes = part->program.planned > ALIGN ? part->program.planned : ALIGN;
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
