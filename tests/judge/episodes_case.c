/* episodes_case.c - opens a golden case of recorded episodes and gives the inputs of one episode at
 * a time to the shipped robot. */
#include "tests/judge/episodes.h"

#include <string.h>

const char *tec_episodes_name(struct tec_episodes *j, const char *what)
{
    const char *name = tec_arena_printf(j->pi.v->arena, "%s.%s", j->key, what);
    return name ? name : "";
}

size_t tec_episodes_columns(const struct tec_tensors *from, const char *name, int rows)
{
    const struct tec_stored *t = tec_tensors_find(from, name);
    size_t n = t && t->rank > 0 && t->shape[0] == rows ? 1 : 0;
    for (int i = 1; n && i < t->rank; i++)
        n *= (size_t)t->shape[i];
    return n;
}

/* Every episode has the same columns, so those of the first episode are the case's. */
static size_t case_columns(struct tec_episodes *j, const struct tec_tensors *from, const char *what)
{
    const json_t *first = json_array_get(json_object_get(j->pi.v->json, "episodes"), 0);
    j->key = json_string_value(json_object_get(first, "key"));
    int rows = (int)json_array_size(json_object_get(first, "inferences"));
    return j->key ? tec_episodes_columns(from, tec_episodes_name(j, what), rows) : 0;
}

static json_t *case_cameras(const json_t *json)
{
    const json_t *slots = json_object_get(json_object_get(json, "config"), "slots");
    const json_t *inputs = json_object_get(json_object_get(json, "processing"), "slots");
    json_t *cameras = json_array();
    for (size_t i = 0; i < json_array_size(slots); i++) {
        const char *slot = json_string_value(json_array_get(slots, i));
        const char *input = json_string_value(json_object_get(inputs, slot ? slot : ""));
        json_array_append_new(cameras,
                              json_pack("{s:s, s:s*}", "slot", slot ? slot : "?", "input", input));
    }
    return cameras;
}

/* Make the robot: the shipped one, with the fields that the case gives replaced. */
static enum tec_status make_robot(struct tec_episodes *j, struct tec_error *err)
{
    const json_t *json = j->pi.v->json, *processing = json_object_get(json, "processing");
    bool state = json_is_true(json_object_get(processing, "discrete_state_input"));
    bool quantile = json_is_true(json_object_get(processing, "quantile_norm"));
    const char *resize = json_string_value(json_object_get(processing, "image_resize"));
    int n_state = (int)case_columns(j, j->pi.inputs, "state"), horizon = j->pi.model->flow.horizon;
    int n_actions = (int)case_columns(j, j->pi.expected, "robot_actions") / horizon;
    json_t *over = json_pack(
        "{s:o, s:s, s:{s:[{s:s, s:i}]}, s:{s:i, s:b}, s:{s:s, s:s*}, s:{s:s, s:b, s:i, s:b}}",
        "cameras", case_cameras(json), "resize",
        resize && strncmp(resize, "none", 4) == 0 ? "none" : "openpi_pil", "state", "inputs",
        "input", "state", "size", n_state, "actions", "size", n_actions, "limits", false, "norm",
        "mode", quantile ? "quantile" : "mean_std", "asset",
        json_string_value(json_object_get(json, "asset_id")), "prompt", "template",
        state ? "with_state" : "plain", "state", state, "max_tokens", j->pi.max_text, "truncate",
        true);
    j->robot = json_deep_copy(j->pipeline.robots[0].description);
    if (!over || !j->robot || n_state < 1 || n_actions < 1) {
        json_decref(over);
        return tec_fail(err, TEC_NOT_FOUND, "the case's first episode has no state or actions");
    }
    json_object_update(j->robot, over);
    json_decref(over);
    j->declared = j->pipeline.robots[0];
    j->declared.description = j->robot;
    j->declared.where.file = NULL; /* its inputs come from the case, not from the pipeline */
    j->pipeline.robots = &j->declared;
    j->n_state = n_state;
    return TEC_OK;
}

