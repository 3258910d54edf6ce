/* decode.h - the two decoders behind tec_image_decode. */
#ifndef TEC_BASE_IMAGE_DECODE_H
#define TEC_BASE_IMAGE_DECODE_H

#include "base/image/image.h"

#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

/* n bytes known to begin as a JPEG or a PNG. On failure the arena may hold pixels: the caller
 * rewinds it. */
enum tec_status tec_image_decode_jpeg(struct tec_image *out, const unsigned char *bytes, size_t n,
                                      size_t most, struct tec_arena *arena, struct tec_error *err);
enum tec_status tec_image_decode_png(struct tec_image *out, const unsigned char *bytes, size_t n,
                                     size_t most, struct tec_arena *arena, struct tec_error *err);

/* A memory manager for libjpeg that takes everything from an arena and frees nothing: the arena is
 * finished with the picture. A refusal sets `refused` and ends in the decoder's error_exit. It must
 * be the decoder's client_data. */
struct tec_jpeg_memory {
    struct jpeg_memory_mgr methods;
    struct tec_arena *arena; /* borrowed */
    bool refused;
    struct jvirt_sarray_control *samples; /* requested, to be realised */
    struct jvirt_barray_control *blocks;
};

void tec_jpeg_memory_init(struct tec_jpeg_memory *memory, struct tec_arena *arena);

#endif
