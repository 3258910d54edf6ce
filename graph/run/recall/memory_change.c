/* memory_change.c - what an observation changes: judged as a whole, then done. */
#include "graph/run/recall/memory_own.h"

#include <jansson.h>
#include <string.h>

/* What is to be done; `tokens` of each text in the order of `put`, in the scratch arena. */
struct changes {
    json_t *all, *put, *remove;
    uint32_t *tokens;
};

static enum tec_status read_changes(const struct tec_memory *m, const char *json, size_t bytes,
                                    struct changes *c, struct tec_error *err)
{
    json_error_t where;
    if (bytes > TEC_MEMORY_JSON)
        return tec_fail(err, TEC_INVALID, "%s: changes of %zu bytes; at most %d are possible",
                        m->input->name, bytes, TEC_MEMORY_JSON);
    c->all = json_loadb(json, bytes, JSON_REJECT_DUPLICATES, &where);
    if (!c->all)
        return tec_fail(err, TEC_MALFORMED, "%s: column %d: %s", m->input->name, where.column,
                        where.text);
    c->put = json_object_get(c->all, "put");
    c->remove = json_object_get(c->all, "remove");
    size_t known = (c->put ? 1U : 0U) + (c->remove ? 1U : 0U);
    if (!json_is_object(c->all) || json_object_size(c->all) != known ||
        (c->put && !json_is_object(c->put)) || (c->remove && !json_is_array(c->remove)))
        return tec_fail(err, TEC_MALFORMED,
                        "%s: changes are {\"put\": {ID: TEXT}, \"remove\": [ID]}", m->input->name);
    return TEC_OK;
}

static enum tec_status judge_id(const struct tec_memory *m, const char *id, struct tec_error *err)
{
    size_t n = strlen(id);
    return n >= 1 && n <= TEC_LOG_MAX_ID
               ? TEC_OK
               : tec_fail(err, TEC_INVALID,
                          "%s: '%.60s%s': an id of %zu bytes; 1 to %d are possible", m->input->name,
                          id, n > 60 ? "..." : "", n, TEC_LOG_MAX_ID);
}

/* Sizes alone: nothing is tokenised yet. */
static enum tec_status judge_sizes(const struct tec_memory *m, const struct changes *c,
                                   struct tec_error *err)
{
    size_t n = json_object_size(c->put) + json_array_size(c->remove), sum = 0;
    const char *id;
    json_t *text;
    if (n > TEC_MEMORY_CHANGES)
        return tec_fail(err, TEC_INVALID,
                        "%s: changes of %zu segments in one observation; at most %d are possible: "
                        "send more observations",
                        m->input->name, n, TEC_MEMORY_CHANGES);
    for (size_t i = 0; i < json_array_size(c->remove); i++) {
        id = json_string_value(json_array_get(c->remove, i));
        if (!id)
            return tec_fail(err, TEC_MALFORMED, "%s: remove[%zu] is no string", m->input->name, i);
        TEC_TRY(judge_id(m, id, err));
    }
    json_object_foreach(c->put, id, text)
    {
        size_t bytes = json_string_length(text);
        if (!json_is_string(text))
            return tec_fail(err, TEC_MALFORMED, "%s: the text of '%.60s' is no string",
                            m->input->name, id);
        TEC_TRY(judge_id(m, id, err));
        if (bytes > m->segment_bytes)
            return tec_fail(err, TEC_INVALID,
                            "%s: '%.60s' has %zu bytes; at most %zu are possible (tokens_each is "
                            "%d): shorten it",
                            m->input->name, id, bytes, m->segment_bytes, m->input->tokens_each);
        sum += bytes;
        if (sum > TEC_MEMORY_TEXTS)
            return tec_fail(err, TEC_INVALID,
                            "%s: up to '%.60s' the texts of one observation have %zu bytes; at "
                            "most %d are possible: send more observations",
                            m->input->name, id, sum, TEC_MEMORY_TEXTS);
    }
    return TEC_OK;
}

