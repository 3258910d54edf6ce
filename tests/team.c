/* team.c - lanes run together, meet at barriers, park and wake. */
#include "kernels/team.h"
#include "tests/tap.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

enum { MOST = 8 };

struct lanes {
    struct tec_team *team;
    _Atomic int ran[MOST];
    int turns;
    long sums[MOST]; /* plain: only barriers order their uses */
    _Atomic int disagreements;
};

static void count(void *user, int lane)
{
    struct lanes *l = user;
    atomic_fetch_add(&l->ran[lane], 1);
}

TEST(impossible_teams_are_refused)
{
    struct tec_heap heap = {0};
    struct tec_team *team = NULL;
    struct tec_error err;
    CHECK_INT(tec_team_create(&team, 0, 0, &heap, &err), ==, TEC_INVALID);
    CHECK_INT(tec_team_create(&team, 1025, 0, &heap, &err), ==, TEC_INVALID);
    CHECK(strstr(err.message, "1025") != NULL);
    heap.fail_at = 1;
    CHECK_INT(tec_team_create(&team, 2, 0, &heap, &err), ==, TEC_NO_MEMORY);
    CHECK(team == NULL);
    tec_team_destroy(NULL);
    CHECK_INT(heap.live, ==, 0);
}

/* Every lane once a run, over many runs; `spin_us` decides whether workers park in between. */
static void every_lane(int lanes, int spin_us, int runs)
{
    struct tec_heap heap = {0};
    struct lanes l = {.team = NULL};
    REQUIRE(tec_team_create(&l.team, lanes, spin_us, &heap, NULL) == TEC_OK);
    CHECK_INT(tec_team_lanes(l.team), ==, lanes);
    int64_t calls = heap.calls;
    for (int i = 1; i <= runs; i++) {
        tec_team_run(l.team, count, &l);
        for (int lane = 0; lane < lanes; lane++)
            REQUIRE(atomic_load(&l.ran[lane]) == i);
    }
    CHECK_INT(heap.calls, ==, calls);
    tec_team_destroy(l.team);
    CHECK_INT(heap.live, ==, 0);
}

TEST(every_lane_runs_once_one_lane)
{
    every_lane(1, 0, 100);
}

TEST(every_lane_runs_once_two_lanes_parking_at_once)
{
    every_lane(2, 0, 2000);
}

TEST(every_lane_runs_once_two_lanes_spinning)
{
    every_lane(2, 200, 2000);
}

TEST(every_lane_runs_once_three_lanes)
{
    every_lane(3, 20, 40);
    every_lane(3, 0, 40);
}

/* Each turn a lane writes its own number, then reads those of the others. */
static void meet(void *user, int lane)
{
    struct lanes *l = user;
    int lanes = tec_team_lanes(l->team);
    for (int turn = 1; turn <= l->turns; turn++) {
        l->sums[lane] = turn;
        tec_team_barrier(l->team, lanes);
        for (int other = 0; other < lanes; other++)
            if (l->sums[other] != turn)
                atomic_fetch_add(&l->disagreements, 1);
        tec_team_barrier(l->team, lanes);
    }
}

static void barriers(int lanes, int turns)
{
    struct tec_heap heap = {0};
    struct lanes l = {.turns = turns};
    REQUIRE(tec_team_create(&l.team, lanes, 100, &heap, NULL) == TEC_OK);
    for (int run = 0; run < 3; run++)
        tec_team_run(l.team, meet, &l);
    CHECK_INT(atomic_load(&l.disagreements), ==, 0);
    tec_team_destroy(l.team);
}

TEST(a_barrier_shows_what_other_lanes_wrote)
{
    barriers(1, 100);
    barriers(2, 100);
    barriers(3, 15);
}

TEST(parked_workers_wake)
{
    struct tec_heap heap = {0};
    struct lanes l = {.team = NULL};
    REQUIRE(tec_team_create(&l.team, 3, 50, &heap, NULL) == TEC_OK);
    for (int i = 1; i <= 10; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL); /* 40 times as long as they spin */
        tec_team_run(l.team, count, &l);
        for (int lane = 0; lane < 3; lane++)
            CHECK_INT(atomic_load(&l.ran[lane]), ==, i);
    }
    tec_team_destroy(l.team);
}

TEST(a_team_that_never_ran_ends)
{
    struct tec_heap heap = {0};
    for (int i = 0; i < 20; i++) {
        struct tec_team *team = NULL;
        REQUIRE(tec_team_create(&team, 3, i % 2 ? 0 : 1000, &heap, NULL) == TEC_OK);
        tec_team_destroy(team);
    }
    CHECK_INT(heap.live, ==, 0);
}

