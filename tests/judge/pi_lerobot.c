/* pi_lerobot.c - judges what a LeRobot checkpoint's own processors do to raw data: prompt text,
 * token ids, state and actions. */
#include "tests/judge/pi_lerobot.h"
#include "tests/judge/observation.h"

#include "base/lua.h"
#include "base/store/checkpoint.h"
#include "base/text/tokenizer.h"
#include "graph/transform/observer.h"
#include "graph/transform/template.h"

#include <stdio.h>
#include <string.h>

enum { WIDTH = 256, TEXT = 4000 };

/* The processing part of one case, while it is judged. */
struct processing {
    struct tec_verify *v;
    const json_t *json;
    struct tec_checkpoint *checkpoint;
    struct tec_tensors *inputs, *expected;
    struct tec_robot *robot;
    struct tec_observer *observer;
    struct tec_observation seen;
    int image_h, image_w;
};

static float *load(struct processing *p, struct tec_tensors *from, const char *name, size_t *n)
{
    const struct tec_stored *stored = tec_tensors_find(from, name);
    *n = stored ? (size_t)tec_stored_count(stored) : 0;
    float *data = stored ? TEC_NEW(p->v->arena, *n + 1, float) : NULL;
    if (!data || tec_tensors_read_f32(from, stored, 0, data, *n, NULL) != TEC_OK)
        return NULL;
    return data;
}

/* Both sides compute the formulas in float32 and in the same order, so the bits must be equal. */
static void judge(struct processing *p, const char *name, const double *got, size_t n_got)
{
    size_t n = 0, wrong = 0;
    const float *want = load(p, p->expected, name, &n);
    char check[80];
    snprintf(check, sizeof check, "processing.%s", name);
    tec_verify_compared(p->v, name);
    if (!want || n != n_got) {
        tec_verify_report(p->v, check, 1.0, 0.0, 0.0, false, NULL, "missing or of another size");
        return;
    }
    for (size_t i = 0; i < n; i++)
        wrong += (float)got[i] != want[i] || got[i] != (double)want[i];
    tec_verify_report(p->v, check, (double)wrong, 0.0, 0.0, wrong == 0, NULL, NULL);
}

static enum tec_status open_robot(struct processing *p, struct tec_error *err)
{
    struct tec_arena *arena = p->v->arena;
    struct tec_observer_needs needs = {.state_width = WIDTH, .text_max = TEXT};
    const json_t *size = json_object_get(p->checkpoint->config, "image_resolution");
    TEC_TRY(tec_robot_load(&p->robot, tec_verify_shipped(p->v, "robots/lerobot.lua"),
                           tec_verify_shipped(p->v, "robots"), NULL, NULL, p->checkpoint, arena,
                           err));
    p->robot->unlimited = true; /* the published code holds no action to its statistics */
    p->image_h = (int)json_integer_value(json_array_get(size, 0));
    p->image_w = (int)json_integer_value(json_array_get(size, 1));
    needs.image_h = p->image_h;
    needs.image_w = p->image_w;
    if (needs.image_h < 1 || needs.image_w < 1 || needs.image_h > 4096 || needs.image_w > 4096)
        return tec_fail(err, TEC_MALFORMED, "%s: no image_resolution", p->checkpoint->path);
    needs.n_slots = p->robot->n_cameras;
    needs.action_width = p->robot->n_model_actions;
    TEC_TRY(tec_robot_norms(p->robot, p->checkpoint, NULL, &needs.state_norm, &needs.action_norm,
                            arena, err));
    return tec_observer_create(&p->observer, p->robot, &needs, p->v->heap, err);
}

static enum tec_status give_buffers(struct processing *p, struct tec_error *err)
{
    const struct tec_observation_sizes sizes = {
        .slots = p->robot->n_cameras,
        .picture_bytes = (size_t)p->image_h * (size_t)p->image_w * 3 * sizeof(float),
        .floats = true,
        .width = WIDTH,
        .text = TEXT};
    return tec_verify_observation(&p->seen, &sizes, p->v->arena, err);
}

