/* reload.c - tests of a canary: policies are replaced while frames run, with their state, on trial,
 * and back again. */
#include "base/clock.h"
#include "policies/host/canary.h"
#include "policies/host/state.h"
#include "tests/policy_view.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static struct tec_heap heap;
static struct tec_error err;
static struct view_frame f;
static struct tec_decision d;

/* A policy that counts its frames in S and decides k for every request. */
#define COUNTER(version, k, more)                                                  \
    "return policy { name = 'counter', api = 1, version = " version ", " more "\n" \
    "state = { n = 0, deep = { list = { 1, 2.5, 'x' }, text = 'a\\0b' } },\n"      \
    "params = { k = int { default = " k ", min = 1, max = 9 } },\n"                \
    "observe = function(S, F, R) S.n = S.n + 1 end,\n"                             \
    "plan = function(S, F, D) for i = 1, F.nreq do D:decode(i, F.params.k) end\n"  \
    "  D:note('n', S.n) D:note('v', " version ")"

#define CARRY "migrate = function(old, v) old.from = v return old end,"

static void frame_with(struct tec_canary *canary, const struct tec_topology *t, int64_t index,
                       bool observation)
{
    struct tec_planner planner = tec_canary_planner(canary);
    struct tec_frame_result result = {.n_nodes = 5};
    char reason[32];
    view_fill(&f, index, observation ? 3 : 2, 2);
    f.view.idle = !observation;
    planner.admit(planner.self, &f.view, &f.req[0], reason);
    view_plan(&planner, t, &f.view, &d, NULL);
    planner.observe(planner.self, &f.view, &result);
}

static void frame_of(struct tec_canary *canary, const struct tec_topology *t, int64_t index)
{
    frame_with(canary, t, index, true);
}

static struct tec_canary *canary_of(const char *text, const struct tec_topology *t, int trial,
                                    struct tec_policy *fallback)
{
    const struct tec_canary_options options = {.topology = t,
                                               .root = ".",
                                               .limits = patient,
                                               .trial_frames = trial,
                                               .probation_frames = 100,
                                               .fallback = fallback};
    struct tec_canary *canary = NULL;
    struct tec_policy *first = view_policy(text, t, &patient, &heap);
    REQUIRE(tec_canary_create(&canary, &options, first, &heap, &err) == TEC_OK);
    return canary;
}

/* Open a canary with a trial of one frame; `limits` are the first policy's. */
static struct tec_canary *limited_canary(const char *text, const struct tec_topology *t,
                                         const struct tec_policy_limits *limits)
{
    const struct tec_canary_options options = {
        .topology = t, .root = ".", .limits = patient, .trial_frames = 1};
    struct tec_canary *canary = NULL;
    struct tec_policy *first = view_policy(text, t, limits, &heap);
    REQUIRE(tec_canary_create(&canary, &options, first, &heap, &err) == TEC_OK);
    return canary;
}

static enum tec_status load(struct tec_canary *canary, const char *text)
{
    const char *path = view_file(0, text);
    enum tec_status status = tec_canary_load(canary, path, NULL, 0, NULL, &err);
    unlink(path);
    return status;
}

/* Check that the next event is of this kind. */
static struct tec_canary_event next(struct tec_canary *canary, enum tec_canary_event_kind kind)
{
    struct tec_canary_event event = {.message = ""};
    bool there = tec_canary_next_event(canary, &event);
    if (!there || event.kind != kind)
        fprintf(stderr, "# %s, not %s: %s\n",
                there ? tec_canary_event_name(event.kind) : "no event", tec_canary_event_name(kind),
                event.message);
    CHECK(there && event.kind == kind);
    return event;
}

static bool quiet(struct tec_canary *canary)
{
    struct tec_canary_event event;
    return !tec_canary_next_event(canary, &event);
}

/* --- state as bytes --------------------------------------------------------------------------- */

