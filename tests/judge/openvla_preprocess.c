/* openvla_preprocess.c - judges openvla/preprocess: pictures by what a processor says of them. */
#include "tests/judge/images.h"

#include "base/image/reshape.h"
#include "base/store/processor.h"
#include "tests/judge/sha256.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { COLOURS = 3 };

struct judge {
    struct tec_verify *v;
    const struct tec_tensors *inputs, *expected;
};

/* The pattern that case.json writes down as `formula`. */
static unsigned char formula(int x, int y, int c)
{
    int v = (5 * x + 3 * y + 85 * c + ((x * y) >> 5)) & 255;
    bool dark = ((x >> 4) + (y >> 3) + c) % 5 == 0;
    int n = ((7919 * x + 104729 * y + 1299709 * c) >> 3) & 31;
    int pixel = dark ? 255 - v : ((7 * v) >> 3) + n;
    return (unsigned char)(pixel < 0 ? 0 : pixel > 255 ? 255 : pixel);
}

static enum tec_status picture(struct tec_image *out, const struct judge *j, const char *name,
                               struct tec_error *err)
{
    const json_t *all = json_object_get(j->v->json, "images");
    const json_t *one = json_object_get(all, name);
    const char *source = json_string_value(json_object_get(one, "source"));
    char stored[40], hash[65];
    snprintf(stored, sizeof stored, "image.%.30s", name);
    if (source && strcmp(source, "formula") == 0) {
        TEC_TRY(tec_image_new(out, (int)json_integer_value(json_object_get(one, "h")),
                              (int)json_integer_value(json_object_get(one, "w")), COLOURS,
                              j->v->arena, err));
        for (int y = 0, i = 0; y < out->height; y++)
            for (int x = 0; x < out->width; x++)
                for (int c = 0; c < COLOURS; c++)
                    out->pixels[i++] = formula(x, y, c);
    } else {
        TEC_TRY(tec_images_picture(out, j->v, j->inputs, stored, err));
    }
    const char *want = json_string_value(json_object_get(one, "sha256_rgb_hwc"));
    tec_sha256(out->pixels, (size_t)out->height * (size_t)out->width * COLOURS, hash);
    if (!want || strcmp(hash, want) != 0 || out->channels != COLOURS)
        return tec_fail(err, TEC_MALFORMED, "image '%s' is not the one of case.json", name);
    return TEC_OK;
}

/* A preprocessor_config.json as upstream would write it for the job. */
static json_t *make_config(const struct judge *j, const json_t *job)
{
    const char *towers = json_string_value(json_object_get(job, "towers"));
    json_t *used = json_object_get(j->v->json, "normalize_bf16_rounded");
    json_t *means = json_object_get(j->v->json, "normalize_unrounded");
    json_int_t size = json_integer_value(json_object_get(job, "size"));
    json_t *config =
        json_pack("{s:O*, s:[], s:[], s:[]}", "image_resize_strategy",
                  json_object_get(job, "strategy"), "input_sizes", "means", "tvf_normalize_params");
    bool fused = towers && strcmp(towers, "fused") == 0;
    for (size_t t = 0; config && towers && t < json_array_size(used); t++) {
        if (!fused && (strcmp(towers, "dino") == 0) != (t == 0))
            continue;
        json_array_append(json_object_get(config, "tvf_normalize_params"), json_array_get(used, t));
        json_array_append(json_object_get(config, "means"),
                          json_object_get(json_array_get(means, t), "mean"));
        json_array_append_new(json_object_get(config, "input_sizes"),
                              json_pack("[i, I, I]", COLOURS, size, size));
    }
    return config;
}

static enum tec_status read_processor(struct tec_processor *p, const struct judge *j,
                                      const json_t *job, struct tec_error *err)
{
    const json_t *fill = json_object_get(job, "fill");
    json_t *config = make_config(j, job);
    enum tec_status status = tec_processor_parse(p, config, "job", err);
    json_decref(config);
    TEC_TRY(status);
    for (size_t c = 0; fill && c < COLOURS; c++)
        if (json_integer_value(json_array_get(fill, c)) != p->fill[c])
            return tec_fail(err, TEC_SHAPE, "the fill colour is %d, not %d", p->fill[c],
                            (int)json_integer_value(json_array_get(fill, c)));
    return TEC_OK;
}

