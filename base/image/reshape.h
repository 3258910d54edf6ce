/* reshape.h - a picture of any shape to a model's: stretched, boxed or cropped; planned once. */
#ifndef TEC_BASE_IMAGE_RESHAPE_H
#define TEC_BASE_IMAGE_RESHAPE_H

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* What happens to a picture whose shape is not the model's. Where nothing else is said, bytes
 * are resized with Pillow's antialiased bicubic filter.
 *   stretch   to height x width, whatever the shape.
 *   box       first padded to a square: (longer - shorter) / 2, truncated, on both sides, so that
 *             an odd difference leaves it one pixel short; then as crop.
 *   crop      the shorter side to the model's, the longer to (int)(side * longer / shorter), then
 *             the middle; half of an odd difference is rounded to the even neighbour.
 *   part      the middle of (int)(0.95 * side) pixels, half of an odd rest rounded as for crop;
 *             then to height x width, whatever the shape, as torchvision does it in float32:
 *             antialiased bilinear of byte / 255, times 255, truncated.
 *   area      padded to a square in black, an odd difference one pixel more behind; by areas to
 *             `edge` pixels a side (area.h); the middle of (int)(middle * edge) pixels, by areas to
 *             that side again; then as stretch.
 *   middle    whatever its shape to a square of `edge` pixels a side; the middle of middle * edge
 *             pixels, a half rounded to the even neighbour, an odd rest one pixel more behind; then
 *             to height x width. All bytes, as torch's bicubic with antialias (resize.h: half).
 *   box_middle  first padded to a square as area is, then as middle. */
enum tec_reshape_kind {
#define RESHAPE(name, word, cuts, edged) TEC_RESHAPE_##name,
#include "base/image/reshapes.def"
#undef RESHAPE
    TEC_N_RESHAPES
};

/* The words of reshapes.def, TEC_N_RESHAPES of them, in the order of the enum. */
const char *const *tec_reshape_words(void);

/* Whether a kind changes a picture of the model's own size, too. */
bool tec_reshape_cuts(enum tec_reshape_kind kind);

/* Whether a kind needs an edge and a middle. */
bool tec_reshape_edged(enum tec_reshape_kind kind);

struct tec_reshape_spec {
    enum tec_reshape_kind kind;
    int in_height, in_width; /* 3 channels, innermost */
    int height, width;       /* what goes out; equal of box, crop and area */
    unsigned char fill[3];   /* box: colour of the padding; of others black */
    int edge;                /* of kinds that are edged */
    double middle;           /* the same; above 0, at most 1 */
};

/* Immutable after create: any number of threads may run it, each with its own scratch. Lives in the
 * arena that made it. */
struct tec_reshape;

/* TEC_INVALID for sizes out of range, a shape so extreme that a side would be, or a box, a crop or
 * an area to something that is not square; TEC_NO_MEMORY. */
enum tec_status tec_reshape_plan(const struct tec_reshape **out,
                                 const struct tec_reshape_spec *spec, struct tec_arena *arena,
                                 struct tec_error *err);

/* Bytes of scratch that a run needs, aligned to 4. */
size_t tec_reshape_scratch(const struct tec_reshape *plan);

/* [in_height, in_width, 3] to [height, width, 3]; buffers must not overlap. Allocates nothing. */
void tec_reshape_run(const struct tec_reshape *plan, unsigned char *out, const unsigned char *in,
                     void *scratch);

#endif
