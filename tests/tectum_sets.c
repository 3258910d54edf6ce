/* tectum_sets.c - observations that come while a frame runs leave the one that it reads alone: its
 * prompt, and the facts that the prompt holds. The thread sanitizer sees every torn one.
 */
#include "tectum.h"

#include "tests/box.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { OBSERVATIONS = 400, KINDS = 4, AT_ONCE = 5 };
static const int64_t patience = 120000000000;
static const char *const goals[KINDS] = {"find:cup", "fetch:fork", "find:box", "find:fork"};
static const char facts[] = "{\"put\": {"
                            "\"fridge\": \"{position:kitchen,state:closed,object:fridge}\\n\","
                            "\"cup\": \"{position:fridge,state:clean,object:cup}\\n\","
                            "\"fork\": \"{position:fridge,state:dirty,object:fork}\\n\","
                            "\"box\": \"{position:bed,state:dirty,object:box}\\n\"}}";
static struct tectum_error err;

static int64_t submit(struct tectum *t, const char *goal, const char *memory)
{
    int64_t number = -1;
    const struct tectum_value values[] = {
        {"goal", TECTUM_TYPE_TEXT, 0, {0}, goal, strlen(goal)},
        {"memory", TECTUM_TYPE_TEXT, 0, {0}, memory, strlen(memory)}};
    if (tectum_submit(t, values, 2, 0, &number, &err) != TECTUM_OK)
        fprintf(stderr, "# %s\n", err.message);
    return number;
}

/* The next whole text; returns the observation that it answers, or -1 when none comes. */
static int64_t read_text(struct tectum *t, int64_t timeout_ns, char text[400])
{
    static struct tectum_piece piece;
    text[0] = '\0';
    while (tectum_read(t, timeout_ns, &piece, &err) == TECTUM_OK) {
        if (piece.token < 0)
            return piece.observation;
        size_t n = strlen(text);
        snprintf(text + n, 400 - n, "%.20s", piece.text);
    }
    return -1;
}

/* `encoder`: a setting, or NULL. */
static struct tectum *open_memory(struct box *b, const char *encoder)
{
    struct tectum *t = NULL;
    char store[500];
    box_make(b);
    box_path(b, "store");
    snprintf(store, sizeof store, "resources.mem.store=%s", b->path);
    const char *const set[] = {store, encoder};
    const struct tectum_options options = {.pipeline = "pipelines/demo_memory.lua",
                                           .root = ".",
                                           .threads = 1,
                                           .device = "cpu",
                                           .set = set,
                                           .n_set = encoder ? 2 : 1};
    if (tectum_open(&t, &options, &err) != TECTUM_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(t);
    return t;
}

TEST(an_observation_does_not_touch_the_one_that_a_frame_reads)
{
    struct box b;
    struct tectum *t = open_memory(&b, NULL);
    char text[400], alone[KINDS][400];
    int answered = 0;
    REQUIRE(submit(t, goals[0], facts) == 0 && read_text(t, patience, text) == 0);
    for (int kind = 0; kind < KINDS; kind++) {
        int64_t number = submit(t, goals[kind], "");
        REQUIRE(number >= 0 && read_text(t, patience, alone[kind]) == number);
        CHECK(alone[kind][0] == ':');
    }
    for (int i = 0, first = 1 + KINDS; i < OBSERVATIONS; i++) {
        int64_t number = submit(t, goals[i % KINDS], i % 3 ? "" : facts);
        CHECK_INT(number, ==, first + i);
        while (i % AT_ONCE == 0 && (number = read_text(t, 1000000, text)) >= 0) {
            CHECK_STR(text, alone[(number - first) % KINDS]);
            answered++;
        }
    }
    /* The newest one is always answered, however slow the machine. */
    for (int64_t number = -1; number != KINDS + OBSERVATIONS && !tap.failed; answered++) {
        number = read_text(t, patience, text);
        REQUIRE(number >= 0);
        CHECK_STR(text, alone[(number - 1 - KINDS) % KINDS]);
    }
    CHECK_INT(answered, >, 0);
    tectum_close(&t);
    box_remove(&b);
}

static void *submit_all(void *t)
{
    char text[400];
    bool answered = true;
    for (int i = 0; i < KINDS; i++) {
        int64_t number = submit(t, goals[i], i ? "" : facts);
        answered &= number >= 0 && read_text(t, patience, text) == number;
    }
    return answered ? t : NULL;
}

/* A goal and facts become vectors by kernels of the encoder, for which 128 KiB are too few. */
TEST(a_thread_with_little_stack_submits_to_a_memory)
{
    struct box b;
    struct tectum *t =
        open_memory(&b, "resources.mem.encoder=tests/golden/encoders/minilm_tiny/checkpoint");
    pthread_attr_t little;
    pthread_t thread;
    void *answered = NULL;
    REQUIRE(pthread_attr_init(&little) == 0);
    REQUIRE(pthread_attr_setstacksize(&little, 128 << 10) == 0);
    REQUIRE(pthread_create(&thread, &little, submit_all, t) == 0);
    pthread_join(thread, &answered);
    pthread_attr_destroy(&little);
    CHECK(answered == t);
    tectum_close(&t);
    box_remove(&b);
}

TAP_MAIN
