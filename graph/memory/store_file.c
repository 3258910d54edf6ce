/* store_file.c - connects a store with its file: replay at open, eviction, compaction and recovery.
 *
 * Runs under the store's lock. A file whose live bytes are less than half is rewritten when it has
 * doubled since it was last looked at, so the cost of compaction stays proportional to what is
 * appended. Forwards may read meanwhile: only the switch to the new file, which waits for no input
 * or output, takes the write lock of the files. */
#include "base/clock.h"
#include "graph/memory/store_own.h"

#include <string.h>

enum { LOOK_FROM = 16 << 20 };
#define RETRY_NS INT64_C(5000000000)

static const struct tec_clock real = {NULL};

static void forget(struct tec_store *s, uint32_t handle)
{
    struct tec_groups_change change;
    (void)tec_groups_remove(s->groups, handle, &change, NULL);
    tec_store_segment_free(s, handle);
}

static void on_damage(void *user, const struct tec_log_damage *damage)
{
    struct tec_store *s = user;
    atomic_fetch_add(&s->damages, 1);
    uint32_t at = damage->segment ? tec_store_serial(s, damage->segment) : TEC_NO_SEGMENT;
    bool text = damage->type == TEC_LOG_PUT || damage->type == TEC_LOG_DELETE;
    struct tec_log_damage named = *damage;
    named.id = at != TEC_NO_SEGMENT ? s->segments[at].id : NULL;
    if (s->options.damage)
        s->options.damage(s->options.user, &named);
    if (at != TEC_NO_SEGMENT && text) /* what is known of it is older than what is lost */
        forget(s, at);
}

/* Report a record that is whole but contradictory, so that this program cannot have written it. */
static void impossible(struct tec_store *s, const struct tec_log_record *r)
{
    const struct tec_log_damage d = {.offset = r->place,
                                     .segment = r->segment,
                                     .type = r->type,
                                     .what = "the record says what cannot be"};
    on_damage(s, &d);
}

/* The group as a record leaves it. */
static void group_set(struct tec_store *s, const struct tec_log_record *r)
{
    (void)tec_groups_restore_group(s->groups, r->group, r->is_static, r->step, r->epoch, NULL);
    tec_groups_restore_clock(s->groups, r->step, 0, 0);
}

static enum tec_status take_text(struct tec_store *s, const struct tec_log_record *r,
                                 struct tec_error *err)
{
    uint32_t at = tec_store_serial(s, r->segment), other = tec_store_name(s, r->id, r->id_bytes);
    struct tec_group_view group;
    if (r->id_bytes < 1 || memchr(r->id, '\0', r->id_bytes) || r->segment == 0 ||
        (at != TEC_NO_SEGMENT && other != at)) {
        impossible(s, r);
        return TEC_OK;
    }
    if (other != TEC_NO_SEGMENT && other != at) /* its removal was in a part that is lost */
        forget(s, other);
    if (at == TEC_NO_SEGMENT)
        TEC_TRY(tec_store_segment_take(s, r->segment, r->id, r->id_bytes, &at, err));
    else if (tec_groups_of(s->groups, at, &group) && group.id != r->group)
        (void)tec_groups_remove(s->groups, at, &(struct tec_groups_change){0}, NULL);
    char *copy = tec_store_text_copy(s, r->text, r->text_bytes);
    if (!copy)
        return tec_fail(err, TEC_NO_MEMORY, "memory: no room for what the file holds");
    tec_store_kv_leave(s, &s->segments[at]);
    tec_store_text_set(s, at, copy, r->text_bytes, r->tokens, r->version);
    static const float none[TEC_MAX_EMBEDDING]; /* of another width: it is made anew */
    const struct tec_segment_input given = {r->embedding ? r->embedding : none, r->tokens,
                                            s->segments[at].hash};
    if (tec_groups_restore(s->groups, at, &given, r->group, r->step, NULL) != TEC_OK) {
        impossible(s, r);
        if (s->segments[at].id && tec_store_serial(s, r->segment) == at)
            tec_store_segment_free(s, at);
        return TEC_OK;
    }
    group_set(s, r);
    return TEC_OK;
}