enum tec_status tec_episodes_open(struct tec_episodes *j, struct tec_error *err)
{
    struct tec_pi *pi = &j->pi;
    const char *named = json_string_value(json_object_get(pi->v->json, "pipeline"));
    const char *root = pi->v->root ? pi->v->root : ".";
    const struct tec_load_options load = {
        .path = tec_arena_printf(pi->v->arena, "%s/%s", root,
                                 named ? named : "pipelines/demo_metaworld.lua"),
        .root = tec_verify_shipped(pi->v, "")};
    if (!load.path)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a path");
    TEC_TRY(tec_pipeline_load(&j->shipped, &load, pi->v->heap, &j->diagnostics, err));
    j->pipeline = *j->shipped;
    for (int i = 0; i < j->shipped->n_nodes; i++)
        if (j->shipped->nodes[i].prefix.index >= 0)
            j->given = &j->shipped->inputs[j->shipped->nodes[i].prefix.index];
    pi->fixed = j->given ? j->given->shape.item[0] : 0;
    TEC_TRY(make_robot(j, err));
    const char *path = json_string_value(json_object_get(pi->v->json, "tokenizer"));
    path = path ? tec_pi_path(pi, path) : pi->checkpoint->tokenizer;
    if (!path)
        return tec_fail(err, TEC_NOT_FOUND, "the case has no tokenizer");
    TEC_TRY(tec_tokenizer_open(&j->tokenizer, path, pi->v->heap, err));
    const struct tec_session_options options = {.pipeline = &j->pipeline,
                                                .model = pi->model,
                                                .checkpoint = pi->checkpoint,
                                                .tokenizer = j->tokenizer,
                                                .root = pi->v->root ? pi->v->root : ".",
                                                .max_text = pi->max_text};
    return tec_session_create(&j->session, &options, pi->v->heap, err);
}

/* Load a tensor of the episode that has n rows, whole; NULL if it is missing or different. */
static const void *load(struct tec_episodes *j, const char *what, enum tec_dtype dtype,
                        size_t *stride)
{
    const char *name = tec_episodes_name(j, what);
    const struct tec_stored *t = tec_tensors_find(j->pi.inputs, name);
    void *data = t && t->dtype == dtype && tec_episodes_columns(j->pi.inputs, name, j->n)
                     ? tec_arena_push(j->pi.v->arena, t->bytes, 1, 16)
                     : NULL;
    if (!data || tec_tensors_read(j->pi.inputs, t, 0, data, t->bytes, NULL) != TEC_OK)
        return NULL;
    *stride = t->bytes / (size_t)j->n;
    return data;
}

static enum tec_status add_value(struct tec_episodes *j, const char *name, enum tec_value_kind kind,
                                 enum tec_dtype dtype, struct tec_error *err)
{
    size_t stride = 0;
    const void *data = load(j, name, dtype, &stride);
    if (!data)
        return tec_fail(err, TEC_NOT_FOUND, "no %s input '%s' of %d rows", tec_dtype_name(dtype),
                        tec_episodes_name(j, name), j->n);
    const struct tec_stored *t = tec_tensors_find(j->pi.inputs, tec_episodes_name(j, name));
    struct tec_value *v = &j->values[j->n_values];
    *v = (struct tec_value){
        .name = name, .kind = kind, .rank = t->rank - 1, .data = data, .bytes = stride};
    if (t->rank < 2 || t->rank > 5)
        return tec_fail(err, TEC_SHAPE, "input '%s' has rank %d", tec_episodes_name(j, name),
                        t->rank);
    for (int i = 1; i < t->rank; i++)
        v->shape[i - 1] = t->shape[i];
    j->stride[j->n_values++] = stride;
    return TEC_OK;
}

enum tec_status tec_episodes_inputs(struct tec_episodes *j, struct tec_error *err)
{
    const struct tec_robot *robot = tec_session_robot(j->session);
    const json_t *text = json_object_get(j->episode, "instruction");
    size_t stride = 0;
    j->n_values = 0;
    for (int i = 0; i < robot->n_cameras && j->n_values < TEC_MAX_CAMERAS; i++)
        if (robot->cameras[i].input)
            TEC_TRY(add_value(j, robot->cameras[i].input, TEC_VALUE_U8, TEC_U8, err));
    TEC_TRY(add_value(j, "state", TEC_VALUE_F32, TEC_F32, err));
    if (!json_is_string(text))
        return tec_fail(err, TEC_MALFORMED, "the episode has no instruction");
    j->values[j->n_values] = (struct tec_value){.name = robot->prompt_input,
                                                .kind = TEC_VALUE_TEXT,
                                                .data = json_string_value(text),
                                                .bytes = json_string_length(text)};
    j->stride[j->n_values++] = 0;
    if (j->given)
        TEC_TRY(add_value(j, j->given->name, TEC_VALUE_F32, TEC_F32, err));
    j->noise = load(j, "noise", TEC_F32, &stride);
    if (!j->noise || stride != j->chunk * sizeof(float))
        return tec_fail(err, TEC_NOT_FOUND, "no noise of %zu values an inference", j->chunk);
    j->text_width =
        (int)tec_episodes_columns(j->pi.expected, tec_episodes_name(j, "text_ids"), j->n);
    j->prompt_width =
        (int)tec_episodes_columns(j->pi.expected, tec_episodes_name(j, "prompt_ids"), j->n);
    return TEC_OK;
}
