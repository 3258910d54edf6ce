/* policy_guard.c - tests of the policy guard: live parameters, the fallback, and the record of a
 * policy's last frames. */
#include "base/clock.h"
#include "tests/policy_view.h"
#include "tests/sanitized.h"

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>

static struct tec_heap heap;
static struct tec_error err;
static struct view_frame f;
static struct tec_decision d;

static enum tec_status frame_of(const struct tec_planner *planner, const struct tec_topology *t,
                                int64_t index)
{
    struct tec_frame_result result = {.n_nodes = 5, .tokens = (int)(index % 10)};
    view_fill(&f, index, 3, 2);
    enum tec_status status = view_plan(planner, t, &f.view, &d, &err);
    planner->observe(planner->self, &f.view, &result);
    return status;
}

/* --- the limit of a frame ----------------------------------------------------------------------
 */

/* The time that sanitizers and builds without optimisation add to each call is not the policy's. */
#if defined(__OPTIMIZE__) && !SANITIZED
enum { OVER_NS = 400000 };
#else
enum { OVER_NS = 4000000 };
#endif

static const struct tec_policy_limits half_ms = {.hard_us = 500};

/* Ask as often as a frame may, each time admitting a request by evicting another; the CPU time is
 * in ns. */
static int64_t ask_often(const struct tec_planner *planner, int64_t index, int *yes, int *chosen)
{
    char reason[32];
    view_fill(&f, index, 3, 2);
    *yes = *chosen = 0;
    int64_t start = tec_clock_thread();
    for (int i = 0; i < 64; i++) {
        *yes += planner->admit(planner->self, &f.view, &f.req[0], reason);
        *chosen += planner->evict(planner->self, &f.view, 1) >= 0;
    }
    return tec_clock_thread() - start;
}

/* A policy file with turns of an empty loop that take this policy about 300 us here. */
static struct tec_policy *slow_policy(const struct tec_topology *t)
{
    char text[400];
    static const char form[] =
        "return policy { name = 'slow', api = 1, admit = function(S, F, r)\n"
        "for i = 1, %jd do end return true end, evict = function() return 1 end,\n"
        "plan = function(S, F, D) D:note('x', 1) end }";
    snprintf(text, sizeof text, form, (intmax_t)100000);
    struct tec_policy *policy = view_policy(text, t, &patient, &heap);
    struct tec_planner planner = tec_policy_planner(policy);
    char reason[32];
    view_fill(&f, 1, 3, 2);
    int64_t best = INT64_MAX;
    for (int i = 0; i < 10; i++) {
        int64_t start = tec_clock_thread();
        planner.admit(planner.self, &f.view, &f.req[0], reason);
        int64_t took = tec_clock_thread() - start;
        best = took < best ? took : best;
    }
    tec_policy_close(policy);
    snprintf(text, sizeof text, form, (intmax_t)(100000 * (int64_t)300000 / best));
    return view_policy(text, t, &half_ms, &heap);
}

TEST(admit_and_evict_of_a_frame_share_one_limit)
{
    struct tec_topology t = view_topology();
    struct tec_policy *policy = slow_policy(&t);
    struct tec_planner planner = tec_policy_planner(policy);
    const struct tec_policy_report *report = tec_policy_report(policy);
    int64_t best = INT64_MAX;
    for (int i = 1; i <= 20; i++) {
        int yes, chosen;
        int64_t took = ask_often(&planner, i, &yes, &chosen);
        best = took < best ? took : best;
        CHECK_INT(yes, ==, 64);   /* by default */
        CHECK_INT(chosen, <=, 8); /* else the engine chooses */
        CHECK_INT(report->failures, ==, i);
        CHECK_INT(report->strikes, ==, 1);
        CHECK(strstr(report->message, " used up"));
        tec_policy_reinstate(policy);
        REQUIRE(view_plan(&planner, &t, &f.view, &d, &err) == TEC_OK);
        CHECK_INT(d.n_notes, ==, 1); /* plan has a limit of its own */
        planner.observe(planner.self, &f.view, &(struct tec_frame_result){.n_nodes = 5});
    }
    printf("# 64 slow asks: %.1f us of CPU; %s\n", (double)best / 1e3, report->message);
    CHECK_INT(best, <, 500000 + OVER_NS);
    CHECK_INT(report->calls, <, 20 * 8);
    tec_policy_close(policy);
    CHECK_INT(heap.live, ==, 0);
}

