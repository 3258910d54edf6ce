/* observer.c - tests of the observer, which turns a robot's values into the model's inputs, and of
 * the way back to actions. */
#include "tests/transform.h"

#include "base/store/safetensors.h"
#include "graph/transform/observer.h"

#include <math.h>

enum { SIDE = 4, PIXELS = SIDE * SIDE * 3, WIDTH = 6, SLOTS = 3, TEXT = 40 };

static const char *const slots[SLOTS] = {"a", "b", "c"};
static const double q01[] = {0, 0, 0, 0}, q99[] = {2, 2, 2, 2};
static const double a01[] = {-1, -1}, a99[] = {1, 1};

struct session {
    struct tec_arena arena;
    struct tec_robot *robot;
    struct tec_observer *observer;
    struct tec_observer_needs needs;
    struct tec_observation seen;
    uint8_t pixels[SLOTS][PIXELS], *pictures[SLOTS];
    float floats[SLOTS][PIXELS], *pictures_f32[SLOTS];
    bool valid[SLOTS];
    float state[WIDTH];
    double state_f64[WIDTH], state_raw[WIDTH];
    int bins[WIDTH];
    char text[TEXT + 1];
    uint8_t front[PIXELS], wrist[2 * PIXELS];
    float joints[3];
    double gripper;
    struct tec_value values[8];
    size_t n;
};

static struct session s;

static void add(const char *name, enum tec_value_kind kind, int rank, int64_t a, int64_t b,
                const void *data, size_t bytes)
{
    s.values[s.n++] = (struct tec_value){name, kind, rank, {a, b, 3}, data, bytes};
}

static void give_buffers(void)
{
    for (int i = 0; i < SLOTS; i++) {
        s.pictures[i] = s.pixels[i];
        s.pictures_f32[i] = s.floats[i];
    }
    s.seen = (struct tec_observation){.pictures = s.pictures,
                                      .pictures_f32 = s.pictures_f32,
                                      .valid = s.valid,
                                      .state = s.state,
                                      .state_f64 = s.state_f64,
                                      .state_raw = s.state_raw,
                                      .bins = s.bins,
                                      .text = s.text};
}

static enum tec_status open_session(const char *more)
{
    memset(&s, 0, sizeof s);
    tec_arena_init(&s.arena, &heap);
    json_t *base = json("{" SMALL "}"), *over = json(more);
    json_object_update(base, over);
    enum tec_status status = tec_robot_parse(&s.robot, base, NULL, "r.lua", &s.arena, &err);
    json_decref(base);
    json_decref(over);
    s.needs = (struct tec_observer_needs){
        .slots = slots,
        .n_slots = SLOTS,
        .image_h = SIDE,
        .image_w = SIDE,
        .state_width = WIDTH,
        .action_width = 3,
        .text_max = TEXT,
        .state_norm = {TEC_NORM_QUANTILE, TEC_NORM_OPENPI, 0.0, 4, .q01 = q01, .q99 = q99},
        .action_norm = {TEC_NORM_QUANTILE, TEC_NORM_OPENPI, 0.0, 2, .q01 = a01, .q99 = a99}};
    give_buffers();
    for (int i = 0; i < PIXELS; i++)
        s.front[i] = (uint8_t)(i + 1);
    for (int i = 0; i < 2 * PIXELS; i++)
        s.wrist[i] = (uint8_t)(2 * i);
    s.joints[0] = 1.0F, s.joints[1] = -2.0F, s.joints[2] = 0.5F;
    s.gripper = 0.25;
    add("images/front", TEC_VALUE_U8, 3, SIDE, SIDE, s.front, PIXELS);
    add("joints", TEC_VALUE_F32, 1, 3, 0, s.joints, sizeof s.joints);
    add("gripper", TEC_VALUE_F64, 0, 0, 0, &s.gripper, sizeof s.gripper);
    add("prompt", TEC_VALUE_TEXT, 0, 0, 0, "pick", 4);
    add("images/wrist", TEC_VALUE_U8, 3, 2 * SIDE, SIDE, s.wrist, 2 * PIXELS);
    if (status == TEC_OK)
        status = tec_observer_create(&s.observer, s.robot, &s.needs, &heap, &err);
    return status;
}

static void close_session(void)
{
    tec_observer_destroy(s.observer);
    tec_arena_finish(&s.arena);
    CHECK_INT(heap.live, ==, 0);
}

