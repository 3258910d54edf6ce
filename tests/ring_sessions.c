/* ring_sessions.c - rings of several sessions in one forward: each robot has the actions, misses
 * and lost actions that it has alone, whoever joins, rests, skips a frame or begins anew beside it.
 */
#include "base/clock.h"
#include "graph/run/engine/engine.h"
#include "tests/tap.h"

#include <stdio.h>
#include <string.h>

enum { ROBOTS = 3, FRAMES = 90, STAGES = 7, SIDE = 28, WORDS = 4 };

static struct tec_heap heap;
static struct tec_error err;

/* What a robot does in a frame of all. */
enum turn { ABSENT, RESTS, BLIND, SEES, SEES_ANEW };

static int ends; /* the token that ends an action early; -1 = the model's */

static struct {
    enum turn turn[FRAMES][ROBOTS];
    int words[FRAMES][ROBOTS]; /* its instruction */
    int depth[FRAMES];
} script;

/* What became of a robot, frame by frame of its own. */
struct robot {
    int64_t frame, began; /* began: its newest episode */
    int n_left, n_lost;
    int64_t seen[FRAMES * STAGES], lost[FRAMES];
    float chunk[FRAMES * STAGES][STAGES];
    enum tec_cause cause[FRAMES];
    bool filling[FRAMES];
};

struct run {
    struct tec_pipeline *pipeline;
    struct tec_engine *engine;
    struct robot robots[ROBOTS];
    int first, depth;          /* robot that session 0 is */
    int64_t next_ns;           /* when the next frame is wanted */
    double slack, most, least; /* that policies see, and what is left until then around that */
};

static int below(uint64_t *dice, int n)
{
    *dice = *dice * 6364136223846793005u + 1442695040888963407u;
    return (int)((*dice >> 33) % (uint64_t)n);
}

/* Long times of nothing but observations, in which rings fill, and others between them. */
static void draw(uint64_t dice)
{
    static const int depths[] = {STAGES, STAGES, 4, 1};
    int words[ROBOTS] = {0, 1, 2};
    for (int f = 0; f < FRAMES; f++) {
        script.depth[f] = f % 15 ? script.depth[f - 1] : depths[below(&dice, 4)];
        for (int r = 0; r < ROBOTS; r++) {
            int k = below(&dice, 40);
            bool calm = (f / 10 + r) % 3 > 0;
            script.turn[f][r] = k == 0           ? SEES_ANEW
                                : calm || k > 20 ? SEES
                                : k > 14         ? BLIND
                                : k > 10         ? RESTS
                                                 : ABSENT;
            words[r] += k == 1;
            script.words[f][r] = words[r];
        }
    }
}

static enum tec_status plan(void *self, const struct tec_frame_view *view, struct tec_decision *d,
                            struct tec_error *error)
{
    static const struct tec_clock wall = {NULL};
    struct run *run = self;
    (void)error;
    d->depth[0] = run->depth;
    run->most = (double)(run->next_ns - tec_clock_now(&wall)) / 1000.0;
    run->slack = view->costs.slack(view->costs.self, 0.5);
    run->least = (double)(run->next_ns - tec_clock_now(&wall)) / 1000.0;
    return TEC_OK;
}

static void released(void *user, int action, const float *chunk,
                     const struct tec_frame_record *record)
{
    struct run *run = user;
    struct robot *robot = &run->robots[run->first + record->session];
    int at = robot->n_left++;
    REQUIRE(at < FRAMES * STAGES);
    robot->seen[at] = record->actions[action].seen;
    CHECK_INT(robot->seen[at], >=, robot->began);
    memcpy(robot->chunk[at], chunk, sizeof robot->chunk[at]);
}

static void lost(void *user, int session, int64_t seen, int64_t captured_ns)
{
    struct run *run = user;
    struct robot *robot = &run->robots[run->first + session];
    REQUIRE(robot->n_lost < FRAMES);
    robot->lost[robot->n_lost++] = seen;
    CHECK_INT(captured_ns, ==, seen);
}

