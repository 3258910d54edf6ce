/* area.h - squares of bytes made smaller or larger by areas; planned once. */
#ifndef TEC_BASE_IMAGE_AREA_H
#define TEC_BASE_IMAGE_AREA_H

#include "base/arena.h"
#include "base/error.h"

#include <stddef.h>

/* From one square of 3 channels to another, as OpenCV 4's resize does it with INTER_AREA, bit for
 * bit. Smaller: each pixel is the mean of what it covers, weighted by areas in float32. Larger:
 * bilinear in 11-bit fixed point, a pixel of the source flat in its middle. Immutable after create;
 * lives in the arena that made it. */
struct tec_area;

/* TEC_INVALID for a side that is not 1 to TEC_IMAGE_SIDE; TEC_NO_MEMORY. */
enum tec_status tec_area_plan(const struct tec_area **out, int in_side, int side,
                              struct tec_arena *arena, struct tec_error *err);

/* Bytes of scratch that a run needs, aligned to 4. */
size_t tec_area_scratch(const struct tec_area *plan);

/* [in_side, in_side, 3] to [side, side, 3]; buffers must not overlap. Allocates nothing. */
void tec_area_run(const struct tec_area *plan, unsigned char *out, const unsigned char *in,
                  void *scratch);

#endif
