/* images_resize.c - judges images/resize: every operation to its pixels. */
#include "tests/judge/images.h"

#include <string.h>

struct judge {
    struct tec_verify *v;
    const struct tec_tensors *inputs, *expected;
};

/* One operation of the case while it is judged. */
struct op {
    const json_t *json;
    const char *name, *output;
    struct tec_image in;
    int height, width; /* of the output */
};

enum value { BYTES_EXACT, BYTES_NEAR, UNIT, SIGNED };

/* Operations that are one resize plan. */
static const struct {
    const char *name;
    enum tec_fit fit;
    bool filtered; /* the case names filter and perhaps antialias; else bilinear */
    bool sharp;
    enum value value;
    float pad;
} plans[] = {
    {"pil_resize", TEC_FIT_STRETCH, true, false, BYTES_EXACT, 0.0F},
    {"openpi_resize_with_pad_pil", TEC_FIT_CENTRED, false, false, BYTES_EXACT, 0.0F},
    {"openpi_resize_with_pad_torch_f32", TEC_FIT_CENTRED, false, true, SIGNED, -1.0F},
    {"openpi_resize_with_pad_torch_u8", TEC_FIT_CENTRED, false, true, BYTES_NEAR, 0.0F},
    {"lerobot_resize_with_pad_centred_f32", TEC_FIT_CENTRED, false, true, UNIT, 0.0F},
    {"lerobot_resize_with_pad_topleft_f32", TEC_FIT_CORNER, false, true, UNIT, 0.0F},
    {"torchvision_resize_u8", TEC_FIT_STRETCH, true, false, BYTES_NEAR, 0.0F},
    {"torchvision_resize_f32", TEC_FIT_STRETCH, true, false, UNIT, 0.0F},
};

static bool find_filter(const char *text, enum tec_filter *filter)
{
#define FILTER(name, known, support)        \
    if (text && strcmp(text, known) == 0) { \
        *filter = TEC_FILTER_##name;        \
        return true;                        \
    }
#include "base/image/filters.def"
#undef FILTER
    return false;
}

static size_t elements(const struct op *op)
{
    return (size_t)op->height * (size_t)op->width * (size_t)op->in.channels;
}

static enum tec_status judge_bytes(const struct judge *j, const struct op *op,
                                   const struct tec_image *got, struct tec_error *err)
{
    void *want = NULL;
    if (got->height != op->height || got->width != op->width || got->channels != op->in.channels)
        return tec_fail(err, TEC_SHAPE, "made %d x %d, expected %d x %d", got->width, got->height,
                        op->width, op->height);
    TEC_TRY(tec_images_read(&want, j->v, j->expected, op->output, TEC_U8, elements(op), err));
    tec_verify_compared(j->v, op->output);
    tec_images_bytes(j->v, op->output, got->pixels, want, elements(op));
    return TEC_OK;
}

static enum tec_status run_floats(float **got, const struct judge *j, const struct op *op,
                                  const struct tec_resize_spec *spec, const float lut[256],
                                  struct tec_error *err)
{
    const struct tec_resize *plan = NULL;
    struct tec_arena *arena = j->v->arena;
    TEC_TRY(tec_resize_plan(&plan, spec, arena, err));
    *got = TEC_NEW(arena, elements(op), float);
    void *scratch = tec_arena_push(arena, tec_resize_scratch(plan), 1, 64);
    if (!*got || !scratch)
        return tec_fail(err, TEC_NO_MEMORY, "no memory to resize");
    tec_resize_run_u8_f32(plan, *got, op->in.pixels, lut, scratch);
    return TEC_OK;
}

/* README: within 4 x err_fp32 + 1e-6; an operation without err_fp32 has 1e-6. */
static enum tec_status judge_floats(const struct judge *j, const struct op *op,
                                    const struct tec_resize_spec *spec, bool is_signed,
                                    struct tec_error *err)
{
    float lut[256], *got = NULL;
    void *want = NULL;
    double e = json_number_value(json_object_get(op->json, "err_fp32"));
    if (is_signed)
        tec_lut_signed(lut);
    else
        tec_lut_unit(lut);
    TEC_TRY(run_floats(&got, j, op, spec, lut, err));
    TEC_TRY(tec_images_read(&want, j->v, j->expected, op->output, TEC_F32, elements(op), err));
    tec_verify_compared(j->v, op->output);
    tec_images_floats(j->v, op->output, got, want, elements(op), 4.0 * e + 1e-6);
    return TEC_OK;
}

/* torch on bytes: float32 inside, rounded at the end. README: at most 1. */
static enum tec_status judge_near(const struct judge *j, const struct op *op,
                                  const struct tec_resize_spec *spec, struct tec_error *err)
{
    float lut[256], *values = NULL;
    void *want = NULL;
    tec_lut_plain(lut);
    TEC_TRY(run_floats(&values, j, op, spec, lut, err));
    TEC_TRY(tec_images_read(&want, j->v, j->expected, op->output, TEC_U8, elements(op), err));
    unsigned char *got = TEC_NEW(j->v->arena, elements(op), unsigned char);
    if (!got)
        return tec_fail(err, TEC_NO_MEMORY, "no memory to round");
    tec_u8_from_plain(got, values, elements(op));
    tec_verify_compared(j->v, op->output);
    tec_images_near_bytes(j->v, op->output, got, want, elements(op), 1.0);
    return TEC_OK;
}