/* `more`: a setting besides; NULL = none. */
static void open_run(struct run *run, int first, int sessions, const char *more, bool interpret)
{
    char many[40];
    const char *const set[] = {many, more};
    struct tec_diagnostics d;
    const struct tec_load_options how = {
        .path = "tests/pipelines/ring.lua", .root = "pipelines", .set = set, .n_set = more ? 2 : 1};
    snprintf(many, sizeof many, "frame.sessions=%d", sessions);
    memset(run, 0, sizeof *run);
    run->first = first;
    tec_diagnostics_init(&d, &heap);
    REQUIRE(tec_pipeline_load(&run->pipeline, &how, &heap, &d, &err) == TEC_OK);
    tec_diagnostics_finish(&d);
    const struct tec_engine_options options = {
        .pipeline = run->pipeline,
        .root = ".",
        .random = true,
        .seed = 6,
        .size = "tiny",
        .saturated = true,
        .interpret = interpret,
        .device = {.kind = tap.device, .threads = 1, .tier = tec_tier_best()},
        .released = released,
        .lost = lost,
        .user = run};
    REQUIRE(tec_engine_open(&run->engine, &options, &heap, &err) == TEC_OK);
    if (ends >= 0)
        run->engine->model->text.eos = ends;
    const struct tec_planner planner = {.name = "depths", .self = run, .plan = plan};
    tec_loop_set_planner(run->engine->loop, &planner);
}

static void close_run(struct run *run)
{
    for (int s = 0; s < run->engine->n_sessions; s++)
        tec_loop_empty_rings(run->engine->loop, s);
    CHECK_INT(tec_loop_live(run->engine->loop), ==, 0);
    tec_engine_close(run->engine);
    tec_pipeline_free(run->pipeline);
}

/* Observation of a robot: picture and instruction are its own. */
static void observe(struct run *run, int robot, int f, struct tec_frame_input *input)
{
    static uint8_t picture[SIDE * SIDE * 3];
    static int32_t ids[WORDS];
    struct tec_session *session = run->engine->sessions[robot - run->first];
    for (size_t i = 0; i < sizeof picture; i++)
        picture[i] = (uint8_t)((i + 1) * (size_t)(31 * f + 7 * robot + 3) / 5);
    for (int i = 0; i < WORDS; i++)
        ids[i] = 2 + (5 * script.words[f][robot] + i) % 90;
    const struct tec_value values[] = {
        {"cam", TEC_VALUE_U8, 3, {SIDE, SIDE, 3}, picture, sizeof picture},
        {"instruction#ids", TEC_VALUE_I32, 1, {WORDS}, ids, sizeof ids}};
    int64_t frame = run->robots[robot].frame;
    if (script.turn[f][robot] == SEES_ANEW) {
        tec_session_reset(session);
        run->robots[robot].began = frame;
    }
    REQUIRE(tec_session_observe(session, values, 2, NULL, frame, frame, input, NULL, &err) ==
            TEC_OK);
}

