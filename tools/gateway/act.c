/* act.c - JSON with arrays in base64 becomes a request, and a reply becomes that JSON. */
#include "tools/gateway/act.h"

#include "base/json_text.h"
#include "base/text/base64.h"
#include "tools/frames/inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 28 /* of an array */ };

/* A request while it is read. */
struct reading {
    const struct tec_gateway_names *names;
    struct tec_arena *arena;
    struct tec_error *err;
    size_t n;
    struct tec_client_value values[TEC_MAX_INPUTS];
    json_t *tectum; /* owned */
};

/* --- values ----------------------------------------------------------------------------------- */

static enum tec_status decode(struct reading *r, struct tec_client_value *v, const json_t *text)
{
    size_t n = json_string_length(text), room = n / 4 * 3 + 3;
    void *data = tec_arena_push(r->arena, room, 1, 16);
    v->data = data;
    if (!data)
        return tec_fail(r->err, TEC_NO_MEMORY, "no memory for a value");
    return tec_base64_read(data, room, json_string_value(text), n, &v->bytes)
               ? TEC_OK
               : tec_fail(r->err, TEC_MALFORMED, "this is no base64");
}

/* {"__numpy__": BASE64, "dtype": "|u1", "shape": [H, W, 3]}: the server judges type and size. */
static enum tec_status read_numpy(struct reading *r, struct tec_client_value *v, const json_t *json)
{
    const json_t *data = json_object_get(json, "__numpy__"),
                 *shape = json_object_get(json, "shape");
    const char *dtype = json_string_value(json_object_get(json, "dtype"));
    if (!json_is_string(data) || !dtype || !json_is_array(shape))
        return tec_fail(r->err, TEC_MALFORMED,
                        "an array is {\"__numpy__\": BASE64, \"dtype\": TEXT, \"shape\": [...]}");
    v->kind = TEC_CLIENT_ARRAY;
    v->rank = (int)json_array_size(shape);
    v->dtype = tec_arena_strdup(r->arena, dtype);
    if (json_array_size(shape) > 4)
        return tec_fail(r->err, TEC_MALFORMED, "an array has at most 4 axes");
    for (int i = 0; i < v->rank; i++) {
        v->shape[i] = json_integer_value(json_array_get(shape, (size_t)i));
        if (!json_is_integer(json_array_get(shape, (size_t)i)) || v->shape[i] < 0 ||
            v->shape[i] > MOST_BYTES)
            return tec_fail(r->err, TEC_MALFORMED, "axis %d is no length", i + 1);
    }
    return v->dtype ? decode(r, v, data) : tec_fail(r->err, TEC_NO_MEMORY, "no memory for a type");
}

static enum tec_status read_text(struct reading *r, struct tec_client_value *v, const json_t *json,
                                 bool picture)
{
    v->kind = picture ? TEC_CLIENT_BYTES : TEC_CLIENT_TEXT;
    if (picture)
        return decode(r, v, json);
    v->bytes = json_string_length(json);
    v->data = tec_arena_strndup(r->arena, json_string_value(json), v->bytes);
    return v->data ? TEC_OK : tec_fail(r->err, TEC_NO_MEMORY, "no memory for a text");
}

static enum tec_status read_value(struct reading *r, struct tec_client_value *v, const json_t *json,
                                  bool picture)
{
    if (json_is_string(json))
        return read_text(r, v, json, picture);
    if (json_is_object(json))
        return read_numpy(r, v, json);
    if (!json_is_array(json) && !json_is_number(json))
        return tec_fail(r->err, TEC_MALFORMED, "expected an array, a number or a text");
    struct tec_value list = {.name = v->name};
    TEC_TRY(tec_input_array(&list, picture ? TEC_WANT_PICTURE : TEC_WANT_NUMBERS, json, r->arena,
                            r->err));
    *v = tec_client_value(&list);
    return TEC_OK;
}

/* --- the request ------------------------------------------------------------------------------ */

/* Statistics are chosen by the pipeline, not by a request: another key would be another scale. */
static enum tec_status check_dataset(struct reading *r, const json_t *json)
{
    const char *asked = json_string_value(json), *has = r->names->dataset;
    if (json_is_null(json) || (asked && has && strcmp(asked, has) == 0))
        return TEC_OK;
    if (!asked)
        return tec_fail(r->err, TEC_MALFORMED, "expected a text");
    return tec_fail(r->err, TEC_NOT_FOUND,
                    has ? "the pipeline's statistics are '%s', not '%.60s'"
                        : "%sthe pipeline has no statistics by dataset, so not '%.60s'",
                    has ? has : "", asked);
}

