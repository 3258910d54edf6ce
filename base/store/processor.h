/* processor.h - what a checkpoint says of its pictures: shape, size, colours. */
#ifndef TEC_BASE_STORE_PROCESSOR_H
#define TEC_BASE_STORE_PROCESSOR_H

#include "base/error.h"
#include "base/image/reshape.h"

#include <jansson.h>

enum { TEC_PROCESSOR_TOWERS = 4 };

/* The pictures of a preprocessor_config.json. Every tower sees the same bytes; its own are the
 * means and deviations (tables: tec_lut_channels). */
struct tec_processor {
    enum tec_reshape_kind kind;
    unsigned char fill[3]; /* of a box */
    int height, width;
    int n_towers;
    double mean[TEC_PROCESSOR_TOWERS][3], deviation[TEC_PROCESSOR_TOWERS][3];
};

/* Read from an object with
 *     image_resize_strategy  a word of base/image/reshapes.def
 *     input_sizes            one [3, height, width] a tower, all equal
 *     tvf_normalize_params   one {mean, std} a tower: what was used in training. Where it is absent
 *                            means and stds are taken, which may be less rounded than those
 *     tvf_letterbox_fill     colour of a box; absent or null: (int)(255 * mean) of the last of
 *                            `means`
 *     interpolations         "bicubic" each, where present
 * Everything else is not looked at. TEC_MALFORMED, TEC_UNSUPPORTED; the message begins with
 * `where`. */
enum tec_status tec_processor_parse(struct tec_processor *out, const json_t *json,
                                    const char *where, struct tec_error *err);

#endif