static enum tec_status on_record(void *user, const struct tec_log_record *r, struct tec_error *err)
{
    struct tec_store *s = user;
    uint32_t at = tec_store_serial(s, r->segment);
    switch (r->type) {
    case TEC_LOG_PUT:
        return take_text(s, r, err);
    case TEC_LOG_DELETE:
        if (at != TEC_NO_SEGMENT)
            forget(s, at);
        group_set(s, r);
        return TEC_OK;
    case TEC_LOG_KV:
        if (!s->options.path || at == TEC_NO_SEGMENT || s->segments[at].version != r->version ||
            s->segments[at].tokens != r->tokens)
            return TEC_OK;
        return tec_store_kv_found(s, at, r->epoch, r->place, err);
    case TEC_LOG_GROUP:
        group_set(s, r);
        return TEC_OK;
    case TEC_LOG_CLOCK:
        tec_groups_restore_clock(s->groups, r->step, r->group, r->epoch);
        s->next_segment = r->segment > s->next_segment ? r->segment : s->next_segment;
        return TEC_OK;
    default:
        return TEC_OK;
    }
}

static void on_made(void *user, const char *folder)
{
    const struct tec_store *s = user;
    if (s->options.made)
        s->options.made(s->options.user, folder);
}

static void on_empty(void *user, int64_t bytes)
{
    const struct tec_store *s = user;
    if (s->options.empty)
        s->options.empty(s->options.user, bytes);
}

enum tec_status tec_store_replay(struct tec_store *s, struct tec_error *err)
{
    const struct tec_log_visitor visitor = {.user = s,
                                            .record = on_record,
                                            .damage = on_damage,
                                            .made = on_made,
                                            .empty = on_empty,
                                            .renews = s->options.embed,
                                            .recomputes = true};
    s->compact_at = LOOK_FROM;
    TEC_TRY(tec_log_open(&s->log, s->options.path, &s->options.key, &s->options.log, &visitor,
                         s->heap, err));
    s->was = *tec_log_encoder(s->log);
    s->was_dim = tec_log_dim(s->log);
    s->other_weights = tec_log_other_weights(s->log);
    s->other_rules = tec_log_other_rules(s->log);
    return TEC_OK;
}

enum tec_status tec_store_begin(struct tec_store *s, struct tec_error *err)
{
    const struct tec_log_visitor visitor = {
        .user = s, .record = on_record, .damage = on_damage, .renews = true, .recomputes = true};
    return tec_log_read(s->options.begins, &s->options.key, &s->was, &s->was_dim, &visitor, s->heap,
                        err);
}

static struct tec_log_record text_record(const struct tec_store *s, uint32_t handle,
                                         const struct tec_group_view *group)
{
    const struct tec_store_segment *u = &s->segments[handle];
    return (struct tec_log_record){.type = TEC_LOG_PUT,
                                   .segment = u->segment,
                                   .version = u->version,
                                   .group = group->id,
                                   .epoch = group->epoch,
                                   .step = group->changed,
                                   .tokens = u->tokens,
                                   .id = u->id,
                                   .id_bytes = strlen(u->id),
                                   .text = u->text,
                                   .text_bytes = u->text_bytes,
                                   .embedding = tec_groups_embedding(s->groups, handle)};
}

static struct tec_log_record kv_record(const struct tec_kv *kv)
{
    return (struct tec_log_record){.type = TEC_LOG_KV,
                                   .segment = kv->segment,
                                   .version = kv->version,
                                   .epoch = kv->epoch,
                                   .tokens = kv->tokens,
                                   .place = kv->place};
}

