/* robot.c - tests of robot descriptions: the steps that transform states and actions, the strict
 * parser, and the shipped robots. */
#include "tests/transform.h"

#include "base/lua.h"
#include "graph/transform/robot_fields.h"
#include "graph/transform/transform.h"

#include <dirent.h>
#include <math.h>

static enum tec_status run_row(const char *text, int row, int n_in, double *x, const double *state,
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
        tec_transforms_run(&t, row, x, state, scratch);
    tec_arena_finish(&arena);
    return status;
}

static enum tec_status run_steps(const char *text, int n_in, double *x, const double *state,
                                 int n_state)
{
    return run_row(text, 0, n_in, x, state, n_state);
}

TEST(steps_compute)
{
    double x[4] = {1.0, 2.0, 3.0, 4.0}, half[1] = {2.5};
    CHECK(run_steps("[{'op':'round'}]", 1, half, NULL, 0) == TEC_OK);
    CHECK(half[0] == 2.0); /* ties to even */
    CHECK(run_steps("[{'op':'multiply','at':[2,4],'by':-1}]", 4, x, NULL, 0) == TEC_OK);
    CHECK(x[0] == 1.0 && x[1] == -2.0 && x[2] == 3.0 && x[3] == -4.0);
    CHECK(run_steps("[{'op':'shift','by':0.5},{'op':'round'}]", 4, x, NULL, 0) == TEC_OK);
    CHECK(x[0] == 2.0 && x[1] == -2.0 && x[2] == 4.0 && x[3] == -4.0);
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

TEST(rows_of_a_chunk_have_numbers_of_their_own)
{
    static const char *const steps = "[{'op':'multiply','at':[2,1],'by':[[1,2],[3,4]]},"
                                     "{'op':'unit_to_range','low':0,'high':[[1,1],[2,2],[8,4]]}]";
    const double state[2] = {10.0, 20.0}, want[4][2] = {{2, 1}, {8, 6}, {32, 12}, {32, 12}};
    for (int row = 0; row < 4; row++) { /* the last ones have those of the last list */
        double x[2] = {1.0, 1.0};
        CHECK(run_row(steps, row, 2, x, state, 2) == TEC_OK);
        CHECK(x[0] == want[row][0] && x[1] == want[row][1]);
    }
    double x[2] = {1.0, 2.0};
    CHECK(run_steps("[{'op':'add_state','at':[2,1],'of':[1,2]}]", 2, x, state, 2) == TEC_OK);
    CHECK(x[0] == 21.0 && x[1] == 12.0);
    CHECK(run_steps("[{'op':'add_state','of':1}]", 2, x, state, 2) == TEC_OK);
    CHECK(x[0] == 31.0 && x[1] == 22.0);
    static const struct {
        const char *steps, *says;
    } wrong[] = {
        {"[{'op':'add_state','of':3}]", "entry 3: the state has 2"},
        {"[{'op':'add_state','of':0}]", "'of' is 0; entries are 1 to 2"},
        {"[{'op':'add_state','of':1.5}]", "'of' is 1.5"},
        {"[{'op':'add_state','of':[1]}]", "'of' lists 1 numbers for 2 entries"},
        {"[{'op':'add_state','of':[[1,2]]}]", "of"},
        {"[{'op':'shift','by':[[1,2],[3]]}]", "'by[2]' must list 2 numbers"},
        {"[{'op':'shift','by':[[1,'a']]}]", "'by[1][2]' must be a finite number"},
        {"[{'op':'clamp','low':0,'high':[[1,1],[0,1]]}]", "low = 0 must be less than high = 0"},
        {"[{'op':'linkage','horn':[[1,1],[0,1]],'arm':2}]", "horn and arm must be greater than 0"},
        {"[{'op':'linkage','horn':1,'arm':[[1,1],[2,-2]]}]", "horn and arm must be greater than 0"},
        {"[{'op':'linkage','at':[1,1],'horn':[[1,1]],'arm':2}]", "'at' lists entry 1 twice"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK(run_steps(wrong[i].steps, 2, x, state, 2) == TEC_MALFORMED);
        CHECK_SAYS(wrong[i].says);
    }
    CHECK(run_steps("[{'op':'shift','by':[[1,2]]}]", 2, x, NULL, 0) == TEC_MALFORMED);
}

TEST(steps_sign)
{
    double x[5] = {0.2, -3.0, 0.0, (double)INFINITY, (double)NAN};
    CHECK(run_steps("[{'op':'sign'}]", 5, x, NULL, 0) == TEC_OK);
    CHECK(x[0] == 1.0 && x[1] == -1.0 && x[2] == 0.0 && x[3] == 1.0 && isnan(x[4]));
}

TEST(steps_bins_are_centres)
{
    double x[8] = {31999, 31745, 31744, 31743, 0, 40000, 31998, (double)NAN};
    CHECK(run_steps("[{'op':'bins','vocabulary':32000,'bins':256}]", 8, x, NULL, 0) == TEC_OK);
    CHECK(x[0] == -0.996078431372549 && x[1] == 0.996078431372549);
    CHECK(x[2] == x[1] && x[3] == x[1] && x[4] == x[1] && x[5] == x[0]);
    CHECK(x[6] > x[0] && x[6] < -0.98 && isnan(x[7]));
    double two[3] = {1, 0, 7};
    CHECK(run_steps("[{'op':'bins','vocabulary':2,'bins':2}]", 3, two, NULL, 0) == TEC_OK);
    CHECK(two[0] == 0.0 && two[1] == 0.0 && two[2] == 0.0);
    struct tec_transform step = {.kind = TEC_TRANSFORM_bins, .a = 704, .b = 256};
    CHECK(tec_transform_has_bin(&step, 448) && tec_transform_has_bin(&step, 703));
    CHECK(!tec_transform_has_bin(&step, 447) && !tec_transform_has_bin(&step, 704));
    CHECK(!tec_transform_has_bin(&step, 500.5) && !tec_transform_has_bin(&step, (double)NAN));
    CHECK(run_steps("[{'op':'bins','vocabulary':10}]", 1, x, NULL, 0) == TEC_MALFORMED);
    CHECK_SAYS("bins needs both numbers");
    CHECK(run_steps("[{'op':'bins','vocabulary':10,'bins':11}]", 1, x, NULL, 0) == TEC_MALFORMED);
    CHECK_SAYS("here[1]: bins = 11 of vocabulary = 10");
    CHECK(run_steps("[{'op':'bins','vocabulary':10,'bins':1}]", 1, x, NULL, 0) == TEC_MALFORMED);
    CHECK(run_steps("[{'op':'bins','vocabulary':1e9,'bins':2}]", 1, x, NULL, 0) == TEC_MALFORMED);
    CHECK(run_steps("[{'op':'bins','vocabulary':10.5,'bins':2}]", 1, x, NULL, 0) == TEC_MALFORMED);
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
    CHECK(r->limits.min[0] == -50.0 && r->limits.max[1] == 1.0 && r->rate_hz == 10.0);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

/* The tables of a description that have fields of words. */
static json_t *table_of(json_t *robot, enum tec_robot_table table)
{
    switch (table) {
    case TEC_ROBOT_TABLE_robot:
        return robot;
    case TEC_ROBOT_TABLE_camera:
        return json_array_get(json_object_get(robot, "cameras"), 0);
    case TEC_ROBOT_TABLE_limits:
        return json_object_get(json_object_get(robot, "actions"), "limits");
    case TEC_ROBOT_TABLE_norm:
        return json_object_get(robot, "norm");
    case TEC_ROBOT_TABLE_prompt:
        return json_object_get(robot, "prompt");
    default:
        return NULL;
    }
}

/* Does the parser take this word for the field? It may miss other fields then. */
static bool knows_word(enum tec_robot_table table, const char *name, const char *word, int length,
                       struct tec_arena *arena)
{
    json_t *all = json("{'name':'x','cameras':[{'slot':'s'}],'actions':{'size':1,'limits':{}},"
                       "'norm':{'mode':'none'},'prompt':{}}");
    struct tec_robot *r;
    json_object_set_new(table_of(all, table), name, json_stringn(word, (size_t)length));
    enum tec_status status = tec_robot_parse(&r, all, NULL, "r.lua", arena, &err);
    json_decref(all);
    return status == TEC_OK || !strstr(err.message, "unknown word");
}

/* Each word that the list shows for a field is one that the parser knows, and no other one is.
 * Returns how many it shows. */
static int check_words(enum tec_robot_table table, const char *name, const char *type,
                       struct tec_arena *arena)
{
    int n = 0;
    if (*type == '"')
        CHECK(!knows_word(table, name, "nothing", 7, arena));
    for (; *type == '"'; n++) {
        int length = (int)strcspn(type + 1, "\"");
        CHECK(knows_word(table, name, type + 1, length, arena));
        type += length + 2;
        type += *type == '|';
    }
    return n;
}

TEST(words_of_the_list_are_those_of_the_parser)
{
    struct tec_arena arena;
    int n = 0;
    enum tec_robot_table table = TEC_ROBOT_TABLE_robot;
    tec_arena_init(&arena, &heap);
#define TABLE(id, place, text) table = TEC_ROBOT_TABLE_##id;
#define FIELD(name, type, standard, text) n += check_words(table, name, type, &arena);
#define END
#include "graph/transform/robot_fields.def"
#undef TABLE
#undef FIELD
#undef END
    CHECK_INT(n, ==, 33);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

TEST(robot_says_how_chunks_become_one)
{
    struct tec_arena arena;
    struct tec_robot *r = NULL;
    tec_arena_init(&arena, &heap);
    REQUIRE(parse(&r, "{'name':'x','norm':{'mode':'none'},'actions':{'size':1}}", NULL, &arena) ==
            TEC_OK);
    CHECK(!r->ensembles);
    REQUIRE(parse(&r, "{'name':'x','norm':{'mode':'none'},'actions':{'size':1,'ensemble':-0.5}}",
                  NULL, &arena) == TEC_OK);
    CHECK(r->ensembles && r->ensemble == -0.5);
    CHECK(parse(&r, "{'name':'x','norm':{'mode':'none'},'actions':{'size':1,'ensemble':10}}", NULL,
                &arena) != TEC_OK);
    CHECK_SAYS("ensemble is 10; it must be within +-10");
    CHECK(parse(&r, "{'name':'x','norm':{'mode':'none'},'actions':{'size':1,'ensemble':'a'}}", NULL,
                &arena) != TEC_OK);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

TEST(an_action_has_named_parts)
{
#define PARTS(parts) "{'name':'x','norm':{'mode':'none'},'actions':{'size':3,'outputs':" parts "}}"
    static const struct {
        const char *text, *says;
    } bad[] = {
        {PARTS("[{'name':'arm','size':2}]"), "the parts have 2 columns until here, an action 3"},
        {PARTS("[{'name':'arm','size':2},{'name':'b','size':2}]"), "the parts have 4 columns"},
        {PARTS("[{'name':'arm'}]"), "size"},
        {PARTS("[{'size':3}]"), "name"},
        {PARTS("3"), "outputs"},
    };
    struct tec_arena arena;
    struct tec_robot *r = NULL;
    tec_arena_init(&arena, &heap);
    REQUIRE(parse(&r, PARTS("[{'name':'arm','size':2},{'name':'hand','size':1}]"), NULL, &arena) ==
            TEC_OK);
    CHECK_INT(r->n_outputs, ==, 2);
    CHECK_STR(r->outputs[1].name, "hand");
    CHECK_INT(r->outputs[0].size, ==, 2);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK(parse(&r, bad[i].text, NULL, &arena) != TEC_OK);
        CHECK_SAYS(bad[i].says);
    }
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
#undef PARTS
}

/* State and environment state are features with statistics of their own. */
TEST(a_state_of_two_features_has_the_norms_of_both)
{
    struct tec_arena arena;
    struct tec_robot *r = NULL;
    struct tec_checkpoint *c = NULL;
    struct tec_norm state, actions;
    tec_arena_init(&arena, &heap);
    REQUIRE(tec_checkpoint_open(&c, "tests/golden/act/odd/checkpoint", &heap, &err) == TEC_OK);
    REQUIRE(tec_robot_load(&r, "pipelines/robots/lerobot.lua", "pipelines/robots", NULL, NULL, c,
                           &arena, &err) == TEC_OK);
    CHECK_INT(r->n_state, ==, 8);
    CHECK_STR(tec_robot_feature(r, c, 1), "observation.environment_state");
    CHECK(r->resize == TEC_RESIZE_NONE && r->execute == 5);
    REQUIRE(tec_robot_norms(r, c, NULL, &state, &actions, &arena, &err) == TEC_OK);
    CHECK(state.mode == TEC_NORM_MIN_MAX && state.n == 5 && state.from == 5);
    REQUIRE(state.then != NULL);
    CHECK(state.then->mode == TEC_NORM_MEAN_STD && state.then->n == 3);
    CHECK(tec_robot_check_norm(r, &state, "state", &err) == TEC_OK);
    CHECK(tec_robot_agree(r, c, &arena, &err) == TEC_OK);
    tec_checkpoint_close(c);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

TEST(robot_says_how_pictures_are_reshaped)
{
    static const char *const words[] = {"resize-naive", "letterbox", "resize-crop"};
    struct tec_arena arena;
    struct tec_robot *r = NULL;
    char text[200];
    tec_arena_init(&arena, &heap);
#define REST                                                                                      \
    "'name':'x','actions':{'size':1,'decode':[{'op':'bins'}]},'norm':{'mode':'min_max','eps':1e-" \
    "8}"
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof text, "{" REST ",'resize':'%s'%s}", words[i],
                 i == TEC_RESHAPE_BOX ? ",'fill':[1,2,255]" : "");
        REQUIRE(parse(&r, text, NULL, &arena) == TEC_OK);
        CHECK(r->resize == TEC_RESIZE_RESHAPE && (int)r->reshape == i);
        CHECK(r->fill[2] == (i == TEC_RESHAPE_BOX ? 255 : 0));
        REQUIRE(tec_robot_take(r, NULL, &err) == TEC_OK);
        CHECK(r->resize == TEC_RESIZE_RESHAPE && (int)r->reshape == i);
    }
    REQUIRE(parse(&r, "{" REST ",'resize':'checkpoint'}", NULL, &arena) == TEC_OK);
    CHECK(r->resize == TEC_RESIZE_CHECKPOINT);
    REQUIRE(tec_robot_take(r, NULL, &err) == TEC_OK); /* nothing is known: stretched */
    CHECK(r->resize == TEC_RESIZE_RESHAPE && r->reshape == TEC_RESHAPE_STRETCH && !r->picture_h);
    CHECK(r->norm == TEC_NORM_MIN_MAX && r->norm_eps == 1e-8 && !r->norm_any);
    CHECK(r->decode.n == 1 && r->decode.n_out == 1);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

/* What a checkpoint says of its pictures and its statistics, and what is said when it does not. */
TEST(robot_takes_from_the_checkpoint)
{
    struct tec_arena arena;
    struct tec_robot *r = NULL;
    struct tec_checkpoint *c = NULL;
    struct tec_norm state, actions;
    tec_arena_init(&arena, &heap);
    REQUIRE(tec_checkpoint_open(&c, "tests/golden/openvla/odd/checkpoint", &heap, &err) == TEC_OK);
    REQUIRE(tec_robot_load(&r, "pipelines/robots/openvla_libero.lua", "pipelines/robots", NULL,
                           NULL, c, &arena, &err) == TEC_OK);
    CHECK(r->resize == TEC_RESIZE_RESHAPE && r->picture_h == 70 && r->picture_w == 70);
    REQUIRE(tec_robot_norms(r, c, NULL, &state, &actions, &arena, &err) == TEC_OK);
    CHECK(actions.n == 7 && actions.convention == TEC_NORM_DATASET && actions.mask);
    CHECK(state.mode == TEC_NORM_NONE && !actions.mask[6]);
    CHECK(tec_robot_norms(r, c, "bridge", &state, &actions, &arena, &err) == TEC_NOT_FOUND);
    CHECK_SAYS("dataset_statistics.json: no key 'bridge'; there are odd_set");
    REQUIRE(tec_robot_load(&r, "pipelines/robots/openvla_libero.lua", "pipelines/robots", NULL,
                           "goal", c, &arena, &err) == TEC_OK);
    CHECK(tec_robot_norms(r, c, NULL, &state, &actions, &arena, &err) == TEC_NOT_FOUND);
    CHECK_SAYS("no key 'libero_goal'");
    tec_checkpoint_close(c);
    REQUIRE(tec_checkpoint_open(&c, "tests/golden/pi/pi05_odd/checkpoint", &heap, &err) == TEC_OK);
    CHECK(tec_robot_load(&r, "pipelines/robots/openvla_libero.lua", "pipelines/robots", NULL, NULL,
                         c, &arena, &err) == TEC_NOT_FOUND);
    CHECK_SAYS("no preprocessor_config.json");
    REQUIRE(parse(&r, "{" REST "}", NULL, &arena) == TEC_OK);
    CHECK(tec_robot_norms(r, c, NULL, &state, &actions, &arena, &err) == TEC_MALFORMED);
    CHECK_SAYS("robot x: norm.eps is for statistics by dataset");
    r->norm_eps = 0.0;
    CHECK(tec_robot_norms(r, c, NULL, &state, &actions, &arena, &err) == TEC_MALFORMED);
    CHECK_SAYS("norm.mode = \"min_max\" is for statistics by dataset");
    r->norm_any = true;
    CHECK(tec_robot_norms(r, c, NULL, &state, &actions, &arena, &err) == TEC_MALFORMED);
    CHECK_SAYS("does not say one");
    tec_checkpoint_close(c);
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

static const struct {
    const char *more, *says;
} bad_robots[] = {
    {"'camera':[]", "r.lua: unknown field 'camera'; did you mean 'cameras'?"},
    {"'cameras':[{'slot':'a','inptu':'x'}]", "cameras[1]: unknown field 'inptu'"},
    {"'cameras':[{'input':'x'}]", "'slot' is missing"},
    {"'cameras':[{'slot':'a'},{'slot':'a'}]", "cameras[2]: slot 'a' is filled twice"},
    {"'cameras':[{'slot':'a','input':'x'},{'slot':'b','input':'x'}]", "fills two slots"},
    {"'cameras':[{'slot':'a','missing':'masked'}]", "did you mean 'mask'?"},
    {"'cameras':7", "'cameras' must be a list"},
    {"'resize':'pil'", "unknown word for 'resize'"},
    {"'resize':'leterbox'", "did you mean 'letterbox'?"},
    {"'resize':'letterbox'", "a letterbox needs 'fill'"},
    {"'resize':'letterbox','fill':[1,2]", "'fill' must be 3 whole numbers of 0 to 255"},
    {"'resize':'letterbox','fill':[1,2,256]", "'fill' must be 3 whole numbers of 0 to 255"},
    {"'fill':[1,2,3]", "'fill' is the colour of resize = \"letterbox\" only"},
    {"'actions':{'size':2,'decode':[{'op':'select','at':[1]}]}", "decode makes 1 columns of 2"},
    {"'actions':{'size':2,'decode':[{'op':'add_state'}]}", "add_state is for actions only"},
    {"'norm':{'mode':'quantile','eps':-1}", "eps = -1 must be 0 or more"},
    {"'norm':{'mode':'quantile','eps':1}", "eps = 1 must be 0 or more"},
    {"'state':{'inputs':[{'input':'s','size':0}]}", "'size' must be a whole number"},
    {"'state':{'inputs':[{'input':'s','size':2.5}]}", "'size' must be a whole number"},
    {"'state':{'inputs':[{'input':'','size':2}]}", "not empty"},
    {"'state':{'inputs':[{'input':'s','size':1000},{'input':'t','size':1000}]}", "more than"},
    {"'actions':{'size':2,'limits':{'min':[1]}}", "actions.limits: 'min' lists 1 limits for 2"},
    {"'actions':{'size':2,'limits':{'min':1,'max':[0,2]}}", "min[1] = 1 is above max[1] = 0"},
    {"'actions':{'size':2,'limits':{'max':['1',2]}}", "'max[1]' must be a finite number, or false"},
    {"'actions':{'size':2,'limits':{'max':'1'}}", "'max' must be a number, or a list of 2"},
    {"'actions':{'size':2,'limits':{'max_step':[1,0]}}", "max_step[2] = 0 must be more than 0"},
    {"'actions':{'size':2,'limits':{'on':'clamp'}}", "unknown word for 'on': 'clamp'"},
    {"'actions':{'size':2,'limits':{'low':1}}", "unknown field 'low'"},
    {"'actions':{'size':2,'limits':true}", "actions.limits"},
    {"'actions':{'size':2,'inputs':3}", "its steps give 3 columns, size says 2"},
    {"'actions':{'size':'2'}", "'size' must be a whole number"},
    {"'actions':{}", "'size' is missing"},
    {"'norm':{'mode':'quantiles'}", "did you mean 'quantile'?"},
    {"'norm':{}", "'mode' is missing"},
    {"'prompt':{'state':1}", "'state' must be true or false"},
    {"'prompt':{'state_pad_to':2}", "the state has 4 entries"},
    {"'rate_hz':-1", "must not be negative"},
    {"'metadata':7", "metadata must be an object"},
    {"'state':{},'prompt':{'state':true},'actions':{'size':1}", "has no state"},
};

TEST(robot_is_strict)
{
    struct tec_arena arena;
    struct tec_robot *r = NULL;
    tec_arena_init(&arena, &heap);
    for (size_t i = 0; i < sizeof bad_robots / sizeof bad_robots[0]; i++) {
        /* A variant replaces whole lists, and sections are emptied by naming what they hold. */
        char *braced = NULL;
        json_t *base = json("{" SMALL "}");
        REQUIRE(asprintf(&braced, "{%s}", bad_robots[i].more) > 0);
        json_t *more = json(braced);
        json_object_update(base, more);
        enum tec_status status = tec_robot_parse(&r, base, NULL, "r.lua", &arena, &err);
        if (status != TEC_MALFORMED)
            fprintf(stderr, "# accepted: %s\n", bad_robots[i].more);
        CHECK_INT(status, ==, TEC_MALFORMED);
        CHECK_SAYS(bad_robots[i].says);
        json_decref(more);
        json_decref(base);
        free(braced);
    }
    CHECK(parse(&r, "[]", NULL, &arena) == TEC_MALFORMED);
    CHECK(parse(&r, "{'name':'x'}", NULL, &arena) == TEC_MALFORMED);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

/* Parse every file in pipelines/robots, in every variant. */
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

TEST(metadata_is_kept_as_it_is)
{
    struct tec_arena arena;
    struct tec_robot *r = NULL;
    tec_arena_init(&arena, &heap);
    REQUIRE(parse(&r, "{" SMALL ",'metadata':{'reset_pose':[0,-1.5]}}", NULL, &arena) == TEC_OK);
    CHECK_STR(r->metadata, "{\"reset_pose\":[0,-1.5]}");
    REQUIRE(parse(&r, "{" SMALL ",'metadata':[]}", NULL, &arena) == TEC_OK);
    CHECK(!r->metadata);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

TEST(shipped_robots_parse)
{
    DIR *dir = opendir("pipelines/robots");
    int files = 0;
    REQUIRE(dir);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        size_t n = strlen(e->d_name);
        if (n < 5 || strcmp(e->d_name + n - 4, ".lua") != 0 ||
            strcmp(e->d_name, "lerobot.lua") == 0 || strcmp(e->d_name, "experiment.lua") == 0)
            continue; /* these want a checkpoint */
        CHECK(parse_file(e->d_name) > 0);
        files++;
    }
    closedir(dir);
    CHECK_INT(files, >=, 7);
    CHECK_INT(heap.live, ==, 0);
}

/* A checkpoint of LeRobot's layout that says only what its files say. */
static struct tec_checkpoint says(const char *config, const char *before, const char *after)
{
    return (struct tec_checkpoint){.layout = TEC_LAYOUT_LEROBOT,
                                   .root = "ckpt",
                                   .path = "ckpt",
                                   .config = json(config),
                                   .preprocessor = json(before),
                                   .postprocessor = json(after)};
}

static void forget(struct tec_checkpoint *c)
{
    json_decref(c->config);
    json_decref(c->preprocessor);
    json_decref(c->postprocessor);
}

#define FEATURES(state, actions, more)                                                  \
    "{'input_features':{'observation.state':{'shape':[" state "]}},'output_features':{" \
    "'action':{'shape':[" actions "]}}" more "}"
#define STEP(name, enabled) \
    "{'steps':[{'registry_name':'" name "','config':{'enabled':" enabled "}}]}"

#define BUT_THE_LAST ",'action_names':['arm','Gripper'],'exclude_joints':['gripper']"

TEST(a_robot_that_contradicts_its_checkpoint)
{
    static const struct {
        const char *config, *before, *after, *says;
    } cases[] = {
        {FEATURES("4", "2", ""), "{}", "{}", NULL},
        {FEATURES("4", "2", ",'use_relative_actions':false"),
         STEP("relative_actions_processor", "false"), "{}", NULL},
        {FEATURES("4", "3", ""), "{}", "{}",
         "r.lua: robot small takes 2 columns of the actions, but ckpt/config.json: action has 3"},
        {FEATURES("5", "2", ""), "{}", "{}",
         "r.lua: robot small has a state of 4 entries, but ckpt/config.json: observation.state has "
         "5"},
        {FEATURES("4", "2", ""), STEP("relative_actions_processor", "true" BUT_THE_LAST), "{}",
         "has no add_state, but ckpt/policy_preprocessor.json: relative_actions_processor is "
         "enabled"},
        {FEATURES("4", "2", ""), "{}", STEP("absolute_actions_processor", "true"),
         "ckpt/policy_postprocessor.json: absolute_actions_processor is enabled"},
        {FEATURES("4", "2", ",'use_relative_actions':true"), "{}", "{}",
         "ckpt/config.json: use_relative_actions is true"},
        {"{}", "{'steps':[7,{}]}", "{'steps':7}", NULL},
    };
    struct tec_arena arena;
    struct tec_robot *plain = NULL, *adding = NULL;
    tec_arena_init(&arena, &heap);
    REQUIRE(parse(&adding, "{" SMALL "}", NULL, &arena) == TEC_OK);
    json_t *base = json("{" SMALL "}"), *over = json("{'actions':{'size':2}}");
    json_object_update(base, over);
    REQUIRE(tec_robot_parse(&plain, base, NULL, "r.lua", &arena, &err) == TEC_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tec_checkpoint c = says(cases[i].config, cases[i].before, cases[i].after);
        enum tec_status status = tec_robot_agree(plain, &c, &arena, &err);
        CHECK_INT(status, ==, cases[i].says ? TEC_MALFORMED : TEC_OK);
        if (cases[i].says)
            CHECK_SAYS(cases[i].says);
        if (i > 3)
            CHECK(tec_robot_agree(adding, &c, &arena, &err) == TEC_OK);
        c.layout = TEC_LAYOUT_OPENPI;
        CHECK(tec_robot_agree(plain, &c, &arena, &err) == TEC_OK);
        forget(&c);
    }
    struct tec_checkpoint all =
        says(FEATURES("4", "2", ""), STEP("relative_actions_processor", "true"), "{}");
    CHECK_INT(tec_robot_agree(adding, &all, &arena, &err), ==, TEC_MALFORMED);
    CHECK_SAYS("add_state of robot small leaves out column 2, which is a change of the state");
    forget(&all);
    json_decref(base);
    json_decref(over);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

TAP_MAIN
