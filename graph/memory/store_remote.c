/* store_remote.c - finds KV on a server that other stores have computed, by names that all stores
 * agree on.
 *
 * A name is a chain of hashes over the texts and token counts that the KV depends on: of one
 * segment, or of all segments of its static group and its place among them. It contains no id or
 * version of this store, so stores that never met share KV. The server is asked without the store's
 * lock; what it has found is taken over only if the segment has not changed since. */
#include "base/clock.h"
#include "graph/memory/store_own.h"

#include <xxhash.h>

/* A link of the hash chain that makes a name: the hash so far, then a text. Little-endian, as KV
 * is. */
struct chain {
    uint64_t low, high;
    struct tec_text_hash text;
    uint64_t tokens, place, members;
};

static void chain_add(struct chain *c, const struct tec_store_segment *segment)
{
    c->text = segment->hash;
    c->tokens = segment->tokens;
    XXH128_hash_t hash = XXH3_128bits(c, sizeof *c);
    c->low = hash.low64;
    c->high = hash.high64;
}

struct tec_remote_name tec_store_remote_name(struct tec_store *s, uint32_t handle)
{
    struct tec_group_view group;
    struct chain c = {0};
    if (tec_store_epoch(s, handle) == 0 || !tec_groups_of(s->groups, handle, &group)) {
        chain_add(&c, &s->segments[handle]);
        return (struct tec_remote_name){c.low, c.high};
    }
    c.members = group.members;
    for (uint32_t u = group.first; u != handle && u != TEC_NO_SEGMENT;
         u = tec_groups_next(s->groups, u))
        c.place++;
    for (uint32_t u = group.first; u != TEC_NO_SEGMENT; u = tec_groups_next(s->groups, u))
        chain_add(&c, &s->segments[u]);
    return (struct tec_remote_name){c.low, c.high};
}

static void on_sent(void *user, const struct tec_remote_ticket *ticket)
{
    struct tec_store *s = user;
    pthread_mutex_lock(&s->lock);
    uint32_t at = tec_store_serial(s, ticket->segment);
    struct tec_kv *kv = at != TEC_NO_SEGMENT ? s->segments[at].kv : NULL;
    if (kv && kv->version == ticket->version && kv->epoch == ticket->epoch)
        atomic_store(&kv->remote, true);
    pthread_mutex_unlock(&s->lock);
}

enum tec_status tec_store_remote_open(struct tec_store *s, struct tec_error *err)
{
    return tec_remote_open(&s->remote, &s->options.key, &s->options.remote, s->heap, s, on_sent,
                           err);
}

enum { AT_ONCE = TEC_REMOTE_LOOK };

/* Segments asked for in one question, in the version and epoch that they had then. */
struct asked {
    uint32_t n, segment[AT_ONCE];
    uint64_t serial[AT_ONCE], version[AT_ONCE], epoch[AT_ONCE];
    struct tec_remote_name name[AT_ONCE];
    size_t size[AT_ONCE];
    bool found[AT_ONCE];
};

static void ask_for(struct tec_store *s, struct asked *a, uint32_t segment)
{
    const struct tec_store_segment *u = &s->segments[segment];
    uint32_t i = a->n;
    if (segment >= s->options.max_segments || !u->id || tec_store_kv_good(s, segment))
        return;
    if (u->kv && u->kv->version == u->version && u->kv->epoch == tec_store_epoch(s, segment) &&
        atomic_load(&u->kv->shunned)) /* else it would be found and missed for ever */
        return;
    a->segment[i] = segment;
    a->serial[i] = u->segment;
    a->version[i] = u->version;
    a->epoch[i] = tec_store_epoch(s, segment);
    a->name[i] = tec_store_remote_name(s, segment);
    a->size[i] = tec_log_piece_bytes(&s->options.key, u->tokens) * s->options.key.layers;
    a->n++;
}

/* Give the KV that was found to its segments, unless they have changed since the question. */
static enum tec_status take_found(struct tec_store *s, const struct asked *a, uint32_t *found,
                                  struct tec_error *err)
{
    for (uint32_t i = 0; i < a->n; i++) {
        struct tec_store_segment *u = &s->segments[a->segment[i]];
        if (!a->found[i] || !u->id || u->segment != a->serial[i] || u->version != a->version[i] ||
            tec_store_epoch(s, a->segment[i]) != a->epoch[i] || tec_store_kv_good(s, a->segment[i]))
            continue;
        struct tec_kv *kv = tec_store_kv_new(s, a->segment[i], a->epoch[i]);
        if (!kv)
            return tec_fail(err, TEC_NO_MEMORY, "memory: no room for what the server has");
        tec_store_kv_leave(s, u);
        kv->name = a->name[i];
        kv->current = true;
        atomic_store(&kv->remote, true);
        u->kv = kv;
        ++*found;
    }
    return TEC_OK;
}

enum tec_status tec_store_look(struct tec_store *s, const uint32_t *segments, uint32_t n,
                               int64_t timeout_ns, uint32_t *found, struct tec_error *err)
{
    const struct tec_clock clock = {0};
    int64_t until = tec_clock_now(&clock) + timeout_ns;
    *found = 0;
    for (uint32_t at = 0; s->remote && at < n && tec_remote_here(s->remote); at += AT_ONCE) {
        struct asked a = {.n = 0};
        if (at > 0 && tec_clock_now(&clock) >= until)
            break;
        pthread_mutex_lock(&s->lock);
        for (uint32_t i = at; i < n && i < at + AT_ONCE; i++)
            ask_for(s, &a, segments[i]);
        pthread_mutex_unlock(&s->lock);
        (void)tec_remote_look(s->remote, a.name, a.size, a.n, a.found);
        pthread_mutex_lock(&s->lock);
        enum tec_status status = take_found(s, &a, found, err);
        pthread_mutex_unlock(&s->lock);
        TEC_TRY(status);
    }
    return TEC_OK;
}
