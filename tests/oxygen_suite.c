/* oxygen_suite.c - the grid of OxyGen's experiments, and sums over frames by the definitions of its
 * analysis. */
#include "tests/experiments/oxygen/oxygen.h"

#include "tests/tap.h"

#include <math.h>

static struct tec_oxygen suite;
static struct tec_heap heap;
static struct tec_arena arena;
static struct tec_invocation call;

static void make_grid(bool quick, bool full, int rounds)
{
    tec_arena_init(&arena, &heap);
    memset(&suite, 0, sizeof suite);
    call = (struct tec_invocation){.arena = &arena, .heap = &heap};
    suite.call = &call;
    suite.quick = quick;
    suite.full = full;
    suite.rounds = rounds;
    REQUIRE(tec_oxygen_grid(&suite, NULL) == TEC_OK);
}

static int count(enum tec_oxygen_setting setting, enum tec_oxygen_input input, bool load)
{
    int n = 0;
    for (int i = 0; i < suite.n_points; i++)
        n += suite.points[i].setting == setting && suite.points[i].input == input &&
             (suite.points[i].load != NULL) == load;
    return n;
}

TEST(the_grid_is_the_papers)
{
    make_grid(false, false, 2);
    /* 3 robots x 4 S x 5 N; the padded computation once for all robots */
    CHECK_INT(count(TEC_OXYGEN_BASELINE, TEC_OXYGEN_COMPACT, false), ==, 60);
    CHECK_INT(count(TEC_OXYGEN_SHARED, TEC_OXYGEN_COMPACT, false), ==, 60);
    CHECK_INT(count(TEC_OXYGEN_BASELINE, TEC_OXYGEN_PADDED, false), ==, 20);
    /* 5 N at k = 5 and 7 other k at N = 30; N = 20, k = 10 of table 2 */
    CHECK_INT(count(TEC_OXYGEN_BATCHING, TEC_OXYGEN_COMPACT, false), ==, 12 * 12 + 1);
    CHECK_INT(count(TEC_OXYGEN_BATCHING, TEC_OXYGEN_PADDED, false), ==, 4 * 12);
    CHECK_INT(count(TEC_OXYGEN_PARALLEL, TEC_OXYGEN_COMPACT, false), ==, 5);
    CHECK_INT(count(TEC_OXYGEN_PARALLEL, TEC_OXYGEN_PADDED, false), ==, 5);
    /* all arrivals one after the other; those that may be several a frame in one launch, too */
    CHECK_INT(count(TEC_OXYGEN_BATCHING, TEC_OXYGEN_COMPACT, true), ==, 14 + 9);
    for (int i = 0; i < suite.n_points; i++) {
        const struct tec_oxygen_point *p = &suite.points[i];
        CHECK_INT(p->k ? p->N % p->k : 0, ==, 0);
        CHECK_INT(p->warmup, ==, p->k ? p->N / p->k : 1);
        CHECK(p->frames >= 1);
    }
    tec_arena_finish(&arena);
}

TEST(one_experiment_alone)
{
    static const struct {
        const char *only;
        int points;
    } wanted[] = {{"headline", 3 * 3 + 3 + 2}, {"table", 5}, {"loads", 23}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        make_grid(false, false, 2);
        suite.only = wanted[i].only;
        REQUIRE(tec_oxygen_grid(&suite, NULL) == TEC_OK);
        CHECK_INT(suite.n_points, ==, wanted[i].points);
        tec_arena_finish(&arena);
    }
}

TEST(no_point_is_there_twice)
{
    make_grid(false, false, 2);
    for (int i = 0; i < suite.n_points; i++) {
        const struct tec_oxygen_point *p = &suite.points[i];
        const struct tec_oxygen_point *found =
            p->load ? tec_oxygen_load_point(&suite, p->load, p->together)
                    : tec_oxygen_find(&suite, p->robot, p->setting, p->input, p->S, p->N, p->k);
        CHECK(found == p);
    }
    tec_arena_finish(&arena);
}

