/* groot.c - opens a checkpoint of GR00T for one kind of robot and reads the inputs of a case. */
#include "tests/judge/groot.h"
#include "tests/judge/stage_times.h"

#include <stdio.h>
#include <string.h>

static json_t *overrides_of(const struct tec_verify *v)
{
    const json_t *tag = json_object_get(v->json, "embodiment_tag");
    int cameras = (int)json_integer_value(json_object_get(v->json, "cameras"));
    json_t *slots = json_array();
    for (int i = 0; i < cameras; i++)
        json_array_append_new(slots, json_sprintf("video.cam%d", i));
    json_t *all =
        json_pack("{s:O}", "embodiment", tag ? tag : json_object_get(v->json, "embodiment_id"));
    if (cameras)
        json_object_set(all, "slots", slots);
    json_decref(slots);
    return all;
}

/* Sizes of pictures "image.0", "image.1", ... of the case's inputs, and a slot for each. */
static enum tec_status add_sizes(json_t *overrides, struct tec_verify *v, struct tec_error *err)
{
    struct tec_tensors *inputs;
    json_t *sizes = json_array(), *slots = json_array();
    const char *path = tec_arena_printf(v->arena, "%s/inputs.safetensors", v->dir);
    enum tec_status status = path ? tec_tensors_open(&inputs, path, v->heap, err) : TEC_NO_MEMORY;
    for (size_t i = 0; status == TEC_OK && i < tec_tensors_count(inputs); i++) {
        char name[32];
        snprintf(name, sizeof name, "image.%zu", i);
        const struct tec_stored *t = tec_tensors_find(inputs, name);
        if (!t || t->rank != 3)
            break;
        json_array_append_new(sizes, json_pack("[I, I]", t->shape[0], t->shape[1]));
        json_array_append_new(slots, json_string(name));
    }
    if (status == TEC_OK)
        tec_tensors_close(inputs);
    if (json_array_size(sizes)) {
        json_object_set(overrides, "picture_sizes", sizes);
        json_object_set(overrides, "slots", slots);
    }
    json_decref(sizes);
    json_decref(slots);
    return status;
}

static void *read_as(struct tec_groot *g, const char *name, enum tec_dtype dtype, size_t *bytes)
{
    const struct tec_stored *t = tec_tensors_find(g->pi.inputs, name);
    void *p = t ? tec_arena_push(g->pi.v->arena, t->bytes + 1, 1, 64) : NULL;
    if (!p || t->dtype != dtype ||
        tec_tensors_read(g->pi.inputs, t, 0, p, t->bytes, NULL) != TEC_OK)
        return NULL;
    *bytes = t->bytes;
    return p;
}

float *tec_groot_floats(struct tec_groot *g, const struct tec_tensors *from, const char *name,
                        size_t *n)
{
    const struct tec_stored *t = tec_tensors_find(from, name);
    *n = t ? (size_t)tec_stored_count(t) : 0;
    float *data = t ? TEC_NEW(g->pi.v->arena, *n + 1, float) : NULL;
    if (!data || tec_tensors_read_f32(from, t, 0, data, *n, NULL) != TEC_OK)
        return NULL;
    return data;
}

/* The case's prompt has a token for each row of a picture, ours one for the picture. */
static enum tec_status read_tokens(struct tec_groot *g, struct tec_error *err)
{
    const struct tec_model *m = g->pi.model;
    size_t bytes;
    int *ids = read_as(g, "tokens", TEC_I32, &bytes), run = 0, done = 0;
    if (!ids)
        return tec_fail(err, TEC_NOT_FOUND, "inputs: no tokens");
    for (size_t i = 0; i < bytes / sizeof *ids; i++) {
        bool picture = ids[i] == m->text.picture;
        if (!picture || run == tec_vision_tokens(&m->vision, done))
            ids[g->prefix.n_text++] = ids[i];
        done += picture && run == tec_vision_tokens(&m->vision, done);
        run += picture;
    }
    g->prefix.ids = ids;
    return TEC_OK;
}

