/* policy.c - tests of policies against hand-filled views: what they decide, what they cost, and how
 * they fail. */
#include "policies/host/policy.h"
#include "base/clock.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <unistd.h>

static struct tec_heap heap;
static struct tec_error err;
static const struct tec_clock wall = {NULL};

/* Test machines are shared, so these budgets are far above what a call takes. */
static const struct tec_policy_limits patient = {.soft_us = 50000, .hard_us = 100000};

static const char *const inputs[] = {"cam_high", "state"};
static const char *const kv_names[] = {"obs", "lang"};
static const char *const partitions[] = {"rt", "bg"};

static struct tec_topology topology(void)
{
    return (struct tec_topology){
        .n_nodes = 4,
        .nodes = {{.name = "see", .kind = "prefill"},
                  {.name = "act",
                   .kind = "action",
                   .partition = "rt",
                   .deadline_us = 45000,
                   .hard = true},
                  {.name = "talk", .kind = "decode", .partition = "bg", .deadline_us = 1500000},
                  {.name = "look", .kind = "prefill", .optional = true}},
        .n_batch = 4,
        .batch = {1, 2, 4, 8},
        .n_k = 3,
        .k = {4, 5, 8},
        .n_inputs = 2,
        .inputs = inputs,
        .n_kv = 2,
        .kv = kv_names,
        .n_partitions = 2,
        .partitions = partitions,
        .slots = 8,
        .horizon = 50,
        .layers = 18,
        .period_us = 50000,
        .seed = 7};
}

static double cost(const void *self, const char *what, double point, double q)
{
    (void)self;
    return strcmp(what, "decode") == 0 ? 4000 + 50 * point + 10 * q : -1;
}

static double slack(const void *self, double q)
{
    (void)self;
    return 20000 - 1000 * q;
}

static const int64_t late[] = {120, 0};
static const struct tec_kv_view pools[] = {{"lang", 100, 8000, 1800, 10, 3},
                                           {"obs", 968, 968, 17000, 968, 0}};
static struct tec_request_view requests[TEC_MAX_ROWS];

static struct tec_frame_view frame(int n_req)
{
    for (int i = 0; i < TEC_MAX_ROWS; i++)
        requests[i] = (struct tec_request_view){.id = 100 + i,
                                                .node = 2,
                                                .left = 30 - i % 8,
                                                .done = i % 8,
                                                .max = 30,
                                                .age_frames = i,
                                                .born_us = 1000 * (int64_t)i,
                                                .deadline_us = INT64_MAX,
                                                .slack_us = INT64_MAX,
                                                .kv_bytes = 4096,
                                                .shared = true,
                                                .fresh = i == n_req - 1};
    return (struct tec_frame_view){.index = 41,
                                   .now_us = 2050000,
                                   .deadline_us = 2095000,
                                   .budget_us = 45000,
                                   .period_us = 50000,
                                   .n_req = n_req,
                                   .slots = 8,
                                   .horizon = 50,
                                   .req = requests,
                                   .n_kv = 2,
                                   .kv = pools,
                                   .n_inputs = 2,
                                   .late_us = late,
                                   .costs = {cost, slack, NULL},
                                   .last = {.total_us = 40000, .n_nodes = 4, .tokens = 12},
                                   .seed = 7};
}

static char scratch_path[64];

/* Write a policy file with this text; there is one at a time. */
static const char *file(const char *text)
{
    snprintf(scratch_path, sizeof scratch_path, "/tmp/tectum-%d.lua", (int)getpid());
    FILE *f = fopen(scratch_path, "w");
    REQUIRE(f);
    fputs(text, f);
    fclose(f);
    return scratch_path;
}

