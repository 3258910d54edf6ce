/* fronts.c - tests of what a tower's front computes that no shipped model's does: a constant that
 * is added to patches and stands in front of them, too. */
#include "graph/run/launch/launch.h"
#include "tests/described.h"
#include "tests/tap.h"
#include "tests/text_words.h"

#include <string.h>

enum { SIDE = 16, PICTURES = 2, TEXT = 3, CHUNK = 5 * 3, PIXELS = SIDE * SIDE * 3 };

static struct tec_heap heap;
static struct tec_error err;

/* A model whose tower's pixels x go through `front`, and what leaves it, x, through `behind`. */
static struct tec_model *model_of(const char *front, const char *behind)
{
    struct tec_model *model = NULL;
    if (described(
            &model, &heap, &err,
            TEXT_WORDS TOWER_WORDS
            "local t = tower { image_size = 16, mean = { 0, 0, 0 }, std = { 1, 1, 1 } }\n"
            "t.enter = function(g, x) %s end\n"
            "return { name = 't', slots = { 'a', 'b' }, ignored = {}, vision = { towers = { t },\n"
            "  project = function(g, x) %s end },\n"
            "  text = text(1, { vocab = 32, scale = 1.0, round_logits = true, mask = 'bidir', bos "
            "= 1, eos = 2, max_tokens = 8, embed = { 'e' }, head = { 'h' } }),\n"
            "  chunk = { horizon = 5, dim = 3 },\n"
            "  action = function(g) return g:linear(g:side_by_side(g:hidden { rows = 15, cols = 8 "
            "}, { rows = 3 }), { weight = 'a', out = 3 }) end }\n",
            front, behind) != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(model);
    return model;
}

static void launch(struct tec_plan *plan, const struct tec_model *model, float chunk[CHUNK])
{
    static uint8_t pixels[PICTURES][PIXELS];
    const int ids[TEXT] = {1, 7, 20};
    for (int p = 0; p < PICTURES; p++)
        for (int i = 0; i < PIXELS; i++)
            pixels[p][i] = (uint8_t)(i * (7 + 4 * p) % 251);
    const struct tec_prefix_input o = {
        .n_pictures = PICTURES, .picture = {pixels[0], pixels[1]}, .n_text = TEXT, .ids = ids};
    const float state[8] = {0};
    REQUIRE(model->n_slots == PICTURES && tec_prefix_check(plan, &o, &err) == TEC_OK);
    struct tec_replay replay = {0};
    const struct tec_action_inputs a = {.state = state};
    tec_launch_prefix(plan, &plan->parts[0], tec_kv_pool_take(&plan->prefixes), &o, &a, &replay);
    tec_launch_actions(plan, &plan->parts[0], chunk);
}

/* The chunk of two pictures, from weights that their names and a seed make. */
static void run(const char *front, const char *behind, float chunk[CHUNK])
{
    struct tec_model *model = model_of(front, behind);
    struct tec_device *device = NULL;
    struct tec_weights *weights = NULL;
    struct tec_plan *plan = NULL;
    const struct tec_device_options d = {.kind = "cpu", .threads = 1, .tier = tec_tier_best()};
    REQUIRE(tec_device_open(&device, &d, &heap, &err) == TEC_OK);
    const struct tec_weights_options w = {
        .model = model, .source = {.seed = 5}, .device = device, .language = true};
    REQUIRE(tec_weights_load(&weights, &w, &heap, &err) == TEC_OK);
    const struct tec_plan_spec spec = {.frame_tokens = PICTURES * model->vision.tokens + TEXT +
                                                       tec_head_rows(model),
                                       .text_tokens = TEXT,
                                       .pictures = PICTURES,
                                       .n_actions = 1,
                                       .actions = {{.steps = 1}}};
    const struct tec_plan_inputs inputs = {
        .spec = &spec, .model = model, .weights = weights, .source = {.seed = 5}, .device = device};
    REQUIRE(tec_plan_create(&plan, &inputs, &heap, &err) == TEC_OK);
    launch(plan, model, chunk);
    tec_plan_destroy(plan);
    tec_weights_close(weights);
    tec_device_close(device);
    tec_model_close(model);
    CHECK_INT(heap.live, ==, 0);
}

static void same(const char *front, const char *other_front, const char *behind,
                 const char *other_behind)
{
    float a[CHUNK], b[CHUNK];
    run(front, behind, a);
    run(other_front, other_behind, b);
    CHECK(memcmp(a, b, sizeof a) == 0);
}

#define PATCHES "local p = g:conv(x, { weight = 'p', out = 8, side = 4, stride = 4 }) "
#define ROWS "g:tensor { tensor = 'c', rows = 16, cols = 8 }"

TEST(a_constant_may_be_added_to_patches_and_stand_in_front_of_them)
{
    static const char behind[] =
        "return g:linear(g:take(x, { first = 16, rows = 16 }), { weight = 'pr', out = 8 })";
    same(PATCHES "local c = " ROWS " return g:concat { c, g:add(p, c) }",
         PATCHES "return g:concat { " ROWS ", g:add(p, " ROWS ") }", behind, behind);
}

TAP_MAIN
