/* decided.c - tests of what is kept of a frame's decisions, and of the planner that decides it
 * again: its answers before the plan, frames that were cut short, what was never known. */
#include "graph/live/decided.h"
#include "graph/run/loop/loop.h"
#include "tests/tap.h"

#include <math.h>
#include <string.h>

enum { NODES = 3, ROWS = 3 };

static struct tec_deciding deciding;
static struct tec_decision decision;
static struct tec_frame_record record;
static const struct tec_request_view view[ROWS] = {{.id = 4}, {.id = 6}, {.id = 9}};
static const struct tec_tick tick = {.frame = 7, .session = 1}, second = {.frame = 9, .session = 2};

static void hear(const struct tec_tick *at, struct tec_event event)
{
    event.tick = at;
    tec_deciding_hear(&deciding, &event);
}

static void begin(void)
{
    tec_deciding_init(&deciding, NODES);
    memset(&decision, 0, sizeof decision);
    record = (struct tec_frame_record){.frame = 7};
    decision.n_rows = ROWS;
    decision.nodes[0].slices = 8;
    for (int i = 0; i < ROWS; i++)
        decision.rows[i].k = 1 + i;
    hear(&tick, (struct tec_event){.kind = TEC_EVENT_FRAME});
    hear(&second, (struct tec_event){.kind = TEC_EVENT_FRAME});
}

static void plan(void)
{
    hear(&tick, (struct tec_event){
                    .kind = TEC_EVENT_PLAN, .what = "oxygen", .decision = &decision, .view = view});
}

static void end(void)
{
    hear(&tick, (struct tec_event){.kind = TEC_EVENT_FRAME_END, .record = &record});
    hear(&second, (struct tec_event){.kind = TEC_EVENT_FRAME_END, .record = &record});
}

static void shed(const struct tec_tick *at, int64_t request, const char *why)
{
    hear(at, (struct tec_event){.kind = TEC_EVENT_SHED, .request = request, .what = why});
}

static struct tec_planner again(struct tec_following *f, const struct tec_decided *decided)
{
    *f = (struct tec_following){
        .decided = decided, .otherwise = tec_default_planner, .n_nodes = NODES};
    return tec_following_planner(f);
}

TEST(answers_before_the_plan_are_given_again)
{
    struct tec_following f;
    char reason[32] = "";
    struct tec_frame_view v = {.n_req = ROWS, .req = view, .next_id = 10};
    begin();
    shed(&tick, 2, "deadline");
    shed(&second, 3, "superseded");
    shed(&second, 6, "evicted");
    hear(&second, (struct tec_event){.kind = TEC_EVENT_ARRIVE, .request = 10});
    hear(&second,
         (struct tec_event){.kind = TEC_EVENT_REFUSE, .request = 10, .what = "too many of them"});
    plan();
    shed(&tick, 4, "deadline"); /* the plan's */
    end();
    const struct tec_decided *d = &deciding.now;
    CHECK(d->whole && d->frame == 7 && d->session == 1 && strcmp(d->policy, "oxygen") == 0);
    CHECK(d->n_late == 1 && d->n_evicted == 1 && d->n_refused == 1);
    const struct tec_planner p = again(&f, d);
    CHECK(p.late(p.self, 1, 2, false));
    CHECK(!p.late(p.self, 2, 2, true)); /* the clock is not asked */
    CHECK(!p.late(p.self, 1, 4, true));
    CHECK_INT(p.evict(p.self, &v, 1), ==, 1);
    v.next_id = 11;
    CHECK_INT(p.evict(p.self, &v, 1), ==, -1);
    CHECK(p.admit(p.self, &v, &(struct tec_request_view){.id = 9}, reason));
    CHECK(!p.admit(p.self, &v, &(struct tec_request_view){.id = 10}, reason));
    CHECK_STR(reason, "too many of them");
}

