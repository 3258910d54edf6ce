#include "tests/tap.h"

#include "base/lua.h"
#include "base/store/safetensors.h"
#include "graph/transform/observer.h"
#include "tools/verify/verify.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>

enum { SIDE = 4, PIXELS = SIDE * SIDE * 3, WIDTH = 6, SLOTS = 3, TEXT = 40 };

static struct tec_heap heap;
static struct tec_error err;

#define CHECK_SAYS(text)                                                             \
    do {                                                                             \
        if (!tap_check(strstr(err.message, text) != NULL, text, __FILE__, __LINE__)) \
            fprintf(stderr, "#   message: %s\n", err.message);                       \
    } while (0)

/* JSON with ' for ". */
static json_t *json(const char *text)
{
    char *copy = strdup(text);
    for (char *c = copy; c && *c; c++)
        if (*c == '\'')
            *c = '"';
    json_error_t where;
    json_t *value = copy ? json_loads(copy, JSON_REJECT_DUPLICATES, &where) : NULL;
    free(copy);
    if (!value)
        fprintf(stderr, "# %s: %s\n", text, where.text);
    REQUIRE(value);
    return value;
}

/* ---- steps ---- */

static enum tec_status run_steps(const char *text, int n_in, double *x, const double *state,
                                 int n_state)
{
    struct tec_arena arena;
    struct tec_transforms t;
    double scratch[64];
    tec_arena_init(&arena, &heap);
    json_t *steps = json(text);
    enum tec_status status = tec_transforms_parse(&t, steps, n_in, n_state, "here", &arena, &err);
    json_decref(steps);
    if (status == TEC_OK)
        tec_transforms_run(&t, x, state, scratch);
    tec_arena_finish(&arena);
    return status;
}

TEST(steps_compute)
{
    double x[4] = {1.0, 2.0, 3.0, 4.0};
    CHECK(run_steps("[{'op':'multiply','at':[2,4],'by':-1}]", 4, x, NULL, 0) == TEC_OK);
    CHECK(x[0] == 1.0 && x[1] == -2.0 && x[2] == 3.0 && x[3] == -4.0);
    CHECK(run_steps("[{'op':'shift','by':0.5},{'op':'round'}]", 4, x, NULL, 0) == TEC_OK);
    CHECK(x[0] == 2.0 && x[1] == -2.0 && x[2] == 4.0 && x[3] == -4.0); /* ties to even */
    CHECK(run_steps("[{'op':'clamp','low':-3,'high':3}]", 4, x, NULL, 0) == TEC_OK);
    CHECK(x[2] == 3.0 && x[3] == -3.0);
    double y[3] = {0.0, 0.5, 1.0}, state[3] = {10.0, 20.0, 30.0};
    CHECK(run_steps("[{'op':'unit_to_range','low':2,'high':4}]", 3, y, NULL, 0) == TEC_OK);
    CHECK(y[0] == 2.0 && y[1] == 3.0 && y[2] == 4.0);
    CHECK(run_steps("[{'op':'range_to_unit','low':2,'high':4}]", 3, y, NULL, 0) == TEC_OK);
    CHECK(y[0] == 0.0 && y[1] == 0.5 && y[2] == 1.0);
    CHECK(run_steps("[{'op':'add_state','at':[3,1]}]", 3, y, state, 3) == TEC_OK);
    CHECK(y[0] == 10.0 && y[1] == 0.5 && y[2] == 31.0);
    double z[4] = {1.0, 2.0};
    CHECK(run_steps("[{'op':'select','at':[2,1,2]},{'op':'shift','by':1}]", 2, z, NULL, 0) ==
          TEC_OK);
    CHECK(z[0] == 3.0 && z[1] == 2.0 && z[2] == 3.0);
}

TEST(steps_linkage_is_a_triangle)
{
    /* horn 3, arm 5, opening 4: a right angle at the horn, so sin = 0; clipped beyond reach. */
    double x[3] = {4.0, 100.0, 0.5};
    CHECK(run_steps("[{'op':'linkage','horn':3,'arm':5}]", 3, x, NULL, 0) == TEC_OK);
    CHECK(x[0] == 0.0);
    CHECK(fabs(x[1] - asin(1.0)) < 1e-15);
    CHECK(fabs(x[2] + asin(1.0)) < 1e-15);
}

