/* groot.c - opens a checkpoint of GR00T for one kind of robot and reads the inputs of a case. */
#include "tests/judge/groot.h"

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
    int *ids = read_as(g, "tokens", TEC_I32, &bytes), run = 0;
    if (!ids)
        return tec_fail(err, TEC_NOT_FOUND, "inputs: no tokens");
    for (size_t i = 0; i < bytes / sizeof *ids; i++) {
        bool picture = ids[i] == m->text.picture;
        run = picture ? run + 1 : 0;
        if (!picture || run % m->vision.tokens == 1 || m->vision.tokens == 1)
            ids[g->prefix.n_text++] = ids[i];
    }
    g->prefix.ids = ids;
    return TEC_OK;
}

static enum tec_status read_inputs(struct tec_groot *g, struct tec_error *err)
{
    const struct tec_model *m = g->pi.model;
    size_t bytes = 0, n = 0, one = tec_model_picture_bytes(m);
    const uint8_t *images = read_as(g, "images", TEC_U8, &bytes);
    if (!images || bytes % one != 0 || bytes / one > TEC_MAX_CAMERAS)
        return tec_fail(err, TEC_SHAPE, "inputs: images must be whole pictures of %zu bytes", one);
    for (size_t i = 0; i < bytes / one; i++)
        g->prefix.picture[g->prefix.n_pictures++] = images + i * one;
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
    enum tec_status status = tec_pi_open_beside(&g->pi, v, path, NULL, overrides, err);
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
    tec_launch_actions(plan, &plan->parts[0], chunk);
    tec_kv_pool_drop(&plan->prefixes, region);
    return tec_device_failure(g->pi.device, err);
}
