/* reshape.c - stretching, boxing and cropping over the resizes of resize.h and area.h. */
#include "base/image/reshape.h"

#include "base/image/area.h"
#include "base/image/image.h"

#include <math.h>
#include <string.h>

enum { CHANNELS = 3 };

struct tec_reshape {
    struct tec_reshape_spec spec;
    int pad_y, pad_x;           /* before the picture, and but for area behind it */
    int boxed_h, boxed_w;       /* with the padding */
    int whole_h, whole_w;       /* after the resize */
    int top, left;              /* of the crop */
    size_t boxed, whole, inner; /* bytes of scratch: padded or cut out, resized, the resize's own */
    float lut[256];             /* part */
    const struct tec_resize *resize;
    const struct tec_area *small, *again; /* area: to the edge, and its middle to the edge */
    const struct tec_resize *to_edge;     /* middle, box_middle */
};

const char *const *tec_reshape_words(void)
{
    static const char *const words[] = {
#define RESHAPE(name, word, cuts, edged) word,
#include "base/image/reshapes.def"
#undef RESHAPE
    };
    return words;
}

bool tec_reshape_cuts(enum tec_reshape_kind kind)
{
    static const bool values[] = {
#define RESHAPE(name, word, cuts, edged) cuts,
#include "base/image/reshapes.def"
#undef RESHAPE
    };
    return values[kind];
}

bool tec_reshape_edged(enum tec_reshape_kind kind)
{
    static const bool values[] = {
#define RESHAPE(name, word, cuts, edged) edged,
#include "base/image/reshapes.def"
#undef RESHAPE
    };
    return values[kind];
}

static size_t bytes(int height, int width)
{
    size_t n = (size_t)height * (size_t)width * CHANNELS;
    return (n + 63) / 64 * 64; /* what follows stays aligned */
}

static bool side_ok(int side)
{
    return side >= 1 && side <= TEC_IMAGE_SIDE;
}

/* The part of a picture that is cut out before it is resized. */
static void place_part(struct tec_reshape *r)
{
    const struct tec_reshape_spec *s = &r->spec;
    r->boxed_h = (int)(0.95 * s->in_height);
    r->boxed_w = (int)(0.95 * s->in_width);
    r->boxed_h = r->boxed_h < 1 ? 1 : r->boxed_h;
    r->boxed_w = r->boxed_w < 1 ? 1 : r->boxed_w;
    r->top = (int)nearbyint((s->in_height - r->boxed_h) / 2.0);
    r->left = (int)nearbyint((s->in_width - r->boxed_w) / 2.0);
    r->whole_h = s->height;
    r->whole_w = s->width;
    for (int i = 0; i < 256; i++)
        r->lut[i] = (float)i / 255.0F;
}

/* Scratch for a square of the edge and its middle, and for the larger of two resizes. */
static void measure_edged(struct tec_reshape *r, size_t first, size_t second)
{
    size_t last = tec_resize_scratch(r->resize);
    r->boxed = r->boxed_h != r->spec.in_height || r->boxed_w != r->spec.in_width
                   ? bytes(r->boxed_h, r->boxed_w)
                   : 0;
    r->whole = 2 * bytes(r->spec.edge, r->spec.edge);
    r->inner = first > second ? first : second;
    r->inner = r->inner < last ? last : r->inner;
}

/* The square around a picture, where it is to be one: of an odd difference one pixel more is
 * behind. */
static enum tec_status place_box(struct tec_reshape *r, bool boxes, struct tec_error *err)
{
    const struct tec_reshape_spec *s = &r->spec;
    int longer = s->in_height > s->in_width ? s->in_height : s->in_width;
    int most = boxes && longer > s->edge ? longer : s->edge;
    if (!side_ok(s->edge) || !(s->middle > 0.0 && s->middle <= 1.0))
        return tec_fail(err, TEC_INVALID, "the middle %g of an edge of %d pixels", s->middle,
                        s->edge);
    if ((int64_t)most * most > TEC_IMAGE_PIXELS)
        return tec_fail(err, TEC_INVALID, "a square of %d x %d pixels; it may have at most %d",
                        most, most, TEC_IMAGE_PIXELS);
    if (!boxes && (int64_t)s->in_height * s->edge > TEC_IMAGE_PIXELS) /* between its two passes */
        return tec_fail(err, TEC_INVALID,
                        "%d lines of %d pixels between two resizes; there may be at most %d pixels",
                        s->in_height, s->edge, TEC_IMAGE_PIXELS);
    r->boxed_h = boxes ? longer : s->in_height;
    r->boxed_w = boxes ? longer : s->in_width;
    r->pad_y = (r->boxed_h - s->in_height) / 2;
    r->pad_x = (r->boxed_w - s->in_width) / 2;
    return TEC_OK;
}

/* The middle of a square of the edge, `side` pixels of it. */
static void place_middle(struct tec_reshape *r, double side)
{
    r->whole_h = r->whole_w = side < 1.0 ? 1 : (int)side;
    r->top = r->left = (r->spec.edge - r->whole_h) / 2;
}