TEST(steps_are_strict)
{
    double x[3] = {0};
    CHECK(run_steps("[{'op':'multipy','by':1}]", 3, x, NULL, 0) == TEC_MALFORMED);
    CHECK_SAYS("here[1]: unknown word for 'op': 'multipy'; did you mean 'multiply'?");
    CHECK(run_steps("[{'op':'round'},{'op':'multiply','bye':1}]", 3, x, NULL, 0) == TEC_MALFORMED);
    CHECK_SAYS("here[2]: unknown field 'bye'; did you mean 'by'?");
    CHECK(run_steps("[{'op':'multiply'}]", 3, x, NULL, 0) == TEC_MALFORMED);
    CHECK_SAYS("'by' is missing");
    CHECK(run_steps("[{'by':1}]", 3, x, NULL, 0) == TEC_MALFORMED);
    CHECK_SAYS("'op' is missing");
    CHECK(run_steps("[{'op':'round','at':[0]}]", 3, x, NULL, 0) == TEC_MALFORMED);
    CHECK_SAYS("'at[1]' is 0; entries are 1 to 3");
    CHECK(run_steps("[{'op':'round','at':[4]}]", 3, x, NULL, 0) == TEC_MALFORMED);
    CHECK(run_steps("[{'op':'round','at':[1.5]}]", 3, x, NULL, 0) == TEC_MALFORMED);
    CHECK(run_steps("[{'op':'round','at':[1,1]}]", 3, x, NULL, 0) == TEC_MALFORMED);
    CHECK_SAYS("twice");
    CHECK(run_steps("[{'op':'clamp','low':2,'high':1}]", 3, x, NULL, 0) == TEC_MALFORMED);
    CHECK(run_steps("[{'op':'linkage','horn':0,'arm':1}]", 3, x, NULL, 0) == TEC_MALFORMED);
    CHECK(run_steps("[{'op':'add_state'}]", 3, x, NULL, 0) == TEC_MALFORMED);
    CHECK_SAYS("actions only");
    CHECK(run_steps("[{'op':'add_state'}]", 3, x, NULL, 2) == TEC_MALFORMED);
    CHECK(run_steps("[{'op':'select','at':[]}]", 3, x, NULL, 0) == TEC_MALFORMED);
    CHECK(run_steps("[{'op':'select','at':[1]},{'op':'round','at':[2]}]", 3, x, NULL, 0) ==
          TEC_MALFORMED);
    CHECK(run_steps("{'op':'round'}", 3, x, NULL, 0) == TEC_MALFORMED);
    CHECK(run_steps("[7]", 3, x, NULL, 0) == TEC_MALFORMED);
}

/* ---- descriptions ---- */

#define SMALL                                                                              \
    "'name':'small','cameras':[{'slot':'a','input':'images/front'},"                       \
    "{'slot':'b','input':'images/wrist','missing':'mask'},{'slot':'c'}],"                  \
    "'ignore':['images/low'],'resize':'openpi_pil',"                                       \
    "'state':{'inputs':[{'input':'joints','size':3},{'input':'gripper','size':1}],"        \
    "'ops':[{'op':'multiply','at':[2],'by':-1}]},"                                         \
    "'actions':{'size':2,'ops':[{'op':'add_state','at':[1]}],'max_rows':3,'low':[-50,-1]," \
    "'high':[50,1]},'norm':{'mode':'quantile','asset':'x/y'},"                             \
    "'prompt':{'state':true,'default':'wave'},'rate_hz':10,'execute':2"

static enum tec_status parse(struct tec_robot **out, const char *text, const char *variant,
                             struct tec_arena *arena)
{
    json_t *value = json(text);
    enum tec_status status = tec_robot_parse(out, value, variant, "r.lua", arena, &err);
    json_decref(value);
    return status;
}

