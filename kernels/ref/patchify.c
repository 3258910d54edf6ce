#include "kernels/ref/ref.h"

void tec_patchify_ref(const struct tec_patchify_args *a, struct tec_part part)
{
    int across = a->size / a->patch, patches = across * across, area = a->patch * a->patch;
    struct tec_range rows = tec_share(part, tec_live(a->count, a->max_pictures) * patches, 1);
    for (int r = rows.first; r < rows.last; r++) {
        int top = r % patches / across * a->patch, left = r % across * a->patch;
        const uint8_t *picture = a->pictures[r / patches];
        float *y = a->y + (size_t)r * (size_t)a->ldy;
        for (int i = 0; i < 3 * area; i++) {
            int channel = i / area, dy = i % area / a->patch, dx = i % a->patch;
            size_t pixel = (size_t)(top + dy) * (size_t)a->size + (size_t)(left + dx);
            y[i] = a->lut[256 * channel + picture[3 * pixel + (size_t)channel]];
        }
    }
}
