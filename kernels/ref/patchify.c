/* patchify.c - the reference patchify kernel: cuts pictures into patches, one row each, as floats.
 *
 * Bytes become floats through a table of 256 values for each channel, so the first layer gets
 * exactly the input that the original preprocessing computes. Floats are what a resize made that
 * does not round to bytes. */
#include "kernels/ref/ref.h"

#include <string.h>

static void patch_row(const struct tec_patchify_args *a, const uint8_t *corner, float *y)
{
    for (ptrdiff_t channel = 0; channel < 3; channel++)
        for (int dy = 0; dy < a->patch; dy++) {
            const uint8_t *line = corner + (size_t)dy * (size_t)a->width * 3 + channel;
            for (int dx = 0; dx < a->patch; dx++)
                *y++ = a->lut[256 * channel + line[(size_t)dx * 3]];
        }
}

/* A picture of bytes may begin anywhere, so its floats are read as bytes too. */
static void patch_row_f32(const struct tec_patchify_args *a, const uint8_t *corner, float *y)
{
    for (ptrdiff_t channel = 0; channel < 3; channel++)
        for (int dy = 0; dy < a->patch; dy++) {
            size_t line = (size_t)dy * (size_t)a->width * 3 + (size_t)channel;
            for (int dx = 0; dx < a->patch; dx++) {
                float x;
                memcpy(&x, corner + (line + (size_t)dx * 3) * sizeof x, sizeof x);
                *y++ = (x - a->mean[channel]) / a->std[channel];
            }
        }
}

void tec_patchify_ref(const struct tec_patchify_args *a, struct tec_part part)
{
    int across = a->width / a->patch, patches = across * (a->height / a->patch);
    struct tec_range rows = tec_share(part, tec_live(a->count, a->max_pictures) * patches, 1);
    for (int r = rows.first; r < rows.last; r++) {
        int top = r % patches / across * a->patch, left = r % across * a->patch;
        size_t first = 3 * ((size_t)top * (size_t)a->width + (size_t)left);
        const uint8_t *picture = a->pictures[r / patches];
        float *y = a->y + (size_t)r * (size_t)a->ldy;
        if (a->floats)
            patch_row_f32(a, picture + first * sizeof(float), y);
        else
            patch_row(a, picture + first, y);
    }
}