static enum tec_status observe(void)
{
    err.message[0] = '\0';
    return tec_robot_observe(s.observer, s.values, s.n, &s.seen, &err);
}

TEST(observe_fills_everything)
{
    REQUIRE(open_session("{}") == TEC_OK);
    REQUIRE(observe() == TEC_OK);
    CHECK(s.valid[0] && s.valid[1] && !s.valid[2]);
    CHECK(memcmp(s.pixels[0], s.front, PIXELS) == 0);
    CHECK(s.pixels[1][0] == 0 && s.pixels[1][3] != 0); /* 8 x 4: bars left and right */
    CHECK(s.pixels[2][0] == 0 && s.pixels[2][PIXELS - 1] == 0);
    CHECK(s.state_raw[0] == 1.0 && s.state_raw[1] == 2.0 && s.state_raw[3] == 0.25);
    CHECK(s.state[0] == 0.0F && s.state[1] == 1.0F && s.state[2] == -0.5F && s.state[4] == 0.0F);
    CHECK_INT(s.seen.n_bins, ==, 4);
    CHECK(s.bins[0] == 128 && s.bins[1] == 255 && s.bins[2] == 64 && s.bins[3] == 32);
    CHECK_STR(s.text, "pick");
    CHECK_STR(s.seen.warning, "");
    close_session();
}

TEST(observe_takes_no_memory_after_the_first)
{
    REQUIRE(open_session("{}") == TEC_OK);
    REQUIRE(observe() == TEC_OK);
    int64_t calls = heap.calls;
    for (int i = 0; i < 100; i++)
        CHECK(observe() == TEC_OK);
    float actions[6] = {0};
    double out[4];
    CHECK_INT(tec_robot_act(s.observer, actions, 2, s.state_raw, out, NULL), ==, 2);
    CHECK_INT(heap.calls, ==, calls);
    s.values[4].shape[0] = SIDE; /* another size is planned again */
    s.values[4].bytes = PIXELS;
    CHECK(observe() == TEC_OK);
    CHECK_INT(heap.calls, >, calls);
    CHECK(memcmp(s.pixels[1], s.wrist, PIXELS) == 0);
    s.values[4].shape[1] = 2 * SIDE; /* the width alone */
    s.values[4].bytes = 2 * PIXELS;
    CHECK(observe() == TEC_OK);
    CHECK(s.pixels[1][3 * SIDE - 1] == 0 && s.pixels[1][6 * SIDE - 1] != 0); /* bars above */
    close_session();
}

TEST(observe_masks_or_refuses_missing_cameras)
{
    REQUIRE(open_session("{}") == TEC_OK);
    memset(s.pixels[1], 9, PIXELS);
    s.n--; /* the wrist camera may be missing */
    CHECK(observe() == TEC_OK);
    CHECK(s.valid[0] && !s.valid[1] && s.pixels[1][5] == 0);
    s.values[0].name = "images/frnt";
    CHECK(observe() == TEC_NOT_FOUND);
    CHECK_SAYS("images/frnt: robot small has no such camera; did you mean 'images/front'?");
    s.values[0].name = "images/low"; /* known and ignored, so the front camera is missing */
    CHECK(observe() == TEC_NOT_FOUND);
    CHECK_SAYS("images/front: robot small needs this camera");
    close_session();
    REQUIRE(open_session("{'unknown_cameras':'ignore'}") == TEC_OK);
    s.values[4].name = "images/other";
    CHECK(observe() == TEC_OK);
    close_session();
}

/* Every camera may be missing, but not all at once: nothing would be seen. */
TEST(observe_refuses_to_drive_blind)
{
    REQUIRE(open_session("{'cameras':[{'slot':'a','input':'images/front','missing':'mask'},"
                         "{'slot':'b','input':'images/wrist','missing':'mask'},"
                         "{'slot':'c'}]}") == TEC_OK);
    s.n--; /* one of them is enough */
    CHECK(observe() == TEC_OK);
    CHECK(s.valid[0] && !s.valid[1]);
    s.values[0] = s.values[3];
    s.n = 3; /* the prompt's value is in place of the picture's */
    CHECK(observe() == TEC_NOT_FOUND);
    CHECK_SAYS("robot small needs a picture in every request, at least one of images/front, "
               "images/wrist");
    s.values[3] = (struct tec_value){.name = "images/Wrist", .data = ""}; /* set aside by serve */
    s.n = 4;
    CHECK(observe() == TEC_NOT_FOUND);
    CHECK_SAYS("at least one of images/front, images/wrist; there is 'images/Wrist' (did you mean "
               "'images/wrist'?)");
    close_session();
    REQUIRE(open_session("{'cameras':[{'slot':'a'},{'slot':'b'},{'slot':'c'}],"
                         "'unknown_cameras':'ignore'}") == TEC_OK);
    CHECK(observe() == TEC_OK); /* it has no camera, and says so */
    close_session();
}