static struct tec_policy *open_with(const char *name, const struct tec_topology *t,
                                    const struct tec_policy_limits *limits)
{
    struct tec_policy *policy = NULL;
    err.message[0] = '\0';
    if (tec_policy_open(&policy, name, ".", t, limits, NULL, 0, &heap, &err) != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    if (name == scratch_path)
        unlink(name);
    return policy;
}

static struct tec_policy *open_plan(const char *body, const struct tec_topology *t,
                                    const struct tec_policy_limits *limits)
{
    static char text[8192];
    snprintf(text, sizeof text,
             "return policy { name = 'try', api = 1, plan = function(S, F, D)\n%s\nend }", body);
    return open_with(file(text), t, limits);
}

static enum tec_status plan(struct tec_policy *policy, const struct tec_topology *t,
                            const struct tec_frame_view *view, struct tec_decision *decision)
{
    struct tec_planner planner = tec_policy_planner(policy);
    tec_planner_default(t, view, decision);
    return planner.plan(planner.self, view, decision, &err);
}

/* --- the default plan ------------------------------------------------------------------- */

TEST(snapping)
{
    static const int points[] = {4, 5, 8};
    CHECK_INT(tec_snap_down(points, 3, 3), ==, 0);
    CHECK_INT(tec_snap_down(points, 3, 4), ==, 4);
    CHECK_INT(tec_snap_down(points, 3, 7), ==, 5);
    CHECK_INT(tec_snap_down(points, 3, 900), ==, 8);
    CHECK_INT(tec_snap_up(points, 3, 1), ==, 4);
    CHECK_INT(tec_snap_up(points, 3, 6), ==, 8);
    CHECK_INT(tec_snap_up(points, 3, 9), ==, 8);
    CHECK_INT(tec_snap_down(points, 0, 9), ==, 0);
    CHECK_INT(tec_snap_up(points, 0, 9), ==, 0);
}

TEST(default_plan_guards_hard_nodes)
{
    struct tec_topology t = topology();
    struct tec_frame_view view = frame(3);
    struct tec_decision d;
    tec_planner_default(&t, &view, &d);
    CHECK_INT(d.n_rows, ==, 3);
    CHECK_INT(d.rows[0].k, ==, 0);
    CHECK(!d.nodes[1].skip && !d.nodes[0].skip && d.nodes[3].skip);
    CHECK_INT(d.nodes[0].partition, ==, -1);
    t.nodes[1].hard = false;
    t.n_depth = 2;
    t.depth[0] = 1;
    t.depth[1] = 7;
    tec_planner_default(&t, &view, &d);
    CHECK_INT(d.rows[2].k, ==, 8);
    CHECK(!d.nodes[3].skip);
    CHECK_INT(d.depth[0], ==, 7);
}

/* --- bundled policies ------------------------------------------------------------------- */

TEST(oxygen_advances_all_by_k)
{
    struct tec_topology t = topology();
    struct tec_frame_view view = frame(8);
    struct tec_decision d;
    struct tec_policy *policy = open_with("oxygen", &t, &patient);
    REQUIRE(policy);
    CHECK_STR(tec_policy_name(policy), "oxygen");
    CHECK_INT(tec_policy_version(policy), ==, 1);
    REQUIRE(plan(policy, &t, &view, &d) == TEC_OK);
    for (int i = 0; i < 8; i++) {
        CHECK_INT(d.rows[i].k, ==, 5);
        CHECK(d.rows[i].group == 0 && !d.rows[i].unshare && !d.rows[i].shed);
    }
    CHECK_INT(d.snapped, ==, 0);
    CHECK_INT(tec_policy_set_param(policy, "k", 7, &err), ==, TEC_OK);
    REQUIRE(plan(policy, &t, &view, &d) == TEC_OK);
    CHECK_INT(d.rows[0].k, ==, 5);
    CHECK_INT(d.snapped, ==, 8);
    CHECK_INT(tec_policy_set_param(policy, "k", 2, &err), ==, TEC_OK);
    REQUIRE(plan(policy, &t, &view, &d) == TEC_OK);
    CHECK_INT(d.rows[0].k, ==, 0);
    tec_policy_close(policy);
    CHECK_INT(heap.live, ==, 0);
}

TEST(isolated_and_the_halves)
{
    struct tec_topology t = topology();
    struct tec_frame_view view = frame(3);
    struct tec_decision d;
    static const struct {
        const char *name;
        int k;
        bool unshare, alone;
    } cases[] = {{"isolated", 8, true, true},
                 {"shared_kv", 8, false, true},
                 {"batch_only", 5, true, false},
                 {"default", 0, false, false}};
    for (int c = 0; c < 4; c++) {
        struct tec_policy *policy = open_with(cases[c].name, &t, &patient);
        REQUIRE(policy);
        REQUIRE(plan(policy, &t, &view, &d) == TEC_OK);
        for (int i = 0; i < 3; i++) {
            CHECK_INT(d.rows[i].k, ==, cases[c].k);
            CHECK_INT(d.rows[i].unshare, ==, cases[c].unshare);
            CHECK_INT(d.rows[i].group, ==, cases[c].alone ? i + 1 : 0);
        }
        tec_policy_close(policy);
    }
}

/* --- views ------------------------------------------------------------------------------ */

TEST(views_show_the_frame)
{
    struct tec_topology t = topology();
    struct tec_frame_view view = frame(3);
    struct tec_decision d;
    struct tec_policy *policy = open_plan(
        "assert(F.index == 41 and F.now_us == 2050000 and F.deadline_us == 2095000)\n"
        "assert(F.budget_us == 45000 and F.period_us == 50000 and F.slots == 8)\n"
        "assert(F.horizon == 50 and F.nreq == 3 and #F.req == 3 and F.req[4] == nil)\n"
        "local r = F.req[2]\n"
        "assert(r.id == 101 and r.node == 'talk' and r.left == 29 and r.done == 1)\n"
        "assert(r.max == 30 and r.age_frames == 1 and r.born_us == 1000 and r.prio == 0)\n"
        "assert(r.deadline_us == math.huge and r.slack_us == math.huge)\n"
        "assert(r.kv_bytes == 4096 and r.shared and not r.fresh and F.req[3].fresh)\n"
        "assert(F.cost('decode', 4, 0.5) == 4205 and F.cost('decode', 0, 0) == 4000)\n"
        "assert(F.slack_us(1) == 19000 and F.slack_us(0) == 20000)\n"
        "assert(F.kv('lang').used == 100 and F.kv('lang').oldest == 3)\n"
        "assert(F.kv('obs').cap == 968 and F.kv('obs').bytes == 17000)\n"
        "assert(F.late.cam_high == 120 and F.late.state == 0)\n"
        "assert(F.last.total_us == 40000 and F.last.tokens == 12 and not F.last.missed)\n"
        "assert(F.last.cause == 'none' and F.last.node_us.act == 0)\n"
        "local n = 0 for i, q in ipairs(F.req) do n = n + i end assert(n == 6)\n"
        "D:note('x', F.rng()) D:note('y', F.rng())",
        &t, &patient);
    REQUIRE(policy);
    REQUIRE(plan(policy, &t, &view, &d) == TEC_OK);
    CHECK(d.n_notes == 2 && d.notes[0].is_number && d.notes[0].number != d.notes[1].number);
    CHECK(d.notes[0].number >= 0 && d.notes[0].number < 1);
    double first = d.notes[0].number;
    REQUIRE(plan(policy, &t, &view, &d) == TEC_OK);
    CHECK(d.notes[0].number == first);
    tec_policy_close(policy);
}

TEST(fewer_and_more_requests)
{
    struct tec_topology t = topology();
    struct tec_decision d;
    struct tec_policy *policy =
        open_plan("D:note('n', #F.req) for i = 1, F.nreq do D:decode(i, 4) end", &t, &patient);
    REQUIRE(policy);
    static const int counts[] = {0, 8, 3, TEC_MAX_ROWS, 1, 0};
    for (int i = 0; i < 6; i++) {
        struct tec_frame_view view = frame(counts[i]);
        REQUIRE(plan(policy, &t, &view, &d) == TEC_OK);
        CHECK(d.notes[0].number == counts[i]);
        CHECK_INT(d.n_rows, ==, counts[i]);
    }
    tec_policy_close(policy);
}

TEST(setup_sees_the_topology)
{
    struct tec_topology t = topology();
    struct tec_policy *policy = open_with(
        file("return policy { name = 'see', api = 1, version = 3, plan = function(S, F, D)\n"
             "D:note('k', S.k) end, state = { k = 0 }, setup = function(S, T)\n"
             "assert(T.layers == 18 and T.period_us == 50000 and T.slots == 8)\n"
             "assert(T.horizon == 50 and #T.partitions == 2 and T.partitions[1] == 'rt')\n"
             "assert(T.node('act').hard and T.node('act').deadline_us == 45000)\n"
             "assert(T.node('talk').kind == 'decode' and T.node('talk').partition == 'bg')\n"
             "assert(#T.axis('batch') == 4 and #T.axis('depth') == 0)\n"
             "assert(T.kv('lang').name == 'lang')\n"
             "S.k = T.axis('k')[3] end }"),
        &t, &patient);
    REQUIRE(policy);
    struct tec_frame_view view = frame(1);
    struct tec_decision d;
    REQUIRE(plan(policy, &t, &view, &d) == TEC_OK);
    CHECK(d.notes[0].number == 8);
    tec_policy_close(policy);
}

/* --- decisions -------------------------------------------------------------------------- */

TEST(decisions_are_written)
{
    struct tec_topology t = topology();
    struct tec_frame_view view = frame(6);
    struct tec_decision d;
    struct tec_policy *policy = open_plan(
        "D:decode(1, 7.9) D:decode(1, 7.9) D:decode(2, 3) D:decode(3, 1e300) D:decode(4, -5)\n"
        "D:pause(3) D:resume(3) D:resume(5) D:shed(6, 'too\\nold') D:batch(2, 3)\n"
        "D:decode(5, 8) D:shed(5) D:resume(5) D:unshare(1) D:priority(1, 9)\n"
        "D:priority('act', 2) D:skip('look', 'dark') D:run('look') D:skip('look', 'dim')\n"
        "D:partition('talk', 'rt') D:note('a', 1) D:note('a', 'two') D:note('b', 2.5)",
        &t, &patient);
    REQUIRE(policy);
    REQUIRE(plan(policy, &t, &view, &d) == TEC_OK);
    static const int k[] = {5, 0, 8, 0, 8, 0};
    for (int i = 0; i < 6; i++)
        CHECK_INT(d.rows[i].k, ==, k[i]);
    CHECK_INT(d.snapped, ==, 2); /* 7.9 -> 5 and 3 -> 0; a pause by resume or -5 is none */
    CHECK(d.rows[5].shed && !d.rows[4].shed);
    CHECK_STR(d.rows[5].reason, "too?old");
    CHECK(d.rows[1].group == 3 && d.rows[0].unshare && d.rows[0].priority == 9);
    CHECK(d.nodes[1].priority == 2 && d.nodes[3].skip && d.nodes[2].partition == 0);
    CHECK_STR(d.nodes[3].reason, "dim");
    CHECK_INT(d.n_notes, ==, 2);
    CHECK(!d.notes[0].is_number && strcmp(d.notes[0].text, "two") == 0);
    CHECK(d.notes[1].is_number && d.notes[1].number == 2.5);
    tec_policy_close(policy);
}

TEST(depth_snaps_to_a_captured_ring)
{
    struct tec_topology t = topology();
    struct tec_frame_view view = frame(0);
    struct tec_decision d;
    t.n_rings = 1;
    t.rings[0].name = "obs";
    t.rings[0].stages = 7;
    t.n_depth = 2;
    t.depth[0] = 2;
    t.depth[1] = 7;
    struct tec_policy *policy = open_plan("D:depth('obs', 6)", &t, &patient);
    REQUIRE(policy);
    REQUIRE(plan(policy, &t, &view, &d) == TEC_OK);
    CHECK(d.depth[0] == 2 && d.snapped == 1);
    tec_policy_close(policy);
    policy = open_plan("D:depth('obs', 1)", &t, &patient);
    REQUIRE(policy && plan(policy, &t, &view, &d) == TEC_OK);
    CHECK(d.depth[0] == 2 && d.snapped == 1);
    tec_policy_close(policy);
}

static const struct {
    const char *body, *says;
} refusals[] = {
    {"D:decode(9, 4)", "no request 9:"},
    {"D:decode(0, 4)", "no request 0:"},
    {"D:decode(1.5, 4)", "no request 1.5"},
    {"D:decode(0/0, 4)", "i is not a number (NaN)"},
    {"D:decode(1, 0/0)", "k is not a number (NaN)"},
    {"D:decode(1, '4')", "k must be a number, it is string"},
    {"D:decode(1)", "k must be a number, it is no value"},
    {"D.decode(1, 4)", "with a colon"},
    {"D:decod(1, 4)", "no field 'decod' in decision object, did you mean 'decode'?"},
    {"D.decode = nil D:decode(1, 4) D.new = 1", "attempt to call a nil value|no field"},
    {"D.fresh = 1", "decision object is read-only"},
    {"D:batch(1, -1)", "group must be an integer from 0 to 64"},
    {"D:batch(1, 1e9)", "group must be an integer"},
    {"D:priority(1, 1001)", "priority must be an integer"},
    {"D:priority('axt', 1)", "unknown node 'axt', did you mean 'act'?"},
    {"D:skip('act')", "hard node 'act' cannot be skipped"},
    {"D:skip('talk')", "no when = policy()"},
    {"D:run('talk')", "no when = policy()"},
    {"D:skip(3)", "node must be a name, it is number"},
    {"D:depth('obs', 3)", "captures no depth"},
    {"D:depth('ring', 3)", "unknown ring 'ring'"},
    {"D:partition('talk', 'xx')", "unknown partition 'xx'"},
    {"D:note(1, 1)", "key must be a name"},
    {"D:note('x', 0/0)", "NaN"},
    {"D:note('x', {})", "note must be a name, it is table"},
    {"D:note('a key that is far too long', 1)", "at most 23 bytes"},
    {"for i = 1, 9 do D:note('n' .. i, i) end", "more than 8 notes"},
    {"D:recompute('see', {})", "the pipeline has no memory_load node"},
    {"D:load_order(1, 1)", "the pipeline has no memory_load node"},
    {"D:skip_segment(1)", "the pipeline has no memory_load node"},
    {"local x = F.reqs", "no field 'reqs' in frame view, did you mean 'req'?"},
    {"local x = F.req[1].ids", "no field 'ids' in request view, did you mean 'id'?"},
    {"local x = F.req.n", "no field 'n' in list of requests"},
    {"local x = F[{}]", "no field 'table' in frame view"},
    {"F.mine = 1", "frame view is read-only"},
    {"F.req[60] = 1", "list of requests is read-only"},
    {"local x = F.params.k", "no field 'k' in parameters"},
    {"local x = F.late.cam", "no field 'cam' in lateness of inputs"},
    {"F.cost('fly', 1, 0.5)", "no cost is known for 'fly'"},
    {"F.cost('decode', 0/0)", "must be finite"},
    {"F.cost('decode', 1, 2)", "q must lie between 0 and 1"},
    {"F.cost(1)", "the name is number"},
    {"F.slack_us(0/0)", "q must lie between 0 and 1"},
    {"F.kv('lung')", "unknown resource 'lung', did you mean 'lang'?"},
    {"error('no idea')", "tectum-"},
    {"local t = {} for i = 1, 1e9 do t[i] = i end", "more memory than allowed"},
    {"while true do end", "time budget used up"},
    {"local function f() return f() end f()", "time budget used up"},
    {"for i = 1, 1e9 do D:decode(1, 4) end", "time budget used up"},
};

static bool says_one_of(const char *message, const char *says)
{
    const char *bar = strchr(says, '|');
    char first[100];
    snprintf(first, sizeof first, "%.*s", bar ? (int)(bar - says) : 99, says);
    return strstr(message, first) || (bar && strstr(message, bar + 1));
}

TEST(refusals_leave_the_default_plan)
{
    static const struct tec_policy_limits brisk = {.hard_us = 20000};
    struct tec_topology t = topology();
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        struct tec_frame_view view = frame(4);
        struct tec_decision d = {0}, expected = {0}; /* behind the counts nothing is written */
        char body[300];
        snprintf(body, sizeof body, "D:decode(2, 8) D:note('seen', 1)\n%s", refusals[i].body);
        struct tec_policy *policy = open_plan(body, &t, &brisk);
        REQUIRE(policy);
        tec_planner_default(&t, &view, &expected);
        int64_t start = tec_clock_now(&wall);
        enum tec_status status = plan(policy, &t, &view, &d);
        const struct tec_policy_report *report = tec_policy_report(policy);
        bool good = status != TEC_OK && says_one_of(err.message, refusals[i].says) &&
                    memcmp(&d, &expected, sizeof d) == 0 && report->strikes == 1 &&
                    report->failures == 1 && report->last_failure == 41 &&
                    tec_clock_now(&wall) - start < 500000000;
        if (!good)
            fprintf(stderr, "# %s -> %s: %s\n", refusals[i].body, tec_status_name(status),
                    err.message);
        CHECK(good);
        tec_policy_close(policy);
    }
    CHECK_INT(heap.live, ==, 0);
}

