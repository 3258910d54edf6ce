/* objective.c - tests the bundled objective policy against every case of the golden table of Eq.
 * 5-6. */
#include "policies/host/policy.h"
#include "tests/tap.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

static struct tec_heap heap;
static struct tec_error err;

enum { MAX_STEPS = 64 };

/* One case: its costs by the number of rows. */
struct table {
    double prefill, action, step[MAX_STEPS + 1]; /* step[b] = 0: not captured */
    int largest;
};

/* b rows take the smallest captured batch that holds them; more rows than the largest take several
 * launches. */
static double step_us(const struct table *t, int rows)
{
    int full = (rows - 1) / t->largest, rest = rows - full * t->largest;
    while (t->step[rest] == 0)
        rest++;
    return full * t->step[t->largest] + t->step[rest];
}

static double cost(const void *self, const char *what, double point, double q)
{
    const struct table *t = self;
    (void)q;
    if (strcmp(what, "prefill") == 0)
        return t->prefill;
    if (strcmp(what, "action") == 0)
        return t->action;
    return strcmp(what, "decode") == 0 ? step_us(t, (int)point) : -1;
}

static struct table read_table(const json_t *c)
{
    double hard = json_number_value(json_object_get(c, "hard_us"));
    struct table t = {.prefill = floor(hard * 0.7)};
    const char *rows;
    json_t *us;
    t.action = hard - t.prefill;
    json_object_foreach(json_object_get(c, "step_us"), rows, us)
    {
        int b = atoi(rows);
        REQUIRE(b >= 1 && b <= MAX_STEPS);
        t.step[b] = json_number_value(us);
        t.largest = b > t.largest ? b : t.largest;
    }
    return t;
}

static struct tec_topology read_topology(const json_t *c, const struct table *t)
{
    struct tec_topology top = {
        .n_nodes = 3,
        .nodes = {{.name = "see", .kind = "prefill"},
                  {.name = "act", .kind = "action", .deadline_us = 600000, .hard = true},
                  {.name = "talk", .kind = "decode"}},
        .slots = (int)json_integer_value(json_object_get(c, "slots")),
        .horizon = (int)json_integer_value(json_object_get(c, "horizon")),
        .period_us = 600000};
    const json_t *k = json_object_get(c, "k");
    for (; top.n_k < (int)json_array_size(k); top.n_k++)
        top.k[top.n_k] = (int)json_integer_value(json_array_get(k, (size_t)top.n_k));
    top.n_batch = 1; /* the policy needs the axis, costs know the points */
    top.batch[0] = t->largest;
    return top;
}

static struct tec_policy *open_objective(const json_t *c, const struct tec_topology *top)
{
    const struct tec_param_value params[] = {
        {"f_min", json_number_value(json_object_get(c, "f_min"))},
        {"every", json_number_value(json_object_get(c, "spawn_every"))},
        {"period_us", json_number_value(json_object_get(c, "period_us"))}};
    static const struct tec_policy_limits patient = {.soft_us = 50000, .hard_us = 100000};
    struct tec_policy *policy = NULL;
    if (tec_policy_open(&policy, "objective", ".", top, &patient, params, 3, &heap, &err) != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    return policy;
}

/* Ask what the policy decides with `live` requests in flight. */
static struct tec_decision decide(const json_t *c, int live)
{
    static struct tec_request_view requests[TEC_MAX_ROWS];
    struct table t = read_table(c);
    struct tec_topology top = read_topology(c, &t);
    struct tec_policy *policy = open_objective(c, &top);
    struct tec_decision d = {0};
    int n = (int)json_integer_value(json_object_get(c, "max_tokens"));
    for (int i = 0; i < live; i++)
        requests[i] = (struct tec_request_view){.id = i,
                                                .node = 2,
                                                .max = n,
                                                .left = n,
                                                .deadline_us = INT64_MAX,
                                                .slack_us = INT64_MAX};
    struct tec_frame_view view = {.slots = top.slots,
                                  .horizon = top.horizon,
                                  .period_us = top.period_us,
                                  .n_req = live,
                                  .req = requests,
                                  .costs = {cost, NULL, &t}};
    REQUIRE(policy);
    struct tec_planner planner = tec_policy_planner(policy);
    tec_planner_default(&top, &view, &d);
    CHECK_INT(planner.plan(planner.self, &view, &d, &err), ==, TEC_OK);
    tec_policy_close(policy);
    return d;
}

static double note(const struct tec_decision *d, const char *key)
{
    for (int i = 0; i < d->n_notes; i++)
        if (strcmp(d->notes[i].key, key) == 0)
            return d->notes[i].number;
    return -1;
}

/* In steady state there are as many requests as that k keeps in flight, but at most as many as
 * there are request slots. */
static int in_flight(const json_t *c, int best)
{
    int n = (int)json_integer_value(json_object_get(c, "max_tokens"));
    int every = (int)json_integer_value(json_object_get(c, "spawn_every"));
    int slots = (int)json_integer_value(json_object_get(c, "slots"));
    int life = best > 0 ? (n + best - 1) / best : slots;
    int rows = (life + every - 1) / every;
    return rows < slots ? rows : slots;
}

static bool judge(const json_t *c)
{
    const json_t *expected = json_object_get(c, "expected");
    int best = (int)json_integer_value(json_object_get(expected, "best"));
    bool sustained =
        strcmp(json_string_value(json_object_get(expected, "level")), "sustained") == 0;
    int live = in_flight(c, sustained ? best : 0), running = 0;
    int rows = sustained ? live : (int)json_integer_value(json_object_get(expected, "rows"));
    struct tec_decision d = decide(c, live);
    for (int i = 0; i < d.n_rows; i++) {
        running += d.rows[i].k > 0;
        if (d.rows[i].k > 0 && d.rows[i].k != best)
            return false;
    }
    return running == rows && note(&d, "k") == best &&
           note(&d, "rows") == (sustained ? -1 : rows) && d.snapped == 0;
}

TEST(every_golden_case_is_decided_as_the_table_says)
{
    json_error_t error;
    json_t *all = json_load_file("tests/golden/schedules/objective.json", 0, &error), *c;
    size_t i;
    REQUIRE(all);
    json_array_foreach(json_object_get(all, "cases"), i, c)
    {
        bool ok = judge(c);
        if (!ok)
            fprintf(stderr, "# case %s\n", json_string_value(json_object_get(c, "case")));
        CHECK(ok);
    }
    CHECK_INT(i, >=, 14);
    json_decref(all);
    CHECK_INT(heap.live, ==, 0);
}

TAP_MAIN
