/* load.c - pictures from files. */
#include "base/file_kind.h"
#include "base/image/image.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static enum tec_status read_error(const char *path, struct tec_error *err)
{
    char text[128];
    int code = errno;
    return tec_fail(err, TEC_IO, "%s: %s", path, strerror_r(code, text, sizeof text));
}

static enum tec_status read_file(int fd, size_t n, const char *path, struct tec_arena *arena,
                                 unsigned char **bytes, struct tec_error *err)
{
    if (n > TEC_IMAGE_FILE_BYTES)
        return tec_fail(err, TEC_UNSUPPORTED, "%s: %zu bytes; a picture may have %zu", path, n,
                        TEC_IMAGE_FILE_BYTES);
    *bytes = tec_arena_push(arena, n, 1, 1);
    if (!*bytes)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for its %zu bytes", path, n);
    for (size_t at = 0; at < n;) {
        ssize_t got = read(fd, *bytes + at, n - at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return read_error(path, err);
        if (got == 0)
            return tec_fail(err, TEC_IO, "%s: shrank while it was read", path);
        at += (size_t)got;
    }
    return TEC_OK;
}

enum tec_status tec_image_load(struct tec_image *out, const char *path, struct tec_arena *arena,
                               struct tec_error *err)
{
    struct tec_arena scratch;
    struct stat info;
    unsigned char *bytes = NULL;
    int fd = -1;
    *out = (struct tec_image){0};
    TEC_TRY(tec_file_open_regular(&fd, &info, path, err));
    size_t n = (size_t)info.st_size;
    tec_arena_init(&scratch, arena->heap);
    enum tec_status status = read_file(fd, n, path, &scratch, &bytes, err);
    if (status == TEC_OK)
        status = tec_context(err, tec_image_decode(out, bytes, n, TEC_IMAGE_PIXELS, arena, err),
                             "%s", path);
    tec_arena_finish(&scratch);
    close(fd);
    return status;
}
