/* cause.c - why a frame missed: each cause provoked, on a fake clock and on the real one. */
#include "tests/tiny.h"

#include <unistd.h>

enum { PERIOD = 50000000, DEADLINE = 45000000, LONG = 60000000, WARM = 30 };

static struct tiny tiny;
static struct tiny_observation seen;
static struct tec_error err;

/* What takes long in the next frame. */
enum slow { NOTHING, DEVICE, POLICY, HOST, MEMORY, STOPPED };

static struct trial {
    int64_t now_ns;
    bool real; /* the clock */
    enum slow slow;
    int k; /* that the policy decides */
    struct tec_loop *loop;
} trial;

static const struct tec_clock wall = {NULL};
static int64_t ran_ns; /* CPU time that the executor says it had */

static void pass(enum slow what, int64_t ns)
{
    if (trial.slow != what)
        return;
    if (trial.real)
        usleep((useconds_t)(ns / 1000));
    else
        trial.now_ns += ns;
}

static int64_t took(void *user, int model, int mark, int rows, int k)
{
    (void)model;
    (void)user, (void)rows;
    int64_t usual = mark == TEC_MARK_PREFILL  ? 10000000
                    : mark == TEC_MARK_ACTION ? 20000000
                                              : 3000000 * (int64_t)k;
    return usual + (trial.slow == DEVICE && mark == TEC_MARK_ACTION ? LONG : 0);
}

static enum tec_status plan(void *self, const struct tec_frame_view *view,
                            struct tec_decision *decision, struct tec_error *e)
{
    (void)self, (void)e;
    for (int i = 0; i < view->n_req; i++)
        decision->rows[i].k = trial.k;
    pass(POLICY, LONG);
    return TEC_OK;
}

static void released(void *user, int action, const float *chunk,
                     const struct tec_frame_record *record)
{
    (void)action;
    (void)user, (void)chunk, (void)record;
    pass(HOST, LONG);
}

static void slow_prefix(void *self, struct tec_launch *launch)
{
    struct tec_replay *replay = &launch->replay;
    (void)self;
    replay->start_ns = replay->mark_ns[TEC_MARK_PREFILL] = tec_clock_now(&wall);
    pass(DEVICE, LONG);
    pass(MEMORY, LONG);
    pass(STOPPED, LONG);
    replay->end_ns = replay->mark_ns[TEC_MARK_ACTION] = tec_clock_now(&wall);
    replay->waited_ns = trial.slow == MEMORY ? replay->end_ns - replay->start_ns : 0;
    ran_ns += trial.slow == STOPPED ? 0 : replay->end_ns - replay->start_ns;
}

static int64_t ran(void)
{
    return ran_ns;
}

static void no_actions(void *self, const struct tec_launch *launch, int i, float *chunk)
{
    (void)self, (void)launch, (void)i, (void)chunk;
}

/* Frames before anything happens, so that it is known what is usual. */
static void start(bool real, struct tec_virtual *device)
{
    REQUIRE(tiny_open(&tiny, "pi05", false, 1, 0, &err));
    tiny_observe(&seen, tiny.model, 40);
    trial = (struct trial){.real = real};
    *device = (struct tec_virtual){.clock_ns = &trial.now_ns, .plan = tiny.plan, .took = took};
    struct tec_loop_options o = tiny_loop(&tiny);
    o.chains[0].executor = tec_executor_virtual(device);
    if (real)
        o.chains[0].executor =
            (struct tec_executor){.launch = slow_prefix, .chunk = no_actions, .ran = ran};
    o.planner = (struct tec_planner){.name = "trial", .plan = plan};
    o.period_ns = PERIOD;
    o.actions[0].deadline_ns = DEADLINE;
    o.released = released;
    REQUIRE(tec_loop_create(&trial.loop, &o, &tiny_heap, &err) == TEC_OK);
}

