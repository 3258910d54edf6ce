/* store.c - the public interface of a memory store: open and close, changes and queries.
 *
 * Any thread may call it; one mutex guards the tables. A change is appended to the file before it
 * is made in memory, so memory never holds what the file has refused. tec_store_sync waits for
 * fdatasync outside the mutex: whoever prepares a prompt in the meantime does not stand still. */
#include "graph/memory/store_own.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

static enum tec_status options_check(const struct tec_store_options *o, struct tec_error *err)
{
    if (o->key.layers < 1 || o->key.layers > TEC_MAX_STORE_LAYERS || o->key.row_bytes < 1 ||
        o->key.row_bytes > 1u << 20)
        return tec_fail(err, TEC_INVALID, "memory: KV of %u layers, %u bytes a row", o->key.layers,
                        o->key.row_bytes);
    if (o->ram_bytes < 0 || o->log.max_bytes < 0)
        return tec_fail(err, TEC_INVALID, "memory: a tier has a negative size");
    return tec_remote_check(&o->remote, err);
}

static enum tec_status tables_take(struct tec_store *s, struct tec_error *err)
{
    uint32_t n = s->options.max_segments;
    s->buckets = 2 * n + 1;
    s->segments = tec_heap_get(s->heap, n * sizeof *s->segments);
    s->by_id = tec_heap_get(s->heap, s->buckets * sizeof *s->by_id);
    s->by_segment = tec_heap_get(s->heap, s->buckets * sizeof *s->by_segment);
    s->by_text = tec_heap_get(s->heap, s->buckets * sizeof *s->by_text);
    if (!s->segments || !s->by_id || !s->by_segment || !s->by_text)
        return tec_fail(err, TEC_NO_MEMORY, "memory: no room for %u segments", n);
    for (uint32_t i = 0; i < s->buckets; i++)
        s->by_id[i] = s->by_segment[i] = s->by_text[i] = TEC_NO_SEGMENT;
    for (uint32_t i = 0; i < n; i++)
        s->segments[i].next_id = i + 1 < n ? i + 1 : TEC_NO_SEGMENT;
    return TEC_OK;
}

enum tec_status tec_store_open(struct tec_store **out, const struct tec_store_options *options,
                               struct tec_heap *heap, struct tec_error *err)
{
    const struct tec_groups_options groups = {.dim = (int)options->key.dim,
                                              .max_segments = options->max_segments,
                                              .threshold = options->threshold,
                                              .stable_steps = options->stable_steps};
    TEC_TRY(options_check(options, err));
    struct tec_store *s = tec_heap_get(heap, sizeof *s);
    if (!s)
        return tec_fail(err, TEC_NO_MEMORY, "memory: no room for a store");
    s->heap = heap;
    s->options = *options;
    s->next_segment = 1;
    pthread_mutex_init(&s->lock, NULL);
    pthread_rwlock_init(&s->files, NULL);
    enum tec_status status = tec_groups_create(&s->groups, &groups, heap, err);
    if (status == TEC_OK)
        status = tables_take(s, err);
    if (status == TEC_OK && options->path)
        status = tec_store_replay(s, err);
    if (status == TEC_OK && !options->path && options->begins)
        status = tec_store_begin(s, err);
    if (status == TEC_OK && !options->path && options->begins)
        s->began = tec_store_state(s);
    if (status == TEC_OK && (options->path || options->begins))
        status = tec_store_renew(s, err);
    if (status == TEC_OK && options->remote.address)
        status = tec_store_remote_open(s, err);
    if (status == TEC_OK)
        *out = s;
    else
        tec_store_close(s);
    return status;
}

