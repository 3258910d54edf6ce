/* policy_memory.c - tests of a policy's decisions about memory, of its views of segments and the
 * device, and of the same decision made in C. */
#include "tests/policy_view.h"

#include <math.h>

static struct tec_heap heap;
static struct tec_error err;
static struct view_frame f;
static struct tec_decision d;

static enum tec_status decide(const char *body, const struct tec_topology *t)
{
    static char text[4096];
    snprintf(text, sizeof text,
             "return policy { name = 'try', api = 1, plan = function(S, F, D)\n%s\nend }", body);
    struct tec_policy *policy = view_policy(text, t, &patient, &heap);
    struct tec_planner planner = tec_policy_planner(policy);
    enum tec_status status = view_plan(&planner, t, &f.view, &d, &err);
    tec_policy_close(policy);
    return status;
}

TEST(ratios_are_clamped_and_never_increase)
{
    struct tec_topology t = view_topology();
    view_fill(&f, 1, 2, 0);
    REQUIRE(decide("D:recompute('recall', { 2, 0.7, 0.8, 0.3, 1 / 0, -1, 0.5 })", &t) == TEC_OK);
    static const double want[] = {0.9, 0.7, 0.7, 0.3, 0.3, 0, 0};
    CHECK_INT(d.n_recompute, ==, 1);
    CHECK_INT(d.recompute->n, ==, 7);
    CHECK_INT(d.recompute->node, ==, 4);
    for (int i = 0; i < 7; i++)
        CHECK(d.recompute->ratios[i] == want[i]);
    CHECK_INT(d.snapped, ==, 1);
    REQUIRE(decide("local r = {} for l = 1, 36 do r[l] = 0.9 / l end D:recompute('recall', r)\n"
                   "r[1] = 5",
                   &t) == TEC_OK);
    CHECK(d.recompute->n == 36 && d.recompute->ratios[0] == 0.9 &&
          d.recompute->ratios[35] == 0.9 / 36);
    CHECK_INT(d.snapped, ==, 0);
    REQUIRE(decide("D:recompute('recall', { 0.5 }) D:recompute('recall', {})", &t) == TEC_OK);
    CHECK_INT(d.recompute->n, ==, 0);
}

TEST(each_memory_has_shares_and_audits_of_its_own)
{
    struct tec_topology t = view_topology();
    int second = t.n_nodes++;
    t.nodes[second] = t.nodes[4];
    t.nodes[second].name = "recall2";
    view_fill(&f, 1, 0, 2);
    f.seg[0].node = 4;
    f.seg[1].node = second;
    REQUIRE(decide("assert(F.seg[1].node == 'recall' and F.seg[2].node == 'recall2')\n"
                   "D:recompute('recall2', { 0.25 }) D:audit('recall2')\n"
                   "D:recompute('recall', { 0.5, 0.3 })",
                   &t) == TEC_OK);
    CHECK_INT(d.n_recompute, ==, 2);
    CHECK(d.recompute[0].node == second && d.recompute[0].n == 1 && d.recompute[0].audit);
    CHECK(d.recompute[0].ratios[0] == 0.25);
    CHECK(d.recompute[1].node == 4 && d.recompute[1].n == 2 && !d.recompute[1].audit);
    CHECK(d.recompute[1].ratios[1] == 0.3);
}

TEST(segments_are_ordered_and_left_out)
{
    struct tec_topology t = view_topology();
    view_fill(&f, 1, 0, 5);
    REQUIRE(decide("D:load_order(2, 0.5) D:load_order(3, 1 / 0) D:load_order(3, -4)\n"
                   "D:skip_segment(5) D:skip_segment(1) D:load_order(1, 7)",
                   &t) == TEC_OK);
    CHECK_INT(d.n_seg, ==, 5);
    static const double score[] = {7, 0.5, -4, 0, 0};
    for (int i = 0; i < 5; i++) {
        CHECK(d.seg[i].score == score[i]);
        CHECK_INT(d.seg[i].skip, ==, i == 4);
    }
    REQUIRE(decide("", &t) == TEC_OK);
    CHECK_INT(d.n_seg, ==, 0);
}

