/* recall_pictures.c - prompts of pictures and remembered segments, whatever the model's mask: where
 * all is computed anew the bytes are those of a prefill. Segments in groups with a rule each. */
#include "graph/run/launch/launch.h"
#include "tests/recall_region.h"
#include "tests/told.h"

#include <stdlib.h>
#include <string.h>

enum { SEGMENTS = 6, BEGINNING = 3, QUERY = 5, TOKENS = 64, LAYERS = 16, CAMERAS = 2 };

static uint8_t *pictures[CAMERAS];
static int ids[TOKENS], n_ids, query;
static struct tec_segment_range segments[SEGMENTS];

static void open_model(const char *arch, bool bf16)
{
    const struct tec_device_options d = {.kind = tap.device, .threads = 2, .tier = tec_tier_best()};
    const struct tec_model_choice choice = {
        .root = "pipelines/models", .arch = arch, .size = "tiny"};
    const struct tec_weight_source source = {.seed = 5};
    REQUIRE(went_well(tec_device_open(&device, &d, &heap, &err), &err));
    REQUIRE(tec_model_open(&model, &choice, &heap, &err) == TEC_OK);
    const struct tec_weights_options w = {
        .model = model, .source = source, .device = device, .bf16 = bf16, .language = true};
    REQUIRE(tec_weights_load(&weights, &w, &heap, &err) == TEC_OK);
    const struct tec_plan_spec spec = {.frame_tokens = CAMERAS * model->vision.tokens + TOKENS,
                                       .text_tokens = TOKENS,
                                       .pictures = CAMERAS,
                                       .frame_action = -1,
                                       .segments = SEGMENTS + 1,
                                       .segment_tokens = TOKENS};
    const struct tec_plan_inputs in = {
        .spec = &spec, .model = model, .weights = weights, .source = source, .device = device};
    REQUIRE(went_well(tec_plan_create(&plan, &in, &heap, &err), &err));
    tec_arena_init(&arena, &heap);
    REQUIRE(tec_recall_create(&recall, plan, &arena, &err) == TEC_OK);
    REQUIRE(model->text.stack.layers <= LAYERS && model->vision.n_towers);
    row = (size_t)model->text.stack.kv_heads * (size_t)model->text.stack.head_dim * (bf16 ? 2 : 4);
    size_t size = (size_t)model->vision.image_size * (size_t)model->vision.image_size * 3;
    for (int i = 0; i < CAMERAS; i++) {
        pictures[i] = TEC_NEW(&arena, size, uint8_t);
        REQUIRE(pictures[i] != NULL);
        for (size_t k = 0; k < size; k++)
            pictures[i][k] = (uint8_t)(rand() % 256);
    }
}

/* Pictures, a beginning, segments, a query: places count the rows of the pictures. */
static void make_prompt(int seen)
{
    int rows = seen * model->vision.tokens, at = rows + BEGINNING;
    for (int u = 0; u < SEGMENTS; u++) {
        segments[u].begin = at;
        at = segments[u].end = at + 1 + rand() % 7;
    }
    query = at;
    n_tokens = query + QUERY;
    n_ids = n_tokens - rows;
    for (int t = 0; t < n_ids; t++)
        ids[t] = rand() % model->text.vocab;
}

static unsigned char kept[2][LAYERS][1 << 16];

/* Keys and values that nothing computed: a recall that places them is told from one that does not.
 */
static bool find(void *self, int layer, int segment, const void **k, const void **v)
{
    (void)self, (void)segment;
    *k = kept[0][layer];
    *v = kept[1][layer];
    return true;
}

