/* robot.c - parses a robot description: cameras, state, actions, statistics, prompt and variants.
 *
 * Runs at load. A variant is merged over the common fields before anything is read, so there is one
 * parser for both; the field names of all variants are checked even if another one is chosen. */
#include "graph/transform/robot.h"

#include "base/image/image.h"
#include "base/json_text.h"
#include "base/nearest.h"
#include "graph/transform/fields.h"
#include "graph/transform/robot_fields.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

/* State of one parse. */
struct reading {
    struct tec_robot *robot;
    const char *where;
    struct tec_arena *arena;
    struct tec_error *err;
};

static const char *place(const struct reading *r, const char *field, char *buffer, size_t size)
{
    snprintf(buffer, size, "%.100s: %.60s", r->where, field);
    return buffer;
}

/* Begin to read a table, whose fields are those of robot_fields.def. `where` lives as long as what
 * is returned. */
static struct tec_fields open_table(const struct reading *r, enum tec_robot_table table,
                                    const json_t *json, const char *where)
{
    size_t n;
    const char *const *names = tec_robot_fields(table, &n);
    return tec_fields_open(json, names, n, where, r->arena, r->err);
}

static enum tec_status read_camera(struct reading *r, struct tec_robot_camera *camera,
                                   const json_t *json, size_t index)
{
    static const char *const missing[] = {"error", "mask"};
    static const char *const layouts[] = {"auto", "hwc", "chw"};
    char name[40], where[200];
    snprintf(name, sizeof name, "cameras[%zu]", index + 1);
    struct tec_fields f =
        open_table(r, TEC_ROBOT_TABLE_camera, json, place(r, name, where, sizeof where));
    tec_fields_need(&f, "slot");
    camera->slot = tec_fields_string(&f, "slot", NULL);
    camera->input = tec_fields_string(&f, "input", NULL);
    camera->optional = tec_fields_word(&f, "missing", missing, COUNT(missing), 0) == 1;
    camera->rotate180 = tec_fields_bool(&f, "rotate180", false);
    camera->layout =
        (enum tec_robot_pixels)tec_fields_word(&f, "layout", layouts, COUNT(layouts), 0);
    for (int i = 0; f.status == TEC_OK && &r->robot->cameras[i] != camera; i++) {
        const struct tec_robot_camera *other = &r->robot->cameras[i];
        if (strcmp(other->slot, camera->slot) == 0)
            tec_fields_fail(&f, TEC_MALFORMED, "slot '%.40s' is filled twice", camera->slot);
        if (other->input && camera->input && strcmp(other->input, camera->input) == 0)
            tec_fields_fail(&f, TEC_MALFORMED, "input '%.60s' fills two slots", camera->input);
    }
    return f.status;
}

/* Read `resize`: a word of enum tec_robot_resize, a word of a reshape, or "checkpoint". */
static void read_resize(struct reading *r, struct tec_fields *top)
{
    static const char *const first[] = {"none", "openpi_pil", "lerobot_torch", "lerobot_corner"};
    const char *words[COUNT(first) + TEC_N_RESHAPES + 1];
    struct tec_robot *robot = r->robot;
    int n = 0, n_fill = 0;
    for (size_t i = 0; i < COUNT(first); i++)
        words[n++] = first[i];
    for (int i = 0; i < TEC_N_RESHAPES; i++)
        words[n++] = tec_reshape_words()[i];
    words[n++] = "checkpoint";
    int word = tec_fields_word(top, "resize", words, (size_t)n, TEC_RESIZE_OPENPI_PIL);
    bool reshape = word >= TEC_RESIZE_RESHAPE && word != n - 1;
    robot->resize = word == n - 1 ? TEC_RESIZE_CHECKPOINT
                    : reshape     ? TEC_RESIZE_RESHAPE
                                  : (enum tec_robot_resize)word;
    robot->reshape = (enum tec_reshape_kind)(reshape ? word - TEC_RESIZE_RESHAPE : 0);
    bool box = reshape && robot->reshape == TEC_RESHAPE_BOX;
    const double *fill = tec_fields_numbers(top, "fill", 3, &n_fill);
    if (box != (fill != NULL))
        tec_fields_fail(top, TEC_MALFORMED,
                        box ? "a letterbox needs 'fill', the 3 bytes of its colour"
                            : "'fill' is the colour of resize = \"letterbox\" only");
    for (int c = 0; top->status == TEC_OK && fill && c < 3; c++) {
        if (n_fill != 3 || !(fill[c] >= 0.0 && fill[c] <= 255.0) || rint(fill[c]) != fill[c])
            tec_fields_fail(top, TEC_MALFORMED, "'fill' must be 3 whole numbers of 0 to 255");
        else
            robot->fill[c] = (unsigned char)fill[c];
    }
}

