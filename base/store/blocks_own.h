/* blocks_own.h - between blocks.c and blocks_write.c: how a file of blocks is laid out. */
#ifndef TEC_BASE_STORE_BLOCKS_OWN_H
#define TEC_BASE_STORE_BLOCKS_OWN_H

#include "base/store/blocks.h"

/* The header, as it lies in the file. `own` is the hash of all bytes before it. */
struct tec_blocks_head {
    char magic[8];
    uint32_t format, chunk;
    uint64_t file_bytes, n, data_at, chunks;
    struct tec_blocks_key key;
    uint64_t note, tables;
    uint64_t unused[5];
    uint64_t own;
};

_Static_assert(sizeof(struct tec_blocks_head) == 128, "it is written as it lies in memory");

struct tec_blocks_entry {
    uint64_t at, bytes;
};

/* "TECBLKS" and the format: it changes with the layout of the file. */
extern const char tec_blocks_magic[8];
enum { TEC_BLOCKS_FORMAT = 1 };

/* The first multiple of `step` that is not below n. */
static inline uint64_t tec_blocks_round(uint64_t n, uint64_t step)
{
    return (n + step - 1) / step * step;
}

/* Bytes of both tables. */
static inline uint64_t tec_blocks_tables(uint64_t n, uint64_t chunks)
{
    return n * sizeof(struct tec_blocks_entry) + chunks * sizeof(uint64_t);
}

#endif
