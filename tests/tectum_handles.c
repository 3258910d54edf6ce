/* tectum_handles.c - tectum.h with several pipelines in one process: opened, used and closed by
 * threads of their own, each has the bytes that it has alone. */
#include "tectum.h"

#include "tests/tap.h"

#include <pthread.h>
#include <string.h>

enum { SIDE = 8, PIXELS = SIDE * SIDE * 3, OBSERVATIONS = 4, ROOM = 10 * 7, HANDLES = 3 };
static const int64_t patience = 120000000000;

static const struct tectum_options pipelines[HANDLES] = {
    {.pipeline = "pipelines/graphs/g03_two_arms.lua",
     .root = ".",
     .threads = 1,
     .random_weights = 1,
     .size = "tiny",
     .seed = 1},
    {.pipeline = "pipelines/graphs/g03_two_arms.lua",
     .root = ".",
     .threads = 1,
     .random_weights = 1,
     .size = "tiny",
     .seed = 3},
    {.pipeline = "pipelines/graphs/g03_two_arms.lua",
     .root = ".",
     .threads = 1,
     .random_weights = 1,
     .size = "tiny",
     .seed = 2},
};

/* One robot's program: a pipeline of its own, from its opening to its end. */
struct user {
    const struct tectum_options *options;
    double actions[OBSERVATIONS][ROOM];
    bool good;
    struct tectum_error err;
};

static size_t values_of(struct tectum_value v[8], char names[8][64],
                        const unsigned char pixels[PIXELS], const double state[8])
{
    static const char *const arms[] = {"left", "right"};
    static const char *const keys[] = {"observation/image", "observation/wrist_image",
                                       "observation/state", "prompt"};
    for (int i = 0; i < 8; i++) {
        snprintf(names[i], 64, "%s/%s", arms[i / 4], keys[i % 4]);
        v[i] = i % 4 < 2    ? (struct tectum_value){names[i],        TECTUM_TYPE_U8, 3,
                                                    {SIDE, SIDE, 3}, pixels,         PIXELS}
               : i % 4 == 2 ? (struct tectum_value){names[i], TECTUM_TYPE_F64, 1,
                                                    {8},      state,           8 * sizeof *state}
                            : (struct tectum_value){names[i], TECTUM_TYPE_TEXT, 0, {0}, "go", 2};
    }
    return 8;
}

static bool act(struct user *u, struct tectum *t, int i)
{
    unsigned char pixels[PIXELS];
    const double state[8] = {0.1 * i};
    struct tectum_value v[8];
    struct tectum_chunk chunk;
    char names[8][64];
    int64_t number = -1;
    memset(pixels, 40 * (i + 1), sizeof pixels);
    size_t n = values_of(v, names, pixels, state);
    return tectum_submit(t, v, n, 0, &number, &u->err) == TECTUM_OK &&
           tectum_wait_for(t, "act_left", number, patience, u->actions[i], ROOM, &chunk, &u->err) ==
               TECTUM_OK;
}

static void *use(void *user)
{
    struct user *u = user;
    struct tectum *t = NULL;
    u->good = tectum_open(&t, u->options, &u->err) == TECTUM_OK;
    for (int i = 0; i < OBSERVATIONS && u->good; i++)
        u->good = act(u, t, i);
    tectum_close(&t);
    return NULL;
}

static void check(const struct user *u)
{
    if (!u->good)
        fprintf(stderr, "# %s\n", u->err.message);
    REQUIRE(u->good);
}

TEST(pipelines_of_one_process_have_what_each_has_alone)
{
    static struct user alone[HANDLES], together[2 * HANDLES];
    pthread_t threads[2 * HANDLES];
    for (int i = 0; i < HANDLES; i++) {
        alone[i].options = &pipelines[i];
        use(&alone[i]);
        check(&alone[i]);
    }
    CHECK(memcmp(alone[0].actions, alone[1].actions, sizeof alone[0].actions) != 0);
    CHECK(memcmp(alone[0].actions, alone[2].actions, sizeof alone[0].actions) != 0);
    for (int i = 0; i < 2 * HANDLES; i++) { /* each pipeline twice */
        together[i].options = &pipelines[i % HANDLES];
        REQUIRE(pthread_create(&threads[i], NULL, use, &together[i]) == 0);
    }
    for (int i = 0; i < 2 * HANDLES; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 2 * HANDLES; i++) {
        check(&together[i]);
        CHECK(memcmp(together[i].actions, alone[i % HANDLES].actions, sizeof alone[0].actions) ==
              0);
    }
}

TEST(a_pipeline_goes_on_when_another_is_closed_or_cannot_be_opened)
{
    static struct user before, after;
    struct tectum_options wrong = pipelines[0];
    struct tectum *one = NULL, *other = NULL, *none = NULL;
    wrong.size = "no such size";
    before.options = after.options = &pipelines[0];
    use(&before);
    check(&before);
    REQUIRE(tectum_open(&one, &pipelines[0], &after.err) == TECTUM_OK);
    REQUIRE(tectum_open(&other, &pipelines[1], &after.err) == TECTUM_OK);
    REQUIRE(act(&after, one, 0));
    tectum_close(&other);
    REQUIRE(act(&after, one, 1));
    CHECK(tectum_open(&none, &wrong, &after.err) != TECTUM_OK && !none);
    REQUIRE(act(&after, one, 2));
    REQUIRE(act(&after, one, 3));
    tectum_close(&one);
    CHECK(memcmp(before.actions, after.actions, sizeof before.actions) == 0);
}

TAP_MAIN
