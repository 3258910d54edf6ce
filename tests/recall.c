/* recall.c - prompts of remembered segments, on a small random model: what must be the same bytes
 * is, whatever is computed anew and wherever a kept piece comes from. */
#include "tests/recall.h"
#include "graph/run/launch/launch.h"

static const double all[LAYERS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
static const double nothing[LAYERS];

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
    close_recall();
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
    close_recall();
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
    close_recall();
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
        close_recall();
    }
    free(copy);
}

/* --- importance in a branch ------------------------------------------------------------------- */

/* A layer that chooses beside its second half computes what one does that chooses before it. */
TEST(a_choice_beside_the_feed_forward_gives_the_same_bytes)
{
    static const double ends[LAYERS] = {1, 0.6, 0.3, 0};
    const struct tec_recall_rule rules[] = {
        {.selection = TEC_SELECTION_keep, .scoring = TEC_SCORING_lift, .ratios = some},
        {.selection = TEC_SELECTION_keep, .scoring = TEC_SCORING_query_only, .ratios = some},
        {.selection = TEC_SELECTION_keep, .scoring = TEC_SCORING_paper, .ratios = ends},
        {.selection = TEC_SELECTION_keep, .ratios = nothing},
        {.selection = TEC_SELECTION_full},
        {.selection = TEC_SELECTION_epic, .first = 2},
        {.selection = TEC_SELECTION_cacheblend, .share = 0.3, .check = 1},
        {.selection = TEC_SELECTION_cacheblend, .share = 0.3, .check = 1, .code_mask = true},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        unsigned char sets[2][LAYERS * SEGMENTS] = {{0}};
        size_t size, other;
        unsigned char *before = run_as(&rules[i], true, false, sets[0], &size);
        unsigned char *beside = run_as(&rules[i], true, true, sets[1], &other);
        CHECK(size == other && memcmp(before, beside, size) == 0);
        CHECK(memcmp(sets[0], sets[1], sizeof sets[0]) == 0);
        free(before);
        free(beside);
    }
}

/* What was chosen in the middle of a launch fails where it is needed; the next prompt runs. */
TEST(a_branching_recall_says_what_is_wrong)
{
    branching = true;
    open_model(true, 1);
    branching = false;
    make_prompt(3);
    int region = tec_kv_pool_take(&plan->prefixes);
    const struct tec_recall_rule keep = {.selection = TEC_SELECTION_keep, .ratios = some};
    lost = 4;
    CHECK(!run(&keep, region));
    CHECK(strstr(err.message, "segment 4 has no kept keys at layer") != NULL);
    lost = -1;
    CHECK(run(&keep, region));
    close_recall();
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
    close_recall();
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
