/* plan.c - what a plan says of itself: its parts, found by what they run, where their activations
 * lie, and sizes that follow from its spec. Passes ask it while they make the plan, launches when
 * it is made. */
#include "graph/compile/plan.h"

#include "graph/memory/log.h"
#include "graph/model/program.h"

/* Pieces come to the device so many layers ahead of those that need them, the one that runs among
 * them. */
enum { AHEAD = 4 };
_Static_assert((int)AHEAD <= (int)TEC_SEND_NOTES, "each room has a note");

int tec_plan_recall_rooms(const struct tec_plan *p)
{
    if (tec_device_reads_host(p->device))
        return 0;
    return p->space.shape.layers < AHEAD ? p->space.shape.layers : AHEAD;
}

/* K and V of a prompt, and behind those of each segment what a kept piece has behind them. Rooms
 * follow one another, and elements are read where they lie: so whole lines. */
size_t tec_plan_recall_room(const struct tec_plan *p)
{
    enum { LINE = 64 };
    size_t row = tec_kv_row_bytes(&p->space.shape), segments = (size_t)p->spec.segments;
    size_t bytes = 2 * (size_t)p->spec.frame_tokens * row + segments * TEC_LOG_PIECE_END;
    return (bytes + LINE - 1) / LINE * LINE;
}

int tec_plan_keys(const struct tec_plan *p)
{
    const struct tec_plan_spec *s = &p->spec;
    bool reads = s->n_actions && p->model->program && p->model->program->n_projected;
    return reads ? s->frame_tokens + s->prompt_tokens + s->new_tokens : 0;
}

int tec_plan_together(const struct tec_plan *p)
{
    return p->spec.n_together ? p->spec.together[p->spec.n_together - 1] : 1;
}

struct tec_plan_part *tec_plan_add_part(struct tec_plan *p, enum tec_part_kind kind,
                                        const char *name, bool beside)
{
    struct tec_plan_part *part = &p->parts[p->n_parts++];
    part->kind = kind;
    part->beside = beside;
    part->name = name;
    part->taps.arena = &p->arena;
    tec_program_init(&part->program, &p->arena, name);
    return part;
}

unsigned char *tec_plan_activations(const struct tec_plan *p, const struct tec_plan_part *part,
                                    size_t *bytes)
{
    *bytes = part->own ? part->own_bytes : p->activation_bytes[part->stream];
    return part->own ? part->own : p->activations[part->stream];
}

static struct tec_plan_part *find(struct tec_plan *p, bool beside, enum tec_part_kind kind,
                                  int rows)
{
    struct tec_plan_part *best = NULL;
    for (int i = 0; i < p->n_parts; i++) {
        struct tec_plan_part *part = &p->parts[i];
        if (part->kind != kind || part->beside != beside ||
            (kind == TEC_PART_ACTION && part->action != rows))
            continue;
        best = part;
        bool batched = kind == TEC_PART_DECODE || kind == TEC_PART_VERIFY || kind == TEC_PART_FRAME;
        if (!batched || part->batch >= rows)
            return part;
    }
    return best;
}

struct tec_plan_part *tec_plan_part(struct tec_plan *p, enum tec_part_kind kind, int rows)
{
    return find(p, false, kind, rows);
}

struct tec_plan_part *tec_plan_part_concurrent(struct tec_plan *p, enum tec_part_kind kind,
                                               int rows)
{
    return find(p, true, kind, rows);
}