static enum tec_status judge_tokens(struct tec_memory *m, struct changes *c, struct tec_error *err)
{
    const char *id;
    json_t *text;
    size_t i = 0, most = (size_t)m->input->tokens_each;
    c->tokens = TEC_NEW(&m->scratch, json_object_size(c->put) + 1, uint32_t);
    if (!c->tokens)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for changes of a memory");
    json_object_foreach(c->put, id, text)
    {
        size_t n = 0;
        TEC_TRY(tec_context(err,
                            tec_memory_encode(m, json_string_value(text), json_string_length(text),
                                              m->ids, most, &n, err),
                            "%s: '%.60s'", m->input->name, id));
        if (n < 1 || n > most)
            return tec_fail(err, TEC_INVALID,
                            "%s: '%.60s' has %zu tokens, the pipeline allows 1 to %zu: raise "
                            "tokens_each or shorten it",
                            m->input->name, id, n, most);
        c->tokens[i++] = (uint32_t)n;
    }
    return TEC_OK;
}

static enum tec_status put(struct tec_memory *m, const char *id, const json_t *text,
                           uint32_t tokens, struct tec_error *err)
{
    struct tec_groups_change change;
    uint32_t segment;
    size_t bytes = json_string_length(text);
    TEC_TRY(tec_memory_embed(m, json_string_value(text), bytes, err));
    enum tec_status status = tec_store_put(m->store, id, json_string_value(text), bytes, tokens,
                                           m->embedding, &segment, &change, err);
    return tec_context(err, status, "%s: '%.60s'", m->input->name, id);
}

static enum tec_status carry_out(struct tec_memory *m, const struct changes *c,
                                 struct tec_error *err)
{
    struct tec_groups_change done;
    const char *id;
    json_t *text;
    size_t at = 0;
    for (size_t i = 0; i < json_array_size(c->remove); i++) {
        id = json_string_value(json_array_get(c->remove, i));
        enum tec_status status = tec_store_remove(m->store, id, &done, err);
        if (status == TEC_NOT_FOUND) /* said before: changes may be sent again */
            status = TEC_OK;
        TEC_TRY(tec_context(err, status, "%s: remove", m->input->name));
    }
    json_object_foreach(c->put, id, text) TEC_TRY(put(m, id, text, c->tokens[at++], err));
    return TEC_OK;
}

/* Under the lock. `unwritten`: why the file does not know that groups became static, which is no
 * failure: their joint keys and values would be computed again. `unsaid`: what was said and could
 * not be put. */
static enum tec_status step(struct tec_memory *m, struct changes *c, struct tec_error *unwritten,
                            struct tec_error *unsaid, struct tec_error *err)
{
    struct tec_groups_change done;
    if (c->all)
        TEC_TRY(judge_tokens(m, c, err));
    if (m->trial)
        return TEC_OK;
    enum tec_status status = tec_store_step(m->store, ++m->step, &done, unwritten);
    if (status != TEC_OK && status != TEC_IO && status != TEC_NO_MEMORY)
        return tec_fail(err, status, "%s", unwritten->message);
    int64_t moved = (c->all != NULL) + (done.n_promoted > 0) + tec_memory_take_said(m, unsaid);
    status = TEC_OK;
    if (c->all)
        status = carry_out(m, c, err);
    if (moved)
        atomic_fetch_add_explicit(&m->changes, moved, memory_order_release);
    return status;
}

void tec_memory_try(struct tec_memory *m, bool on)
{
    for (int i = 0; i < m->shared->n; i++)
        m->shared->of[i].trial = on;
}

enum tec_status tec_memory_apply(struct tec_memory *m, const char *json, size_t bytes,
                                 struct tec_error *err)
{
    struct changes c = {.all = NULL};
    struct tec_error unwritten = {TEC_OK, ""}, unsaid = {TEC_OK, ""}, why = {TEC_OK, ""};
    enum tec_status status = TEC_OK;
    if (json && bytes)
        status = read_changes(m, json, bytes, &c, &why);
    if (status == TEC_OK && c.all)
        status = judge_sizes(m, &c, &why);
    if (status == TEC_OK) {
        pthread_mutex_lock(&m->lock);
        struct tec_arena_mark mark = tec_arena_mark(&m->scratch);
        status = step(m, &c, &unwritten, &unsaid, &why);
        tec_arena_rewind(&m->scratch, mark);
        pthread_mutex_unlock(&m->lock);
    }
    json_decref(c.all);
    if (status == TEC_IO || unwritten.status != TEC_OK)
        tec_memory_say_failure(m, TEC_IO, "%s", status == TEC_IO ? why.message : unwritten.message);
    if (unsaid.status != TEC_OK)
        tec_memory_say_failure(m, unsaid.status, "%s", unsaid.message);
    return status == TEC_OK ? TEC_OK : tec_fail(err, status, "%s", why.message);
}
