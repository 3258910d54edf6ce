/* inspect_memory.c - what the file of a memory says of itself: whose keys, values and vectors, and
 * its texts. */
#include "base/json_text.h"
#include "graph/memory/log.h"
#include "tools/measure/inspect.h"

#include <stdio.h>
#include <sys/stat.h>

static json_t *hash_of(const uint64_t hash[2])
{
    char text[33];
    snprintf(text, sizeof text, "%016llx%016llx", (unsigned long long)hash[0],
             (unsigned long long)hash[1]);
    return json_string(text);
}

static json_t *encoder_of(const struct tec_log_encoder *e)
{
    return e->id[0] || e->id[1]
               ? json_pack("{s:o, s:o}", "name", tec_json_shown(e->name), "hash", hash_of(e->id))
               : json_null();
}

/* Texts by the serial number of their segment: a later record changes or removes one. */
struct texts {
    struct tec_arena *arena;
    json_t *by_segment;
    json_t *damage; /* parts that cannot be read, in their order */
};

static json_t *shown(struct tec_arena *arena, const char *text, size_t n)
{
    struct tec_arena_mark mark = tec_arena_mark(arena);
    const char *whole = tec_arena_strndup(arena, text ? text : "", text ? n : 0);
    json_t *json = whole ? tec_json_shown(whole) : NULL;
    tec_arena_rewind(arena, mark);
    return json;
}

static enum tec_status on_record(void *user, const struct tec_log_record *r, struct tec_error *err)
{
    struct texts *t = user;
    char segment[24];
    int failed = 0;
    snprintf(segment, sizeof segment, "%llu", (unsigned long long)r->segment);
    if (r->type == TEC_LOG_DELETE)
        (void)json_object_del(t->by_segment, segment);
    if (r->type == TEC_LOG_PUT)
        failed = json_object_set_new(
            t->by_segment, segment,
            json_pack("{s:o, s:I, s:o}", "id", shown(t->arena, r->id, r->id_bytes), "tokens",
                      (json_int_t)r->tokens, "text", shown(t->arena, r->text, r->text_bytes)));
    return failed ? tec_fail(err, TEC_NO_MEMORY, "no memory for the report") : TEC_OK;
}

static void on_damage(void *user, const struct tec_log_damage *damage)
{
    json_array_append_new(((struct texts *)user)->damage,
                          json_pack("{s:I, s:I, s:s}", "offset", (json_int_t)damage->offset,
                                    "bytes", (json_int_t)damage->bytes, "what", damage->what));
}

static json_t *list_of(const json_t *by_segment)
{
    const char *segment;
    json_t *text, *list = json_array();
    json_object_foreach((json_t *)(uintptr_t)by_segment, segment,
                        text) if (json_array_append(list, text) != 0) break;
    return list;
}

static enum tec_status add_texts(json_t *report, const char *path, const struct tec_log_key *key,
                                 struct tec_heap *heap, struct tec_arena *arena,
                                 struct tec_error *err)
{
    struct texts t = {.arena = arena, .by_segment = json_object(), .damage = json_array()};
    const struct tec_log_visitor visitor = {
        .user = &t, .record = on_record, .damage = on_damage, .renews = true, .recomputes = true};
    struct tec_log_encoder encoder;
    struct tec_error why = {TEC_OK, ""};
    uint32_t dim;
    enum tec_status status = tec_log_read(path, key, &encoder, &dim, &visitor, heap, &why);
    if (status == TEC_OK &&
        (json_object_set_new(report, "texts", list_of(t.by_segment)) != 0 ||
         json_object_set(report, "damage", t.damage) != 0 ||
         json_object_set_new(report, "damaged",
                             json_integer((json_int_t)json_array_size(t.damage))) != 0))
        status = tec_fail(&why, TEC_NO_MEMORY, "no memory for the report");
    json_decref(t.damage);
    json_decref(t.by_segment);
    /* what its own first page says is no fault of who asks */
    return status == TEC_OK
               ? TEC_OK
               : tec_fail(err, status == TEC_INVALID ? TEC_MALFORMED : status, "%s", why.message);
}

enum tec_status tec_inspect_memory(json_t *report, const char *path, struct tec_heap *heap,
                                   struct tec_arena *arena, struct tec_error *err)
{
    struct tec_log_key key;
    struct stat st;
    uint32_t format;
    TEC_TRY(tec_log_look(path, &key, &format, err));
    if (stat(path, &st) != 0)
        return tec_fail(err, TEC_IO, "%s: cannot be looked at", path);
    if (!format)
        return tec_fail(err, TEC_MALFORMED,
                        "%s: a memory's store that ends after byte %lld, within its first page of "
                        "%d: there is no text in it, and a run begins it anew",
                        path, (long long)st.st_size, TEC_LOG_HEADER);
    json_t *facts = json_pack("{s:o, s:s, s:i, s:I, s:i, s:i, s:i, s:o, s:o, s:o, s:o}", "path",
                              tec_json_shown(path), "layout", "memory", "format", (int)format,
                              "bytes", (json_int_t)st.st_size, "layers", (int)key.layers,
                              "row_bytes", (int)key.row_bytes, "width", (int)key.dim, "model",
                              hash_of(key.model), "tokenizer", hash_of(key.tokenizer), "dtype",
                              hash_of(key.dtype), "encoder", encoder_of(&key.encoder));
    bool whole = facts && json_object_update(report, facts) == 0;
    json_decref(facts);
    return whole ? add_texts(report, path, &key, heap, arena, err)
                 : tec_fail(err, TEC_NO_MEMORY, "no memory for the report");
}