/* --- strikes ---------------------------------------------------------------------------- */

TEST(three_strikes_and_the_default_plan_stays)
{
    struct tec_topology t = topology();
    struct tec_decision d;
    struct tec_policy *policy =
        open_plan("D:decode(1, 4) if F.index % 40 == 0 then local x = F.reqs end", &t, &patient);
    REQUIRE(policy);
    const struct tec_policy_report *report = tec_policy_report(policy);
    for (int i = 1; i <= 400; i++) {
        struct tec_frame_view view = frame(2);
        view.index = i;
        enum tec_status status = plan(policy, &t, &view, &d);
        bool fails = i % 40 == 0 && i <= 120;
        CHECK_INT(status, ==, fails ? TEC_POLICY : TEC_OK);
        CHECK_INT(d.rows[0].k, ==, fails || i > 120 ? 0 : 4);
        CHECK_INT(report->quarantined, ==, i >= 120);
    }
    CHECK_INT(report->failures, ==, 3);
    CHECK_INT(report->calls, ==, 120);
    CHECK(strstr(report->message, "frame 120: policy 'try' failed: "));
    CHECK(strstr(report->message, ":2: no field 'reqs' in frame view"));
    CHECK(strstr(report->message, "(strike 3/3), quarantined"));
    tec_policy_close(policy);
}

