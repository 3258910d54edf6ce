/* smolvla.c - opens a LeRobot folder as a robot and a model, and brings raw observations of a case
 * through both, as a session does. */
#include "tests/judge/smolvla.h"
#include "tests/judge/observation.h"
#include "tests/judge/stage_times.h"

#include "base/lua.h"

#include <stdio.h>
#include <string.h>

enum { TEXT = 8000, IDS = TEXT + 64 };

static enum tec_status open_robot(struct tec_smolvla *s, struct tec_error *err)
{
    struct tec_verify *v = s->pi.v;
    const struct tec_model *m = s->pi.model;
    TEC_TRY(tec_robot_load(&s->robot, tec_verify_shipped(v, "robots/lerobot.lua"),
                           tec_verify_shipped(v, "robots"), NULL, NULL, s->pi.checkpoint, v->arena,
                           err));
    s->robot->unlimited = true; /* the published code holds no action to its statistics */
    TEC_TRY(tec_robot_agree(s->robot, s->pi.checkpoint, v->arena, err));
    TEC_TRY(tec_robot_norms(s->robot, s->pi.checkpoint, NULL, &s->state_norm, &s->action_norm,
                            v->arena, err));
    const struct tec_observer_needs needs = {.slots = m->slots,
                                             .n_slots = m->n_slots,
                                             .image_h = m->vision.image_size,
                                             .image_w = m->vision.image_size,
                                             .state_width = tec_model_state(m),
                                             .action_width = m->flow.dim,
                                             .text_max = TEXT,
                                             .state_norm = s->state_norm,
                                             .action_norm = s->action_norm};
    return tec_observer_create(&s->observer, s->robot, &needs, v->heap, err);
}

static enum tec_status open_text(struct tec_smolvla *s, struct tec_error *err)
{
    struct tec_verify *v = s->pi.v;
    const char *path = tec_verify_shipped(v, "models/prompts.lua");
    if (!s->pi.checkpoint->tokenizer)
        return tec_fail(err, TEC_NOT_FOUND, "%s has no tokenizer", s->pi.checkpoint->path);
    TEC_TRY(tec_tokenizer_open(&s->tokenizer, s->pi.checkpoint->tokenizer, v->heap, err));
    TEC_TRY(tec_lua_read(&s->templates, path, tec_verify_shipped(v, "models"), v->heap, err));
    return tec_template_parse(&s->template, s->templates, s->robot->prompt_template, path, v->arena,
                              err);
}

static enum tec_status give_buffers(struct tec_smolvla *s, struct tec_error *err)
{
    struct tec_arena *arena = s->pi.v->arena;
    const struct tec_model *m = s->pi.model;
    const struct tec_observation_sizes sizes = {.slots = m->n_slots,
                                                .picture_bytes = tec_model_picture_bytes(m),
                                                .floats = true,
                                                .width = tec_model_state(m),
                                                .text = TEXT};
    s->ids = TEC_NEW(arena, IDS, int);
    return s->ids ? tec_verify_observation(&s->seen, &sizes, arena, err)
                  : tec_fail(err, TEC_NO_MEMORY, "no memory to judge with");
}

enum tec_status tec_smolvla_open(struct tec_smolvla *s, struct tec_verify *v, struct tec_error *err)
{
    *s = (struct tec_smolvla){.n_images = 0};
    TEC_TRY(tec_pi_open(&s->pi, v, NULL, NULL, err));
    if (!s->pi.model->vision.floats)
        return tec_fail(err, TEC_UNSUPPORTED, "%s reads pictures of bytes", s->pi.checkpoint->path);
    TEC_TRY(tec_pi_open_tensors(&s->pi, err));
    TEC_TRY(open_robot(s, err));
    TEC_TRY(open_text(s, err));
    return give_buffers(s, err);
}

void tec_smolvla_finish(struct tec_smolvla *s)
{
    tec_observer_destroy(s->observer);
    tec_tokenizer_close(s->tokenizer);
    json_decref(s->templates);
    tec_pi_finish(&s->pi);
}