/* What a resize that cuts a square needs beside its word. */
static void read_edge(struct tec_robot *robot, struct tec_fields *top)
{
    bool cuts = robot->resize == TEC_RESIZE_RESHAPE && tec_reshape_edged(robot->reshape);
    bool edge = tec_fields_get(top, "edge"), middle = tec_fields_get(top, "middle");
    if (cuts && !(edge && middle))
        tec_fields_fail(top, TEC_MALFORMED,
                        "resize = \"%s\" needs 'edge', the side in pixels, and 'middle', the part "
                        "of it that stays",
                        tec_reshape_words()[robot->reshape]);
    else if (!cuts && (edge || middle))
        tec_fields_fail(top, TEC_MALFORMED,
                        "'edge' and 'middle' are of resize = \"letterbox-area\", "
                        "\"letterbox-middle\" and \"resize-middle\" only");
    robot->edge = tec_fields_int(top, "edge", 1, TEC_IMAGE_SIDE, 0);
    robot->middle = tec_fields_number(top, "middle", 1.0);
    if (!(robot->middle > 0.0 && robot->middle <= 1.0))
        tec_fields_fail(top, TEC_MALFORMED, "'middle' must be above 0 and at most 1");
}

static enum tec_status read_cameras(struct reading *r, struct tec_fields *top)
{
    static const char *const unknown[] = {"error", "ignore"};
    struct tec_robot *robot = r->robot;
    const json_t *list = tec_fields_list(top, "cameras", TEC_ROBOT_MAX_CAMERAS);
    robot->cameras = TEC_NEW(r->arena, json_array_size(list) + 1, struct tec_robot_camera);
    if (!robot->cameras)
        tec_fields_fail(top, TEC_NO_MEMORY, "no memory for cameras");
    read_resize(r, top);
    read_edge(robot, top);
    robot->unknown_cameras =
        tec_fields_word(top, "unknown_cameras", unknown, COUNT(unknown), 0) == 1;
    robot->ignored = tec_fields_strings(top, "ignore", TEC_ROBOT_MAX_VALUES, &robot->n_ignored);
    TEC_TRY(top->status);
    for (size_t i = 0; i < json_array_size(list); i++) {
        TEC_TRY(read_camera(r, &robot->cameras[i], json_array_get(list, i), i));
        robot->n_cameras++;
    }
    return TEC_OK;
}

static enum tec_status read_part(struct reading *r, struct tec_robot_part *part, const json_t *json,
                                 size_t index)
{
    char name[40], where[200];
    snprintf(name, sizeof name, "state.inputs[%zu]", index + 1);
    struct tec_fields f =
        open_table(r, TEC_ROBOT_TABLE_part, json, place(r, name, where, sizeof where));
    tec_fields_need(&f, "input");
    tec_fields_need(&f, "size");
    part->input = tec_fields_string(&f, "input", NULL);
    part->size = tec_fields_int(&f, "size", 1, TEC_ROBOT_MAX_VALUES, 1);
    r->robot->n_raw += part->size;
    if (r->robot->n_raw > TEC_ROBOT_MAX_VALUES)
        tec_fields_fail(&f, TEC_MALFORMED, "the state has more than %d entries",
                        (int)TEC_ROBOT_MAX_VALUES);
    return f.status;
}