static enum tec_status set_asked(struct reading *r, const char *name, const json_t *json)
{
    return json_object_set(r->tectum, name, (json_t *)(uintptr_t)json) == 0
               ? TEC_OK
               : tec_fail(r->err, TEC_NO_MEMORY, "no memory for a request");
}

/* What a request says of its session twice is what it says at last. Nothing, and an empty text, is
 * not said: it would be the session of all that say so. */
static enum tec_status add_session(struct reading *r, const json_t *json)
{
    if (json_is_null(json) || (json_is_string(json) && json_string_length(json) == 0))
        return TEC_OK;
    if (!json_is_string(json) || json_string_length(json) > TEC_REQUEST_NAME)
        return tec_fail(r->err, TEC_MALFORMED, "session_id: expected a text of at most %d bytes",
                        TEC_REQUEST_NAME);
    return set_asked(r, "session_id", json);
}

static enum tec_status add_tectum(struct reading *r, json_t *map)
{
    const char *name;
    json_t *json;
    if (!json_is_object(map))
        return tec_fail(r->err, TEC_MALFORMED, "tectum: expected an object");
    if (json_object_get(map, "push"))
        return tec_fail(r->err, TEC_INVALID, "tectum.push: there is nothing to push texts to here");
    json_object_foreach(map, name, json)
        TEC_TRY(strcmp(name, "session_id") == 0 ? add_session(r, json) : set_asked(r, name, json));
    return TEC_OK;
}

static enum tec_status add_value(struct reading *r, const char *name, const json_t *json)
{
    if (json_is_null(json))
        return TEC_OK;
    if (r->n == TEC_MAX_INPUTS)
        return tec_fail(r->err, TEC_MALFORMED, "more than %d values", TEC_MAX_INPUTS);
    struct tec_gateway_input input = tec_gateway_input(r->names, name);
    struct tec_client_value *v = &r->values[r->n++];
    *v = (struct tec_client_value){.name = input.name};
    if (!input.name)
        v->name = tec_arena_strdup(r->arena, name);
    if (!v->name)
        return tec_fail(r->err, TEC_NO_MEMORY, "no memory for a name");
    return read_value(r, v, json, input.kind == TEC_GATEWAY_PICTURE);
}

static enum tec_status add(struct reading *r, const char *name, json_t *json)
{
    if (strcmp(name, "session_id") == 0)
        return add_session(r, json);
    if (strcmp(name, "tectum") == 0)
        return add_tectum(r, json);
    return tec_context(
        r->err, strcmp(name, "unnorm_key") == 0 ? check_dataset(r, json) : add_value(r, name, json),
        "%.100s", name);
}

static enum tec_status read_members(struct reading *r, json_t *object)
{
    const char *name;
    json_t *json;
    if (!json_is_object(object))
        return tec_fail(r->err, TEC_MALFORMED, "an observation is a JSON object");
    json_object_foreach(object, name, json) TEC_TRY(add(r, name, json));
    return TEC_OK;
}

/* Values are counted by what begins or divides them before any memory is taken for them. */
static enum tec_status parse(json_t **out, const char *text, size_t n, struct tec_error *err)
{
    size_t values = 1;
    for (size_t i = 0; i < n; i++)
        values += text[i] == ',' ? 1 : text[i] == '[' ? 2 : text[i] == '{' ? 64 : 0;
    return values > TEC_ACT_VALUES
               ? tec_fail(err, TEC_MALFORMED,
                          "more than %d values: send arrays as {\"__numpy__\": BASE64, ...}",
                          TEC_ACT_VALUES)
               : tec_input_json(out, text, n, err);
}

/* {"encoded": TEXT}: the observation as a JSON text, for clients that cannot write arrays. */
static enum tec_status unwrap(json_t **object, struct tec_act_asked *asked, struct tec_error *err)
{
    const json_t *inner = json_object_get(*object, "encoded");
    json_t *json = NULL;
    asked->encoded = inner != NULL;
    if (!inner)
        return TEC_OK;
    if (!json_is_string(inner) || json_object_size(*object) != 1)
        return tec_fail(err, TEC_MALFORMED, "encoded: expected a JSON text and nothing beside it");
    enum tec_status status = parse(&json, json_string_value(inner), json_string_length(inner), err);
    if (status != TEC_OK)
        return tec_context(err, status, "encoded");
    json_decref(*object);
    *object = json;
    return TEC_OK;
}