/* A frame of those robots of the run that are in it. */
static void step(struct run *run, int f)
{
    struct tec_frame_input inputs[ROBOTS];
    const struct tec_frame_input *given[ROBOTS];
    struct tec_tick ticks[ROBOTS];
    int who[ROBOTS], n = 0, sessions = run->engine->n_sessions;
    for (int i = 0; i < sessions; i++) {
        int robot = run->first + (i + f) % sessions; /* whose deadline is first changes */
        enum turn turn = script.turn[f][robot];
        if (turn == ABSENT)
            continue;
        ticks[n] = tec_loop_tick(run->engine->loop, 0, 0);
        ticks[n].frame = run->robots[robot].frame;
        ticks[n].session = robot - run->first;
        ticks[n].deadline_ns = -1;
        ticks[n].rests = turn == RESTS;
        ticks[n].next_ns = run->next_ns;
        given[n] = turn >= SEES ? &inputs[n] : NULL;
        if (given[n])
            observe(run, robot, f, &inputs[n]);
        who[n++] = robot;
    }
    run->depth = script.depth[f];
    if (n == 0)
        return;
    int before[ROBOTS], left[ROBOTS];
    for (int i = 0; i < n; i++) {
        before[i] = tec_loop_in_flight(run->engine->loop, ticks[i].session);
        left[i] = run->robots[who[i]].n_left;
    }
    tec_loop_run_sessions(run->engine->loop, given, ticks, n);
    for (int i = 0; i < n; i++) {
        const struct tec_frame_record *record = tec_loop_record(run->engine->loop, i);
        struct robot *robot = &run->robots[who[i]];
        bool still = tec_loop_in_flight(run->engine->loop, ticks[i].session) == before[i] &&
                     robot->n_left == left[i];
        CHECK(still || !ticks[i].rests);
        robot->cause[robot->frame] = record->cause;
        robot->filling[robot->frame++] = record->filling;
        CHECK_INT(record->session, ==, who[i] - run->first);
    }
}

static void same(const struct robot *a, const struct robot *b)
{
    CHECK_INT(a->frame, ==, b->frame);
    REQUIRE(a->n_left == b->n_left && a->n_lost == b->n_lost);
    CHECK(memcmp(a->seen, b->seen, sizeof a->seen) == 0);
    CHECK(memcmp(a->chunk, b->chunk, sizeof a->chunk) == 0);
    CHECK(memcmp(a->lost, b->lost, sizeof a->lost) == 0);
    CHECK(memcmp(a->cause, b->cause, sizeof a->cause) == 0);
    CHECK(memcmp(a->filling, b->filling, sizeof a->filling) == 0);
}

/* The rarest of the tokens that a robot says in the middle of its actions. */
static int rarest(const struct robot *robot)
{
    int best = -1, least = robot->n_left + 1;
    for (int i = 0; i < robot->n_left; i++) {
        int n = 0;
        for (int k = 0; k < robot->n_left; k++)
            n += robot->chunk[k][STAGES / 2] == robot->chunk[i][STAGES / 2];
        best = n < least ? (int)robot->chunk[i][STAGES / 2] : best;
        least = n < least ? n : least;
    }
    return best;
}

static void every_robot_as_alone(const char *more)
{
    static struct run all, one;
    int left = 0, gone = 0;
    draw(17);
    ends = -1;
    open_run(&one, 1, 1, more, false);
    for (int f = 0; f < FRAMES; f++)
        step(&one, f);
    ends = rarest(&one.robots[1]);
    close_run(&one);
    for (int interpret = 0; interpret < 2; interpret++) {
        open_run(&all, 0, ROBOTS, more, interpret);
        for (int f = 0; f < FRAMES; f++)
            step(&all, f);
        for (int r = 0; r < ROBOTS; r++) {
            open_run(&one, r, 1, more, false);
            for (int f = 0; f < FRAMES; f++)
                step(&one, f);
            same(&all.robots[r], &one.robots[r]);
            left += one.robots[r].n_left;
            gone += one.robots[r].n_lost;
            close_run(&one);
        }
        close_run(&all);
    }
    CHECK_INT(left, >, FRAMES);
    CHECK_INT(gone, >, 0);
    CHECK_INT(heap.live, ==, 0);
}

TEST(each_robot_has_what_it_has_alone)
{
    every_robot_as_alone(NULL);
}

TEST(the_same_where_keys_move_from_stage_to_stage)
{
    every_robot_as_alone("resources.ring.shift=device_copy");
}

TEST(the_same_where_attention_reads_a_copy)
{
    every_robot_as_alone("resources.ring.pack=gather");
}

TEST(the_same_where_an_instruction_empties_no_ring)
{
    every_robot_as_alone("resources.ring.on_change=keep");
}

