/* undo.c - robot actions back to the model's: every step backwards, and which steps have no way. */
#include "graph/transform/observer.h"
#include "tests/tap.h"

#include <math.h>

static struct tec_heap heap;
static struct tec_error err;

enum { ROWS = 5, COLUMNS = 14, WIDTH = 32 };

static double value(int i)
{
    return sin(1.7 * i + 0.3) * (1 + i % 5);
}

static bool parse(struct tec_transforms *t, const char *steps, int n, struct tec_arena *arena)
{
    char text[400];
    size_t used = 0;
    for (const char *s = steps; *s && used < sizeof text - 1; s++)
        text[used++] = (char)(*s == '\'' ? '"' : *s);
    text[used] = '\0';
    json_t *json = json_loads(text, 0, NULL);
    REQUIRE(json);
    err.message[0] = '\0';
    bool ok = tec_transforms_parse(t, json, n, n, "here", arena, &err) == TEC_OK;
    json_decref(json);
    if (!ok)
        fprintf(stderr, "# %s\n", err.message);
    return ok;
}

TEST(each_step_backwards)
{
    static const char *const lists[] = {
        "[]",
        "[{'op':'multiply','by':-1,'at':[2,3]}]",
        "[{'op':'shift','by':0.5476}]",
        "[{'op':'unit_to_range','low':0.01844,'high':0.058,'at':[4]}]",
        "[{'op':'range_to_unit','low':-0.6213,'high':1.491}]",
        "[{'op':'add_state','at':[1,2,4]}]",
        "[{'op':'select','at':[3,1,4,2]}]",
        "[{'op':'select','at':[3,1,4,2]},{'op':'add_state'},{'op':'shift','by':-2,'at':[2,4]}]",
    };
    struct tec_arena arena;
    tec_arena_init(&arena, &heap);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        struct tec_transforms t;
        double x[4], scratch[4], state[4];
        REQUIRE(parse(&t, lists[i], 4, &arena));
        CHECK_INT(tec_transforms_lossy(&t), ==, -1);
        for (int k = 0; k < 4; k++) {
            x[k] = value(k);
            state[k] = value(k + 9);
        }
        tec_transforms_run(&t, 0, x, state, scratch);
        CHECK(t.n == 0 ||
              fabs(x[0] - value(0)) + fabs(x[1] - value(1)) + fabs(x[3] - value(3)) > 0.1);
        tec_transforms_undo(&t, 0, x, state, scratch);
        for (int k = 0; k < 4; k++)
            CHECK(fabs(x[k] - value(k)) < 1e-13);
    }
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

/* What a robot did within the bounds, or as a whole number, stays what it is. */
TEST(clamp_and_round_are_left_alone)
{
    struct tec_transforms t;
    struct tec_arena arena;
    double x[3] = {0.25, 1, -0.5}, want[3], scratch[3];
    tec_arena_init(&arena, &heap);
    REQUIRE(parse(&t, "[{'op':'clamp','low':-1,'high':1},{'op':'round','at':[2]}]", 3, &arena));
    CHECK_INT(tec_transforms_lossy(&t), ==, -1);
    memcpy(want, x, sizeof x);
    tec_transforms_undo(&t, 0, x, NULL, scratch);
    CHECK(memcmp(x, want, sizeof x) == 0);
    tec_transforms_run(&t, 0, x, NULL, scratch);
    CHECK(memcmp(x, want, sizeof x) == 0);
    tec_arena_finish(&arena);
}

TEST(lossy_steps_are_found)
{
    static const struct {
        const char *steps;
        int at;
    } lists[] = {
        {"[{'op':'shift','by':1},{'op':'linkage','horn':0.022,'arm':0.036,'at':[1]}]", 1},
        {"[{'op':'multiply','by':0}]", 0},
        {"[{'op':'select','at':[1,2]}]", 0},
        {"[{'op':'shift','by':1},{'op':'select','at':[1,2,2]}]", 1},
        {"[{'op':'select','at':[1,2,3,1]},{'op':'select','at':[1,2,3]}]", 0},
    };
    struct tec_arena arena;
    tec_arena_init(&arena, &heap);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        struct tec_transforms t;
        REQUIRE(parse(&t, lists[i].steps, 3, &arena));
        CHECK_INT(tec_transforms_lossy(&t), ==, lists[i].at);
    }
    tec_arena_finish(&arena);
}

