/* policy_cost.c - tests the cost of a policy's call against a plain loop of the same interpreter,
 * and that a call allocates nothing.
 *
 * The cost is counted in turns of that loop, run on the same machine in the same rounds. Each frame
 * is timed several times, and the p99 of the frames' best times is held to a bound in turns,
 * because other work on the machine only adds time. Microseconds are printed beside it and held to
 * nothing: `tectum bench` is for them. */
#include "base/clock.h"
#include "tests/policy_view.h"
#include "tests/sanitized.h"

enum { ROUNDS = 5, MOST_ROUNDS = 40, CALLS = 1000, WARM = 64 };

/* The loop below, and how many of its turns the p99 of a plan may take. Turns of a sanitizer or of
 * a build without optimisation weigh otherwise. */
enum { TURNS = 1000 };
#if defined(__OPTIMIZE__) && !SANITIZED
enum { MOST_TURNS = 900 };
#else
enum { MOST_TURNS = 12000 };
#endif
static const char loop_text[] =
    "return policy { name = 'loop', api = 1, needs = { 'decode.k' }, plan = function(S, F, D)\n"
    "  local x = 0\n"
    "  for i = 1, 1000 do x = (x * 3 + i) % 65536 end\n"
    "  D:note('x', x) end }";

static struct tec_heap heap;
static struct tec_error err;
static const struct tec_clock wall = {NULL};

/* Sort requests by deadline as edf does, and set a curve of 36 ratios. */
static const char sorted_text[] =
    "local order, ratio, layers = {}, {}, 0\n"
    "return policy { name = 'sorted', api = 1, needs = { 'decode.k', 'ratio' },\n"
    "params = { k = int { default = 5, min = 1, max = 32 },\n"
    "           q = num { default = 0.99, min = 0.5, max = 0.999 } },\n"
    "state = { floor = 0.15 },\n"
    "setup = function(S, T) layers = T.layers end,\n"
    "observe = function(S, F, R) S.floor = math.min(0.6, S.floor + 0.001) end,\n"
    "plan = function(S, F, D)\n"
    "  local n = F.nreq\n"
    "  for i = 1, n do\n"
    "    local r, j = F.req[i], i - 1\n"
    "    while j >= 1 do\n"
    "      local o = F.req[order[j]]\n"
    "      if o.deadline_us < r.deadline_us or (o.deadline_us == r.deadline_us and o.id < r.id)\n"
    "      then break end\n"
    "      order[j + 1] = order[j]; j = j - 1\n"
    "    end\n"
    "    order[j + 1] = i\n"
    "  end\n"
    "  local k, q = F.params.k, F.params.q\n"
    "  local b, room = n, F.slack_us(q)\n"
    "  while b > 0 and k * F.cost('decode', b, q) > room do b = b - 1 end\n"
    "  for i = 1, b do D:decode(order[i], k) D:priority(order[i], i - 1) end\n"
    "  for i = b + 1, n do D:pause(order[i]) end\n"
    "  D:note('edf_batch', b)\n"
    "  local r = 0.9\n"
    "  for l = 1, layers do ratio[l] = r r = math.max(S.floor, r * 0.93) end\n"
    "  D:recompute('recall', ratio)\n"
    "end }";

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Of each frame's best time the p50, the p99 and the worst; of all calls the p99 and the worst. */
struct cost {
    int64_t best_p50, best_p99, best_worst, raw_p99, raw_worst, allocations;
    double turn_ns; /* of the loop: the median of its frames' best times */
};

static bool within(const struct cost *cost)
{
    return (double)cost->best_p99 < MOST_TURNS * cost->turn_ns;
}

/* Time one round of calls on views in which everything changes, and keep the best time of each
 * frame. */
static void round_of(struct tec_policy *policy, const struct tec_topology *t, int n_seg,
                     int64_t raw[CALLS], int64_t best[CALLS], struct cost *cost)
{
    static struct view_frame f;
    static struct tec_decision d;
    struct tec_planner planner = tec_policy_planner(policy);
    struct tec_frame_result result = {.n_nodes = 5, .total_us = 40000};
    int64_t before = 0;
    for (int i = -WARM; i < CALLS; i++) {
        if (i == 0)
            before = tec_policy_allocations(policy) + heap.calls;
        view_fill(&f, i + WARM, 8, n_seg);
        tec_planner_default(t, &f.view, &d);
        int64_t start = tec_clock_now(&wall);
        enum tec_status status = planner.plan(planner.self, &f.view, &d, &err);
        int64_t took = tec_clock_now(&wall) - start;
        if (i >= 0) {
            raw[i] = took;
            best[i] = best[i] == 0 || took < best[i] ? took : best[i];
        }
        REQUIRE(status == TEC_OK);
        planner.observe(planner.self, &f.view, &result);
    }
    cost->allocations += tec_policy_allocations(policy) + heap.calls - before;
}