TEST(robot_parses)
{
    struct tec_arena arena;
    struct tec_robot *r = NULL;
    tec_arena_init(&arena, &heap);
    REQUIRE(parse(&r, "{" SMALL "}", NULL, &arena) == TEC_OK);
    CHECK_STR(r->name, "small");
    CHECK_INT(r->n_cameras, ==, 3);
    CHECK(!r->cameras[0].optional && r->cameras[1].optional && !r->cameras[2].input);
    CHECK_INT(r->n_raw, ==, 4);
    CHECK_INT(r->n_state, ==, 4);
    CHECK_INT(r->n_actions, ==, 2);
    CHECK(r->norm == TEC_NORM_QUANTILE && r->state_in_prompt);
    CHECK_STR(r->asset, "x/y");
    CHECK_STR(r->prompt_input, "prompt");
    CHECK(r->low[0] == -50.0 && r->high[1] == 1.0 && r->rate_hz == 10.0);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

TEST(robot_variants_replace_fields)
{
    const char *text = "{" SMALL ",'variant':'one','variants':{'one':[],"
                       "'two':{'norm':{'mode':'mean_std'},'actions':{'ops':[]},'execute':7}}}";
    struct tec_arena arena;
    struct tec_robot *r = NULL;
    tec_arena_init(&arena, &heap);
    REQUIRE(parse(&r, text, NULL, &arena) == TEC_OK);
    CHECK_STR(r->variant, "one");
    CHECK(r->norm == TEC_NORM_QUANTILE && r->actions.n == 1 && r->execute == 2);
    REQUIRE(parse(&r, text, "two", &arena) == TEC_OK);
    CHECK(r->norm == TEC_NORM_MEAN_STD && r->actions.n == 0 && r->execute == 7);
    CHECK_STR(r->asset, "x/y");
    CHECK_INT(r->max_rows, ==, 3);
    CHECK(parse(&r, text, "tow", &arena) == TEC_NOT_FOUND);
    CHECK_SAYS("r.lua: no variant 'tow'; there is 'two'");
    CHECK(parse(&r, "{" SMALL "}", "two", &arena) == TEC_NOT_FOUND);
    CHECK(parse(&r, "{" SMALL ",'variants':{'one':{'nrm':{}}}}", NULL, &arena) == TEC_MALFORMED);
    CHECK_SAYS("variants.one: unknown field 'nrm'; did you mean 'norm'?");
    CHECK(parse(&r, "{" SMALL ",'variants':{'one':{'name':'x'}}}", NULL, &arena) == TEC_MALFORMED);
    tec_arena_finish(&arena);
}

TEST(robot_is_strict)
{
    static const struct {
        const char *more, *says;
    } bad[] = {
        {"'camera':[]", "r.lua: unknown field 'camera'; did you mean 'cameras'?"},
        {"'cameras':[{'slot':'a','inptu':'x'}]", "cameras[1]: unknown field 'inptu'"},
        {"'cameras':[{'input':'x'}]", "'slot' is missing"},
        {"'cameras':[{'slot':'a'},{'slot':'a'}]", "cameras[2]: slot 'a' is filled twice"},
        {"'cameras':[{'slot':'a','input':'x'},{'slot':'b','input':'x'}]", "fills two slots"},
        {"'cameras':[{'slot':'a','missing':'masked'}]", "did you mean 'mask'?"},
        {"'cameras':7", "'cameras' must be a list"},
        {"'resize':'pil'", "unknown word for 'resize'"},
        {"'state':{'inputs':[{'input':'s','size':0}]}", "'size' must be a whole number"},
        {"'state':{'inputs':[{'input':'s','size':2.5}]}", "'size' must be a whole number"},
        {"'state':{'inputs':[{'input':'','size':2}]}", "not empty"},
        {"'state':{'inputs':[{'input':'s','size':1000},{'input':'t','size':1000}]}", "more than"},
        {"'actions':{'size':2,'low':[1]}", "lists 1 limits for 2 columns"},
        {"'actions':{'size':2,'low':[1,1],'high':[0,2]}", "low[1] = 1 is above high[1] = 0"},
        {"'actions':{'size':2,'inputs':3}", "its steps give 3 columns, size says 2"},
        {"'actions':{'size':'2'}", "'size' must be a whole number"},
        {"'actions':{}", "'size' is missing"},
        {"'norm':{'mode':'quantiles'}", "did you mean 'quantile'?"},
        {"'norm':{}", "'mode' is missing"},
        {"'prompt':{'state':1}", "'state' must be true or false"},
        {"'prompt':{'state_pad_to':2}", "the state has 4 entries"},
        {"'rate_hz':-1", "must not be negative"},
        {"'state':{},'prompt':{'state':true},'actions':{'size':1}", "has no state"},
    };
    struct tec_arena arena;
    struct tec_robot *r = NULL;
    tec_arena_init(&arena, &heap);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        /* A variant replaces whole lists, and sections are emptied by naming what they hold. */
        char *braced = NULL;
        json_t *base = json("{" SMALL "}");
        REQUIRE(asprintf(&braced, "{%s}", bad[i].more) > 0);
        json_t *more = json(braced);
        json_object_update(base, more);
        enum tec_status status = tec_robot_parse(&r, base, NULL, "r.lua", &arena, &err);
        if (status != TEC_MALFORMED)
            fprintf(stderr, "# accepted: %s\n", bad[i].more);
        CHECK_INT(status, ==, TEC_MALFORMED);
        CHECK_SAYS(bad[i].says);
        json_decref(more);
        json_decref(base);
        free(braced);
    }
    CHECK(parse(&r, "[]", NULL, &arena) == TEC_MALFORMED);
    CHECK(parse(&r, "{'name':'x'}", NULL, &arena) == TEC_MALFORMED);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

/* Every file in pipelines/robots, every variant of it. */
static int parse_file(const char *name)
{
    char path[300];
    struct tec_arena arena;
    struct tec_robot *r = NULL;
    json_t *value = NULL;
    int n = 0;
    snprintf(path, sizeof path, "pipelines/robots/%s", name);
    tec_arena_init(&arena, &heap);
    if (tec_lua_read(&value, path, "pipelines/robots", &heap, &err) != TEC_OK) {
        fprintf(stderr, "# %s\n", err.message);
        return 0;
    }
    json_t *variants = json_object_get(value, "variants");
    n += tec_robot_parse(&r, value, NULL, path, &arena, &err) == TEC_OK;
    for (void *it = json_object_iter(variants); it; it = json_object_iter_next(variants, it))
        n += tec_robot_parse(&r, value, json_object_iter_key(it), path, &arena, &err) == TEC_OK;
    if (n != 1 + (int)json_object_size(variants)) {
        fprintf(stderr, "# %s\n", err.message);
        n = 0;
    }
    json_decref(value);
    tec_arena_finish(&arena);
    return n;
}

TEST(shipped_robots_parse)
{
    DIR *dir = opendir("pipelines/robots");
    int files = 0;
    REQUIRE(dir);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        size_t n = strlen(e->d_name);
        if (n < 5 || strcmp(e->d_name + n - 4, ".lua") != 0 ||
            strcmp(e->d_name, "lerobot.lua") == 0)
            continue; /* lerobot.lua wants a checkpoint */
        CHECK(parse_file(e->d_name) > 0);
        files++;
    }
    closedir(dir);
    CHECK_INT(files, >=, 5);
    CHECK_INT(heap.live, ==, 0);
}

