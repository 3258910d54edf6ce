/* image.c - new pictures, and pictures from files. */
#include "base/image/image.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

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

static enum tec_status read_error(const char *path, struct tec_error *err)
{
    char text[128];
    int code = errno;
    return tec_fail(err, TEC_IO, "%s: %s", path, strerror_r(code, text, sizeof text));
}

static enum tec_status read_file(FILE *file, const char *path, struct tec_arena *arena,
                                 unsigned char **bytes, size_t *n, struct tec_error *err)
{
    struct stat info;
    if (fstat(fileno(file), &info) != 0)
        return read_error(path, err);
    if (!S_ISREG(info.st_mode))
        return tec_fail(err, TEC_IO, "%s: not a file", path);
    if ((uint64_t)info.st_size > TEC_IMAGE_FILE_BYTES)
        return tec_fail(err, TEC_UNSUPPORTED, "%s: %jd bytes; a picture may have %zu", path,
                        (intmax_t)info.st_size, TEC_IMAGE_FILE_BYTES);
    *n = (size_t)info.st_size;
    *bytes = tec_arena_push(arena, *n, 1, 1);
    if (!*bytes)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for its %zu bytes", path, *n);
    if (fread(*bytes, 1, *n, file) == *n)
        return TEC_OK;
    return ferror(file) ? read_error(path, err)
                        : tec_fail(err, TEC_IO, "%s: shrank while it was read", path);
}

enum tec_status tec_image_load(struct tec_image *out, const char *path, struct tec_arena *arena,
                               struct tec_error *err)
{
    struct tec_arena scratch;
    unsigned char *bytes = NULL;
    size_t n = 0;
    *out = (struct tec_image){0};
    FILE *file = fopen(path, "rbe");
    if (!file)
        return read_error(path, err);
    tec_arena_init(&scratch, arena->heap);
    enum tec_status status = read_file(file, path, &scratch, &bytes, &n, err);
    if (status == TEC_OK)
        status = tec_context(err, tec_image_decode(out, bytes, n, arena, err), "%s", path);
    tec_arena_finish(&scratch);
    fclose(file);
    return status;
}
