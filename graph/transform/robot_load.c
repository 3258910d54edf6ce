#include "base/lua.h"
#include "graph/transform/robot.h"

#include <string.h>

/* Image features in the order of the file: it is the order of the model's camera slots. */
static json_t *image_features(const json_t *config)
{
    json_t *features = json_object_get(config, "input_features"), *feature, *list = json_array();
    const char *name;
    json_object_foreach(features, name, feature)
    {
        const char *type = json_string_value(json_object_get(feature, "type"));
        if (type && strcmp(type, "VISUAL") == 0 &&
            json_array_append_new(list, json_string(name)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static int set(json_t *given, const char *name, json_t *value)
{
    return value ? json_object_set(given, name, value) : 0;
}

static json_t *make_given(const struct tec_checkpoint *c)
{
    json_t *given = json_object();
    json_t *slots = c ? image_features(c->config) : NULL;
    int bad = !given || (c && !slots);
    if (!bad && c) {
        bad |= set(given, "config", c->config);
        bad |= set(given, "preprocessor", c->preprocessor);
        bad |= set(given, "postprocessor", c->postprocessor);
        bad |= set(given, "slots", slots);
    }
    json_decref(slots);
    if (!bad)
        return given;
    json_decref(given);
    return NULL;
}

enum tec_status tec_robot_load(struct tec_robot **out, const char *path, const char *root,
                               const char *variant, const struct tec_checkpoint *checkpoint,
                               struct tec_arena *arena, struct tec_error *err)
{
    json_t *given = make_given(checkpoint), *json = NULL;
    if (!given)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for what it is given", path);
    enum tec_status status = tec_lua_read_given(&json, path, root, given, arena->heap, err);
    if (status == TEC_OK)
        status = tec_robot_parse(out, json, variant, path, arena, err);
    json_decref(json);
    json_decref(given);
    return status;
}

/* Does the processor's normaliser leave values of this kind ("STATE", "ACTION") alone? */
static bool is_identity(const json_t *processor, const char *kind)
{
    size_t i;
    json_t *step;
    json_array_foreach(json_object_get(processor, "steps"), i, step)
    {
        json_t *map = json_object_get(json_object_get(step, "config"), "norm_map");
        const char *mode = json_string_value(json_object_get(map, kind));
        if (mode)
            return strcmp(mode, "IDENTITY") == 0;
    }
    return true;
}

static enum tec_status check_there(const struct tec_checkpoint *c, const struct tec_norm *norm,
                                   const json_t *processor, const char *kind, struct tec_error *err)
{
    if (norm->mode != TEC_NORM_NONE || is_identity(processor, kind))
        return TEC_OK;
    return tec_fail(err, TEC_NOT_FOUND,
                    "%s: no statistics of the %s; a base checkpoint has none, take a fine-tuned "
                    "one",
                    c->path, kind);
}

enum tec_status tec_robot_norms(const struct tec_robot *robot,
                                const struct tec_checkpoint *checkpoint, const char *asset,
                                struct tec_norm *state, struct tec_norm *actions,
                                struct tec_arena *arena, struct tec_error *err)
{
    const struct tec_checkpoint *c = checkpoint;
    *state = *actions = (struct tec_norm){.mode = TEC_NORM_NONE};
    if (robot->norm == TEC_NORM_NONE)
        return TEC_OK;
    if (c->layout == TEC_LAYOUT_LEROBOT) {
        if (robot->n_state > 0) {
            TEC_TRY(tec_checkpoint_norm_lerobot(c, state, "observation.state", arena, err));
            TEC_TRY(check_there(c, state, c->preprocessor, "STATE", err));
        }
        TEC_TRY(tec_checkpoint_norm_lerobot(c, actions, "action", arena, err));
        return check_there(c, actions, c->postprocessor, "ACTION", err);
    }
    if (robot->norm == TEC_NORM_MIN_MAX)
        return tec_fail(err, TEC_MALFORMED,
                        "robot %s takes its mode from the checkpoint, but %s does not say one",
                        robot->name, c->path);
    if (!asset)
        asset = robot->asset;
    if (robot->n_state > 0)
        TEC_TRY(tec_checkpoint_norm_openpi(c, state, asset, "state", robot->norm, arena, err));
    return tec_checkpoint_norm_openpi(c, actions, asset, "actions", robot->norm, arena, err);
}