TEST(plain_states_are_copied_and_others_refused)
{
    struct tec_topology t = view_topology();
    static const struct {
        const char *body, *says;
    } cases[] = {{"S.x = 1", ""},
                 {"S.x = { { { } } } S[1] = 'a' S[-3] = false S.y = S.x S.nan = 0 / 0", ""},
                 {"S.f = function() end", "holds a function"},
                 {"S.x = { S }", "holds a cycle"},
                 {"S.x = F", "holds a function"},
                 {"S.x = F.req[1]", ""},
                 {"S[1.5] = 1", "a key that is no text and no integer"},
                 {"S[true] = 1", "a key that is no text and no integer"},
                 {"local x = S for i = 1, 40 do x.x = {} x = x.x end", "more than 32 deep"},
                 {"for i = 1, 4000 do S[i] = i end", "is larger than 16384 bytes"}};
    unsigned char bytes[16384];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "return policy { name = 's', api = 1, plan = function(S, F, D) "
                 "%s end }",
                 cases[i].body);
        struct tec_policy *policy = view_policy(text, &t, &patient, &heap);
        struct tec_planner planner = tec_policy_planner(policy);
        struct tec_state_copy copy = {.bytes = bytes, .size = sizeof bytes};
        view_fill(&f, 1, 2, 0);
        CHECK_INT(view_plan(&planner, &t, &f.view, &d, &err), ==, TEC_OK);
        int64_t before = tec_policy_allocations(policy);
        enum tec_status status = tec_policy_copy_state(policy, &copy);
        CHECK_INT(tec_policy_allocations(policy), ==, before);
        bool good = cases[i].says[0] ? status != TEC_OK && strstr(copy.why, cases[i].says)
                                     : status == TEC_OK && !copy.why[0];
        if (!good)
            fprintf(stderr, "# %s -> %s\n", cases[i].body, copy.why);
        CHECK(good);
        tec_policy_close(policy);
    }
    CHECK_INT(heap.live, ==, 0);
}

/* The frame thread copies the state at the end of one frame, so the copy must be short. */
TEST(copying_the_largest_state_is_short)
{
    static const struct tec_clock wall = {NULL};
    struct tec_topology t = view_topology();
    static unsigned char bytes[65536];
    struct tec_state_copy copy = {.bytes = bytes, .size = sizeof bytes};
    struct tec_policy *policy = view_policy(
        "local S = {} for i = 1, 60 do S[i] = {} for k = 1, 60 do S[i][k] = i * k end end\n"
        "return policy { name = 's', api = 1, state = S, plan = function() end }",
        &t, &patient, &heap);
    int64_t best = INT64_MAX;
    for (int i = 0; i < 20; i++) {
        int64_t start = tec_clock_now(&wall);
        CHECK_INT(tec_policy_copy_state(policy, &copy), ==, TEC_OK);
        int64_t took = tec_clock_now(&wall) - start;
        best = took < best ? took : best;
    }
    printf("# %zu bytes of state in %.1f us\n", copy.n, (double)best / 1e3);
    CHECK_INT(copy.n, >, 60000);
    CHECK_INT(best, <, 10000000);
    tec_policy_close(policy);
}

/* A state of few bytes can need much work: empty slots are passed over, and colliding keys are
 * searched for. */
TEST(a_state_that_takes_long_to_copy_is_refused_in_time)
{
    struct tec_topology t = view_topology();
    static const struct tec_policy_limits limits = {.hard_us = 2000000};
    static unsigned char bytes[65536];
    static const char *const bodies[] = {
        "local x = {} for i = 1, 4096 do x[i] = i end for i = 1, 4096 do x[i] = nil end\n"
        "for k = 1, 10 do S[k] = {} for i = 1, 500 do S[k][i] = x end end",
        "local x = {} for i = 1, 1024 do x[i * 1023 + (i << 22)] = i end\n"
        "for i = 1, 1024 do if i ~= 1 then x[i * 1023 + (i << 22)] = nil end end\n"
        "for k = 1, 2500 do S[k] = x end",
        "local x = {} for i = 1, 500 do x[(i + 4000) * 511] = i end\n"
        "for k = 1, 6 do S[k] = x end"};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        struct tec_state_copy copy = {.bytes = bytes, .size = sizeof bytes};
        char text[600];
        snprintf(text, sizeof text,
                 "return policy { name = 's', api = 1, plan = function(S, F, D)\n%s end }",
                 bodies[i]);
        struct tec_policy *policy = view_policy(text, &t, &limits, &heap);
        struct tec_planner planner = tec_policy_planner(policy);
        view_fill(&f, 1, 2, 0);
        CHECK_INT(view_plan(&planner, &t, &f.view, &d, &err), ==, TEC_OK);
        int64_t best = INT64_MAX;
        for (int k = 0; k < 10; k++) {
            int64_t start = tec_clock_thread();
            enum tec_status status = tec_policy_copy_state(policy, &copy);
            int64_t took = tec_clock_thread() - start;
            best = took < best ? took : best;
            CHECK(i > 1 || status == TEC_MALFORMED);
            CHECK(i > 1 || strstr(copy.why, "takes longer than 300 us to copy"));
        }
        printf("# state %d: %.1f us of CPU, %zu bytes, %s\n", (int)i, (double)best / 1e3, copy.n,
               copy.why[0] ? copy.why : "copied");
        CHECK_INT(best, <, 1000000);
        tec_policy_close(policy);
    }
    CHECK_INT(heap.live, ==, 0);
}