static const struct tec_stored *find(struct tec_smolvla *s, const char *prefix, const char *name)
{
    const char *full = tec_arena_printf(s->pi.v->arena, "%s%s", prefix, name);
    return full ? tec_tensors_find(s->pi.inputs, full) : NULL;
}

float *tec_smolvla_floats(struct tec_smolvla *s, const char *prefix, const char *name, size_t *n)
{
    const struct tec_stored *t = find(s, prefix, name);
    *n = t ? (size_t)tec_stored_count(t) : 0;
    float *data = t ? TEC_NEW(s->pi.v->arena, *n + 1, float) : NULL;
    if (!data || tec_tensors_read_f32(s->pi.inputs, t, 0, data, *n, NULL) != TEC_OK)
        return NULL;
    return data;
}

/* The camera's picture as it came: false when the case has none. */
static bool add_picture(struct tec_smolvla *s, const char *prefix, const char *input,
                        struct tec_value *value)
{
    struct tec_arena *arena = s->pi.v->arena;
    const char *name = tec_arena_printf(arena, "image.%s", input);
    const struct tec_stored *t = name ? find(s, prefix, name) : NULL;
    void *bytes =
        t && t->dtype == TEC_U8 && t->rank == 3 ? tec_arena_push(arena, t->bytes + 1, 1, 16) : NULL;
    if (!bytes || tec_tensors_read(s->pi.inputs, t, 0, bytes, t->bytes, NULL) != TEC_OK)
        return false;
    *value = (struct tec_value){.name = input,
                                .kind = TEC_VALUE_U8,
                                .rank = 3,
                                .shape = {t->shape[0], t->shape[1], t->shape[2]},
                                .data = bytes,
                                .bytes = t->bytes};
    return true;
}

static enum tec_status observe(struct tec_smolvla *s, const char *prefix, const char *task,
                               struct tec_error *err)
{
    struct tec_value values[TEC_ROBOT_MAX_CAMERAS + 2];
    size_t n = 0, n_state = 0;
    const float *state = tec_smolvla_floats(s, prefix, "observation.state", &n_state);
    if (!state || !task)
        return tec_fail(err, TEC_NOT_FOUND, "the case has no task or no %sobservation.state",
                        prefix);
    values[n++] = (struct tec_value){
        .name = "task", .kind = TEC_VALUE_TEXT, .data = task, .bytes = strlen(task)};
    values[n++] = (struct tec_value){.name = "observation.state",
                                     .kind = TEC_VALUE_F32,
                                     .rank = 1,
                                     .shape = {(int64_t)n_state},
                                     .data = state,
                                     .bytes = n_state * sizeof *state};
    for (int i = 0; i < s->robot->n_cameras; i++)
        if (s->robot->cameras[i].input &&
            add_picture(s, prefix, s->robot->cameras[i].input, &values[n]))
            n++;
    return tec_robot_observe(s->observer, values, n, &s->seen, err);
}

static bool is_masked(const struct tec_smolvla *s, const char *slot)
{
    const json_t *list = json_object_get(s->pi.v->json, "padding_mask_false"), *name;
    size_t i;
    json_array_foreach(list, i, name) if (strcmp(json_string_value(name), slot) == 0) return true;
    return false;
}

/* The images in their order, and the prefix of all and of the valid ones. */
static void order_images(struct tec_smolvla *s)
{
    const struct tec_model *m = s->pi.model;
    int blanks =
        (int)json_integer_value(json_object_get(s->pi.checkpoint->config, "empty_cameras"));
    bool marks = m->vision.n_before + m->vision.n_behind > 0;
    s->n_images = 0;
    s->prefix = s->all = (struct tec_prefix_input){.state = s->seen.state};
    for (int came = 1; came >= 0; came--)
        for (int i = 0; i < m->n_slots; i++) {
            if (s->seen.valid[i] != (came == 1) || (!came && blanks-- <= 0))
                continue;
            int at = s->n_images++;
            const uint8_t *picture = (const uint8_t *)(const void *)s->seen.pictures_f32[i];
            s->slot[at] = i;
            s->valid[at] = came && !is_masked(s, m->slots[i]);
            s->all.picture[s->all.n_pictures++] = picture;
            if (s->valid[at])
                s->prefix.picture[s->prefix.n_pictures++] = picture;
            s->prefix.around |= (unsigned)s->valid[at] << at;
        }
    s->prefix.n_around = marks ? s->n_images : 0;
}

