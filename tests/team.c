/* team.c - lanes run together, share stages, park and wake. */
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

/* --- stages ---------------------------------------------------------------------------------- */

/* Work in stages: each part of a stage adds to a number that only it changes, having looked at
 * those of the stage before. Stages are named 0 .. 4, over and over. */
struct staged {
    struct tec_team *team;
    bool beside;
    int parts, stages, gone; /* how many there are, and how many are over */
    long sums[MOST];         /* plain: only the order of stages orders their uses */
    _Atomic int disagreements, absent;
};

static _Thread_local int this_lane;

static void add_part(void *user, int at, int part)
{
    struct staged *s = user;
    if (at != s->gone % 5 || s->sums[part] != s->gone)
        atomic_fetch_add(&s->disagreements, 1);
    if (at == 4 && part == 0 && this_lane != 0)
        atomic_fetch_add(&s->disagreements, 1);
    s->sums[part]++;
}

static int after_stage(void *user, int at)
{
    struct staged *s = user;
    for (int part = 0; part < s->parts; part++)
        if (s->sums[part] != s->gone + 1)
            atomic_fetch_add(&s->disagreements, 1);
    return ++s->gone < s->stages ? (at + 1) % 5 : -1;
}

static bool every_fifth(void *user, int at)
{
    (void)user;
    return at == 4;
}

/* Lanes from the number `absent` on do not come. */
static void take_part(void *user, int lane)
{
    struct staged *s = user;
    const struct tec_stage_work work = {s->parts, add_part, after_stage, every_fifth, s};
    this_lane = lane;
    if (lane < atomic_load(&s->absent))
        tec_team_join_in(s->team, s->beside, &work, lane);
}

static void stages(int lanes, int parts, int present, int count)
{
    struct tec_heap heap = {0};
    struct staged s = {.parts = parts, .absent = present};
    REQUIRE(tec_team_create(&s.team, lanes, 100, &heap, NULL) == TEC_OK);
    int64_t calls = heap.calls;
    for (int run = 0; run < 3; run++) {
        s.stages = s.gone + count;
        tec_team_begin(s.team, false, s.gone % 5);
        tec_team_run(s.team, take_part, &s);
        CHECK_INT(s.gone, ==, s.stages);
        s.gone -= s.gone % 5; /* the next run begins with stage 0 */
        for (int part = 0; part < parts; part++)
            s.sums[part] = s.gone;
    }
    CHECK_INT(atomic_load(&s.disagreements), ==, 0);
    CHECK_INT(heap.calls, ==, calls);
    tec_team_destroy(s.team);
    CHECK_INT(heap.live, ==, 0);
}

TEST(a_stage_begins_when_all_parts_of_the_one_before_are_done)
{
    stages(1, 1, 1, 100);
    stages(2, 2, 2, 2000);
    stages(3, 3, 3, 200);
    stages(8, 8, 8, 50);
}

TEST(parts_of_lanes_that_do_not_come_are_done_by_the_others)
{
    stages(2, 2, 1, 200);
    stages(3, 3, 1, 50);
    stages(4, 4, 2, 50);
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
    struct staged shared, shared_beside;
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
    take_part(&g->shared_beside, lane);
    atomic_fetch_add(&l->ran[lane], 1);
}

/* Five stages, told before those who are to take part are. */
static void five_stages(struct staged *s, struct tec_team *team, int parts)
{
    s->team = team;
    s->parts = parts;
    s->absent = MOST;
    s->stages = s->gone + 5;
    for (int part = 0; part < parts; part++)
        s->sums[part] = s->gone;
    tec_team_begin(team, s->beside, 0);
}

/* Runs go on while the other lanes are still in what they began; then the team is whole again. */
static void split(int lanes, int beside, int spin_us)
{
    struct tec_heap heap = {0};
    struct groups g = {.first = {.turns = 5},
                       .beside = {.turns = 5},
                       .n_beside = beside,
                       .shared_beside = {.beside = true}};
    REQUIRE(tec_team_create_split(&g.first.team, lanes, beside, spin_us, &heap, NULL) == TEC_OK);
    g.beside.team = g.first.team;
    for (int turn = 1; turn <= 20; turn++) {
        atomic_store(&g.go, false);
        five_stages(&g.shared_beside, g.first.team, beside);
        tec_team_fork(g.first.team, meet_concurrent, &g);
        CHECK_INT(tec_team_lanes(g.first.team), ==, lanes - beside);
        five_stages(&g.shared, g.first.team, lanes - beside);
        tec_team_run(g.first.team, take_part, &g.shared);
        tec_team_run(g.first.team, count, &g.first);
        for (int lane = 0; lane < beside; lane++)
            CHECK_INT(atomic_load(&g.beside.ran[lane]), ==, turn - 1);
        atomic_store(&g.go, true);
        tec_team_join(g.first.team);
        for (int lane = 0; lane < beside; lane++)
            CHECK_INT(atomic_load(&g.beside.ran[lane]), ==, turn);
        CHECK_INT(tec_team_lanes(g.first.team), ==, lanes);
        five_stages(&g.shared, g.first.team, lanes);
        tec_team_run(g.first.team, take_part, &g.shared);
        CHECK_INT(g.shared.gone, ==, 10 * turn);
        CHECK_INT(g.shared_beside.gone, ==, 5 * turn);
    }
    for (int lane = 0; lane < lanes; lane++)
        CHECK_INT(atomic_load(&g.first.ran[lane]), ==, lane < lanes - beside ? 20 : 0);
    CHECK_INT(atomic_load(&g.shared.disagreements), ==, 0);
    CHECK_INT(atomic_load(&g.beside.disagreements), ==, 0);
    CHECK_INT(atomic_load(&g.shared_beside.disagreements), ==, 0);
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
    struct groups g = {.beside = {.turns = 50}, .go = true, .shared_beside = {.beside = true}};
    REQUIRE(tec_team_create_split(&g.beside.team, 3, 2, 0, &heap, NULL) == TEC_OK);
    g.n_beside = 2;
    five_stages(&g.shared_beside, g.beside.team, 2);
    tec_team_fork(g.beside.team, meet_concurrent, &g);
    tec_team_destroy(g.beside.team);
    CHECK_INT(atomic_load(&g.beside.ran[0]) + atomic_load(&g.beside.ran[1]), ==, 2);
    CHECK_INT(heap.live, ==, 0);
}

TAP_MAIN
