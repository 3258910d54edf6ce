/* patchify.c - the reference patchify kernel: cuts pictures into patches, one row each, as floats.
 *
 * Bytes become floats through a table of 256 values for each channel, so the first layer gets
 * exactly the input that the original preprocessing computes. */
#include "kernels/ref/ref.h"

static void patch_row(const struct tec_patchify_args *a, const uint8_t *corner, float *y)
{
    for (ptrdiff_t channel = 0; channel < 3; channel++)
        for (int dy = 0; dy < a->patch; dy++) {
            const uint8_t *line = corner + (size_t)dy * (size_t)a->width * 3 + channel;
            for (int dx = 0; dx < a->patch; dx++)
                *y++ = a->lut[256 * channel + line[(size_t)dx * 3]];
        }
}

void tec_patchify_ref(const struct tec_patchify_args *a, struct tec_part part)
{
    int across = a->width / a->patch, patches = across * (a->height / a->patch);
    struct tec_range rows = tec_share(part, tec_live(a->count, a->max_pictures) * patches, 1);
    for (int r = rows.first; r < rows.last; r++) {
        int top = r % patches / across * a->patch, left = r % across * a->patch;
        size_t pixel = (size_t)top * (size_t)a->width + (size_t)left;
        patch_row(a, a->pictures[r / patches] + 3 * pixel, a->y + (size_t)r * (size_t)a->ldy);
    }
}
