/* pi_prepost.c - judges how a robot's observations become model inputs and the model's outputs
 * become actions, entry by entry against openpi's own values. */
#include "base/lua.h"
#include "base/store/safetensors.h"
#include "graph/transform/observer.h"
#include "graph/transform/prompt.h"
#include "graph/transform/template.h"
#include "tests/judge/observation.h"
#include "tests/judge/sha256.h"
#include "tests/judge/verify.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SLOTS = 3, SIDE = 224, WIDTH = 32, VALUES = 16, TEXT = 1000 };
enum { PIXELS = SIDE * SIDE * 3 };

static const char *const slots[SLOTS] = {"base_0_rgb", "left_wrist_0_rgb", "right_wrist_0_rgb"};

/* The whole case, and the entry that is being judged. */
struct prepost {
    struct tec_verify *v;
    struct tec_tensors *inputs, *expected;
    const json_t *entry;
    const char *key;
    const struct tec_robot *robot;
    json_t *templates;
    struct tec_value values[VALUES];
    size_t n_values;
    struct tec_observation seen;
};

static void report(struct prepost *p, const char *what, double wrong, const char *note)
{
    char check[120];
    snprintf(check, sizeof check, "%s.%s", p->key, what);
    tec_verify_report(p->v, check, wrong, 0.0, 0.0, wrong == 0.0, NULL, note);
}

/* Load a tensor of the entry whole into the arena; NULL if it is missing or of another dtype. */
static void *load(struct prepost *p, struct tec_tensors *from, const char *name,
                  enum tec_dtype dtype, size_t *n)
{
    const struct tec_stored *stored = tec_tensors_find(from, name);
    *n = 0;
    if (!stored || stored->dtype != dtype)
        return NULL;
    void *data = tec_arena_push(p->v->arena, (size_t)stored->bytes, 1, 16);
    if (!data || tec_tensors_read(from, stored, 0, data, (size_t)stored->bytes, NULL) != TEC_OK)
        return NULL;
    *n = (size_t)tec_stored_count(stored);
    return data;
}

static void *load_entry(struct prepost *p, struct tec_tensors *from, const char *suffix,
                        enum tec_dtype dtype, size_t *n)
{
    char name[120];
    snprintf(name, sizeof name, "%s.%s", p->key, suffix);
    return load(p, from, name, dtype, n);
}

/* Compare float64 values of the same formula: the bits are equal, except for the last bits where
 * another libm computed asin. */
static void judge_f64(struct prepost *p, const char *what, const double *got, size_t n_got)
{
    size_t n = 0;
    const double *want = load_entry(p, p->expected, what, TEC_F64, &n);
    double max = 0.0, sum = 0.0, bound = 0.0;
    char check[120], note[80];
    size_t differ = 0;
    snprintf(check, sizeof check, "%s.%s", p->key, what);
    tec_verify_compared(p->v, check);
    if (!want || n != n_got) {
        snprintf(note, sizeof note, "%zu values, the case has %zu", n_got, n);
        tec_verify_report(p->v, check, 1.0, 0.0, 0.0, false, NULL, note);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        double d = fabs(got[i] - want[i]), allowed = 1e-12 * fabs(want[i]);
        differ += memcmp(&got[i], &want[i], sizeof want[i]) != 0;
        if (!(d <= max))
            max = d;
        if (!(d <= allowed))
            bound = -1.0;
        sum += d * d;
    }
    snprintf(note, sizeof note, "%zu of %zu differ in their bits", differ, n);
    tec_verify_report(p->v, check, max, sqrt(sum / (double)n), 1e-12, bound == 0.0, NULL,
                      differ ? note : NULL);
}

/* A pixel of the case's picture, by image_formula of case.json. */
static uint8_t pixel(int y, int x, int c, int k)
{
    int v = (x * (7 + k) + y * (13 + 2 * k) + c * 29 + ((x * y) >> 3) + ((x >> 4) ^ (y >> 4)) * 37);
    v %= 511;
    return (uint8_t)(v > 255 ? 510 - v : v);
}