/* Calls that are too short for a read of the clock must add up, too. */
TEST(many_short_calls_use_the_limit_up)
{
    struct tec_topology t = view_topology();
    static const struct tec_policy_limits limits = {.hard_us = 10};
    struct tec_policy *policy = view_policy(
        "return policy { name = 'short', api = 1, plan = function() end,\n"
        "admit = function() for i = 1, 50 do end return false end, evict = function() end }",
        &t, &limits, &heap);
    struct tec_planner planner = tec_policy_planner(policy);
    int yes, chosen;
    ask_often(&planner, 1, &yes, &chosen);
    const struct tec_policy_report *report = tec_policy_report(policy);
    printf("# %s\n", report->message);
    CHECK_INT(report->failures, ==, 1);
    CHECK_INT(yes, ==, 64 - (report->calls + 1) / 2);
    CHECK(strstr(report->message, "admit and evict used up the 10 us of a frame in"));
    tec_policy_close(policy);
}

TEST(a_fast_admit_is_asked_for_every_request)
{
    struct tec_topology t = view_topology();
    static const struct tec_policy_limits limits = {.hard_us = OVER_NS > 1000000 ? 5000000 : 500};
    struct tec_policy *policy = view_policy(
        "return policy { name = 'fast', api = 1, admit = function(S, F, r) S.n = (S.n or 0) + 1\n"
        "return S.n % 2 == 0, 'odd' end, evict = function() return 1 end,\n"
        "plan = function() end }",
        &t, &limits, &heap);
    struct tec_planner planner = tec_policy_planner(policy);
    for (int i = 0; i < 200; i++) {
        int yes, chosen;
        ask_often(&planner, i, &yes, &chosen);
        CHECK_INT(yes, ==, 32);
        CHECK_INT(chosen, ==, 64);
        view_plan(&planner, &t, &f.view, &d, &err);
        planner.observe(planner.self, &f.view, &(struct tec_frame_result){.n_nodes = 5});
    }
    CHECK_INT(tec_policy_report(policy)->failures, ==, 0);
    tec_policy_close(policy);
}

/* --- live parameters -------------------------------------------------------------------------- */

TEST(a_posted_parameter_comes_with_the_next_frame)
{
    struct tec_topology t = view_topology();
    struct tec_policy *policy =
        view_policy("return policy { name = 'p', api = 1, params = { k = int { default = 4, min = "
                    "1, max = 9 },\n"
                    "q = num { default = 0.5, min = 0, max = 1 } },\n"
                    "admit = function(S, F, r) return F.params.k == 4 end,\n"
                    "plan = function(S, F, D) D:note('k', F.params.k) D:note('q', F.params.q)\n"
                    "D:note('int', math.type(F.params.k)) end }",
                    &t, &patient, &heap);
    struct tec_planner planner = tec_policy_planner(policy);
    view_fill(&f, 1, 2, 0);
    char reason[32] = "";
    CHECK(planner.admit(planner.self, &f.view, &f.req[0], reason));
    CHECK_INT(tec_policy_post_param(policy, "k", 7, &err), ==, TEC_OK);
    REQUIRE(view_plan(&planner, &t, &f.view, &d, &err) == TEC_OK); /* the same frame */
    CHECK(d.notes[0].number == 4);
    CHECK_INT(tec_policy_post_param(policy, "k", 8, &err), ==, TEC_OK);
    CHECK_INT(tec_policy_post_param(policy, "q", 0.25, &err), ==, TEC_OK);
    CHECK_INT(tec_policy_post_param(policy, "k", 10, &err), ==, TEC_INVALID);
    CHECK_INT(tec_policy_post_param(policy, "k", 4.5, &err), ==, TEC_INVALID);
    CHECK_INT(tec_policy_post_param(policy, "q", strtod("nan", NULL), &err), ==, TEC_INVALID);
    CHECK_INT(tec_policy_post_param(policy, "kk", 4, &err), ==, TEC_INVALID);
    CHECK_INT(frame_of(&planner, &t, 2), ==, TEC_OK);
    CHECK(d.notes[0].number == 8 && d.notes[1].number == 0.25);
    CHECK_STR(d.notes[2].text, "integer");
    CHECK(tec_policy_param(policy, 0)->value == 8);
    tec_policy_close(policy);
}

