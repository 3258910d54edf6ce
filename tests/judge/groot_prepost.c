/* groot_prepost.c - judges the case of kind "prepost": pictures, chat and state to what the model
 * reads, and a chunk to what the robot is sent. Its rules are those of its case.json. */
#include "base/image/reshape.h"
#include "base/lua.h"
#include "base/store/safetensors.h"
#include "base/text/tokenizer.h"
#include "graph/transform/template.h"
#include "tests/judge/groot_robot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 224, TOKENS = 256, IDS = 4096 };

struct judge {
    struct tec_verify *v;
    struct tec_tensors *inputs, *expected;
    struct tec_tokenizer *tokenizer;
    json_t *templates;
    const json_t *one; /* entry of `cases` */
    const char *key;
    struct tec_robot *robot;
};

static const char *name_of(struct judge *j, const char *what)
{
    const char *name = tec_arena_printf(j->v->arena, "%s.%s", j->key, what);
    return name ? name : "";
}

/* A tensor as float64; NULL: there is none. */
static double *read_doubles(struct judge *j, const struct tec_tensors *from, const char *name,
                            size_t *n)
{
    const struct tec_stored *t = tec_tensors_find(from, name);
    *n = t ? (size_t)tec_stored_count(t) : 0;
    double *out = t ? TEC_NEW(j->v->arena, *n + 1, double) : NULL;
    float *single = t ? TEC_NEW(j->v->arena, *n + 1, float) : NULL;
    if (!out || !single)
        return NULL;
    if (t->dtype == TEC_F64)
        return tec_tensors_read(from, t, 0, out, t->bytes, NULL) == TEC_OK ? out : NULL;
    if (tec_tensors_read_f32(from, t, 0, single, *n, NULL) != TEC_OK)
        return NULL;
    for (size_t i = 0; i < *n; i++)
        out[i] = (double)single[i];
    return out;
}

/* max |got - want| / (1 + share |want|). */
static void compare(struct judge *j, const char *check, const float *got, size_t n, double bound,
                    double share)
{
    size_t n_want;
    const double *want = read_doubles(j, j->expected, check, &n_want);
    double worst = 0.0, sum = 0.0;
    bool there = got && want && n == n_want;
    tec_verify_compared(j->v, check);
    for (size_t i = 0; there && i < n; i++) {
        double far = fabs((double)got[i] - want[i]) / (1.0 + share * fabs(want[i]));
        worst = fmax(worst, far);
        sum += far * far;
    }
    tec_verify_report(j->v, check, there ? worst : 1.0, there && n ? sqrt(sum / (double)n) : 0.0,
                      bound, there && worst <= bound, NULL, there ? NULL : "no such values");
}

static void judge_state(struct judge *j)
{
    size_t n_want, n;
    const char *check = name_of(j, "state");
    read_doubles(j, j->expected, check, &n_want);
    double *raw = TEC_NEW(j->v->arena, (size_t)j->robot->n_raw + 1, double);
    for (int i = 0, at = 0; raw && i < j->robot->n_parts; at += j->robot->parts[i++].size) {
        const double *x = read_doubles(j, j->inputs, name_of(j, j->robot->parts[i].input), &n);
        for (int k = 0; x && k < j->robot->parts[i].size; k++)
            raw[at + k] = x[k];
    }
    const float *got = raw ? tec_groot_state(j->robot, j->v, raw, (int)n_want) : NULL;
    compare(j, check, got, n_want, 2e-6, 0.0);
}

