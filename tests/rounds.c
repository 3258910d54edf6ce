/* rounds.c - which products of a plan read activations as one bf16 term and which may as two, by
 * what a plan rounds: arguments as they were recorded, for a model of real size on a measuring
 * device. */
#include "graph/compile/plan.h"
#include "kernels/device_kind.h"
#include "tests/tap.h"

#include <string.h>

static struct tec_heap heap;
static struct tec_error err;

/* Inputs of a product of pi0.5's towers that comes from a norm or attention. */
enum { TOWER_WIDTH = 1152 };

/* Products with bf16 weights: all; those of queries, keys and values; others in towers of what no
 * activation wrote; all others. Of each, how many read one term, and two. */
enum { ALL, KEYS, TOWER, OTHERS, KINDS };
struct seen {
    int n[KINDS], one[KINDS], two[KINDS];
};

static void add(struct seen *s, int kind, const struct tec_gemm_args *a)
{
    s->n[kind]++;
    s->one[kind] += a->rounded;
    s->two[kind] += !a->rounded && a->terms == 2;
}

static void look(struct seen *s, const struct tec_capture_step *c)
{
    const struct tec_gemm_args *a = c->args;
    bool keys = strcmp(c->label, "qkv") == 0 || strcmp(c->label, "kv") == 0;
    add(s, ALL, a);
    add(s, keys ? KEYS : a->k == TOWER_WIDTH ? TOWER : OTHERS, a);
}

/* The products of a frame. */
static struct seen record(bool bf16, enum tec_round round)
{
    struct seen seen = {{0}, {0}, {0}};
    struct tec_device *device = NULL;
    struct tec_model *model = NULL;
    struct tec_weights *weights = NULL;
    struct tec_plan *plan = NULL;
    const struct tec_model_choice choice = {
        .root = "pipelines/models", .arch = "pi05", .size = "full"};
    const struct tec_device_options d = {
        .kind = "cpu", .threads = 1, .tier = tec_tier_best(), .measure = true};
    REQUIRE(tec_device_open(&device, &d, &heap, &err) == TEC_OK);
    REQUIRE(tec_model_open(&model, &choice, &heap, &err) == TEC_OK);
    const struct tec_weights_options w = {
        .model = model, .source = {.dry = true}, .device = device, .bf16 = bf16, .language = true};
    REQUIRE(tec_weights_load(&weights, &w, &heap, &err) == TEC_OK);
    const struct tec_plan_spec spec = {.frame_tokens = tec_vision_rows(&model->vision) + 9,
                                       .text_tokens = 9,
                                       .pictures = 1,
                                       .n_actions = 1,
                                       .actions = {{.steps = 1}},
                                       .round = round};
    const struct tec_plan_inputs inputs = {.spec = &spec,
                                           .model = model,
                                           .weights = weights,
                                           .source = {.dry = true},
                                           .device = device};
    REQUIRE(tec_plan_create(&plan, &inputs, &heap, &err) == TEC_OK);
    const struct tec_capture *capture = plan->parts[0].capture;
    for (int i = 0; i < capture->n; i++)
        if (capture->commands[i].kind == TEC_RUN &&
            capture->commands[i].kernel == TEC_KERNEL_gemm_bf16)
            look(&seen, &capture->commands[i]);
    tec_plan_destroy(plan);
    tec_weights_close(weights);
    tec_model_close(model);
    tec_device_close(device);
    CHECK_INT(heap.live, ==, 0);
    return seen;
}

TEST(unasked_all_is_read)
{
    const struct seen s = record(true, TEC_ROUND_NONE);
    CHECK_INT(s.n[KEYS], >, 0);
    CHECK_INT(s.n[TOWER], >, 0);
    CHECK_INT(s.n[OTHERS], >, 0);
    CHECK_INT(s.one[ALL], ==, 0);
    CHECK_INT(s.two[ALL], ==, 0);
}

TEST(two_terms_of_all)
{
    const struct seen s = record(true, TEC_ROUND_BF16X2);
    CHECK_INT(s.two[ALL], ==, s.n[ALL]);
}

TEST(one_term_of_all)
{
    const struct seen s = record(true, TEC_ROUND_BF16);
    CHECK_INT(s.one[ALL], ==, s.n[ALL]);
}

TEST(mixed_spares_what_keys_are_made_of_and_most_of_a_tower)
{
    const struct seen s = record(true, TEC_ROUND_MIXED);
    CHECK_INT(s.two[KEYS], ==, s.n[KEYS]);
    CHECK_INT(s.two[TOWER], ==, s.n[TOWER]);
    CHECK_INT(s.one[OTHERS], ==, s.n[OTHERS]);
}

TEST(an_f32_plan_has_no_such_products)
{
    CHECK_INT(record(false, TEC_ROUND_MIXED).n[ALL], ==, 0);
}

TAP_MAIN