TEST(strikes_outside_the_window_are_forgiven)
{
    static const struct tec_policy_limits limits = {
        .hard_us = 100000, .strikes = 2, .window_frames = 30};
    struct tec_topology t = topology();
    struct tec_decision d;
    struct tec_policy *policy = open_plan("if F.index % 40 == 0 then error('x') end", &t, &limits);
    REQUIRE(policy);
    for (int i = 1; i <= 200; i++) {
        struct tec_frame_view view = frame(0);
        view.index = i;
        plan(policy, &t, &view, &d);
    }
    CHECK_INT(tec_policy_report(policy)->failures, ==, 5);
    CHECK(!tec_policy_report(policy)->quarantined);
    tec_policy_close(policy);
}

TEST(a_state_goes_on_after_an_abort)
{
    static const struct tec_policy_limits limits = {.hard_us = 5000, .strikes = 16};
    struct tec_topology t = topology();
    struct tec_decision d;
    struct tec_policy *policy = open_plan(
        "local t = {}\nif F.index == 1 then while true do end\n"
        "elseif F.index == 2 then for i = 1, 1e9 do t[i] = {} end\n"
        "elseif F.index == 3 then local function f() return 1 + f() end f() end D:decode(1, 4)",
        &t, &limits);
    REQUIRE(policy);
    struct tec_planner planner = tec_policy_planner(policy);
    struct tec_frame_result result = {0};
    for (int i = 1; i <= 20; i++) {
        struct tec_frame_view view = frame(1);
        view.index = i;
        CHECK_INT(plan(policy, &t, &view, &d) == TEC_OK, ==, i > 3);
        CHECK_INT(d.rows[0].k, ==, i > 3 ? 4 : 0);
        planner.observe(planner.self, &view, &result);
    }
    tec_policy_close(policy);
}

