/* blocks.c - files of blocks: what is written is what is mapped, and whatever else a file is, it is
 * refused in words. */
#include "base/store/blocks.h"
#include "tests/box.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Sizes of blocks: small ones, one that begins at a page, and one larger than a chunk. */
static const size_t sizes[] = {64, 1, 4096, 70000, 0, 5 << 20, 12};
enum { N = sizeof sizes / sizeof sizes[0], HEAD = 128 };
static const struct tec_blocks_key ours = {7, 0xABCDEF0123456789u};

static unsigned char byte_of(int at, size_t i)
{
    return (unsigned char)(i * 31 + i / 251 + (size_t)at * 7);
}

static void copy(void *user, int at, size_t offset, void *to, size_t n)
{
    (void)user;
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)to)[i] = byte_of(at, offset + i);
}

static enum tec_status write_ours(const char *path, struct tec_heap *heap, struct tec_error *err)
{
    const struct tec_blocks_source source = {
        .key = ours, .sizes = sizes, .n = N, .note = 3, .copy = copy};
    return tec_blocks_write(path, &source, heap, err);
}

static enum tec_status open_ours(struct box *b, struct tec_heap *heap, struct tec_error *err)
{
    struct tec_blocks *blocks;
    enum tec_status status = tec_blocks_open(&blocks, b->path, ours, heap, err);
    tec_blocks_close(blocks);
    return status;
}

static int files_in(const char *folder)
{
    int n = 0;
    DIR *dir = opendir(folder);
    REQUIRE(dir);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir))
        n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

static struct tec_heap heap;

static void begin(struct box *b)
{
    struct tec_error err = {0};
    heap = (struct tec_heap){0};
    box_make(b);
    box_path(b, "w");
    REQUIRE(write_ours(b->path, &heap, &err) == TEC_OK);
    CHECK_INT(heap.live, ==, 0);
}

static void flip(const char *path, off_t at, unsigned char bits)
{
    unsigned char byte = 0;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    REQUIRE(fd >= 0);
    CHECK_INT(pread(fd, &byte, 1, at), ==, 1);
    byte ^= bits;
    CHECK_INT(pwrite(fd, &byte, 1, at), ==, 1);
    close(fd);
}

TEST(what_was_written_is_mapped)
{
    struct box b;
    struct tec_error err = {0};
    struct tec_blocks *blocks;
    begin(&b);
    REQUIRE(tec_blocks_open(&blocks, b.path, ours, &heap, &err) == TEC_OK);
    REQUIRE(tec_blocks_count(blocks) == N);
    CHECK_INT(tec_blocks_note(blocks), ==, 3);
    for (int i = 0; i < tec_blocks_chunks(blocks); i++)
        CHECK(tec_blocks_check(blocks, i));
    for (int at = 0; at < N; at++) {
        size_t bytes, wrong = 0;
        const unsigned char *is = tec_blocks_at(blocks, at, &bytes);
        REQUIRE(bytes == sizes[at]);
        CHECK_INT((uintptr_t)is % TEC_BLOCKS_ALIGN, ==, 0);
        for (size_t i = 0; i < bytes; i++)
            wrong += is[i] != byte_of(at, i);
        CHECK_INT(wrong, ==, 0);
    }
    tec_blocks_close(blocks);
    CHECK_INT(heap.live, ==, 0);
    box_remove(&b);
}

TEST(a_file_of_others_is_told_from_none)
{
    struct box b;
    struct tec_error err = {0};
    struct tec_blocks *blocks;
    struct tec_blocks_key other = {ours.low, ours.high ^ 1};
    begin(&b);
    CHECK_INT(tec_blocks_open(&blocks, b.path, other, &heap, &err), ==, TEC_SHAPE);
    CHECK(!blocks);
    box_path(&b, "none");
    CHECK_INT(open_ours(&b, &heap, &err), ==, TEC_NOT_FOUND);
    box_path(&b, ".");
    CHECK_INT(open_ours(&b, &heap, &err), ==, TEC_IO);
    CHECK_INT(heap.live, ==, 0);
    box_remove(&b);
}

/* Header and tables: a bit of any byte. The tables end before the first block, at a page. */
TEST(a_bit_anywhere_in_front_is_noticed)
{
    struct box b;
    struct tec_error err = {0};
    int tables = N * 16 + 2 * 8, taken = 0;
    begin(&b);
    for (off_t at = 0; at < HEAD + tables; at++) {
        flip(b.path, at, (unsigned char)(1 << at % 8));
        taken += open_ours(&b, &heap, &err) == TEC_OK;
        flip(b.path, at, (unsigned char)(1 << at % 8));
    }
    CHECK_INT(taken, ==, 0);
    CHECK_INT(open_ours(&b, &heap, &err), ==, TEC_OK);
    CHECK_INT(heap.live, ==, 0);
    box_remove(&b);
}