static enum tec_status judge_plan(const struct judge *j, const struct op *op, size_t which,
                                  struct tec_error *err)
{
    const json_t *antialias = json_object_get(op->json, "antialias");
    const char *filter = json_string_value(json_object_get(op->json, "filter"));
    struct tec_image got;
    struct tec_resize_spec spec = {
        .in_height = op->in.height,
        .in_width = op->in.width,
        .channels = op->in.channels,
        .height = op->height,
        .width = op->width,
        .fit = plans[which].fit,
        .filter = TEC_FILTER_BILINEAR,
        .sharp = plans[which].sharp || json_is_false(antialias),
        .pad = plans[which].pad,
    };
    if (plans[which].filtered && !find_filter(filter, &spec.filter))
        return tec_fail(err, TEC_UNSUPPORTED, "unknown filter '%s'", filter ? filter : "(none)");
    if (plans[which].value == UNIT || plans[which].value == SIGNED)
        return judge_floats(j, op, &spec, plans[which].value == SIGNED, err);
    if (plans[which].value == BYTES_NEAR)
        return judge_near(j, op, &spec, err);
    TEC_TRY(tec_image_resize(&got, &op->in, spec, j->v->arena, err));
    return judge_bytes(j, op, &got, err);
}

static enum tec_status judge_crop(const struct judge *j, const struct op *op, bool resized,
                                  struct tec_error *err)
{
    const json_t *crop = json_object_get(op->json, "crop");
    const char *filter = json_string_value(json_object_get(op->json, "filter"));
    struct tec_image picture = op->in, got;
    if (resized) {
        struct tec_resize_spec spec = {.height = op->in.height, .width = op->in.width};
        if (!find_filter(filter, &spec.filter))
            return tec_fail(err, TEC_UNSUPPORTED, "unknown filter");
        tec_resize_shorter_edge(&spec.height, &spec.width,
                                (int)json_integer_value(json_object_get(op->json, "edge")));
        TEC_TRY(tec_image_resize(&picture, &op->in, spec, j->v->arena, err));
    }
    TEC_TRY(tec_image_crop_centre(&got, &picture, (int)json_integer_value(json_array_get(crop, 0)),
                                  (int)json_integer_value(json_array_get(crop, 1)), j->v->arena,
                                  err));
    return judge_bytes(j, op, &got, err);
}

static enum tec_status judge_op(const struct judge *j, struct op *op, struct tec_error *err)
{
    const json_t *shape = json_object_get(op->json, "shape");
    const char *input = json_string_value(json_object_get(op->json, "input"));
    TEC_TRY(tec_images_picture(&op->in, j->v, j->inputs, input, err));
    op->height = (int)json_integer_value(json_array_get(shape, 0));
    op->width = (int)json_integer_value(json_array_get(shape, 1));
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++)
        if (strcmp(plans[i].name, op->name) == 0)
            return judge_plan(j, op, i, err);
    if (strcmp(op->name, "torchvision_centre_crop") == 0)
        return judge_crop(j, op, false, err);
    if (strcmp(op->name, "torchvision_shorter_edge_centre_crop") == 0)
        return judge_crop(j, op, true, err);
    return tec_fail(err, TEC_UNSUPPORTED, "unknown operation '%s'", op->name);
}

static enum tec_status judge_all(const struct judge *j, struct tec_error *err)
{
    const json_t *ops = json_object_get(j->v->json, "ops"), *json;
    size_t i;
    if (json_array_size(ops) == 0)
        return tec_fail(err, TEC_MALFORMED, "%s/case.json: no operations", j->v->dir);
    json_array_foreach(ops, i, json)
    {
        struct tec_error mine;
        struct op op = {.json = json,
                        .name = json_string_value(json_object_get(json, "op")),
                        .output = json_string_value(json_object_get(json, "output"))};
        struct tec_arena_mark mark = tec_arena_mark(j->v->arena);
        enum tec_status status = op.name && op.output
                                     ? judge_op(j, &op, &mine)
                                     : tec_fail(&mine, TEC_MALFORMED, "no 'op' or 'output'");
        if (status != TEC_OK)
            tec_verify_cannot(j->v, op.output ? op.output : "op", &mine);
        tec_arena_rewind(j->v->arena, mark);
    }
    return TEC_OK;
}

enum tec_status tec_verify_images_resize(struct tec_verify *v, struct tec_error *err)
{
    struct tec_tensors *inputs = NULL, *expected = NULL;
    enum tec_status status = tec_images_open(&inputs, v, "inputs.safetensors", err);
    if (status == TEC_OK)
        status = tec_images_open(&expected, v, "expected.safetensors", err);
    if (status == TEC_OK)
        status = judge_all(&(struct judge){v, inputs, expected}, err);
    tec_tensors_close(expected);
    tec_tensors_close(inputs);
    return status;
}
