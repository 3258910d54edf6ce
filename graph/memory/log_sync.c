/* log_sync.c - makes a log durable.
 *
 * A sync has three steps, so that a store can hold its lock for the first and the last only:
 * fdatasync, which may take long, runs in between on a descriptor of its own. When fdatasync fails
 * the kernel may have dropped the pages, so the file is cut to what was durable and becomes
 * read-only. */
#include "graph/memory/log_own.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

void tec_log_stop(struct tec_log *log, int64_t end)
{
    log->read_only = true;
    log->end = end;
    if (ftruncate(log->file, end) != 0)
        return;
}

enum tec_status tec_log_sync_begin(struct tec_log *log, struct tec_log_syncing *s,
                                   struct tec_error *err)
{
    *s = (struct tec_log_syncing){.file = -1,
                                  .name = log->nameless ? log->path : NULL,
                                  .end = log->end,
                                  .slow_ns = log->options.slow_sync_ns,
                                  .salt = log->salt};
    if (log->read_only)
        return log->end <= log->synced && !log->nameless
                   ? TEC_OK
                   : tec_fail(err, TEC_IO, "%s: could not be made durable before", log->path);
    if (log->options.fail_sync > 0 && ++log->syncs > log->options.fail_sync)
        s->failed = EIO;
    s->file = fcntl(log->file, F_DUPFD_CLOEXEC, 0);
    return s->file >= 0 ? TEC_OK
                        : tec_fail(err, TEC_IO, "%s: no descriptor to make it durable: %s",
                                   log->path, strerror(errno));
}

void tec_log_sync_wait(struct tec_log_syncing *s)
{
    if (s->file < 0)
        return;
    tec_log_rest(s->slow_ns);
    if (!s->failed && fdatasync(s->file) != 0)
        s->failed = errno;
    close(s->file);
    s->file = -1;
    if (!s->failed && s->name && tec_log_sync_folder(s->name, NULL) != TEC_OK)
        s->failed = EIO;
}

enum tec_status tec_log_sync_end(struct tec_log *log, const struct tec_log_syncing *s,
                                 struct tec_error *err)
{
    if (log->salt != s->salt) /* compacted meanwhile: the new file was synced whole */
        return !log->nameless ? TEC_OK
                              : tec_fail(err, TEC_IO, "%s: its name is not durable yet", log->path);
    if (s->failed) {
        tec_log_stop(log, log->synced); /* what the system still has of it is not known */
        return tec_fail(err, TEC_IO, "%s: cannot be made durable, to be written anew: %s",
                        log->path, strerror(s->failed));
    }
    if (log->end < s->end) /* another one failed meanwhile, and the file was cut */
        return tec_fail(err, TEC_IO, "%s: could not be made durable before", log->path);
    log->synced = s->end > log->synced ? s->end : log->synced;
    log->nameless = log->nameless && !s->name;
    return TEC_OK;
}

enum tec_status tec_log_sync(struct tec_log *log, struct tec_error *err)
{
    struct tec_log_syncing syncing;
    TEC_TRY(tec_log_sync_begin(log, &syncing, err));
    tec_log_sync_wait(&syncing);
    return tec_log_sync_end(log, &syncing, err);
}

enum tec_status tec_log_end(struct tec_log *log, struct tec_log_record *clock,
                            struct tec_error *err)
{
    TEC_TRY(tec_log_sync(log, err));
    if (log->ended || log->read_only)
        return TEC_OK;
    TEC_TRY(tec_log_append(log, clock, err)); /* its head says that all before it is durable */
    TEC_TRY(tec_log_sync(log, err));
    log->ended = true;
    return TEC_OK;
}
