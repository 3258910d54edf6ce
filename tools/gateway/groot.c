/* groot.c - observations by modality become a request, and a chunk becomes actions by part. */
#include "tools/gateway/groot.h"

#include "tools/frames/inputs.h"
#include "tools/gateway/answer.h"
#include "tools/gateway/npy.h"
#include "tools/serve/msgpack_read.h"

#include <stdio.h>
#include <string.h>

enum { NAME = 200, AXES = 8 };

/* A request while it is read. */
struct reading {
    struct tec_groot_asked *asked;
    const struct tec_gateway_names *names;
    struct tec_msgpack r;
    struct tec_arena *arena;
    struct tec_error *err;
    size_t n;
    struct tec_client_value values[TEC_MAX_INPUTS];
};

static bool is_text(const struct tec_msgpack_token *t)
{
    return t->kind == TEC_MSGPACK_STR || t->kind == TEC_MSGPACK_BIN;
}

static enum tec_status next(struct reading *in, struct tec_msgpack_token *t)
{
    return tec_msgpack_next(&in->r, t, in->err);
}

/* --- values ----------------------------------------------------------------------------------- */

/* The members of a map that is an array, of either form. */
struct members {
    struct tec_msgpack_token npy, type, data;
    int64_t shape[AXES];
    int axes; /* -1: there is no shape */
};

static enum tec_status read_axes(struct reading *in, struct members *m,
                                 const struct tec_msgpack_token *list)
{
    struct tec_msgpack_token t;
    if (list->kind != TEC_MSGPACK_ARRAY || list->n > AXES)
        return tec_fail(in->err, TEC_MALFORMED, "an array's shape is a list of at most %d", AXES);
    m->axes = (int)list->n;
    for (int i = 0; i < m->axes; i++) {
        TEC_TRY(next(in, &t));
        if (t.kind != TEC_MSGPACK_UINT || t.u > 1 << 28)
            return tec_fail(in->err, TEC_MALFORMED, "axis %d of an array is no length", i + 1);
        m->shape[i] = (int64_t)t.u;
    }
    return TEC_OK;
}

static enum tec_status read_members(struct reading *in, struct members *m, uint32_t pairs)
{
    struct tec_msgpack_token key, t;
    for (uint32_t i = 0; i < pairs; i++) {
        TEC_TRY(next(in, &key));
        if (!is_text(&key))
            return tec_fail(in->err, TEC_MALFORMED, "a name is no text");
        TEC_TRY(next(in, &t));
        if (tec_msgpack_is(&key, "shape")) {
            TEC_TRY(read_axes(in, m, &t));
            continue;
        }
        if (tec_msgpack_is(&key, "as_npy"))
            m->npy = t;
        else if (tec_msgpack_is(&key, "type"))
            m->type = t;
        else if (tec_msgpack_is(&key, "data"))
            m->data = t;
        TEC_TRY(tec_msgpack_skip(&in->r, &t, in->err));
    }
    return TEC_OK;
}

/* {"__ndarray_class__": true, "as_npy": BYTES}, or msgpack-numpy's {nd, type, kind, shape, data}.
 */
static enum tec_status read_array(struct reading *in, struct tec_client_value *v, uint32_t pairs,
                                  int rank)
{
    struct members m = {.axes = -1};
    TEC_TRY(read_members(in, &m, pairs));
    if (m.npy.kind == TEC_MSGPACK_BIN)
        return tec_npy_read(v, m.npy.data, m.npy.n, rank, in->arena, in->err);
    if (!is_text(&m.type) || m.data.kind != TEC_MSGPACK_BIN || m.axes < 0)
        return tec_fail(in->err, TEC_MALFORMED,
                        "expected an array {__ndarray_class__, as_npy} or {nd, type, shape, data}");
    in->asked->packed = true;
    v->kind = TEC_CLIENT_ARRAY;
    v->dtype = tec_arena_strndup(in->arena, (const char *)m.type.data, m.type.n);
    v->data = m.data.data;
    v->bytes = m.data.n;
    return v->dtype ? tec_npy_squeeze(v, m.shape, m.axes, rank, in->err)
                    : tec_fail(in->err, TEC_NO_MEMORY, "no memory for a type");
}

