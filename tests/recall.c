/* recall.c - prompts of remembered segments, on a small random model: what must be the same bytes
 * is, whatever is computed anew and wherever a kept piece comes from. */
#include "graph/run/recall/recall.h"
#include "graph/run/launch/launch.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>

enum { SEGMENTS = 9, BEGINNING = 4, QUERY = 5, MOST = 96, LAYERS = 16 };

static struct tec_heap heap;
static struct tec_error err;
static struct tec_device *device;
static struct tec_model *model;
static struct tec_weights *weights;
static struct tec_plan *plan;
static struct tec_recall recall;
static struct tec_arena arena;
static int ids[MOST], n_tokens, query;
static struct tec_segment_range segments[SEGMENTS];
static unsigned char *kept_k[LAYERS], *kept_v[LAYERS];
static size_t row;

static void open_model(bool bf16, int threads)
{
    const struct tec_device_options d = {
        .kind = tap.device, .threads = threads, .tier = tec_tier_best()};
    const struct tec_model_choice choice = {
        .root = "pipelines/models", .arch = "qwen2", .size = "tiny"};
    const struct tec_weight_source source = {.seed = 5};
    REQUIRE(tec_device_open(&device, &d, &heap, &err) == TEC_OK);
    REQUIRE(tec_model_open(&model, &choice, &heap, &err) == TEC_OK);
    model->text.scale = 0.1F;
    const struct tec_weights_options w = {
        .model = model, .source = source, .device = device, .bf16 = bf16, .language = true};
    REQUIRE(tec_weights_load(&weights, &w, &heap, &err) == TEC_OK);
    const struct tec_plan_spec spec = {.frame_tokens = MOST,
                                       .text_tokens = MOST,
                                       .request_slots = 2,
                                       .new_tokens = 8,
                                       .n_batches = 1,
                                       .batches = {1},
                                       .max_k = 8,
                                       .segments = SEGMENTS + 1,
                                       .segment_tokens = MOST};
    const struct tec_plan_inputs in = {
        .spec = &spec, .model = model, .weights = weights, .source = source, .device = device};
    REQUIRE(tec_plan_create(&plan, &in, &heap, &err) == TEC_OK);
    tec_arena_init(&arena, &heap);
    REQUIRE(tec_recall_create(&recall, plan, &arena, &err) == TEC_OK);
    REQUIRE(model->text.stack.layers <= LAYERS);
    row = (size_t)model->text.stack.kv_heads * (size_t)model->text.stack.head_dim * (bf16 ? 2 : 4);
}

static void close_model(void)
{
    tec_recall_finish(&recall);
    tec_arena_finish(&arena);
    tec_plan_destroy(plan);
    tec_weights_close(weights);
    tec_model_close(model);
    tec_device_close(device);
}

/* A prompt of segments of 1 to 9 tokens, and each of them kept. */
static void make_prompt(unsigned seed)
{
    int at = BEGINNING;
    srand(seed);
    for (int u = 0; u < SEGMENTS; u++) {
        segments[u].begin = at;
        at = segments[u].end = at + 1 + rand() % 9;
    }
    query = at;
    n_tokens = query + QUERY;
    for (int t = 0; t < n_tokens; t++)
        ids[t] = rand() % model->text.vocab;
    struct tec_remember_text texts[SEGMENTS + 1] = {{ids, BEGINNING}};
    for (int u = 0; u < SEGMENTS; u++)
        texts[u + 1] = (struct tec_remember_text){ids + segments[u].begin,
                                                  segments[u].end - segments[u].begin};
    REQUIRE(tec_remember_run(plan, texts, SEGMENTS + 1, &err) == TEC_OK);
    for (int l = 0; l < model->text.stack.layers; l++) {
        kept_k[l] = TEC_NEW(&arena, (size_t)query * row, unsigned char);
        kept_v[l] = TEC_NEW(&arena, (size_t)query * row, unsigned char);
        REQUIRE(kept_k[l] && kept_v[l]);
        tec_remember_read(plan, 0, query, l, kept_k[l], kept_v[l]);
    }
}

static int lost = -1; /* a segment whose pieces are gone */

static bool find(void *self, int layer, int segment, const void **k, const void **v)
{
    size_t at = segment < SEGMENTS ? (size_t)segments[segment].begin * row : 0;
    (void)self;
    *k = kept_k[layer] + at;
    *v = kept_v[layer] + at;
    return segment != lost;
}

static struct tec_recall_input prompt_in(int region)
{
    return (struct tec_recall_input){.ids = ids,
                                     .n = n_tokens,
                                     .segments = segments,
                                     .n_segments = SEGMENTS,
                                     .query = query,
                                     .region = region};
}

static bool run(const struct tec_recall_rule *rule, int region)
{
    const struct tec_recall_source source = {.find = find};
    const struct tec_recall_input in = prompt_in(region);
    return tec_recall_run(&recall, &in, rule, &source, &err) == TEC_OK;
}

