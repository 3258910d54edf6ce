/* attacks.c - tests of hostile policies: each returns in time, the frame keeps the default plan,
 * and the state stays usable. */
#include "base/clock.h"
#include "policies/host/policy.h"
#include "policies/host/state.h"
#include "tests/attacks/files.h"
#include "tests/sanitized.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* The budgets of a real policy. A failed observe is followed by a collection, which nothing waits
 * for and which may take COLLECT_US; loading has less time than usual, so that the test is short.
 * The bound on what a call may take beyond its budget is a requirement, not a measurement. With
 * sanitizers a call has SLOWNESS times as long, so that an attack that fails for another reason has
 * the time to, and how long it took says nothing. */
enum { SLOWNESS = SANITIZED ? 10 : 1 };
enum { HARD_US = 500 * SLOWNESS, SETUP_US = 50000 * SLOWNESS };
enum { SLACK_US = 200, COLLECT_US = 1500, BEST_OF = 5 };
enum { HEAP = 512 * 1024, ATTACKED = 41, PROBE_K = 4 };

/* Where the hostile text is placed; an attack at load is the whole file. */
enum where { PLAN, ADMIT, OBSERVE, EVICT, SETUP, LOAD };

struct attack {
    enum where where;
    const char *top, *body; /* text before `return policy`, text in the hook */
    enum tec_status status; /* of the hook, or of opening */
    const char *says;       /* in the message; NULL when it survives */
};

#define OK TEC_OK
#define ERROR TEC_POLICY
#define TIME TEC_TIME
#define MEMORY TEC_NO_MEMORY
#define MALFORMED TEC_MALFORMED
#define LIMIT ((enum tec_status) - 1)  /* of time or memory, whichever the machine reaches first */
#define RUINED ((enum tec_status) - 2) /* the policy breaks itself, nothing else */
#define ATTACK(where, top, body, status, says) {where, top, body, status, says},

static const struct attack library_attacks[] = {
#include "tests/attacks/library.def"
};
static const struct attack time_attacks[] = {
#include "tests/attacks/time.def"
};
static const struct attack memory_attacks[] = {
#include "tests/attacks/memory.def"
};
static const struct attack language_attacks[] = {
#include "tests/attacks/language.def"
};
static const struct attack view_attacks[] = {
#include "tests/attacks/views.def"
};
static const struct attack hook_attacks[] = {
#include "tests/attacks/hooks.def"
};
static const struct attack load_attacks[] = {
#include "tests/attacks/load.def"
};

/* Files that functions write. */
static const struct {
    const char *name;
    void (*write)(struct file_text *f);
    enum tec_status status;
    const char *says;
} hostile_files[] = {
#define HOSTILE(name, status, says) {#name, name, status, says},
#include "tests/attacks/files.def"
#undef HOSTILE
};

static const struct tec_policy_limits limits = {.soft_us = 100,
                                                .hard_us = HARD_US,
                                                .setup_us = SETUP_US,
                                                .heap = HEAP,
                                                .block = 64 * 1024,
                                                .string = 4096,
                                                .strikes = 3,
                                                .window_frames = 1000};
static const char *const inputs[] = {"cam_high", "state"};
static const char *const kv_names[] = {"obs", "lang"};
static const char *const partitions[] = {"rt", "bg"};
static struct tec_request_view requests[TEC_MAX_ROWS];
static const struct tec_kv_view pools[] = {{"lang", 100, 8000, 1800, 10, 3},
                                           {"obs", 968, 968, 17000, 968, 0}};
static const int64_t late[] = {120, 0};
static struct tec_error err;