static enum tec_status read_state(struct reading *r, const json_t *json)
{
    struct tec_robot *robot = r->robot;
    char where[200], where_ops[200];
    struct tec_fields f =
        open_table(r, TEC_ROBOT_TABLE_state, json, place(r, "state", where, sizeof where));
    const json_t *list = tec_fields_list(&f, "inputs", TEC_ROBOT_MAX_VALUES);
    robot->parts = TEC_NEW(r->arena, json_array_size(list) + 1, struct tec_robot_part);
    if (!robot->parts)
        tec_fields_fail(&f, TEC_NO_MEMORY, "no memory for its parts");
    TEC_TRY(f.status);
    for (size_t i = 0; i < json_array_size(list); i++) {
        TEC_TRY(read_part(r, &robot->parts[i], json_array_get(list, i), i));
        robot->n_parts++;
    }
    TEC_TRY(tec_transforms_parse(&robot->state, tec_fields_get(&f, "ops"), robot->n_raw, 0,
                                 place(r, "state.ops", where_ops, sizeof where_ops), r->arena,
                                 r->err));
    robot->n_state = robot->state.n_out;
    TEC_TRY(tec_transforms_parse(
        &robot->normalised, tec_fields_get(&f, "normalised"), robot->n_state, 0,
        place(r, "state.normalised", where_ops, sizeof where_ops), r->arena, r->err));
    if (robot->normalised.n_out != robot->n_state)
        tec_fields_fail(&f, TEC_MALFORMED,
                        "normalised makes %d entries of %d; it must keep them all",
                        robot->normalised.n_out, robot->n_state);
    return f.status;
}

/* Names of the action's columns, in their order. */
static enum tec_status read_outputs(struct reading *r, const json_t *list)
{
    struct tec_robot *robot = r->robot;
    int columns = 0;
    robot->outputs = TEC_NEW(r->arena, json_array_size(list) + 1, struct tec_robot_output);
    if (!robot->outputs)
        return tec_fail(r->err, TEC_NO_MEMORY, "no memory for the parts of an action");
    for (size_t i = 0; i < json_array_size(list); i++) {
        char name[48], where[200];
        snprintf(name, sizeof name, "actions.outputs[%zu]", i + 1);
        struct tec_fields f = open_table(r, TEC_ROBOT_TABLE_output, json_array_get(list, i),
                                         place(r, name, where, sizeof where));
        tec_fields_need(&f, "name");
        tec_fields_need(&f, "size");
        struct tec_robot_output *out = &robot->outputs[robot->n_outputs++];
        out->name = tec_fields_string(&f, "name", NULL);
        out->size = tec_fields_int(&f, "size", 1, TEC_ROBOT_MAX_VALUES, 1);
        columns += out->size;
        if (columns > robot->n_actions ||
            (i + 1 == json_array_size(list) && columns < robot->n_actions))
            tec_fields_fail(&f, TEC_MALFORMED, "the parts have %d columns until here, an action %d",
                            columns, robot->n_actions);
        TEC_TRY(f.status);
    }
    return TEC_OK;
}

