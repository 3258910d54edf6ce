/* blocks_write.c - writes a file of blocks: whole, or not at all.
 *
 * The new file has no name until it is whole (O_TMPFILE), so a program that is killed leaves
 * nothing; where the file system has no such files, it has a name of its own meanwhile. A lock on
 * the folder lets one process write at a time. Nothing is synced to the disk: a file that a loss of
 * power has torn is found by its hashes, and made again. */
#include "base/store/blocks_own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <xxhash.h>

enum { PATH_ROOM = 4096, LARGE = 1 << 16, PAGE = 4096 };

struct writer {
    const struct tec_blocks_source *source;
    struct tec_heap *heap;
    struct tec_blocks_head head;
    struct tec_blocks_entry *entries;
    uint64_t *hashes;
    unsigned char *chunk;  /* [TEC_BLOCKS_CHUNK] */
    uint64_t filled, done; /* bytes in the chunk; chunks that are written */
    int fd, folder;
    bool named; /* the file has the name `temporary` */
    char temporary[PATH_ROOM];
    const char *path;
};

static enum tec_status fail(int why, struct tec_error *err)
{
    char text[128];
    return tec_fail(err, why == ENOMEM ? TEC_NO_MEMORY : TEC_IO, "%s",
                    strerror_r(why, text, sizeof text));
}

/* --- layout ----------------------------------------------------------------------------------- */

/* Places of the blocks from `at` on; the end of the last one. */
static uint64_t place_blocks(struct writer *w, uint64_t at)
{
    for (int i = 0; i < w->source->n; i++) {
        size_t bytes = w->source->sizes[i];
        at = tec_blocks_round(at, bytes >= LARGE ? PAGE : TEC_BLOCKS_ALIGN);
        w->entries[i] = (struct tec_blocks_entry){at, bytes};
        at += bytes;
    }
    return at;
}

/* The tables' size depends on the number of chunks, and theirs on where the tables end: one turn
 * with too many chunks says how many they are at most. */
static enum tec_status lay_out(struct writer *w, struct tec_error *err)
{
    const struct tec_blocks_source *s = w->source;
    uint64_t n = (uint64_t)s->n;
    if (s->n < 1 || s->n > TEC_BLOCKS_MOST)
        return tec_fail(err, TEC_INVALID, "%d blocks; a file has 1 .. %d", s->n, TEC_BLOCKS_MOST);
    w->entries = tec_heap_get(w->heap, (size_t)n * sizeof *w->entries);
    w->chunk = tec_heap_get(w->heap, TEC_BLOCKS_CHUNK);
    if (!w->entries || !w->chunk)
        return fail(ENOMEM, err);
    uint64_t most = place_blocks(w, 0) / TEC_BLOCKS_CHUNK + 2;
    uint64_t data = tec_blocks_round(sizeof w->head + tec_blocks_tables(n, most), PAGE);
    uint64_t end = place_blocks(w, data);
    uint64_t chunks = (end - data + TEC_BLOCKS_CHUNK - 1) / TEC_BLOCKS_CHUNK;
    w->hashes = tec_heap_get(w->heap, (size_t)(chunks + 1) * sizeof *w->hashes);
    w->head = (struct tec_blocks_head){.format = TEC_BLOCKS_FORMAT,
                                       .chunk = TEC_BLOCKS_CHUNK,
                                       .file_bytes = end,
                                       .n = n,
                                       .data_at = data,
                                       .chunks = chunks,
                                       .key = s->key,
                                       .note = s->note};
    memcpy(w->head.magic, tec_blocks_magic, sizeof w->head.magic);
    return w->hashes ? TEC_OK : fail(ENOMEM, err);
}

/* --- the file --------------------------------------------------------------------------------- */

static enum tec_status open_folder(struct writer *w, struct tec_error *err)
{
    char folder[PATH_ROOM];
    const char *slash = strrchr(w->path, '/');
    int n = slash ? snprintf(folder, sizeof folder, "%.*s", (int)(slash - w->path) + 1, w->path)
                  : snprintf(folder, sizeof folder, ".");
    if (n < 0 || (size_t)n >= sizeof folder)
        return fail(ENAMETOOLONG, err);
    w->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (w->folder < 0)
        return fail(errno, err);
    if (flock(w->folder, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return tec_fail(err, TEC_UNSUPPORTED, "another process writes there");
    w->fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0644);
    if (w->fd >= 0)
        return TEC_OK;
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOENT)
        return fail(errno, err);
    unlink(w->temporary); /* of a process with our number that was killed */
    w->fd = open(w->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    w->named = w->fd >= 0;
    return w->fd >= 0 ? TEC_OK : fail(errno, err);
}

/* Whether there is room, before anything is written: a limit of file sizes would be a signal, and a
 * disk that is filled to its last byte harms others. */
static enum tec_status reserve(const struct writer *w, struct tec_error *err)
{
    struct rlimit limit;
    struct statvfs disk;
    uint64_t bytes = w->head.file_bytes;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        limit.rlim_cur < bytes)
        return tec_fail(err, TEC_IO, "it has %llu bytes, and the limit of file sizes is %llu",
                        (unsigned long long)bytes, (unsigned long long)limit.rlim_cur);
    if (fstatvfs(w->fd, &disk) == 0 && (uint64_t)disk.f_bavail * disk.f_frsize < bytes + bytes / 16)
        return tec_fail(err, TEC_IO, "it has %.2f GiB, and the disk has %.2f GiB left",
                        (double)bytes / 0x1p30,
                        (double)((uint64_t)disk.f_bavail * disk.f_frsize) / 0x1p30);
    if (fallocate(w->fd, 0, 0, (off_t)bytes) != 0 && errno != EOPNOTSUPP && errno != ENOSYS)
        return fail(errno, err);
    return TEC_OK;
}