/* Requests a frame on average, before the limit of a frame. */
static double rate_of(const struct tec_arrivals *a)
{
    if (a->kind == TEC_ARRIVE_POISSON)
        return a->lambda;
    if (a->kind == TEC_ARRIVE_BURSTY)
        return (double)a->burst / a->burst_every;
    return 1.0 / a->interval;
}

TEST(every_arrival_of_fig_7_can_be_read)
{
    struct tec_arrivals a;
    int n = 0;
    for (const struct tec_oxygen_load *l = tec_oxygen_loads; l->category; l++, n++) {
        struct tec_error err = {0};
        if (tec_arrivals_parse(&a, l->spec, 30, 42, &err) != TEC_OK)
            fprintf(stderr, "# %s\n", err.message);
        CHECK(err.status == TEC_OK);
        if (strcmp(l->category, "random_length") == 0)
            CHECK(fabs(a.long_share - l->value) < 1e-12);
        else
            CHECK(fabs(rate_of(&a) - l->value) < 1e-12);
    }
    CHECK_INT(n, ==, 14);
    CHECK_STR(tec_oxygen_loads[4].pattern, "uniform_arrivals(rate=0.25, t_max=30)");
    CHECK_STR(tec_oxygen_loads[4].slug, "uniform_0.25_30");
    CHECK_STR(tec_oxygen_loads[10].slug, "random_length_v5_20_w0.7_0.3_1_42");
}

TEST(a_full_run_has_the_headline_alone)
{
    make_grid(false, true, 1);
    CHECK_INT(suite.n_points, ==, 12); /* 3 settings of 3 robots and of the padded input */
    for (int i = 0; i < suite.n_points; i++)
        CHECK(suite.points[i].N == 30 && suite.points[i].S == 10 &&
              (suite.points[i].k == 0 || suite.points[i].k == 5));
    tec_arena_finish(&arena);
}

TEST(sums_are_those_of_the_papers_analysis)
{
    static struct tec_oxygen_frame frames[] = {
        {.warmup = true, .n_new = 1, .tokens = 5, .ns = 900000000},
        {.n_new = 1, .n_resumed = 2, .tokens = 15, .ns = 100000000},
        {.n_new = 0, .n_resumed = 3, .tokens = 15, .ns = 50000000},
        {.n_new = 4, .n_resumed = 3, .tokens = 35, .ns = 350000000},
    };
    make_grid(true, false, 1);
    struct tec_oxygen_point *p = &suite.points[0];
    suite.n_points = 1;
    p->frame = frames;
    p->n = 4;
    REQUIRE(tec_oxygen_sum(&suite, NULL) == TEC_OK);
    CHECK(fabs(tec_oxygen_frame_ms(p) - 500.0 / 3.0) < 1e-9);
    CHECK(fabs(tec_oxygen_action_hz(p) - 60.0) < 1e-9); /* H x 3 frames / 0.5 s */
    CHECK(fabs(tec_oxygen_tokens_s(p) - (150.0 + 300.0 + 100.0) / 3.0) < 1e-9);
    CHECK(fabs(tec_oxygen_batch(p) - 13.0 / 3.0) < 1e-9);
    CHECK(fabs(tec_oxygen_actions_s(p) - 100.0) < 1e-9); /* 10 x 5 arrivals / 0.5 s */
    CHECK(fabs(tec_oxygen_ms_at(p, 0.5) - 100.0) < 1e-9);
    CHECK(fabs(tec_oxygen_ms_at(p, 1.0) - 350.0) < 1e-9);
    CHECK(isnan(tec_oxygen_frame_ms(NULL)));
    CHECK(isnan(tec_oxygen_ratio(p, NULL)));
    CHECK(fabs(tec_oxygen_ratio(p, p) - 1.0) < 1e-12);
    tec_arena_finish(&arena);
    CHECK_INT(atomic_load(&heap.live), ==, 0);
}

TAP_MAIN
