/* tectum_robots.c - tectum.h with several robots: one observation for both, actions of each by the
 * name of its node. */
#include "tectum.h"

#include "tests/tap.h"

#include <string.h>

static struct tectum_error err;
static unsigned char pixels[2][8 * 8 * 3];
static double state[8];

/* The pictures, state and prompt of a robot under its name. */
static size_t values_of(struct tectum_value *v, char names[4][64], const char *robot,
                        const unsigned char seen[8 * 8 * 3])
{
    static const char *const keys[] = {"observation/image", "observation/wrist_image",
                                       "observation/state", "prompt"};
    for (int i = 0; i < 4; i++) {
        snprintf(names[i], 64, "%s/%s", robot, keys[i]);
        v[i] = (struct tectum_value){.name = names[i]};
        if (i < 2)
            v[i] = (struct tectum_value){.name = names[i],
                                         .type = TECTUM_TYPE_U8,
                                         .rank = 3,
                                         .shape = {8, 8, 3},
                                         .data = seen,
                                         .bytes = sizeof pixels[0]};
    }
    v[2].type = TECTUM_TYPE_F64;
    v[2].rank = 1;
    v[2].shape[0] = 8;
    v[2].data = state;
    v[2].bytes = 8 * sizeof *state;
    v[3].type = TECTUM_TYPE_TEXT;
    v[3].data = "go";
    v[3].bytes = 2;
    return 4;
}

static struct tectum *open_arms(void)
{
    const struct tectum_options o = {.pipeline = "pipelines/graphs/g03_two_arms.lua",
                                     .root = ".",
                                     .threads = 1,
                                     .random_weights = 1,
                                     .size = "tiny",
                                     .seed = 1};
    struct tectum *t = NULL;
    if (tectum_open(&t, &o, &err) != TECTUM_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(t);
    return t;
}

/* Actions of both arms on an observation. */
static void act(struct tectum *t, double left[70], double right[70])
{
    struct tectum_value v[8];
    char names[8][64];
    int64_t number = -1;
    struct tectum_chunk chunk;
    size_t n = values_of(v, names, "left", pixels[0]);
    n += values_of(v + n, names + n, "right", pixels[1]);
    REQUIRE(tectum_submit(t, v, n, 0, &number, &err) == TECTUM_OK);
    REQUIRE(tectum_wait_for(t, "act_left", number, 20000000000, left, 70, &chunk, &err) ==
            TECTUM_OK);
    CHECK_INT(chunk.rows, ==, 10);
    CHECK_INT(chunk.columns, ==, 7);
    REQUIRE(tectum_wait_for(t, "act_right", number, 20000000000, right, 70, &chunk, &err) ==
            TECTUM_OK);
    CHECK_INT(chunk.rows, ==, 10);
}

TEST(each_robot_has_its_actions)
{
    double left[2][70], right[2][70];
    memset(pixels[0], 40, sizeof pixels[0]);
    memset(pixels[1], 200, sizeof pixels[1]);
    for (int turn = 0; turn < 2; turn++) {
        struct tectum *t = open_arms();
        CHECK_INT(tectum_rows(t), ==, 10);
        CHECK_INT(tectum_columns(t), ==, 7);
        CHECK_STR(tectum_action(t, 0), "act_left");
        CHECK_STR(tectum_action(t, 1), "act_right");
        act(t, left[turn], right[turn]);
        tectum_close(&t);
        memset(pixels[1], 90, sizeof pixels[1]); /* the right arm alone sees something else */
    }
    CHECK(memcmp(left[0], left[1], sizeof left[0]) == 0);
    CHECK(memcmp(right[0], right[1], sizeof right[0]) != 0);
    CHECK(memcmp(left[0], right[0], sizeof left[0]) != 0);
}

TEST(an_observation_is_of_all_robots)
{
    struct tectum *t = open_arms();
    struct tectum_value v[8];
    char names[8][64];
    int64_t number = -1;
    size_t n = values_of(v, names, "left", pixels[0]);
    CHECK(tectum_submit(t, v, n, 0, &number, &err) != TECTUM_OK);
    CHECK(strstr(err.message, "right/") != NULL);
    tectum_close(&t);
}

TAP_MAIN