static void finish(void)
{
    tec_loop_destroy(trial.loop);
    tiny_close(&tiny);
    CHECK_INT(tiny_heap.live, ==, 0);
}

/* The frame of a tick. */
static const struct tec_frame_record *frame_at(int64_t tick_ns, enum slow slow, int64_t late_ns,
                                               unsigned spawn)
{
    struct tec_tick tick = tec_loop_tick(trial.loop, tick_ns, spawn);
    tick.late_ns = late_ns;
    trial.slow = slow;
    seen.input.captured_ns = tick_ns;
    return tec_loop_run(trial.loop, &seen.input, &tick);
}

/* The next tick that nobody is busy at. */
static int64_t next_tick(void)
{
    if (trial.real)
        return tec_clock_now(&wall);
    trial.now_ns = (trial.now_ns / PERIOD + 1) * PERIOD;
    return trial.now_ns;
}

static void warm_up(void)
{
    for (int i = 0; i < WARM; i++) {
        const struct tec_frame_record *r = frame_at(next_tick(), NOTHING, 0, 0);
        CHECK_INT(r->cause, ==, TEC_CAUSE_NONE);
        CHECK(!r->missed);
    }
}

/* A frame that misses, and the one that had to wait for it: the same cause. Then all is well. */
static void misses(enum slow slow, int64_t late_ns, enum tec_cause cause)
{
    int64_t tick = next_tick();
    const struct tec_frame_record *r = frame_at(tick, slow, late_ns, 0);
    CHECK(r->missed);
    CHECK_INT(r->cause, ==, cause);
    CHECK_INT(r->overrun_us, >, 0);
    if (late_ns == 0) {
        r = frame_at(tick + PERIOD, NOTHING, 0, 0);
        CHECK(r->missed);
        CHECK_INT(r->cause, ==, cause);
    }
    for (int i = 0; i < 3; i++) {
        r = frame_at(next_tick(), NOTHING, 0, 0);
        CHECK(!r->missed);
        CHECK_INT(r->cause, ==, TEC_CAUSE_NONE);
    }
}

TEST(every_cause_on_a_fake_clock)
{
    struct tec_virtual device;
    start(false, &device);
    warm_up();
    misses(DEVICE, 0, TEC_CAUSE_GPU);
    misses(POLICY, 0, TEC_CAUSE_POLICY);
    misses(HOST, 0, TEC_CAUSE_HOST);
    misses(NOTHING, 30000000, TEC_CAUSE_INPUT);
    finish();
}

TEST(a_plan_that_asks_for_too_much)
{
    struct tec_virtual device;
    start(false, &device);
    warm_up();
    trial.k = 5; /* 30 ms of hard work, 15 of language: fits */
    CHECK(!frame_at(next_tick(), NOTHING, 0, 1)->missed);
    trial.k = 8; /* 24 of language do not */
    const struct tec_frame_record *r = frame_at(next_tick(), NOTHING, 0, 1);
    CHECK(r->missed);
    CHECK_INT(r->cause, ==, TEC_CAUSE_PLAN);
    CHECK_INT(r->overrun_us, ==, 4000);
    finish();
}

TEST(together_the_largest)
{
    struct tec_virtual device;
    start(false, &device);
    warm_up();
    /* 61 ms too late: 60 by the device, 16 by the input, of which 15 were free. */
    const struct tec_frame_record *r = frame_at(next_tick(), DEVICE, 16000000, 0);
    CHECK(r->missed);
    CHECK_INT(r->overrun_us, ==, 61000);
    CHECK_INT(r->cause, ==, TEC_CAUSE_GPU);
    finish();
}

TEST(a_frame_that_nobody_began)
{
    struct tec_virtual device;
    start(false, &device);
    warm_up();
    int64_t tick = next_tick();
    trial.now_ns += LONG; /* the thread was not there */
    const struct tec_frame_record *r = frame_at(tick, NOTHING, 0, 0);
    CHECK(r->missed);
    CHECK_INT(r->cause, ==, TEC_CAUSE_HOST);
    finish();
}