static const struct {
    const char *body, *says;
} refusals[] = {
    {"D:recompute('recall', { 0.5, 0 / 0 })", "a ratio is not a number (NaN)"},
    {"D:recompute('recall', { 0.5, 'x' })", "a ratio must be a number, it is string"},
    {"D:recompute('recall', 0.5)", "ratios must be a list, it is number"},
    {"D:recompute('recall')", "ratios must be a list, it is no value"},
    {"D:recompute('recal', {})", "unknown node 'recal', did you mean 'recall'?"},
    {"D:recompute('act', {})", "node 'act' is no memory_load node"},
    {"local r = {} for i = 1, 37 do r[i] = 0 end D:recompute('recall', r)", "T.layers is 36"},
    {"D:load_order(1, 0 / 0)", "score is not a number (NaN)"},
    {"D:load_order(1)", "score must be a number"},
    {"D:load_order(6, 1)", "no segment 6"},
    {"D:load_order(0, 1)", "no segment 0"},
    {"D:load_order(1.5, 1)", "no segment 1.5"},
    {"D:skip_segment(0 / 0)", "i is not a number (NaN)"},
    {"D:skip_segment('1')", "i must be a number"},
    {"local x = F.seg[1].ids", "no field 'ids' in segment view, did you mean 'id'?"},
    {"local x = F.gpu.clock", "no field 'clock' in device view"},
    {"F.seg[1].x = 1", "segment view is read-only"},
};

TEST(wrong_arguments_are_errors)
{
    struct tec_topology t = view_topology();
    view_fill(&f, 1, 2, 5);
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        bool good = decide(refusals[i].body, &t) == TEC_POLICY &&
                    strstr(err.message, refusals[i].says) && d.n_recompute == 0 && d.n_seg == 0;
        if (!good)
            fprintf(stderr, "# %s -> %s\n", refusals[i].body, err.message);
        CHECK(good);
    }
}

TEST(without_memory_there_is_nothing_to_decide)
{
    struct tec_topology t = view_topology();
    t.n_nodes = 4;
    view_fill(&f, 1, 2, 0);
    CHECK_INT(decide("D:recompute('see', {})", &t), ==, TEC_POLICY);
    CHECK(strstr(err.message, "the pipeline has no memory_load node"));
    CHECK_INT(decide("D:load_order(1, 1)", &t), ==, TEC_POLICY);
    CHECK_INT(decide("D:skip_segment(1)", &t), ==, TEC_POLICY);
    REQUIRE(decide("assert(F.nseg == 0 and #F.seg == 0 and F.seg[1] == nil)", &t) == TEC_OK);
}

TEST(segments_and_the_device_are_shown)
{
    struct tec_topology t = view_topology();
    view_fill(&f, 10, 1, 4);
    f.seg[1].importance = (double)NAN;
    f.seg[2].importance = (double)INFINITY;
    REQUIRE(decide("local s = F.seg[1]\n"
                   "assert(F.nseg == 4 and #F.seg == 4 and F.seg[5] == nil)\n"
                   "assert(s.id == 1000 and s.tokens == 64 and s.tier == 0 and s.dirty)\n"
                   "assert(s.static and s.last_used == 10 and s.importance == 0.5)\n"
                   "assert(F.seg[2].importance ~= F.seg[2].importance)\n"
                   "assert(F.seg[3].importance == math.huge and not F.seg[2].static)\n"
                   "assert(F.gpu.clock_mhz == 1980 and F.gpu.temp_c == 0)\n"
                   "assert(not F.gpu.throttled)",
                   &t) == TEC_OK);
}

/* Views are refreshed only where they differ, so what is shown must always equal what is. */
TEST(views_follow_whatever_moves)
{
    struct tec_topology t = view_topology();
    struct tec_frame_result result = {.n_nodes = 5};
    struct tec_policy *policy = view_policy(
        "return policy { name = 'sum', api = 1, state = { seen = 0 },\n"
        "observe = function(S, F, R) S.seen = R.tokens + R.node_us.talk end,\n"
        "plan = function(S, F, D) local n = 0\n"
        "  for i, r in ipairs(F.req) do n = n + i * (r.id + r.left + r.done + r.age_frames +\n"
        "    r.slack_us + r.kv_bytes + (r.fresh and 1 or 0)) end\n"
        "  D:note('rows', n) n = 0\n"
        "  for i, s in ipairs(F.seg) do n = n + i * (s.id + s.last_used + (s.dirty and 1 or 0)) "
        "end\n"
        "  D:note('segments', n)\n"
        "  D:note('rest', F.index + F.now_us + F.late.cam_high + F.kv('lang').used + F.gpu.temp_c "
        "+\n"
        "    F.last.total_us + F.last.node_us.act + F.nreq + F.nseg) D:note('seen', S.seen) end }",
        &t, &patient, &heap);
    struct tec_planner planner = tec_policy_planner(policy);
    uint32_t random = 1;
    for (int i = 0; i < 500; i++) {
        random = random * 1664525u + 1013904223u;
        view_fill(&f, i, (int)(random >> 24) % (TEC_MAX_ROWS + 1),
                  (int)(random >> 16 & 255) % (TEC_MAX_SEGMENTS + 1));
        f.view.gpu.temp_c = i / 7;
        double rows = 0, segments = 0;
        for (int k = 0; k < f.view.n_req; k++)
            rows += (k + 1) *
                    (double)(f.req[k].id + f.req[k].left + f.req[k].done + f.req[k].age_frames +
                             f.req[k].slack_us + f.req[k].kv_bytes + f.req[k].fresh);
        for (int k = 0; k < f.view.n_seg; k++)
            segments += (k + 1) * (double)(f.seg[k].id + f.seg[k].last_used + f.seg[k].dirty);
        double rest = (double)(f.view.index + f.view.now_us + f.late_us[0] + f.kv[1].used +
                               f.view.gpu.temp_c + f.view.last.total_us + f.view.last.node_us[1] +
                               f.view.n_req + f.view.n_seg);
        REQUIRE(view_plan(&planner, &t, &f.view, &d, &err) == TEC_OK);
        CHECK(d.notes[0].number == rows);
        CHECK(d.notes[1].number == segments);
        CHECK(d.notes[2].number == rest);
        CHECK(d.notes[3].number == (double)(result.tokens + result.node_us[2]));
        result.tokens = i % 5;
        result.node_us[2] = i % 3;
        planner.observe(planner.self, &f.view, &result);
    }
    tec_policy_close(policy);
    CHECK_INT(heap.live, ==, 0);
}