TEST(a_state_comes_through_as_it_was)
{
    struct tec_topology t = view_topology();
    unsigned char bytes[4096];
    struct tec_state_copy copy = {.bytes = bytes, .size = sizeof bytes};
    struct tec_policy *old = view_policy(
        COUNTER("3", "4",
                "") " S.deep[7] = true S.deep.nan = 0 / 0 S.deep.big = math.mininteger end }",
        &t, &patient, &heap);
    struct tec_policy *fresh = view_policy(
        "return policy { name = 'counter', api = 1, version = 4,\n"
        "migrate = function(old, v) old.from = v return old end, plan = function(S, F, D)\n"
        "local x = S.deep assert(S.from == 3 and S.n == 1 and math.type(S.n) == 'integer')\n"
        "assert(#x.list == 3 and x.list[1] == 1 and x.list[2] == 2.5 and x.list[3] == 'x')\n"
        "assert(x[7] == true and x.text == 'a\\0b' and x.nan ~= x.nan)\n"
        "assert(x.big == math.mininteger) D:note('ok', 1) end }",
        &t, &patient, &heap);
    struct tec_planner planner = tec_policy_planner(old);
    struct tec_frame_result result = {.n_nodes = 5};
    view_fill(&f, 1, 2, 0);
    REQUIRE(view_plan(&planner, &t, &f.view, &d, &err) == TEC_OK);
    planner.observe(planner.self, &f.view, &result);
    REQUIRE(tec_policy_copy_state(old, &copy) == TEC_OK);
    REQUIRE(tec_policy_migrate(fresh, &copy, &err) == TEC_OK);
    planner = tec_policy_planner(fresh);
    err.message[0] = '\0';
    CHECK_INT(view_plan(&planner, &t, &f.view, &d, &err), ==, TEC_OK);
    CHECK_STR(err.message, "");
    tec_policy_close(old);
    tec_policy_close(fresh);
}

/* --- the way into force ---------------------------------------------------------------------- */

TEST(a_new_policy_is_tried_and_takes_over_with_the_state)
{
    struct tec_topology t = view_topology();
    struct tec_canary *canary = canary_of(COUNTER("1", "4", "") " end }", &t, 10, NULL);
    int64_t i = 0;
    for (; i < 5; i++)
        frame_of(canary, &t, i);
    REQUIRE(load(canary, COUNTER("2", "5", CARRY) " end }") == TEC_OK);
    CHECK_INT(tec_canary_poll(canary, &err), ==, TEC_OK);
    CHECK(tec_canary_waits(canary)); /* for the state */
    CHECK_INT(load(canary, COUNTER("3", "5", CARRY) " end }"), ==, TEC_INVALID);
    CHECK(strstr(err.message, "is on trial; wait until that is"));
    frame_of(canary, &t, i++);
    CHECK_INT(tec_canary_poll(canary, &err), ==, TEC_OK);
    CHECK(!tec_canary_waits(canary));
    for (int n = 0; n < 10; n++, i++) {
        frame_of(canary, &t, i);
        CHECK(d.rows[0].k == 4 && d.notes[1].number == 1); /* the old one decides */
    }
    struct tec_canary_event event = next(canary, TEC_CANARY_TRIAL);
    CHECK(event.frame == 6 && event.version == 2);
    frame_of(canary, &t, i++);
    CHECK(d.rows[0].k == 5 && d.notes[1].number == 2);
    CHECK(d.notes[0].number == 16); /* six of its own and ten of the trial */
    event = next(canary, TEC_CANARY_ADOPTED);
    CHECK(event.frame == 16 && event.trial.frames == 10 && event.trial.differing == 10);
    CHECK(event.trial.first_differing == 6 && event.trial.other_answers == 0);
    CHECK(event.trial.candidate_ns > 0 &&
          event.trial.candidate_max_ns >= event.trial.candidate_ns / 10);
    CHECK_INT(tec_policy_version(tec_canary_policy(canary)), ==, 2);
    tec_canary_rollback(canary);
    frame_of(canary, &t, i++);
    CHECK(d.rows[0].k == 4 && d.notes[0].number == 16); /* as it was when it left */
    next(canary, TEC_CANARY_ROLLBACK);
    tec_canary_rollback(canary);
    frame_of(canary, &t, i++);
    CHECK(d.rows[0].k == 5);
    CHECK_INT(tec_canary_set_param(canary, "k", 8, &err), ==, TEC_OK);
    frame_of(canary, &t, i++);
    CHECK(d.rows[0].k == 8);
    tec_canary_destroy(canary);
    CHECK_INT(heap.live, ==, 0);
}