/* --- other hooks ------------------------------------------------------------------------ */

static const char hooks_text[] =
    "return policy { name = 'hooks', api = 1, state = { seen = 0, total = 0 },\n"
    "admit = function(S, F, r)\n"
    "  if r.id == 1 then return true end\n"
    "  if r.id == 2 then return false, 'no slot' end\n"
    "  if r.id == 3 then return end\n"
    "  if r.id == 4 then return 'yes' end\n"
    "  return nosuch end,\n"
    "evict = function(S, F, n) if n == 1 then return F.nreq end if n == 2 then return 99 end\n"
    "  return nil end,\n"
    "observe = function(S, F, R) S.seen = S.seen + 1 S.total = S.total + R.node_us.act\n"
    "  assert(R.cause == 'gpu' and R.missed and R.overrun_us == 5) end,\n"
    "plan = function(S, F, D) D:note('seen', S.seen) D:note('total', S.total) end }";

TEST(admit_observe_and_evict)
{
    struct tec_topology t = topology();
    struct tec_frame_view view = frame(3);
    struct tec_decision d;
    static const struct tec_policy_limits limits = {.hard_us = 100000, .strikes = 16};
    struct tec_policy *policy = open_with(file(hooks_text), &t, &limits);
    REQUIRE(policy);
    struct tec_planner planner = tec_policy_planner(policy);
    REQUIRE(planner.admit && planner.evict && planner.observe);
    static const bool admitted[] = {true, false, true, true, true};
    for (int i = 0; i < 5; i++) {
        struct tec_request_view r = {.id = i + 1, .node = 2};
        char reason[32] = "";
        CHECK_INT(planner.admit(planner.self, &view, &r, reason), ==, admitted[i]);
        CHECK_STR(reason, i == 1 ? "no slot" : "");
    }
    CHECK_INT(tec_policy_report(policy)->failures, ==, 2);
    CHECK_INT(planner.evict(planner.self, &view, 1), ==, 2);
    CHECK_INT(planner.evict(planner.self, &view, 2), ==, -1);
    CHECK_INT(planner.evict(planner.self, &view, 3), ==, -1);
    CHECK_INT(tec_policy_report(policy)->failures, ==, 3);
    struct tec_frame_result result = {.missed = true,
                                      .cause = TEC_CAUSE_GPU,
                                      .overrun_us = 5,
                                      .n_nodes = 4,
                                      .node_us = {1, 12, 3, 4}};
    planner.observe(planner.self, &view, &result);
    planner.observe(planner.self, &view, &result);
    REQUIRE(plan(policy, &t, &view, &d) == TEC_OK);
    CHECK(d.notes[0].number == 2 && d.notes[1].number == 24);
    CHECK_INT(tec_policy_report(policy)->failures, ==, 3);
    tec_policy_close(policy);
}