/* Run several rounds of a policy and of the loop, one after the other; `policy` is closed. */
static void rounds_of(struct tec_policy *policy, const struct tec_topology *t, int n_seg,
                      struct cost *cost)
{
    static int64_t best[CALLS], loop_best[CALLS], sorted[CALLS], raw[MOST_ROUNDS * CALLS];
    static int64_t loop_raw[CALLS];
    struct tec_policy *loop = view_policy(loop_text, t, &patient, &heap);
    struct cost ignored = {0};
    int rounds = 0;
    REQUIRE(policy && loop);
    memset(best, 0, sizeof best);
    memset(loop_best, 0, sizeof loop_best);
    while (rounds < MOST_ROUNDS && (rounds < ROUNDS || !within(cost))) {
        round_of(policy, t, n_seg, raw + (ptrdiff_t)rounds * CALLS, best, cost);
        round_of(loop, t, n_seg, loop_raw, loop_best, &ignored);
        rounds++;
        memcpy(sorted, loop_best, sizeof sorted);
        qsort(sorted, CALLS, sizeof sorted[0], by_value);
        int64_t median = sorted[CALLS / 2];
        cost->turn_ns = (double)median / TURNS;
        memcpy(sorted, best, sizeof sorted);
        qsort(sorted, CALLS, sizeof sorted[0], by_value);
        cost->best_p50 = sorted[CALLS / 2];
        cost->best_p99 = sorted[CALLS * 99 / 100];
        cost->best_worst = sorted[CALLS - 1];
    }
    int n = rounds * CALLS;
    qsort(raw, (size_t)n, sizeof raw[0], by_value);
    cost->raw_p99 = raw[n / 100 * 99];
    cost->raw_worst = raw[n - 1];
    printf("# %s, 8 requests, %d segments: plan, each frame's best of %d: p50 %.2f us, p99 %.2f us "
           "= %.0f turns of %.2f ns, max %.2f us; all %d calls: p99 %.2f us, max %.2f us; %jd "
           "allocations\n",
           tec_policy_name(policy), n_seg, rounds, (double)cost->best_p50 / 1e3,
           (double)cost->best_p99 / 1e3, (double)cost->best_p99 / cost->turn_ns, cost->turn_ns,
           (double)cost->best_worst / 1e3, n, (double)cost->raw_p99 / 1e3,
           (double)cost->raw_worst / 1e3, (intmax_t)cost->allocations);
    tec_policy_close(loop);
    tec_policy_close(policy);
}

static bool measure(struct tec_policy *policy, const struct tec_topology *t, int n_seg)
{
    struct cost cost = {0};
    rounds_of(policy, t, n_seg, &cost);
    CHECK_INT(cost.allocations, ==, 0);
    return within(&cost);
}

TEST(eight_sorted_requests_and_36_ratios)
{
    struct tec_topology t = view_topology();
    CHECK(measure(view_policy(sorted_text, &t, &patient, &heap), &t, 0));
}

TEST(bundled_policies)
{
    struct tec_topology t = view_topology();
    static const char *const names[] = {"default",  "oxygen", "isolated", "shared_kv", "batch_only",
                                        "parallel", "edf",    "slack_k",  "objective", "chaos"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct tec_policy *policy = NULL;
        tec_policy_open(&policy, names[i], ".", &t, &patient, NULL, 0, &heap, &err);
        CHECK(measure(policy, &t, 0));
    }
}

TEST(segments_cost_what_moves_in_them)
{
    struct tec_topology t = view_topology();
    measure(view_policy("return policy { name = 'segments', api = 1, plan = function(S, F, D)\n"
                        "  for i = 1, F.nseg do local s = F.seg[i]\n"
                        "    if s.importance < 0.01 and not s.dirty then D:skip_segment(i)\n"
                        "    else D:load_order(i, s.importance) end end end }",
                        &t, &patient, &heap),
            &t, 32);
}

TAP_MAIN