TEST(equal_decisions_do_not_differ)
{
    struct tec_topology t = view_topology();
    struct tec_canary *canary = canary_of(COUNTER("1", "4", "") " end }", &t, 3, NULL);
    REQUIRE(load(canary, COUNTER("2", "4", "") " end }") == TEC_OK);
    CHECK_INT(tec_canary_poll(canary, &err), ==, TEC_OK); /* no migrate: nothing to wait for */
    CHECK(!tec_canary_waits(canary));
    for (int i = 0; i < 4; i++)
        frame_of(canary, &t, i);
    next(canary, TEC_CANARY_TRIAL);
    struct tec_canary_event event = next(canary, TEC_CANARY_ADOPTED);
    CHECK(event.trial.frames == 3 && event.trial.differing == 0);
    CHECK(event.trial.first_differing == -1);
    CHECK(d.notes[0].number == 3); /* its state is new */
    tec_canary_destroy(canary);
}

TEST(a_candidate_that_fails_never_takes_over)
{
    struct tec_topology t = view_topology();
    struct tec_canary *canary = canary_of(COUNTER("1", "4", "") " end }", &t, 50, NULL);
    REQUIRE(load(canary, COUNTER("2", "5", "") " if F.index == 20 then error('late') end end }") ==
            TEC_OK);
    tec_canary_poll(canary, &err);
    for (int i = 0; i < 60; i++) {
        frame_of(canary, &t, i);
        CHECK_INT(d.rows[0].k, ==, 4);
    }
    next(canary, TEC_CANARY_TRIAL);
    struct tec_canary_event event = next(canary, TEC_CANARY_REJECTED);
    CHECK(event.frame == 20 && event.trial.frames == 21);
    CHECK(strstr(event.message, "late"));
    CHECK(quiet(canary) && tec_policy_report(tec_canary_policy(canary))->failures == 0);
    CHECK_INT(tec_canary_poll(canary, &err), ==, TEC_OK);
    int64_t live = heap.live;
    REQUIRE(load(canary, COUNTER("2", "5", "") " end }") == TEC_OK);
    tec_canary_poll(canary, &err);
    frame_of(canary, &t, 60);
    tec_canary_drop(canary);
    frame_of(canary, &t, 61);
    next(canary, TEC_CANARY_TRIAL);
    CHECK_STR(next(canary, TEC_CANARY_REJECTED).message, "given up by order");
    tec_canary_poll(canary, &err);
    CHECK_INT(heap.live, ==, live);
    tec_canary_destroy(canary);
}