static enum tec_status plan_area(struct tec_reshape *r, struct tec_arena *arena,
                                 struct tec_error *err)
{
    const struct tec_reshape_spec *s = &r->spec;
    const struct tec_resize_spec resize = {.in_height = s->edge,
                                           .in_width = s->edge,
                                           .channels = CHANNELS,
                                           .height = s->height,
                                           .width = s->width,
                                           .filter = TEC_FILTER_BICUBIC};
    TEC_TRY(place_box(r, true, err));
    place_middle(r, s->edge * s->middle);
    TEC_TRY(tec_area_plan(&r->small, r->boxed_h, s->edge, arena, err));
    TEC_TRY(tec_area_plan(&r->again, r->whole_h, s->edge, arena, err));
    TEC_TRY(tec_resize_plan(&r->resize, &resize, arena, err));
    measure_edged(r, tec_area_scratch(r->small), tec_area_scratch(r->again));
    return TEC_OK;
}

static enum tec_status plan_middle(struct tec_reshape *r, struct tec_arena *arena,
                                   struct tec_error *err)
{
    const struct tec_reshape_spec *s = &r->spec;
    TEC_TRY(place_box(r, s->kind == TEC_RESHAPE_BOX_MIDDLE, err));
    place_middle(r, nearbyint(s->edge * s->middle));
    struct tec_resize_spec resize = {.in_height = r->boxed_h,
                                     .in_width = r->boxed_w,
                                     .channels = CHANNELS,
                                     .height = s->edge,
                                     .width = s->edge,
                                     .filter = TEC_FILTER_BICUBIC,
                                     .half = true};
    TEC_TRY(tec_resize_plan(&r->to_edge, &resize, arena, err));
    resize.in_height = resize.in_width = r->whole_h;
    resize.height = s->height;
    resize.width = s->width;
    TEC_TRY(tec_resize_plan(&r->resize, &resize, arena, err));
    measure_edged(r, tec_resize_scratch(r->to_edge), 0);
    return TEC_OK;
}

static enum tec_status check(const struct tec_reshape_spec *s, struct tec_error *err)
{
    bool square =
        s->kind == TEC_RESHAPE_BOX || s->kind == TEC_RESHAPE_CROP || s->kind == TEC_RESHAPE_AREA;
    if (!side_ok(s->in_height) || !side_ok(s->in_width) || !side_ok(s->height) ||
        !side_ok(s->width))
        return tec_fail(err, TEC_INVALID, "reshape from %d x %d to %d x %d; sides are 1 to %d",
                        s->in_width, s->in_height, s->width, s->height, TEC_IMAGE_SIDE);
    if (square && s->height != s->width)
        return tec_fail(err, TEC_INVALID, "%s makes squares, not %d x %d",
                        tec_reshape_words()[s->kind], s->width, s->height);
    return TEC_OK;
}

/* Kinds without an edge. */
static void place(struct tec_reshape *r)
{
    const struct tec_reshape_spec *s = &r->spec;
    bool stretch = s->kind == TEC_RESHAPE_STRETCH;
    if (s->kind == TEC_RESHAPE_PART) {
        place_part(r);
        return;
    }
    int longer = s->in_height > s->in_width ? s->in_height : s->in_width;
    r->pad_y = s->kind == TEC_RESHAPE_BOX ? (longer - s->in_height) / 2 : 0;
    r->pad_x = s->kind == TEC_RESHAPE_BOX ? (longer - s->in_width) / 2 : 0;
    r->boxed_h = s->in_height + 2 * r->pad_y;
    r->boxed_w = s->in_width + 2 * r->pad_x;
    r->whole_h = stretch ? s->height : r->boxed_h;
    r->whole_w = stretch ? s->width : r->boxed_w;
    if (!stretch)
        tec_resize_shorter_edge(&r->whole_h, &r->whole_w, s->height);
    r->top = (int)nearbyint((r->whole_h - s->height) / 2.0);
    r->left = (int)nearbyint((r->whole_w - s->width) / 2.0);
}

enum tec_status tec_reshape_plan(const struct tec_reshape **out,
                                 const struct tec_reshape_spec *spec, struct tec_arena *arena,
                                 struct tec_error *err)
{
    struct tec_reshape *r = TEC_NEW(arena, 1, struct tec_reshape);
    if (!r)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the plan of a reshape");
    if ((unsigned)spec->kind >= TEC_N_RESHAPES)
        return tec_fail(err, TEC_INVALID, "reshape of kind %d, which does not exist",
                        (int)spec->kind);
    r->spec = *spec;
    *out = r;
    TEC_TRY(check(spec, err));
    if (tec_reshape_edged(spec->kind))
        return spec->kind == TEC_RESHAPE_AREA ? plan_area(r, arena, err)
                                              : plan_middle(r, arena, err);
    place(r);
    bool part = spec->kind == TEC_RESHAPE_PART;
    const struct tec_resize_spec resize = {.in_height = r->boxed_h,
                                           .in_width = r->boxed_w,
                                           .channels = CHANNELS,
                                           .height = r->whole_h,
                                           .width = r->whole_w,
                                           .filter =
                                               part ? TEC_FILTER_BILINEAR : TEC_FILTER_BICUBIC};
    TEC_TRY(tec_resize_plan(&r->resize, &resize, arena, err));
    r->inner = tec_resize_scratch(r->resize);
    if (part) {
        r->boxed = bytes(r->boxed_h, r->boxed_w);
        r->whole = sizeof(float) * bytes(r->whole_h, r->whole_w);
        return TEC_OK;
    }
    r->boxed = r->boxed_h != spec->in_height || r->boxed_w != spec->in_width
                   ? bytes(r->boxed_h, r->boxed_w)
                   : 0;
    bool cut = r->whole_h != spec->height || r->whole_w != spec->width;
    r->whole = cut ? bytes(r->whole_h, r->whole_w) : 0;
    return TEC_OK;
}