/* ---- observations ---- */

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
    int32_t bins[WIDTH];
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
    s.gripper = -INFINITY;
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
    f64[7] = NAN;
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
    CHECK_SAYS("images/wrist: the picture is 8 x 4, the model takes 4 x 4");
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
    CHECK_SAYS("lack q01 or q99");
    n = s.needs;
    n.state_norm.n = 3;
    CHECK(tec_observer_create(&o, s.robot, &n, &heap, &err) == TEC_MALFORMED);
    CHECK_SAYS("have 3 entries, robot small has 4");
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
    int clamped = -1;
    REQUIRE(open_session("{}") == TEC_OK);
    REQUIRE(observe() == TEC_OK);
    CHECK_INT(tec_robot_act(s.observer, actions, 4, s.state_raw, out, &clamped), ==, 3);
    CHECK(out[0] == 1.5 && out[1] == 0.25); /* column 1 counts from the state, 1.0 */
    CHECK(out[2] == 1.0 && out[3] == -1.0);
    CHECK(out[4] == 50.0 && out[5] == 0.0);
    CHECK_INT(clamped, ==, 2);
    actions[4] = NAN;
    CHECK_INT(tec_robot_act(s.observer, actions, 4, s.state_raw, out, &clamped), ==, 1);
    close_session();
}

TEST(bins_of_edges)
{
    static const double x[] = {-1.0,      0.0,      0.9921875, 1.0,   -1.0001,
                               -INFINITY, INFINITY, NAN,       -5e300};
    static const int want[] = {0, 128, 255, 255, -1, -1, 255, 255, -1};
    int32_t bins[9];
    tec_state_bins(x, 9, bins);
    for (int i = 0; i < 9; i++)
        CHECK_INT(bins[i], ==, want[i]);
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

/* ---- golden ---- */

TEST(golden_prepost)
{
    struct tec_arena arena;
    tec_arena_init(&arena, &heap);
    struct tec_verify v = {.dtype = "f32", .heap = &heap, .arena = &arena};
    CHECK(tec_verify_case(&v, "tests/golden/pi/prepost", &err) == TEC_OK);
    CHECK_INT(v.failed, ==, 0);
    CHECK_INT(v.checks, >=, 170);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

TAP_MAIN
