/* costs.c - tests of the cost model: histograms, drift, fading, what answers before anything was
 * measured, and the file that it starts from. */
#include "graph/run/loop/costs.h"
#include "base/clock.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <unistd.h>

static struct tec_heap heap;
static struct tec_error err;
static struct tec_costs costs;
static struct tec_heap costs_heap;
static struct tec_arena costs_arena;
static uint64_t state;

static const struct tec_plan_spec spec = {.n_batches = 3, .batches = {1, 3, 8}};

static void init(void)
{
    tec_arena_finish(&costs_arena);
    tec_arena_init(&costs_arena, &costs_heap);
    REQUIRE(tec_costs_init(&costs, &spec, &costs_arena, &err) == TEC_OK);
}

static uint32_t draw(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33);
}

/* Whether the value is within +-`percent` of `ns`. */
static int64_t near(int64_t ns, int percent)
{
    return ns + ns * ((int64_t)(draw() % 2001) - 1000) / 1000 * percent / 100;
}

static double action(double q)
{
    return tec_costs_us(&costs, TEC_COST_ACTION, 0, q);
}

static void add(int n, int64_t ns, int percent)
{
    for (int i = 0; i < n; i++) {
        tec_costs_add(&costs, TEC_COST_ACTION, 0, near(ns, percent));
        tec_costs_end_frame(&costs, 0.0, false);
    }
}

static void start(int64_t ns, int percent, int n)
{
    state = 7;
    init();
    for (int i = 0; i < 2; i++)
        tec_costs_warm(&costs, TEC_COST_ACTION, 0, ns);
    add(n, ns, percent);
}

