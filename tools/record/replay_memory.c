/* replay_memory.c - what memories began with when a recording began: for a replay that begins so.
 */
#include "base/byte_text.h"
#include "graph/run/recall/memory.h"
#include "tools/record/recorded.h"
#include "tools/record/recording_own.h"
#include "tools/record/replay_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = TEC_MAX_MEMORIES * TEC_MAX_SESSIONS };
/* Of all files: what is counted when they are attached leaves a page for the end of each. */
enum { MOST_BYTES = TEC_RECORDED_MEMORY + MOST * 4096 };

static enum tec_status malformed(const struct tec_mcap_reader *file, const char *what,
                                 struct tec_error *err)
{
    return tec_fail(err, TEC_MALFORMED, "%s: message /tectum/memories: %s", file->path, what);
}

/* The message /tectum/memories, a new reference; NULL: the recording has none. */
static enum tec_status find_message(json_t **json, struct tec_mcap_reader *file,
                                    struct tec_error *err)
{
    struct tec_mcap_message m;
    bool there = false;
    *json = NULL;
    while (!there && tec_mcap_next(file, &m) &&
           !tec_mcap_is(m.topic, "/tectum/frames")) { /* it stands before all of them */
        there = tec_mcap_is(m.topic, "/tectum/memories");
        if (there)
            *json = json_loadb((const char *)m.data, m.n, 0, NULL);
    }
    tec_mcap_rewind(file);
    if (!there || json_is_array(json_object_get(*json, "memories")))
        return TEC_OK;
    json_decref(*json);
    *json = NULL;
    return malformed(file, "this is no JSON object with an array \"memories\"", err);
}

static bool hash_of(uint64_t out[2], const char *text)
{
    char half[17];
    if (!text || strlen(text) != 32 || strspn(text, "0123456789abcdef") != 32)
        return false;
    for (size_t i = 0; i < 2; i++) {
        snprintf(half, sizeof half, "%.16s", text + 16 * i);
        out[i] = strtoull(half, NULL, 16);
    }
    return true;
}

static enum tec_status write_start(struct tec_replay_source *s, struct tec_invocation *call,
                                   struct tec_mcap_name data, const char **path,
                                   struct tec_error *err)
{
    *path = tec_arena_printf(call->arena, "%s/memory-%d", s->folder, s->n_starts);
    FILE *out = *path ? fopen(*path, "wxe") : NULL;
    bool whole = out && fwrite(data.text, 1, data.n, out) == data.n;
    whole = out && fclose(out) == 0 && whole;
    return whole ? TEC_OK
                 : tec_fail(err, TEC_IO, "%s: %s", *path ? *path : s->folder, strerror(errno));
}

/* What is said where there is no file of that state. */
static const char *help_of(struct tec_invocation *call, const json_t *json, bool attached,
                           const char *state)
{
    char bytes[24], most[24];
    long long texts = (long long)json_integer_value(json_object_get(json, "segments"));
    if (attached)
        return tec_arena_printf(call->arena,
                                "it began with %lld texts, state %s, and what the recording holds "
                                "of them is not so; --empty-memories goes on without",
                                texts, state);
    return tec_arena_printf(
        call->arena,
        "it began with %lld texts, state %s, %s, of which the recording holds none (%s at most): "
        "name a file of them with --set resources.NAME.store=FILE, or go on without by "
        "--empty-memories",
        texts, state, tec_byte_text(bytes, json_integer_value(json_object_get(json, "bytes"))),
        tec_byte_text(most, TEC_RECORDED_MEMORY));
}