TEST(the_first_failed_call_ends_a_trial)
{
    struct tec_topology t = view_topology();
    static const char bad[] = "return policy { name = 'bad', api = 1,\n"
                              "%s = function() error('%s') end%s }";
    static const struct {
        const char *hook, *more;
        int frames;
    } cases[] = {{"admit", ", plan = function() error('p') end", 0},
                 {"evict", ", plan = function() error('p') end", 0},
                 {"plan", ", observe = function() error('o') end", 1},
                 {"observe", ", plan = function() end", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[200], reason[32];
        snprintf(text, sizeof text, bad, cases[i].hook, cases[i].hook, cases[i].more);
        struct tec_canary *canary = canary_of(COUNTER("1", "4", "") " end }", &t, 5, NULL);
        struct tec_planner planner = tec_canary_planner(canary);
        REQUIRE(load(canary, text) == TEC_OK);
        tec_canary_poll(canary, &err);
        view_fill(&f, 7, 3, 2);
        for (int k = 0; k < 3; k++) {
            CHECK(planner.admit(planner.self, &f.view, &f.req[0], reason));
            CHECK_INT(planner.evict(planner.self, &f.view, 1), ==, -1);
        }
        frame_of(canary, &t, 7);
        next(canary, TEC_CANARY_TRIAL);
        struct tec_canary_event event = next(canary, TEC_CANARY_REJECTED);
        CHECK(event.frame == 7 && event.trial.frames == cases[i].frames);
        CHECK(strstr(event.message, cases[i].hook) && strstr(event.message, "strike 1/3"));
        tec_canary_poll(canary, &err);
        CHECK_INT(load(canary, text), ==, TEC_OK); /* another one may come */
        tec_canary_destroy(canary);
    }
    CHECK_INT(heap.live, ==, 0);
}

/* Between two observations a paused text makes many frames, and this policy never fails on them. */
TEST(frames_without_an_observation_prove_nothing)
{
    static const char fails[] = "return policy { name = 'fails', api = 1, plan = function(S, F, D) "
                                "if F.nreq == 3 then error('an observation') end end }";
    struct tec_topology t = view_topology();
    struct tec_canary *canary = canary_of(COUNTER("1", "5", "") " end }", &t, 20, NULL);
    int64_t index = 0;
    CHECK_INT(load(canary, fails), ==, TEC_OK);
    CHECK_INT(tec_canary_poll(canary, &err), ==, TEC_OK);
    for (int i = 0; i < 500; i++)
        frame_with(canary, &t, index++, false);
    next(canary, TEC_CANARY_TRIAL);
    CHECK(quiet(canary)); /* still on trial */
    frame_with(canary, &t, index++, true);
    CHECK(strstr(next(canary, TEC_CANARY_REJECTED).message, "an observation") != NULL);
    tec_canary_destroy(canary);

    /* Its strikes are as many frames with an observation apart: three of them quarantine it. */
    struct tec_policy *policy = view_policy(fails, &t, &patient, &heap);
    struct tec_planner planner = tec_policy_planner(policy);
    struct tec_frame_result result = {.n_nodes = 5};
    for (int i = 0; i < 3; i++) {
        for (int idle = 0; idle < 3000; idle++) {
            view_fill(&f, index++, 2, 0);
            f.view.idle = true;
            view_plan(&planner, &t, &f.view, &d, NULL);
            planner.observe(planner.self, &f.view, &result);
        }
        CHECK(!tec_policy_report(policy)->quarantined);
        view_fill(&f, index++, 3, 0);
        view_plan(&planner, &t, &f.view, &d, NULL);
        planner.observe(planner.self, &f.view, &result);
    }
    CHECK(tec_policy_report(policy)->quarantined);
    tec_policy_close(policy);
    CHECK_INT(heap.live, ==, 0);
}

/* Calls that never end in a strike, but take ten times what a call should: the gate would say so.
 */
TEST(a_candidate_that_is_always_slow_is_rejected)
{
    static const char slow[] =
        "return policy { name = 'slow', api = 1, plan = function(S, F, D) local x = 0 "
        "for i = 1, 30000 do x = (x * 3 + i) % 65536 end D:note('x', x) end }";
    struct tec_topology t = view_topology();
    const struct tec_policy_limits limits = {.soft_us = 20, .hard_us = 2000000};
    const struct tec_canary_options options = {
        .topology = &t, .root = ".", .limits = limits, .trial_frames = 40};
    struct tec_canary *canary = NULL;
    struct tec_policy *first = view_policy(COUNTER("1", "5", "") " end }", &t, &patient, &heap);
    REQUIRE(tec_canary_create(&canary, &options, first, &heap, &err) == TEC_OK);
    CHECK_INT(load(canary, slow), ==, TEC_OK);
    CHECK_INT(tec_canary_poll(canary, &err), ==, TEC_OK);
    for (int64_t i = 0; i < 50; i++)
        frame_of(canary, &t, i);
    next(canary, TEC_CANARY_TRIAL);
    CHECK(strstr(next(canary, TEC_CANARY_REJECTED).message, "budget: 5 of ") != NULL);
    tec_canary_destroy(canary);
    CHECK_INT(heap.live, ==, 0);
}

TEST(a_state_that_cannot_be_handed_on_keeps_the_old_policy)
{
    struct tec_topology t = view_topology();
    static const struct {
        const char *old, *fresh, *says;
    } cases[] = {
        {COUNTER("1", "4", "") " end }",
         COUNTER("2", "5", "migrate = function(old) return old.n.x end,") " end }",
         "policy 'counter': migrate: "},
        {COUNTER("1", "4", "") " end }",
         COUNTER("2", "5", "migrate = function() while true do end end,") " end }", "time budget"},
        {COUNTER("1", "4", "") " end }", COUNTER("2", "5", "migrate = function() end,") " end }",
         "migrate must return the new state, it returned nil"},
        {COUNTER("1", "4", "") " end }",
         COUNTER("2", "5", "migrate = function() return { print } end,") " end }", "migrate"},
        {COUNTER("1", "4", "") " end }",
         COUNTER("2", "5", "migrate = function() return { function() end } end,") " end }",
         "holds a function"},
        {COUNTER("1", "4", "") " S.f = function() end end }", COUNTER("2", "5", CARRY) " end }",
         "the state of policy 'counter' holds a function, only plain data can be handed on"},
        {COUNTER("1", "4", "") " if not S.x then local x = {} for i = 1, 4096 do x[i] = i end\n"
                               "for i = 1, 4096 do x[i] = nil end S.x = {}\n"
                               "for i = 1, 3000 do S.x[i] = x end end end }",
         COUNTER("2", "5", CARRY) " end }", "takes longer than 300 us to copy"}};
    static const struct tec_policy_limits limits = {.hard_us = 2000000};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool last = i + 1 == sizeof cases / sizeof cases[0];
        struct tec_canary *canary = limited_canary(cases[i].old, &t, last ? &limits : &patient);
        REQUIRE(load(canary, cases[i].fresh) == TEC_OK);
        frame_of(canary, &t, 0);
        enum tec_status status = tec_canary_poll(canary, &err);
        bool good = status != TEC_OK && strstr(err.message, cases[i].says);
        if (!good)
            fprintf(stderr, "# case %d: %s\n", (int)i, err.message);
        CHECK(good && !tec_canary_waits(canary));
        for (int k = 1; k < 5; k++)
            frame_of(canary, &t, k);
        CHECK(d.rows[0].k == 4 && quiet(canary));
        CHECK_INT(load(canary, COUNTER("2", "5", "") " end }"), ==, TEC_OK);
        tec_canary_destroy(canary);
    }
    CHECK_INT(heap.live, ==, 0);
}