TEST(a_plan_is_given_again_where_the_same_requests_live)
{
    struct tec_following f;
    struct tec_error err;
    struct tec_decision now = {.n_rows = ROWS};
    struct tec_request_view other[ROWS] = {view[0], view[1], {.id = 8}};
    begin();
    decision.rows[2].shed = true;
    plan();
    end();
    const struct tec_planner p = again(&f, &deciding.now);
    CHECK(p.plan(p.self, &(struct tec_frame_view){.n_req = ROWS, .req = view}, &now, &err) ==
          TEC_OK);
    CHECK(f.followed && tec_decision_same(&now, &decision, NODES));
    CHECK_STR(tec_planner_name(&p), "oxygen");
    memset(&now, 0, sizeof now);
    now.n_rows = ROWS;
    CHECK(p.plan(p.self, &(struct tec_frame_view){.n_req = ROWS, .req = other}, &now, &err) ==
          TEC_OK);
    CHECK(!f.followed && now.rows[0].k == 0);
    now.n_rows = ROWS - 1;
    CHECK(p.plan(p.self, &(struct tec_frame_view){.n_req = 2, .req = view}, &now, &err) == TEC_OK);
    CHECK(!f.followed);
    CHECK_STR(tec_planner_name(&p), "default");
}

/* Of three rows one had a launch, of eight slices two ran; those of another prefill were not
 * planned. */
TEST(a_frame_that_was_cut_short_is_what_came_of_it)
{
    static const int64_t requests[] = {6, 100};
    for (int cut = 0; cut < 2; cut++) {
        const struct tec_ring_event ring = {.slot = 0};
        begin();
        plan();
        hear(&tick, (struct tec_event){
                        .kind = TEC_EVENT_START, .node = 0, .flag = true, .slices = 2, .of = 8});
        hear(&tick, (struct tec_event){.kind = TEC_EVENT_START, .node = 0, .slices = 8, .of = 8});
        hear(&tick,
             (struct tec_event){.kind = TEC_EVENT_START, .node = 2, .requests = requests, .n = 2});
        hear(&tick, (struct tec_event){.kind = TEC_EVENT_START,
                                       .node = 2,
                                       .requests = (const int64_t[]){9},
                                       .n = 1,
                                       .ring = &ring});
        record.cut = cut;
        end();
        const struct tec_decision *d = &deciding.now.decision;
        CHECK_INT(d->rows[0].k, ==, cut ? 0 : 1);
        CHECK_INT(d->rows[1].k, ==, 2);
        CHECK_INT(d->rows[2].k, ==, cut ? 0 : 3);
        CHECK_INT(d->nodes[0].slices, ==, cut ? 2 : 8);
    }
}

TEST(segments_that_were_not_kept_are_computed_again)
{
    static const struct tec_segment_view segments[] = {
        {.id = 1}, {.id = 2, .dirty = true}, {.id = 3}};
    struct tec_event event = {.kind = TEC_EVENT_PLAN,
                              .what = "keep",
                              .decision = &decision,
                              .view = view,
                              .segments = segments,
                              .n_segments = 3};
    const struct tec_decision *d = &deciding.now.decision;
    begin();
    hear(&tick, event);
    CHECK(d->n_seg == 3 && !d->seg[0].skip && d->seg[1].skip && !d->seg[2].skip);
    CHECK(d->seg[0].score == 0.0 && d->seg[2].score == 0.0);
    begin();
    decision.n_seg = 3;
    decision.seg[0] = (struct tec_segment_decision){.score = HUGE_VAL, .skip = true};
    decision.seg[1] = (struct tec_segment_decision){.score = -HUGE_VAL};
    hear(&tick, event);
    CHECK(d->seg[0].skip && d->seg[1].skip && !d->seg[2].skip);
    CHECK(isfinite(d->seg[0].score) && isfinite(d->seg[1].score));
    begin();
    event.n_segments = 1; /* the first, which is kept */
    hear(&tick, event);
    CHECK_INT(d->n_seg, ==, 0);
}

TEST(what_has_no_room_is_not_whole)
{
    begin();
    for (int i = 0; i < TEC_DECIDED_REFUSED; i++)
        hear(&tick, (struct tec_event){.kind = TEC_EVENT_REFUSE, .request = i, .what = ""});
    CHECK(deciding.now.whole);
    hear(&tick, (struct tec_event){.kind = TEC_EVENT_REFUSE, .request = 300, .what = ""});
    plan();
    end();
    CHECK(!deciding.now.whole && deciding.now.n_refused == TEC_DECIDED_REFUSED);
    begin();
    for (int i = 0; i <= TEC_DECIDED_GIVEN_UP; i++)
        shed(&tick, i, "deadline");
    plan();
    end();
    CHECK(!deciding.now.whole);
    begin();
    end();
    CHECK(!deciding.now.whole); /* it has no plan */
}

static int asked;