TEST(observe_refuses_bad_values)
{
    REQUIRE(open_session("{}") == TEC_OK);
    struct tec_value good[8];
    memcpy(good, s.values, sizeof good);
    s.values[0].shape[2] = 4;
    CHECK(observe() == TEC_SHAPE);
    CHECK_SAYS("images/front: a picture is u8 or float");
    CHECK_SAYS("u8[4,4,4]");
    memcpy(s.values, good, sizeof good);
    s.values[0].bytes--;
    CHECK(observe() == TEC_SHAPE);
    CHECK_SAYS("47 bytes do not make u8[4,4,3]");
    memcpy(s.values, good, sizeof good);
    s.values[0].shape[0] = INT64_MAX;
    CHECK(observe() == TEC_SHAPE);
    s.values[0].shape[0] = -1;
    CHECK(observe() == TEC_SHAPE);
    s.values[0].shape[0] = 65535;
    s.values[0].shape[1] = 65535;
    CHECK(observe() == TEC_SHAPE);
    memcpy(s.values, good, sizeof good);
    s.values[1].shape[0] = 2;
    CHECK(observe() == TEC_SHAPE);
    CHECK_SAYS("joints: must be 3 float values, is f32[2]");
    memcpy(s.values, good, sizeof good);
    s.values[1].kind = TEC_VALUE_F64;
    CHECK(observe() == TEC_SHAPE);
    CHECK_SAYS("joints: 12 bytes do not make f64[3]");
    memcpy(s.values, good, sizeof good);
    s.joints[2] = NAN;
    CHECK(observe() == TEC_INVALID);
    CHECK_SAYS("joints: entry 3 is NaN");
    s.joints[2] = 0.0F;
    s.gripper = -HUGE_VAL;
    CHECK(observe() == TEC_INVALID);
    CHECK_SAYS("gripper: entry 1 is infinite");
    s.gripper = 0.0;
    s.values[2].name = "griper";
    CHECK(observe() == TEC_NOT_FOUND);
    CHECK_SAYS("gripper: robot small needs this part of the state in every request; there is "
               "'griper'");
    memcpy(s.values, good, sizeof good);
    s.values[3].bytes = TEXT + 1;
    CHECK(observe() == TEC_INVALID);
    CHECK_SAYS("41 bytes; at most 40 are taken");
    s.values[3] = s.values[1];
    s.values[3].name = "prompt";
    CHECK(observe() == TEC_SHAPE);
    memcpy(s.values, good, sizeof good);
    CHECK(observe() == TEC_OK);
    close_session();
}

TEST(observe_prompts)
{
    REQUIRE(open_session("{}") == TEC_OK);
    s.values[3].name = "other";
    CHECK(observe() == TEC_OK);
    CHECK_STR(s.text, "wave");
    close_session();
    REQUIRE(open_session("{'prompt':{'input':'task','state':false}}") == TEC_OK);
    CHECK(observe() == TEC_NOT_FOUND);
    CHECK_SAYS("task: robot small needs this text (there is no default)");
    s.values[3].name = "task";
    CHECK(observe() == TEC_OK);
    CHECK_INT(s.seen.n_bins, ==, 0);
    close_session();
    REQUIRE(open_session("{'prompt':{'state':true,'state_pad_to':6}}") == TEC_OK);
    CHECK(observe() == TEC_OK);
    CHECK(s.seen.n_bins == 6 && s.bins[3] == 32 && s.bins[4] == 128 && s.bins[5] == 128);
    close_session();
}