static enum tec_status add_picture(struct prepost *p, const char *name, const json_t *picture,
                                   const char *kind, struct tec_error *err)
{
    int h = (int)json_integer_value(json_object_get(picture, "h"));
    int w = (int)json_integer_value(json_object_get(picture, "w"));
    int k = (int)json_integer_value(json_object_get(picture, "k"));
    bool chw = strcmp(kind, "u8 CHW") == 0, floats = strcmp(kind, "f32 HWC in [0,1]") == 0;
    if (!chw && !floats && strcmp(kind, "u8 HWC") != 0)
        return tec_fail(err, TEC_UNSUPPORTED, "%s: image_kind '%s'", p->key, kind);
    if (h < 1 || w < 1 || h > 4096 || w > 4096 || p->n_values == VALUES)
        return tec_fail(err, TEC_MALFORMED, "%s: picture %s is %d x %d", p->key, name, h, w);
    size_t n = (size_t)h * (size_t)w * 3;
    uint8_t *bytes = tec_arena_push(p->v->arena, n, floats ? 4 : 1, 16);
    if (!bytes)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for pictures", p->key);
    float *f = (float *)(void *)bytes;
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++)
            for (int c = 0; c < 3; c++)
                if (floats)
                    f[(y * w + x) * 3 + c] = (float)pixel(y, x, c, k) / 255.0F;
                else
                    bytes[chw ? (c * h + y) * w + x : (y * w + x) * 3 + c] = pixel(y, x, c, k);
    p->values[p->n_values++] = (struct tec_value){.name = name,
                                                  .kind = floats ? TEC_VALUE_F32 : TEC_VALUE_U8,
                                                  .rank = 3,
                                                  .shape = {chw ? 3 : h, chw ? h : w, chw ? w : 3},
                                                  .data = bytes,
                                                  .bytes = n * (floats ? 4 : 1)};
    return TEC_OK;
}

static enum tec_status add_pictures(struct prepost *p, const json_t *request, struct tec_error *err)
{
    json_t *images = json_object_get(request, "images"), *picture;
    const char *kind = json_string_value(json_object_get(request, "image_kind"));
    const char *name;
    bool nested = strcmp(p->robot->name, "aloha") == 0; /* ALOHA sends a map "images" */
    if (!kind)
        return tec_fail(err, TEC_MALFORMED, "%s: no image_kind", p->key);
    json_object_foreach(images, name, picture)
    {
        const char *flat = tec_arena_printf(p->v->arena, "%s%s", nested ? "images/" : "", name);
        TEC_TRY(add_picture(p, flat, picture, kind, err));
    }
    if (!json_is_true(json_object_get(request, "cam_low_present")))
        return TEC_OK;
    json_t *low = json_pack("{s:i, s:i, s:i}", "h", 48, "w", 64, "k", 3);
    enum tec_status status = add_picture(p, "images/cam_low", low, kind, err);
    json_decref(low);
    return status;
}

/* Add the parts of the state under the robot's own keys; the case names them by the last word of
 * the key. */