enum tec_status tec_smolvla_read(struct tec_smolvla *s, const char *prefix, const char *task,
                                 struct tec_error *err)
{
    size_t n = 0, n_noise, most = (size_t)s->pi.max_text;
    TEC_TRY(observe(s, prefix, task, err));
    const struct tec_template_values values = {
        {{.text = s->seen.text, .n = s->seen.text_bytes}}, 1, s->seen.bins, s->seen.n_bins};
    TEC_TRY(tec_template_encode(s->template, s->tokenizer, &values, s->ids, IDS, &n, s->pi.v->arena,
                                err));
    if (s->robot->max_tokens > 0 && (size_t)s->robot->max_tokens < most)
        most = (size_t)s->robot->max_tokens;
    if (n > most && s->robot->keep_last)
        memmove(s->ids, s->ids + (n - most), most * sizeof *s->ids);
    n = n < most ? n : most;
    order_images(s);
    s->prefix.ids = s->all.ids = s->ids;
    s->prefix.n_text = s->all.n_text = (int)n;
    s->noise = tec_smolvla_floats(s, prefix, "noise", &n_noise);
    const struct tec_flow *f = &s->pi.model->flow;
    if (!s->noise || n_noise != (size_t)f->horizon * (size_t)f->dim)
        return tec_fail(err, TEC_SHAPE, "%snoise must have %d x %d values", prefix, f->horizon,
                        f->dim);
    return TEC_OK;
}

void tec_smolvla_run(struct tec_smolvla *s, struct tec_plan *plan,
                     const struct tec_prefix_input *prefix, const struct tec_action_inputs *more,
                     float *chunk)
{
    struct tec_action_inputs a = more ? *more : (struct tec_action_inputs){.n_fixed = 0};
    struct tec_replay replay = {0};
    int region = tec_kv_pool_take(&plan->prefixes);
    a.noise = s->noise;
    a.state = s->seen.state;
    tec_launch_prefix(plan, &plan->parts[0], region, prefix, &a, &replay);
    tec_verify_replayed(s->pi.v, plan, &replay);
    if (chunk)
        tec_launch_actions(plan, &plan->parts[0], chunk);
    tec_kv_pool_drop(&plan->prefixes, region);
}

float *tec_smolvla_actions(struct tec_smolvla *s, const float *chunk, int n)
{
    struct tec_arena *arena = s->pi.v->arena;
    size_t width = (size_t)s->robot->n_model_actions;
    float *out = TEC_NEW(arena, (size_t)n * width + 1, float);
    double *x = TEC_NEW(arena, 2 * (width + 1), double);
    for (int r = 0; out && x && r < n; r++) {
        for (size_t i = 0; i < width; i++)
            x[i] = (double)chunk[(size_t)r * (size_t)s->pi.model->flow.dim + i];
        tec_transforms_run(&s->robot->decode, r, x, NULL, x + width + 1);
        for (size_t i = 0; i < width; i++)
            out[(size_t)r * width + i] = (float)x[i];
    }
    return x ? out : NULL;
}

float *tec_smolvla_robot_actions(struct tec_smolvla *s, const float *chunk, int n)
{
    size_t all = (size_t)n * (size_t)s->robot->n_actions;
    double *x = TEC_NEW(s->pi.v->arena, all + 1, double);
    float *out = TEC_NEW(s->pi.v->arena, all + 1, float);
    if (!x || !out || tec_robot_act(s->observer, chunk, n, s->seen.state_raw, x, NULL) != n)
        return NULL;
    for (size_t i = 0; i < all; i++)
        out[i] = (float)x[i];
    return out;
}