TEST(views_mean_nothing_outside_their_call)
{
    struct tec_topology t = topology();
    struct tec_frame_view view = frame(1);
    struct tec_frame_result result = {0};
    struct tec_decision d;
    struct tec_policy *policy = open_with(file("local d return policy { name = 'keep', api = 1,\n"
                                               "plan = function(S, F, D) d = D end,\n"
                                               "observe = function(S, F, R) d:decode(1, 4) end }"),
                                          &t, &patient);
    REQUIRE(policy);
    struct tec_planner planner = tec_policy_planner(policy);
    REQUIRE(plan(policy, &t, &view, &d) == TEC_OK);
    planner.observe(planner.self, &view, &result);
    CHECK(strstr(tec_policy_report(policy)->message, "D can be used inside plan only"));
    tec_policy_close(policy);
}

/* --- loading ---------------------------------------------------------------------------- */

#define POLICY(rest) "return policy { name = 'x', api = 1, plan = function() end, " rest " }"

static const struct {
    const char *text;
    enum tec_status status;
    const char *says;
} loads[] = {
    {"return policy { name = 'x', api = 1 }", TEC_POLICY, "field 'plan' must be a function"},
    {"return policy { api = 1, plan = function() end }", TEC_POLICY, "field 'name'"},
    {"return policy { name = 'x', plan = function() end }", TEC_POLICY, "field 'api'"},
    {"return policy { name = 'x', api = 2, plan = function() end }", TEC_POLICY, "api must be 1"},
    {"\n" POLICY("plam = 1"), TEC_POLICY,
     ".lua:2: unknown field 'plam' in policy, did you mean 'plan'?"},
    {POLICY("on_frame = function() end"), TEC_POLICY, "unknown field 'on_frame' in policy"},
    {POLICY("observe = 3"), TEC_POLICY, "field 'observe' must be a function, it is number"},
    {POLICY("3"), TEC_POLICY, "named fields only"},
    {POLICY("version = 1.5"), TEC_POLICY, "version must be an integer"},
    {POLICY("needs = { 'depth' }"), TEC_UNSUPPORTED, "needs axis 'depth'"},
    {POLICY("needs = { 'width' }"), TEC_POLICY, "needs 'width', which is no axis"},
    {POLICY("params = { k = 3 }"), TEC_POLICY, "parameter 'k' must be int{} or num{}"},
    {POLICY("params = { int { default = 1 } }"), TEC_POLICY, "named fields only"},
    {POLICY("params = { k = int { default = 1.5 } }"), TEC_POLICY, "must be integers"},
    {POLICY("params = { k = int { default = 9, max = 3 } }"), TEC_POLICY, "must lie between"},
    {POLICY("params = { k = num { default = 0/0 } }"), TEC_POLICY, "finite number"},
    {POLICY("params = { k = num { min = 1 } }"), TEC_POLICY, "'default' is missing"},
    {POLICY("params = { k = num { default = 1, mx = 2 } }"), TEC_POLICY, "did you mean 'max'?"},
    {POLICY("params = { k = num { default = 1, max = 1e308 } }"), TEC_POLICY, "limits are"},
    {POLICY("state = { f = function() end }"), TEC_MALFORMED, "state: value at .f: a function"},
    {POLICY("state = { x = 0/0 }"), TEC_MALFORMED, "not finite"},
    {POLICY("setup = function() error('bad luck') end"), TEC_POLICY, "setup: "},
    {POLICY("setup = function(S, T) T.node('akt') end"), TEC_POLICY, "did you mean 'act'?"},
    {POLICY("setup = function(S, T) T.axis('kk') end"), TEC_POLICY, "unknown axis 'kk'"},
    {POLICY("setup = function() while true do end end"), TEC_TIME, "time budget"},
    {POLICY("") " )", TEC_MALFORMED, ":1: <eof> expected"},
    {"while true do end", TEC_TIME, "time budget"},
    {"return 3", TEC_POLICY, "must end with 'return policy"},
    {"policy { name = 'x', api = 1, plan = function() end }", TEC_POLICY, "must end with"},
    {"policy { name = 'y', api = 1, plan = function() end }\n" POLICY(""), TEC_POLICY,
     "one policy"},
    {"return pipeline { name = 'x' }", TEC_MALFORMED, "is a pipeline file"},
    {"\x1bLua", TEC_MALFORMED, "binary chunk"},
    {"", TEC_POLICY, "must end with"},
};

TEST(wrong_files_are_refused_with_a_place)
{
    struct tec_topology t = topology();
    for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++) {
        struct tec_policy *policy = NULL;
        enum tec_status status =
            tec_policy_open(&policy, file(loads[i].text), ".", &t, &patient, NULL, 0, &heap, &err);
        unlink(scratch_path);
        bool good = status == loads[i].status && !policy && strstr(err.message, loads[i].says);
        if (!good)
            fprintf(stderr, "# %s -> %s: %s\n", loads[i].text, tec_status_name(status),
                    status == TEC_OK ? "" : err.message);
        CHECK(good);
        tec_policy_close(policy);
    }
    CHECK_INT(heap.live, ==, 0);
}