static bool refuses(void *self, const struct tec_frame_view *v, const struct tec_request_view *r,
                    char reason[32])
{
    (void)self, (void)v, (void)r, (void)reason;
    asked++;
    return false;
}

static enum tec_status plans(void *self, const struct tec_frame_view *v, struct tec_decision *d,
                             struct tec_error *err)
{
    (void)self, (void)v, (void)d;
    asked++;
    return tec_fail(err, TEC_POLICY, "a mood");
}

static void observes(void *self, const struct tec_frame_view *v, const struct tec_frame_result *r)
{
    (void)self, (void)v, (void)r;
    asked++;
}

static int evicts(void *self, const struct tec_frame_view *v, int n)
{
    (void)self, (void)v;
    asked++;
    return n;
}

TEST(what_is_not_known_is_asked)
{
    struct tec_following f;
    struct tec_error err;
    char reason[32];
    struct tec_frame_view v = {.n_req = ROWS, .req = view};
    struct tec_planner p = again(&f, NULL);
    decision.n_rows = ROWS;
    CHECK(p.admit(p.self, &v, view, reason) && p.evict(p.self, &v, 1) == -1);
    CHECK(p.plan(p.self, &v, &decision, &err) == TEC_OK && p.late(p.self, 0, 4, true));
    f.otherwise = (struct tec_planner){
        .name = "other", .admit = refuses, .plan = plans, .observe = observes, .evict = evicts};
    asked = 0;
    CHECK(!p.admit(p.self, &v, view, reason) && p.evict(p.self, &v, 3) == 3);
    CHECK(p.plan(p.self, &v, &decision, &err) == TEC_POLICY);
    p.observe(p.self, &v, &(struct tec_frame_result){.tokens = 0});
    CHECK_INT(asked, ==, 4);
    CHECK(!p.late(p.self, 0, 4, false));
    CHECK_STR(tec_planner_name(&p), "other");
}

static enum tec_status waits(void *self, const struct tec_frame_view *v, struct tec_decision *d,
                             struct tec_error *err)
{
    (void)self, (void)v, (void)err;
    CHECK_INT(d->rows[0].k, ==, 12); /* it is given the default plan */
    memset(d, 0, sizeof *d);
    asked++;
    return TEC_OK;
}

/* Whoever has to decide the next frame hears of this one, and decides nothing in it. */
TEST(of_what_is_known_the_policy_hears)
{
    struct tec_following f;
    struct tec_error err;
    char reason[32];
    struct tec_frame_view v = {.n_req = ROWS, .req = view};
    struct tec_decision now = {.n_rows = ROWS, .rows = {{.k = 12}}};
    begin();
    plan();
    end();
    struct tec_planner p = again(&f, &deciding.now);
    f.otherwise = (struct tec_planner){
        .name = "other", .admit = refuses, .plan = waits, .observe = observes, .evict = evicts};
    asked = 0;
    CHECK(p.admit(p.self, &v, view, reason) && p.evict(p.self, &v, 2) == -1);
    CHECK(p.plan(p.self, &v, &now, &err) == TEC_OK && f.followed);
    CHECK(tec_decision_same(&now, &decision, NODES));
    p.observe(p.self, &v, &(struct tec_frame_result){.tokens = 0});
    CHECK_INT(asked, ==, 4);
    f.otherwise.plan = plans; /* one that fails has failed in vain */
    CHECK(p.plan(p.self, &v, &now, &err) == TEC_OK && f.followed);
    CHECK_STR(tec_planner_name(&p), "oxygen");
}

TEST(a_share_of_rows_is_within_what_was_captured)
{
    const struct tec_topology t = {.n_ratio = 2, .ratio = {0.25, 0.5}}, none = {.n_ratio = 0};
    CHECK(tec_ratio_within(&t, 0.3, 1.0) == 0.3);
    CHECK(tec_ratio_within(&t, 0.9, 1.0) == 0.5 && tec_ratio_within(&none, 0.9, 1.0) == 0.9);
    CHECK(tec_ratio_within(&t, 0.5, 0.25) == 0.25);
    CHECK(tec_ratio_within(&t, -1.0, 1.0) == 0.0 && tec_ratio_within(&t, (double)NAN, 1.0) == 0.0);
    CHECK(tec_ratio_within(&none, HUGE_VAL, 1.0) == 1.0);
}

TAP_MAIN