/* A text, or lists of one text each: of a batch, of its steps. */
static enum tec_status read_text(struct reading *in, struct tec_client_value *v,
                                 struct tec_msgpack_token t)
{
    while (t.kind == TEC_MSGPACK_ARRAY && t.n == 1)
        TEC_TRY(next(in, &t));
    if (!is_text(&t))
        return tec_fail(in->err, TEC_MALFORMED, "expected an array, a text or a list of one text");
    v->kind = TEC_CLIENT_TEXT;
    v->data = t.data;
    v->bytes = t.n;
    return TEC_OK;
}

/* The robot's input for MODALITY.KEY or KEY; a text under any other name is the prompt. */
static struct tec_gateway_input input_of(const struct reading *in, const char *name, bool text)
{
    struct tec_gateway_input input = tec_gateway_input(in->names, name);
    const char *dot = strchr(name, '.');
    if (!input.name && dot)
        input = tec_gateway_input(in->names, dot + 1);
    if (!input.name && text)
        input = (struct tec_gateway_input){in->names->robot->prompt_input, TEC_GATEWAY_PROMPT};
    return input;
}

static enum tec_status add(struct reading *in, const char *modality,
                           const struct tec_msgpack_token *key)
{
    struct tec_msgpack_token t;
    char name[NAME];
    if (!is_text(key) || key->n > NAME / 2 || memchr(key->data, 0, key->n))
        return tec_fail(in->err, TEC_MALFORMED, "a name is no text of at most %d bytes", NAME / 2);
    snprintf(name, sizeof name, "%s%.*s", modality, (int)key->n, (const char *)key->data);
    TEC_TRY(next(in, &t));
    if (in->n == TEC_MAX_INPUTS)
        return tec_fail(in->err, TEC_MALFORMED, "more than %d values", TEC_MAX_INPUTS);
    struct tec_client_value *v = &in->values[in->n++];
    struct tec_gateway_input input = input_of(in, name, t.kind != TEC_MSGPACK_MAP);
    *v = (struct tec_client_value){.name = input.name};
    if (!input.name)
        v->name = tec_arena_strdup(in->arena, name);
    if (!v->name)
        return tec_fail(in->err, TEC_NO_MEMORY, "no memory for a name");
    enum tec_status status = t.kind == TEC_MSGPACK_MAP
                                 ? read_array(in, v, t.n, input.kind == TEC_GATEWAY_PICTURE ? 3 : 1)
                                 : read_text(in, v, t);
    return tec_context(in->err, status, "%s", name);
}

/* --- requests --------------------------------------------------------------------------------- */

/* {"video": {...}, "state": {...}, "language": {...}} */
static enum tec_status read_nested(struct reading *in)
{
    struct tec_msgpack_token map, modality, t, key;
    TEC_TRY(next(in, &map));
    for (uint32_t i = 0; map.kind == TEC_MSGPACK_MAP && i < map.n; i++) {
        char prefix[16] = "";
        TEC_TRY(next(in, &modality));
        TEC_TRY(next(in, &t));
        bool text = tec_msgpack_is(&modality, "language");
        if (!text && !tec_msgpack_is(&modality, "video") && !tec_msgpack_is(&modality, "state"))
            return tec_fail(in->err, TEC_MALFORMED,
                            "an observation has the modalities video, state and language");
        if (!text)
            snprintf(prefix, sizeof prefix, "%.*s.", (int)modality.n, (const char *)modality.data);
        if (t.kind != TEC_MSGPACK_MAP)
            return tec_fail(in->err, TEC_MALFORMED, "a modality is a map");
        for (uint32_t k = 0; k < t.n; k++) {
            TEC_TRY(next(in, &key));
            TEC_TRY(add(in, prefix, &key));
        }
    }
    return map.kind == TEC_MSGPACK_MAP
               ? TEC_OK
               : tec_fail(in->err, TEC_MALFORMED, "an observation is a map");
}

static enum tec_status read_data(struct reading *in)
{
    struct tec_msgpack_token map, key, t;
    TEC_TRY(next(in, &map));
    if (map.kind != TEC_MSGPACK_MAP)
        return tec_fail(in->err, TEC_MALFORMED, "data: an observation is a map");
    for (uint32_t i = 0; i < map.n; i++) {
        TEC_TRY(next(in, &key));
        if (tec_msgpack_is(&key, "observation")) {
            in->asked->nested = true;
            TEC_TRY(read_nested(in));
        } else if (tec_msgpack_is(&key, "options")) { /* of other policies than these */
            TEC_TRY(next(in, &t));
            TEC_TRY(tec_msgpack_skip(&in->r, &t, in->err));
        } else {
            TEC_TRY(add(in, "", &key));
        }
    }
    return TEC_OK;
}