TEST(names_are_looked_up_below_the_root)
{
    struct tec_topology t = topology();
    struct tec_policy *policy;
    CHECK_INT(tec_policy_open(&policy, "oxigen", ".", &t, NULL, NULL, 0, &heap, &err), ==,
              TEC_NOT_FOUND);
    CHECK(strstr(err.message, "did you mean 'oxygen'?"));
    CHECK_INT(tec_policy_open(&policy, "oxygen", "/nowhere", &t, NULL, NULL, 0, &heap, &err), ==,
              TEC_NOT_FOUND);
    CHECK_INT(tec_policy_open(&policy, "policies/none.lua", ".", &t, NULL, NULL, 0, &heap, &err),
              ==, TEC_NOT_FOUND);
    CHECK_INT(tec_policy_open(&policy, "policies/oxygen.lua", "/nowhere", &t, &patient, NULL, 0,
                              &heap, &err),
              ==, TEC_OK);
    tec_policy_close(policy);
    t.n_k = 0;
    CHECK_INT(tec_policy_open(&policy, "oxygen", ".", &t, &patient, NULL, 0, &heap, &err), !=,
              TEC_OK);
    CHECK(strstr(err.message, "needs axis 'decode.k'"));
}

TEST(parameters_are_checked)
{
    struct tec_topology t = topology();
    struct tec_policy *policy;
    struct tec_param_value given = {"k", 8};
    REQUIRE(tec_policy_open(&policy, "oxygen", ".", &t, &patient, &given, 1, &heap, &err) ==
            TEC_OK);
    const struct tec_param *k = tec_policy_param(policy, 0);
    REQUIRE(k && !tec_policy_param(policy, 1));
    CHECK(k->is_int && k->value == 8 && k->def == 5 && k->min == 1 && k->max == 32);
    struct tec_frame_view view = frame(1);
    struct tec_decision d;
    REQUIRE(plan(policy, &t, &view, &d) == TEC_OK);
    CHECK_INT(d.rows[0].k, ==, 8);
    static const double wrong[] = {0, 33, 4.5, -1, 1e300};
    for (int i = 0; i < 5; i++)
        CHECK_INT(tec_policy_set_param(policy, "k", wrong[i], &err), ==, TEC_INVALID);
    CHECK(strstr(err.message, "allowed is 1 to 32"));
    CHECK_INT(tec_policy_set_param(policy, "k", strtod("nan", NULL), &err), ==, TEC_INVALID);
    CHECK_INT(tec_policy_set_param(policy, "kk", 4, &err), ==, TEC_INVALID);
    CHECK(strstr(err.message, "did you mean 'k'?"));
    CHECK(k->value == 8);
    tec_policy_close(policy);
    given = (struct tec_param_value){"k", 99};
    CHECK_INT(tec_policy_open(&policy, "oxygen", ".", &t, &patient, &given, 1, &heap, &err), ==,
              TEC_INVALID);
    given.name = "speed";
    CHECK_INT(tec_policy_open(&policy, "oxygen", ".", &t, &patient, &given, 1, &heap, &err), ==,
              TEC_INVALID);
    CHECK_INT(heap.live, ==, 0);
}

TEST(every_failed_allocation_is_reported)
{
    struct tec_topology t = topology();
    enum tec_status status = TEC_NO_MEMORY;
    int n = 1;
    for (; n < 5000 && status == TEC_NO_MEMORY; n += 1 + n / 8) {
        struct tec_heap small = {.fail_at = n};
        struct tec_policy *policy;
        status = tec_policy_open(&policy, "oxygen", ".", &t, &patient, NULL, 0, &small, &err);
        if (status == TEC_OK)
            tec_policy_close(policy);
        CHECK_INT(small.live, ==, 0);
    }
    CHECK_INT(status, ==, TEC_OK);
    CHECK_INT(n, >, 100);
}

/* --- cost and determinism --------------------------------------------------------------- */

static const char busy_text[] =
    "local order = {}\n"
    "return policy { name = 'busy', api = 1, state = { cap = 8.0 },\n"
    "params = { q = num { default = 0.99, min = 0, max = 1 } },\n"
    "observe = function(S, F, R) S.cap = math.min(8, S.cap + 0.1) end,\n"
    "plan = function(S, F, D)\n"
    "  for i = 1, F.nreq do\n"
    "    local r, j = F.req[i], i - 1\n"
    "    while j >= 1 do\n"
    "      local o = F.req[order[j]]\n"
    "      if o.left > r.left or (o.left == r.left and o.id < r.id) then break end\n"
    "      order[j + 1] = order[j]; j = j - 1\n"
    "    end\n"
    "    order[j + 1] = i\n"
    "  end\n"
    "  local b = F.nreq\n"
    "  while b > 0 and F.cost('decode', b, F.params.q) * 4 > F.slack_us(F.params.q) do\n"
    "    b = b - 1 end\n"
    "  for i = 1, b do D:decode(order[i], S.cap) D:priority(order[i], i) end\n"
    "  for i = b + 1, F.nreq do D:pause(order[i]) end\n"
    "  D:note('b', b) D:note('luck', F.rng())\n"
    "end }";

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

enum { RUNS = 10000 };