TEST(files_that_do_not_load_change_nothing)
{
    struct tec_topology t = view_topology();
    struct tec_canary *canary = canary_of(COUNTER("1", "4", "") " end }", &t, 1, NULL);
    CHECK_INT(load(canary, "return policy { name = 'x' }"), ==, TEC_POLICY);
    CHECK_INT(tec_canary_load(canary, "oxigen", NULL, 0, NULL, &err), ==, TEC_NOT_FOUND);
    struct tec_param_value given = {"k", 400};
    CHECK_INT(tec_canary_load(canary, "oxygen", &given, 1, NULL, &err), ==, TEC_INVALID);
    CHECK_INT(tec_canary_load(canary, "oxygen", NULL, 0, NULL, &err), ==, TEC_OK);
    CHECK_INT(tec_canary_poll(canary, &err), ==, TEC_OK);
    for (int i = 0; i < 3; i++)
        frame_of(canary, &t, i);
    CHECK_STR(tec_policy_name(tec_canary_policy(canary)), "oxygen");
    tec_canary_destroy(canary);
    CHECK_INT(heap.live, ==, 0);
}

/* --- back again ------------------------------------------------------------------------------- */

static int closed;

static void closing(void *user, struct tec_policy *policy)
{
    closed += tec_policy_report(policy)->failures > 0;
    CHECK_INT(tec_policy_dump(policy, user, &err), ==, TEC_OK);
}

