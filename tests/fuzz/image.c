/* image.c - fuzz target: decode whatever comes; resize what decodes. */
#include "base/image/image.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tec_heap heap = {.limit = (size_t)1 << 30};
    struct tec_arena arena;
    struct tec_image image, small;
    struct tec_error err;
    tec_arena_init(&arena, &heap);
    if (tec_image_decode(&image, data, size, TEC_IMAGE_PIXELS, &arena, &err) == TEC_OK &&
        (int64_t)image.height * image.width <= 1 << 16) {
        uint8_t pick = data[size - 1];
        struct tec_resize_spec spec = {.height = 1 + pick % 37,
                                       .width = 1 + pick % 29,
                                       .fit = (enum tec_fit)(pick % 3),
                                       .filter = (enum tec_filter)(pick % 6)};
        (void)tec_image_resize(&small, &image, spec, &arena, &err);
    }
    tec_arena_finish(&arena);
    if (heap.live != 0)
        __builtin_trap();
    return 0;
}