void tec_store_close(struct tec_store *s)
{
    if (!s)
        return;
    tec_remote_close(s->remote); /* its thread uses the rest */
    (void)tec_store_end(s, NULL);
    for (uint32_t i = 0; s->segments && i < s->options.max_segments; i++)
        if (s->segments[i].id)
            tec_store_segment_free(s, i);
    tec_log_close(s->log);
    tec_groups_destroy(s->groups);
    tec_heap_put(s->heap, s->segments);
    tec_heap_put(s->heap, s->by_id);
    tec_heap_put(s->heap, s->by_segment);
    tec_heap_put(s->heap, s->by_text);
    pthread_rwlock_destroy(&s->files);
    pthread_mutex_destroy(&s->lock);
    tec_heap_put(s->heap, s);
}

static enum tec_status acknowledge(struct tec_store *s, struct tec_error *err)
{
    return s->log && s->options.sync_each ? tec_log_sync(s->log, err) : TEC_OK;
}

/* Drop the KV of a group's members where it belongs to an old version or epoch. */
static void drop_forms(struct tec_store *s, const struct tec_group_view *group)
{
    for (uint32_t u = group->first; u != TEC_NO_SEGMENT; u = tec_groups_next(s->groups, u))
        if (s->segments[u].kv && !tec_store_kv_good(s, u))
            tec_store_kv_leave(s, &s->segments[u]);
}

static enum tec_status step(struct tec_store *s, int64_t now, struct tec_groups_change *change,
                            struct tec_error *err)
{
    struct tec_group_view g;
    enum tec_status status = TEC_OK;
    uint32_t next = 0;
    TEC_TRY(tec_groups_step(s->groups, now, change, err));
    for (bool more = change->n_promoted > 0 && tec_groups_each(s->groups, NULL, &g);
         more && next < change->n_promoted; more = tec_groups_each(s->groups, &g, &g)) {
        if (g.id != change->promoted[next])
            continue;
        next++;
        drop_forms(s, &g);
        struct tec_log_record r = {.type = TEC_LOG_GROUP,
                                   .group = g.id,
                                   .epoch = g.epoch,
                                   .step = g.changed,
                                   .is_static = true};
        if (status == TEC_OK)
            status = tec_store_append(s, &r, err);
    }
    return status == TEC_OK && next > 0 ? acknowledge(s, err) : status;
}

enum tec_status tec_store_step(struct tec_store *s, int64_t now, struct tec_groups_change *change,
                               struct tec_error *err)
{
    pthread_mutex_lock(&s->lock);
    enum tec_status status = step(s, now, change, err);
    pthread_mutex_unlock(&s->lock);
    return status;
}

static enum tec_status given_check(const struct tec_store *s, const char *id, size_t text_bytes,
                                   uint32_t tokens, const float *embedding, struct tec_error *err)
{
    size_t n = strlen(id);
    if (n < 1 || n > TEC_LOG_MAX_ID)
        return tec_fail(err, TEC_INVALID, "memory: an id of %zu bytes; 1 .. %d are possible", n,
                        TEC_LOG_MAX_ID);
    if (text_bytes > TEC_LOG_MAX_TEXT)
        return tec_fail(err, TEC_INVALID,
                        "memory: segment '%s' has a text of %zu bytes, at most %zu", id, text_bytes,
                        TEC_LOG_MAX_TEXT);
    if (tec_log_piece_bytes(&s->options.key, tokens) > TEC_LOG_MAX_PIECE)
        return tec_fail(err, TEC_INVALID, "memory: segment '%s' has %u tokens, too many", id,
                        tokens);
    for (uint32_t i = 0; i < s->options.key.dim; i++)
        if (!isfinite(embedding[i]))
            return tec_fail(err, TEC_INVALID,
                            "memory: segment '%s': number %u of its embedding is not finite", id,
                            i);
    return TEC_OK;
}

/* The record of a change of a segment. It is made before the change, with the epoch that the change
 * will give the group. */
static struct tec_log_record change_record(const struct tec_store *s, enum tec_log_type type,
                                           uint64_t segment, uint64_t group)
{
    return (struct tec_log_record){.type = type,
                                   .segment = segment,
                                   .group = group,
                                   .epoch = tec_groups_next_epoch(s->groups),
                                   .step = tec_groups_now(s->groups)};
}