/* --- two groups ------------------------------------------------------------------------------ */

struct groups {
    struct lanes first, beside;
    int n_beside;
    _Atomic bool go; /* what the lanes beside wait for */
};

static void meet_concurrent(void *user, int lane)
{
    struct groups *g = user;
    struct lanes *l = &g->beside;
    while (!atomic_load(&g->go))
        sched_yield();
    for (int turn = 1; turn <= l->turns; turn++) {
        l->sums[lane] = turn;
        tec_team_barrier_concurrent(l->team);
        for (int other = 0; other < g->n_beside; other++)
            if (l->sums[other] != turn)
                atomic_fetch_add(&l->disagreements, 1);
        tec_team_barrier_concurrent(l->team);
    }
    atomic_fetch_add(&l->ran[lane], 1);
}

/* Runs go on while the other lanes are still in what they began; then the team is whole again. */
static void split(int lanes, int beside, int spin_us)
{
    struct tec_heap heap = {0};
    struct groups g = {.first = {.turns = 5}, .beside = {.turns = 5}, .n_beside = beside};
    REQUIRE(tec_team_create_split(&g.first.team, lanes, beside, spin_us, &heap, NULL) == TEC_OK);
    g.beside.team = g.first.team;
    for (int turn = 1; turn <= 20; turn++) {
        atomic_store(&g.go, false);
        tec_team_fork(g.first.team, meet_concurrent, &g);
        CHECK_INT(tec_team_lanes(g.first.team), ==, lanes - beside);
        tec_team_run(g.first.team, meet, &g.first);
        tec_team_run(g.first.team, count, &g.first);
        for (int lane = 0; lane < beside; lane++)
            CHECK_INT(atomic_load(&g.beside.ran[lane]), ==, turn - 1);
        atomic_store(&g.go, true);
        tec_team_join(g.first.team);
        for (int lane = 0; lane < beside; lane++)
            CHECK_INT(atomic_load(&g.beside.ran[lane]), ==, turn);
        CHECK_INT(tec_team_lanes(g.first.team), ==, lanes);
        tec_team_run(g.first.team, meet, &g.first);
    }
    for (int lane = 0; lane < lanes; lane++)
        CHECK_INT(atomic_load(&g.first.ran[lane]), ==, lane < lanes - beside ? 20 : 0);
    CHECK_INT(atomic_load(&g.first.disagreements) + atomic_load(&g.beside.disagreements), ==, 0);
    tec_team_destroy(g.first.team);
    CHECK_INT(heap.live, ==, 0);
}

TEST(lanes_that_are_split_off_run_beside_the_others)
{
    split(2, 1, 0);
    split(2, 1, 200);
    split(3, 2, 20);
    split(4, 2, 0);
}

TEST(nothing_to_split_off)
{
    struct tec_heap heap = {0};
    struct lanes l = {.team = NULL};
    struct tec_error err;
    CHECK_INT(tec_team_create_split(&l.team, 2, 2, 0, &heap, &err), ==, TEC_INVALID);
    CHECK_INT(tec_team_create_split(&l.team, 2, -1, 0, &heap, &err), ==, TEC_INVALID);
    REQUIRE(tec_team_create(&l.team, 2, 0, &heap, NULL) == TEC_OK);
    tec_team_fork(l.team, count, &l);
    tec_team_join(l.team);
    CHECK_INT(atomic_load(&l.ran[0]), ==, 0);
    tec_team_run(l.team, count, &l);
    CHECK_INT(atomic_load(&l.ran[0]) + atomic_load(&l.ran[1]), ==, 2);
    tec_team_destroy(l.team);
    CHECK_INT(heap.live, ==, 0);
}

/* A team that is closed while lanes are split off waits for them: they end. */
TEST(a_split_team_ends)
{
    struct tec_heap heap = {0};
    struct groups g = {.beside = {.turns = 50}, .go = true};
    REQUIRE(tec_team_create_split(&g.beside.team, 3, 2, 0, &heap, NULL) == TEC_OK);
    tec_team_fork(g.beside.team, meet_concurrent, &g);
    tec_team_destroy(g.beside.team);
    CHECK_INT(atomic_load(&g.beside.ran[0]) + atomic_load(&g.beside.ran[1]), ==, 2);
    CHECK_INT(heap.live, ==, 0);
}

TAP_MAIN
