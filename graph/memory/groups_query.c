/* groups_query.c - answers queries on groups: the segments that a prompt retrieves, and views of
 * groups.
 *
 * The store calls it under its lock. A static group is ranked by its centroid and retrieved as a
 * whole, because its members have one joint KV; each member of a dynamic group is ranked by itself.
 * Every candidate is compared and a heap sorts them in place, with ties in order of group and age,
 * so the result is the same on every run. */
#include "graph/memory/groups_own.h"

/* Worst at the top of the heap; equals are in order of group, then of age. */
static bool worse(const struct tec_candidate *a, const struct tec_candidate *b)
{
    if (a->score != b->score)
        return a->score < b->score;
    if (a->group != b->group)
        return a->group > b->group;
    return a->place > b->place;
}

static void sink(struct tec_candidate *heap, uint32_t i, uint32_t n)
{
    for (;;) {
        uint32_t child = 2 * i + 1, least = i;
        if (child < n && worse(&heap[child], &heap[least]))
            least = child;
        if (child + 1 < n && worse(&heap[child + 1], &heap[least]))
            least = child + 1;
        if (least == i)
            return;
        struct tec_candidate kept = heap[i];
        heap[i] = heap[least];
        heap[least] = kept;
        i = least;
    }
}

/* Best first, in place: the worst moves to the end, again and again. */
static void sort(struct tec_candidate *list, uint32_t n)
{
    for (uint32_t i = n / 2; i-- > 0;)
        sink(list, i, n);
    for (uint32_t end = n; end > 1; end--) {
        struct tec_candidate last = list[end - 1];
        list[end - 1] = list[0];
        list[0] = last;
        sink(list, 0, end - 1);
    }
}

static double cosine_segment(const struct tec_groups *g, const float *v, double inverse,
                             uint32_t segment)
{
    const float *own = tec_groups_vector(g, segment);
    double dot = 0.0;
    for (int i = 0; i < g->is.dim; i++)
        dot += (double)v[i] * (double)own[i];
    return dot * inverse * g->segments[segment].inverse;
}

enum tec_status tec_groups_rank(struct tec_groups *g, const float *embedding,
                                struct tec_candidate *out, uint32_t *n, struct tec_error *err)
{
    TEC_TRY(tec_groups_check(g, embedding, err));
    double inverse = tec_groups_inverse(embedding, g->is.dim);
    uint32_t count = 0;
    for (uint32_t i = g->first; i != TEC_NO_SEGMENT; i = g->groups[i].next) {
        const struct tec_groups_group *group = &g->groups[i];
        if (group->is_static) {
            out[count++] = (struct tec_candidate){
                .score = tec_groups_cosine(embedding, inverse, tec_groups_sum(g, i), g->is.dim),
                .group = group->id,
                .segment = group->first,
                .segments = group->members};
            continue;
        }
        uint32_t place = 0;
        for (uint32_t u = group->first; u != TEC_NO_SEGMENT; u = g->segments[u].next)
            out[count++] = (struct tec_candidate){.score = cosine_segment(g, embedding, inverse, u),
                                                  .group = group->id,
                                                  .segment = u,
                                                  .segments = 1,
                                                  .place = place++};
    }
    sort(out, count);
    *n = count;
    return TEC_OK;
}

enum tec_status tec_groups_query(struct tec_groups *g, const float *embedding, uint32_t most,
                                 uint32_t *out, uint32_t *n, struct tec_error *err)
{
    uint32_t candidates = 0, taken = 0;
    TEC_TRY(tec_groups_rank(g, embedding, g->ranked, &candidates, err));
    for (uint32_t i = 0; i < candidates && taken < most; i++) {
        const struct tec_candidate *c = &g->ranked[i];
        if (c->segments > most - taken)
            continue;
        for (uint32_t k = 0, u = c->segment; k < c->segments; k++, u = g->segments[u].next)
            out[taken++] = u;
    }
    *n = taken;
    return TEC_OK;
}

static struct tec_group_view view_of(const struct tec_groups_group *group)
{
    return (struct tec_group_view){.id = group->id,
                                   .epoch = group->epoch,
                                   .changed = group->changed,
                                   .tokens = group->tokens,
                                   .members = group->members,
                                   .first = group->first,
                                   .is_static = group->is_static};
}

bool tec_groups_each(const struct tec_groups *g, const struct tec_group_view *after,
                     struct tec_group_view *out)
{
    uint32_t at = after ? g->groups[g->segments[after->first].group].next : g->first;
    if (at == TEC_NO_SEGMENT)
        return false;
    *out = view_of(&g->groups[at]);
    return true;
}

bool tec_groups_from(const struct tec_groups *g, uint64_t id, struct tec_group_view *out)
{
    uint32_t at = tec_groups_find(g, id);
    if (at == TEC_NO_SEGMENT && g->last != TEC_NO_SEGMENT && g->groups[g->last].id > id)
        for (at = g->first; g->groups[at].id < id;)
            at = g->groups[at].next;
    if (at == TEC_NO_SEGMENT)
        return false;
    *out = view_of(&g->groups[at]);
    return true;
}

static bool segment_known(const struct tec_groups *g, uint32_t segment)
{
    return segment < g->is.max_segments && g->segments[segment].group != TEC_NO_SEGMENT;
}

bool tec_groups_of(const struct tec_groups *g, uint32_t segment, struct tec_group_view *out)
{
    if (!segment_known(g, segment))
        return false;
    *out = view_of(&g->groups[g->segments[segment].group]);
    return true;
}

uint32_t tec_groups_next(const struct tec_groups *g, uint32_t segment)
{
    return segment_known(g, segment) ? g->segments[segment].next : TEC_NO_SEGMENT;
}

const float *tec_groups_embedding(const struct tec_groups *g, uint32_t segment)
{
    return segment_known(g, segment) ? tec_groups_vector(g, segment) : NULL;
}

void tec_groups_restore_clock(struct tec_groups *g, int64_t step, uint64_t next_group,
                              uint64_t next_epoch)
{
    g->step = step > g->step ? step : g->step;
    g->next_group = next_group > g->next_group ? next_group : g->next_group;
    g->next_epoch = next_epoch > g->next_epoch ? next_epoch : g->next_epoch;
}

struct tec_groups_totals tec_groups_totals(const struct tec_groups *g)
{
    return g->totals;
}

int64_t tec_groups_now(const struct tec_groups *g)
{
    return g->step;
}

uint64_t tec_groups_next_group(const struct tec_groups *g)
{
    return g->next_group;
}

uint64_t tec_groups_next_epoch(const struct tec_groups *g)
{
    return g->next_epoch;
}
