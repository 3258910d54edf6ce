/* ring.c - a ring keeps order between two threads, and loses nothing. */
#include "base/ring.h"
#include "tests/tap.h"

#include <pthread.h>
#include <sched.h>

TEST(sizes_out_of_range_are_refused)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_ring ring;
    tec_arena_init(&arena, &heap);
    CHECK_INT(tec_spsc_init(&ring, &arena, 0, 4), ==, TEC_INVALID);
    CHECK_INT(tec_spsc_init(&ring, &arena, (1U << 24) + 1, 4), ==, TEC_INVALID);
    CHECK_INT(tec_spsc_init(&ring, &arena, 4, 0), ==, TEC_INVALID);
    heap.fail_at = 1;
    CHECK_INT(tec_spsc_init(&ring, &arena, 4, 4), ==, TEC_NO_MEMORY);
    tec_arena_finish(&arena);
}

TEST(full_and_empty_change_nothing)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_ring ring;
    tec_arena_init(&arena, &heap);
    REQUIRE(tec_spsc_init(&ring, &arena, 3, sizeof(int)) == TEC_OK);
    int got = -1, n = 0;
    CHECK(!tec_spsc_pop(&ring, &got));
    CHECK_INT(got, ==, -1);
    while (tec_spsc_push(&ring, &n))
        n++;
    CHECK_INT(n, ==, 4); /* 3 rounded up */
    for (int i = 0; i < n; i++) {
        REQUIRE(tec_spsc_pop(&ring, &got));
        CHECK_INT(got, ==, i);
    }
    CHECK(!tec_spsc_pop(&ring, &got));
    tec_arena_finish(&arena);
}

TEST(counters_may_wrap)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_ring ring;
    tec_arena_init(&arena, &heap);
    REQUIRE(tec_spsc_init(&ring, &arena, 4, sizeof(int)) == TEC_OK);
    atomic_store(&ring.head, UINT32_MAX - 2);
    atomic_store(&ring.tail, UINT32_MAX - 2);
    for (int i = 0; i < 20; i++) {
        int a = 2 * i, b = 2 * i + 1, got[2] = {-1, -1};
        REQUIRE(tec_spsc_push(&ring, &a) && tec_spsc_push(&ring, &b));
        REQUIRE(tec_spsc_pop(&ring, &got[0]) && tec_spsc_pop(&ring, &got[1]));
        CHECK_INT(got[0], ==, a);
        CHECK_INT(got[1], ==, b);
        CHECK(!tec_spsc_pop(&ring, &got[0]));
    }
    tec_arena_finish(&arena);
}

/* Odd size, wider than a word: a torn copy would show. */
struct item {
    uint32_t number;
    unsigned char copies[19];
};

enum { ITEMS = 50000 };

static struct item item_of(uint32_t number)
{
    struct item item = {.number = number};
    memset(item.copies, (int)(number % 251), sizeof item.copies);
    return item;
}

static void *produce(void *arg)
{
    struct tec_ring *ring = arg;
    for (uint32_t i = 0; i < ITEMS; i++) {
        struct item item = item_of(i);
        while (!tec_spsc_push(ring, &item))
            sched_yield();
    }
    return NULL;
}

TEST(two_threads_lose_nothing)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_ring ring;
    pthread_t producer;
    tec_arena_init(&arena, &heap);
    REQUIRE(tec_spsc_init(&ring, &arena, 64, sizeof(struct item)) == TEC_OK);
    REQUIRE(pthread_create(&producer, NULL, produce, &ring) == 0);
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < ITEMS; i++) {
        struct item got, want = item_of(i);
        while (!tec_spsc_pop(&ring, &got))
            sched_yield();
        wrong += got.number != i || memcmp(got.copies, want.copies, sizeof got.copies) != 0;
    }
    pthread_join(producer, NULL);
    CHECK_INT(wrong, ==, 0);
    struct item none;
    CHECK(!tec_spsc_pop(&ring, &none));
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

TAP_MAIN
