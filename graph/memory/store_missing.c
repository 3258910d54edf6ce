/* store_missing.c - finds the segments of a store that have no KV in the form they should have.
 *
 * The worker of a memory asks, to decide what to compute next. A cursor remembers where the last
 * search ended, so that the next one need not begin at the first segment; a cursor whose segment
 * has gone goes on at the next group. */
#include "graph/memory/store_own.h"

uint32_t tec_store_members(struct tec_store *s, uint32_t segment, uint32_t *out, uint32_t most)
{
    struct tec_group_view g;
    uint32_t n = 0;
    pthread_mutex_lock(&s->lock);
    if (tec_store_epoch(s, segment) && tec_groups_of(s->groups, segment, &g)) {
        n = g.members;
        uint32_t u = g.first;
        for (uint32_t i = 0; n <= most && i < n && u != TEC_NO_SEGMENT; i++) {
            out[i] = u;
            u = tec_groups_next(s->groups, u);
        }
    } else if (most > 0) {
        out[n++] = segment;
    }
    pthread_mutex_unlock(&s->lock);
    return n;
}

/* Finds the segment and the group at which the search goes on. False: at the end. */
static bool resume(struct tec_store *s, const struct tec_store_cursor *from, uint32_t *segment,
                   struct tec_group_view *g)
{
    if (from->inside && tec_groups_of(s->groups, from->segment, g) && g->id == from->group) {
        *segment = from->segment;
        return true;
    }
    bool there = tec_groups_from(s->groups, from->group, g);
    *segment = there ? g->first : TEC_NO_SEGMENT;
    return there;
}

/* The segment behind another one, of its group or the next. */
static uint32_t segment_after(struct tec_store *s, uint32_t segment, struct tec_group_view *g)
{
    uint32_t next = tec_groups_next(s->groups, segment);
    if (next == TEC_NO_SEGMENT && tec_groups_each(s->groups, g, g))
        next = g->first;
    return next;
}

uint32_t tec_store_missing_from(struct tec_store *s, struct tec_store_cursor *from, uint32_t *out,
                                uint32_t most)
{
    struct tec_group_view g;
    uint32_t n = 0, segment = TEC_NO_SEGMENT;
    pthread_mutex_lock(&s->lock);
    for (bool more = most > 0 && resume(s, from, &segment, &g); more && segment != TEC_NO_SEGMENT;
         segment = segment_after(s, segment, &g)) {
        s->counts.looked++;
        if (tec_store_kv_good(s, segment))
            continue;
        if (n == 0)
            *from = (struct tec_store_cursor){g.id, segment, true};
        out[n++] = segment;
        if (n == most)
            break;
    }
    pthread_mutex_unlock(&s->lock);
    return n;
}

uint32_t tec_store_missing(struct tec_store *s, uint32_t *out, uint32_t most)
{
    return tec_store_missing_from(s, &(struct tec_store_cursor){.inside = false}, out, most);
}

void tec_store_pass(struct tec_store *s, struct tec_store_cursor *from, uint32_t segment)
{
    struct tec_group_view g;
    pthread_mutex_lock(&s->lock);
    if (tec_groups_of(s->groups, segment, &g)) {
        uint32_t next = segment_after(s, segment, &g);
        bool there = next != TEC_NO_SEGMENT;
        *from = (struct tec_store_cursor){there ? g.id : TEC_NO_GROUP, next, there};
    }
    pthread_mutex_unlock(&s->lock);
}