static void judge_robot(struct judge *j, const json_t *robots, const char *tag)
{
    size_t n;
    json_t *robot = json_object_get(j->one, "robot"), *shape;
    const double *pred = read_doubles(j, j->inputs, name_of(j, "action_pred"), &n);
    const char *part;
    int rows = 16, dim = (int)(n / 16), first, cols;
    float *chunk = TEC_NEW(j->v->arena, n + 1, float);
    for (size_t i = 0; pred && chunk && i < n; i++)
        chunk[i] = (float)pred[i];
    const float *all = chunk ? tec_groot_sent(j->robot, j->v, chunk, rows, dim) : NULL;
    json_object_foreach(robot, part, shape)
    {
        const char *check = tec_arena_printf(j->v->arena, "%s.robot.%s", j->key, part);
        bool known = tec_groot_columns(robots, tag, json_object_get(j->one, "action_keys"),
                                       tec_groot_key(part), &first, &cols);
        size_t values = known ? (size_t)rows * (size_t)cols : 0;
        float *got = TEC_NEW(j->v->arena, values + 1, float);
        for (int r = 0; known && all && got && r < rows; r++)
            memcpy(got + (ptrdiff_t)r * cols, all + (ptrdiff_t)r * j->robot->n_actions + first,
                   (size_t)cols * sizeof *got);
        compare(j, check ? check : "", known && all ? got : NULL, values, 4e-6, 1.0);
    }
}

/* pixel(y, x, c) of the case's formula. */
static void draw(uint8_t *out, int h, int w, int k)
{
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++)
            for (int c = 0; c < 3; c++) {
                int v = x * (7 + k) + y * (13 + 2 * k) + c * 29 + ((x * y) >> 3) +
                        ((x >> 4) ^ (y >> 4)) * 37;
                v %= 511;
                *out++ = (uint8_t)(v > 255 ? 510 - v : v);
            }
}

static enum tec_status judge_picture(struct judge *j, int index, int k, struct tec_error *err)
{
    const json_t *image = json_object_get(j->one, "image"), *rows, *row;
    int h = (int)json_integer_value(json_object_get(image, "h"));
    int w = (int)json_integer_value(json_object_get(image, "w"));
    const char *check = tec_arena_printf(j->v->arena, "%s.image.%d.rows", j->key, index);
    const struct tec_stored *t = check ? tec_tensors_find(j->expected, check) : NULL;
    const struct tec_reshape_spec spec = {
        .kind = j->robot->reshape, .in_height = h, .in_width = w, .height = SIDE, .width = SIDE};
    const struct tec_reshape *plan;
    size_t wrong = 0, n = 0, i, line = (size_t)SIDE * 3;
    int most = 0;
    if (!t) {
        tec_verify_unjudged(j->v, check ? check : "", "the case has no pixels of this picture");
        return TEC_OK;
    }
    if (h < 1 || w < 1 || h > 4096 || w > 4096)
        return tec_fail(err, TEC_MALFORMED, "%s: a picture of %d x %d", j->key, w, h);
    TEC_TRY(tec_reshape_plan(&plan, &spec, j->v->arena, err));
    uint8_t *in = tec_arena_push(j->v->arena, (size_t)h * (size_t)w * 3, 1, 64);
    uint8_t *out = tec_arena_push(j->v->arena, line * SIDE, 1, 64);
    uint8_t *want = tec_arena_push(j->v->arena, t->bytes + 1, 1, 64);
    void *scratch = tec_arena_push(j->v->arena, tec_reshape_scratch(plan), 1, 64);
    if (!in || !out || !want || !scratch)
        return tec_fail(err, TEC_NO_MEMORY, "no memory to judge with");
    draw(in, h, w, k);
    tec_reshape_run(plan, out, in, scratch);
    TEC_TRY(tec_tensors_read(j->expected, t, 0, want, t->bytes, err));
    rows = json_object_get(j->v->json, "image_rows_stored");
    json_array_foreach(rows, i, row) for (size_t b = 0; b < line && n < t->bytes; b++, n++)
    {
        int far = abs(out[(size_t)json_integer_value(row) * line + b] - want[n]);
        most = far > most ? far : most;
        wrong += far != 0;
    }
    tec_verify_compared(j->v, check);
    bool ok = most <= 1 && wrong * 100 <= n && n == t->bytes;
    tec_verify_report(j->v, check, most, n ? (double)wrong / (double)n : 1.0, 1.0, ok, NULL,
                      "rms is the share of pixels that differ");
    return TEC_OK;
}