/* Observe the raw state and task of the case, with a black picture for every camera. */
static enum tec_status observe(struct processing *p, struct tec_error *err)
{
    struct tec_value values[TEC_ROBOT_MAX_CAMERAS + 2];
    size_t n = 0, n_state = 0, pixels = (size_t)p->image_h * (size_t)p->image_w * 3;
    const char *task = json_string_value(json_object_get(p->json, "task"));
    const float *state = load(p, p->inputs, "raw.state", &n_state);
    void *black = tec_arena_push(p->v->arena, pixels, 1, 16);
    if (!task || !state || !black)
        return tec_fail(err, TEC_NOT_FOUND, "the case has no task or no raw.state");
    values[n++] = (struct tec_value){
        .name = "task", .kind = TEC_VALUE_TEXT, .data = task, .bytes = strlen(task)};
    values[n++] = (struct tec_value){.name = "observation.state",
                                     .kind = TEC_VALUE_F32,
                                     .rank = 1,
                                     .shape = {(int64_t)n_state},
                                     .data = state,
                                     .bytes = n_state * sizeof *state};
    for (int i = 0; i < p->robot->n_cameras; i++)
        if (p->robot->cameras[i].input)
            values[n++] = (struct tec_value){.name = p->robot->cameras[i].input,
                                             .kind = TEC_VALUE_U8,
                                             .rank = 3,
                                             .shape = {p->image_h, p->image_w, 3},
                                             .data = black,
                                             .bytes = pixels};
    return tec_robot_observe(p->observer, values, n, &p->seen, err);
}

static void judge_sizes(struct processing *p)
{
    int wrong = p->robot->n_state != json_integer_value(json_object_get(p->json, "state_dim"));
    wrong += p->robot->n_actions != json_integer_value(json_object_get(p->json, "action_dim"));
    wrong += p->robot->max_tokens !=
             json_integer_value(json_object_get(p->json, "tokenizer_max_length"));
    tec_verify_report(p->v, "processing.sizes", wrong, 0.0, 0.0, wrong == 0, NULL, NULL);
}

/* Compare the ids that a frame would get with the case's. */
static enum tec_status judge_ids(struct processing *p, const struct tec_template *t,
                                 struct tec_error *err)
{
    const json_t *want = json_object_get(p->json, "token_ids");
    size_t n_want = json_array_size(want);
    struct tec_tokenizer *tokenizer = NULL;
    const struct tec_template_values values = {
        {{.text = p->seen.text, .n = p->seen.text_bytes}}, 1, p->seen.bins, p->seen.n_bins};
    size_t most = (size_t)p->robot->max_tokens, n = 0;
    int *ids = TEC_NEW(p->v->arena, most + 1, int);
    int *wanted = TEC_NEW(p->v->arena, n_want + 1, int);
    if (!ids || !wanted || n_want == 0)
        return tec_fail(err, TEC_NOT_FOUND, "the case has no token_ids");
    if (!p->checkpoint->tokenizer)
        return tec_fail(err, TEC_NOT_FOUND, "%s has no tokenizer", p->checkpoint->path);
    for (size_t i = 0; i < n_want; i++)
        wanted[i] = (int)json_integer_value(json_array_get(want, i));
    TEC_TRY(tec_tokenizer_open(&tokenizer, p->checkpoint->tokenizer, p->v->heap, err));
    enum tec_status status =
        tec_template_encode(t, tokenizer, &values, ids, most, &n, p->v->arena, err);
    tec_tokenizer_close(tokenizer);
    TEC_TRY(status);
    tec_verify_ids(p->v, "processing.token_ids", ids, n < most ? n : most, wanted, n_want);
    return TEC_OK;
}

