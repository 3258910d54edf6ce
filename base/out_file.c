/* out_file.c - output files: a regular file appears whole or not at all, a pipe is written to. */
#include "base/out_file.h"

#include "base/file_kind.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_TRIES = 100, MAX_LINKS = 40 };

static enum tec_status fail(const struct tec_out_file *out, int why, struct tec_error *err)
{
    char text[128];
    return tec_fail(err, why == ENOMEM ? TEC_NO_MEMORY : TEC_IO, "%s: cannot be written: %s",
                    out->path, why ? strerror_r(why, text, sizeof text) : "for no known reason");
}

/* --- the stream: it remembers why a write failed, which a FILE does not ---------------------- */

static ssize_t put(void *cookie, const char *bytes, size_t n)
{
    struct tec_out_file *out = cookie;
    for (size_t at = 0; at < n;) {
        ssize_t wrote = write(out->fd, bytes + at, n - at);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0) {
            out->why = out->why ? out->why : wrote < 0 ? errno : ENOSPC;
            return 0; /* of a cookie: an error */
        }
        at += (size_t)wrote;
    }
    return (ssize_t)n;
}

static enum tec_status open_stream(struct tec_out_file *out, struct tec_error *err)
{
    out->file = fopencookie(out, "w", (cookie_io_functions_t){.write = put});
    if (out->file)
        return TEC_OK;
    close(out->fd);
    if (!out->direct)
        unlink(out->temporary);
    return fail(out, ENOMEM, err);
}

/* --- what is no regular file ------------------------------------------------------------------ */

/* A FIFO or a character device. Opening waits for nobody; writing then waits for the reader. */
static enum tec_status open_direct(struct tec_out_file *out, struct tec_error *err)
{
    struct stat st;
    out->fd = open(out->path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (out->fd < 0 && errno == ENXIO && stat(out->path, &st) == 0 && S_ISFIFO(st.st_mode))
        return tec_fail(err, TEC_IO, "%s: is a FIFO that nobody reads; start its reader first",
                        out->path);
    if (out->fd < 0)
        return fail(out, errno, err);
    if (fstat(out->fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)) &&
        fcntl(out->fd, F_SETFL, O_WRONLY) == 0)
        return open_stream(out, err);
    close(out->fd);
    return tec_fail(err, TEC_IO, "%s: became another file while it was opened", out->path);
}

/* The file that standard output or standard error goes to is shared with them: a second
 * description would write over what they wrote. -1: it is another file. */
static int dup_standard(const struct stat *st)
{
    for (int fd = 1; fd <= 2; fd++) {
        struct stat own;
        if (fstat(fd, &own) == 0 && own.st_dev == st->st_dev && own.st_ino == st->st_ino)
            return fcntl(fd, F_DUPFD_CLOEXEC, 3);
    }
    return -1;
}

/* --- regular files ---------------------------------------------------------------------------- */

/* The bytes of `path` up to and with its last slash. */
static int folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash - path) + 1 : 0;
}

/* out->target: the path behind all links; what they lead to need not exist. */
static enum tec_status follow_links(struct tec_out_file *out, struct tec_error *err)
{
    char link[sizeof out->target], next[sizeof out->target];
    int n = snprintf(out->target, sizeof out->target, "%s", out->path);
    for (int i = 0; i < MAX_LINKS && n >= 0 && (size_t)n < sizeof out->target; i++) {
        ssize_t length = readlink(out->target, link, sizeof link - 1);
        if (length < 0)
            return TEC_OK; /* no link */
        link[length] = '\0';
        int folder = link[0] == '/' ? 0 : folder_length(out->target);
        n = snprintf(next, sizeof next, "%.*s%s", folder, out->target, link);
        memcpy(out->target, next, sizeof next);
    }
    return fail(out, n >= 0 && (size_t)n < sizeof out->target ? ELOOP : ENAMETOOLONG, err);
}

/* A new file in the target's folder, so that the rename stays inside one file system. Its name does
 * not grow with the target's, which may be as long as names can be. */
