/* log_compact.c - replaces a log by its compacted copy.
 *
 * The copy is synced before it is renamed over the old file and the folder after it: at any moment
 * the path leads to a complete log. */
#include "graph/memory/log_own.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum tec_status tec_log_compact_begin(struct tec_log *log, struct tec_log **fresh,
                                      struct tec_error *err)
{
    char path[PATH_MAX + 8];
    snprintf(path, sizeof path, "%s.new", log->path);
    return tec_log_create(fresh, path, log, err);
}

void tec_log_compact_abandon(struct tec_log *fresh)
{
    if (fresh)
        unlink(fresh->path);
    tec_log_close(fresh);
}

enum tec_status tec_log_compact_place(const struct tec_log *log, struct tec_log *fresh,
                                      bool *placed, struct tec_error *err)
{
    *placed = false;
    TEC_TRY(tec_log_sync(fresh, err));
    if (rename(fresh->path, log->path) != 0)
        return tec_fail(err, TEC_IO, "%s: cannot be put in place: %s", fresh->path,
                        strerror(errno));
    *placed = true;
    enum tec_status status = tec_log_sync_folder(log->path, err);
    fresh->nameless = status != TEC_OK;
    return status;
}

void tec_log_compact_switch(struct tec_log *log, struct tec_log *fresh)
{
    int old = log->file;
    log->file = fresh->file;
    log->end = fresh->end;
    log->synced = fresh->synced;
    log->sequence = fresh->sequence;
    log->before_segment = fresh->before_segment;
    log->before_type = fresh->before_type;
    log->ended = fresh->ended;
    log->syncs = fresh->syncs;
    log->salt = fresh->salt;
    log->wrote = fresh->wrote;
    log->dim = fresh->dim;
    log->nameless = fresh->nameless;
    log->read_only = log->fails = false;
    fresh->file = old;
}