/* All keys and values of the prompt in a region. */
static unsigned char *read_region(int region)
{
    size_t size = (size_t)n_tokens * row, layers = (size_t)model->text.stack.layers;
    unsigned char *all = TEC_NEW(&arena, 2 * size * layers, unsigned char), *to = all;
    REQUIRE(all != NULL);
    for (size_t l = 0; l < layers; l++)
        for (int i = 0; i < 2; i++, to += size) {
            const unsigned char *from = (i ? plan->space.v : plan->space.k)[l];
            tec_device_download(device, TEC_STREAM_MAIN, to,
                                from + (size_t)plan->prefixes.first[region] * row, size);
        }
    return all;
}

static size_t region_bytes(void)
{
    return 2 * (size_t)n_tokens * row * (size_t)model->text.stack.layers;
}

static const double all[LAYERS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
static const double nothing[LAYERS];
static const double some[LAYERS] = {1, 0.7, 0.5, 0.3, 0.3, 0.2, 0.2, 0.2};

static void same_as_a_prefill(bool bf16, int threads)
{
    open_model(bf16, threads);
    for (unsigned seed = 1; seed < 4; seed++) {
        make_prompt(seed);
        const struct tec_prefix_input o = {.n_text = n_tokens, .ids = ids};
        const struct tec_action_inputs none = {.noise = NULL};
        struct tec_replay replay = {0};
        int plain = tec_kv_pool_take(&plan->prefixes), other = tec_kv_pool_take(&plan->prefixes);
        REQUIRE(plain >= 0 && other >= 0);
        tec_launch_prefix(plan, tec_plan_part(plan, TEC_PART_FRAME, 0), plain, &o, &none, &replay);
        const unsigned char *want = read_region(plain);
        const struct tec_recall_rule full = {.selection = TEC_SELECTION_full};
        const struct tec_recall_rule keep = {.selection = TEC_SELECTION_keep, .ratios = all};
        REQUIRE(run(&full, other));
        CHECK(memcmp(want, read_region(other), region_bytes()) == 0);
        REQUIRE(run(&keep, other));
        CHECK(memcmp(want, read_region(other), region_bytes()) == 0);
        tec_kv_pool_drop(&plan->prefixes, plain);
        tec_kv_pool_drop(&plan->prefixes, other);
    }
    close_model();
}

TEST(everything_recomputed_is_a_prefill_byte_by_byte)
{
    same_as_a_prefill(false, 1);
    same_as_a_prefill(true, 1);
    same_as_a_prefill(true, 2);
}

TEST(nothing_recomputed_is_full_reuse)
{
    open_model(true, 1);
    make_prompt(7);
    int a = tec_kv_pool_take(&plan->prefixes), b = tec_kv_pool_take(&plan->prefixes);
    const struct tec_recall_rule reuse = {.selection = TEC_SELECTION_reuse};
    const struct tec_recall_rule keep = {.selection = TEC_SELECTION_keep, .ratios = nothing};
    REQUIRE(run(&reuse, a) && run(&keep, b));
    CHECK(memcmp(read_region(a), read_region(b), region_bytes()) == 0);
    for (int l = 0; l < recall.layers; l++)
        CHECK_INT(recall.rows[l], ==, QUERY);
    close_model();
}

/* Without placing and importance, in a region that holds what is placed. */
TEST(rows_alone_are_the_same_bytes)
{
    open_model(true, 2);
    make_prompt(5);
    int region = tec_kv_pool_take(&plan->prefixes);
    unsigned char sets[LAYERS * SEGMENTS] = {0};
    struct tec_recall_rule keep = {
        .selection = TEC_SELECTION_keep, .scoring = TEC_SCORING_paper, .ratios = some};
    REQUIRE(run(&keep, region));
    const unsigned char *want = read_region(region);
    for (int l = 0; l < recall.layers; l++)
        memcpy(sets + l * SEGMENTS, recall.sets + l * (recall.max_segments + 1), SEGMENTS);
    keep.forced = sets;
    keep.bare = true;
    lost = 0; /* a kept piece is not asked for */
    REQUIRE(run(&keep, region));
    lost = -1;
    CHECK(memcmp(want, read_region(region), region_bytes()) == 0);
    keep.forced = NULL;
    CHECK(!run(&keep, region));
    close_model();
}

/* Forced to the sets that were chosen, the same bytes; and as many lanes as one likes. */
TEST(what_is_chosen_does_not_depend_on_lanes)
{
    const unsigned char *first = NULL;
    unsigned char *copy = NULL;
    size_t size = 0;
    for (int threads = 1; threads <= 3; threads++) {
        open_model(true, threads);
        make_prompt(11);
        int region = tec_kv_pool_take(&plan->prefixes);
        const struct tec_recall_rule keep = {
            .selection = TEC_SELECTION_keep, .scoring = TEC_SCORING_lift, .ratios = some};
        REQUIRE(run(&keep, region));
        first = read_region(region);
        if (!copy) {
            size = region_bytes();
            copy = malloc(size);
            REQUIRE(copy != NULL);
            memcpy(copy, first, size);
        }
        CHECK(memcmp(copy, first, size) == 0);
        for (int l = 1; l < recall.layers; l++)
            CHECK(recall.rows[l] <= recall.rows[l - 1]);
        close_model();
    }
    free(copy);
}

TEST(what_is_wrong_is_said_and_the_next_prompt_runs)
{
    open_model(true, 1);
    make_prompt(3);
    int region = tec_kv_pool_take(&plan->prefixes);
    const struct tec_recall_rule keep = {.selection = TEC_SELECTION_keep, .ratios = some};
    const struct tec_recall_source source = {.find = find};
    lost = 4;
    CHECK(!run(&keep, region));
    CHECK(strstr(err.message, "segment 4 has no kept keys at layer") != NULL);
    lost = -1;
    struct tec_recall_input in = prompt_in(region);
    in.query++;
    CHECK_INT(tec_recall_run(&recall, &in, &keep, &source, &err), ==, TEC_INVALID);
    in = prompt_in(region);
    in.n = MOST + 1;
    CHECK_INT(tec_recall_run(&recall, &in, &keep, &source, &err), ==, TEC_INVALID);
    int old = ids[5];
    ids[5] = model->text.vocab;
    CHECK(!run(&keep, region));
    CHECK(strstr(err.message, "token 6 is") != NULL);
    ids[5] = old;
    const double wild[LAYERS] = {1, 1.5};
    const struct tec_recall_rule bad = {.selection = TEC_SELECTION_keep, .ratios = wild};
    CHECK(!run(&bad, region));
    const struct tec_remember_text long_text = {ids, MOST + 1};
    CHECK_INT(tec_remember_run(plan, &long_text, 1, &err), ==, TEC_INVALID);
    CHECK(run(&keep, region));
    close_model();
}

/* Every row spreads its weight evenly over what it sees: no segment matters more than another. */
TEST(even_attention_prefers_early_segments_under_paper_alone)
{
    enum { N = 6, EACH = 4, TOKENS = 2 + N * EACH + 3 };
    struct tec_segment_range place[N];
    struct tec_importance im;
    int ends[N * TEC_SEGMENT_RANGES], token[TOKENS];
    static float mass[TOKENS][N * TEC_SEGMENT_RANGES];
    bool live[N];
    tec_arena_init(&arena, &heap);
    for (int u = 0; u < N; u++) {
        place[u] = (struct tec_segment_range){2 + u * EACH, 2 + (u + 1) * EACH};
        live[u] = true;
    }
    tec_importance_ranges(place, N, ends);
    for (int t = 0; t < TOKENS; t++) {
        token[t] = t;
        for (int k = 0; k <= t; k++)
            for (int r = 0; r < N * TEC_SEGMENT_RANGES; r++)
                if (k < ends[r] && k >= (r ? ends[r - 1] : 0))
                    mass[t][r] += 2.0F / (float)(t + 1);
    }
    const struct tec_attention_sums seen = {.segments = place,
                                            .n_segments = N,
                                            .heads = 2,
                                            .query = {TOKENS - 3, TOKENS},
                                            .live = live,
                                            .token = token,
                                            .rows = TOKENS,
                                            .ld = N * TEC_SEGMENT_RANGES,
                                            .mass = mass[0]};
    REQUIRE(tec_importance_create(&im, N, 8, &arena, &err) == TEC_OK);
    tec_importance_select(&im, &seen, TEC_SCORING_lift, 3);
    for (int h = 0; h < im.n_hops; h++)
        for (int u = 0; u < N; u++)
            CHECK(im.scores[h * N + u] > 0.99999 && im.scores[h * N + u] < 1.00001);
    tec_importance_select(&im, &seen, TEC_SCORING_paper, 3);
    CHECK(im.n_hops > 1 && im.scores[N] > 1.5 * im.scores[N + N - 1]);
    tec_arena_finish(&arena);
}

TEST(counts_of_a_curve)
{
    int counts[4];
    tec_recompute_counts((const double[]){1, 0.5, 0.7, 0.01}, 4, 10, counts);
    CHECK(counts[0] == 10 && counts[1] == 5 && counts[2] == 5 && counts[3] == 1);
    tec_recompute_counts((const double[]){0.2, 0, 0.5, 0}, 4, 10, counts);
    CHECK(counts[0] == 10 && counts[1] == 0 && counts[2] == 0 && counts[3] == 0);
    tec_recompute_counts((const double[]){0, 0, 0, 0}, 4, 10, counts);
    CHECK(counts[0] == 0 && counts[3] == 0);
    tec_recompute_counts((const double[]){1, 0.3, 0.3, 0.3}, 4, 10, counts);
    CHECK(counts[1] == 3); /* 0.3 * 10 is a little below 3 */
}

TAP_MAIN