static void measure(const char *name)
{
    static int64_t took[RUNS];
    struct tec_topology t = topology();
    struct tec_decision d;
    struct tec_frame_result result = {.n_nodes = 4};
    struct tec_policy *policy = open_with(name, &t, &patient);
    REQUIRE(policy);
    struct tec_planner planner = tec_policy_planner(policy);
    int64_t before = 0;
    for (int i = -50; i < RUNS; i++) {
        struct tec_frame_view view = frame(8);
        view.index = i + 50;
        tec_planner_default(&t, &view, &d);
        if (i == 0)
            before = tec_policy_allocations(policy);
        int64_t start = tec_clock_now(&wall);
        enum tec_status status = planner.plan(planner.self, &view, &d, &err);
        if (i >= 0)
            took[i] = tec_clock_now(&wall) - start;
        REQUIRE(status == TEC_OK);
        planner.observe(planner.self, &view, &result);
    }
    CHECK_INT(tec_policy_allocations(policy), ==, before);
    qsort(took, RUNS, sizeof took[0], by_value);
    int64_t p50 = took[RUNS / 2], p99 = took[RUNS * 99 / 100], worst = took[RUNS - 1];
    printf("# %s, 8 requests: plan p50 %.2f us, p99 %.2f us, max %.2f us, 0 allocations\n",
           tec_policy_name(policy), (double)p50 / 1e3, (double)p99 / 1e3, (double)worst / 1e3);
    CHECK_INT(p50, <, 100000); /* loose: the machine is shared */
    tec_policy_close(policy);
}

TEST(a_call_allocates_nothing_and_is_short)
{
    measure("default");
    measure("oxygen");
    measure("isolated");
    measure(file(busy_text));
}

/* A policy that makes garbage is collected between frames and does not run out. */
TEST(garbage_is_collected_between_frames)
{
    struct tec_topology t = topology();
    struct tec_decision d;
    struct tec_frame_result result = {0};
    struct tec_policy *policy =
        open_plan("local t = {} for i = 1, 100 do t[i] = {i} end", &t, &patient);
    REQUIRE(policy);
    struct tec_planner planner = tec_policy_planner(policy);
    int64_t opened = heap.bytes;
    for (int i = 0; i < 2000; i++) {
        struct tec_frame_view view = frame(2);
        REQUIRE(plan(policy, &t, &view, &d) == TEC_OK);
        planner.observe(planner.self, &view, &result);
    }
    CHECK_INT(heap.bytes, <, opened + 200000);
    tec_policy_close(policy);
}

static void decide_all(const char *path, struct tec_decision *decisions, int n)
{
    struct tec_topology t = topology();
    struct tec_frame_result result = {.n_nodes = 4};
    struct tec_policy *policy = NULL;
    REQUIRE(tec_policy_open(&policy, path, ".", &t, &patient, NULL, 0, &heap, &err) == TEC_OK);
    struct tec_planner planner = tec_policy_planner(policy);
    for (int i = 0; i < n; i++) {
        struct tec_frame_view view = frame(i % 9);
        view.index = i;
        CHECK_INT(plan(policy, &t, &view, &decisions[i]), ==, TEC_OK);
        decisions[i].source = NULL; /* a name that is the policy's */
        planner.observe(planner.self, &view, &result);
    }
    tec_policy_close(policy);
}

TEST(two_runs_decide_alike)
{
    enum { N = 200 };
    struct tec_decision *a = calloc(N, sizeof *a), *b = calloc(N, sizeof *b);
    const char *path = file(busy_text);
    decide_all(path, a, N);
    decide_all(path, b, N);
    unlink(path);
    CHECK(memcmp(a, b, N * sizeof *a) == 0);
    CHECK(a[8].notes[1].number != a[17].notes[1].number);
    free(a);
    free(b);
}

/* F.rng() must give these numbers for ever, or recorded runs would decide differently. */
TEST(luck_is_a_function_of_seed_frame_hook_and_draw)
{
    static const double known[] = {0x1.38a8654d7991ep-1, 0x1.f79eb7c94496dp-1};
    struct tec_topology t = topology();
    struct tec_frame_view view = frame(1);
    struct tec_frame_result result = {.n_nodes = 4};
    struct tec_decision d;
    struct tec_policy *policy =
        open_with(file("return policy { name = 'luck', api = 1, state = { seen = 0 },\n"
                       "observe = function(S, F, R) S.seen = F.rng() end,\n"
                       "plan = function(S, F, D) D:note('a', F.rng()) D:note('b', F.rng())\n"
                       "D:note('seen', S.seen) end }"),
                  &t, &patient);
    REQUIRE(policy);
    struct tec_planner planner = tec_policy_planner(policy);
    for (int again = 0; again < 2; again++) {
        REQUIRE(plan(policy, &t, &view, &d) == TEC_OK);
        CHECK(d.notes[0].number == known[0] && d.notes[1].number == known[1]);
    }
    planner.observe(planner.self, &view, &result);
    REQUIRE(plan(policy, &t, &view, &d) == TEC_OK);
    CHECK(d.notes[2].number != known[0] && d.notes[2].number != 0);
    view.index++;
    REQUIRE(plan(policy, &t, &view, &d) == TEC_OK);
    CHECK(d.notes[0].number == 0x1.9d4b14d904045p-1);
    view.index--;
    view.seed++;
    REQUIRE(plan(policy, &t, &view, &d) == TEC_OK);
    CHECK(d.notes[0].number == 0x1.7943cfcd9a991p-1);
    tec_policy_close(policy);
}

TAP_MAIN
