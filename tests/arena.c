/* arena.c - heaps count and fail on request; arenas keep what is pushed until it is forgotten. */
#include "base/arena.h"
#include "tests/tap.h"

#include <stdlib.h>

TEST(a_heap_counts_what_is_live)
{
    struct tec_heap heap = {0};
    unsigned char *a = tec_heap_get(&heap, 100), *b = tec_heap_get(&heap, 0);
    REQUIRE(a && b);
    CHECK_INT((uintptr_t)a % 64, ==, 0);
    CHECK_INT((uintptr_t)b % 64, ==, 0);
    for (int i = 0; i < 100; i++)
        CHECK_INT(a[i], ==, 0);
    CHECK_INT(heap.live, ==, 2);
    CHECK_INT(heap.bytes, ==, 100);
    tec_heap_put(&heap, a);
    tec_heap_put(&heap, NULL);
    CHECK_INT(heap.live, ==, 1);
    CHECK_INT(heap.bytes, ==, 0);
    CHECK_INT(heap.peak, ==, 100);
    CHECK_INT(heap.calls, ==, 2);
    tec_heap_put(&heap, b);
    CHECK_INT(heap.live, ==, 0);
}

TEST(a_heap_fails_from_the_nth_call_on)
{
    struct tec_heap heap = {.fail_at = 3};
    void *a = tec_heap_get(&heap, 8), *b = tec_heap_get(&heap, 8);
    CHECK(a && b);
    CHECK(!tec_heap_get(&heap, 8));
    CHECK(!tec_heap_get(&heap, 8));
    CHECK_INT(heap.bytes, ==, 16);
    heap.fail_at = 0;
    void *c = tec_heap_get(&heap, 8);
    CHECK(c != NULL);
    tec_heap_put(&heap, a);
    tec_heap_put(&heap, b);
    tec_heap_put(&heap, c);
    CHECK_INT(heap.live, ==, 0);
}

TEST(a_heap_keeps_its_limit)
{
    struct tec_heap heap = {.limit = 1000};
    void *a = tec_heap_get(&heap, 600);
    REQUIRE(a);
    CHECK(!tec_heap_get(&heap, 401));
    CHECK_INT(heap.bytes, ==, 600);
    void *b = tec_heap_get(&heap, 400);
    CHECK(b != NULL);
    tec_heap_put(&heap, a);
    tec_heap_put(&heap, b);
    CHECK(!tec_heap_get(&heap, SIZE_MAX));
    CHECK(!tec_heap_get(&heap, SIZE_MAX / 2));
    CHECK_INT(heap.bytes, ==, 0);
}

TEST(pushes_are_aligned_zeroed_and_apart)
{
    enum { N = 400 };
    struct tec_heap heap = {0};
    struct tec_arena arena;
    tec_arena_init(&arena, &heap);
    CHECK_INT(heap.calls, ==, 0);
    unsigned char *at[N];
    for (int i = 0; i < N; i++) {
        size_t align = (size_t)1 << (i % 7), size = (size_t)(i * 37 % 600);
        at[i] = tec_arena_push(&arena, 1, size, align);
        REQUIRE(at[i]);
        CHECK_INT((uintptr_t)at[i] % align, ==, 0);
        for (size_t b = 0; b < size; b++)
            REQUIRE(at[i][b] == 0);
        memset(at[i], i % 255 + 1, size);
    }
    for (int i = 0; i < N; i++)
        for (int b = 0; b < i * 37 % 600; b++)
            REQUIRE(at[i][b] == i % 255 + 1);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
    CHECK_INT(heap.bytes, ==, 0);
}

TEST(blocks_grow_so_that_calls_stay_few)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    tec_arena_init(&arena, &heap);
    for (int i = 0; i < 100000; i++)
        REQUIRE(tec_arena_push(&arena, 1, 64, 64));
    CHECK_INT(heap.calls, <, 20);
    CHECK_INT(heap.bytes, <, 2 * 6400000);
    tec_arena_finish(&arena);
}