/* --- the same decision from C --------------------------------------------------------------- */

struct native {
    const struct tec_topology *topology;
    int k;
};

/* The policy oxygen written in C: the same members, the same snapping, on top of the same default
 * plan. */
static enum tec_status native_plan(void *self, const struct tec_frame_view *view,
                                   struct tec_decision *decision, struct tec_error *e)
{
    const struct native *n = self;
    (void)view;
    (void)e;
    int k = tec_snap_down(n->topology->k, n->topology->n_k, n->k);
    for (int i = 0; i < decision->n_rows; i++)
        decision->rows[i].k = k;
    decision->snapped = k == n->k ? 0 : decision->n_rows;
    return TEC_OK;
}

/* Where a script decided something is its own. */
static void forget_lines(struct tec_decision *of)
{
    of->source = NULL;
    for (int i = 0; i < of->n_rows; i++)
        of->rows[i].line = 0;
}

TEST(a_native_planner_decides_the_same_bytes)
{
    static struct tec_decision from_lua, from_c;
    struct tec_topology t = view_topology();
    for (int k = 1; k <= 32; k++) {
        struct tec_param_value given = {"k", k};
        struct tec_policy *policy = NULL;
        REQUIRE(tec_policy_open(&policy, "oxygen", ".", &t, &patient, &given, 1, &heap, &err) ==
                TEC_OK);
        struct tec_planner lua = tec_policy_planner(policy);
        struct native self = {&t, k};
        struct tec_planner native = {.name = "native", .self = &self, .plan = native_plan};
        for (int n = 0; n <= 8; n++) {
            view_fill(&f, n, n, 3);
            REQUIRE(view_plan(&lua, &t, &f.view, &from_lua, &err) == TEC_OK);
            REQUIRE(view_plan(&native, &t, &f.view, &from_c, &err) == TEC_OK);
            forget_lines(&from_lua);
            CHECK(memcmp(&from_lua, &from_c, sizeof from_c) == 0);
        }
        tec_policy_close(policy);
    }
}

TEST(decisions_are_compared_by_what_they_ask_for)
{
    static struct tec_decision a, b;
    struct tec_topology t = view_topology();
    view_fill(&f, 1, 3, 4);
    tec_planner_default(&t, &f.view, &a);
    memset(&b, 0xff, sizeof b);
    tec_decision_copy(&b, &a, t.n_nodes);
    CHECK(tec_decision_same(&a, &b, t.n_nodes));
    b.rows[2].k++;
    CHECK(!tec_decision_same(&a, &b, t.n_nodes));
    tec_decision_copy(&b, &a, t.n_nodes);
    b.n_notes = 1;
    CHECK(tec_decision_same(&a, &b, t.n_nodes));
    b.nodes[3].skip = !b.nodes[3].skip;
    CHECK(!tec_decision_same(&a, &b, t.n_nodes));
    tec_decision_copy(&b, &a, t.n_nodes);
    a.n_recompute = b.n_recompute = 1;
    *a.recompute = *b.recompute =
        (struct tec_recompute_decision){.node = 4, .n = 2, .ratios = {0.5, 0.5}};
    CHECK(tec_decision_same(&a, &b, t.n_nodes));
    b.recompute->ratios[1] = 0.25;
    CHECK(!tec_decision_same(&a, &b, t.n_nodes));
}

TAP_MAIN
