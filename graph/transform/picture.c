/* picture.c - converts one camera's picture to the model's layout and size.
 *
 * Runs on the session's thread. Weights, buffers and scratch of a resize are planned when a picture
 * of a new size comes and kept until the size changes, so a steady camera allocates nothing. Layout
 * and a turn by 180 degrees are strides and signs of one walk over the elements. Rounding follows
 * the published code of each convention to the bit. */
#include "graph/transform/picture.h"

#include "base/image/image.h"

#include <stdio.h>
#include <string.h>

size_t tec_value_size(enum tec_value_kind kind)
{
    static const size_t sizes[] = {0, 1, 4, 8, 4};
    return (unsigned)kind < 5 ? sizes[kind] : 0;
}

const char *tec_value_word(enum tec_value_kind kind)
{
    static const char *const kinds[] = {"text", "u8", "f32", "f64", "i32"};
    return (unsigned)kind < 5 ? kinds[kind] : "?";
}

const char *tec_value_shape(const struct tec_value *value, char *buffer, size_t size)
{
    int used = snprintf(buffer, size, "%s[", tec_value_word(value->kind));
    for (int i = 0; i < value->rank && i < 4 && used > 0 && (size_t)used < size; i++)
        used += snprintf(buffer + used, size - (size_t)used, "%s%lld", i ? "," : "",
                         (long long)value->shape[i]);
    if (used > 0 && (size_t)used < size)
        snprintf(buffer + used, size - (size_t)used, "]");
    return buffer;
}

/* How to walk over a picture: element (y, x, c) lies at first + y * row + x * column + c * channel.
 * Turning by 180 degrees is a matter of signs. */
struct walk {
    int h, w;
    int64_t first, row, column, channel;
};

static enum tec_status open_walk(struct walk *walk, const struct tec_picture *p,
                                 const struct tec_value *value, struct tec_error *err)
{
    static const char *const wanted[] = {"[height,width,3] or [3,height,width]", "[height,width,3]",
                                         "[3,height,width]"};
    char shape[120];
    enum tec_robot_pixels layout = p->camera->layout;
    const int64_t *s = value->shape;
    bool picture =
        value->rank == 3 && value->kind != TEC_VALUE_TEXT && value->kind != TEC_VALUE_I32;
    if (picture && layout == TEC_PIXELS_AUTO)
        layout = s[0] == 3 ? TEC_PIXELS_CHW : TEC_PIXELS_HWC;
    bool chw = layout == TEC_PIXELS_CHW;
    if (!picture || s[chw ? 0 : 2] != 3)
        return tec_fail(err, TEC_SHAPE, "%s: a picture is u8 or float %s; this is %s", value->name,
                        wanted[p->camera->layout], tec_value_shape(value, shape, sizeof shape));
    int64_t h = s[chw ? 1 : 0], w = s[chw ? 2 : 1];
    if (h < 1 || w < 1 || h > TEC_IMAGE_SIDE || w > TEC_IMAGE_SIDE || h * w > TEC_IMAGE_PIXELS)
        return tec_fail(err, TEC_SHAPE,
                        "%s: %lld x %lld pixels; sides are 1 to %d, at most %d pixels in all",
                        value->name, (long long)h, (long long)w, TEC_IMAGE_SIDE, TEC_IMAGE_PIXELS);
    if (value->bytes != (size_t)(h * w * 3) * tec_value_size(value->kind))
        return tec_fail(err, TEC_SHAPE, "%s: %zu bytes do not make %s", value->name, value->bytes,
                        tec_value_shape(value, shape, sizeof shape));
    *walk = (struct walk){.h = (int)h, .w = (int)w};
    walk->row = chw ? w : w * 3;
    walk->column = chw ? 1 : 3;
    walk->channel = chw ? h * w : 1;
    if (p->camera->rotate180) {
        walk->first = (h - 1) * walk->row + (w - 1) * walk->column;
        walk->row = -walk->row;
        walk->column = -walk->column;
    }
    return TEC_OK;
}

/* Weights and scratch from h x w to the model's size. */
static enum tec_status plan_resize(struct tec_picture *p, int h, int w, struct tec_error *err)
{
    size_t scratch;
    if (p->reshapes) {
        struct tec_reshape_spec spec = p->reshape;
        spec.in_height = h;
        spec.in_width = w;
        spec.height = p->out_h;
        spec.width = p->out_w;
        TEC_TRY(tec_reshape_plan(&p->shape, &spec, &p->arena, err));
        scratch = tec_reshape_scratch(p->shape);
    } else {
        const struct tec_resize_spec spec = {.in_height = h,
                                             .in_width = w,
                                             .channels = 3,
                                             .height = p->out_h,
                                             .width = p->out_w,
                                             .fit = p->fit,
                                             .filter = TEC_FILTER_BILINEAR,
                                             .sharp = p->as_float};
        TEC_TRY(tec_resize_plan(&p->plan, &spec, &p->arena, err));
        scratch = tec_resize_scratch(p->plan);
    }
    p->scratch = tec_arena_push(&p->arena, scratch, 1, 64);
    return p->scratch ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for a resize");
}