/* Frames of several sessions, or frames after a reset, may have the same number. */
TEST(a_frame_ends_with_observe_not_with_its_number)
{
    struct tec_topology t = view_topology();
    struct tec_policy *policy = NULL;
    REQUIRE(tec_policy_open(&policy, "oxygen", ".", &t, &patient, NULL, 0, &heap, &err) == TEC_OK);
    struct tec_planner planner = tec_policy_planner(policy);
    frame_of(&planner, &t, 3);
    CHECK_INT(d.rows[0].k, ==, 5);
    CHECK_INT(tec_policy_post_param(policy, "k", 8, &err), ==, TEC_OK);
    frame_of(&planner, &t, 3);
    CHECK_INT(d.rows[0].k, ==, 8);
    tec_policy_close(policy);
}

static _Atomic bool stop;

static void *turn_knobs(void *policy)
{
    unsigned n = 0;
    while (!atomic_load(&stop)) {
        if (tec_policy_post_param(policy, "k", 4 + n % 5, NULL) != TEC_OK)
            return policy; /* refused */
        tec_policy_post_param(policy, "k", 99, NULL);
        n++;
    }
    return NULL;
}

TEST(parameters_move_while_frames_run)
{
    struct tec_topology t = view_topology();
    struct tec_policy *policy = NULL;
    REQUIRE(tec_policy_open(&policy, "oxygen", ".", &t, &patient, NULL, 0, &heap, &err) == TEC_OK);
    struct tec_planner planner = tec_policy_planner(policy);
    pthread_t threads[2];
    atomic_store(&stop, false);
    for (int i = 0; i < 2; i++)
        REQUIRE(pthread_create(&threads[i], NULL, turn_knobs, policy) == 0);
    bool legal = true;
    for (int i = 0; i < 3000; i++) {
        legal = frame_of(&planner, &t, i) == TEC_OK && legal;
        legal = legal && (d.rows[0].k == 4 || d.rows[0].k == 5 || d.rows[0].k == 8);
    }
    CHECK(legal);
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++) {
        void *said = NULL;
        pthread_join(threads[i], &said);
        CHECK(said == NULL);
    }
    tec_policy_close(policy);
    CHECK_INT(heap.live, ==, 0);
}

/* --- fallback --------------------------------------------------------------------------------- */

static const char buggy_text[] =
    "return policy { name = 'buggy', api = 1, version = 4,\n"
    "params = { k = int { default = 4, min = 1, max = 9 } },\n"
    "plan = function(S, F, D)\n"
    "  local function inner(x)\n"
    "    return F.reqs\n"
    "  end\n"
    "  F.cost('decode', 2, 0.5) F.slack_us(0.9) D:decode(1, 4) D:note('who', 'buggy')\n"
    "  if F.index % 40 == 0 then local x = inner(1) end\n"
    "end }";

TEST(after_a_quarantine_the_fallback_decides)
{
    struct tec_topology t = view_topology();
    struct tec_policy *policy = view_policy(buggy_text, &t, &patient, &heap), *fallback = NULL;
    REQUIRE(tec_policy_open(&fallback, "oxygen", ".", &t, &patient, NULL, 0, &heap, &err) ==
            TEC_OK);
    tec_policy_set_fallback(policy, fallback);
    struct tec_planner planner = tec_policy_planner(policy);
    const struct tec_policy_report *report = tec_policy_report(policy);
    for (int i = 1; i <= 200; i++) {
        bool fails = i % 40 == 0 && i <= 120;
        CHECK_INT(frame_of(&planner, &t, i), ==, fails ? TEC_POLICY : TEC_OK);
        CHECK_INT(d.rows[0].k, ==, fails ? 0 : i > 120 ? 5 : 4);
        CHECK_INT(d.rows[1].k, ==, i > 120 ? 5 : 0);
        CHECK_INT(report->standby, ==, i > 120);
    }
    CHECK_INT(report->calls, ==, 120);
    CHECK_INT(tec_policy_report(fallback)->calls, ==, 80);
    tec_policy_reinstate(policy);
    frame_of(&planner, &t, 201);
    CHECK_STR(d.notes[0].text, "buggy");
    CHECK(!report->quarantined && !report->standby && report->strikes == 0);
    tec_policy_close(policy);
    tec_policy_close(fallback);
}