static enum tec_status write_all(const struct writer *w, const void *from, size_t n, uint64_t at,
                                 struct tec_error *err)
{
    for (size_t done = 0; done < n;) {
        ssize_t wrote = pwrite(w->fd, (const char *)from + done, n - done, (off_t)(at + done));
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return fail(wrote < 0 ? errno : ENOSPC, err);
        done += (size_t)wrote;
    }
    return TEC_OK;
}

static enum tec_status flush_chunk(struct writer *w, struct tec_error *err)
{
    if (w->filled == 0)
        return TEC_OK;
    w->hashes[w->done] = XXH3_64bits(w->chunk, (size_t)w->filled);
    uint64_t at = w->head.data_at + w->done * TEC_BLOCKS_CHUNK;
    TEC_TRY(write_all(w, w->chunk, (size_t)w->filled, at, err));
    w->done++;
    w->filled = 0;
    return TEC_OK;
}

/* Bytes of block `at`, or zeros where at is -1, behind what is there. */
static enum tec_status append(struct writer *w, int at, uint64_t bytes, struct tec_error *err)
{
    for (uint64_t done = 0; done < bytes;) {
        uint64_t room = TEC_BLOCKS_CHUNK - w->filled, left = bytes - done;
        size_t n = (size_t)(left < room ? left : room);
        if (at < 0)
            memset(w->chunk + w->filled, 0, n);
        else
            w->source->copy(w->source->user, at, (size_t)done, w->chunk + w->filled, n);
        w->filled += n;
        done += n;
        if (w->filled == TEC_BLOCKS_CHUNK)
            TEC_TRY(flush_chunk(w, err));
    }
    return TEC_OK;
}

static enum tec_status write_blocks(struct writer *w, struct tec_error *err)
{
    uint64_t end = w->head.data_at;
    for (int i = 0; i < w->source->n; i++) {
        TEC_TRY(append(w, -1, w->entries[i].at - end, err));
        TEC_TRY(append(w, i, w->entries[i].bytes, err));
        end = w->entries[i].at + w->entries[i].bytes;
    }
    return flush_chunk(w, err);
}

/* Tables and header last: until they are there, the file is none of ours. */
static enum tec_status write_tables(struct writer *w, struct tec_error *err)
{
    size_t entries = (size_t)w->head.n * sizeof *w->entries;
    size_t hashes = (size_t)w->head.chunks * sizeof *w->hashes;
    unsigned char *tables = tec_heap_get(w->heap, entries + hashes);
    if (!tables)
        return fail(ENOMEM, err);
    memcpy(tables, w->entries, entries);
    memcpy(tables + entries, w->hashes, hashes);
    w->head.tables = XXH3_64bits(tables, entries + hashes);
    w->head.own = XXH3_64bits(&w->head, offsetof(struct tec_blocks_head, own));
    enum tec_status status = write_all(w, tables, entries + hashes, sizeof w->head, err);
    tec_heap_put(w->heap, tables);
    return status == TEC_OK ? write_all(w, &w->head, sizeof w->head, 0, err) : status;
}

/* A file without a name gets one, and then that of the old file. */
static enum tec_status put_in_place(struct writer *w, struct tec_error *err)
{
    char own[64];
    snprintf(own, sizeof own, "/proc/self/fd/%d", w->fd);
    if (!w->named) {
        unlink(w->temporary);
        if (linkat(AT_FDCWD, own, AT_FDCWD, w->temporary, AT_SYMLINK_FOLLOW) != 0)
            return fail(errno, err);
        w->named = true;
    }
    if (rename(w->temporary, w->path) != 0)
        return fail(errno, err);
    w->named = false;
    return TEC_OK;
}

static enum tec_status write_file(struct writer *w, struct tec_error *err)
{
    TEC_TRY(lay_out(w, err));
    TEC_TRY(open_folder(w, err));
    TEC_TRY(reserve(w, err));
    TEC_TRY(write_blocks(w, err));
    TEC_TRY(write_tables(w, err));
    return put_in_place(w, err);
}

enum tec_status tec_blocks_write(const char *path, const struct tec_blocks_source *source,
                                 struct tec_heap *heap, struct tec_error *err)
{
    struct writer *w = tec_heap_get(heap, sizeof *w);
    if (!w)
        return fail(ENOMEM, err);
    w->source = source;
    w->heap = heap;
    w->path = path;
    w->fd = w->folder = -1;
    int n = snprintf(w->temporary, sizeof w->temporary, "%s.%ld.tmp", path, (long)getpid());
    enum tec_status status =
        n < 0 || (size_t)n >= sizeof w->temporary ? fail(ENAMETOOLONG, err) : write_file(w, err);
    if (w->named)
        unlink(w->temporary);
    if (w->fd >= 0)
        close(w->fd);
    if (w->folder >= 0)
        close(w->folder); /* and with it goes the lock */
    tec_heap_put(heap, w->entries);
    tec_heap_put(heap, w->hashes);
    tec_heap_put(heap, w->chunk);
    tec_heap_put(heap, w);
    return status;
}