/* A memory's start; its file has `*left` bytes at most. */
static enum tec_status take(struct tec_replay_source *s, struct tec_invocation *call,
                            const struct tec_mcap_reader *file, const json_t *json, size_t *left,
                            struct tec_error *err)
{
    struct tec_memory_start start = {.path = NULL};
    const char *memory = json_string_value(json_object_get(json, "memory"));
    const char *state = json_string_value(json_object_get(json, "state"));
    const char *attachment = json_string_value(json_object_get(json, "attachment"));
    json_int_t session = json_integer_value(json_object_get(json, "session"));
    struct tec_mcap_name data = {.text = NULL};
    if (!memory || session < 0 || session >= TEC_MAX_SESSIONS || !hash_of(start.hash, state))
        return malformed(file, "a memory has a name, a session and a state", err);
    for (int i = 0; i < s->n_starts; i++)
        if (s->starts[i].session == session && strcmp(s->starts[i].memory, memory) == 0)
            return malformed(file, "it says of a memory twice what it began with", err);
    start.memory = tec_arena_strdup(call->arena, memory);
    start.session = (int)session;
    if (attachment)
        TEC_TRY(tec_mcap_attachment(file, attachment, &data, err));
    if (data.text) {
        if (data.n > *left)
            return malformed(file, "its attachments are larger than a recording holds", err);
        *left -= data.n;
        TEC_TRY(write_start(s, call, data, &start.path, err));
        start.shown = tec_arena_printf(call->arena, "%s:%s", file->path, attachment);
    }
    start.help = help_of(call, json, start.path, state);
    if (!start.memory || !start.help)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a replay");
    s->starts[s->n_starts++] = start;
    return TEC_OK;
}

enum tec_status tec_replay_memories(struct tec_replay_source *s, struct tec_invocation *call,
                                    struct tec_mcap_reader *file, struct tec_error *err)
{
    json_t *json = NULL;
    TEC_TRY(find_message(&json, file, err));
    const json_t *all = json_object_get(json, "memories");
    size_t n = json_array_size(all), left = MOST_BYTES;
    enum tec_status status = TEC_OK;
    s->starts = n > 0 && n <= MOST ? TEC_NEW(call->arena, n, struct tec_memory_start) : NULL;
    if (n > MOST)
        status = tec_fail(err, TEC_MALFORMED,
                          "%s: message /tectum/memories: %zu memories; %d are "
                          "possible",
                          file->path, n, MOST);
    else if (n > 0 && !s->starts)
        status = tec_fail(err, TEC_NO_MEMORY, "no memory for a replay");
    for (size_t i = 0; status == TEC_OK && s->starts && i < n; i++)
        status = take(s, call, file, json_array_get(all, i), &left, err);
    json_decref(json);
    return status;
}

/* Is it the memory of this kv.segments: "mem", or "mem.NODE" of a further node? */
static bool is_of(const char *memory, const char *name, size_t n)
{
    return strncmp(memory, name, n) == 0 && (!memory[n] || memory[n] == '.');
}

static enum tec_status check_store(const struct tec_replay_source *s, const char *name, size_t n,
                                   struct tec_error *err)
{
    const struct tec_memory_start *held = NULL;
    for (int i = 0; i < s->n_starts; i++) {
        if (!is_of(s->starts[i].memory, name, n))
            continue;
        if (!s->starts[i].path)
            return TEC_OK;
        held = &s->starts[i];
    }
    return tec_fail(
        err, TEC_INVALID,
        "--set resources.%.*s.store: a replay keeps no file, and the memory begins %s%s: "
        "leave it out",
        (int)(n < 60 ? n : 60), name, held ? "with what the recording holds of it, " : "empty",
        held ? held->shown : "");
}

enum tec_status tec_replay_check_stores(const struct tec_replay_source *s,
                                        const struct tec_invocation *call, struct tec_error *err)
{
    static const char front[] = "resources.", behind[] = ".store=";
    for (int i = 0; i < call->shared.set.n; i++) {
        const char *word = call->shared.set.item[i];
        if (strncmp(word, front, sizeof front - 1) != 0)
            continue;
        const char *name = word + sizeof front - 1;
        size_t n = strcspn(name, ".=");
        if (strncmp(name + n, behind, sizeof behind - 1) == 0)
            TEC_TRY(check_store(s, name, n, err));
    }
    return TEC_OK;
}

void tec_replay_memories_close(struct tec_replay_source *s)
{
    char path[128];
    for (int i = 0; s->folder[0] && i <= s->n_starts && s->starts; i++) {
        snprintf(path, sizeof path, "%s/memory-%d", s->folder, i);
        unlink(path);
    }
}
