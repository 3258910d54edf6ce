/* blocks.c - opens a file of blocks: checks its header and tables, and maps it.
 *
 * The header and the tables are read, hashed and checked as a copy in memory, so that a file which
 * changes meanwhile cannot move a block out of the map. */
#include "base/store/blocks.h"

#include "base/file_kind.h"
#include "base/store/blocks_own.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#endif

static const uint64_t MOST_BYTES = (uint64_t)1 << 44; /* so that chunks are counted in an int */

const char tec_blocks_magic[8] = "TECBLKS";

struct tec_blocks {
    struct tec_heap *heap;
    struct tec_blocks_head head;
    struct tec_blocks_entry *entries;
    uint64_t *hashes;
    unsigned char *map;
    void *tables; /* entries, then hashes */
};

static enum tec_status fail(struct tec_error *err, const char *what)
{
    return tec_fail(err, TEC_MALFORMED, "%s", what);
}

/* Exactly n bytes; a file that has fewer has shrunk. */
static bool read_all(int fd, void *to, size_t n, uint64_t at)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(fd, (char *)to + done, n - done, (off_t)(at + done));
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

/* Everything that the header says of sizes, each number bounded before it is multiplied. */
static enum tec_status check_head(const struct tec_blocks_head *h, uint64_t bytes,
                                  struct tec_error *err)
{
    if (memcmp(h->magic, tec_blocks_magic, sizeof h->magic) != 0)
        return fail(err, "is something else");
    if (h->format != TEC_BLOCKS_FORMAT || h->chunk != TEC_BLOCKS_CHUNK)
        return fail(err, "is of another format");
    if (h->own != XXH3_64bits(h, offsetof(struct tec_blocks_head, own)))
        return fail(err, "has a damaged header");
    if (h->file_bytes != bytes)
        return fail(err, "is cut short");
    if (bytes > MOST_BYTES || h->n < 1 || h->n > TEC_BLOCKS_MOST || h->data_at > bytes ||
        h->chunks != (bytes - h->data_at + TEC_BLOCKS_CHUNK - 1) / TEC_BLOCKS_CHUNK ||
        h->data_at < sizeof *h + tec_blocks_tables(h->n, h->chunks))
        return fail(err, "has a header that makes no sense");
    return TEC_OK;
}

/* Blocks lie in order behind the tables, inside of the file, and do not overlap. */
static enum tec_status check_entries(const struct tec_blocks *b, struct tec_error *err)
{
    uint64_t from = b->head.data_at, end = b->head.file_bytes;
    for (uint64_t i = 0; i < b->head.n; i++) {
        const struct tec_blocks_entry *e = &b->entries[i];
        if (e->at < from || e->at % TEC_BLOCKS_ALIGN || e->at > end || e->bytes > end - e->at)
            return fail(err, "has a table that makes no sense");
        from = e->at + e->bytes;
    }
    return TEC_OK;
}

static enum tec_status read_tables(struct tec_blocks *b, int fd, struct tec_error *err)
{
    size_t size = (size_t)tec_blocks_tables(b->head.n, b->head.chunks);
    b->tables = tec_heap_get(b->heap, size);
    if (!b->tables)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for its tables of %zu bytes", size);
    if (!read_all(fd, b->tables, size, sizeof b->head))
        return tec_fail(err, TEC_IO, "cannot be read");
    if (b->head.tables != XXH3_64bits(b->tables, size))
        return fail(err, "has damaged tables");
    b->entries = b->tables;
    b->hashes = (uint64_t *)(b->entries + b->head.n);
    return check_entries(b, err);
}

static enum tec_status map(struct tec_blocks *b, int fd, struct tec_error *err)
{
    void *at = mmap(NULL, (size_t)b->head.file_bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return tec_fail(err, TEC_NO_MEMORY, "cannot be mapped");
    b->map = at;
    madvise(at, (size_t)b->head.file_bytes, MADV_HUGEPAGE); /* advice: where the file system can */
    return TEC_OK;
}

static enum tec_status open_into(struct tec_blocks *b, int fd, uint64_t bytes,
                                 struct tec_blocks_key key, struct tec_error *err)
{
    if (bytes < sizeof b->head)
        return fail(err, "is too short");
    if (!read_all(fd, &b->head, sizeof b->head, 0))
        return tec_fail(err, TEC_IO, "cannot be read");
    TEC_TRY(check_head(&b->head, bytes, err));
    if (b->head.key.low != key.low || b->head.key.high != key.high)
        return tec_fail(err, TEC_SHAPE, "is of another checkpoint, description or version");
    TEC_TRY(read_tables(b, fd, err));
    return map(b, fd, err);
}

enum tec_status tec_blocks_open(struct tec_blocks **out, const char *path,
                                struct tec_blocks_key key, struct tec_heap *heap,
                                struct tec_error *err)
{
    struct stat st;
    int fd;
    *out = NULL;
    TEC_TRY(tec_file_open_regular(&fd, &st, path, err));
    struct tec_blocks *b = tec_heap_get(heap, sizeof *b);
    enum tec_status status =
        b ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for a file of blocks");
    if (b) {
        b->heap = heap;
        status = open_into(b, fd, (uint64_t)st.st_size, key, err);
    }
    close(fd);
    if (status == TEC_OK)
        *out = b;
    else
        tec_blocks_close(b);
    return status;
}

void tec_blocks_close(struct tec_blocks *b)
{
    if (!b)
        return;
    if (b->map)
        munmap(b->map, (size_t)b->head.file_bytes);
    tec_heap_put(b->heap, b->tables);
    tec_heap_put(b->heap, b);
}

int tec_blocks_count(const struct tec_blocks *b)
{
    return (int)b->head.n;
}

const void *tec_blocks_at(const struct tec_blocks *b, int at, size_t *bytes)
{
    *bytes = (size_t)b->entries[at].bytes;
    return b->map + b->entries[at].at;
}

uint64_t tec_blocks_bytes(const struct tec_blocks *b)
{
    return b->head.file_bytes;
}

uint64_t tec_blocks_note(const struct tec_blocks *b)
{
    return b->head.note;
}

int tec_blocks_chunks(const struct tec_blocks *b)
{
    return (int)b->head.chunks;
}

/* A file that has become shorter since it was mapped is told by the call that reads it in, without
 * a signal; where the system lacks that call, it is read as any memory is. */
bool tec_blocks_check(const struct tec_blocks *b, int chunk)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t at = b->head.data_at + (uint64_t)chunk * TEC_BLOCKS_CHUNK;
    uint64_t left = b->head.file_bytes - at, n = left < TEC_BLOCKS_CHUNK ? left : TEC_BLOCKS_CHUNK;
    uint64_t from = at / page * page;
    if (madvise(b->map + from, (size_t)(at + n - from), MADV_POPULATE_READ) != 0 && errno == EFAULT)
        return false;
    return XXH3_64bits(b->map + at, (size_t)n) == b->hashes[chunk];
}