TEST(pictures_of_every_layout_agree)
{
    uint8_t chw[PIXELS];
    float f32[PIXELS];
    double f64[PIXELS];
    REQUIRE(open_session("{}") == TEC_OK);
    for (int i = 0; i < SIDE * SIDE; i++)
        for (int c = 0; c < 3; c++)
            chw[c * SIDE * SIDE + i] = s.front[i * 3 + c];
    for (int i = 0; i < PIXELS; i++) {
        f32[i] = ((float)s.front[i] + 0.5F) / 255.0F; /* truncated, whatever the last bit */
        f64[i] = ((double)s.front[i] + 0.5) / 255.0;
    }
    s.values[0] = (struct tec_value){"images/front", TEC_VALUE_U8, 3, {3, SIDE, SIDE}, chw, PIXELS};
    CHECK(observe() == TEC_OK);
    CHECK(memcmp(s.pixels[0], s.front, PIXELS) == 0);
    s.values[0] =
        (struct tec_value){"images/front", TEC_VALUE_F32, 3, {SIDE, SIDE, 3}, f32, sizeof f32};
    CHECK(observe() == TEC_OK);
    CHECK(memcmp(s.pixels[0], s.front, PIXELS) == 0);
    s.values[0] =
        (struct tec_value){"images/front", TEC_VALUE_F64, 3, {SIDE, SIDE, 3}, f64, sizeof f64};
    CHECK(observe() == TEC_OK);
    CHECK(memcmp(s.pixels[0], s.front, PIXELS) == 0);
    f64[7] = 17.0;
    CHECK(observe() == TEC_INVALID);
    CHECK_SAYS("images/front: element 7 is 17");
    f64[7] = nan("");
    CHECK(observe() == TEC_INVALID);
    close_session();
}

TEST(pictures_turn)
{
    REQUIRE(open_session("{'cameras':[{'slot':'a','input':'images/front','rotate180':true}],"
                         "'unknown_cameras':'ignore'}") == TEC_OK);
    CHECK(observe() == TEC_OK);
    for (int i = 0; i < SIDE * SIDE; i++)
        CHECK(memcmp(s.pixels[0] + (SIDE * SIDE - 1 - i) * 3, s.front + i * 3, 3) == 0);
    close_session();
}

TEST(pictures_as_floats)
{
    REQUIRE(open_session("{'resize':'lerobot_torch'}") == TEC_OK);
    CHECK(observe() == TEC_OK);
    CHECK(s.floats[0][10] == (float)s.front[10] / 255.0F);
    CHECK(s.floats[1][0] == 0.0F && s.floats[1][3] > 0.0F && s.floats[2][3] == 0.0F);
    close_session();
    REQUIRE(open_session("{'resize':'none'}") == TEC_OK);
    CHECK(observe() == TEC_SHAPE);
    CHECK_SAYS("images/wrist: the picture is 8 high, 4 wide, the model takes 4 high, 4 wide");
    close_session();
}

TEST(observe_warns)
{
    REQUIRE(open_session("{}") == TEC_OK);
    s.joints[0] = 100.0F, s.joints[1] = 100.0F, s.joints[2] = -100.0F;
    CHECK(observe() == TEC_OK);
    CHECK(strstr(s.seen.warning, "3 of 4 state entries lie beyond +-5") != NULL);
    s.joints[0] = s.joints[1] = s.joints[2] = 0.0F;
    CHECK(observe() == TEC_OK);
    CHECK_STR(s.seen.warning, "");
    s.values[0].name = "images/wrist";
    s.values[4].name = "images/front";
    CHECK(observe() == TEC_OK);
    CHECK(strstr(s.seen.warning, "have exchanged their sizes") != NULL);
    close_session();
}

TEST(a_state_out_of_the_world_is_refused)
{
    REQUIRE(open_session("{}") == TEC_OK);
    s.joints[2] = 2e6F;
    CHECK(observe() == TEC_INVALID);
    CHECK_SAYS("joints: entry 3 is 2e+06; a state is within +-1e+06");
    s.joints[2] = 30000.0F; /* q01 = 0, q99 = 2 */
    CHECK(observe() == TEC_INVALID);
    CHECK_SAYS("entry 3 of its state is 30000, normalised 29999");
    s.joints[2] = 5000.0F; /* warned about */
    CHECK(observe() == TEC_OK);
    close_session();
}

/* An entry that never moved in the training data may move a little, because its range has no
 * width. */
