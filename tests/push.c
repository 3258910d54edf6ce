/* push.c - tests of the queues of texts that leave as messages of their own. */
#include "tools/serve/push.h"

#include "tests/tap.h"

#include <string.h>

static struct tec_heap heap;
static struct tec_arena arena;
static struct tec_push push;
static struct tec_error err;
static char many[TEC_PUSH_ROOM];

static bool put(int64_t client, int64_t request, size_t bytes)
{
    const struct tec_reply_text text = {.node = "talk",
                                        .request = request,
                                        .reason = "eos",
                                        .text = many,
                                        .bytes = bytes,
                                        .done = true};
    return tec_push_put(&push, client, &text);
}

/* The last byte of a message is its count of lost texts, as a small number of msgpack. */
static int lost_of(const struct tec_push_message *m)
{
    return m->bytes[TEC_PUSH_HEAD + m->n - 1];
}

static void begin(void)
{
    heap = (struct tec_heap){0};
    memset(many, 'x', sizeof many);
    tec_arena_init(&arena, &heap);
    REQUIRE(tec_push_init(&push, &arena, &err) == TEC_OK);
}

TEST(a_full_queue_loses_texts_and_counts_them)
{
    begin();
    for (int i = 0; i < TEC_PUSHES; i++)
        CHECK(put(7, i, 10));
    for (int i = 0; i < 3; i++)
        CHECK(!put(7, 100 + i, 10));
    for (int i = 0; i < TEC_PUSHES; i++) {
        const struct tec_push_message *m = tec_push_first(&push, 7);
        REQUIRE(m);
        CHECK_INT(lost_of(m), ==, 0);
        tec_push_drop(&push);
    }
    CHECK(!tec_push_first(&push, 7));
    CHECK(put(7, 200, 10));
    REQUIRE(tec_push_first(&push, 7));
    CHECK_INT(lost_of(tec_push_first(&push, 7)), ==, 3);
    tec_push_drop(&push);
    CHECK(put(7, 201, 10));
    CHECK_INT(lost_of(tec_push_first(&push, 7)), ==, 0);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

TEST(a_text_that_is_too_long_is_lost)
{
    begin();
    CHECK(!put(7, 1, sizeof many));
    CHECK(!tec_push_first(&push, 7));
    CHECK(put(7, 2, 10));
    CHECK_INT(lost_of(tec_push_first(&push, 7)), ==, 1);
    tec_arena_finish(&arena);
}

TEST(messages_of_a_connection_that_is_gone_are_dropped)
{
    begin();
    CHECK(put(7, 1, 10));
    CHECK(!put(7, 2, sizeof many));
    CHECK(put(8, 3, 10));
    const struct tec_push_message *m = tec_push_first(&push, 8);
    REQUIRE(m);
    CHECK_INT(m->client, ==, 8);
    CHECK_INT(lost_of(m), ==, 0); /* what another one lost is not told */
    tec_push_drop(&push);
    CHECK(put(8, 4, 10));
    CHECK(!tec_push_first(&push, 9));
    tec_arena_finish(&arena);
}

TAP_MAIN