/* Copies a caller's segment, with its text. */
struct given {
    const char *id;
    char *text;
    size_t text_bytes;
    struct tec_segment_input segment;
};

static enum tec_status append_text(struct tec_store *s, struct tec_log_record *r, uint64_t version,
                                   const struct given *g, struct tec_error *err)
{
    r->version = version;
    r->tokens = g->segment.tokens;
    r->id = g->id;
    r->id_bytes = strlen(g->id);
    r->text = g->text;
    r->text_bytes = g->text_bytes;
    r->embedding = g->segment.embedding;
    return tec_store_append(s, r, err);
}

static enum tec_status add(struct tec_store *s, const struct given *g, uint32_t *segment,
                           struct tec_groups_change *change, struct tec_error *err)
{
    uint64_t group = 0;
    uint32_t at = TEC_NO_SEGMENT;
    TEC_TRY(tec_groups_choose(s->groups, g->segment.embedding, &group, err));
    TEC_TRY(tec_store_segment_take(s, s->next_segment, g->id, strlen(g->id), &at, err));
    struct tec_log_record r = change_record(s, TEC_LOG_PUT, s->segments[at].segment, group);
    enum tec_status status = append_text(s, &r, 1, g, err);
    if (status == TEC_OK)
        status = tec_groups_add_to(s->groups, at, &g->segment, group, change, err);
    if (status != TEC_OK) {
        tec_store_segment_free(s, at);
        return status;
    }
    tec_store_text_set(s, at, g->text, g->text_bytes, g->segment.tokens, 1);
    *segment = at;
    return TEC_OK;
}

static enum tec_status update(struct tec_store *s, uint32_t at, const struct given *g,
                              struct tec_groups_change *change, struct tec_error *err)
{
    struct tec_group_view group;
    uint64_t version = s->segments[at].version + 1;
    if (!tec_groups_of(s->groups, at, &group))
        return tec_fail(err, TEC_NOT_FOUND, "memory: segment '%s' is in no group", g->id);
    struct tec_log_record r = change_record(s, TEC_LOG_PUT, s->segments[at].segment, group.id);
    TEC_TRY(append_text(s, &r, version, g, err));
    TEC_TRY(tec_groups_update(s->groups, at, &g->segment, change, err));
    tec_store_kv_leave(s, &s->segments[at]);
    tec_store_text_set(s, at, g->text, g->text_bytes, g->segment.tokens, version);
    return TEC_OK;
}

/* Add or update a segment. With *taken the store owns g->text. */
static enum tec_status put(struct tec_store *s, const struct given *g, uint32_t *segment,
                           struct tec_groups_change *change, bool *taken, struct tec_error *err)
{
    struct tec_group_view group;
    uint32_t at = tec_store_name(s, g->id, strlen(g->id));
    if (at != TEC_NO_SEGMENT && s->segments[at].hash.low == g->segment.text.low &&
        s->segments[at].hash.high == g->segment.text.high) {
        s->counts.same++;
        *segment = at;
        return tec_groups_update(s->groups, at, &g->segment, change,
                                 err); /* says that it is none */
    }
    if (at == TEC_NO_SEGMENT)
        TEC_TRY(add(s, g, &at, change, err));
    else
        TEC_TRY(update(s, at, g, change, err));
    *taken = true;
    *segment = at;
    s->counts.puts++;
    if (change->demoted != TEC_NO_GROUP && tec_groups_of(s->groups, at, &group))
        drop_forms(s, &group);
    return acknowledge(s, err);
}