static bool within(double value, double wanted, double part)
{
    bool good = value >= wanted * (1.0 - part) && value <= wanted * (1.0 + part);
    if (!good)
        fprintf(stderr, "#   %g, wanted %g\n", value, wanted);
    return good;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* --- histograms ------------------------------------------------------------------------------ */

TEST(a_quantile_is_within_a_hundredth)
{
    enum { N = 20000 };
    static struct tec_histogram h;
    static int64_t all[N];
    state = 3;
    memset(&h, 0, sizeof h);
    for (int i = 0; i < N; i++) { /* eight powers of ten */
        int64_t scale = 1;
        for (int p = (int)(draw() % 8); p > 0; p--)
            scale *= 10;
        all[i] = 1 + (int64_t)(draw() % 900) * scale / 100;
        tec_histogram_add(&h, all[i]);
    }
    qsort(all, N, sizeof all[0], by_value);
    for (int permille = 1; permille <= 1000; permille++) {
        int64_t exact = all[(permille * N + 999) / 1000 - 1];
        int64_t found = tec_histogram_at(&h, permille / 1000.0);
        CHECK_INT(found, >=, exact);
        CHECK(within((double)found, (double)exact, 0.0079));
    }
    CHECK_INT(h.min, ==, all[0]);
    CHECK_INT(h.max, ==, all[N - 1]);
    CHECK_INT(tec_histogram_at(&h, 1.0), ==, all[N - 1]);
}

TEST(a_histogram_takes_any_duration)
{
    static struct tec_histogram h;
    const int64_t odd[] = {INT64_MAX, INT64_MIN, -1, 0, 1, INT64_C(1) << 40, INT64_C(1) << 41};
    CHECK_INT(tec_histogram_at(&h, 0.5), ==, 0);
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        tec_histogram_add(&h, odd[i]);
    CHECK_INT(h.n, ==, 7);
    CHECK_INT(tec_histogram_at(&h, 1.0), ==, INT64_MAX);
    CHECK_INT(tec_histogram_at(&h, 0.5), ==, 1);
}

/* --- drift ----------------------------------------------------------------------------------- */

TEST(costs_are_those_measured)
{
    start(1000000, 5, 3000);
    CHECK(within(action(0.5), 1000.0, 0.03));
    CHECK(within(action(0.99), 1049.0, 0.03));
    CHECK(action(0.999) >= action(0.99));
    CHECK(action(1.0) >= action(0.999));
    CHECK(action(0.3) <= action(0.5));
}

TEST(a_step_is_followed_in_a_few_frames_and_back)
{
    start(1000000, 0, 500);
    double before = action(0.5);
    add(4, 1333000, 0); /* clocks fall by a quarter */
    CHECK(within(action(0.5), 1.333 * before, 0.04));
    add(2, 1333000, 0);
    CHECK(within(action(0.5), 1.333 * before, 0.011));
    CHECK(action(0.99) >= 1.3 * before);
    add(8, 1000000, 0);
    CHECK(within(action(0.5), before, 0.011));
    add(8, 500000, 0);
    CHECK(within(action(0.5), 0.5 * before, 0.02));
}

TEST(one_spike_moves_nothing)
{
    start(1000000, 0, 500);
    double half = action(0.5), tail = action(0.99), most = action(1.0);
    tec_costs_add(&costs, TEC_COST_ACTION, 0, 50000000);
    CHECK(within(action(0.5), half, 0.005)); /* of one bucket */
    CHECK(action(1.0) > 10 * most);          /* but it is the longest */
    add(40, 1000000, 0);
    CHECK(within(action(0.5), half, 0.005)); /* of one bucket */
    CHECK(within(action(0.99), tail, 0.005));
    for (int i = 0; i < 200; i++) { /* one in ten is no drift either */
        tec_costs_add(&costs, TEC_COST_ACTION, 0, 50000000);
        add(9, 1000000, 0);
    }
    CHECK(within(action(0.5), half, 0.01));
    CHECK(action(0.99) > 10 * tail); /* it is what one in a hundred takes */
}

TEST(drift_is_bounded)
{
    start(1000000, 0, 500);
    add(20, 1000000000, 0);
    CHECK(costs.drift[TEC_COST_ACTION].factor <= 4.0);
    add(40, 1, 0);
    CHECK(costs.drift[TEC_COST_ACTION].factor >= 0.25);
    CHECK(action(0.5) > 0.0);
    /* the distribution goes on where the drift stops */
    add(6000, 100000000, 0);
    CHECK(within(action(0.5), 100000.0, 0.02));
}

/* Clocks that stay low for hours are a lasting drift, and a tail measured on other days must be
 * forgotten. */
TEST(old_samples_fade)
{
    start(1000000, 2, 500);
    for (int i = 0; i < 2000; i++)
        tec_costs_add(&costs, TEC_COST_ACTION, 0, i % 20 ? near(1000000, 2) : 5000000);
    CHECK(within(action(0.99), 5000.0, 0.05));
    add(4200, 1000000, 2);
    CHECK(within(action(1.0), 1020.0, 0.05));
    add(20000, 1333000, 2);
    CHECK(within(action(0.5), 1333.0, 0.03));
    CHECK(within(action(0.99), 1.333 * 1020.0, 0.05)); /* not the drift twice */
    CHECK(within(costs.drift[TEC_COST_ACTION].factor, 1.333, 0.03));
}

TEST(what_did_not_run_drifts_with_what_did)
{
    start(1000000, 0, 500);
    for (int i = 0; i < 30; i++)
        tec_costs_add(&costs, TEC_COST_DECODE, 3, 200000);
    CHECK(within(tec_costs_us(&costs, TEC_COST_DECODE, 2, 0.5), 200.0, 0.01));
    for (int i = 0; i < 10; i++)
        tec_costs_add(&costs, TEC_COST_DECODE, 3, 400000);
    CHECK(within(tec_costs_us(&costs, TEC_COST_DECODE, 2, 0.5), 400.0, 0.02));
    add(200, 1000000, 0);
    CHECK(within(tec_costs_us(&costs, TEC_COST_DECODE, 2, 0.5), 200.0, 0.02));
    tec_costs_add(&costs, TEC_COST_DECODE, 3, 200000);
    CHECK(within(tec_costs_us(&costs, TEC_COST_DECODE, 2, 0.5), 200.0, 0.02));
}

/* A model whose frames have no other model's launches in them: what the others say counts. */
TEST(a_model_that_rests_drifts_with_the_others)
{
    start(1000000, 0, 500);
    add(8, 4000000, 0);
    CHECK(within(action(0.5), 4000.0, 0.02));
    for (int i = 0; i < 200; i++)
        tec_costs_end_frame(&costs, 0.0, true);
    CHECK(within(action(0.5), 4000.0, 0.02)); /* nothing ran: nobody knows better */
    for (int i = 0; i < 200; i++)
        tec_costs_end_frame(&costs, 1.0, false);
    CHECK(within(action(0.5), 1000.0, 0.02));
}

/* A policy that plans by p99 tries a launch again that once took long, as long as somebody waits.
 */
TEST(one_spike_keeps_nothing_waiting)
{
    for (int few = 0; few < 2; few++) { /* the warm-up answers; own samples do */
        start(1000000, 0, few ? 5 : 40);
        add(1, 40000000, 0);
        CHECK(action(0.99) > 30000.0);
        for (int i = 0; i < 200; i++)
            tec_costs_end_frame(&costs, 1.0, false);
        CHECK(action(0.99) > 30000.0);
        for (int i = 0; i < 200; i++)
            tec_costs_end_frame(&costs, 1.0, true);
        CHECK(action(0.99) < 2200.0 && action(1.0) < 2200.0);
        CHECK(within(action(0.5), 1000.0, 0.01));
        add(1, 1000000, 0);
        CHECK(action(0.99) < 4000.0); /* it can be tried again at once */
        add(50, 1000000, 0);
        CHECK(action(1.0) > 30000.0); /* what runs in every frame has all of its tail */
    }
}

TEST(equal_samples_give_equal_costs)
{
    double first[4];
    for (int run = 0; run < 2; run++) {
        start(1000000, 30, 7000);
        const double q[] = {0.5, 0.99, 0.999, 1.0};
        for (int i = 0; i < 4; i++) {
            if (run)
                CHECK(first[i] == action(q[i]));
            first[i] = action(q[i]);
        }
    }
}

TEST(excess_is_told_of_what_is_known)
{
    start(1000000, 0, 10);
    CHECK_INT(tec_costs_add(&costs, TEC_COST_ACTION, 0, 9000000), ==, 0);
    start(1000000, 0, 100);
    CHECK_INT(tec_costs_add(&costs, TEC_COST_ACTION, 0, 1000000), ==, 0);
    int64_t over = tec_costs_add(&costs, TEC_COST_ACTION, 0, 3000000);
    CHECK_INT(over, >, 1980000);
    CHECK_INT(over, <=, 2000000);
    add(50, 1333000, 0); /* a slow device stays one */
    CHECK_INT(tec_costs_add(&costs, TEC_COST_ACTION, 0, 1333000 * 3), >, 1900000);
}

/* --- before anything was measured ------------------------------------------------------------ */

TEST(the_warm_up_answers_first)
{
    init();
    CHECK(action(0.5) == 0.0);
    tec_costs_warm(&costs, TEC_COST_ACTION, 0, 9000000); /* touches memory */
    CHECK(action(0.5) == 9000.0);
    tec_costs_warm(&costs, TEC_COST_ACTION, 0, 2000000);
    tec_costs_warm(&costs, TEC_COST_ACTION, 0, 2100000);
    CHECK(action(0.5) == 2000.0);
    CHECK(action(0.99) == 2100.0);
    add(1, 2400000, 0);
    CHECK(action(0.5) == 2000.0);
    CHECK(within(action(0.99), 2400.0, 0.001));
    add(19, 1000000, 0); /* warm-up never enters */
    CHECK(within(action(0.5), 1000.0, 0.01));
    CHECK(within(action(1.0), 2400.0, 0.001));
    for (int rows = 0; rows < 20; rows++)
        tec_costs_add(&costs, TEC_COST_DECODE, rows, 5000000); /* nothing was warmed */
    CHECK(tec_costs_us(&costs, TEC_COST_DECODE, 1, 0.5) > 0.0);
    CHECK(tec_costs_us(&costs, TEC_COST_DECODE, 99, 0.5) > 0.0);
}

static const char file[] =
    "{\"schema\":1,\"unit\":\"us\",\"pipeline\":\"p\",\"variants\":["
    "{\"node\":\"see\",\"point\":{},\"n\":9,\"min\":1,\"p50\":100,\"p99\":110,\"p999\":120,\"max\":"
    "130},{\"node\":\"act\",\"point\":{},\"n\":9,\"min\":1,\"p50\":1000,\"p99\":1100,\"p999\":1200,"
    "\"max\":1300},{\"node\":\"talk\",\"point\":{\"batch\":1},\"n\":9,\"min\":1,\"p50\":10,\"p99\":"
    "11,\"p999\":12,\"max\":13},{\"node\":\"talk\",\"point\":{\"batch\":4},\"n\":9,\"min\":1,"
    "\"p50\":20,\"p99\":22,\"p999\":24,\"max\":26}]}";

static const struct tec_topology topology = {.n_nodes = 4,
                                             .nodes = {{.name = "see", .kind = "prefill"},
                                                       {.name = "act", .kind = "action"},
                                                       {.name = "talk", .kind = "decode"},
                                                       {.name = "think", .kind = "decode"}}};

static void take_file(void)
{
    struct tec_arena arena;
    struct tec_cost_table table;
    tec_arena_init(&arena, &heap);
    json_t *json = json_loads(file, 0, NULL);
    REQUIRE(tec_costs_table_take(&table, json, "f.costs", &arena, &err) == TEC_OK);
    json_decref(json);
    state = 7;
    init();
    tec_costs_prior(&costs, &table, &topology, 0);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

TEST(a_file_answers_before_the_warm_up)
{
    take_file();
    tec_costs_warm(&costs, TEC_COST_ACTION, 0, 77);
    CHECK(action(0.5) == 1000.0);
    CHECK(action(0.99) == 1100.0);
    CHECK(action(0.999) == 1200.0);
    CHECK(action(1.0) == 1300.0);
    CHECK(tec_costs_us(&costs, TEC_COST_PREFILL, 0, 0.99) == 110.0);
    CHECK(tec_costs_us(&costs, TEC_COST_DECODE, 1, 0.5) == 10.0);
    CHECK(tec_costs_us(&costs, TEC_COST_DECODE, 2, 0.5) == 20.0); /* batch 3: its point 4 */
    CHECK(tec_costs_us(&costs, TEC_COST_DECODE, 8, 0.5) == 20.0); /* batch 8: the largest */
}

TEST(own_samples_replace_a_file_without_a_jump)
{
    take_file();
    add(100, 1000000, 5);
    CHECK(within(action(0.99), 1100.0, 0.06)); /* the file's tail */
    take_file();
    double before = 0.0;
    for (int i = 0; i < 1000; i++) { /* a device twice as fast as the file's */
        if (i == 190)
            before = action(0.5);
        add(1, 500000, 5);
        if (i >= 20)
            CHECK(within(action(0.5), 500.0, 0.08));
    }
    CHECK(within(before, 500.0, 0.06));
    CHECK(within(action(0.99), 525.0, 0.06)); /* nothing left of how it was found */
    CHECK(action(1.0) < 600.0);
}

/* --- speed ----------------------------------------------------------------------------------- */

/* It costs at most what a hundred additions in memory do. */
TEST(a_lookup_is_cheap)
{
    enum { N = 2000000 };
    const struct tec_clock clock = {NULL};
    volatile double sum = 0.0;
    start(1000000, 5, 3000);
    int64_t begin = tec_clock_now(&clock);
    for (int i = 0; i < N; i++)
        sum = sum + (double)i;
    double addition = (double)(tec_clock_now(&clock) - begin) / N;
    begin = tec_clock_now(&clock);
    for (int i = 0; i < N; i++)
        sum = sum + tec_costs_us(&costs, TEC_COST_DECODE, i & 7, 0.99);
    double each = (double)(tec_clock_now(&clock) - begin) / N;
    begin = tec_clock_now(&clock);
    for (int i = 0; i < 20000; i++)
        tec_costs_add(&costs, TEC_COST_ACTION, 0, near(1000000, 20));
    printf("# a lookup takes %.1f ns, a sample %.1f ns\n", each,
           (double)(tec_clock_now(&clock) - begin) / 20000.0);
    CHECK(each < 100.0 * addition);
}

TAP_MAIN