static struct tec_log_record group_record(const struct tec_group_view *group)
{
    return (struct tec_log_record){.type = TEC_LOG_GROUP,
                                   .group = group->id,
                                   .epoch = group->epoch,
                                   .step = group->changed,
                                   .is_static = group->is_static};
}

/* True if KV is whole in the file. A place behind the end was cut off when the file could not be
 * made durable. */
static bool kept(const struct tec_store *s, const struct tec_kv *kv)
{
    return kv && kv->place != 0 && kv->place < tec_log_bytes(s->log) &&
           !atomic_load(&((struct tec_kv *)(uintptr_t)kv)->damaged);
}

int64_t tec_store_live(const struct tec_store *s, bool with_kv)
{
    const struct tec_log_key *key = &s->options.key;
    int64_t bytes = TEC_LOG_HEADER + 128; /* and the clock */
    struct tec_group_view g;
    for (bool more = tec_groups_each(s->groups, NULL, &g); more;
         more = tec_groups_each(s->groups, &g, &g)) {
        struct tec_log_record r = group_record(&g);
        bytes += tec_log_record_bytes(key, &r);
        for (uint32_t u = g.first; u != TEC_NO_SEGMENT; u = tec_groups_next(s->groups, u)) {
            r = text_record(s, u, &g);
            bytes += tec_log_record_bytes(key, &r);
            if (!with_kv || !kept(s, s->segments[u].kv))
                continue;
            r = kv_record(s->segments[u].kv);
            bytes += tec_log_record_bytes(key, &r);
        }
    }
    return bytes;
}

static enum tec_status copy_segment(struct tec_store *s, struct tec_log *fresh, uint32_t segment,
                                    const struct tec_group_view *group, bool with_kv,
                                    struct tec_error *err)
{
    struct tec_log_record r = text_record(s, segment, group);
    struct tec_kv *kv = s->segments[segment].kv;
    TEC_TRY(tec_log_append(fresh, &r, err));
    if (!kv || !with_kv)
        return TEC_OK;
    kv->moved = 0;
    if (!kept(s, kv))
        return TEC_OK;
    r = kv_record(kv);
    enum tec_status status = tec_log_copy(fresh, s->log, &r, err);
    kv->moved = status == TEC_OK ? r.place : 0;
    if (status != TEC_MALFORMED)
        return status;
    tec_store_kv_damaged(s, kv, 0, false);
    return TEC_OK;
}

static struct tec_log_record clock_record(const struct tec_store *s)
{
    return (struct tec_log_record){.type = TEC_LOG_CLOCK,
                                   .segment = s->next_segment,
                                   .group = tec_groups_next_group(s->groups),
                                   .epoch = tec_groups_next_epoch(s->groups),
                                   .step = tec_groups_now(s->groups)};
}

enum tec_status tec_store_end(struct tec_store *s, struct tec_error *err)
{
    if (!s->log)
        return TEC_OK;
    pthread_mutex_lock(&s->lock);
    struct tec_log_record clock = clock_record(s);
    s->retry_ns = 0;
    enum tec_status status = tec_store_recover(s, err);
    if (status == TEC_OK)
        status = tec_log_end(s->log, &clock, err);
    pthread_mutex_unlock(&s->lock);
    return status;
}

enum tec_status tec_store_copy(struct tec_store *s, struct tec_log *fresh, bool kv,
                               struct tec_error *err)
{
    struct tec_group_view g;
    struct tec_log_record clock = clock_record(s);
    TEC_TRY(tec_log_append(fresh, &clock, err));
    for (bool more = tec_groups_each(s->groups, NULL, &g); more;
         more = tec_groups_each(s->groups, &g, &g)) {
        for (uint32_t u = g.first; u != TEC_NO_SEGMENT; u = tec_groups_next(s->groups, u))
            TEC_TRY(copy_segment(s, fresh, u, &g, kv, err));
        struct tec_log_record r = group_record(&g);
        TEC_TRY(tec_log_append(fresh, &r, err));
    }
    return TEC_OK;
}