enum tec_status tec_store_put(struct tec_store *s, const char *id, const char *text,
                              size_t text_bytes, uint32_t tokens, const float *embedding,
                              uint32_t *segment, struct tec_groups_change *change,
                              struct tec_error *err)
{
    bool taken = false;
    TEC_TRY(given_check(s, id, text_bytes, tokens, embedding, err));
    struct given g = {id, tec_store_text_copy(s, text, text_bytes), text_bytes, {0}};
    if (!g.text)
        return tec_fail(err, TEC_NO_MEMORY, "memory: no room for a text of %zu bytes", text_bytes);
    XXH128_hash_t hash = XXH3_128bits(g.text, text_bytes);
    g.segment = (struct tec_segment_input){embedding, tokens, {hash.low64, hash.high64}};
    pthread_mutex_lock(&s->lock);
    enum tec_status status = put(s, &g, segment, change, &taken, err);
    pthread_mutex_unlock(&s->lock);
    if (!taken)
        tec_heap_put(s->heap, g.text);
    return status;
}

static enum tec_status take_away(struct tec_store *s, const char *id,
                                 struct tec_groups_change *change, struct tec_error *err)
{
    struct tec_group_view group;
    uint32_t at = tec_store_name(s, id, strlen(id));
    if (at == TEC_NO_SEGMENT || !tec_groups_of(s->groups, at, &group))
        return tec_fail(err, TEC_NOT_FOUND, "memory has no segment '%.100s'", id);
    struct tec_log_record r = change_record(s, TEC_LOG_DELETE, s->segments[at].segment, group.id);
    TEC_TRY(tec_store_append(s, &r, err));
    uint32_t left = group.first != at ? group.first : tec_groups_next(s->groups, at);
    TEC_TRY(tec_groups_remove(s->groups, at, change, err));
    tec_store_segment_free(s, at);
    s->counts.removes++;
    if (change->demoted != TEC_NO_GROUP && tec_groups_of(s->groups, left, &group))
        drop_forms(s, &group);
    return acknowledge(s, err);
}

enum tec_status tec_store_remove(struct tec_store *s, const char *id,
                                 struct tec_groups_change *change, struct tec_error *err)
{
    pthread_mutex_lock(&s->lock);
    enum tec_status status = take_away(s, id, change, err);
    pthread_mutex_unlock(&s->lock);
    return status;
}

enum tec_status tec_store_query(struct tec_store *s, const float *embedding, uint32_t most,
                                uint32_t *out, uint32_t *n, struct tec_error *err)
{
    pthread_mutex_lock(&s->lock);
    enum tec_status status = tec_groups_query(s->groups, embedding, most, out, n, err);
    pthread_mutex_unlock(&s->lock);
    return status;
}

enum tec_status tec_store_sync(struct tec_store *s, struct tec_error *err)
{
    struct tec_log_syncing syncing;
    if (!s->log)
        return TEC_OK;
    pthread_mutex_lock(&s->lock);
    enum tec_status status = tec_store_recover(s, err);
    if (status == TEC_OK)
        status = tec_log_sync_begin(s->log, &syncing, err);
    pthread_mutex_unlock(&s->lock);
    TEC_TRY(status);
    tec_log_sync_wait(&syncing); /* whoever prepares a prompt meanwhile is not in its way */
    pthread_mutex_lock(&s->lock);
    status = tec_log_sync_end(s->log, &syncing, err);
    pthread_mutex_unlock(&s->lock);
    return status;
}

bool tec_store_fails(struct tec_store *s)
{
    pthread_mutex_lock(&s->lock);
    bool is = s->log && tec_log_fails(s->log);
    pthread_mutex_unlock(&s->lock);
    return is;
}

struct tec_store_counts tec_store_counts(struct tec_store *s)
{
    pthread_mutex_lock(&s->lock);
    struct tec_store_counts c = s->counts;
    c.step = tec_groups_now(s->groups);
    if (s->log) {
        c.file_bytes = tec_log_bytes(s->log);
    }
    for (int t = 0; t < TEC_KEPT_PLACES; t++)
        c.read_bytes[t] = atomic_load(&s->read_bytes[t]);
    c.damages = atomic_load(&s->damages);
    if (s->remote)
        c.remote = tec_remote_counts(s->remote);
    pthread_mutex_unlock(&s->lock);
    return c;
}
