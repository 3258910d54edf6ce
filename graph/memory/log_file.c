/* log_file.c - the bytes of a log's file: read and written at a place, checksums of heads and
 * pieces, the name in its folder.
 *
 * A piece's checksum covers its segment, version and layer, so bytes from another place in the file
 * cannot pass for it. */
#include "graph/memory/log_own.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

void tec_log_close(struct tec_log *log)
{
    if (!log)
        return;
    if (log->file >= 0)
        close(log->file);
    tec_heap_put(log->heap, log->buffer);
    tec_heap_put(log->heap, log);
}

enum tec_status tec_log_pread(const struct tec_log *log, void *to, size_t n, int64_t at,
                              struct tec_error *err)
{
    unsigned char *p = to;
    while (n > 0) {
        ssize_t got = pread(log->file, p, n, at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tec_fail(err, TEC_IO, "%s: reading at %lld: %s", log->path, (long long)at,
                            strerror(errno));
        if (got == 0)
            return tec_fail(err, TEC_MALFORMED, "%s: ends at %lld, %zu bytes are missing",
                            log->path, (long long)at, n);
        p += got;
        at += got;
        n -= (size_t)got;
    }
    return TEC_OK;
}

enum tec_status tec_log_pwrite(struct tec_log *log, const void *from, size_t n, int64_t at,
                               struct tec_error *err)
{
    const unsigned char *p = from;
    int64_t limit = log->options.fail_after;
    while (n > 0) {
        size_t some = n;
        if (limit > 0 && log->written + (int64_t)some > limit)
            some = log->written < limit ? (size_t)(limit - log->written) : 0;
        errno = ENOSPC;
        ssize_t got = some > 0 ? pwrite(log->file, p, some, at) : -1;
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return tec_fail(err, TEC_IO, "%s: writing at %lld: %s", log->path, (long long)at,
                            strerror(errno));
        log->written += got;
        p += got;
        at += got;
        n -= (size_t)got;
    }
    return TEC_OK;
}

enum tec_status tec_log_sync_folder(const char *path, struct tec_error *err)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) + 1 : 0;
    memcpy(folder, n ? path : ".", n ? n : 1);
    folder[n ? n : 1] = '\0';
    int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool good = file >= 0 && fsync(file) == 0;
    int why = errno;
    if (file >= 0)
        close(file);
    return good ? TEC_OK
                : tec_fail(err, TEC_IO, "%s: the folder cannot be synced: %s", path, strerror(why));
}

size_t tec_log_piece_value(const struct tec_log_key *key, uint32_t tokens)
{
    return (size_t)tokens * key->row_bytes;
}

size_t tec_log_piece_bytes(const struct tec_log_key *key, uint32_t tokens)
{
    return (size_t)tec_log_round(2 * (int64_t)tokens * key->row_bytes + 8);
}

uint64_t tec_log_head_sum(const struct tec_log *log, const struct tec_log_head *head)
{
    return XXH3_64bits_withSeed(head, offsetof(struct tec_log_head, sum), log->salt);
}

static uint64_t piece_sum(const unsigned char *piece, size_t bytes, uint64_t segment,
                          uint64_t version, uint32_t layer)
{
    const uint64_t whose[3] = {segment, version, layer};
    return XXH3_64bits_withSeed(piece, bytes - 8, XXH3_64bits(whose, sizeof whose));
}

void tec_log_piece_seal(unsigned char *piece, size_t bytes, uint64_t segment, uint64_t version,
                        uint32_t layer)
{
    uint64_t sum = piece_sum(piece, bytes, segment, version, layer);
    memcpy(piece + bytes - 8, &sum, 8);
}

bool tec_log_piece_whole(const unsigned char *piece, size_t bytes, uint64_t segment,
                         uint64_t version, uint32_t layer)
{
    uint64_t sum;
    if (bytes < 8)
        return false;
    memcpy(&sum, piece + bytes - 8, 8);
    return sum == piece_sum(piece, bytes, segment, version, layer);
}

void tec_log_rest(int64_t ns)
{
    const struct timespec pause = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    if (ns > 0)
        nanosleep(&pause, NULL);
}

void tec_log_throttle(const struct tec_log *log, size_t bytes)
{
    if (log->options.read_bytes_per_sec > 0)
        tec_log_rest((int64_t)((double)bytes * 1e9 / (double)log->options.read_bytes_per_sec));
}