/* The file is another one: places in it are those that the copy found. */
static void move_places(struct tec_store *s)
{
    for (uint32_t i = 0; i < s->options.max_segments; i++)
        if (s->segments[i].id && s->segments[i].kv) {
            s->segments[i].kv->place = s->segments[i].kv->moved;
            s->segments[i].kv->moved = 0;
        }
    for (struct tec_kv *kv = s->stale; kv; kv = kv->links[TEC_KEPT_FILE].next)
        kv->place = 0;
}

enum tec_status tec_store_compact_locked(struct tec_store *s, struct tec_error *err)
{
    struct tec_log *fresh = NULL;
    if (!s->log)
        return TEC_OK;
    TEC_TRY(tec_store_stale_warm(s, err));
    TEC_TRY(tec_log_compact_begin(s->log, &fresh, err));
    enum tec_status status = tec_store_copy(s, fresh, true, err);
    if (status != TEC_OK) {
        tec_log_compact_abandon(fresh);
        return tec_context(err, status, "compaction");
    }
    bool placed = false;
    status = tec_log_compact_place(s->log, fresh, &placed, err);
    if (!placed) {
        tec_log_compact_abandon(fresh);
        return status;
    }
    pthread_rwlock_wrlock(&s->files); /* a forward's reads wait for this: nothing here waits */
    tec_log_compact_switch(s->log, fresh);
    move_places(s);
    pthread_rwlock_unlock(&s->files);
    tec_log_close(fresh);
    if (status == TEC_OK) {
        s->counts.compactions++;
        s->compact_at = 2 * tec_log_bytes(s->log);
        s->compact_at = s->compact_at < LOOK_FROM ? LOOK_FROM : s->compact_at;
    }
    return status;
}

enum tec_status tec_store_recover(struct tec_store *s, struct tec_error *err)
{
    int64_t now = tec_clock_now(&real);
    if (!tec_log_read_only(s->log))
        return TEC_OK;
    if (now < s->retry_ns)
        return tec_fail(err, TEC_IO, "%s: could not be made durable; it is soon written anew",
                        tec_log_path(s->log));
    s->retry_ns = now + RETRY_NS;
    return tec_context(err, tec_store_compact_locked(s, err),
                       "a store file that could not be made durable");
}

enum tec_status tec_store_make_room(struct tec_store *s, int64_t bytes, struct tec_error *err)
{
    int64_t most = s->options.log.max_bytes / 4 * 3, live = tec_store_live(s, true);
    while (live + bytes > most) {
        struct tec_kv *kv = s->tiers[TEC_KEPT_FILE].first;
        while (kv && kv->pins > 0)
            kv = kv->links[TEC_KEPT_FILE].next;
        if (!kv)
            break;
        struct tec_log_record gone = kv_record(kv);
        live -= tec_log_record_bytes(&s->options.key, &gone);
        tec_store_file_evict(s, kv);
    }
    return tec_store_compact_locked(s, err);
}

enum tec_status tec_store_append(struct tec_store *s, struct tec_log_record *r,
                                 struct tec_error *err)
{
    struct tec_error first = {TEC_OK, ""};
    if (!s->log)
        return TEC_OK;
    TEC_TRY(tec_store_recover(s, err));
    if (tec_log_bytes(s->log) > s->compact_at) {
        s->compact_at = 2 * tec_log_bytes(s->log);
        if (tec_store_live(s, true) < tec_log_bytes(s->log) / 2)
            (void)tec_store_compact_locked(s, &first); /* not done is no harm */
    }
    enum tec_status status = tec_log_append(s->log, r, &first);
    if (status == TEC_NO_MEMORY && s->options.log.max_bytes > 0) {
        TEC_TRY(tec_store_make_room(s, tec_log_record_bytes(&s->options.key, r), err));
        return tec_log_append(s->log, r, err);
    }
    return status == TEC_OK ? TEC_OK : tec_fail(err, status, "%s", first.message);
}
