/* groot_robot.c - evaluates a robot of experiment_cfg/metadata.json and runs its steps. */
#include "tests/judge/groot_robot.h"

#include "base/lua.h"

#include <string.h>

enum tec_status tec_groot_robot(struct tec_robot **out, struct tec_verify *v, const json_t *robots,
                                const char *tag, const json_t *data, struct tec_error *err)
{
    const char *path = tec_verify_shipped(v, "robots/experiment.lua");
    json_t *given = json_pack("{s:O, s:{}, s:s, s:O}", "robots", robots, "orders", "embodiment",
                              tag ? tag : "", "data", data);
    json_t *json = NULL;
    if (!given)
        return tec_fail(err, TEC_MALFORMED, "the case lacks metadata or a data configuration");
    enum tec_status status =
        tec_lua_read_given(&json, path, tec_verify_shipped(v, "robots"), NULL, given, v->heap, err);
    if (status == TEC_OK)
        status = tec_robot_parse(out, json, NULL, path, v->arena, err);
    json_decref(json);
    json_decref(given);
    return status;
}

const char *tec_groot_key(const char *name)
{
    const char *dot = strchr(name, '.');
    return dot ? dot + 1 : name;
}

static json_t *keys_of(const json_t *names)
{
    json_t *keys = json_array();
    const json_t *name;
    size_t i;
    json_array_foreach(names, i, name)
        json_array_append_new(keys, json_string(tec_groot_key(json_string_value(name))));
    return keys;
}

static json_t *modes_of(json_t *modes)
{
    json_t *out = json_object(), *mode;
    const char *name;
    json_object_foreach(modes, name, mode) json_object_set(out, tec_groot_key(name), mode);
    return out;
}

json_t *tec_groot_data(const json_t *config, int cameras)
{
    json_t *video = json_array(), *state = keys_of(json_object_get(config, "state_keys")), *key;
    json_t *modes = modes_of(json_object_get(config, "state_modes"));
    size_t i;
    for (int c = 0; c < cameras; c++)
        json_array_append_new(video, json_sprintf("cam%d", c));
    json_array_foreach(state, i, key) if (json_is_true(json_object_get(config, "state_sin_cos")))
        json_object_set_new(modes, json_string_value(key), json_string("sin_cos"));
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "video", video, "state", state, "action",
                     keys_of(json_object_get(config, "action_keys")), "state_modes", modes,
                     "action_modes", modes_of(json_object_get(config, "action_modes")));
}

bool tec_groot_columns(const json_t *robots, const char *tag, const json_t *keys, const char *key,
                       int *first, int *n)
{
    const json_t *parts =
        json_object_get(json_object_get(json_object_get(robots, tag), "modalities"), "action");
    const json_t *name;
    size_t i;
    *first = 0;
    json_array_foreach(keys, i, name)
    {
        const char *one = tec_groot_key(json_string_value(name));
        const json_t *shape = json_object_get(json_object_get(parts, one), "shape");
        *n = (int)json_integer_value(json_array_get(shape, 0));
        if (strcmp(one, key) == 0)
            return true;
        *first += *n;
    }
    return false;
}

float *tec_groot_state(const struct tec_robot *robot, struct tec_verify *v, const double *raw,
                       int width)
{
    size_t room = (size_t)tec_transforms_width(&robot->state) + 1;
    double *x = TEC_NEW(v->arena, 2 * room, double);
    float *out = TEC_NEW(v->arena, (size_t)width + 1, float);
    if (!x || !out || robot->n_state > width)
        return NULL;
    memcpy(x, raw, (size_t)robot->n_raw * sizeof *x);
    tec_transforms_run(&robot->state, 0, x, NULL, x + room);
    for (int i = 0; i < robot->n_state; i++)
        out[i] = (float)x[i];
    return out;
}

float *tec_groot_sent(const struct tec_robot *robot, struct tec_verify *v, const float *chunk,
                      int rows, int dim)
{
    size_t room = (size_t)tec_transforms_width(&robot->actions) + 1, n = (size_t)robot->n_actions;
    double *x = TEC_NEW(v->arena, 2 * room, double);
    float *out = TEC_NEW(v->arena, (size_t)rows * n + 1, float);
    for (int r = 0; x && out && r < rows; r++) {
        for (int i = 0; i < robot->n_model_actions; i++)
            x[i] = (double)chunk[(size_t)r * (size_t)dim + (size_t)i];
        tec_transforms_run(&robot->actions, r, x, NULL, x + room);
        for (size_t i = 0; i < n; i++)
            out[(size_t)r * n + i] = (float)x[i];
    }
    return x ? out : NULL;
}