static enum tec_status pack(struct tec_buffer *out, struct reading *in, const char *session)
{
    json_t *tectum = json_pack("{s:s}", "session_id", session);
    bool good = tectum && tec_client_pack(out, in->values, in->n, tectum) && !out->failed;
    json_decref(tectum);
    return good ? TEC_OK : tec_fail(in->err, TEC_NO_MEMORY, "no memory for a request");
}

/* The members of the map around all. */
struct envelope {
    struct tec_msgpack_token endpoint, token;
    struct tec_msgpack data; /* its place */
    bool has_data;
};

static enum tec_status open_envelope(struct envelope *e, struct reading *in)
{
    struct tec_msgpack_token map, key, t;
    TEC_TRY(next(in, &map));
    if (map.kind != TEC_MSGPACK_MAP)
        return tec_fail(in->err, TEC_MALFORMED, "a request is a map {endpoint, data}");
    for (uint32_t i = 0; i < map.n; i++) {
        TEC_TRY(next(in, &key));
        if (tec_msgpack_is(&key, "data")) {
            e->data = in->r;
            e->has_data = true;
        }
        TEC_TRY(next(in, &t));
        if (tec_msgpack_is(&key, "endpoint"))
            e->endpoint = t;
        if (tec_msgpack_is(&key, "api_token"))
            e->token = t;
        TEC_TRY(tec_msgpack_skip(&in->r, &t, in->err));
    }
    return TEC_OK;
}

static bool may(const struct tec_key *key, const struct tec_msgpack_token *token)
{
    char shown[TEC_KEY_MAX + 16];
    if (key->n == 0)
        return true;
    if (!is_text(token) || token->n > TEC_KEY_MAX)
        return false;
    int n = snprintf(shown, sizeof shown, "Bearer %.*s", (int)token->n, (const char *)token->data);
    return tec_key_fits(key, shown, (size_t)n);
}

enum tec_groot_endpoint tec_groot_request(struct tec_buffer *out, struct tec_groot_asked *asked,
                                          const struct tec_groot_robot *robot, const void *message,
                                          size_t n, const char *session, struct tec_arena *arena,
                                          struct tec_error *err)
{
    static const char *const words[] = {[TEC_GROOT_PING] = "ping",
                                        [TEC_GROOT_GET_ACTION] = "get_action",
                                        [TEC_GROOT_RESET] = "reset",
                                        [TEC_GROOT_MODALITY] = "get_modality_config"};
    struct reading in = {.asked = asked, .names = &robot->names, .arena = arena, .err = err};
    struct envelope e = {.has_data = false};
    int asks = TEC_GROOT_PING;
    *asked = (struct tec_groot_asked){.nested = false};
    tec_msgpack_open(&in.r, message, n);
    if (open_envelope(&e, &in) != TEC_OK)
        return TEC_GROOT_REFUSED;
    if (!may(robot->key, &e.token)) {
        tec_fail(err, TEC_INVALID, "this server asks for a key: give it as api_token");
        return TEC_GROOT_NO_KEY;
    }
    while (asks < TEC_GROOT_REFUSED && !tec_msgpack_is(&e.endpoint, words[asks]))
        asks++;
    if (!is_text(&e.endpoint)) /* as their server has it */
        asks = TEC_GROOT_GET_ACTION;
    if (asks == TEC_GROOT_REFUSED)
        tec_fail(err, TEC_NOT_FOUND,
                 "there is no endpoint '%.*s': ping, get_action, reset, get_modality_config",
                 (int)(e.endpoint.n < 40 ? e.endpoint.n : 40), (const char *)e.endpoint.data);
    if (asks != TEC_GROOT_GET_ACTION)
        return (enum tec_groot_endpoint)asks;
    in.r = e.data;
    if (!e.has_data)
        tec_fail(err, TEC_NOT_FOUND, "get_action: there is no data");
    else if (read_data(&in) == TEC_OK && pack(out, &in, session) == TEC_OK)
        return TEC_GROOT_GET_ACTION;
    return TEC_GROOT_REFUSED;
}