static struct tec_topology topology(void)
{
    return (struct tec_topology){
        .n_nodes = 4,
        .nodes = {{.name = "see", .kind = "prefill"},
                  {.name = "act", .kind = "action", .partition = "rt", .hard = true},
                  {.name = "talk", .kind = "decode", .partition = "bg"},
                  {.name = "look", .kind = "prefill", .optional = true}},
        .n_batch = 4,
        .batch = {1, 2, 4, 8},
        .n_k = 3,
        .k = {PROBE_K, 5, 8},
        .n_depth = 2,
        .depth = {2, 7},
        .n_rings = 1,
        .rings = {{"obs", 7}},
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
    return strcmp(what, "decode") == 0 ? 4000 + point + q : -1;
}

static double slack(const void *self, double q)
{
    (void)self;
    return 20000 - q;
}

static struct tec_frame_view frame(int64_t index)
{
    for (int i = 0; i < TEC_MAX_ROWS; i++)
        requests[i] = (struct tec_request_view){
            .id = 100 + i, .node = 2, .left = 30, .max = 30, .deadline_us = INT64_MAX};
    return (struct tec_frame_view){.index = index,
                                   .now_us = 2050000,
                                   .deadline_us = 2095000,
                                   .budget_us = 45000,
                                   .period_us = 50000,
                                   .n_req = 4,
                                   .slots = 8,
                                   .horizon = 50,
                                   .req = requests,
                                   .n_kv = 2,
                                   .kv = pools,
                                   .n_inputs = 2,
                                   .late_us = late,
                                   .costs = {cost, slack, NULL},
                                   .last = {.total_us = 40000, .n_nodes = 4},
                                   .seed = 7};
}

/* --- one try ---------------------------------------------------------------------------- */

/* The result of an attack. */
struct outcome {
    enum tec_status status;
    char message[480];
    int64_t cpu_ns; /* the hook, or opening */
    bool untouched, usable;
    int64_t peak;
};

static int64_t cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static const char *const hook_text[] = {
    ("plan = function(S, F, D) if F.index ~= 41 then return D:decode(1, 4) end\n"
     "D:decode(2, 8) D:note('seen', 1) D:skip('look') do\n"),
    "admit = function(S, F, r) if F.index == 41 then\n",
    "observe = function(S, F, R) if F.index == 41 then\n",
    "evict = function(S, F, n) if F.index == 41 then\n", "setup = function(S, T) do\n"};
static const char plan_text[] = "plan = function(S, F, D) D:decode(1, 4) end";

static char path[64];

static void write_policy(const struct attack *a)
{
    snprintf(path, sizeof path, "/tmp/tectum-attack-%d.lua", (int)getpid());
    FILE *f = fopen(path, "w");
    REQUIRE(f);
    if (a->where == LOAD)
        fputs(a->body, f);
    else
        fprintf(f,
                "%s\nreturn policy { name = 'evil', api = 1, state = { n = 0, list = {} },\n"
                "%s %s\nend end%s%s }\n",
                a->top, hook_text[a->where], a->body, a->where == PLAN ? "" : ",\n",
                a->where == PLAN ? "" : plan_text);
    fclose(f);
}

/* Call the hook of the attack in frame ATTACKED. plan leaves its decision in *d. */
static enum tec_status strike_out(const struct tec_planner *p, const struct attack *a,
                                  const struct tec_frame_view *view, struct tec_decision *d)
{
    struct tec_frame_result result = {.n_nodes = 4, .node_us = {1, 12, 3, 4}};
    struct tec_request_view r = {.id = 200, .node = 2};
    char reason[32] = "";
    switch (a->where) {
    case PLAN:
        return p->plan(p->self, view, d, &err);
    case ADMIT:
        p->admit(p->self, view, &r, reason);
        break;
    case OBSERVE:
        p->observe(p->self, view, &result);
        break;
    case EVICT:
        p->evict(p->self, view, 1);
        break;
    default:
        break;
    }
    return TEC_OK;
}

/* Run the frames after the attack, in which the policy decides again. */
static bool probe(const struct tec_planner *p, const struct tec_topology *t)
{
    struct tec_frame_view view = frame(ATTACKED);
    struct tec_frame_result result = {.n_nodes = 4};
    struct tec_decision d;
    bool good = true;
    for (int i = 1; i <= 4; i++) {
        view.index = ATTACKED + i;
        tec_planner_default(t, &view, &d);
        bool decided = p->plan(p->self, &view, &d, &err) == TEC_OK && d.rows[0].k == PROBE_K;
        good = good && decided;
        p->observe(p->self, &view, &result);
    }
    return good;
}

/* Call the hook and check what is left. */
static void call(struct outcome *o, struct tec_policy *policy, const struct attack *a,
                 const struct tec_topology *t)
{
    const struct tec_policy_report *report = tec_policy_report(policy);
    struct tec_planner planner = tec_policy_planner(policy);
    struct tec_frame_view view = frame(ATTACKED);
    struct tec_decision d, expected;
    tec_planner_default(t, &view, &d);
    expected = d;
    int64_t start = cpu_now();
    enum tec_status status = strike_out(&planner, a, &view, &d);
    o->cpu_ns = cpu_now() - start;
    snprintf(o->message, sizeof o->message, "%s", report->message);
    /* Only plan returns a status; for the other hooks the message says what it was. */
    o->status = a->where == PLAN                                 ? status
                : report->failures == 0                          ? TEC_OK
                : strstr(o->message, "time budget used up")      ? TEC_TIME
                : strstr(o->message, "more memory than allowed") ? TEC_NO_MEMORY
                                                                 : TEC_POLICY;
    o->untouched = memcmp(&d, &expected, sizeof d) == 0;
    o->usable = probe(&planner, t) && report->failures <= 1;
}

static struct outcome try(const struct attack *a)
{
    struct tec_heap heap = {0};
    struct tec_topology t = topology();
    struct outcome o = {.untouched = true, .usable = true};
    struct tec_policy *policy = NULL;
    write_policy(a);
    int64_t start = cpu_now();
    err.message[0] = '\0';
    o.status = tec_policy_open(&policy, path, ".", &t, &limits, NULL, 0, &heap, &err);
    o.cpu_ns = cpu_now() - start;
    snprintf(o.message, sizeof o.message, "%s", err.message);
    unlink(path);
    if (o.status == TEC_OK && a->where < SETUP)
        call(&o, policy, a, &t);
    else if (o.status == TEC_OK && a->where == SETUP) {
        struct tec_planner planner = tec_policy_planner(policy);
        o.usable = probe(&planner, &t);
    }
    tec_policy_close(policy);
    o.peak = heap.peak;
    CHECK_INT(heap.live, ==, 0);
    return o;
}

/* The memory that a policy takes without its Lua state growing, such as records for a dump. */
static int64_t beside(void)
{
    static const struct attack harmless = {PLAN, "", "D:decode(1, 4)", TEC_OK, NULL};
    static int64_t bytes;
    if (!bytes)
        bytes = try(&harmless).peak;
    return bytes;
}

/* --- judging ---------------------------------------------------------------------------- */

static double worst_call, worst_load; /* beyond the budget, in microseconds */

static int64_t allowed_ns(const struct attack *a)
{
    int us = a->where < SETUP ? HARD_US + SLACK_US : SETUP_US + 10 * SLACK_US;
    return (int64_t)(a->where == OBSERVE ? us + COLLECT_US : us) * 1000;
}

/* The least CPU time of several tries, because other programs on a shared machine disturb the
 * caches, which is not the policy's doing. */
static int64_t best_time(const struct attack *a, const struct outcome *first)
{
    int64_t best = first->cpu_ns;
    for (int i = 1; i < BEST_OF && best > allowed_ns(a) / 2; i++) {
        int64_t cpu = try(a).cpu_ns;
        best = cpu < best ? cpu : best;
    }
    return best;
}

static bool good_status(const struct attack *a, const struct outcome *o)
{
    if (a->status == RUINED)
        return true;
    /* With so much time a fast machine gets to the end, or to another limit. */
    if (SANITIZED && (a->status == TIME || a->status == LIMIT))
        return true;
    if (a->status == LIMIT || (SANITIZED && a->status == MEMORY))
        return o->status == TEC_TIME || o->status == TEC_NO_MEMORY;
    return o->status == a->status && (o->status == TEC_OK || strstr(o->message, a->says));
}

/* Judge everything but the time. */
static bool good_outcome(const struct attack *a, const struct outcome *o)
{
    int64_t room = 2 * HEAP + beside() + (int64_t)strlen(a->body);
    bool left = o->status == TEC_OK || o->untouched;
    bool goes_on = o->usable || a->status == RUINED;
    return good_status(a, o) && left && goes_on && o->peak <= room;
}

static void judge(const struct attack *a)
{
    struct outcome o = try(a);
    /* A machine that stands still twice during a call ends it: that is no mistake of anybody. */
    for (int i = 1; i < BEST_OF && !good_outcome(a, &o); i++)
        o = try(a);
    int64_t cpu = best_time(a, &o);
    double over = (double)(cpu - allowed_ns(a)) / 1e3 + SLACK_US;
    double *worst = a->where < SETUP ? &worst_call : &worst_load;
    *worst = over > *worst ? over : *worst;
    bool good = good_outcome(a, &o) && (SANITIZED || cpu <= allowed_ns(a));
    if (!good)
        fprintf(stderr, "# %.60s | %.200s\n# -> %s, %.0f us, %s, %s, peak %lld: %s\n", a->top,
                a->body, tec_status_name(o.status), (double)cpu / 1e3,
                o.untouched ? "default plan" : "plan changed", o.usable ? "usable" : "unusable",
                (long long)o.peak, o.message);
    CHECK(good);
}

static void judge_all(const struct attack *attacks, size_t n)
{
    for (size_t i = 0; i < n; i++)
        judge(&attacks[i]);
    printf("# %zu attacks, worst so far %.0f us over the budget of a call\n", n, worst_call);
}

#define JUDGE(name)                                                                  \
    TEST(name##_attacks_fail)                                                        \
    {                                                                                \
        judge_all(name##_attacks, sizeof name##_attacks / sizeof name##_attacks[0]); \
    }

/* A state that grows by a little in each frame, up to its limit and beyond. */
TEST(growth_over_frames_ends_in_quarantine)
{
    static const char text[] = "return policy { name = 'x', api = 1, state = { list = {} },\n"
                               "plan = function(S, F, D) D:decode(1, 4) for i = 1, 20 do\n"
                               "S.list[#S.list + 1] = {F.index, 'x' .. i} end end }";
    const struct attack a = {LOAD, "", text, TEC_OK, NULL};
    struct tec_heap heap = {0};
    struct tec_topology t = topology();
    struct tec_policy *policy = NULL;
    struct tec_frame_result result = {.n_nodes = 4};
    write_policy(&a);
    REQUIRE(tec_policy_open(&policy, path, ".", &t, &limits, NULL, 0, &heap, &err) == TEC_OK);
    unlink(path);
    const struct tec_policy_report *report = tec_policy_report(policy);
    struct tec_planner planner = tec_policy_planner(policy);
    for (int i = 0; i < 2000; i++) {
        struct tec_frame_view view = frame(i);
        struct tec_decision d, expected;
        tec_planner_default(&t, &view, &d);
        expected = d;
        bool over = report->quarantined;
        enum tec_status status = planner.plan(planner.self, &view, &d, &err);
        CHECK(status == TEC_OK || status == TEC_NO_MEMORY || status == TEC_TIME);
        CHECK(!over || (status == TEC_OK && memcmp(&d, &expected, sizeof d) == 0));
        planner.observe(planner.self, &view, &result);
    }
    CHECK(report->quarantined && report->failures == 3);
    CHECK_INT(heap.peak, <=, 2 * HEAP + beside());
    tec_policy_close(policy);
    CHECK_INT(heap.live, ==, 0);
}

/* Attacks in migrate, when a policy is loaded in place of another. */
static const struct {
    const char *body;
    enum tec_status status;
    const char *says;
} migrations[] = {
    {"while true do end", TIME, "time budget"},
    {"local t = {} while true do t = {t} end", MEMORY, "more memory"},
    {"for i = 1, 1e9 do old[i] = i end", MEMORY, "more memory"},
    {"error({})", ERROR, "of type table"},
    {"error()", ERROR, "of type nil"},
    {"return 5", LIMIT, ""},
    {"return", LIMIT, ""},
    {"return type", LIMIT, ""},
    {"old.me = old return old", LIMIT, ""},
    {"old.f = type return old", LIMIT, ""},
    {"old.x = 0 / 0 return old", OK, NULL},
    {"return { [{}] = 1 }", LIMIT, ""},
    {"for i = 1, 300 do old['k' .. i] = i end return old", LIMIT, ""},
    {"local t = {} for i = 1, 100 do t = {t} end return t", LIMIT, ""},
    {"old = nil v = 0/0 return {}", OK, NULL},
};

static enum tec_status migrate(const char *body, const struct tec_state_copy *copy, int64_t *cpu)
{
    static char text[1000];
    struct tec_heap heap = {0};
    struct tec_topology t = topology();
    struct tec_policy *policy = NULL;
    snprintf(text, sizeof text,
             "return policy { name = 'evil', api = 1, version = 2, state = { n = 0 },\n"
             "plan = function() end, migrate = function(old, v)\n%s\nend }",
             body);
    const struct attack a = {LOAD, "", text, TEC_OK, NULL};
    write_policy(&a);
    REQUIRE(tec_policy_open(&policy, path, ".", &t, &limits, NULL, 0, &heap, &err) == TEC_OK);
    unlink(path);
    int64_t start = cpu_now();
    enum tec_status status = tec_policy_migrate(policy, copy, &err);
    *cpu = cpu_now() - start;
    tec_policy_close(policy);
    CHECK_INT(heap.live, ==, 0);
    return status;
}

TEST(migrations_fail)
{
    static unsigned char bytes[4096];
    struct tec_state_copy copy = {.bytes = bytes, .size = sizeof bytes};
    static const struct attack first = {PLAN, "", "", TEC_OK, NULL};
    struct tec_heap heap = {0};
    struct tec_topology t = topology();
    struct tec_policy *old = NULL;
    write_policy(&first);
    REQUIRE(tec_policy_open(&old, path, ".", &t, &limits, NULL, 0, &heap, &err) == TEC_OK);
    unlink(path);
    REQUIRE(tec_policy_copy_state(old, &copy) == TEC_OK);
    tec_policy_close(old);
    for (size_t i = 0; i < sizeof migrations / sizeof migrations[0]; i++) {
        int64_t cpu;
        enum tec_status status = migrate(migrations[i].body, &copy, &cpu), want;
        want = migrations[i].status;
        bool good = status == want || (want == LIMIT && status != TEC_OK);
        bool said = status == TEC_OK || strstr(err.message, migrations[i].says);
        bool in_time = SANITIZED || cpu < (SETUP_US + 10 * SLACK_US) * INT64_C(1000);
        if (!good || !said || !in_time)
            fprintf(stderr, "# %s -> %s, %lld us: %s\n", migrations[i].body,
                    tec_status_name(status), (long long)cpu / 1000, err.message);
        CHECK(good && said && in_time);
    }
}

/* Long files are attacks at load like the others. */
TEST(long_files_fail)
{
    char *text = malloc(FILE_ROOM);
    REQUIRE(text);
    for (size_t i = 0; i < sizeof hostile_files / sizeof hostile_files[0]; i++) {
        struct file_text f = {text, text + FILE_ROOM};
        hostile_files[i].write(&f);
        const struct attack a = {LOAD, hostile_files[i].name, text, hostile_files[i].status,
                                 hostile_files[i].says};
        judge(&a);
    }
    free(text);
}

JUDGE(library)
JUDGE(time)
JUDGE(memory)
JUDGE(language)
JUDGE(view)
JUDGE(hook)
JUDGE(load)

TAP_MAIN