TEST(a_constant_entry_of_the_state_may_move)
{
    static const double same[4] = {0, 0, 0.5, 0};
    REQUIRE(open_session("{}") == TEC_OK);
    tec_observer_destroy(s.observer);
    s.needs.state_norm.q01 = s.needs.state_norm.q99 = same;
    s.needs.state_norm.eps = 1e-6;
    REQUIRE(tec_observer_create(&s.observer, s.robot, &s.needs, &heap, &err) == TEC_OK);
    s.joints[2] = 1.0F;
    CHECK(observe() == TEC_OK);
    s.joints[2] = 20.0F;
    CHECK(observe() == TEC_INVALID);
    close_session();
}

TEST(statistics_must_fit)
{
    REQUIRE(open_session("{}") == TEC_OK);
    struct tec_observer *o = NULL;
    struct tec_observer_needs n = s.needs;
    n.state_norm.mode = TEC_NORM_MEAN_STD;
    CHECK(tec_observer_create(&o, s.robot, &n, &heap, &err) == TEC_MALFORMED);
    CHECK_SAYS("wants quantile statistics for its state, the checkpoint's are mean_std");
    n = s.needs;
    n.state_norm.q99 = NULL;
    CHECK(tec_observer_create(&o, s.robot, &n, &heap, &err) == TEC_MALFORMED);
    CHECK_SAYS("lack q01 and q99");
    n = s.needs;
    n.state_norm.n = 3;
    CHECK(tec_observer_create(&o, s.robot, &n, &heap, &err) == TEC_MALFORMED);
    CHECK_SAYS("have 3 entries, robot small has 4");
    n = s.needs;
    n.state_norm.convention = TEC_NORM_DATASET;
    n.state_norm.q99 = n.state_norm.q01;
    CHECK(tec_observer_create(&o, s.robot, &n, &heap, &err) == TEC_MALFORMED);
    CHECK_SAYS("the statistics of the state have no width at entry 0");
    n = s.needs;
    n.state_width = 3;
    CHECK(tec_observer_create(&o, s.robot, &n, &heap, &err) == TEC_MALFORMED);
    n = s.needs;
    n.action_width = 1;
    CHECK(tec_observer_create(&o, s.robot, &n, &heap, &err) == TEC_MALFORMED);
    n = s.needs;
    n.n_slots = 2;
    CHECK(tec_observer_create(&o, s.robot, &n, &heap, &err) == TEC_MALFORMED);
    CHECK_SAYS("no camera slot 'c'");
    n.slots = NULL;
    CHECK(tec_observer_create(&o, s.robot, &n, &heap, &err) == TEC_MALFORMED);
    close_session();
}

TEST(slots_are_found_by_name)
{
    static const char *const turned[SLOTS] = {"c", "b", "a"};
    REQUIRE(open_session("{}") == TEC_OK);
    tec_observer_destroy(s.observer);
    s.needs.slots = turned;
    REQUIRE(tec_observer_create(&s.observer, s.robot, &s.needs, &heap, &err) == TEC_OK);
    CHECK(observe() == TEC_OK);
    CHECK(!s.valid[0] && s.valid[1] && s.valid[2]);
    CHECK(memcmp(s.pixels[2], s.front, PIXELS) == 0);
    close_session();
}

TEST(actions_go_back)
{
    /* Rows of 3 columns, 2 used; q01 = -1, q99 = 1, eps 0: the value itself. */
    float actions[12] = {0.5F, 0.25F, 9.0F, 0.0F, -3.0F, 9.0F, 100.0F, 0.0F, 9.0F, 0, 0, 0};
    double out[8];
    struct tec_beyond beyond;
    char text[120];
    REQUIRE(open_session("{}") == TEC_OK);
    REQUIRE(observe() == TEC_OK);
    CHECK_INT(tec_robot_act(s.observer, actions, 4, s.state_raw, out, &beyond), ==, 3);
    CHECK(out[0] == 1.5 && out[1] == 0.25); /* column 1 counts from the state, 1.0 */
    CHECK(out[2] == 1.0 && out[3] == -1.0);
    CHECK(out[4] == 50.0 && out[5] == 0.0);
    CHECK_INT(beyond.n, ==, 2);
    tec_beyond_text(text, sizeof text, &beyond);
    CHECK_STR(text, "2 values beyond the robot's limits, clipped: row 2, column 2 is -3, below -1");
    actions[4] = NAN;
    CHECK_INT(tec_robot_act(s.observer, actions, 4, s.state_raw, out, &beyond), ==, 1);
    actions[4] = INFINITY;
    CHECK_INT(tec_robot_act(s.observer, actions, 4, s.state_raw, out, &beyond), ==, 1);
    close_session();
}

