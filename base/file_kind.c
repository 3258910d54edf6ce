/* file_kind.c - what kind of file a path names, in words for messages; and opening only files. */
#include "base/file_kind.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

const char *tec_file_type(mode_t mode)
{
    return S_ISDIR(mode)    ? "a directory"
           : S_ISFIFO(mode) ? "a FIFO"
           : S_ISCHR(mode)  ? "a character device"
           : S_ISBLK(mode)  ? "a block device"
           : S_ISSOCK(mode) ? "a socket"
           : S_ISREG(mode)  ? "a regular file"
                            : "no file of a known kind";
}

bool tec_file_is_recording(const unsigned char first[8])
{
    return memcmp(first, "\x89MCAP0\r\n", 8) == 0;
}

bool tec_file_is_memory(const unsigned char first[8])
{
    return memcmp(first, "TECMEM1\0", 8) == 0;
}

enum tec_status tec_file_open_regular(int *fd, struct stat *st, const char *path,
                                      struct tec_error *err)
{
    char why[128];
    bool known = stat(path, st) == 0; /* first: opening a device may already set it in motion */
    bool regular = known && S_ISREG(st->st_mode);
    *fd = regular ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) : -1;
    if (*fd >= 0 && fstat(*fd, st) == 0 && S_ISREG(st->st_mode))
        return TEC_OK;
    int code = errno;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    if (known && !S_ISREG(st->st_mode))
        return tec_fail(err, TEC_IO, "%s: is %s, not a regular file", path,
                        tec_file_type(st->st_mode));
    return tec_fail(err, code == ENOENT ? TEC_NOT_FOUND : TEC_IO, "%s: cannot be opened: %s", path,
                    strerror_r(code, why, sizeof why));
}
