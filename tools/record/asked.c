/* asked.c - judges, opens and closes what --record and --view ask for. */
#include "tools/record/asked.h"

#include "base/out_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FORMER = 999 };

enum tec_status tec_recording_asked_check(const struct tec_recording_asked *asked,
                                          struct tec_error *err)
{
    int64_t port;
    if (asked->mib && !asked->file)
        return tec_fail(err, TEC_INVALID, "--record-mib: needs --record FILE.mcap");
    if (asked->origin && !asked->view)
        return tec_fail(err, TEC_INVALID, "--view-origin: needs --view PORT");
    if (asked->view)
        TEC_TRY(tec_view_read_port(&port, asked->view, err));
    return asked->file ? tec_context(err, tec_outfile_file_check(asked->file, err), "--record")
                       : TEC_OK;
}

/* The first free name NAME-N.mcap beside NAME.mcap; false: all are taken, or it is too long. */
static bool free_name(const char *path, char *out, size_t room)
{
    const char *folder = strrchr(path, '/'), *end = strrchr(path, '.');
    if (!end || (folder && end < folder))
        end = path + strlen(path);
    for (int i = 1; i <= FORMER; i++) {
        int n = snprintf(out, room, "%.*s-%d%s", (int)(end - path), path, i, end);
        if (n < 0 || (size_t)n >= room)
            return false;
        if (access(out, F_OK) != 0)
            return errno == ENOENT;
    }
    return false;
}

/* A robot's server may have been started again after a crash: what it recorded before stays. */
static enum tec_status keep_former(const struct tec_opened *opened, const char *path,
                                   struct tec_error *err)
{
    struct stat there;
    char former[PATH_MAX];
    if (stat(path, &there) != 0 || !S_ISREG(there.st_mode) || there.st_size == 0)
        return TEC_OK;
    if (!free_name(path, former, sizeof former))
        return tec_fail(
            err, TEC_IO,
            "--record: %s and %d earlier recordings are there: delete those that you do not need",
            path, FORMER);
    if (rename(path, former) != 0)
        return tec_fail(err, TEC_IO, "--record: %s: %s", path, strerror(errno));
    tec_say(opened->call, "the recording that was there is %s now", former);
    return TEC_OK;
}

enum tec_status tec_recording_asked_open(struct tec_recording **recording, struct tec_view **view,
                                         const struct tec_recording_asked *asked,
                                         const struct tec_view_afar *afar,
                                         const struct tec_recording_options *options,
                                         struct tec_error *err)
{
    struct tec_recording_options all = *options;
    all.path = asked->file;
    all.limit_mib = asked->mib;
    if (asked->file && all.mode == TEC_RECORDING_SERVED)
        TEC_TRY(keep_former(all.opened, asked->file, err));
    if (asked->file)
        TEC_TRY(tec_recording_open(recording, &all, err));
    return asked->view ? tec_view_of_option(view, asked->view, asked->origin, afar, &all, err)
                       : TEC_OK;
}

enum tec_status tec_recording_asked_close(struct tec_recording *recording, struct tec_view *view,
                                          enum tec_status status, struct tec_error *err)
{
    struct tec_error second;
    tec_view_close(view);
    enum tec_status recorded = tec_recording_close(recording, status == TEC_OK ? err : &second);
    return status == TEC_OK ? recorded : status;
}