static enum tec_status read_actions(struct reading *r, const json_t *json)
{
    struct tec_robot *robot = r->robot;
    char where[200], where_ops[200];
    struct tec_fields f =
        open_table(r, TEC_ROBOT_TABLE_actions, json, place(r, "actions", where, sizeof where));
    tec_fields_need(&f, "size");
    robot->n_actions = tec_fields_int(&f, "size", 1, TEC_ROBOT_MAX_VALUES, 1);
    robot->n_model_actions =
        tec_fields_int(&f, "inputs", 1, TEC_ROBOT_MAX_VALUES, robot->n_actions);
    robot->relative = tec_fields_bool(&f, "relative", false);
    robot->max_rows = tec_fields_int(&f, "max_rows", 1, 1 << 20, 0);
    robot->ensembles = tec_fields_get(&f, "ensemble") != NULL;
    robot->ensemble = tec_fields_number(&f, "ensemble", 0.0);
    if (!(robot->ensemble > -10.0 && robot->ensemble < 10.0))
        tec_fields_fail(&f, TEC_MALFORMED, "ensemble is %g; it must be within +-10",
                        robot->ensemble);
    const json_t *outputs = tec_fields_list(&f, "outputs", TEC_ROBOT_MAX_VALUES);
    TEC_TRY(f.status);
    TEC_TRY(read_outputs(r, outputs));
    TEC_TRY(tec_transforms_parse(
        &robot->decode, tec_fields_get(&f, "decode"), robot->n_model_actions, 0,
        place(r, "actions.decode", where_ops, sizeof where_ops), r->arena, r->err));
    if (robot->decode.n_out != robot->n_model_actions)
        tec_fields_fail(&f, TEC_MALFORMED, "decode makes %d columns of %d; it must keep them all",
                        robot->decode.n_out, robot->n_model_actions);
    TEC_TRY(f.status);
    TEC_TRY(tec_transforms_parse(
        &robot->actions, tec_fields_get(&f, "ops"), robot->n_model_actions, robot->n_state,
        place(r, "actions.ops", where_ops, sizeof where_ops), r->arena, r->err));
    if (robot->actions.n_out != robot->n_actions)
        tec_fields_fail(&f, TEC_MALFORMED, "its steps give %d columns, size says %d",
                        robot->actions.n_out, robot->n_actions);
    TEC_TRY(f.status);
    return tec_limits_parse(
        &robot->limits, &robot->unlimited, tec_fields_get(&f, "limits"), robot->n_actions,
        place(r, "actions.limits", where_ops, sizeof where_ops), r->arena, r->err);
}

static enum tec_status read_norm(struct reading *r, const json_t *json)
{
    static const char *const missing[] = {"error", "pass"}, *const precisions[] = {"f32", "f64"};
    static const char *const modes[] = {"none", "mean_std", "quantile", "min_max", "checkpoint"};
    static const enum tec_norm_mode values[] = {TEC_NORM_NONE, TEC_NORM_MEAN_STD, TEC_NORM_QUANTILE,
                                                TEC_NORM_MIN_MAX, TEC_NORM_NONE};
    char where[200];
    struct tec_fields f =
        open_table(r, TEC_ROBOT_TABLE_norm, json, place(r, "norm", where, sizeof where));
    tec_fields_need(&f, "mode");
    int mode = tec_fields_word(&f, "mode", modes, COUNT(modes), 0);
    r->robot->norm = values[mode];
    r->robot->norm_any = (size_t)mode == COUNT(modes) - 1;
    r->robot->norm_pass = tec_fields_word(&f, "missing", missing, COUNT(missing), 0) == 1;
    r->robot->norm_wide = tec_fields_word(&f, "precision", precisions, COUNT(precisions), 0) == 1;
    if ((r->robot->norm_pass || r->robot->norm_wide) && !r->robot->norm_any)
        tec_fields_fail(&f, TEC_MALFORMED,
                        "missing = \"pass\" and precision = \"f64\" are for mode = "
                        "\"checkpoint\"");
    r->robot->norm_eps = tec_fields_number(&f, "eps", 0.0);
    if (!(r->robot->norm_eps >= 0.0 && r->robot->norm_eps < 1.0))
        tec_fields_fail(&f, TEC_MALFORMED, "eps = %g must be 0 or more and less than 1",
                        r->robot->norm_eps);
    r->robot->asset = tec_fields_string(&f, "asset", NULL);
    return f.status;
}