size_t tec_reshape_scratch(const struct tec_reshape *plan)
{
    return plan->boxed + plan->whole + plan->inner;
}

static void pad(const struct tec_reshape *r, unsigned char *boxed, const unsigned char *in)
{
    size_t row = (size_t)r->spec.in_width * CHANNELS, wide = (size_t)r->boxed_w * CHANNELS;
    size_t n = (size_t)r->boxed_h * (size_t)r->boxed_w;
    for (size_t i = 0; i < n; i++)
        memcpy(boxed + i * CHANNELS, r->spec.fill, CHANNELS);
    for (int y = 0; y < r->spec.in_height; y++)
        memcpy(boxed + (size_t)(y + r->pad_y) * wide + (size_t)r->pad_x * CHANNELS,
               in + (size_t)y * row, row);
}

/* Of a square of `side` pixels the one of `n` whose corner is at row and column `at`. */
static void cut_square(unsigned char *out, const unsigned char *in, int side, int at, int n)
{
    size_t row = (size_t)side * CHANNELS, wide = (size_t)n * CHANNELS;
    for (int y = 0; y < n; y++)
        memcpy(out + (size_t)y * wide, in + (size_t)(y + at) * row + (size_t)at * CHANNELS, wide);
}

static void run_area(const struct tec_reshape *r, unsigned char *out, const unsigned char *in,
                     unsigned char *whole)
{
    int edge = r->spec.edge;
    unsigned char *one = whole, *two = whole + r->whole / 2, *inner = whole + r->whole;
    bool same = r->spec.height == edge && r->spec.width == edge;
    tec_area_run(r->small, one, in, inner);
    cut_square(two, one, edge, r->top, r->whole_h);
    tec_area_run(r->again, same ? out : one, two, inner);
    if (!same)
        tec_resize_run_u8(r->resize, out, one, inner);
}

static void run_middle(const struct tec_reshape *r, unsigned char *out, const unsigned char *in,
                       unsigned char *whole)
{
    unsigned char *one = whole, *two = whole + r->whole / 2, *inner = whole + r->whole;
    tec_resize_run_u8(r->to_edge, one, in, inner);
    cut_square(two, one, r->spec.edge, r->top, r->whole_h);
    tec_resize_run_u8(r->resize, out, two, inner);
}

/* Cut out, then in float32. */
static void run_part(const struct tec_reshape *r, unsigned char *out, const unsigned char *in,
                     unsigned char *scratch)
{
    unsigned char *cut = scratch;
    float *whole = (float *)(void *)(scratch + r->boxed);
    size_t row = (size_t)r->spec.in_width * CHANNELS, wide = (size_t)r->boxed_w * CHANNELS;
    size_t n = (size_t)r->whole_h * (size_t)r->whole_w * CHANNELS;
    for (int y = 0; y < r->boxed_h; y++)
        memcpy(cut + (size_t)y * wide, in + (size_t)(y + r->top) * row + (size_t)r->left * CHANNELS,
               wide);
    tec_resize_run_u8_f32(r->resize, whole, cut, r->lut, scratch + r->boxed + r->whole);
    for (size_t i = 0; i < n; i++) {
        float x = whole[i] * 255.0F;
        out[i] = (unsigned char)(x < 0.0F ? 0.0F : x > 255.0F ? 255.0F : x);
    }
}

void tec_reshape_run(const struct tec_reshape *plan, unsigned char *out, const unsigned char *in,
                     void *scratch)
{
    const struct tec_reshape *r = plan;
    if (r->spec.kind == TEC_RESHAPE_PART) {
        run_part(r, out, in, scratch);
        return;
    }
    unsigned char *boxed = scratch, *whole = boxed + r->boxed;
    unsigned char *inner = whole + r->whole;
    if (r->boxed) {
        pad(r, boxed, in);
        in = boxed;
    }
    if (tec_reshape_edged(r->spec.kind)) {
        (r->spec.kind == TEC_RESHAPE_AREA ? run_area : run_middle)(r, out, in, whole);
        return;
    }
    tec_resize_run_u8(r->resize, r->whole ? whole : out, in, inner);
    size_t row = (size_t)r->spec.width * CHANNELS, wide = (size_t)r->whole_w * CHANNELS;
    for (int y = 0; r->whole && y < r->spec.height; y++)
        memcpy(out + (size_t)y * row,
               whole + (size_t)(y + r->top) * wide + (size_t)r->left * CHANNELS, row);
}
