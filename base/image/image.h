/* image.h - 8-bit pictures: decode JPEG and PNG, crop, pad, turn, change layout. */
#ifndef TEC_BASE_IMAGE_IMAGE_H
#define TEC_BASE_IMAGE_IMAGE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/image/lut.h"
#include "base/image/resize.h"

#include <stdbool.h>
#include <stddef.h>

/* Most pixels of one picture and the longest side: anything above is refused before memory is
 * taken. */
#define TEC_IMAGE_PIXELS 67108864 /* 64 Mi */
#define TEC_IMAGE_SIDE 65535

/* Most bytes of a picture file that tec_image_load reads. */
#define TEC_IMAGE_FILE_BYTES ((size_t)256 * 1024 * 1024)

/* Rows from the top, pixels from the left, channels innermost, no gaps: [height, width, channels].
 * Decoded pictures have 3 channels, red first; the other functions also take 1 (gray).
 * `pixels` belongs to the arena that was given to the function that made the picture. */
struct tec_image {
    int height, width, channels;
    unsigned char *pixels;
};

/* Decode n bytes, JPEG or PNG by their first bytes (never by a file name), to RGB. EXIF
 * orientation, colour profiles and gamma are ignored; alpha is dropped, not blended; of 16-bit
 * colours, and of 16-bit gray with alpha, the high byte is kept. Refused: a truncated, short or
 * corrupt picture (even where the libraries could paint something), four or two components,
 * arithmetic coding, 16-bit gray alone (depth), more than `most` pixels (which is at most
 * TEC_IMAGE_PIXELS), and a header that promises more pixels than its file could hold. Memory is
 * taken from the arena (the pixels) and its heap (work space, given back before the return),
 * bounded by a multiple of n. TEC_MALFORMED, TEC_UNSUPPORTED or TEC_NO_MEMORY; a failure leaves
 * the arena as it was. Thread-safe as far as the arena is. */
enum tec_status tec_image_decode(struct tec_image *out, const void *bytes, size_t n, size_t most,
                                 struct tec_arena *arena, struct tec_error *err);

/* Whether n bytes begin as a JPEG or a PNG file: no UTF-8 text does. */
bool tec_image_begins(const void *bytes, size_t n);

/* Read the file and decode it. TEC_NOT_FOUND where there is none, TEC_IO when it cannot be read or
 * is no regular file: neither a FIFO nor a device is waited for. */
enum tec_status tec_image_load(struct tec_image *out, const char *path, struct tec_arena *arena,
                               struct tec_error *err);

/* A picture of unset (zero) pixels. TEC_INVALID for sides outside 1..TEC_IMAGE_SIDE, more than
 * TEC_IMAGE_PIXELS, or channels other than 1 and 3. */
enum tec_status tec_image_new(struct tec_image *out, int height, int width, int channels,
                              struct tec_arena *arena, struct tec_error *err);

/* Resize by a plan built for the moment: what the frame path does with a plan kept. `spec` gives
 * all but the input's size and channels, which are taken from `in`. */
enum tec_status tec_image_resize(struct tec_image *out, const struct tec_image *in,
                                 struct tec_resize_spec spec, struct tec_arena *arena,
                                 struct tec_error *err);

/* The middle height x width of the picture. Where the crop is larger, the picture is padded with
 * zeros first: (crop - side) / 2 before, the rest after. The offset is half the difference, an odd
 * half rounded to the even neighbour (torchvision's centre crop). */
enum tec_status tec_image_crop_centre(struct tec_image *out, const struct tec_image *in, int height,
                                      int width, struct tec_arena *arena, struct tec_error *err);

/* Turn the picture by 180 degrees, in place. */
void tec_image_rotate180(struct tec_image *image);

#endif