static enum tec_status read_prompt(struct reading *r, const json_t *json)
{
    static const char *const keep[] = {"first", "last"};
    struct tec_robot *robot = r->robot;
    char where[200];
    struct tec_fields f =
        open_table(r, TEC_ROBOT_TABLE_prompt, json, place(r, "prompt", where, sizeof where));
    robot->prompt_input = tec_fields_string(&f, "input", "prompt");
    robot->prompt_template = tec_fields_string(&f, "template", NULL);
    robot->default_prompt = tec_fields_string(&f, "default", NULL);
    robot->state_in_prompt = tec_fields_bool(&f, "state", false);
    robot->state_pad_to = tec_fields_int(&f, "state_pad_to", 1, TEC_ROBOT_MAX_VALUES, 0);
    robot->max_tokens = tec_fields_int(&f, "max_tokens", 1, 1 << 20, 0);
    robot->truncate = tec_fields_bool(&f, "truncate", false);
    robot->keep_last = tec_fields_word(&f, "keep", keep, COUNT(keep), 0) == 1;
    if (robot->keep_last && !robot->truncate)
        tec_fields_fail(&f, TEC_MALFORMED, "keep = \"last\" is for truncate = true");
    if (robot->state_in_prompt && robot->n_state == 0)
        tec_fields_fail(&f, TEC_MALFORMED, "state = true, but this robot has no state");
    if (robot->state_pad_to && robot->state_pad_to < robot->n_state)
        tec_fields_fail(&f, TEC_MALFORMED, "state_pad_to = %d, but the state has %d entries",
                        robot->state_pad_to, robot->n_state);
    return f.status;
}

/* Keep metadata as text: its content concerns only the robot and its clients. */
static void read_metadata(struct reading *r, struct tec_fields *f)
{
    enum { MOST = 1 << 15 };
    const json_t *json = tec_fields_get(f, "metadata");
    bool none = !json || (json_is_array(json) && json_array_size(json) == 0);
    if (f->status != TEC_OK || none)
        return;
    if (!json_is_object(json)) {
        tec_fields_fail(f, TEC_MALFORMED, "metadata must be an object");
        return;
    }
    char *text = tec_json_whole(json, JSON_COMPACT);
    size_t n = text ? strlen(text) : 0;
    if (n > MOST)
        tec_fields_fail(f, TEC_UNSUPPORTED, "metadata of %zu bytes; at most %d", n, MOST);
    else if (!text || !(r->robot->metadata = tec_arena_strdup(r->arena, text)))
        tec_fields_fail(f, TEC_NO_MEMORY, "no memory for its metadata");
    free(text);
}

static enum tec_status read_robot(struct reading *r, const json_t *json)
{
    struct tec_fields f = open_table(r, TEC_ROBOT_TABLE_robot, json, r->where);
    tec_fields_need(&f, "name");
    tec_fields_need(&f, "actions");
    tec_fields_need(&f, "norm");
    r->robot->name = tec_fields_string(&f, "name", NULL);
    r->robot->where = tec_arena_strdup(r->arena, r->where);
    r->robot->rate_hz = tec_fields_number(&f, "rate_hz", 0.0);
    if (r->robot->rate_hz < 0.0)
        tec_fields_fail(&f, TEC_MALFORMED, "rate_hz = %g must not be negative", r->robot->rate_hz);
    r->robot->execute = tec_fields_int(&f, "execute", 1, 1 << 20, 0);
    read_metadata(r, &f);
    TEC_TRY(f.status);
    r->robot->prefix = "";
    r->robot->called = tec_arena_printf(r->arena, "robot %s", r->robot->name);
    if (!r->robot->called || !r->robot->where)
        return tec_fail(r->err, TEC_NO_MEMORY, "%s: no memory for its name", r->where);
    TEC_TRY(read_cameras(r, &f));
    TEC_TRY(read_state(r, tec_fields_get(&f, "state")));
    TEC_TRY(read_actions(r, tec_fields_get(&f, "actions")));
    TEC_TRY(read_norm(r, tec_fields_get(&f, "norm")));
    return read_prompt(r, tec_fields_get(&f, "prompt"));
}

static bool is_section(const char *key)
{
    static const char *const sections[] = {"state", "actions", "norm", "prompt"};
    for (size_t i = 0; i < COUNT(sections); i++)
        if (strcmp(sections[i], key) == 0)
            return true;
    return false;
}

