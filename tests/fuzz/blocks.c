/* blocks.c - fuzz target: a file of blocks. Its hashes are made right, so that what the tables say
 * is looked at and not only that they were written by somebody else. */
#include "base/store/blocks_own.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 1 << 16 };

/* The header's own hash and that of its tables, where these lie in the file. */
static void mend(uint8_t *file, size_t size)
{
    struct tec_blocks_head head;
    if (size < sizeof head)
        return;
    memcpy(&head, file, sizeof head);
    memcpy(head.magic, tec_blocks_magic, sizeof head.magic);
    head.format = TEC_BLOCKS_FORMAT;
    head.chunk = TEC_BLOCKS_CHUNK;
    head.key = (struct tec_blocks_key){0, 0};
    head.file_bytes = size;
    if (head.data_at <= size)
        head.chunks = (size - head.data_at + TEC_BLOCKS_CHUNK - 1) / TEC_BLOCKS_CHUNK;
    if (head.n < MOST && head.chunks < MOST) {
        uint64_t tables = tec_blocks_tables(head.n, head.chunks);
        if (tables <= size - sizeof head)
            head.tables = XXH3_64bits(file + sizeof head, (size_t)tables);
    }
    head.own = XXH3_64bits(&head, offsetof(struct tec_blocks_head, own));
    memcpy(file, &head, sizeof head);
}

/* Every byte that an opened file is said to have is read. */
static void use(const struct tec_blocks *b)
{
    volatile unsigned char sum = 0;
    for (int i = 0; i < tec_blocks_chunks(b); i++)
        sum ^= tec_blocks_check(b, i);
    for (int i = 0; i < tec_blocks_count(b); i++) {
        size_t bytes;
        const unsigned char *at = tec_blocks_at(b, i, &bytes);
        for (size_t k = 0; k < bytes; k++)
            sum ^= at[k];
    }
    (void)sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t file[MOST];
    char path[64];
    struct tec_heap heap = {0};
    struct tec_error err;
    struct tec_blocks *blocks;
    size = size < MOST ? size : MOST;
    memcpy(file, data, size);
    if (size && data[size - 1] & 1)
        mend(file, size);
    int fd = memfd_create("blocks", MFD_CLOEXEC);
    if (fd < 0 || write(fd, file, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (tec_blocks_open(&blocks, path, (struct tec_blocks_key){0, 0}, &heap, &err) == TEC_OK)
        use(blocks);
    tec_blocks_close(blocks);
    close(fd);
    if (heap.live)
        abort();
    return 0;
}