TEST(a_strike_on_probation_brings_the_old_policy_back)
{
    struct tec_topology t = view_topology();
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    const struct tec_canary_options options = {.topology = &t,
                                               .root = ".",
                                               .limits = patient,
                                               .trial_frames = 2,
                                               .closing = closing,
                                               .user = to};
    struct tec_canary *canary = NULL;
    REQUIRE(tec_canary_create(&canary, &options,
                              view_policy(COUNTER("1", "4", "") " end }", &t, &patient, &heap),
                              &heap, &err) == TEC_OK);
    REQUIRE(
        load(canary, COUNTER("2", "5", CARRY) " if F.index == 700 then error('bad') end end }") ==
        TEC_OK);
    frame_of(canary, &t, 0);
    tec_canary_poll(canary, &err);
    for (int i = 1; i < 1200; i++) {
        frame_of(canary, &t, i);
        CHECK_INT(d.rows[0].k, ==, i == 700 ? 0 : i > 2 && i < 700 ? 5 : 4);
    }
    next(canary, TEC_CANARY_TRIAL);
    next(canary, TEC_CANARY_ADOPTED);
    struct tec_canary_event event = next(canary, TEC_CANARY_RETURNED);
    CHECK(event.frame == 701 && event.version == 2 && strstr(event.message, "bad"));
    CHECK(quiet(canary));
    closed = 0;
    tec_canary_poll(canary, &err);
    CHECK_INT(closed, ==, 1);
    fflush(to);
    CHECK(text && strstr(text, "\"traceback\":[") && strstr(text, "\"frame\":700"));
    tec_canary_destroy(canary);
    fclose(to);
    free(text);
    CHECK_INT(heap.live, ==, 0);
}

TEST(after_probation_strikes_lead_to_the_fallback)
{
    struct tec_topology t = view_topology();
    struct tec_policy *fallback = NULL;
    REQUIRE(tec_policy_open(&fallback, "oxygen", ".", &t, &patient, NULL, 0, &heap, &err) ==
            TEC_OK);
    struct tec_canary *canary = canary_of(COUNTER("1", "4", "") " end }", &t, 1, fallback);
    REQUIRE(load(canary, COUNTER("2", "8", "") " if F.index > 200 then error('bad') end end }") ==
            TEC_OK);
    tec_canary_poll(canary, &err);
    for (int i = 0; i < 210; i++) {
        frame_of(canary, &t, i);
        CHECK_INT(d.rows[0].k, ==, i == 0 ? 4 : i <= 200 ? 8 : i <= 203 ? 0 : 5);
    }
    next(canary, TEC_CANARY_TRIAL);
    next(canary, TEC_CANARY_ADOPTED);
    CHECK(strstr(next(canary, TEC_CANARY_FALLBACK).message, "quarantined"));
    tec_canary_rollback(canary); /* the one before is still at hand */
    frame_of(canary, &t, 210);
    CHECK_INT(d.rows[0].k, ==, 4);
    next(canary, TEC_CANARY_ROLLBACK);
    tec_canary_fallback_now(canary);
    frame_of(canary, &t, 211);
    CHECK_INT(d.rows[0].k, ==, 5);
    tec_canary_reinstate(canary);
    frame_of(canary, &t, 212);
    CHECK_INT(d.rows[0].k, ==, 4);
    CHECK_STR(next(canary, TEC_CANARY_FALLBACK).message, "by order");
    tec_canary_fallback_now(canary);
    tec_canary_reinstate(canary);
    frame_of(canary, &t, 213);
    CHECK_INT(d.rows[0].k, ==, 4);
    tec_canary_destroy(canary);
    tec_policy_close(fallback);
    CHECK_INT(heap.live, ==, 0);
}

/* --- two threads ------------------------------------------------------------------------------ */

struct frames {
    struct tec_canary *canary;
    const struct tec_topology *topology;
    _Atomic bool stop;
    _Atomic int64_t n;
    bool legal;
};

static void *run_frames(void *user)
{
    struct frames *r = user;
    while (!atomic_load(&r->stop)) {
        frame_of(r->canary, r->topology, atomic_load(&r->n));
        r->legal = r->legal && (d.rows[0].k == 4 || d.rows[0].k == 5 || d.rows[0].k == 0);
        atomic_fetch_add(&r->n, 1);
    }
    return NULL;
}

static void wait_frames(struct frames *r, int n)
{
    int64_t until = atomic_load(&r->n) + n;
    while (atomic_load(&r->n) < until)
        nanosleep(&(struct timespec){0, 100000}, NULL);
}