/* Merge a variant over the common fields; sections are merged field by field. */
static json_t *merge(const json_t *common, json_t *variant)
{
    json_t *all = json_object();
    const char *key;
    json_t *value;
    if (!all || json_object_update(all, tec_json_iterable(common)) != 0)
        goto fail;
    json_object_foreach(variant, key, value)
    {
        json_t *old = json_object_get(all, key);
        if (is_section(key) && json_is_object(old) && json_is_object(value)) {
            json_t *both = json_copy(old);
            if (!both || json_object_update(both, value) != 0) {
                json_decref(both);
                goto fail;
            }
            value = both;
        } else {
            json_incref(value);
        }
        if (json_object_set_new(all, key, value) != 0)
            goto fail;
    }
    return all;
fail:
    json_decref(all);
    return NULL;
}

static enum tec_status find_variant(struct reading *r, const json_t *json, const char *name,
                                    json_t **out)
{
    json_t *variants = json_object_get(json, "variants");
    size_t n = json_object_size(variants), i = 0;
    *out = json_object_get(variants, name);
    if (*out)
        return TEC_OK;
    const char **known = TEC_NEW(r->arena, n + 1, const char *);
    if (!known)
        return tec_fail(r->err, TEC_NO_MEMORY, "%s: no memory for %zu variants", r->where, n);
    for (void *it = json_object_iter(variants); it; it = json_object_iter_next(variants, it))
        known[i++] = json_object_iter_key(it);
    const char *near = tec_nearest(name, known, (int)n);
    if (!near && n > 0)
        near = known[0];
    return tec_fail(r->err, TEC_NOT_FOUND, "%s: no variant '%.60s'%s%s%s", r->where, name,
                    near ? "; there is '" : "; there are none", near ? near : "", near ? "'" : "");
}

/* Every variant's own field names, so that a mistake shows whichever variant is chosen: those of a
 * robot without name, variant and variants, which come first. */
static enum tec_status check_variants(struct reading *r, const json_t *json)
{
    enum { OWN = 3 };
    size_t n;
    const char *const *names = tec_robot_fields(TEC_ROBOT_TABLE_robot, &n);
    json_t *variants = json_object_get(json, "variants");
    const char *key;
    json_t *value;
    if (variants && !json_is_object(variants) && json_array_size(variants) > 0)
        return tec_fail(r->err, TEC_MALFORMED, "%s: variants must be a table of named variants",
                        r->where);
    json_object_foreach(variants, key, value)
    {
        char where[200], name[80];
        snprintf(name, sizeof name, "variants.%s", key);
        struct tec_fields f = tec_fields_open(
            value, names + OWN, n - OWN, place(r, name, where, sizeof where), r->arena, r->err);
        TEC_TRY(f.status);
    }
    return TEC_OK;
}

enum tec_status tec_robot_parse(struct tec_robot **out, const json_t *json, const char *variant,
                                const char *where, struct tec_arena *arena, struct tec_error *err)
{
    struct reading r = {TEC_NEW(arena, 1, struct tec_robot), where, arena, err};
    json_t *own = NULL, *all = NULL;
    if (!r.robot)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for a robot", where);
    if (!json_is_object(json))
        return tec_fail(err, TEC_MALFORMED, "%s: a robot is a table of named fields", where);
    TEC_TRY(check_variants(&r, json));
    if (!variant)
        variant = json_string_value(json_object_get(json, "variant"));
    if (variant) {
        TEC_TRY(find_variant(&r, json, variant, &own));
        r.robot->variant = tec_arena_strdup(arena, variant);
        if (!r.robot->variant)
            return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for a robot", where);
    }
    all = merge(json, own);
    if (!all)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for a robot", where);
    enum tec_status status = read_robot(&r, all);
    json_decref(all);
    if (status == TEC_OK)
        *out = r.robot;
    return status;
}
