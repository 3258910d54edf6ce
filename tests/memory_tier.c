/* memory_tier.c - tests of places for pieces that stay on a device: who has one, who gives it up,
 * what is there. */
#include "graph/run/recall/memory_tier.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>

enum { PLACES = 5, LAYERS = 3, PIECE = 128, KEYS = 12 };

static struct tec_heap heap;
static struct tec_arena arena;
static struct tec_device *device;
static struct tec_memory_tier tier;

static void open_tier(int places)
{
    const struct tec_device_options o = {.kind = "cpu", .threads = 1, .tier = tec_tier_best()};
    memset(&heap, 0, sizeof heap);
    tec_arena_init(&arena, &heap);
    REQUIRE(tec_device_open(&device, &o, &heap, NULL) == TEC_OK);
    REQUIRE(tec_memory_tier_create(&tier, device, places, LAYERS, PIECE, &arena, NULL) == TEC_OK);
}

static void close_tier(void)
{
    tec_memory_tier_finish(&tier);
    tec_device_close(device);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

static struct tec_memory_tier_key key(int store, uint64_t serial)
{
    return (struct tec_memory_tier_key){store, serial};
}

static int take(uint64_t serial)
{
    return tec_memory_tier_take(&tier, key(0, serial));
}

static int find(uint64_t serial)
{
    return tec_memory_tier_find(&tier, key(0, serial));
}

TEST(the_least_recently_used_leaves_first)
{
    open_tier(3);
    tec_memory_tier_begin(&tier);
    int a = take(1), b = take(2), c = take(3);
    CHECK(a >= 0 && b >= 0 && c >= 0 && a != b && b != c && a != c);
    CHECK_INT(take(4), ==, -1); /* the prompt uses them all */
    tec_memory_tier_begin(&tier);
    CHECK_INT(find(1), ==, a);
    CHECK_INT(take(4), ==, b);
    CHECK_INT(find(2), ==, -1);
    CHECK_INT(take(5), ==, c);
    CHECK_INT(take(6), ==, -1);
    tec_memory_tier_begin(&tier);
    CHECK_INT(take(6), ==, a); /* used before 4 and 5 were */
    CHECK_INT(find(4), ==, b);
    CHECK_INT(find(5), ==, c);
    close_tier();
}

TEST(what_another_had_is_not_there)
{
    open_tier(1);
    tec_memory_tier_begin(&tier);
    int place = take(1);
    CHECK(!tec_memory_tier_has(&tier, place, 1));
    tec_memory_tier_keep(&tier, place, 1);
    CHECK(tec_memory_tier_has(&tier, place, 1) && !tec_memory_tier_has(&tier, place, 2));
    tec_memory_tier_begin(&tier);
    CHECK_INT(tec_memory_tier_find(&tier, key(1, 1)), ==, -1); /* of another store */
    CHECK_INT(find(1), ==, place);
    CHECK(tec_memory_tier_has(&tier, place, 1));
    tec_memory_tier_begin(&tier);
    CHECK_INT(tec_memory_tier_take(&tier, key(1, 1)), ==, place);
    CHECK(!tec_memory_tier_has(&tier, place, 1));
    CHECK_INT(find(1), ==, -1);
    close_tier();
}

TEST(places_do_not_overlap)
{
    open_tier(PLACES);
    for (int i = 0; i < PLACES; i++)
        for (int l = 0; l < LAYERS; l++)
            memset(tec_memory_tier_at(&tier, i, l), i * LAYERS + l, PIECE);
    for (int i = 0; i < PLACES; i++)
        for (int l = 0; l < LAYERS; l++) {
            const unsigned char *at = tec_memory_tier_at(&tier, i, l);
            CHECK(at[0] == i * LAYERS + l && memcmp(at, at + 1, PIECE - 1) == 0);
        }
    close_tier();
}

TEST(without_places_nothing_stays)
{
    open_tier(0);
    tec_memory_tier_begin(&tier);
    CHECK_INT(take(1), ==, -1);
    CHECK_INT(find(1), ==, -1);
    close_tier();
    memset(&tier, 0, sizeof tier);
    tec_memory_tier_finish(&tier);
}

/* Against a list of keys in order of use. */
TEST(any_order_of_use)
{
    uint64_t used[PLACES] = {0}; /* newest first; 0: free */
    open_tier(PLACES);
    srand(4);
    for (int step = 0; step < 4000; step++) {
        uint64_t k = 1 + (uint64_t)(rand() % KEYS);
        int at = 0;
        tec_memory_tier_begin(&tier);
        while (at < PLACES && used[at] != k)
            at++;
        int place = find(k);
        CHECK_INT(place >= 0, ==, at < PLACES);
        if (place < 0)
            CHECK((place = take(k)) >= 0);
        at = at < PLACES ? at : PLACES - 1;
        memmove(used + 1, used, (size_t)at * sizeof *used);
        used[0] = k;
        CHECK_INT(find(k), ==, place);
    }
    close_tier();
}

TAP_MAIN
