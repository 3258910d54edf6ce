/* robot_load.c - loads a robot description from a Lua file, with the checkpoint's configuration as
 * `given`.
 *
 * Runs at load. What the description leaves to the checkpoint, such as the way of reshaping
 * pictures, is completed here; without a checkpoint a default stands in, so that sizes can still be
 * checked. */
#include "base/lua.h"
#include "graph/transform/fields.h"
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

/* Keys of a table in the order of its file, which a table of a script would lose. */
static json_t *keys_of(const json_t *table)
{
    json_t *keys = json_array(), *value, *items = tec_json_iterable(table);
    const char *key;
    json_object_foreach(items, key, value) json_array_append_new(keys, json_string(key));
    return keys;
}

/* By the tag of a robot: which cameras, parts of a state and of an action it has, in order. */
static json_t *orders_of(const json_t *robots)
{
    json_t *orders = json_object(), *robot, *items = tec_json_iterable(robots);
    const char *tag;
    json_object_foreach(items, tag, robot)
    {
        const json_t *m = json_object_get(robot, "modalities");
        json_object_set_new(orders, tag,
                            json_pack("{s:o, s:o, s:o}", "video",
                                      keys_of(json_object_get(m, "video")), "state",
                                      keys_of(json_object_get(m, "state")), "action",
                                      keys_of(json_object_get(m, "action"))));
    }
    return orders;
}

/* The columns that are changes, counted from 1; NULL where none may be. */
static enum tec_status list_relative(json_t **out, const struct tec_checkpoint *c,
                                     struct tec_arena *arena, struct tec_error *err)
{
    bool *changes, bad = false;
    int n;
    *out = NULL;
    TEC_TRY(tec_robot_relative(&changes, &n, c, arena, err));
    if (n == 0)
        return TEC_OK;
    *out = json_array();
    for (int i = 0; i < n; i++)
        bad |= changes[i] && json_array_append_new(*out, json_integer(i + 1)) != 0;
    if (*out && !bad)
        return TEC_OK;
    json_decref(*out);
    return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for its columns", c->path);
}

enum tec_status tec_robot_given(json_t **out, const struct tec_checkpoint *c,
                                struct tec_arena *arena, struct tec_error *err)
{
    json_t *relative = NULL, *stored = NULL;
    if (c) {
        TEC_TRY(tec_checkpoint_steps(c, &stored, arena, err));
        enum tec_status status = list_relative(&relative, c, arena, err);
        if (status != TEC_OK) {
            json_decref(stored);
            return status;
        }
    }
    json_t *given = json_object();
    json_t *slots = c ? image_features(c->config) : NULL;
    int bad = !given || (c && !slots);
    if (!bad && c) {
        bad |= set(given, "config", c->config);
        bad |= set(given, "preprocessor", c->preprocessor);
        bad |= set(given, "postprocessor", c->postprocessor);
        bad |= set(given, "tokenizer", c->tokenization);
        if (c->robots) {
            bad |= set(given, "robots", c->robots);
            bad |= json_object_set_new(given, "orders", orders_of(c->robots));
        }
        bad |= set(given, "processor", c->processor);
        bad |= set(given, "statistics", c->robot_statistics);
        bad |= set(given, "slots", slots);
        bad |= set(given, "relative", relative);
        bad |= set(given, "stored", stored);
        bad |= c->bare && json_object_set_new(given, "bare", json_true()) != 0;
        bad |= c->adapter && json_object_set_new(given, "adapter", json_true()) != 0;
    }
    json_decref(slots);
    json_decref(relative);
    json_decref(stored);
    *out = given;
    if (!bad)
        return TEC_OK;
    json_decref(given);
    return tec_fail(err, TEC_NO_MEMORY, "no memory for what a robot is given");
}

enum tec_status tec_robot_load(struct tec_robot **out, const char *path, const char *root,
                               const char *shipped, const char *variant,
                               const struct tec_checkpoint *checkpoint, struct tec_arena *arena,
                               struct tec_error *err)
{
    json_t *given = NULL, *json = NULL;
    TEC_TRY(tec_context(err, tec_robot_given(&given, checkpoint, arena, err), "%s", path));
    enum tec_status status =
        tec_lua_read_given(&json, path, root, shipped, given, arena->heap, err);
    if (status == TEC_OK)
        status = tec_robot_parse(out, json, variant, path, arena, err);
    if (status == TEC_OK)
        status = tec_robot_take(*out, checkpoint, err);
    json_decref(json);
    json_decref(given);
    return status;
}

enum tec_status tec_robot_take(struct tec_robot *robot, const struct tec_checkpoint *checkpoint,
                               struct tec_error *err)
{
    struct tec_processor p;
    if (robot->resize != TEC_RESIZE_CHECKPOINT)
        return TEC_OK;
    robot->resize = TEC_RESIZE_RESHAPE;
    robot->reshape = TEC_RESHAPE_STRETCH;
    if (!checkpoint)
        return TEC_OK;
    TEC_TRY(
        tec_context(err, tec_checkpoint_processor(checkpoint, &p, err), "robot %s", robot->name));
    robot->reshape = p.kind;
    robot->picture_h = p.height;
    robot->picture_w = p.width;
    memcpy(robot->fill, p.fill, sizeof robot->fill);
    return TEC_OK;
}

bool tec_robot_floats(const struct tec_robot *robot)
{
    return robot->resize == TEC_RESIZE_LEROBOT_TORCH || robot->resize == TEC_RESIZE_LEROBOT_CORNER;
}

enum tec_status tec_robot_name(struct tec_robot *robot, const char *name, struct tec_arena *arena,
                               struct tec_error *err)
{
    bool all = true;
    robot->called = tec_arena_printf(arena, "robot '%s' (%s)", name, robot->name);
    robot->prefix = tec_arena_printf(arena, "%s/", name);
    for (int i = 0; i < robot->n_cameras; i++)
        if (robot->cameras[i].input)
            all &= (robot->cameras[i].input =
                        tec_arena_printf(arena, "%s/%s", name, robot->cameras[i].input)) != NULL;
    for (int i = 0; i < robot->n_parts; i++)
        all &= (robot->parts[i].input =
                    tec_arena_printf(arena, "%s/%s", name, robot->parts[i].input)) != NULL;
    for (int i = 0; i < robot->n_ignored; i++)
        all &=
            (robot->ignored[i] = tec_arena_printf(arena, "%s/%s", name, robot->ignored[i])) != NULL;
    robot->prompt_input = tec_arena_printf(arena, "%s/%s", name, robot->prompt_input);
    all &= robot->called && robot->prefix && robot->prompt_input;
    return all ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "robot '%s': no memory", name);
}