static enum tec_status judge_ids(struct judge *j, struct tec_error *err)
{
    struct tec_verify *v = j->v;
    const char *check = name_of(j, "input_ids");
    const struct tec_stored *t = tec_tensors_find(j->expected, check);
    const char *text = json_string_value(json_object_get(j->one, "language"));
    struct tec_template *template;
    int *ids = TEC_NEW(v->arena, IDS, int), *all = TEC_NEW(v->arena, 2 * IDS, int), n_all = 0;
    int *want = t ? TEC_NEW(v->arena, t->bytes / sizeof(int) + 1, int) : NULL;
    int token = tec_tokenizer_id(j->tokenizer, "<IMG_CONTEXT>", strlen("<IMG_CONTEXT>"));
    size_t n = 0;
    if (!ids || !all || !want || !text)
        return tec_fail(err, TEC_NOT_FOUND, "the case has no %s or no language", check);
    TEC_TRY(tec_tensors_read(j->expected, t, 0, want, t->bytes, err));
    TEC_TRY(tec_template_parse(&template, j->templates, j->robot->prompt_template, "prompts.lua",
                               v->arena, err));
    const struct tec_template_values values = {{{.text = text, .n = strlen(text)}}, 1, NULL, 0};
    TEC_TRY(tec_template_encode(template, j->tokenizer, &values, ids, IDS, &n, v->arena, err));
    for (size_t i = 0; i < n && i < IDS; i++)
        for (int k = 0; k < (ids[i] == token ? TOKENS : 1) && n_all < 2 * IDS; k++)
            all[n_all++] = ids[i];
    tec_verify_compared(v, check);
    tec_verify_ids(v, check, all, (size_t)n_all, want, t->bytes / sizeof(int));
    tec_verify_unjudged(v, name_of(j, "real_ids"), "the released tokenizer is not in the case");
    return TEC_OK;
}

static enum tec_status judge_one(struct judge *j, struct tec_error *err)
{
    const char *tag = json_string_value(json_object_get(j->one, "embodiment_tag"));
    const json_t *ks = json_object_get(json_object_get(j->one, "image"), "k"), *k;
    size_t i;
    j->key = json_string_value(json_object_get(j->one, "key"));
    if (!tag || !j->key)
        return tec_fail(err, TEC_MALFORMED, "an entry of cases has no key or tag");
    json_t *robots = json_pack("{s:O}", tag, json_object_get(j->one, "metadata"));
    enum tec_status status =
        tec_groot_robot(&j->robot, j->v, robots, tag, json_object_get(j->one, "data_config"), err);
    if (status == TEC_OK) {
        judge_state(j);
        judge_robot(j, robots, tag);
        status = judge_ids(j, err);
    }
    json_array_foreach(ks, i, k) if (status == TEC_OK) status =
        judge_picture(j, (int)i, (int)json_integer_value(k), err);
    json_decref(robots);
    return status;
}

static enum tec_status open_case(struct judge *j, struct tec_error *err)
{
    struct tec_verify *v = j->v;
    const char *in = tec_arena_printf(v->arena, "%s/inputs.safetensors", v->dir);
    const char *out = tec_arena_printf(v->arena, "%s/expected.safetensors", v->dir);
    const char *tokenizer = tec_arena_printf(
        v->arena, "%s/%s", v->dir, json_string_value(json_object_get(v->json, "processor")));
    if (!in || !out || !tokenizer)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for paths");
    TEC_TRY(tec_tensors_open(&j->inputs, in, v->heap, err));
    TEC_TRY(tec_tensors_open(&j->expected, out, v->heap, err));
    TEC_TRY(tec_tokenizer_open(&j->tokenizer, tokenizer, v->heap, err));
    return tec_lua_read(&j->templates, tec_verify_shipped(v, "models/prompts.lua"),
                        tec_verify_shipped(v, "models"), v->heap, err);
}

enum tec_status tec_verify_groot_prepost(struct tec_verify *v, struct tec_error *err)
{
    struct judge j = {.v = v};
    const json_t *cases = json_object_get(v->json, "cases"), *one;
    size_t i;
    enum tec_status status = open_case(&j, err);
    json_array_foreach(cases, i, one)
    {
        j.one = one;
        if (status == TEC_OK)
            status = judge_one(&j, err);
    }
    json_decref(j.templates);
    tec_tokenizer_close(j.tokenizer);
    tec_tensors_close(j.inputs);
    tec_tensors_close(j.expected);
    return status;
}