TEST(a_tick_without_an_observation)
{
    struct tec_virtual device;
    start(false, &device);
    warm_up();
    struct tec_tick tick = tec_loop_tick(trial.loop, next_tick(), 0);
    const struct tec_frame_record *r = tec_loop_run(trial.loop, NULL, &tick);
    CHECK(r->missed);
    CHECK_INT(r->cause, ==, TEC_CAUSE_INPUT);
    tick = tec_loop_tick(trial.loop, next_tick(), 0);
    tick.rests = true; /* nobody waits for actions */
    CHECK(!tec_loop_run(trial.loop, NULL, &tick)->missed);
    finish();
}

TEST(a_tick_that_no_frame_was_run_for)
{
    struct tec_virtual device;
    start(false, &device);
    warm_up();
    int64_t tick = next_tick();
    const struct tec_frame_record *r = frame_at(tick, POLICY, 0, 0);
    int64_t end = r->end_ns;
    CHECK_INT(tec_loop_blame(trial.loop, tick, tick + DEADLINE, end), ==, TEC_CAUSE_POLICY);
    /* What a frame lost before the tick is not what made it wait. */
    CHECK_INT(tec_loop_blame(trial.loop, end - 5000000, end - 500000, end + 10000), ==,
              TEC_CAUSE_POLICY);
    CHECK_INT(tec_loop_blame(trial.loop, end - 1000000, end, end + LONG), ==, TEC_CAUSE_HOST);
    r = frame_at(next_tick(), NOTHING, 0, 0);
    CHECK_INT(tec_loop_blame(trial.loop, r->start_ns, r->start_ns + 1000000, r->end_ns), ==,
              TEC_CAUSE_PLAN);
    finish();
}

TEST(what_a_frame_lost_before_the_tick_is_not_counted)
{
    struct tec_virtual device;
    start(false, &device);
    warm_up();
    /* It lost 60 ms to the policy, and ended 1 ms after the next one's tick. */
    int64_t end = frame_at(next_tick(), POLICY, 0, 0)->end_ns;
    const struct tec_frame_record *r = frame_at(end - 1000000, DEVICE, 0, 0);
    CHECK(r->missed);
    CHECK_INT(r->cause, ==, TEC_CAUSE_GPU);
    r = frame_at(r->end_ns - 1000000, HOST, 0, 0);
    CHECK(r->missed);
    CHECK_INT(r->cause, ==, TEC_CAUSE_HOST);
    finish();
}

TEST(causes_on_the_real_clock)
{
    static const struct {
        enum slow slow;
        enum tec_cause cause;
    } all[] = {{DEVICE, TEC_CAUSE_GPU},    {POLICY, TEC_CAUSE_POLICY}, {HOST, TEC_CAUSE_HOST},
               {MEMORY, TEC_CAUSE_MEMORY}, {STOPPED, TEC_CAUSE_HOST},  {MEMORY, TEC_CAUSE_MEMORY},
               {DEVICE, TEC_CAUSE_GPU},    {DEVICE, TEC_CAUSE_GPU},    {STOPPED, TEC_CAUSE_HOST}};
    struct tec_virtual device;
    start(true, &device);
    for (int i = 0; i < WARM; i++)
        frame_at(next_tick(), NOTHING, 0, 0);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const struct tec_frame_record *r = frame_at(next_tick(), all[i].slow, 0, 0);
        CHECK(r->missed);
        CHECK_INT(r->cause, ==, all[i].cause);
    }
    int64_t tick = next_tick(); /* inputs were prepared for so long */
    usleep(LONG / 1000);
    const struct tec_frame_record *r = frame_at(tick, NOTHING, tec_clock_now(&wall) - tick, 0);
    CHECK(r->missed);
    CHECK_INT(r->cause, ==, TEC_CAUSE_INPUT);
    finish();
}

TAP_MAIN