static enum tec_status add_state(struct prepost *p, const json_t *request, struct tec_error *err)
{
    const char *dtype = json_string_value(json_object_get(request, "state_dtype"));
    bool wide = dtype && strcmp(dtype, "float64") == 0;
    for (int i = 0; i < p->robot->n_parts; i++) {
        const char *name = p->robot->parts[i].input, *slash = strrchr(name, '/');
        size_t n = 0;
        void *data =
            load_entry(p, p->inputs, slash ? slash + 1 : name, wide ? TEC_F64 : TEC_F32, &n);
        if (!data || p->n_values == VALUES)
            return tec_fail(err, TEC_NOT_FOUND, "%s: no input for %s of %s", p->key, name,
                            dtype ? dtype : "?");
        p->values[p->n_values++] = (struct tec_value){.name = name,
                                                      .kind = wide ? TEC_VALUE_F64 : TEC_VALUE_F32,
                                                      .rank = 1,
                                                      .shape = {(int64_t)n},
                                                      .data = data,
                                                      .bytes = n * (wide ? 8 : 4)};
    }
    const char *prompt = json_string_value(json_object_get(request, "prompt"));
    if (prompt && p->n_values < VALUES)
        p->values[p->n_values++] = (struct tec_value){
            .name = "prompt", .kind = TEC_VALUE_TEXT, .data = prompt, .bytes = strlen(prompt)};
    return TEC_OK;
}

/* Compare the robot's description with what the case says of openpi's configuration. */
static void judge_config(struct prepost *p)
{
    const struct tec_robot *r = p->robot;
    bool quantile = json_is_true(json_object_get(p->entry, "quantile_norm"));
    bool state = json_is_true(json_object_get(p->entry, "discrete_state_input"));
    json_int_t tokens = json_integer_value(json_object_get(p->entry, "max_token_len"));
    const json_t *shape = json_object_get(p->entry, "actions_out_shape");
    int wrong = (r->norm == TEC_NORM_QUANTILE) != quantile;
    wrong += r->state_in_prompt != state;
    wrong += r->max_tokens != tokens;
    wrong += r->n_actions != json_integer_value(json_array_get(shape, 1));
    report(p, "config", wrong, NULL);
}

static void judge_rows(struct prepost *p, const char *slot, const uint8_t *picture)
{
    const json_t *rows = json_object_get(p->v->json, "image_rows_stored");
    char name[80], full[160];
    size_t n = 0, wrong = 0, row = (size_t)SIDE * 3;
    snprintf(name, sizeof name, "image.%s.rows", slot);
    snprintf(full, sizeof full, "%s.%s", p->key, name);
    if (!tec_tensors_find(p->expected, full))
        return; /* only some rows are stored; the hash covers all */
    tec_verify_compared(p->v, full);
    const uint8_t *want = load_entry(p, p->expected, name, TEC_U8, &n);
    if (!want || n != json_array_size(rows) * row) {
        report(p, name, 1.0, "rows of another size");
        return;
    }
    for (size_t i = 0; i < json_array_size(rows); i++) {
        json_int_t y = json_integer_value(json_array_get(rows, i));
        for (size_t x = 0; x < row; x++)
            wrong += y < 0 || y >= SIDE || picture[(size_t)y * row + x] != want[i * row + x];
    }
    report(p, name, (double)wrong, NULL);
}

static void judge_pictures(struct prepost *p)
{
    json_t *images = json_object_get(p->entry, "images_out"), *image;
    const char *slot;
    json_object_foreach(images, slot, image)
    {
        const char *want = json_string_value(json_object_get(image, "sha256_u8_224x224x3"));
        char name[80], got[65];
        int i = 0;
        while (i < SLOTS && strcmp(slots[i], slot) != 0)
            i++;
        snprintf(name, sizeof name, "image.%.40s", slot);
        if (i == SLOTS || !want) {
            report(p, name, 1.0, "no such slot, or no hash");
            continue;
        }
        bool valid = json_is_true(json_object_get(image, "image_mask"));
        tec_sha256(p->seen.pictures[i], PIXELS, got);
        report(p, name, strcmp(got, want) != 0, "sha256");
        snprintf(name, sizeof name, "image.%.40s.mask", slot);
        report(p, name, valid != p->seen.valid[i], NULL);
        judge_rows(p, slot, p->seen.pictures[i]);
    }
    report(p, "image.slots", json_object_size(images) != SLOTS, NULL);
}

