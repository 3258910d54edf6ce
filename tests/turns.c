/* turns.c - several runtimes on one thread and device: whose frame is next, and what language does
 * while another one waits. */
#include "graph/live/turns.h"
#include "tests/tiny.h"

#include <string.h>

/* --- whose turn it is --------------------------------------------------------------------------
 */

/* A runtime whose frames only write its letter down. */
struct asker {
    struct tec_runtime runtime;
    char letter;
    int64_t due_ns;  /* of what comes */
    int waiting;     /* that has come */
    bool again;      /* whenever one was served, another comes at once */
    int64_t look_ns; /* > 0: what has come waits so long for more, once */
};

static struct tec_turns turns;
static struct asker askers[3];
static char order[64];
static int written, most;

static void end_all(void)
{
    for (int i = 0; i < turns.n; i++)
        tec_runtime_end(turns.of[i]);
}

static bool take(void *user)
{
    static const struct tec_clock wall = {NULL};
    struct asker *a = user;
    if (a->waiting == 0)
        return false;
    if (a->look_ns) {
        tec_runtime_look(&a->runtime, tec_clock_now(&wall) + a->look_ns);
        a->look_ns = 0;
        return false;
    }
    a->waiting -= !a->again;
    order[written++] = a->letter;
    if (written == most)
        end_all();
    return true;
}

static int64_t due(void *user)
{
    const struct asker *a = user;
    return a->waiting ? a->due_ns : INT64_MAX;
}

static int64_t expected(void *user, int64_t now_ns)
{
    const struct asker *a = user;
    return now_ns + a->due_ns;
}

static void join(int n, const struct asker *from)
{
    static const struct tec_runtime_listener nobody;
    memset(order, 0, sizeof order);
    turns = (struct tec_turns){.n = 0};
    written = 0;
    for (int i = 0; i < n; i++) {
        askers[i] = from[i];
        askers[i].letter = (char)('a' + i);
        tec_runtime_init(&askers[i].runtime, &nobody);
        tec_turns_join(&turns, &askers[i].runtime);
        askers[i].runtime.source = (struct tec_runtime_source){
            .take = take, .due = due, .expected = expected, .user = &askers[i]};
    }
}

static void order_is(const char *expected_order)
{
    most = (int)strlen(expected_order);
    tec_turns_work(&turns);
    CHECK_STR(order, expected_order);
}

TEST(the_earliest_deadline_is_first)
{
    const struct asker from[] = {
        {.due_ns = 30, .waiting = 1}, {.due_ns = 20, .waiting = 1}, {.due_ns = 10, .waiting = 1}};
    join(3, from);
    order_is("cba");
}

TEST(who_waits_is_passed_over_once)
{
    const struct asker from[] = {{.due_ns = 1, .waiting = 1, .again = true},
                                 {.due_ns = 2, .waiting = 1, .again = true},
                                 {.due_ns = 90, .waiting = 3}};
    join(3, from);
    order_is("abcabcabcabab");
}

TEST(nobody_stands_still_while_another_gathers)
{
    const struct asker from[] = {{.due_ns = 1, .waiting = 1, .look_ns = 30000000},
                                 {.due_ns = 9, .waiting = 3}};
    join(2, from);
    order_is("babb");
}

TEST(one_that_has_ended_has_no_turns)
{
    const struct asker from[] = {{.due_ns = 1, .waiting = 1, .again = true},
                                 {.due_ns = 9, .waiting = 2}};
    join(2, from);
    turns.drains = true;
    tec_runtime_end(turns.of[0]);
    order_is("bb");
    join(2, from);
    tec_runtime_end(turns.of[0]); /* by itself: all end */
    tec_turns_work(&turns);
    CHECK_INT(written, ==, 0);
}

TEST(a_frame_knows_of_the_others)
{
    const struct asker from[] = {{.due_ns = 50}, {.due_ns = 70}, {.due_ns = 60}};
    join(3, from);
    const struct tec_loop_others first = tec_turns_others(turns.of[0]);
    askers[0].waiting = 1; /* that is no other */
    CHECK(!first.wait(first.self));
    CHECK_INT(first.next(first.self, 1000), ==, 1060);
    askers[1].waiting = 1;
    CHECK(first.wait(first.self));
    CHECK_INT(first.next(first.self, 1000), ==, 1000);
    end_all();
    CHECK(!first.wait(first.self));
    CHECK_INT(first.next(first.self, 1000), ==, INT64_MAX);
}

/* --- what language does ------------------------------------------------------------------------
 */

static struct {
    int64_t now_ns, next_ns;
    int asked, waits_from; /* another one waits from that question on */
    double slack_us;
} other;