TEST(a_bit_of_a_block_is_noticed_by_its_chunk)
{
    struct box b;
    struct tec_error err = {0};
    struct tec_blocks *blocks;
    struct stat st;
    begin(&b);
    REQUIRE(stat(b.path, &st) == 0);
    const off_t places[] = {4096,          4096 + 100, 1 << 20, (1 << 22) + 4095, (1 << 22) + 4096,
                            st.st_size - 1};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        int wrong = 0;
        flip(b.path, places[i], 4);
        REQUIRE(tec_blocks_open(&blocks, b.path, ours, &heap, &err) == TEC_OK);
        for (int c = 0; c < tec_blocks_chunks(blocks); c++)
            wrong += !tec_blocks_check(blocks, c) * (c + 1);
        CHECK_INT(wrong, ==, 1 + (places[i] - 4096) / TEC_BLOCKS_CHUNK);
        tec_blocks_close(blocks);
        flip(b.path, places[i], 4);
    }
    box_remove(&b);
}

TEST(a_file_of_any_other_length_is_refused)
{
    struct box b;
    struct tec_error err = {0};
    struct stat st;
    int taken = 0;
    begin(&b);
    REQUIRE(stat(b.path, &st) == 0);
    REQUIRE(truncate(b.path, st.st_size + 1) == 0);
    CHECK_INT(open_ours(&b, &heap, &err), ==, TEC_MALFORMED);
    for (off_t n = st.st_size - 1; n >= 0; n -= n > 8192 ? 90001 : 1) {
        REQUIRE(truncate(b.path, n) == 0);
        taken += open_ours(&b, &heap, &err) == TEC_OK;
    }
    CHECK_INT(taken, ==, 0);
    CHECK_INT(heap.live, ==, 0);
    box_remove(&b);
}

/* What a map cannot read any more is a chunk that is not right, and no signal. */
TEST(a_file_that_is_cut_short_while_it_is_mapped_fails_its_check)
{
    struct box b;
    struct tec_error err = {0};
    struct tec_blocks *blocks;
    begin(&b);
    REQUIRE(tec_blocks_open(&blocks, b.path, ours, &heap, &err) == TEC_OK);
    int last = tec_blocks_chunks(blocks) - 1;
    CHECK(tec_blocks_check(blocks, last));
    REQUIRE(truncate(b.path, 8192) == 0);
    CHECK(!tec_blocks_check(blocks, last));
    tec_blocks_close(blocks);
    box_remove(&b);
}

/* Nothing of a file that could not be written is left, and the old one is as it was. */
static void fails(struct box *b, enum tec_status expected)
{
    struct tec_error err = {0};
    int before = files_in(b->dir);
    CHECK_INT(write_ours(b->path, &heap, &err), ==, expected);
    CHECK(err.message[0]);
    CHECK_INT(files_in(b->dir), ==, before);
    CHECK_INT(open_ours(b, &heap, &err), ==, TEC_OK);
    CHECK_INT(heap.live, ==, 0);
}

TEST(one_process_writes_at_a_time)
{
    struct box b;
    begin(&b);
    int fd = open(b.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    REQUIRE(fd >= 0 && flock(fd, LOCK_EX) == 0);
    fails(&b, TEC_UNSUPPORTED);
    close(fd);
    struct tec_error err = {0};
    CHECK_INT(write_ours(b.path, &heap, &err), ==, TEC_OK);
    CHECK_INT(files_in(b.dir), ==, 1);
    box_remove(&b);
}

TEST(a_limit_of_file_sizes_is_no_signal)
{
    struct box b;
    struct rlimit old, limit;
    begin(&b);
    REQUIRE(getrlimit(RLIMIT_FSIZE, &old) == 0);
    limit = old;
    limit.rlim_cur = 1 << 20;
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    fails(&b, TEC_IO);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &old) == 0);
    box_remove(&b);
}

TEST(a_folder_that_is_not_there_is_an_error)
{
    struct tec_error err = {0};
    heap = (struct tec_heap){0};
    CHECK_INT(write_ours("/proc/none/w", &heap, &err), ==, TEC_IO);
    CHECK_INT(write_ours("/proc/w", &heap, &err), ==, TEC_IO);
    CHECK_INT(heap.live, ==, 0);
}

TEST(memory_that_is_refused_leaves_nothing)
{
    struct box b;
    struct tec_error err = {0};
    begin(&b);
    for (int64_t n = 1; n < 10; n++) {
        heap = (struct tec_heap){.fail_at = n};
        enum tec_status status = open_ours(&b, &heap, &err);
        CHECK(status == TEC_OK || status == TEC_NO_MEMORY);
        heap = (struct tec_heap){.fail_at = n};
        status = write_ours(b.path, &heap, &err);
        CHECK(status == TEC_OK || status == TEC_NO_MEMORY);
        CHECK_INT(heap.live, ==, 0);
        CHECK_INT(files_in(b.dir), ==, 1);
    }
    box_remove(&b);
}

TAP_MAIN
