#include "tools/out_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum tec_status tec_out_file_open(struct tec_out_file *out, const char *path, struct tec_error *err)
{
    *out = (struct tec_out_file){.path = path};
    if (snprintf(out->temporary, sizeof out->temporary, "%s.XXXXXX", path) >=
        (int)sizeof out->temporary)
        return tec_fail(err, TEC_IO, "%.100s...: the path is too long", path);
    int fd = mkstemp(out->temporary);
    out->file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (out->file) {
        mode_t mask = umask(0);
        umask(mask);
        (void)fchmod(fd, 0666 & ~mask);
        return TEC_OK;
    }
    int why = errno;
    if (fd >= 0) {
        close(fd);
        unlink(out->temporary);
    }
    return tec_fail(err, TEC_IO, "%s: %s", path, strerror(why));
}

enum tec_status tec_out_file_keep(struct tec_out_file *out, struct tec_error *err)
{
    if (!out->file)
        return TEC_OK;
    errno = 0;
    bool bad = fflush(out->file) != 0 || ferror(out->file);
    int why = errno;
    bad |= fclose(out->file) != 0;
    out->file = NULL;
    if (!bad && rename(out->temporary, out->path) != 0) {
        bad = true;
        why = errno;
    }
    if (!bad)
        return TEC_OK;
    unlink(out->temporary);
    return tec_fail(err, TEC_IO, "%s: %s", out->path, strerror(why ? why : errno));
}

void tec_out_file_drop(struct tec_out_file *out)
{
    if (!out->file)
        return;
    fclose(out->file);
    unlink(out->temporary);
    out->file = NULL;
}
