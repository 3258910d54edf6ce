/* resize.h - resizing planned once: weights for given sizes, then runs that allocate nothing. */
#ifndef TEC_BASE_IMAGE_RESIZE_H
#define TEC_BASE_IMAGE_RESIZE_H

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum tec_filter {
#define FILTER(name, text, support) TEC_FILTER_##name,
#include "base/image/filters.def"
#undef FILTER
};

/* How the picture is placed in the result. All but STRETCH keep its shape: ratio = max of the two
 * in / out (double), each side (int)(side / ratio), the rest is padding. CENTRED leaves (int)(rest
 * / 2) before it; CORNER puts all padding at the top and the left. */
enum tec_fit { TEC_FIT_STRETCH, TEC_FIT_CENTRED, TEC_FIT_CORNER };

struct tec_resize_spec {
    int in_height, in_width; /* what comes in */
    int channels;            /* 1 or 3, innermost */
    int height, width;       /* what goes out */
    enum tec_fit fit;
    enum tec_filter filter;
    bool sharp; /* no antialias: the filter is not widened when shrinking, as torch's interpolate
                 * without antialias; bilinear and bicubic (a = -0.75) only. false: as Pillow and
                 * torch with antialias (bicubic a = -0.5) */
    bool half;  /* bytes by weights of 16 bits, as torch with antialias; bilinear and bicubic, not
                 * sharp. false: as Pillow */
    float pad;  /* value of the padding, in the unit of the output: black is 0 for bytes and for
                 * [0, 1], -1 for [-1, 1] */
};

/* The weights of one pair of sizes. Immutable after create: any number of threads may run it, each
 * with its own scratch. Lives in the arena that made it. */
struct tec_resize;

/* TEC_INVALID for sizes out of range (see image.h), a filter that does not exist sharp, or a shape
 * so extreme that a side of the fitted picture would be 0; TEC_NO_MEMORY. */
enum tec_status tec_resize_plan(const struct tec_resize **out, const struct tec_resize_spec *spec,
                                struct tec_arena *arena, struct tec_error *err);

/* Bytes of scratch that a run needs, aligned to 4; enough for all three runs. */
size_t tec_resize_scratch(const struct tec_resize *plan);

/* [in_height, in_width, channels] to [height, width, channels]; buffers must not overlap.
 * Bytes are computed as Pillow 9 to 12 do, bit for bit: 22-bit fixed-point weights, horizontal pass
 * first, each pass rounded to bytes. (Pillow 13 changed the order of the passes; 12.3 already where
 * a picture more than 100 times as high as wide loses height, 12.1 not.) `half`: as torch
 * on a CPU does, bit for bit: weights have as many bits after the point as leave the largest below
 * 2^15. */
void tec_resize_run_u8(const struct tec_resize *plan, unsigned char *out, const unsigned char *in,
                       void *scratch);

/* Resize float32: weights from double, sums in float32, no clamping (bicubic overshoots). */
void tec_resize_run_f32(const struct tec_resize *plan, float *out, const float *in, void *scratch);

/* Bytes in, float32 out: each byte is read through `lut` before the resize, as models do that
 * convert first. */
void tec_resize_run_u8_f32(const struct tec_resize *plan, float *out, const unsigned char *in,
                           const float lut[256], void *scratch);

/* Sizes that make the shorter side `edge` and keep the shape: the longer is
 * (int)(edge * longer / shorter). */
void tec_resize_shorter_edge(int *height, int *width, int edge);

#endif