static int create_beside(struct tec_out_file *out)
{
    int folder = folder_length(out->target);
    for (int i = 0; i < MAX_TRIES; i++) {
        int n = snprintf(out->temporary, sizeof out->temporary, "%.*s.tectum-%ld-%d.tmp", folder,
                         out->target, (long)getpid(), i);
        if (n < 0 || (size_t)n >= sizeof out->temporary) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int fd = open(out->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

static enum tec_status open_beside(struct tec_out_file *out, const struct stat *old,
                                   struct tec_error *err)
{
    TEC_TRY(follow_links(out, err));
    out->fd = create_beside(out);
    if (out->fd < 0)
        return fail(out, errno, err);
    if (old && old->st_uid != geteuid() && fchown(out->fd, old->st_uid, old->st_gid) != 0)
        old = NULL; /* then it is a new file of ours */
    if (old)
        (void)fchmod(out->fd, old->st_mode & 0777);
    return open_stream(out, err);
}

/* What a robot has remembered or recorded, and nobody can make again, is not replaced by a report.
 */
static enum tec_status judge_content(const char *path, struct tec_error *err)
{
    unsigned char first[8] = {0};
    struct stat st;
    int fd;
    if (tec_file_open_regular(&fd, &st, path, NULL) != TEC_OK)
        return TEC_OK; /* who writes will see why */
    bool read = pread(fd, first, sizeof first, 0) == (ssize_t)sizeof first;
    close(fd);
    bool recording = read && tec_file_is_recording(first);
    if (!recording && !(read && tec_file_is_memory(first)))
        return TEC_OK;
    return tec_fail(err, TEC_IO, "%s: is %s, which this output does not replace; name another file",
                    path, recording ? "a recording" : "a memory's store");
}

/* May this be written to? *there: it exists, and `st` is filled. */
static enum tec_status judge(const char *path, bool regular, bool *there, struct stat *st,
                             struct tec_error *err)
{
    char why[128];
    *there = stat(path, st) == 0;
    if (!*there && errno != ENOENT)
        return tec_fail(err, TEC_IO, "%s: cannot be written: %s", path,
                        strerror_r(errno, why, sizeof why));
    if (!*there || S_ISREG(st->st_mode) ||
        (!regular && (S_ISFIFO(st->st_mode) || S_ISCHR(st->st_mode))))
        return TEC_OK;
    return tec_fail(err, TEC_IO, "%s: is %s; %s", path, tec_file_type(st->st_mode),
                    regular ? "name a regular file or a new one"
                            : "output goes to a regular file, a FIFO or a character device");
}

static enum tec_status open_any(struct tec_out_file *out, const char *path, bool regular,
                                struct tec_error *err)
{
    struct stat st;
    bool there;
    *out = (struct tec_out_file){.path = path, .fd = -1};
    TEC_TRY(judge(path, regular, &there, &st, err));
    bool device = there && !S_ISREG(st.st_mode);
    if (there && !device)
        TEC_TRY(judge_content(path, err));
    int shared = there && !device && !regular ? dup_standard(&st) : -1;
    out->direct = device || shared >= 0;
    if (shared >= 0) {
        out->fd = shared;
        return open_stream(out, err);
    }
    return device ? open_direct(out, err) : open_beside(out, there ? &st : NULL, err);
}

enum tec_status tec_outfile_file_check(const char *path, struct tec_error *err)
{
    struct stat st;
    bool there;
    struct tec_out_file out = {.path = path, .fd = -1};
    TEC_TRY(judge(path, false, &there, &st, err));
    if (there && !S_ISREG(st.st_mode))
        return TEC_OK;
    TEC_TRY(follow_links(&out, err));
    int n = folder_length(out.target);
    snprintf(out.temporary, sizeof out.temporary, "%.*s", n ? n : 1, n ? out.target : ".");
    return access(out.temporary, W_OK | X_OK) == 0 ? TEC_OK : fail(&out, errno, err);
}

enum tec_status tec_outfile_file_open(struct tec_out_file *out, const char *path,
                                      struct tec_error *err)
{
    return open_any(out, path, false, err);
}

enum tec_status tec_outfile_file_open_regular(struct tec_out_file *out, const char *path,
                                              struct tec_error *err)
{
    return open_any(out, path, true, err);
}

enum tec_status tec_outfile_file_failed(const struct tec_out_file *out, struct tec_error *err)
{
    return fail(out, out->why, err);
}

/* Rename the temporary file, which is on the disk by now: after a loss of power the file is the old
 * or the new one. */
static int put_in_place(const struct tec_out_file *out)
{
    struct stat st;
    if (lstat(out->target, &st) == 0 && !S_ISREG(st.st_mode)) {
        errno = EEXIST; /* something else came there meanwhile */
        return -1;
    }
    if (rename(out->temporary, out->target) != 0)
        return -1;
    char folder[sizeof out->target];
    int n = folder_length(out->target);
    snprintf(folder, sizeof folder, "%.*s", n ? n : 1, n ? out->target : ".");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd); /* the file has its name; not every file system syncs folders */
        close(fd);
    }
    return 0;
}

enum tec_status tec_outfile_file_keep(struct tec_out_file *out, struct tec_error *err)
{
    if (!out->file)
        return TEC_OK;
    bool bad = ferror(out->file) != 0;
    bad |= fclose(out->file) != 0;
    out->file = NULL;
    int why = out->why;
    if (!bad && !out->direct && fsync(out->fd) != 0) {
        bad = true;
        why = errno;
    }
    if (close(out->fd) != 0 && !bad) {
        bad = true;
        why = errno;
    }
    if (!bad && !out->direct && put_in_place(out) != 0) {
        bad = true;
        why = errno;
    }
    if (!bad)
        return TEC_OK;
    if (!out->direct)
        unlink(out->temporary);
    return fail(out, why, err);
}

void tec_outfile_file_drop(struct tec_out_file *out)
{
    if (!out->file)
        return;
    fclose(out->file);
    close(out->fd);
    if (!out->direct)
        unlink(out->temporary);
    out->file = NULL;
}

enum tec_status tec_outfile_file_write(const char *path, const void *data, size_t n,
                                       struct tec_error *err)
{
    struct tec_out_file out = {0};
    TEC_TRY(tec_outfile_file_open(&out, path, err));
    enum tec_status status = fwrite(data, 1, n, out.file) == n ? tec_outfile_file_keep(&out, err)
                                                               : tec_outfile_file_failed(&out, err);
    tec_outfile_file_drop(&out);
    return status;
}
