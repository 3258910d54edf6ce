/* capture.c - the pass that records every part, and of those in pieces each piece. */
#include "graph/compile/plan.h"

static enum tec_status record(struct tec_plan *plan, const struct tec_plan_part *part, int from,
                              int to, struct tec_capture **out, struct tec_error *err)
{
    TEC_TRY(tec_capture_begin(out, plan->device, part->stream, &plan->arena, err));
    tec_program_record_piece(&part->program, from, to, *out);
    TEC_TRY(tec_capture_end(*out, err));
    plan->bytes.captures += (int64_t)tec_capture_bytes(*out);
    return TEC_OK;
}

/* The step that the n-th cut stands before; 0 before the first, the end behind the last. */
static int cut_at(const struct tec_program *program, int n)
{
    int seen = 0;
    for (int i = 0; i < program->n_steps; i++)
        if (n == 0 || (program->steps[i].cut && ++seen == n))
            return n == 0 ? 0 : i;
    return program->n_steps;
}

/* Pieces of as many layers each, but for one more where they do not come out even. */
static enum tec_status record_slices(struct tec_plan *plan, struct tec_plan_part *part,
                                     struct tec_error *err)
{
    const struct tec_program *program = &part->program;
    int pieces = 1;
    for (int i = 0; i < program->n_steps; i++)
        pieces += program->steps[i].cut;
    if (part->n_slices > pieces)
        part->n_slices = pieces;
    part->slices = TEC_NEW(&plan->arena, (size_t)part->n_slices, struct tec_capture *);
    if (!part->slices)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %d slices", part->n_slices);
    for (int i = 0; i < part->n_slices; i++) {
        int end = cut_at(program, (i + 1) * pieces / part->n_slices);
        part->picture_slices += end <= part->picture_steps;
        TEC_TRY(record(plan, part, cut_at(program, i * pieces / part->n_slices), end,
                       &part->slices[i], err));
    }
    return TEC_OK;
}

enum tec_status tec_pass_capture(struct tec_plan *plan, struct tec_error *err)
{
    for (int i = 0; i < plan->n_parts; i++) {
        struct tec_plan_part *part = &plan->parts[i];
        TEC_TRY(record(plan, part, 0, part->program.n_steps, &part->capture, err));
        if (part->n_slices > 1)
            TEC_TRY(record_slices(plan, part, err));
    }
    return TEC_OK;
}