TEST(memory_failures_are_reported)
{
    enum tec_status status = TEC_NO_MEMORY;
    int n = 0;
    while (status != TEC_OK && n < 200) {
        heap.fail_at = heap.calls + ++n;
        status = open_session("{'variants':{}}");
        if (status == TEC_OK)
            status = observe();
        if (status != TEC_OK)
            CHECK_INT(status, ==, TEC_NO_MEMORY);
        heap.fail_at = 0;
        close_session();
    }
    CHECK_INT(n, >, 3);
    CHECK_INT(n, <, 200);
}

/* Replay one episode of the demo: from what the robot sent to the state and bins that the policy
 * had. */
static void replay(const char *name, const struct tec_tensors *in, const struct tec_tensors *want,
                   const json_t *inferences, struct tec_observer *o)
{
    static float state[4], state_norm[4];
    static uint8_t picture[64 * 64 * 3];
    for (size_t i = 0; i < json_array_size(inferences); i++) {
        const json_t *bins = json_object_get(json_array_get(inferences, i), "state_bins");
        char key[80];
        snprintf(key, sizeof key, "%s.state", name);
        REQUIRE(tec_tensors_read_f32(in, tec_tensors_find(in, key), i * 4, state, 4, &err) ==
                TEC_OK);
        snprintf(key, sizeof key, "%s.state_norm", name);
        REQUIRE(tec_tensors_read_f32(want, tec_tensors_find(want, key), i * 4, state_norm, 4,
                                     &err) == TEC_OK);
        s.n = 0;
        add("observation/state", TEC_VALUE_F32, 1, 4, 0, state, sizeof state);
        add("observation/image", TEC_VALUE_U8, 3, 64, 64, picture, sizeof picture);
        add("observation/wrist_image", TEC_VALUE_U8, 3, 64, 64, picture, sizeof picture);
        add("prompt", TEC_VALUE_TEXT, 0, 0, 0, "open it", 7);
        REQUIRE(tec_robot_observe(o, s.values, s.n, &s.seen, &err) == TEC_OK);
        CHECK(memcmp(s.state, state_norm, sizeof state_norm) == 0);
        REQUIRE(s.seen.n_bins == 4);
        for (size_t j = 0; j < 4; j++)
            CHECK_INT(s.bins[j], ==, json_integer_value(json_array_get(bins, j)));
    }
}

/* A robot of one camera whose actions are token ids. */
#define IDS                                                         \
    "'name':'ids','cameras':[{'slot':'a','input':'images/front'}]," \
    "'actions':{'size':2,'decode':[{'op':'bins'%s}]},'norm':{'mode':'quantile'}%s"

static enum tec_status open_ids(const char *numbers, const char *more,
                                struct tec_observer_tokens tokens)
{
    static const bool mask[] = {true, false};
    char text[400];
    memset(&s, 0, sizeof s);
    tec_arena_init(&s.arena, &heap);
    snprintf(text, sizeof text, "{" IDS "}", numbers, more);
    json_t *base = json(text);
    enum tec_status status = tec_robot_parse(&s.robot, base, NULL, "r.lua", &s.arena, &err);
    json_decref(base);
    REQUIRE(status == TEC_OK);
    s.needs = (struct tec_observer_needs){
        .n_slots = 1,
        .image_h = SIDE,
        .image_w = SIDE,
        .action_width = 2,
        .tokens = tokens,
        .text_optional = true,
        .text_max = TEXT,
        .action_norm = {TEC_NORM_QUANTILE, TEC_NORM_DATASET, 0.0, 2, .q01 = a01, .q99 = q99}};
    s.needs.action_norm.mask = mask;
    TEC_TRY(tec_robot_take(s.robot, NULL, &err));
    return tec_observer_create(&s.observer, s.robot, &s.needs, &heap, &err);
}

