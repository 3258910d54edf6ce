/* attends.c - which attentions of a plan a kernel may read as bf16 terms (CUDA), and which it may
 * multiply in whole numbers (AVX-512): arguments as they were recorded, for models of real size on
 * a measuring device. */
#include "graph/compile/plan.h"
#include "kernels/device_kind.h"
#include "kernels/grids.h"
#include "tests/tap.h"

#include <jansson.h>
#include <string.h>

#define TOWER "vlm_with_expert.vlm.model."

static struct tec_heap heap;
static struct tec_error err;

/* Attentions over memory of one dtype: all, those that may be read as terms, those of them that an
 * H100 and an Orin do so, and those that may be in whole numbers. */
struct seen {
    int n, terms, by_terms, whole;
};

static bool is(const char *what, struct seen got, struct seen want)
{
    bool same = memcmp(&got, &want, sizeof got) == 0;
    if (!same)
        fprintf(stderr,
                "# %s: %d attentions, %d terms, %d by terms, %d whole; want %d, %d, %d, %d\n", what,
                got.n, got.terms, got.by_terms, got.whole, want.n, want.terms, want.by_terms,
                want.whole);
    return same;
}

static void count_terms(void *user, const struct tec_grid *grid)
{
    *(int *)user += grid->terms == 2;
}

static void look(const struct tec_capture_step *c, struct seen *seen)
{
    static const struct tec_cuda_facts h100 = {90, 132, true, TEC_CUDA_PARTIALS, TEC_CUDA_TERMS,
                                               0,  0};
    static const struct tec_cuda_facts orin = {87, 16, false, TEC_CUDA_PARTIALS, TEC_CUDA_TERMS,
                                               0,  0};
    const struct tec_attention_args *a = c->args;
    int on = 0;
    tec_grids_of(c->kernel, a, &h100, count_terms, &on);
    tec_grids_of(c->kernel, a, &orin, count_terms, &on);
    seen->n++;
    seen->terms += a->terms == 2;
    seen->by_terms += on == 2;
    seen->whole += a->whole != 0;
    CHECK(a->terms == 0 || a->terms == 2);
    CHECK(on == 0 || on == 2);
}

/* What the frame of a plan records: attentions over float32 memory, then over bf16. `given`: of the
 * description, or NULL; taken. */
static void record_given(const char *arch, const char *size, bool bf16, enum tec_round round,
                         json_t *given, struct seen seen[2], int *towers)
{
    struct tec_device *device = NULL;
    struct tec_model *model = NULL;
    struct tec_weights *weights = NULL;
    struct tec_plan *plan = NULL;
    const struct tec_model_choice choice = {
        .root = "pipelines/models", .arch = arch, .size = size, .overrides = given};
    const struct tec_device_options d = {
        .kind = tap.device, .threads = 1, .tier = tec_tier_best(), .measure = true};
    REQUIRE(tec_device_open(&device, &d, &heap, &err) == TEC_OK);
    REQUIRE(tec_model_open(&model, &choice, &heap, &err) == TEC_OK);
    json_decref(given);
    const struct tec_weights_options w = {
        .model = model, .source = {.dry = true}, .device = device, .bf16 = bf16, .language = true};
    REQUIRE(tec_weights_load(&weights, &w, &heap, &err) == TEC_OK);
    const struct tec_plan_spec spec = {.frame_tokens = tec_vision_rows(&model->vision) + 9 +
                                                       tec_head_rows(model),
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
    memset(seen, 0, 2 * sizeof *seen);
    const struct tec_capture *capture = plan->parts[0].capture;
    for (int i = 0; i < capture->n; i++) {
        const struct tec_capture_step *c = &capture->commands[i];
        if (c->kind == TEC_RUN && c->kernel == TEC_KERNEL_attention_f32)
            look(c, &seen[0]);
        if (c->kind == TEC_RUN && c->kernel == TEC_KERNEL_attention_bf16)
            look(c, &seen[1]);
    }
    *towers = model->vision.towers[0].stack.layers;
    tec_plan_destroy(plan);
    tec_weights_close(weights);
    tec_model_close(model);
    tec_device_close(device);
    CHECK_INT(heap.live, ==, 0);
}

static void record(const char *arch, const char *size, bool bf16, enum tec_round round,
                   struct seen seen[2], int *towers)
{
    record_given(arch, size, bf16, round, NULL, seen, towers);
}

/* Keys of a tower stay float32 in a bf16 plan; those of the text and the actions do not. */
TEST(towers_of_a_bf16_plan_are_read_as_terms)
{
    struct seen seen[2];
    int n;
    record("pi05", "full", true, TEC_ROUND_NONE, seen, &n);
    CHECK(is("towers", seen[0], (struct seen){n, n, n, 0}));
    CHECK_INT(seen[1].n, >, 0);
    CHECK(is("others", seen[1], (struct seen){seen[1].n, 0, 0, 0}));
}

TEST(where_activations_are_rounded_towers_may_be_in_whole_numbers)
{
    struct seen seen[2];
    int n;
    record("pi05", "full", true, TEC_ROUND_BF16, seen, &n);
    CHECK(is("towers", seen[0], (struct seen){n, n, n, n}));
    CHECK(is("others", seen[1], (struct seen){seen[1].n, 0, 0, 0}));
}

TEST(an_f32_plan_has_neither)
{
    struct seen seen[2];
    int n;
    for (int round = 0; round < 2; round++) {
        record("pi05", "full", false, round ? TEC_ROUND_BF16 : TEC_ROUND_NONE, seen, &n);
        CHECK_INT(seen[0].n, >, n);
        CHECK(is("all", seen[0], (struct seen){seen[0].n, 0, 0, 0}));
        CHECK_INT(seen[1].n, ==, 0);
    }
}

/* 16 patches: too few queries for what whole numbers cost to prepare. */
TEST(a_tower_of_few_patches_is_never_in_whole_numbers)
{
    struct seen seen[2];
    int n;
    record("pi05", "tiny", true, TEC_ROUND_BF16, seen, &n);
    CHECK(is("towers", seen[0], (struct seen){n, n, n, 0}));
}

/* SmolVLA with a tower that was stored in float32 beside a text in bfloat16: the plan keeps it so.
 */
TEST(a_tower_in_float32_has_neither)
{
    struct seen seen[2];
    int n;
    json_t *given = json_pack("{s:{s:s,s:s}}", "dtypes", TOWER "vision_model.post_layernorm.weight",
                              "F32", TOWER "text_model.norm.weight", "BF16");
    record_given("smolvla", "full", true, TEC_ROUND_BF16, given, seen, &n);
    int all = seen[0].n, others = all - n;
    CHECK_INT(others, >, 0);
    CHECK(is("tower in float32", seen[0], (struct seen){all, others, others, 0}));
    record("smolvla", "full", true, TEC_ROUND_BF16, seen, &n);
    CHECK(is("tower in bf16", seen[0], (struct seen){all, all, all, n}));
}

/* Rows of a flow that attend among each other have float32 keys for a moment: terms, but they are
 * no tower's rows. */
TEST(what_else_has_float32_keys_is_read_as_terms_and_never_in_whole_numbers)
{
    struct seen seen[2];
    int n;
    record("groot_n15", "full", true, TEC_ROUND_BF16, seen, &n);
    CHECK_INT(seen[0].n, >, n);
    CHECK(is("all", seen[0], (struct seen){seen[0].n, seen[0].n, seen[0].n, n}));
}

TAP_MAIN