static bool other_waits(void *self)
{
    (void)self;
    return other.asked++ >= other.waits_from;
}

static int64_t other_next(void *self, int64_t now_ns)
{
    (void)self;
    return now_ns + other.next_ns;
}

/* Every row is a launch of its own. */
static enum tec_status plan(void *self, const struct tec_frame_view *view,
                            struct tec_decision *decision, struct tec_error *e)
{
    (void)self, (void)e;
    other.slack_us = view->costs.slack(view->costs.self, 0.5);
    for (int i = 0; i < view->n_req; i++) {
        decision->rows[i].k = 1;
        decision->rows[i].group = i;
    }
    return TEC_OK;
}

static int64_t took(void *user, int model, int mark, int rows, int k)
{
    (void)user, (void)model, (void)mark, (void)rows, (void)k;
    return 1000000;
}

/* Launches of text in a frame with four requests, while another loop begins to wait after so many
 * questions. */
static int texts_while(int waits_from, double *slack_us)
{
    struct tiny tiny;
    struct tiny_observation seen;
    struct tec_loop *loop;
    struct tec_error err;
    REQUIRE(tiny_open(&tiny, "pi05", false, 1, 0, &err));
    tiny_observe(&seen, tiny.model, 40);
    struct tec_virtual device = {.clock_ns = &other.now_ns, .plan = tiny.plan, .took = took};
    struct tec_loop_options o = tiny_loop(&tiny);
    o.chains[0].executor = tec_executor_virtual(&device);
    o.planner = (struct tec_planner){.name = "each", .plan = plan};
    o.period_ns = 50000000;
    o.others = (struct tec_loop_others){other_waits, other_next, NULL};
    REQUIRE(tec_loop_create(&loop, &o, &tiny_heap, &err) == TEC_OK);
    int n = 0;
    for (int i = 0; i < 2; i++) { /* two more requests a frame */
        other.waits_from = INT32_MAX;
        struct tec_tick tick = tec_loop_tick(loop, other.now_ns, 3);
        other.asked = 0;
        other.waits_from = i ? waits_from : INT32_MAX;
        const struct tec_frame_record *r = tec_loop_run(loop, &seen.input, &tick);
        n = 0;
        for (int at = 0; at < r->n_launches; at++)
            n += strcmp(r->launches[at].node, "talk") == 0 ||
                 strcmp(r->launches[at].node, "think") == 0;
        CHECK_INT(r->tokens, ==, n);
    }
    *slack_us = other.slack_us;
    tec_loop_destroy(loop);
    tiny_close(&tiny);
    CHECK_INT(tiny_heap.live, ==, 0);
    return n;
}

TEST(language_ends_behind_its_launch_while_another_waits)
{
    double slack;
    other.next_ns = 7000000;
    CHECK_INT(texts_while(INT32_MAX, &slack), ==, 4);
    CHECK_INT(texts_while(0, &slack), ==, 1);
    CHECK_INT(texts_while(2, &slack), ==, 3);
    CHECK(slack == 7000.0); /* until another is thought to come */
    other.next_ns = 1000000000;
    texts_while(0, &slack);
    CHECK(slack > 7000.0 && slack < 50000.0);
}

/* Until the next tick, less what the hard nodes of this frame take: nothing where it has nothing to
 * act on. */
static double slack_with(bool observed)
{
    struct tiny tiny;
    struct tiny_observation seen;
    struct tec_loop *loop;
    struct tec_error err;
    REQUIRE(tiny_open(&tiny, "pi05", false, 1, 0, &err));
    tiny_observe(&seen, tiny.model, 40);
    struct tec_virtual device = {.clock_ns = &other.now_ns, .plan = tiny.plan, .took = took};
    struct tec_loop_options o = tiny_loop(&tiny);
    o.chains[0].executor = tec_executor_virtual(&device);
    o.planner = (struct tec_planner){.name = "each", .plan = plan};
    o.period_ns = 50000000;
    REQUIRE(tec_loop_create(&loop, &o, &tiny_heap, &err) == TEC_OK);
    for (int i = 0; i < 3; i++) { /* costs are known behind the first */
        other.waits_from = INT32_MAX;
        struct tec_tick tick = tec_loop_tick(loop, other.now_ns, i == 0);
        tec_loop_run(loop, i < 2 || observed ? &seen.input : NULL, &tick);
    }
    tec_loop_destroy(loop);
    tiny_close(&tiny);
    return other.slack_us;
}

TEST(a_frame_without_an_observation_has_all_its_time_for_language)
{
    double with = slack_with(true), without = slack_with(false);
    CHECK(with > 0.0 && with < 50000.0);
    CHECK(without == 50000.0);
}

TAP_MAIN