/* Robot 1 sees something in every frame. In frame `anew` it begins anew, or has another
 * instruction; -1 = neither. Its first frame is `first`. */
static void watch(struct run *run, int first, int anew, enum turn how)
{
    for (int f = 0; f < FRAMES; f++) {
        script.depth[f] = STAGES;
        script.turn[f][1] = f < first ? ABSENT : f == anew ? how : SEES;
        script.words[f][1] = anew >= 0 && f >= anew && how == SEES ? 2 : 1;
    }
    if (anew < 0 && how == SEES)
        for (int f = 0; f < FRAMES; f++)
            script.words[f][1] = first > 0 ? 2 : 1;
    open_run(run, 1, 1, NULL, false);
    for (int f = 0; f < FRAMES; f++)
        step(run, f);
    close_run(run);
}

/* What the model ended early before a ring was emptied is not missed in what fills it anew. */
static void fills_as_at_first(enum turn how)
{
    static struct run old, late;
    int broken = -1, at = 0;
    ends = -1;
    watch(&old, 0, -1, how);
    ends = rarest(&old.robots[1]);
    watch(&old, 0, -1, how);
    REQUIRE(old.robots[1].n_lost > 0);
    broken = (int)old.robots[1].lost[0];
    int anew = broken + STAGES / 2 + 1; /* right behind its early end */
    watch(&old, 0, anew, how);
    watch(&late, anew, -1, how);
    for (int f = anew; f < FRAMES; f++, at++) {
        CHECK_INT(old.robots[1].cause[f], ==, late.robots[1].cause[at]);
        CHECK(old.robots[1].filling[f] == late.robots[1].filling[at]);
    }
    CHECK_INT(heap.live, ==, 0);
}

TEST(an_episode_does_not_miss_what_an_earlier_one_lost)
{
    fills_as_at_first(SEES_ANEW);
}

TEST(nor_does_a_new_instruction)
{
    fills_as_at_first(SEES);
}

/* Texts have the time of rings that stand still. */
TEST(rings_that_rest_take_no_time_of_a_frame)
{
    static const struct tec_clock wall = {NULL};
    static struct run all;
    ends = -1;
    for (int f = 0; f < FRAMES; f++)
        for (int r = 0; r < ROBOTS; r++)
            script.turn[f][r] = f < 2 * STAGES ? SEES : RESTS, script.depth[f] = STAGES;
    open_run(&all, 0, ROBOTS, NULL, false);
    all.next_ns = tec_clock_now(&wall) + INT64_C(1000000000000);
    for (int f = 0; f < 2 * STAGES; f++)
        step(&all, f);
    CHECK(all.slack < all.most);
    step(&all, 2 * STAGES);
    CHECK(all.slack >= all.least);
    CHECK(all.slack <= all.most);
    close_run(&all);
    CHECK_INT(heap.live, ==, 0);
}

/* One robot's ring is emptied between frames, the others' sequences stay in flight. */
TEST(a_ring_is_emptied_alone)
{
    static struct run all;
    for (int f = 0; f < FRAMES; f++)
        for (int r = 0; r < ROBOTS; r++)
            script.turn[f][r] = SEES, script.words[f][r] = r, script.depth[f] = STAGES;
    open_run(&all, 0, ROBOTS, NULL, false);
    for (int f = 0; f < 3; f++)
        step(&all, f);
    tec_loop_empty_rings(all.engine->loop, 1);
    for (int r = 0; r < ROBOTS; r++)
        CHECK_INT(tec_loop_in_flight(all.engine->loop, r), ==, r == 1 ? 0 : 3);
    step(&all, 3);
    for (int r = 0; r < ROBOTS; r++)
        CHECK_INT(tec_loop_in_flight(all.engine->loop, r), ==, r == 1 ? 1 : 4);
    CHECK_INT(tec_loop_live(all.engine->loop), ==, 9);
    close_run(&all);
    CHECK_INT(heap.live, ==, 0);
}

TAP_MAIN