TEST(ids_become_actions)
{
    const struct tec_observer_tokens tokens = {100, 11, 2};
    double out[4];
    int at = -1;
    REQUIRE(open_ids("", "", tokens) == TEC_OK);
    const float good[] = {94, 99}, outside[] = {94, 50}, last[] = {94, 2}, ended[] = {2, 94};
    CHECK(tec_robot_judge_ids(s.observer, good, &at) == TEC_IDS_GOOD && at == -1);
    CHECK_INT(tec_robot_act(s.observer, good, 1, NULL, out, NULL), ==, 1);
    CHECK(fabs(out[0] - (0.5 * 1.1 * 3.0 - 1.0)) < 1e-12); /* q01 -1, q99 2; bin 5 is 0.1 */
    CHECK(fabs(out[1] - -0.9) < 1e-12);                    /* bin 0, not normalised */
    CHECK(tec_robot_judge_ids(s.observer, outside, &at) == TEC_IDS_OUTSIDE && at == 1);
    CHECK_INT(tec_robot_act(s.observer, outside, 1, NULL, out, NULL), ==, 1);
    CHECK(fabs(out[1] - 0.9) < 1e-12);
    CHECK(tec_robot_judge_ids(s.observer, last, &at) == TEC_IDS_OUTSIDE && at == 1);
    CHECK(tec_robot_judge_ids(s.observer, ended, &at) == TEC_IDS_ENDED && at == 0);
    CHECK_INT(tec_robot_act(s.observer, ended, 1, NULL, out, NULL), ==, 0);
    const float nan[] = {NAN, 94};
    CHECK_INT(tec_robot_act(s.observer, nan, 1, NULL, out, NULL), ==, 0);
    CHECK(tec_robot_check_undo(s.robot, &err) == TEC_MALFORMED);
    CHECK_SAYS("robot ids: step 1 of its decoding, bins, cannot be undone");
    close_session();
}

TEST(ids_fit_the_model)
{
    const struct tec_observer_tokens none = {0}, tokens = {100, 11, -1}, odd = {100, 101, -1};
    CHECK(open_ids("", "", none) == TEC_MALFORMED);
    CHECK_SAYS(
        "robot ids: actions.decode: bins are for token ids, but the model's actions are none");
    close_session();
    CHECK(open_ids(",'vocabulary':90,'bins':11", "", tokens) == TEC_MALFORMED);
    CHECK_SAYS("11 bins of a vocabulary of 90; the model has 11 of 100");
    close_session();
    CHECK(open_ids("", "", odd) == TEC_MALFORMED);
    CHECK_SAYS("bins = 101 of vocabulary = 100");
    close_session();
    CHECK(open_ids(",'vocabulary':100,'bins':11", "", tokens) == TEC_OK);
    close_session();
    CHECK(open_ids(",'vocabulary':100,'bins':11", "", none) == TEC_OK); /* a model not known */
    const float text[] = {2, 94};
    CHECK(tec_robot_judge_ids(s.observer, text, NULL) == TEC_IDS_OUTSIDE); /* and no end either */
    close_session();
}

/* Statistics of another dataset have another length; those of assets may be longer. */
TEST(datasets_fit_exactly)
{
    struct tec_norm norm = {TEC_NORM_QUANTILE, TEC_NORM_DATASET, 0.0, 4, .q01 = q01, .q99 = q99};
    REQUIRE(open_ids("", "", (struct tec_observer_tokens){100, 11, 2}) == TEC_OK);
    CHECK(tec_robot_check_norm(s.robot, &norm, "actions", &err) == TEC_MALFORMED);
    CHECK_SAYS("the statistics of the actions have 4 entries, robot ids has 2; those of another");
    norm.convention = TEC_NORM_OPENPI;
    CHECK(tec_robot_check_norm(s.robot, &norm, "actions", &err) == TEC_OK);
    close_session();
}

