/* images_preprocess.c - judges images/preprocess: Prismatic preprocessing and the byte tables. */
#include "tests/judge/images.h"

#include "base/image/reshape.h"

#include <math.h>
#include <string.h>

struct judge {
    struct tec_verify *v;
    const struct tec_tensors *inputs, *expected;
};

enum { MOST_TOWERS = 4, COLOURS = 3 };

/* Distance in units of the last place, as the order of floats of one sign. */
static double ulps(float a, float b)
{
    int32_t i = (int32_t)tec_f32_to_bits(a), j = (int32_t)tec_f32_to_bits(b);
    int64_t x = i < 0 ? INT32_MIN - (int64_t)i : i, y = j < 0 ? INT32_MIN - (int64_t)j : j;
    return isnan(a) || isnan(b) ? (double)INFINITY : fabs((double)(x - y));
}

/* f32 exact to 1 ulp, bf16 exact; the tensor's dtype says which. */
static enum tec_status compare(const struct judge *j, const char *name, const float *got, size_t n,
                               struct tec_error *err)
{
    const struct tec_stored *t = tec_tensors_find(j->expected, name);
    void *data = NULL;
    double max = 0.0, wrong = 0.0;
    if (!t || (t->dtype != TEC_F32 && t->dtype != TEC_BF16))
        return tec_fail(err, TEC_SHAPE, "tensor '%s' is neither F32 nor BF16", name);
    TEC_TRY(tec_images_read(&data, j->v, j->expected, name, t->dtype, n, err));
    tec_verify_compared(j->v, name);
    if (t->dtype == TEC_BF16) {
        const uint16_t *want = data;
        for (size_t i = 0; i < n; i++)
            wrong += tec_f32_to_bf16(got[i]) != want[i];
        tec_verify_report(j->v, name, wrong, 0.0, 0.0, wrong == 0.0, NULL, NULL);
        return TEC_OK;
    }
    const float *want = data;
    for (size_t i = 0; i < n; i++)
        max = fmax(max, ulps(got[i], want[i]));
    tec_verify_report(j->v, name, max, 0.0, 1.0, max <= 1.0, NULL, "in ulp");
    return TEC_OK;
}

/* The colour of a letterbox is the last tower's mean. */
static enum tec_status fill_of(unsigned char fill[COLOURS], const json_t *op, struct tec_error *err)
{
    const json_t *want = json_object_get(op, "letterbox_fill");
    const json_t *means = json_object_get(op, "mean_std");
    means = json_array_get(json_array_get(means, json_array_size(means) - 1), 0);
    for (size_t c = 0; c < COLOURS; c++) {
        fill[c] = (unsigned char)(json_number_value(json_array_get(means, c)) * 255.0);
        if (json_integer_value(json_array_get(want, c)) != fill[c])
            return tec_fail(err, TEC_SHAPE, "letterbox fill is not the last tower's mean");
    }
    return TEC_OK;
}

/* One resize for all towers: their parameters are the same. */
static enum tec_status fit(struct tec_image *picture, const struct judge *j, const json_t *op,
                           const char *strategy, struct tec_error *err)
{
    const json_t *size = json_object_get(op, "size");
    const char *const *words = tec_reshape_words();
    const struct tec_reshape *plan = NULL;
    struct tec_reshape_spec spec = {.kind = TEC_N_RESHAPES,
                                    .in_height = picture->height,
                                    .in_width = picture->width,
                                    .height = (int)json_integer_value(json_array_get(size, 0)),
                                    .width = (int)json_integer_value(json_array_get(size, 1))};
    struct tec_image made;
    for (int i = 0; i < TEC_N_RESHAPES; i++)
        if (strcmp(words[i], strategy) == 0)
            spec.kind = (enum tec_reshape_kind)i;
    if (spec.kind == TEC_N_RESHAPES)
        return tec_fail(err, TEC_UNSUPPORTED, "unknown strategy '%s'", strategy);
    if (spec.kind == TEC_RESHAPE_BOX)
        TEC_TRY(fill_of(spec.fill, op, err));
    TEC_TRY(tec_reshape_plan(&plan, &spec, j->v->arena, err));
    TEC_TRY(tec_image_new(&made, spec.height, spec.width, COLOURS, j->v->arena, err));
    void *scratch = tec_arena_push(j->v->arena, tec_reshape_scratch(plan), 1, 64);
    if (!scratch)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a reshape");
    tec_reshape_run(plan, made.pixels, picture->pixels, scratch);
    *picture = made;
    return TEC_OK;
}

static void tower_tables(float luts[COLOURS][256], const json_t *mean_std)
{
    double mean[COLOURS], deviation[COLOURS];
    for (size_t c = 0; c < COLOURS; c++) {
        mean[c] = json_number_value(json_array_get(json_array_get(mean_std, 0), c));
        deviation[c] = json_number_value(json_array_get(json_array_get(mean_std, 1), c));
    }
    tec_lut_channels(luts, mean, deviation, COLOURS);
}

static enum tec_status prismatic(const struct judge *j, const char *name, const json_t *op,
                                 struct tec_error *err)
{
    const json_t *towers = json_object_get(op, "mean_std");
    const char *strategy = json_string_value(json_object_get(op, "strategy"));
    size_t n_towers = json_array_size(towers);
    struct tec_image picture;
    float luts[COLOURS][256];
    if (!strategy || n_towers < 1 || n_towers > MOST_TOWERS)
        return tec_fail(err, TEC_MALFORMED, "no strategy, or not 1 to %d towers", MOST_TOWERS);
    TEC_TRY(tec_images_picture(&picture, j->v, j->inputs,
                               json_string_value(json_object_get(op, "input")), err));
    if (picture.channels != COLOURS)
        return tec_fail(err, TEC_SHAPE, "the input is not RGB");
    TEC_TRY(fit(&picture, j, op, strategy, err));
    size_t plane = (size_t)picture.height * (size_t)picture.width * COLOURS;
    float *got = TEC_NEW(j->v->arena, plane * n_towers, float);
    if (!got)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the towers");
    for (size_t t = 0; t < n_towers; t++) {
        tower_tables(luts, json_array_get(towers, t));
        tec_lut_planes(got + t * plane, picture.pixels, picture.height, picture.width, COLOURS,
                       (const float(*)[256])luts);
    }
    return compare(j, name, got, plane * n_towers, err);
}