/* All rows, or those that `stored_rows` lists. */
static enum tec_status judge_bytes(const struct judge *j, const json_t *job, const char *name,
                                   const unsigned char *got, size_t row, struct tec_error *err)
{
    const json_t *rows = json_object_get(job, "stored_rows");
    size_t size = row / COLOURS, n = rows ? json_array_size(rows) : size;
    const char *want = json_string_value(json_object_get(job, "sha256_u8"));
    char tensor[64], check[64], hash[65];
    void *stored = NULL;
    snprintf(tensor, sizeof tensor, "%s.u8", name);
    TEC_TRY(tec_images_read(&stored, j->v, j->expected, tensor, TEC_U8, n * row, err));
    unsigned char *kept = TEC_NEW(j->v->arena, n * row, unsigned char);
    if (!kept)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %zu bytes", n * row);
    for (size_t i = 0; i < n; i++) {
        size_t y = rows ? (size_t)json_integer_value(json_array_get(rows, i)) : i;
        if (y >= size)
            return tec_fail(err, TEC_MALFORMED, "stored row %zu of %zu", y, size);
        memcpy(kept + i * row, got + y * row, row);
    }
    tec_verify_compared(j->v, tensor);
    tec_images_bytes(j->v, tensor, kept, stored, n * row);
    tec_sha256(got, size * row, hash);
    bool equal = want && strcmp(hash, want) == 0;
    snprintf(check, sizeof check, "%s.sha256", name);
    tec_verify_report(j->v, check, equal ? 0.0 : 1.0, 0.0, 0.0, equal, NULL, NULL);
    return TEC_OK;
}

/* Where the case has them: planes of float32, exact. */
static enum tec_status judge_values(const struct judge *j, const struct tec_processor *p,
                                    const char *name, const unsigned char *got,
                                    struct tec_error *err)
{
    size_t plane = (size_t)p->height * (size_t)p->width * COLOURS;
    size_t n = plane * (size_t)p->n_towers;
    char tensor[64];
    void *want = NULL;
    float luts[COLOURS][256];
    snprintf(tensor, sizeof tensor, "%s.pixel_values", name);
    if (!tec_tensors_find(j->expected, tensor))
        return TEC_OK;
    TEC_TRY(tec_images_read(&want, j->v, j->expected, tensor, TEC_F32, n, err));
    float *values = TEC_NEW(j->v->arena, n, float);
    if (!values)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %zu values", n);
    for (int t = 0; t < p->n_towers; t++) {
        tec_lut_channels(luts, p->mean[t], p->deviation[t], COLOURS);
        tec_lut_planes(values + (size_t)t * plane, got, p->height, p->width, COLOURS,
                       (const float(*)[256])luts);
    }
    tec_verify_compared(j->v, tensor);
    tec_images_floats(j->v, tensor, values, want, n, 0.0);
    return TEC_OK;
}

static enum tec_status judge_job(const struct judge *j, const json_t *job, const char *name,
                                 struct tec_error *err)
{
    const char *image = json_string_value(json_object_get(job, "image"));
    const struct tec_reshape *plan = NULL;
    struct tec_processor p;
    struct tec_image in;
    TEC_TRY(picture(&in, j, image ? image : "?", err));
    TEC_TRY(read_processor(&p, j, job, err));
    struct tec_reshape_spec spec = {.kind = p.kind,
                                    .in_height = in.height,
                                    .in_width = in.width,
                                    .height = p.height,
                                    .width = p.width};
    memcpy(spec.fill, p.fill, sizeof spec.fill);
    TEC_TRY(tec_reshape_plan(&plan, &spec, j->v->arena, err));
    size_t row = (size_t)p.width * COLOURS;
    unsigned char *out = TEC_NEW(j->v->arena, (size_t)p.height * row, unsigned char);
    void *scratch = tec_arena_push(j->v->arena, tec_reshape_scratch(plan), 1, 64);
    if (!out || !scratch)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a picture");
    tec_reshape_run(plan, out, in.pixels, scratch);
    TEC_TRY(judge_bytes(j, job, name, out, row, err));
    return judge_values(j, &p, name, out, err);
}

