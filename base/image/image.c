/* image.c - new pictures. */
#include "base/image/image.h"

#include <stdint.h>

enum tec_status tec_image_new(struct tec_image *out, int height, int width, int channels,
                              struct tec_arena *arena, struct tec_error *err)
{
    if (height < 1 || width < 1 || height > TEC_IMAGE_SIDE || width > TEC_IMAGE_SIDE)
        return tec_fail(err, TEC_INVALID, "picture of %d x %d pixels; sides are 1 to %d", width,
                        height, TEC_IMAGE_SIDE);
    if ((int64_t)height * width > TEC_IMAGE_PIXELS)
        return tec_fail(err, TEC_INVALID, "picture of %d x %d pixels; at most %d pixels", width,
                        height, TEC_IMAGE_PIXELS);
    if (channels != 1 && channels != 3)
        return tec_fail(err, TEC_INVALID, "picture of %d channels; 1 or 3", channels);
    unsigned char *pixels =
        tec_arena_push(arena, (size_t)height * (size_t)width, (size_t)channels, 64);
    if (!pixels)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a picture of %d x %d pixels", width,
                        height);
    *out = (struct tec_image){height, width, channels, pixels};
    return TEC_OK;
}
