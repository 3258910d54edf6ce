/* input_asks.c - reads the members "#ask" and "#cancel" of a line of inputs, which start and give
 * up requests. */
#include "tools/frames/input_asks.h"

#include "base/nearest.h"

#include <limits.h>
#include <string.h>

bool tec_input_is_ask(const char *name)
{
    return strcmp(name, "#ask") == 0 || strcmp(name, "#cancel") == 0;
}

static enum tec_status find_node(const char **out, const char *name,
                                 const struct tec_pipeline *pipeline, struct tec_error *err)
{
    const char *names[TEC_MAX_ASKS];
    int n = 0;
    for (int i = 0; i < pipeline->n_nodes && n < TEC_MAX_ASKS; i++)
        if (!pipeline->nodes[i].culled && (pipeline->nodes[i].kind == TEC_DECL_DECODE ||
                                           pipeline->nodes[i].kind == TEC_DECL_SCORE))
            names[n++] = pipeline->nodes[i].name;
    for (int i = 0; i < n; i++)
        if (!name || strcmp(names[i], name) == 0) {
            *out = names[i];
            return TEC_OK;
        }
    if (n == 0)
        return tec_fail(err, TEC_NOT_FOUND, "pipeline %.60s has no decode node", pipeline->name);
    const char *near = tec_nearest(name, names, n);
    return tec_fail(err, TEC_NOT_FOUND, "there is no decode node '%.60s'; %s'%s'?", name,
                    near ? "did you mean " : "why not ", near ? near : names[0]);
}

static enum tec_status read_count(int *out, const char *name, const json_t *json, int low,
                                  struct tec_error *err)
{
    json_int_t value = json_is_integer(json) ? json_integer_value(json) : (json_int_t)low - 1;
    if (value < low || value > INT_MAX)
        return tec_fail(err, TEC_MALFORMED, "%s must be an integer from %d", name, low);
    *out = (int)value;
    return TEC_OK;
}

static enum tec_status read_ask(struct tec_input_asks *out, const json_t *json,
                                const struct tec_pipeline *pipeline, struct tec_error *err)
{
    static const char *const known[] = {"node", "max_tokens", "prio"};
    const char *key, *node = NULL;
    json_t *value;
    if (!json_is_object(json))
        return tec_fail(err, TEC_MALFORMED,
                        "must be {\"node\": NAME, \"max_tokens\": N, \"prio\": P}");
    if (out->n_asks == TEC_MAX_ASKS)
        return tec_fail(err, TEC_UNSUPPORTED, "more than %d requests in a frame", TEC_MAX_ASKS);
    struct tec_input_ask *ask = &out->asks[out->n_asks++];
    *ask = (struct tec_input_ask){.node = NULL};
    json_object_foreach((json_t *)(uintptr_t)json, key, value)
    {
        if (strcmp(key, "node") == 0) {
            node = json_string_value(value);
            if (!node)
                return tec_fail(err, TEC_MALFORMED, "node must be a text");
        } else if (strcmp(key, "max_tokens") == 0) {
            TEC_TRY(read_count(&ask->max_tokens, key, value, 1, err));
        } else if (strcmp(key, "prio") == 0) {
            TEC_TRY(read_count(&ask->prio, key, value, 0, err));
        } else {
            const char *near = tec_nearest(key, known, 3);
            return tec_fail(err, TEC_NOT_FOUND, "there is no member '%.60s'; %s%s", key,
                            near ? "did you mean " : "", near ? near : "node, max_tokens, prio");
        }
    }
    return find_node(&ask->node, node, pipeline, err);
}

static enum tec_status read_cancel(struct tec_input_asks *out, const json_t *json,
                                   struct tec_error *err)
{
    if (!json_is_integer(json) || json_integer_value(json) < 0)
        return tec_fail(err, TEC_MALFORMED, "must be the number of a request");
    if (out->n_cancels == TEC_MAX_ASKS)
        return tec_fail(err, TEC_UNSUPPORTED, "more than %d requests in a frame", TEC_MAX_ASKS);
    out->cancels[out->n_cancels++] = json_integer_value(json);
    return TEC_OK;
}

enum tec_status tec_input_asks_read(struct tec_input_asks *out, const char *name,
                                    const json_t *json, const struct tec_pipeline *pipeline,
                                    struct tec_error *err)
{
    bool ask = strcmp(name, "#ask") == 0, list = json_is_array(json);
    size_t n = list ? json_array_size(json) : 1;
    for (size_t i = 0; i < n; i++) {
        const json_t *one = list ? json_array_get(json, i) : json;
        enum tec_status status =
            ask ? read_ask(out, one, pipeline, err) : read_cancel(out, one, err);
        TEC_TRY(tec_context(err, status, "%s[%zu]", name, i));
    }
    return TEC_OK;
}