/* lut.<constants>.{f32,bf16}: [6, 256], the tables of both towers. */
static enum tec_status judge_table(const struct judge *j, const char *name, struct tec_error *err)
{
    enum { TOWERS = 2, N = TOWERS * COLOURS * 256 };
    char key[60];
    const char *constants = name + strlen("lut."), *dot = strrchr(name, '.');
    snprintf(key, sizeof key, "normalize_%.*s", (int)(dot - constants), constants);
    const json_t *towers = json_object_get(j->v->json, key);
    float luts[TOWERS * COLOURS][256];
    double mean[COLOURS], deviation[COLOURS], wrong = 0.0;
    void *want = NULL;
    if (json_array_size(towers) != TOWERS)
        return tec_fail(err, TEC_MALFORMED, "case.json has no %s of two towers", key);
    for (size_t t = 0; t < TOWERS; t++) {
        const json_t *one = json_array_get(towers, t);
        for (size_t c = 0; c < COLOURS; c++) {
            mean[c] = json_number_value(json_array_get(json_object_get(one, "mean"), c));
            deviation[c] = json_number_value(json_array_get(json_object_get(one, "std"), c));
        }
        tec_lut_channels(luts + t * COLOURS, mean, deviation, COLOURS);
    }
    tec_verify_compared(j->v, name);
    if (strcmp(dot, ".f32") == 0) {
        TEC_TRY(tec_images_read(&want, j->v, j->expected, name, TEC_F32, N, err));
        tec_images_floats(j->v, name, luts[0], want, N, 0.0);
        return TEC_OK;
    }
    TEC_TRY(tec_images_read(&want, j->v, j->expected, name, TEC_BF16, N, err));
    for (size_t i = 0; i < sizeof luts / sizeof luts[0]; i++) {
        uint16_t rounded[256];
        tec_lut_bf16(rounded, luts[i]);
        for (size_t b = 0; b < 256; b++)
            wrong += rounded[b] != ((const uint16_t *)want)[i * 256 + b];
    }
    tec_verify_report(j->v, name, wrong, 0.0, 0.0, wrong == 0.0, NULL, NULL);
    return TEC_OK;
}

static void judge_all(const struct judge *j)
{
    struct tec_error err;
    const json_t *job;
    size_t i;
    json_array_foreach(json_object_get(j->v->json, "jobs"), i, job)
    {
        char name[30];
        struct tec_arena_mark mark = tec_arena_mark(j->v->arena);
        snprintf(name, sizeof name, "job%lld",
                 (long long)json_integer_value(json_object_get(job, "job")));
        if (judge_job(j, job, name, &err) != TEC_OK)
            tec_verify_cannot(j->v, name, &err);
        tec_arena_rewind(j->v->arena, mark);
    }
    for (size_t t = 0; t < tec_tensors_count(j->expected); t++) {
        const char *name = tec_tensors_at(j->expected, t)->name;
        if (strncmp(name, "lut.", 4) == 0 && judge_table(j, name, &err) != TEC_OK)
            tec_verify_cannot(j->v, name, &err);
    }
}

enum tec_status tec_verify_openvla_preprocess(struct tec_verify *v, struct tec_error *err)
{
    struct tec_tensors *inputs = NULL, *expected = NULL;
    enum tec_status status = tec_images_open(&inputs, v, "inputs.safetensors", err);
    if (status == TEC_OK)
        status = tec_images_open(&expected, v, "expected.safetensors", err);
    if (status == TEC_OK)
        judge_all(&(struct judge){v, inputs, expected});
    tec_tensors_close(expected);
    tec_tensors_close(inputs);
    return status;
}