static void judge_bins(struct prepost *p)
{
    const json_t *want = json_object_get(p->entry, "state_bins");
    size_t n = json_array_size(want), wrong = n != (size_t)p->seen.n_bins;
    for (size_t i = 0; i < n && !wrong; i++)
        wrong += p->seen.bins[i] != json_integer_value(json_array_get(want, i));
    report(p, "state_bins", (double)wrong, NULL);
}

/* Compare the texts that openpi gave to its tokenizer. */
static enum tec_status judge_prompt(struct prepost *p, struct tec_error *err)
{
    const json_t *calls = json_object_get(p->entry, "tokenizer_calls");
    const char *name = p->robot->prompt_template;
    struct tec_template *t = NULL;
    const char *text = NULL;
    size_t n = 0, wrong = 0;
    TEC_TRY(tec_template_parse(&t, p->templates, name ? name : "",
                               tec_verify_shipped(p->v, "models/prompts.lua"), p->v->arena, err));
    const struct tec_template_values values = {
        {{.text = p->seen.text, .n = p->seen.text_bytes}}, 1, p->seen.bins, p->seen.n_bins};
    wrong += json_array_size(calls) != (size_t)t->n_calls;
    wrong += t->state != p->robot->state_in_prompt;
    for (int i = 0; i < t->n_calls && !wrong; i++) {
        const json_t *call = json_array_get(calls, (size_t)i);
        const json_t *want = json_object_get(call, "encode");
        TEC_TRY(tec_template_render(&text, &n, t, i, &values, p->v->arena, err));
        wrong += !json_is_string(want) || n != json_string_length(want) ||
                 memcmp(text, json_string_value(want), n) != 0;
        wrong += json_is_true(json_object_get(call, "add_bos")) != t->calls[i].bos;
    }
    report(p, "tokenizer_calls", (double)wrong, NULL);
    return TEC_OK;
}

static enum tec_status judge_actions(struct prepost *p, struct tec_observer *o,
                                     struct tec_error *err)
{
    size_t n = 0;
    const float *actions = load_entry(p, p->inputs, "model_actions", TEC_F32, &n);
    int rows = (int)(n / WIDTH);
    double *out = TEC_NEW(p->v->arena, n + 1, double);
    if (!actions || !out || n % WIDTH != 0)
        return tec_fail(err, TEC_NOT_FOUND, "%s: no model_actions of %d columns", p->key,
                        (int)WIDTH);
    rows = tec_robot_act(o, actions, rows, p->seen.state_raw, out, NULL);
    judge_f64(p, "robot_actions", out, (size_t)rows * (size_t)p->robot->n_actions);
    return TEC_OK;
}

static enum tec_status judge_observation(struct prepost *p, struct tec_observer *o,
                                         struct tec_error *err)
{
    const json_t *request = json_object_get(p->entry, "request");
    p->n_values = 0;
    TEC_TRY(add_pictures(p, request, err));
    TEC_TRY(add_state(p, request, err));
    TEC_TRY(tec_robot_observe(o, p->values, p->n_values, &p->seen, err));
    judge_config(p);
    judge_pictures(p);
    judge_bins(p);
    TEC_TRY(judge_prompt(p, err));
    judge_f64(p, "state_normalised_padded", p->seen.state_f64, WIDTH);
    return judge_actions(p, o, err);
}

