/* content.c - tests of what names tensors by what is in them: which changes give another name, and
 * that files, their order and their metadata give none. */
#include "base/store/adapter.h"
#include "base/store/checkpoint.h"
#include "tests/box.h"

#include <stdlib.h>
#include <unistd.h>

enum { SMALL = 40000, LARGE = 33 << 20 }; /* bytes of a tensor; two large ones are sampled */

static struct tec_heap heap;
static struct box box;

struct name {
    uint64_t of[2];
};

static struct name name_of(const char *path)
{
    struct tec_tensors *t = NULL;
    struct name name = {{0, 0}};
    REQUIRE(tec_tensors_open(&t, path, &heap, NULL) == TEC_OK);
    CHECK(tec_tensors_content(t, TEC_CONTENT_WHOLE, name.of, &heap, NULL) == TEC_OK);
    tec_tensors_close(t);
    return name;
}

static bool same(struct name a, struct name b)
{
    return a.of[0] == b.of[0] && a.of[1] == b.of[1];
}

/* A file of tensors "a" and "b" of so many bytes, and a small one, "c". */
static void write_two(const char *file, unsigned char *a, unsigned char *b, int64_t bytes)
{
    static const unsigned char c[8] = {1, 2, 3};
    const struct tec_tensor_entry entries[] = {{"a", TEC_U8, 1, {bytes}, a},
                                               {"b", TEC_U8, 1, {bytes}, b},
                                               {"c", TEC_U8, 1, {sizeof c}, c}};
    box_path(&box, file);
    REQUIRE(tec_tensors_write(box.path, entries, 3, &heap, NULL) == TEC_OK);
}

/* The name with one bit of "b" flipped at a byte. */
static struct name name_with(unsigned char *a, unsigned char *b, int64_t bytes, int64_t at)
{
    b[at] ^= 64;
    write_two("x.safetensors", a, b, bytes);
    b[at] ^= 64;
    return name_of(box.path);
}

static unsigned char *bytes_of(int64_t n, unsigned seed)
{
    unsigned char *p = malloc((size_t)n);
    REQUIRE(p);
    for (int64_t i = 0; i < n; i++)
        p[i] = (unsigned char)((seed = seed * 1664525U + 1013904223U) >> 24);
    return p;
}

TEST(every_byte_of_small_weights_is_in_their_name)
{
    unsigned char *a = bytes_of(SMALL, 1), *b = bytes_of(SMALL, 2);
    box_make(&box);
    write_two("x.safetensors", a, b, SMALL);
    const struct name is = name_of(box.path);
    for (int64_t at = 0; at < SMALL; at += 997)
        CHECK(!same(is, name_with(a, b, SMALL, at)));
    CHECK(!same(is, name_with(a, b, SMALL, SMALL - 1)));
    write_two("x.safetensors", b, a, SMALL);
    CHECK(!same(is, name_of(box.path)));
    write_two("x.safetensors", a, b, SMALL);
    CHECK(same(is, name_of(box.path)));
    free(a);
    free(b);
    CHECK_INT(heap.live, ==, 0);
    box_remove(&box);
}

/* Beginning, middle and end of each; the test says, too, what is not seen. */
TEST(parts_of_each_large_tensor_are_in_the_name)
{
    unsigned char *a = bytes_of(LARGE, 1), *b = bytes_of(LARGE, 2);
    const int64_t middle = (LARGE - 4096) / 2;
    const int64_t seen[] = {0, 4095, middle, middle + 4095, LARGE - 4096, LARGE - 1};
    const int64_t unseen[] = {4096, middle - 1, middle + 4096, LARGE - 4097};
    box_make(&box);
    write_two("x.safetensors", a, b, LARGE);
    const struct name is = name_of(box.path);
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++)
        CHECK(!same(is, name_with(a, b, LARGE, seen[i])));
    for (size_t i = 0; i < sizeof unseen / sizeof *unseen; i++)
        CHECK(same(is, name_with(a, b, LARGE, unseen[i])));
    free(a);
    free(b);
    CHECK_INT(heap.live, ==, 0);
    box_remove(&box);
}

static void put_safetensors(const char *file, const char *header, const char *data)
{
    uint64_t n = strlen(header);
    box_path(&box, file);
    FILE *f = fopen(box.path, "wb");
    REQUIRE(f);
    CHECK(fwrite(&n, 1, sizeof n, f) == sizeof n && fwrite(header, 1, n, f) == n);
    CHECK(fwrite(data, 1, strlen(data), f) == strlen(data) && fclose(f) == 0);
}

#define A "\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":"
#define B "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":"

/* One file; the tensors in another order, with metadata; two shards, in both orders. */
TEST(files_order_and_metadata_are_no_part_of_the_name)
{
    static const char *const index[] = {
        "{\"weight_map\":{\"a\":\"1.safetensors\",\"b\":\"2.safetensors\"}}",
        "{\"weight_map\":{\"b\":\"2.safetensors\",\"a\":\"1.safetensors\"}}"};
    box_make(&box);
    put_safetensors("x.safetensors", "{" A "[0,4]}," B "[4,8]}}", "abcdABCD");
    const struct name is = name_of(box.path);
    put_safetensors("y.safetensors",
                    "{\"__metadata__\":{\"format\":\"pt\"}," B "[0,4]}," A "[4,8]}}", "ABCDabcd");
    CHECK(same(is, name_of(box.path)));
    put_safetensors("1.safetensors", "{" A "[0,4]}}", "abcd");
    put_safetensors("2.safetensors", "{" B "[0,4]}}", "ABCD");
    for (int i = 0; i < 2; i++) {
        box_put(&box, "model.safetensors.index.json", index[i]);
        CHECK(same(is, name_of(box.dir)));
    }
    put_safetensors("2.safetensors", "{" B "[0,4]}}", "ABCd");
    CHECK(!same(is, name_of(box.dir)));
    put_safetensors("x.safetensors",
                    "{\"a\":{\"dtype\":\"I8\",\"shape\":[4],\"data_offsets\":[0,4]}," B "[4,8]}}",
                    "abcdABCD");
    CHECK(!same(is, name_of(box.path)));
    put_safetensors("x.safetensors",
                    "{\"a\":{\"dtype\":\"U8\",\"shape\":[2,2],\"data_offsets\":[0,4]}," B "[4,8]}}",
                    "abcdABCD");
    CHECK(!same(is, name_of(box.path)));
    CHECK_INT(heap.live, ==, 0);
    box_remove(&box);
}

/* The hash of headers is the same, this is not. */
TEST(a_checkpoint_that_was_trained_on_has_another_name)
{
    unsigned char *a = bytes_of(SMALL, 1), *b = bytes_of(SMALL, 2);
    struct tec_checkpoint *c = NULL;
    char text[2][TEC_HASH_TEXT], hash[TEC_HASH_TEXT];
    box_make(&box);
    for (int i = 0; i < 2; i++) {
        write_two("x.safetensors", a, b, SMALL);
        REQUIRE(tec_checkpoint_open(&c, box.path, &heap, NULL) == TEC_OK);
        CHECK(tec_checkpoint_content(c, text[i], NULL) == TEC_OK && strlen(text[i]) == 32);
        CHECK(i == 0 || strcmp(c->hash, hash) == 0);
        memcpy(hash, c->hash, sizeof hash);
        tec_checkpoint_close(c);
        b[100]++;
    }
    CHECK(strcmp(text[0], text[1]) != 0);
    free(a);
    free(b);
    CHECK_INT(heap.live, ==, 0);
    box_remove(&box);
}

TAP_MAIN