TEST(policies_change_while_frames_run)
{
    struct tec_topology t = view_topology();
    struct tec_canary *canary = canary_of(COUNTER("1", "4", CARRY) " end }", &t, 5, NULL);
    struct frames frames = {.canary = canary, .topology = &t, .legal = true};
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, run_frames, &frames) == 0);
    static const char *const texts[] = {
        COUNTER("2", "5", CARRY) " end }", COUNTER("3", "4", "") " end }",
        COUNTER("4", "5", CARRY) " if F.index % 20 == 19 then error('x') end end }"};
    int counts[6] = {0}, n = 0;
    /* Whether a trial meets a frame in which the third policy fails is a matter of time. */
    for (int i = 0; i < 60 || (i < 1200 && !counts[TEC_CANARY_REJECTED]); i++) {
        if (load(canary, texts[i % 3]) == TEC_OK)
            n++;
        for (int k = 0; k < 50 && (k == 0 || tec_canary_waits(canary)); k++) {
            tec_canary_poll(canary, &err);
            wait_frames(&frames, 1);
        }
        tec_canary_set_param(canary, "k", 4 + i % 2, &err);
        if (i % 7 == 3)
            tec_canary_rollback(canary);
        if (i % 11 == 5)
            tec_canary_drop(canary);
        if (i % 13 == 7)
            tec_canary_fallback_now(canary);
        if (i % 13 == 8)
            tec_canary_reinstate(canary);
        wait_frames(&frames, 12 + i % 7);
        struct tec_canary_event event;
        while (tec_canary_next_event(canary, &event))
            counts[event.kind]++;
    }
    atomic_store(&frames.stop, true);
    pthread_join(thread, NULL);
    printf("# %d loads in %jd frames: %d tried, %d adopted, %d rejected, %d returned, %d rolled "
           "back\n",
           n, (intmax_t)frames.n, counts[TEC_CANARY_TRIAL], counts[TEC_CANARY_ADOPTED],
           counts[TEC_CANARY_REJECTED], counts[TEC_CANARY_RETURNED], counts[TEC_CANARY_ROLLBACK]);
    CHECK(frames.legal);
    CHECK_INT(n, >, 20);
    CHECK_INT(counts[TEC_CANARY_ADOPTED], >, 5);
    CHECK_INT(counts[TEC_CANARY_REJECTED], >, 0);
    tec_canary_destroy(canary);
    CHECK_INT(heap.live, ==, 0);
}

/* --- the frame thread's memory ---------------------------------------------------------------- */

TEST(changing_hands_allocates_nothing_on_the_frame_thread)
{
    struct tec_topology t = view_topology();
    struct tec_canary *canary = canary_of(COUNTER("1", "4", CARRY) " end }", &t, 20, NULL);
    for (int i = 0; i < 50; i++)
        frame_of(canary, &t, i);
    REQUIRE(load(canary, COUNTER("2", "5", CARRY) " end }") == TEC_OK);
    int64_t before = heap.calls;
    frame_of(canary, &t, 50); /* the state is copied */
    CHECK_INT(heap.calls, ==, before);
    tec_canary_poll(canary, &err);
    before = heap.calls;
    int64_t live = heap.live;
    for (int i = 51; i < 200; i++)
        frame_of(canary, &t, i);
    CHECK_INT(d.rows[0].k, ==, 5);
    CHECK_INT(heap.calls, ==, before);
    CHECK_INT(heap.live, ==, live);
    tec_canary_destroy(canary);
}

TEST(every_failed_allocation_is_reported)
{
    struct tec_topology t = view_topology();
    const struct tec_canary_options options = {.topology = &t, .root = ".", .limits = patient};
    enum tec_status status = TEC_NO_MEMORY;
    for (int n = 1; n < 20 && status == TEC_NO_MEMORY; n++) {
        struct tec_heap small = {.fail_at = n};
        struct tec_policy *first = view_policy(COUNTER("1", "4", "") " end }", &t, &patient, &heap);
        struct tec_canary *canary = NULL;
        status = tec_canary_create(&canary, &options, first, &small, &err);
        if (status == TEC_OK)
            tec_canary_destroy(canary);
        else
            tec_policy_close(first);
        CHECK_INT(small.live, ==, 0);
    }
    CHECK_INT(status, ==, TEC_OK);
    CHECK_INT(heap.live, ==, 0);
}

TAP_MAIN
