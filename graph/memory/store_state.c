/* store_state.c - what a store remembers, without keys and values: its hash, and a file of it.
 *
 * A recording holds it, so that a replay begins with what the run began with. Keys and values are
 * computed again, to the same bytes. The hash is of texts, groups and time: which vectors they have
 * is the encoder's, and so is not the store's alone. */
#include "graph/memory/store_own.h"

#include <string.h>
#include <xxhash.h>

/* A link of the chain of hashes. */
struct link {
    uint64_t low, high, id[2], text[2], tokens, group, changed, is_static;
};

static void hash_of(uint64_t out[2], const void *data, size_t n)
{
    XXH128_hash_t h = XXH3_128bits(data, n);
    out[0] = h.low64;
    out[1] = h.high64;
}

static void add(struct tec_store_state *state, struct link *l)
{
    l->low = state->hash[0];
    l->high = state->hash[1];
    hash_of(state->hash, l, sizeof *l);
}

static void add_segment(struct tec_store *s, struct tec_store_state *state, uint32_t segment,
                        const struct tec_group_view *group, uint64_t number)
{
    const struct tec_store_segment *u = &s->segments[segment];
    struct link l = {.text = {u->hash.low, u->hash.high},
                     .tokens = u->tokens,
                     .group = number,
                     .changed = (uint64_t)group->changed,
                     .is_static = group->is_static};
    hash_of(l.id, u->id, strlen(u->id));
    add(state, &l);
    state->segments++;
}

struct tec_store_state tec_store_state(struct tec_store *s)
{
    struct tec_store_state state = {.segments = 0};
    struct tec_group_view g;
    uint64_t number = 1; /* in order: what they are called in the file may differ */
    pthread_mutex_lock(&s->lock);
    for (bool more = tec_groups_each(s->groups, NULL, &g); more;
         more = tec_groups_each(s->groups, &g, &g), number++)
        for (uint32_t u = g.first; u != TEC_NO_SEGMENT; u = tec_groups_next(s->groups, u))
            add_segment(s, &state, u, &g, number);
    state.step = tec_groups_now(s->groups);
    add(&state, &(struct link){.changed = (uint64_t)state.step});
    state.bytes = tec_store_live(s, false);
    pthread_mutex_unlock(&s->lock);
    return state;
}

struct tec_store_state tec_store_began(const struct tec_store *s)
{
    return s->began;
}

enum tec_status tec_store_save(struct tec_store *s, const char *path, struct tec_error *err)
{
    struct tec_log *log = NULL;
    TEC_TRY(tec_log_make(&log, path, &s->options.key, s->heap, err));
    pthread_mutex_lock(&s->lock);
    enum tec_status status = tec_store_copy(s, log, false, err);
    pthread_mutex_unlock(&s->lock);
    if (status == TEC_OK)
        status = tec_log_sync(log, err);
    tec_log_close(log);
    return status;
}
