/* gate.c - tests of the gate's own judgement, where no Lua policy can be wrong: the sandbox leaves
 * a policy no way but the clock to decide differently in two runs. */
#include "tests/tap.h"
#include "tools/policy/gate_run.h"
#include "tools/policy/workload.h"

static struct tec_heap heap;
static struct tec_error err;

TEST(the_first_difference_of_two_runs_is_found)
{
    uint64_t x[] = {1, 2, 3, 4}, y[] = {1, 2, 9, 4};
    int64_t at[] = {0, 1, 2, 3}, later[] = {0, 1, 2, 4};
    struct tec_gate_run a = {.n = 4, .digests = x, .indices = at};
    struct tec_gate_run b = {.n = 4, .digests = x, .indices = at};
    CHECK_INT(tec_gate_differs(&a, &b), ==, -1);
    b.digests = y;
    CHECK_INT(tec_gate_differs(&a, &b), ==, 2);
    b.digests = x;
    b.indices = later;
    CHECK_INT(tec_gate_differs(&a, &b), ==, 3);
    b.indices = at;
    b.n = 3;
    CHECK_INT(tec_gate_differs(&a, &b), ==, 3);
    CHECK_INT(tec_gate_differs(&b, &a), ==, 3);
}

TEST(quantiles_are_by_nearest_rank)
{
    int64_t ns[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 100};
    struct tec_gate_run r = {.n = 10, .plan_ns = ns};
    CHECK_INT(tec_gate_plan_ns(&r, 0.5), ==, 5);
    CHECK_INT(tec_gate_plan_ns(&r, 0.9), ==, 9);
    CHECK_INT(tec_gate_plan_ns(&r, 0.99), ==, 100);
    CHECK_INT(tec_gate_plan_ns(&r, 1.0), ==, 100);
    r.n = 0;
    CHECK_INT(tec_gate_plan_ns(&r, 0.5), ==, 0);
}

static struct tec_cost_row rows[] = {{"act", 0, 9, 10, 11, 12, 13, 14, 0, 0},
                                     {"see", 0, 9, 20, 21, 22, 23, 24, 0, 0},
                                     {"talk", 1, 9, 5, 6, 7, 8, 9, 0, 0},
                                     {"talk", 4, 9, 6, 7, 8, 9, 10, 0, 0}};
static const struct tec_cost_table costs = {.n_rows = 4, .rows = rows, .contention = 1};

static struct tec_topology topology(void)
{
    return (struct tec_topology){
        .n_nodes = 3,
        .nodes = {{.name = "see", .kind = "prefill"},
                  {.name = "act", .kind = "action", .deadline_us = 1000, .hard = true},
                  {.name = "talk", .kind = "decode"}},
        .n_batch = 2,
        .batch = {1, 4},
        .n_k = 2,
        .k = {3, 5},
        .slots = 4,
        .period_us = 1000};
}

TEST(a_workload_has_more_requests_than_slots_and_every_accident)
{
    struct tec_arena arena;
    struct tec_topology t = topology();
    const struct tec_workload work = {
        .topology = &t, .costs = &costs, .frames = 500, .max_tokens = 30, .paced = true, .seed = 1};
    struct tec_scenario a, b;
    tec_arena_init(&arena, &heap);
    REQUIRE(tec_workload_chaos(&a, &work, &arena, &err) == TEC_OK);
    REQUIRE(tec_workload_chaos(&b, &work, &arena, &err) == TEC_OK);
    CHECK(a.paced && a.frames == 500);
    CHECK_INT(a.arrivals.n, >, 150);
    CHECK_INT(a.late.n, >, 30);
    CHECK_INT(a.spikes.n, >, 30);
    CHECK_INT(a.cancel.n, >, 30);
    CHECK_INT(a.costs_from.n, ==, 4);
    CHECK(a.costs_from.item[0].costs.rows[0].p50 == 22 && a.costs_from.item[1].costs.rows == rows);
    int first = 0;
    for (int i = 0; i < a.arrivals.n; i++) {
        const struct tec_happening *h = &a.arrivals.item[i];
        first += h->frame == 0;
        CHECK(h->value >= 1 && h->value <= 30 && h->session == -1);
        CHECK(h->value == b.arrivals.item[i].value && h->frame == b.arrivals.item[i].frame);
    }
    CHECK_INT(first, ==, 6);
    for (int i = 0; i < a.spikes.n; i++)
        CHECK(a.spikes.item[i].value == 11 || a.spikes.item[i].value == 21); /* 3 steps of 7 too */
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

/* Costs rise no further than the hard nodes' time allows. */
TEST(slow_stretches_leave_room_for_hard_work)
{
    struct tec_arena arena;
    struct tec_topology t = topology();
    struct tec_workload work = {
        .topology = &t, .costs = &costs, .frames = 100, .max_tokens = 30, .paced = true};
    struct tec_scenario s;
    tec_arena_init(&arena, &heap);
    t.period_us = 51; /* hard work takes 34 at p99 */
    REQUIRE(tec_workload_chaos(&s, &work, &arena, &err) == TEC_OK);
    double by = s.costs_from.item[0].costs.rows[0].p99 / rows[0].p99;
    CHECK(by > 1.42 && by < 1.43);
    t.period_us = 20;
    REQUIRE(tec_workload_chaos(&s, &work, &arena, &err) == TEC_OK);
    CHECK(s.costs_from.item[0].costs.rows[0].p99 == rows[0].p99);
    struct tec_cost_table at;
    REQUIRE(tec_workload_at_p99(&at, &costs, &arena, &err) == TEC_OK);
    CHECK(at.rows[0].p50 == 12 && at.rows[0].min == 12 && at.rows[0].max == 14);
    CHECK(rows[0].p50 == 11);
    tec_arena_finish(&arena);
}

TEST(no_memory_is_said)
{
    struct tec_topology t = topology();
    const struct tec_workload work = {
        .topology = &t, .costs = &costs, .frames = 500, .max_tokens = 30, .seed = 1};
    enum tec_status status = TEC_NO_MEMORY;
    for (int n = 1; n < 50 && status == TEC_NO_MEMORY; n++) {
        struct tec_heap small = {.fail_at = n};
        struct tec_arena arena;
        struct tec_scenario s;
        tec_arena_init(&arena, &small);
        status = tec_workload_chaos(&s, &work, &arena, &err);
        tec_arena_finish(&arena);
        CHECK_INT(small.live, ==, 0);
    }
    CHECK_INT(status, ==, TEC_OK);
}

TAP_MAIN