static bool is_named(const char *name, const char *stem)
{
    size_t n = strlen(stem);
    return strncmp(name, stem, n) == 0 && (name[n] == '\0' || strcmp(name + n, ".bf16") == 0);
}

static enum tec_status table(const struct judge *j, const char *name, struct tec_error *err)
{
    static const struct {
        const char *stem;
        float mean[COLOURS], deviation[COLOURS];
    } kinds[] = {
        {"lut.dino_bf16_constants",
         {0.484375F, 0.455078125F, 0.40625F},
         {0.228515625F, 0.2236328125F, 0.224609375F}},
        {"lut.imagenet", {0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}},
        {"lut.half", {0.5F, 0.5F, 0.5F}, {0.5F, 0.5F, 0.5F}},
    };
    float luts[COLOURS][256];
    if (is_named(name, "lut.0_1")) {
        tec_lut_unit(luts[0]);
        return compare(j, name, luts[0], 256, err);
    }
    if (is_named(name, "lut.minus1_1.openpi")) {
        tec_lut_signed(luts[0]);
        return compare(j, name, luts[0], 256, err);
    }
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        if (!is_named(name, kinds[k].stem))
            continue;
        for (size_t c = 0; c < COLOURS; c++)
            tec_lut_normalise(luts[c], kinds[k].mean[c], kinds[k].deviation[c]);
        return compare(j, name, luts[0], sizeof luts / sizeof(float), err);
    }
    return tec_fail(err, TEC_UNSUPPORTED, "unknown table");
}

static enum tec_status to_bytes(const struct judge *j, const char *name, struct tec_error *err)
{
    const struct tec_stored *t = tec_tensors_find(j->expected, name);
    size_t n = (size_t)t->bytes;
    void *in = NULL, *want = NULL;
    TEC_TRY(tec_images_read(&in, j->v, j->inputs, "float01", TEC_F32, n, err));
    TEC_TRY(tec_images_read(&want, j->v, j->expected, name, TEC_U8, n, err));
    unsigned char *got = TEC_NEW(j->v->arena, n, unsigned char);
    if (!got)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %zu bytes", n);
    tec_u8_from_unit(got, in, n);
    tec_verify_compared(j->v, name);
    tec_images_bytes(j->v, name, got, want, n);
    return TEC_OK;
}

/* The expected shape says which input was turned. */
static enum tec_status rotate(const struct judge *j, const char *name, struct tec_error *err)
{
    struct tec_image want, got;
    TEC_TRY(tec_images_picture(&want, j->v, j->expected, name, err));
    const char *input = tec_arena_printf(j->v->arena, "rgb.%dx%d", want.height, want.width);
    TEC_TRY(tec_images_picture(&got, j->v, j->inputs, input, err));
    tec_image_rotate180(&got);
    tec_verify_compared(j->v, name);
    tec_images_bytes(j->v, name, got.pixels, want.pixels,
                     (size_t)want.height * (size_t)want.width * COLOURS);
    return TEC_OK;
}

static const json_t *find_op(const struct judge *j, const char *name)
{
    const json_t *op;
    size_t i;
    json_array_foreach(json_object_get(j->v->json, "ops"), i, op)
    {
        const char *output = json_string_value(json_object_get(op, "output"));
        if (output && is_named(name, output))
            return op;
    }
    return NULL;
}

static enum tec_status judge_tensor(const struct judge *j, const char *name, struct tec_error *err)
{
    if (strcmp(name, "float01.to_u8") == 0)
        return to_bytes(j, name, err);
    if (strcmp(name, "rotate180") == 0)
        return rotate(j, name, err);
    if (strncmp(name, "lut.", 4) == 0)
        return table(j, name, err);
    const json_t *op = find_op(j, name);
    const char *kind = json_string_value(json_object_get(op, "op"));
    if (kind && strcmp(kind, "prismatic") == 0)
        return prismatic(j, name, op, err);
    return tec_fail(err, TEC_UNSUPPORTED, "no operation makes this tensor");
}

/* Every tensor that the case expects, and every operation that no tensor answers to. */
static void judge_all(const struct judge *j)
{
    struct tec_error err;
    const json_t *op;
    size_t i;
    for (size_t t = 0; t < tec_tensors_count(j->expected); t++) {
        const char *name = tec_tensors_at(j->expected, t)->name;
        struct tec_arena_mark mark = tec_arena_mark(j->v->arena);
        if (judge_tensor(j, name, &err) != TEC_OK)
            tec_verify_cannot(j->v, name, &err);
        tec_arena_rewind(j->v->arena, mark);
    }
    json_array_foreach(json_object_get(j->v->json, "ops"), i, op)
    {
        const char *output = json_string_value(json_object_get(op, "output"));
        if (output && tec_tensors_find(j->expected, output))
            continue;
        tec_fail(&err, TEC_NOT_FOUND, "no expected tensor for this operation");
        tec_verify_cannot(j->v, output ? output : "op", &err);
    }
}

enum tec_status tec_verify_images_preprocess(struct tec_verify *v, struct tec_error *err)
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