TEST(a_product_that_overflows_is_refused)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    tec_arena_init(&arena, &heap);
    char *kept = tec_arena_strdup(&arena, "kept");
    struct tec_arena_mark before = tec_arena_mark(&arena);
    CHECK(!tec_arena_push(&arena, SIZE_MAX / 2, 4, 1));
    CHECK(!tec_arena_push(&arena, 4, SIZE_MAX / 2, 1));
    CHECK(!tec_arena_push(&arena, SIZE_MAX, 1, 1));
    CHECK(!TEC_NEW(&arena, SIZE_MAX / sizeof(int), int));
    struct tec_arena_mark after = tec_arena_mark(&arena);
    CHECK(before.block == after.block && before.used == after.used);
    CHECK_STR(kept, "kept");
    tec_arena_finish(&arena);
}

TEST(a_loop_at_the_end_of_a_block_asks_the_heap_once)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    tec_arena_init(&arena, &heap);
    for (size_t left = 0; left < 200; left += 8) { /* a block of 4096 with so much free */
        REQUIRE(tec_arena_push(&arena, 1, 4096 - left, 1));
        int64_t before = heap.calls;
        for (int i = 0; i < 1000; i++) {
            struct tec_arena_mark mark = tec_arena_mark(&arena);
            unsigned char *at = tec_arena_push(&arena, 1, 100, 1);
            REQUIRE(at && at[0] == 0 && at[99] == 0);
            memset(at, 1, 100);
            tec_arena_rewind(&arena, mark);
        }
        CHECK_INT(heap.calls - before, <=, 1);
        tec_arena_finish(&arena);
        CHECK_INT(heap.live, ==, 0);
    }
}

TEST(rewind_forgets_what_came_later)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    tec_arena_init(&arena, &heap);
    char *first = tec_arena_strdup(&arena, "first");
    struct tec_arena_mark mark = tec_arena_mark(&arena);
    int64_t bytes = heap.bytes;
    char *second = tec_arena_push(&arena, 1, 16, 1);
    memset(second, 'x', 16);
    REQUIRE(tec_arena_push(&arena, 1, 1 << 20, 64));
    tec_arena_rewind(&arena, mark);
    CHECK_INT(heap.bytes, <=, bytes + (1 << 20) + 64); /* one block stays for later */
    REQUIRE(tec_arena_push(&arena, 3, 1 << 20, 64));
    tec_arena_rewind(&arena, mark);
    CHECK_INT(heap.bytes, <=, bytes + (1 << 20) + 64); /* none that is larger */
    CHECK_STR(first, "first");
    char *again = tec_arena_push(&arena, 1, 16, 1);
    CHECK(again == second);
    CHECK_INT(again[0], ==, 0);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
    CHECK_STR(tec_arena_strdup(&arena, "used again"), "used again");
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

TEST(texts_are_copied)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    tec_arena_init(&arena, &heap);
    CHECK_STR(tec_arena_strdup(&arena, ""), "");
    CHECK_STR(tec_arena_strndup(&arena, "abcdef", 3), "abc");
    CHECK_STR(tec_arena_strndup(&arena, "abcdef", 0), "");
    CHECK_STR(tec_arena_printf(&arena, "%d-%s", 42, "x"), "42-x");
    char *wide = tec_arena_printf(&arena, "%5000d", 7);
    CHECK_INT(strlen(wide), ==, 5000);
    CHECK(!tec_arena_strndup(&arena, "abc", SIZE_MAX - 1));
    tec_arena_finish(&arena);
}

/* A few structures of one lifetime, as a parser makes them; false when memory ran out. */
static bool build(struct tec_arena *arena)
{
    for (int i = 0; i < 40; i++) {
        int *numbers = TEC_NEW(arena, (size_t)(i * 100 + 1), int);
        char *name = tec_arena_printf(arena, "item %d", i);
        if (!numbers || !name)
            return false;
        numbers[i * 100] = i;
    }
    return true;
}

TEST(every_single_allocation_may_fail)
{
    int n = 1;
    for (bool built = false; !built; n++) {
        struct tec_heap heap = {.fail_at = n};
        struct tec_arena arena;
        tec_arena_init(&arena, &heap);
        built = build(&arena);
        CHECK_INT(built, ==, heap.calls < n);
        tec_arena_finish(&arena);
        CHECK_INT(heap.live, ==, 0);
        CHECK_INT(heap.bytes, ==, 0);
        REQUIRE(n < 100);
    }
    CHECK_INT(n, >, 3);
}

TAP_MAIN