static enum tec_status judge_entry(struct prepost *p, struct tec_error *err)
{
    const char *name = json_string_value(json_object_get(p->entry, "robot"));
    const char *variant = json_string_value(json_object_get(p->entry, "openpi_config"));
    const json_t *stats = json_object_get(p->entry, "norm_stats");
    const char *path = tec_arena_printf(p->v->arena, "%s/%s.lua",
                                        tec_verify_shipped(p->v, "robots"), name ? name : "");
    struct tec_observer_needs needs = {.slots = slots,
                                       .n_slots = SLOTS,
                                       .image_h = SIDE,
                                       .image_w = SIDE,
                                       .state_width = WIDTH,
                                       .action_width = WIDTH,
                                       .text_max = TEXT};
    struct tec_robot *robot = NULL;
    struct tec_observer *o = NULL;
    json_t *json = NULL;
    TEC_TRY(tec_lua_read(&json, path, tec_verify_shipped(p->v, "robots"), p->v->heap, err));
    enum tec_status status = tec_robot_parse(&robot, json, variant, path, p->v->arena, err);
    json_decref(json);
    TEC_TRY(status);
    robot->unlimited = true; /* the published code holds no action to its statistics */
    p->robot = robot;
    TEC_TRY(tec_norm_from_json(&needs.state_norm, json_object_get(stats, "state"), robot->norm,
                               p->key, p->v->arena, err));
    TEC_TRY(tec_norm_from_json(&needs.action_norm, json_object_get(stats, "actions"), robot->norm,
                               p->key, p->v->arena, err));
    TEC_TRY(tec_observer_create(&o, robot, &needs, p->v->heap, err));
    status = judge_observation(p, o, err);
    tec_observer_destroy(o);
    return status;
}

static enum tec_status give_buffers(struct prepost *p, struct tec_error *err)
{
    const struct tec_observation_sizes sizes = {
        .slots = SLOTS, .picture_bytes = PIXELS, .width = WIDTH, .text = TEXT};
    return tec_verify_observation(&p->seen, &sizes, p->v->arena, err);
}

static void judge_digitize(struct prepost *p)
{
    size_t n = 0, n_want = 0, wrong = 0;
    const double *x = load(p, p->expected, "digitize.x", TEC_F64, &n);
    const int32_t *want = load(p, p->expected, "digitize.bin", TEC_I32, &n_want);
    int *got = TEC_NEW(p->v->arena, n + 1, int);
    tec_verify_compared(p->v, "digitize.bin");
    if (!x || !want || !got || n != n_want) {
        tec_verify_report(p->v, "digitize.bin", 1.0, 0.0, 0.0, false, NULL, "no table");
        return;
    }
    tec_prompt_state_bins(x, (int)n, got);
    for (size_t i = 0; i < n; i++)
        wrong += got[i] != want[i];
    tec_verify_report(p->v, "digitize.bin", (double)wrong, 0.0, 0.0, wrong == 0, NULL, NULL);
}

static enum tec_status judge_all(struct prepost *p, struct tec_error *err)
{
    const json_t *entries = json_object_get(p->v->json, "cases");
    size_t i;
    TEC_TRY(give_buffers(p, err));
    TEC_TRY(tec_lua_read(&p->templates, tec_verify_shipped(p->v, "models/prompts.lua"),
                         tec_verify_shipped(p->v, "models"), p->v->heap, err));
    json_array_foreach(entries, i, p->entry)
    {
        struct tec_error mine;
        p->key = json_string_value(json_object_get(p->entry, "key"));
        if (!p->key)
            return tec_fail(err, TEC_MALFORMED, "cases[%zu] has no key", i);
        if (judge_entry(p, &mine) != TEC_OK)
            tec_verify_cannot(p->v, p->key, &mine);
    }
    judge_digitize(p);
    return TEC_OK;
}

enum tec_status tec_verify_pi_prepost(struct tec_verify *v, struct tec_error *err)
{
    struct prepost p = {.v = v};
    const char *inputs = tec_arena_printf(v->arena, "%s/inputs.safetensors", v->dir);
    const char *expected = tec_arena_printf(v->arena, "%s/expected.safetensors", v->dir);
    enum tec_status status = tec_tensors_open(&p.inputs, inputs, v->heap, err);
    if (status == TEC_OK)
        status = tec_tensors_open(&p.expected, expected, v->heap, err);
    if (status == TEC_OK)
        status = judge_all(&p, err);
    json_decref(p.templates);
    tec_tensors_close(p.expected);
    tec_tensors_close(p.inputs);
    return status;
}