/* Given 2 x 4 white pixels, a letterbox paints two rows; a crop and a stretch paint none. */
TEST(pictures_are_reshaped)
{
    static const struct {
        const char *resize;
        int painted;
    } ways[] = {{",'resize':'resize-naive'", 0},
                {",'resize':'checkpoint'", 0},
                {",'resize':'resize-crop'", 0},
                {",'resize':'letterbox','fill':[7,8,9]", 2}};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        REQUIRE(open_ids("", ways[i].resize, (struct tec_observer_tokens){100, 11, 2}) == TEC_OK);
        give_buffers();
        memset(s.front, 255, sizeof s.front);
        add("images/front", TEC_VALUE_U8, 3, 2, 4, s.front, (size_t)2 * 4 * 3);
        REQUIRE(tec_robot_observe(s.observer, s.values, s.n, &s.seen, &err) == TEC_OK);
        int painted = 0;
        for (int row = 0; row < SIDE; row++)
            painted += s.pixels[0][row * SIDE * 3] != 255;
        CHECK_INT(painted, ==, ways[i].painted);
        if (painted)
            CHECK(s.pixels[0][0] < 128 && s.pixels[0][2] != s.pixels[0][0]);
        int64_t live = heap.live;
        REQUIRE(tec_robot_observe(s.observer, s.values, s.n, &s.seen, &err) == TEC_OK);
        CHECK_INT(heap.live, ==, live);
        close_session();
    }
    REQUIRE(open_ids("", ",'resize':'resize-crop'", (struct tec_observer_tokens){100, 11, 2}) ==
            TEC_OK);
    give_buffers();
    static uint8_t thin[3 * 60000];
    add("images/front", TEC_VALUE_U8, 3, 1, 60000, thin, sizeof thin);
    CHECK(tec_robot_observe(s.observer, s.values, s.n, &s.seen, &err) == TEC_INVALID);
    CHECK_SAYS("images/front: resize from 60000 x 1");
    s.n = 0;
    add("images/front", TEC_VALUE_U8, 3, 2, 4, s.front, (size_t)2 * 4 * 3);
    CHECK(tec_robot_observe(s.observer, s.values, s.n, &s.seen, &err) == TEC_OK);
    close_session();
}

TEST(pictures_of_the_checkpoint_have_the_models_size)
{
    REQUIRE(open_ids("", "", (struct tec_observer_tokens){100, 11, 2}) == TEC_OK);
    struct tec_robot other = *s.robot;
    struct tec_observer *o = NULL;
    other.picture_h = SIDE;
    other.picture_w = SIDE + 1;
    CHECK(tec_observer_create(&o, &other, &s.needs, &heap, &err) == TEC_MALFORMED);
    CHECK_SAYS("the checkpoint's pictures are 5 x 4, the model takes 4 x 4");
    close_session();
}

TEST(golden_demo_states)
{
    static const char demo[] = "tests/golden/demo/episodes";
    static uint8_t pixels[SLOTS][64 * 64 * 3];
    struct tec_checkpoint *c = NULL;
    struct tec_tensors *in = NULL, *want = NULL;
    REQUIRE(open_session("{}") == TEC_OK);
    tec_observer_destroy(s.observer);
    s.observer = NULL;
    REQUIRE(tec_checkpoint_open(&c, "tests/golden/demo/episodes/checkpoint", &heap, &err) ==
            TEC_OK);
    REQUIRE(tec_robot_load(&s.robot, "pipelines/robots/metaworld.lua", "pipelines/robots", NULL,
                           NULL, c, &s.arena, &err) == TEC_OK);
    struct tec_observer_needs n = {.n_slots = 3,
                                   .image_h = 64,
                                   .image_w = 64,
                                   .state_width = 4,
                                   .action_width = 4,
                                   .text_max = TEXT};
    REQUIRE(tec_robot_norms(s.robot, c, NULL, &n.state_norm, &n.action_norm, &s.arena, &err) ==
            TEC_OK);
    REQUIRE(tec_observer_create(&s.observer, s.robot, &n, &heap, &err) == TEC_OK);
    struct tec_robot other = *s.robot;
    other.asset = "other";
    CHECK(tec_robot_norms(&other, c, NULL, &n.state_norm, &n.action_norm, &s.arena, &err) ==
          TEC_NOT_FOUND);
    for (int i = 0; i < SLOTS; i++)
        s.pictures[i] = pixels[i];
    json_error_t where;
    json_t *judge = json_load_file("tests/golden/demo/episodes/case.json", 0, &where);
    REQUIRE(tec_tensors_open(&in, tec_arena_printf(&s.arena, "%s/inputs.safetensors", demo), &heap,
                             &err) == TEC_OK);
    REQUIRE(tec_tensors_open(&want, tec_arena_printf(&s.arena, "%s/expected.safetensors", demo),
                             &heap, &err) == TEC_OK);
    size_t i;
    json_t *episode;
    json_array_foreach(json_object_get(judge, "episodes"), i, episode)
        replay(json_string_value(json_object_get(episode, "key")), in, want,
               json_object_get(episode, "inferences"), s.observer);
    CHECK_INT(i, ==, 3);
    json_decref(judge);
    tec_tensors_close(in);
    tec_tensors_close(want);
    tec_checkpoint_close(c);
    close_session();
}

TAP_MAIN