static enum tec_status judge_text(struct processing *p, const json_t *templates,
                                  struct tec_error *err)
{
    const json_t *texts = json_object_get(p->json, "prompt_text_given_to_tokenizer");
    const json_t *want = json_array_get(texts, 0);
    const char *name = p->robot->prompt_template;
    struct tec_template *t = NULL;
    const char *text = NULL;
    size_t n = 0;
    TEC_TRY(tec_template_parse(&t, templates, name ? name : "",
                               tec_verify_shipped(p->v, "models/prompts.lua"), p->v->arena, err));
    const struct tec_template_values values = {
        {{.text = p->seen.text, .n = p->seen.text_bytes}}, 1, p->seen.bins, p->seen.n_bins};
    TEC_TRY(tec_template_render(&text, &n, t, 0, &values, p->v->arena, err));
    bool ok = t->n_calls == 1 && json_array_size(texts) == 1 && json_is_string(want) &&
              n == json_string_length(want) && memcmp(text, json_string_value(want), n) == 0;
    tec_verify_report(p->v, "processing.prompt", !ok, 0.0, 0.0, ok, NULL, NULL);
    return judge_ids(p, t, err);
}

static enum tec_status judge_prompt(struct processing *p, struct tec_error *err)
{
    json_t *templates = NULL;
    TEC_TRY(tec_lua_read(&templates, tec_verify_shipped(p->v, "models/prompts.lua"),
                         tec_verify_shipped(p->v, "models"), p->v->heap, err));
    enum tec_status status = judge_text(p, templates, err);
    json_decref(templates);
    return status;
}

static enum tec_status judge_actions(struct processing *p, struct tec_error *err)
{
    size_t n = 0, width = (size_t)p->robot->n_model_actions;
    const float *actions = load(p, p->inputs, "model.actions", &n);
    double *out = TEC_NEW(p->v->arena, n + 1, double);
    if (!actions || !out || n % width != 0)
        return tec_fail(err, TEC_NOT_FOUND, "the case has no model.actions of %zu columns", width);
    int rows = tec_robot_act(p->observer, actions, (int)(n / width), p->seen.state_raw, out, NULL);
    judge(p, "robot.actions", out, (size_t)rows * (size_t)p->robot->n_actions);
    return TEC_OK;
}

static enum tec_status judge_all(struct processing *p, struct tec_error *err)
{
    struct tec_verify *v = p->v;
    const char *folder = json_string_value(json_object_get(v->json, "checkpoint"));
    const char *path = tec_arena_printf(v->arena, "%s/%s", v->dir, folder ? folder : "checkpoint");
    const char *inputs = tec_arena_printf(v->arena, "%s/inputs.safetensors", v->dir);
    const char *expected = tec_arena_printf(v->arena, "%s/expected.safetensors", v->dir);
    if (!path || !inputs || !expected)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for paths");
    const struct tec_checkpoint_source from = {.path = path, .adapter = v->adapter};
    TEC_TRY(tec_checkpoint_open_source(&p->checkpoint, &from, v->heap, err));
    TEC_TRY(tec_tensors_open(&p->inputs, inputs, v->heap, err));
    TEC_TRY(tec_tensors_open(&p->expected, expected, v->heap, err));
    TEC_TRY(open_robot(p, err));
    TEC_TRY(give_buffers(p, err));
    TEC_TRY(observe(p, err));
    judge_sizes(p);
    judge(p, "normalised.state", p->seen.state_f64, (size_t)p->robot->n_state);
    TEC_TRY(judge_actions(p, err));
    return judge_prompt(p, err);
}

void tec_verify_lerobot_processing(struct tec_verify *v)
{
    struct processing p = {.v = v, .json = json_object_get(v->json, "processing")};
    struct tec_error err;
    if (!p.json)
        return;
    if (judge_all(&p, &err) != TEC_OK)
        tec_verify_cannot(v, "processing", &err);
    tec_observer_destroy(p.observer);
    tec_tensors_close(p.expected);
    tec_tensors_close(p.inputs);
    tec_checkpoint_close(p.checkpoint);
}