TEST(a_fallback_that_fails_too_leaves_the_default_plan)
{
    struct tec_topology t = view_topology();
    static const struct tec_policy_limits one = {.hard_us = 1000000, .strikes = 1};
    struct tec_policy *policy = view_policy(buggy_text, &t, &one, &heap);
    struct tec_policy *fallback = view_policy(buggy_text, &t, &one, &heap);
    tec_policy_set_fallback(policy, fallback);
    tec_policy_set_fallback(fallback, policy);
    struct tec_planner planner = tec_policy_planner(policy);
    for (int i = 1; i <= 100; i++) {
        frame_of(&planner, &t, i);
        CHECK_INT(d.rows[0].k, ==, i >= 80 || i == 40 ? 0 : 4);
    }
    CHECK(tec_policy_report(fallback)->quarantined);
    CHECK_INT(tec_policy_report(fallback)->calls, ==, 40);
    tec_policy_close(policy);
    tec_policy_close(fallback);
}

TEST(an_operator_stands_a_policy_down)
{
    struct tec_topology t = view_topology();
    struct tec_policy *policy = view_policy(buggy_text, &t, &patient, &heap);
    struct tec_planner planner = tec_policy_planner(policy);
    frame_of(&planner, &t, 1);
    CHECK_INT(d.rows[0].k, ==, 4);
    tec_policy_fallback_now(policy);
    frame_of(&planner, &t, 2);
    CHECK_INT(d.rows[0].k, ==, 0); /* the default plan */
    CHECK(tec_policy_report(policy)->standby && !tec_policy_report(policy)->quarantined);
    tec_policy_reinstate(policy);
    frame_of(&planner, &t, 3);
    CHECK_INT(d.rows[0].k, ==, 4);
    tec_policy_fallback_now(policy); /* of two orders before one frame the later one holds */
    tec_policy_reinstate(policy);
    frame_of(&planner, &t, 4);
    CHECK_INT(d.rows[0].k, ==, 4);
    tec_policy_reinstate(policy);
    tec_policy_fallback_now(policy);
    frame_of(&planner, &t, 5);
    CHECK_INT(d.rows[0].k, ==, 0);
    tec_policy_close(policy);
}

/* --- the record ------------------------------------------------------------------------------- */

/* Line `i` of what a dump writes; *n receives the number of lines. */
static json_t *dumped(struct tec_policy *policy, int i, int *n)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    REQUIRE(to);
    CHECK_INT(tec_policy_dump(policy, to, &err), ==, TEC_OK);
    fclose(to);
    json_t *found = NULL;
    *n = 0;
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1, ++*n) {
        json_t *value = json_loadb(line, (size_t)(end - line), JSON_REJECT_DUPLICATES, NULL);
        CHECK(value != NULL);
        if (*n == i)
            found = json_incref(value);
        json_decref(value);
    }
    free(text);
    return found;
}

static json_int_t whole(json_t *value, const char *a, const char *b)
{
    value = json_object_get(value, a);
    return json_integer_value(b ? json_object_get(value, b) : value);
}