static enum tec_status read_and_pack(struct tec_buffer *out, struct tec_act_asked *asked,
                                     struct reading *r, json_t *object, const char *client)
{
    if (!r->tectum || json_object_set_new(r->tectum, "session_id", json_string(client)) != 0)
        return tec_fail(r->err, TEC_NO_MEMORY, "no memory for a request");
    TEC_TRY(read_members(r, object));
    snprintf(asked->session, sizeof asked->session, "%s",
             json_string_value(json_object_get(r->tectum, "session_id")));
    if (!tec_client_pack(out, r->values, r->n, r->tectum))
        return tec_fail(r->err, TEC_MALFORMED, "tectum: the map is too long");
    return out->failed ? tec_fail(r->err, TEC_NO_MEMORY, "no memory for a request") : TEC_OK;
}

enum tec_status tec_act_request(struct tec_buffer *out, struct tec_act_asked *asked,
                                const struct tec_gateway_names *names, const void *body, size_t n,
                                const char *client, struct tec_arena *arena, struct tec_error *err)
{
    struct reading r = {.names = names, .arena = arena, .err = err, .tectum = json_object()};
    json_t *object = NULL;
    enum tec_status status = parse(&object, body, n, err);
    if (status == TEC_OK)
        status = unwrap(&object, asked, err);
    if (status == TEC_OK)
        status = read_and_pack(out, asked, &r, object, client);
    json_decref(object);
    json_decref(r.tectum);
    return status;
}

/* --- the reply -------------------------------------------------------------------------------- */

static void put(struct tec_buffer *out, const char *text)
{
    tec_buffer_bytes(out, text, strlen(text));
}

static void put_row(struct tec_buffer *out, const uint8_t *row, int64_t columns)
{
    char shape[64];
    size_t n = (size_t)columns * sizeof(double);
    put(out, "{\"__numpy__\": \"");
    char *digits = (char *)tec_buffer_push(out, tec_base64_length(n));
    if (digits)
        tec_base64_write(digits, row, n);
    snprintf(shape, sizeof shape, "\", \"dtype\": \"<f8\", \"shape\": [%lld]}", (long long)columns);
    put(out, shape);
}

static void put_actions(struct tec_buffer *out, const struct tec_value *actions)
{
    int64_t rows = actions->shape[0], columns = actions->shape[1];
    const uint8_t *at = actions->data;
    if (rows != 1)
        put(out, "[");
    for (int64_t i = 0; i < rows; i++, at += columns * (int64_t)sizeof(double)) {
        put(out, i ? ", " : "");
        put_row(out, at, columns);
    }
    if (rows != 1)
        put(out, "]");
}

/* The same as a JSON text, whose only characters to escape are quotes. */
static void quote(struct tec_buffer *out, size_t from)
{
    size_t n = out->n - from, quotes = 0;
    for (size_t i = from; i < out->n; i++)
        quotes += out->data[i] == '"';
    if (!tec_buffer_push(out, quotes + 2))
        return;
    uint8_t *to = out->data + out->n;
    *--to = '"';
    for (size_t i = from + n; i-- > from;) {
        *--to = out->data[i];
        if (*to == '"')
            *--to = '\\';
    }
    *--to = '"';
}

enum tec_status tec_act_reply(struct tec_buffer *out, struct tec_gateway_answer *answer,
                              const struct tec_act_asked *asked, const struct tec_buffer *reply,
                              struct tec_arena *arena, struct tec_error *err)
{
    TEC_TRY(tec_gateway_answer_read(answer, reply, arena, err));
    size_t from = out->n;
    put_actions(out, &answer->actions);
    if (asked->encoded)
        quote(out, from);
    return out->failed ? tec_fail(err, TEC_NO_MEMORY, "no memory for a reply") : TEC_OK;
}

void tec_act_error(struct tec_buffer *out, const char *text, size_t n)
{
    json_t *said = json_stringn(text, n);
    json_t *line = json_pack("{s:o}", "error", said ? said : json_string("no UTF-8"));
    char *words = line ? tec_json_whole(line, 0) : NULL;
    put(out, words ? words : "{\"error\": \"no memory\"}");
    free(words);
    json_decref(line);
}