/* Weights, buffers and scratch for pictures of h x w. */
static enum tec_status plan(struct tec_picture *p, int h, int w, const char *name,
                            struct tec_error *err)
{
    size_t n = (size_t)h * (size_t)w * 3;
    if (p->h == h && p->w == w)
        return TEC_OK;
    p->h = p->w = 0;
    p->plan = NULL;
    p->shape = NULL;
    tec_arena_finish(&p->arena);
    bool cuts = p->reshapes && tec_reshape_cuts(p->reshape.kind);
    bool same = h == p->out_h && w == p->out_w && !cuts;
    if (!same && !p->resizes)
        return tec_fail(err, TEC_SHAPE,
                        "%s: the picture is %d high, %d wide, the model takes %d high, %d wide",
                        name, h, w, p->out_h, p->out_w);
    if (!same)
        TEC_TRY(tec_context(err, plan_resize(p, h, w, err), "%s", name));
    p->bytes = p->as_float ? NULL : tec_arena_push(&p->arena, n, 1, 64);
    p->floats = p->as_float ? TEC_NEW(&p->arena, n, float) : NULL;
    if (!p->bytes && !p->floats)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for pictures of %d x %d", name, h, w);
    p->h = h;
    p->w = w;
    if (p->first_h == 0) {
        p->first_h = h;
        p->first_w = w;
    }
    return TEC_OK;
}

/* Element `at` as double; exact for every kind. */
static double element(const struct tec_value *value, int64_t at)
{
    const unsigned char *data = value->data;
    float f;
    double d;
    switch (value->kind) {
    case TEC_VALUE_F32:
        memcpy(&f, data + (size_t)at * sizeof f, sizeof f);
        return (double)f;
    case TEC_VALUE_F64:
        memcpy(&d, data + (size_t)at * sizeof d, sizeof d);
        return d;
    default:
        return data[at];
    }
}

/* numpy's (255 * x).astype(uint8), which truncates. For a float32 x the product in double truncates
 * to the same byte as the product in float32: near each k / 255 the two floats on either side
 * agree.
 */
static uint8_t byte_from_unit(double x)
{
    double y = 255.0 * x;
    return (uint8_t)(y < 0.0 ? 0.0 : y > 255.0 ? 255.0 : y);
}

static enum tec_status refuse_unit(const struct tec_value *value, int64_t at, double x,
                                   struct tec_error *err)
{
    return tec_fail(err, TEC_INVALID,
                    "%s: element %lld is %g; a float picture lies in [0, 1], pictures of 0 to 255 "
                    "are sent as u8",
                    value->name, (long long)at, x);
}

/* A u8 picture that cannot be taken as it is. */
static void copy_bytes(const struct walk *walk, const unsigned char *data, uint8_t *out)
{
    for (int64_t y = 0; y < walk->h; y++)
        for (int64_t x = 0; x < walk->w; x++, out += 3) {
            const unsigned char *pixel = data + walk->first + y * walk->row + x * walk->column;
            out[0] = pixel[0];
            out[1] = pixel[walk->channel];
            out[2] = pixel[2 * walk->channel];
        }
}

static enum tec_status convert_floats(struct tec_picture *p, const struct walk *walk,
                                      const struct tec_value *value, struct tec_error *err)
{
    const double slack = 1.0 / 255.0;
    size_t i = 0;
    for (int64_t y = 0; y < walk->h; y++)
        for (int64_t x = 0; x < walk->w; x++)
            for (int c = 0; c < 3; c++, i++) {
                int64_t at = walk->first + y * walk->row + x * walk->column + c * walk->channel;
                double v = element(value, at);
                if (!(v >= -slack && v <= 1.0 + slack))
                    return refuse_unit(value, at, v, err);
                if (p->as_float)
                    p->floats[i] = (float)v;
                else
                    p->bytes[i] = byte_from_unit(v);
            }
    return TEC_OK;
}

/* x / 255 in float32, as lerobot's own conversion of camera bytes. */
static void floats_from_bytes(const struct walk *walk, const unsigned char *data, float *out)
{
    for (int64_t y = 0; y < walk->h; y++)
        for (int64_t x = 0; x < walk->w; x++)
            for (int c = 0; c < 3; c++)
                *out++ =
                    (float)
                        data[walk->first + y * walk->row + x * walk->column + c * walk->channel] /
                    255.0F;
}

enum tec_status tec_picture_run(struct tec_picture *p, const struct tec_value *value,
                                uint8_t *bytes, float *floats, struct tec_error *err)
{
    struct walk walk = {0};
    TEC_TRY(open_walk(&walk, p, value, err));
    TEC_TRY(plan(p, walk.h, walk.w, value->name, err));
    const uint8_t *in = p->bytes;
    if (value->kind != TEC_VALUE_U8)
        TEC_TRY(convert_floats(p, &walk, value, err));
    else if (p->as_float)
        floats_from_bytes(&walk, value->data, p->floats);
    else if (walk.channel == 1 && walk.first == 0)
        in = value->data;
    else
        copy_bytes(&walk, value->data, p->bytes);
    size_t n = (size_t)p->out_h * (size_t)p->out_w * 3;
    if (p->as_float && p->plan)
        tec_resize_run_f32(p->plan, floats, p->floats, p->scratch);
    else if (p->as_float)
        memcpy(floats, p->floats, n * sizeof *floats);
    else if (p->shape)
        tec_reshape_run(p->shape, bytes, in, p->scratch);
    else if (p->plan)
        tec_resize_run_u8(p->plan, bytes, in, p->scratch);
    else
        memcpy(bytes, in, n);
    return TEC_OK;
}
