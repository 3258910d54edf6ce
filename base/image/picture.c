/* picture.c - pictures without a filter: crop, pad, turn. */
#include "base/image/image.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Copy `rows` x `columns` pixels between two places. */
static void blit(struct tec_image *to, int to_y, int to_x, const struct tec_image *from, int y,
                 int x, int rows, int columns)
{
    size_t channels = (size_t)from->channels;
    for (int i = 0; i < rows; i++) {
        size_t dst = ((size_t)(to_y + i) * (size_t)to->width + (size_t)to_x) * channels;
        size_t src = ((size_t)(y + i) * (size_t)from->width + (size_t)x) * channels;
        memcpy(to->pixels + dst, from->pixels + src, (size_t)columns * channels);
    }
}

/* Computes the crop's first pixel in the picture (from), and its place in the result (to). */
static void crop_axis(int side, int crop, int *from, int *to, int *n)
{
    int before = crop > side ? (crop - side) / 2 : 0;
    int padded = crop > side ? crop : side;
    int start = (int)nearbyint((padded - crop) / 2.0);
    *to = before;
    *from = start;
    *n = crop < side ? crop : side;
}

enum tec_status tec_image_crop_centre(struct tec_image *out, const struct tec_image *in, int height,
                                      int width, struct tec_arena *arena, struct tec_error *err)
{
    struct tec_image made = {0};
    int y = 0, x = 0, to_y = 0, to_x = 0, rows = 0, columns = 0;
    TEC_TRY(tec_image_new(&made, height, width, in->channels, arena, err));
    crop_axis(in->height, height, &y, &to_y, &rows);
    crop_axis(in->width, width, &x, &to_x, &columns);
    blit(&made, to_y, to_x, in, y, x, rows, columns);
    *out = made;
    return TEC_OK;
}

void tec_image_rotate180(struct tec_image *image)
{
    size_t n = (size_t)image->height * (size_t)image->width, channels = (size_t)image->channels;
    for (size_t i = 0; i < n / 2; i++) {
        unsigned char *a = image->pixels + i * channels;
        unsigned char *b = image->pixels + (n - 1 - i) * channels;
        for (size_t c = 0; c < channels; c++) {
            unsigned char t = a[c];
            a[c] = b[c];
            b[c] = t;
        }
    }
}