TEST(a_quarantined_policy_leaves_a_dump)
{
    struct tec_topology t = view_topology();
    struct tec_policy *policy = view_policy(buggy_text, &t, &patient, &heap);
    struct tec_planner planner = tec_policy_planner(policy);
    for (int i = 1; i <= 120; i++)
        frame_of(&planner, &t, i);
    CHECK(!tec_policy_hold(policy)); /* the frame that failed is not over */
    frame_of(&planner, &t, 121);
    CHECK(tec_policy_hold(policy));
    int n = 0;
    json_t *head = dumped(policy, 0, &n), *last = dumped(policy, 64, &n);
    CHECK_INT(n, ==, 65);
    REQUIRE(head && last);
    json_t *failure = json_object_get(head, "failure"),
           *trace = json_object_get(failure, "traceback");
    CHECK_STR(json_string_value(json_object_get(head, "policy")), "buggy");
    CHECK(whole(head, "version", NULL) == 4 && json_is_true(json_object_get(head, "quarantined")));
    CHECK(whole(failure, "frame", NULL) == 120);
    CHECK(strstr(json_string_value(json_object_get(failure, "message")), "no field 'reqs'"));
    REQUIRE(json_array_size(trace) >= 3);
    CHECK(strstr(json_string_value(json_array_get(trace, 1)), ".lua:5: in local 'inner'") ||
          strstr(json_string_value(json_array_get(trace, 1)), ".lua:5: in upvalue 'inner'"));
    CHECK(strstr(json_string_value(json_array_get(trace, 2)), ".lua:8: in function <"));
    CHECK(whole(last, "frame", NULL) == 120 && whole(last, "view", "now_us") == 6000000);
    CHECK_STR(json_string_value(json_object_get(last, "status")), "POLICY");
    CHECK(whole(last, "result", "tokens") == 0);
    CHECK_INT(json_array_size(json_object_get(json_object_get(last, "view"), "req")), ==, 3);
    CHECK_INT(json_array_size(json_object_get(json_object_get(last, "view"), "seg")), ==, 2);
    json_t *costs = json_object_get(last, "costs");
    REQUIRE(json_array_size(costs) == 2);
    CHECK(json_real_value(json_object_get(json_array_get(costs, 0), "us")) == 705);
    CHECK_STR(json_string_value(json_object_get(json_array_get(costs, 1), "of")), "slack_us");
    json_decref(head);
    json_decref(last);
    json_t *before = dumped(policy, 63, &n);
    json_t *decision = json_object_get(before, "decision");
    CHECK(whole(before, "frame", NULL) == 119 && whole(before, "result", "tokens") == 9);
    CHECK(whole(json_array_get(json_object_get(decision, "rows"), 0), "k", NULL) == 4);
    json_decref(before);
    tec_policy_close(policy);
    CHECK_INT(heap.live, ==, 0);
}

TEST(what_json_lacks_is_null)
{
    struct tec_topology t = view_topology();
    struct tec_policy *policy = view_policy(
        "return policy { name = 'odd', api = 1, plan = function(S, F, D)\n"
        "D:load_order(1, 1 / 0) D:recompute('recall', { 0.5 }) error('\\xff\\xfe') end }",
        &t, &patient, &heap);
    struct tec_planner planner = tec_policy_planner(policy);
    int n = 0;
    view_fill(&f, 1, 1, 1);
    f.seg[0].importance = strtod("nan", NULL);
    view_plan(&planner, &t, &f.view, &d, &err);
    json_t *line = dumped(policy, 1, &n);
    CHECK_INT(n, ==, 2);
    json_t *seg = json_object_get(json_object_get(line, "view"), "seg");
    CHECK(json_is_null(json_object_get(json_array_get(seg, 0), "importance")));
    CHECK(json_is_null(json_object_get(line, "result")));
    json_decref(line);
    tec_policy_close(policy);
}

struct reader {
    struct tec_policy *policy;
    int dumps;
    bool good;
};

static void *read_records(void *user)
{
    struct reader *r = user;
    while (!atomic_load(&stop)) {
        while (!tec_policy_hold(r->policy) && !atomic_load(&stop))
            ;
        if (!tec_policy_hold(r->policy))
            break;
        char *text = NULL;
        size_t size = 0;
        FILE *to = open_memstream(&text, &size);
        r->good = r->good && tec_policy_dump(r->policy, to, NULL) == TEC_OK;
        fclose(to);
        free(text);
        tec_policy_go_on(r->policy);
        r->dumps++;
    }
    return NULL;
}

TEST(records_are_read_while_frames_run)
{
    static const struct tec_policy_limits many = {
        .hard_us = 1000000, .strikes = 16, .window_frames = 10};
    struct tec_topology t = view_topology();
    struct tec_policy *policy = view_policy(buggy_text, &t, &many, &heap);
    struct tec_planner planner = tec_policy_planner(policy);
    struct reader reader = {policy, 0, true};
    pthread_t thread;
    atomic_store(&stop, false);
    REQUIRE(pthread_create(&thread, NULL, read_records, &reader) == 0);
    for (int i = 0; i < 3000; i++)
        frame_of(&planner, &t, i);
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    CHECK(reader.good);
    printf("# %d dumps beside 3000 frames\n", reader.dumps);
    tec_policy_close(policy);
}

/* --- missed deadlines ------------------------------------------------------------------------- */