/* Deltas, flips and grippers of a shipped robot, and both norms, there and back. */
static void there_and_back(enum tec_norm_mode mode, enum tec_norm_convention convention)
{
    static double low[COLUMNS], high[COLUMNS], state[COLUMNS], robot_actions[ROWS * COLUMNS];
    static float model[ROWS * WIDTH], back[ROWS * WIDTH];
    struct tec_arena arena;
    struct tec_robot *robot = NULL;
    struct tec_observer *o = NULL;
    tec_arena_init(&arena, &heap);
    REQUIRE(tec_robot_load(&robot, "pipelines/robots/aloha.lua", "pipelines/robots", NULL, NULL,
                           NULL, &arena, &err) == TEC_OK);
    CHECK(tec_robot_check_undo(robot, &err) == TEC_OK);
    robot->norm_any = true; /* any statistics */
    for (int i = 0; i < COLUMNS; i++) {
        low[i] = -1 - 0.1 * i;
        high[i] = 1.5 + 0.2 * i;
        state[i] = value(i);
    }
    const struct tec_norm norm = {.mode = mode,
                                  .convention = convention,
                                  .eps = convention == TEC_NORM_OPENPI ? 1e-6 : 1e-8,
                                  .n = COLUMNS,
                                  .mean = low,
                                  .std = high,
                                  .q01 = low,
                                  .q99 = high};
    const struct tec_observer_needs needs = {.n_slots = robot->n_cameras,
                                             .image_h = 28,
                                             .image_w = 28,
                                             .state_width = WIDTH,
                                             .action_width = WIDTH,
                                             .state_norm = norm,
                                             .action_norm = norm};
    enum tec_status status = tec_observer_create(&o, robot, &needs, &heap, &err);
    if (status != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(status == TEC_OK);
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < WIDTH; i++)
            model[r * WIDTH + i] = i < COLUMNS ? (float)value(r * COLUMNS + i) / 4.0F : 0.0F;
    CHECK_INT(tec_robot_act(o, model, ROWS, state, robot_actions, NULL), ==, ROWS);
    memset(back, 0xFF, sizeof back);
    CHECK(tec_robot_undo(o, robot_actions, ROWS, state, back, &err) == TEC_OK);
    for (int i = 0; i < ROWS * WIDTH; i++)
        CHECK(fabsf(back[i] - model[i]) <= 1e-6F && (i % WIDTH < COLUMNS || back[i] == 0.0F));
    robot_actions[COLUMNS + 3] = 1e300;
    CHECK_INT(tec_robot_undo(o, robot_actions, ROWS, state, back, &err), ==, TEC_INVALID);
    CHECK(strstr(err.message, "row 2 is out of range: column 4 is not finite") != NULL);
    tec_observer_destroy(o);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

TEST(a_robot_there_and_back)
{
    there_and_back(TEC_NORM_QUANTILE, TEC_NORM_OPENPI);
    there_and_back(TEC_NORM_MEAN_STD, TEC_NORM_OPENPI);
    there_and_back(TEC_NORM_QUANTILE, TEC_NORM_LEROBOT);
    there_and_back(TEC_NORM_MEAN_STD, TEC_NORM_LEROBOT);
}

TEST(a_robot_without_a_way_back_says_which_step)
{
    struct tec_arena arena;
    struct tec_robot *robot = NULL;
    tec_arena_init(&arena, &heap);
    json_t *json = json_pack("{s:s, s:{s:i, s:[{s:s,s:f},{s:s,s:f,s:f}]}, s:{s:s}}", "name", "arm",
                             "actions", "size", 2, "ops", "op", "shift", "by", 1.0, "op", "linkage",
                             "horn", 0.022, "arm", 0.036, "norm", "mode", "none");
    REQUIRE(json);
    REQUIRE(tec_robot_parse(&robot, json, NULL, "here", &arena, &err) == TEC_OK);
    CHECK_INT(tec_robot_check_undo(robot, &err), ==, TEC_MALFORMED);
    CHECK(strstr(err.message, "robot arm: step 2 of its actions, linkage, cannot be undone") !=
          NULL);
    json_decref(json);
    tec_arena_finish(&arena);
}

TAP_MAIN
