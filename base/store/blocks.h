/* blocks.h - a file of blocks of bytes, to be mapped and read where they lie: a cache, which can be
 * made again.
 *
 *     0      header, 128 bytes: who may use it (a key), how long it is, hashes of itself and tables
 *     128    blocks: u64 offset, u64 bytes, for each
 *     ..     hashes: u64, XXH3-64 of each chunk of TEC_BLOCKS_CHUNK bytes from 4096 on or behind
 * the tables
 *     ..     the blocks, in order, each at a multiple of 64, large ones of 4096; zeros in between
 *
 * Numbers are little-endian. Everything is checked before it is used, and what does not fit is an
 * error that says so in a few words, never a signal: the file may be anything. That somebody cuts
 * the file short while it is mapped is not guarded against, as it is not for a program's own file;
 * writers here put a new file in place of the old one and never change one. */
#ifndef TEC_BASE_STORE_BLOCKS_H
#define TEC_BASE_STORE_BLOCKS_H

#include "base/alloc.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TEC_BLOCKS_CHUNK = 1 << 22, TEC_BLOCKS_MOST = 1 << 20, TEC_BLOCKS_ALIGN = 64 };

/* Whose blocks they are: a hash of all that their bytes depend on. */
struct tec_blocks_key {
    uint64_t low, high;
};

/* Opaque: a mapped file, read-only. Threads may read at once. */
struct tec_blocks;

/* Map the file at `path`. TEC_NOT_FOUND: there is none. TEC_SHAPE: it was made for another key.
 * TEC_MALFORMED: it is no such file, of another format, cut short, or its header or tables are
 * damaged. TEC_IO, TEC_NO_MEMORY. Messages say what the file is, without its path. The contents of
 * the blocks are not looked at: see tec_blocks_check. Close with tec_blocks_close. */
enum tec_status tec_blocks_open(struct tec_blocks **out, const char *path,
                                struct tec_blocks_key key, struct tec_heap *heap,
                                struct tec_error *err);
void tec_blocks_close(struct tec_blocks *blocks); /* NULL is allowed */

/* How many; where block `at` lies, and its bytes; bytes of all; the number that its writer left. */
int tec_blocks_count(const struct tec_blocks *blocks);
const void *tec_blocks_at(const struct tec_blocks *blocks, int at, size_t *bytes);
uint64_t tec_blocks_bytes(const struct tec_blocks *blocks);
uint64_t tec_blocks_note(const struct tec_blocks *blocks);

/* Chunks to be checked, and the check of one of them: it is read into memory and hashed. false: it
 * is not what was written. Any thread, each chunk on its own. */
int tec_blocks_chunks(const struct tec_blocks *blocks);
bool tec_blocks_check(const struct tec_blocks *blocks, int chunk);

/* What to write: `copy` gives n bytes of block `at` from `offset` on. */
struct tec_blocks_source {
    struct tec_blocks_key key;
    const size_t *sizes; /* [n] */
    int n;
    uint64_t note;
    void (*copy)(void *user, int at, size_t offset, void *to, size_t n);
    void *user;
};

/* Write a file, which appears at `path` whole or not at all, in place of an older one. One process
 * at a time writes into a folder: TEC_UNSUPPORTED where another one does just now. TEC_IO where the
 * folder cannot be written, the disk has no room or a limit is in the way, with the reason; nothing
 * is left then, nor after a signal on file systems that have files without names. */
enum tec_status tec_blocks_write(const char *path, const struct tec_blocks_source *source,
                                 struct tec_heap *heap, struct tec_error *err);

#endif