/* Run frames from `first` on, of which `missed` in each 16 miss because of `cause`. */
static void misses(struct tec_policy *policy, const struct tec_topology *t, int64_t first, int n,
                   int missed, enum tec_cause cause)
{
    struct tec_planner planner = tec_policy_planner(policy);
    for (int64_t i = first; i < first + n; i++) {
        struct tec_frame_result result = {.n_nodes = 5, .missed = i % 16 < missed};
        result.cause = result.missed ? cause : TEC_CAUSE_NONE;
        view_fill(&f, i, 3, 2);
        view_plan(&planner, t, &f.view, &d, &err);
        planner.observe(planner.self, &f.view, &result);
    }
}

static const struct tec_policy_limits short_window = {
    .soft_us = 1000000, .hard_us = 2000000, .window_frames = 32};

static struct tec_policy *short_oxygen(const struct tec_topology *t)
{
    struct tec_policy *policy = NULL;
    REQUIRE(tec_policy_open(&policy, "oxygen", ".", t, &short_window, NULL, 0, &heap, &err) ==
            TEC_OK);
    return policy;
}

TEST(a_window_of_misses_by_plan_or_policy_is_a_strike)
{
    static const struct {
        enum tec_cause cause;
        int missed, struck;
    } cases[] = {{TEC_CAUSE_PLAN, 16, 1},  {TEC_CAUSE_POLICY, 9, 1}, {TEC_CAUSE_PLAN, 8, 0},
                 {TEC_CAUSE_GPU, 16, 0},   {TEC_CAUSE_HOST, 16, 0},  {TEC_CAUSE_INPUT, 16, 0},
                 {TEC_CAUSE_POLICY, 0, 0}, {TEC_CAUSE_NONE, 16, 0}};
    struct tec_topology t = view_topology();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tec_policy *policy = short_oxygen(&t);
        misses(policy, &t, 0, 31, cases[i].missed, cases[i].cause);
        CHECK_INT(tec_policy_report(policy)->struck, ==, 0); /* the window is not full */
        misses(policy, &t, 31, 1, cases[i].missed, cases[i].cause);
        CHECK_INT(tec_policy_report(policy)->struck, ==, cases[i].struck);
        CHECK_INT(tec_policy_report(policy)->failures, ==, 0);
        if (cases[i].missed == 9)
            CHECK_STR(tec_policy_report(policy)->message,
                      "frame 31: policy 'oxygen' missed the deadline in 18 of 32 frames, by plan "
                      "or policy (strike 1/3)");
        tec_policy_close(policy);
    }
}

TEST(misses_that_last_lead_to_quarantine_and_others_are_forgotten)
{
    struct tec_topology t = view_topology();
    struct tec_policy *policy = short_oxygen(&t);
    misses(policy, &t, 0, 32, 16, TEC_CAUSE_PLAN);
    misses(policy, &t, 32, 200, 0, TEC_CAUSE_NONE);
    CHECK_INT(tec_policy_report(policy)->struck, <=, 9); /* while the window slides out of it */
    tec_policy_reinstate(policy);
    misses(policy, &t, 232, 31, 16, TEC_CAUSE_PLAN);
    CHECK(!tec_policy_report(policy)->quarantined);
    int64_t struck = tec_policy_report(policy)->struck;
    misses(policy, &t, 263, 5, 16, TEC_CAUSE_PLAN);
    CHECK_INT(tec_policy_report(policy)->struck, ==, struck + 3);
    CHECK(tec_policy_report(policy)->quarantined);
    misses(policy, &t, 268, 1, 16, TEC_CAUSE_PLAN);
    struct tec_planner planner = tec_policy_planner(policy);
    CHECK_STR(tec_planner_name(&planner), "default");
    tec_policy_close(policy);
}

TEST(a_policy_beside_another_does_not_answer_for_misses)
{
    struct tec_topology t = view_topology();
    struct tec_policy *policy = short_oxygen(&t);
    tec_policy_on_trial(policy, true);
    misses(policy, &t, 0, 100, 16, TEC_CAUSE_PLAN);
    CHECK_INT(tec_policy_report(policy)->struck, ==, 0);
    tec_policy_on_trial(policy, false);
    misses(policy, &t, 100, 31, 16, TEC_CAUSE_PLAN);
    CHECK_INT(tec_policy_report(policy)->struck, ==, 0);
    misses(policy, &t, 131, 1, 16, TEC_CAUSE_PLAN);
    CHECK_INT(tec_policy_report(policy)->struck, ==, 1);
    tec_policy_close(policy);
    CHECK_INT(heap.live, ==, 0);
}

TAP_MAIN