/* Pictures of sizes of their own. */
static enum tec_status read_apart(struct tec_groot *g, struct tec_error *err)
{
    for (int i = 0; i < g->pi.model->n_slots; i++) {
        size_t bytes;
        const uint8_t *image = read_as(g, g->pi.model->slots[i], TEC_U8, &bytes);
        if (!image)
            return tec_fail(err, TEC_NOT_FOUND, "inputs: no %s", g->pi.model->slots[i]);
        g->prefix.picture[g->prefix.n_pictures++] = image;
    }
    return TEC_OK;
}

static enum tec_status read_pictures(struct tec_groot *g, struct tec_error *err)
{
    const struct tec_model *m = g->pi.model;
    size_t bytes = 0, one = tec_model_picture_bytes(m);
    if (m->vision.n_sizes)
        return read_apart(g, err);
    const uint8_t *images = read_as(g, "images", TEC_U8, &bytes);
    if (!images || bytes % one != 0 || bytes / one > TEC_MAX_CAMERAS)
        return tec_fail(err, TEC_SHAPE, "inputs: images must be whole pictures of %zu bytes", one);
    for (size_t i = 0; i < bytes / one; i++)
        g->prefix.picture[g->prefix.n_pictures++] = images + i * one;
    return TEC_OK;
}

static enum tec_status read_inputs(struct tec_groot *g, struct tec_error *err)
{
    const struct tec_model *m = g->pi.model;
    size_t n = 0;
    TEC_TRY(read_pictures(g, err));
    TEC_TRY(read_tokens(g, err));
    g->noise = tec_groot_floats(g, g->pi.inputs, "noise", &n);
    if (!g->noise || n != (size_t)m->flow.horizon * (size_t)m->flow.dim)
        return tec_fail(err, TEC_SHAPE, "inputs: noise must be [%d, %d]", m->flow.horizon,
                        m->flow.dim);
    return TEC_OK;
}

enum tec_status tec_groot_open(struct tec_groot *g, struct tec_verify *v, struct tec_error *err)
{
    *g = (struct tec_groot){.pi = {.v = v}};
    const char *path = json_string_value(json_object_get(v->json, "checkpoint"));
    if (!path)
        return tec_fail(err, TEC_MALFORMED, "%s/case.json: no checkpoint", v->dir);
    json_t *overrides = overrides_of(v);
    bool apart = json_object_get(v->json, "model") != NULL;
    enum tec_status status = apart ? add_sizes(overrides, v, err) : TEC_OK;
    if (status == TEC_OK)
        status = tec_pi_open_beside(&g->pi, v, path, NULL, overrides, err);
    json_decref(overrides);
    TEC_TRY(status);
    if (!tec_model_denoises(g->pi.model))
        return tec_fail(err, TEC_UNSUPPORTED, "model '%s' denoises nothing", g->pi.model->name);
    TEC_TRY(tec_pi_open_tensors(&g->pi, err));
    return read_inputs(g, err);
}

void tec_groot_finish(struct tec_groot *g)
{
    tec_pi_finish(&g->pi);
}

enum tec_status tec_groot_plan(struct tec_groot *g, struct tec_plan **plan, int steps, bool taps,
                               struct tec_error *err)
{
    TEC_TRY(tec_pi_plan(&g->pi, plan, steps, 0, 0, taps, err));
    return tec_prefix_check(*plan, &g->prefix, err);
}

enum tec_status tec_groot_run(struct tec_groot *g, struct tec_plan *plan, float *chunk,
                              struct tec_error *err)
{
    const struct tec_action_inputs a = {.noise = g->noise, .state = g->state};
    struct tec_replay replay = {0};
    int region = tec_kv_pool_take(&plan->prefixes);
    if (region < 0)
        return tec_fail(err, TEC_INVALID, "no region for a frame");
    tec_launch_prefix(plan, &plan->parts[0], region, &g->prefix, &a, &replay);
    tec_verify_replayed(g->pi.v, plan, &replay);
    tec_launch_actions(plan, &plan->parts[0], chunk);
    tec_kv_pool_drop(&plan->prefixes, region);
    return tec_device_failure(g->pi.device, err);
}