static const bool fresh_beginning[SEGMENTS + 1] = {[SEGMENTS] = true};
static const double all[LAYERS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
static const double some[LAYERS] = {1, 0.5, 0.34, 0.34, 0.34, 0.34, 0.34, 0.34};

static struct tec_recall_input prompt_in(int region, int seen)
{
    return (struct tec_recall_input){.ids = ids,
                                     .n = n_tokens,
                                     .n_pictures = seen,
                                     .picture = (const uint8_t *const *)pictures,
                                     .segments = segments,
                                     .n_segments = SEGMENTS,
                                     .fresh = fresh_beginning,
                                     .query = query,
                                     .region = region};
}

static const struct tec_recall_source source = {.find = find};

static void same_as_a_prefill(const char *arch, bool bf16)
{
    const struct tec_recall_rule full = {.selection = TEC_SELECTION_full};
    const struct tec_recall_rule keep = {.selection = TEC_SELECTION_keep, .ratios = all};
    open_model(arch, bf16);
    int plain = tec_kv_pool_take(&plan->prefixes);
    for (int seen = 0; seen <= CAMERAS; seen++) {
        make_prompt(seen);
        struct tec_prefix_input o = {.n_pictures = seen, .n_text = n_ids, .ids = ids};
        for (int i = 0; i < seen; i++)
            o.picture[i] = pictures[i];
        struct tec_replay replay = {0};
        tec_launch_prefix(plan, tec_plan_part(plan, TEC_PART_FRAME, 0), plain, &o, NULL, &replay);
        const unsigned char *want = read_region(plain);
        const struct tec_recall_input in = prompt_in(plain, seen);
        REQUIRE(tec_recall_run(&recall, &in, &full, &source, &err) == TEC_OK);
        CHECK(memcmp(want, read_region(plain), region_bytes()) == 0);
        REQUIRE(tec_recall_run(&recall, &in, &keep, &source, &err) == TEC_OK);
        CHECK(memcmp(want, read_region(plain), region_bytes()) == 0);
    }
    tec_kv_pool_drop(&plan->prefixes, plain);
    close_model();
}

TEST(everything_recomputed_is_a_prefill_byte_by_byte)
{
    srand(3);
    same_as_a_prefill("pi05_causal", false);
    same_as_a_prefill("pi05_causal", true);
    same_as_a_prefill("pi05", false); /* all see all */
    same_as_a_prefill("pi05", true);
}

/* Of a rule for all and the same rule for each of two groups the bytes are one where nothing is
 * chosen; a group that is computed whole takes nothing from what the other brings. */
TEST(groups_of_segments_have_rules_of_their_own)
{
    const int ends[] = {2, SEGMENTS};
    const struct tec_recall_rule reuse[] = {{.selection = TEC_SELECTION_reuse},
                                            {.selection = TEC_SELECTION_reuse}};
    const struct tec_recall_rule mixed[] = {{.selection = TEC_SELECTION_full},
                                            {.selection = TEC_SELECTION_keep, .ratios = some}};
    srand(4);
    open_model("pi05_causal", false);
    make_prompt(1);
    int region = tec_kv_pool_take(&plan->prefixes);
    struct tec_recall_input in = prompt_in(region, 1);
    REQUIRE(tec_recall_run(&recall, &in, reuse, &source, &err) == TEC_OK);
    const unsigned char *want = read_region(region);
    in.ends = ends;
    in.n_groups = 2;
    REQUIRE(tec_recall_run(&recall, &in, reuse, &source, &err) == TEC_OK);
    CHECK(memcmp(want, read_region(region), region_bytes()) == 0);
    REQUIRE(tec_recall_run(&recall, &in, mixed, &source, &err) == TEC_OK);
    int first = query - segments[2].begin, others = n_tokens - first;
    CHECK_INT(recall.rows[0], ==, n_tokens);
    CHECK_INT(recall.rows[recall.layers - 1], <, n_tokens);
    CHECK_INT(recall.rows[recall.layers - 1], >, others);
    for (int u = 0; u < SEGMENTS; u++)
        CHECK(recall.scored[u] == (u >= 2));
    tec_kv_pool_drop(&plan->prefixes, region);
    close_model();
}

TAP_MAIN
