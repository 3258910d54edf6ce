/* requests.c - tests of language requests: how a request ends is reported, and stays readable
 * afterwards. */
#include "tests/loop_frame.h"
#include "tests/tiny.h"

#include <string.h>

static struct tec_error err;
static struct tiny tiny;

/* The node "talk" runs at full speed; the node "think" waits for ever. */
static enum tec_status talk_only(void *self, const struct tec_frame_view *view,
                                 struct tec_decision *decision, struct tec_error *error)
{
    (void)self, (void)error;
    for (int i = 0; i < decision->n_rows; i++)
        decision->rows[i].k = view->req[i].node == 2 ? 8 : 0;
    return TEC_OK;
}

static enum tec_status shed_all(void *self, const struct tec_frame_view *view,
                                struct tec_decision *decision, struct tec_error *error)
{
    (void)self, (void)view, (void)error;
    for (int i = 0; i < decision->n_rows; i++)
        decision->rows[i].shed = true;
    return TEC_OK;
}

static const struct tec_utterance *text_of(const struct tec_loop *loop, int64_t id)
{
    for (int i = 0; i < tec_loop_utterances(loop); i++)
        if (tec_loop_utterance(loop, i)->id == id)
            return tec_loop_utterance(loop, i);
    return NULL;
}

static struct tec_loop *open_loop(struct tec_virtual *costs, struct tec_planner planner,
                                  int64_t deadline_us)
{
    struct tec_loop *loop = NULL;
    struct tec_loop_options o = tiny_loop(&tiny);
    costs->plan = tiny.plan;
    o.chains[0].executor = tec_executor_virtual(costs);
    o.planner = planner;
    o.decoders[1].deadline_us = deadline_us;
    o.decoders[1].sheds = true;
    REQUIRE(tec_loop_create(&loop, &o, &tiny_heap, &err) == TEC_OK);
    return loop;
}

/* Request 1 ends in the frame in which another one is born, whichever record comes next by then. */
TEST(a_text_that_ends_is_there_after_its_frame)
{
    static struct tiny_observation seen;
    REQUIRE(tiny_open(&tiny, "pi05", false, 1, 0, &err));
    tiny_observe(&seen, tiny.model, 1);
    for (int last = 2; last < 32; last++) {
        int64_t now = 0;
        struct tec_virtual costs = {.clock_ns = &now, .prefill_ns = 10, .step_ns = 1};
        const struct tec_planner planner = {.name = "talk", .plan = talk_only};
        struct tec_loop *loop = open_loop(&costs, planner, last * 1000);
        for (int f = 0; f <= last; f++) {
            now = (int64_t)f * 1000000 + (f == last ? 1000 : 0);
            loop_frame(loop, &seen.input, now, f == 0 ? 3U : 1U);
        }
        const struct tec_utterance *text = text_of(loop, 1);
        CHECK(text && text->done == 2 && strcmp(text->reason, "deadline") == 0);
        tec_loop_destroy(loop);
    }
    tiny_close(&tiny);
    CHECK_INT(tiny_heap.live, ==, 0);
}

static enum tec_status skip_talk(void *self, const struct tec_frame_view *view,
                                 struct tec_decision *decision, struct tec_error *error)
{
    (void)self, (void)error;
    for (int i = 0; i < decision->n_rows; i++)
        decision->rows[i].k = 2;
    decision->nodes[2].skip = view->index == 0;
    return TEC_OK;
}

TEST(a_skipped_node_stands_still)
{
    static struct tiny_observation seen;
    int64_t now = 0;
    struct tec_virtual costs = {.clock_ns = &now};
    REQUIRE(tiny_open(&tiny, "pi05", false, 1, 0, &err));
    tiny_observe(&seen, tiny.model, 1);
    tiny.topology.nodes[2].optional = true;
    struct tec_loop *loop =
        open_loop(&costs, (struct tec_planner){.name = "skip", .plan = skip_talk}, 0);
    CHECK_INT(loop_frame(loop, &seen.input, 0, 3U)->tokens, ==, 2);
    CHECK_INT(loop_frame(loop, NULL, 0, 0)->tokens, ==, 4);
    tec_loop_destroy(loop);
    tiny_close(&tiny);
}

TEST(a_policy_sheds_what_was_just_born)
{
    static struct tiny_observation seen;
    int64_t now = 0;
    struct tec_virtual costs = {.clock_ns = &now};
    REQUIRE(tiny_open(&tiny, "pi05", false, 1, 0, &err));
    tiny_observe(&seen, tiny.model, 1);
    struct tec_loop *loop =
        open_loop(&costs, (struct tec_planner){.name = "shed", .plan = shed_all}, 0);
    const struct tec_frame_record *r = loop_frame(loop, &seen.input, 0, 3U);
    CHECK_INT(r->shed, ==, 2);
    CHECK_INT(tec_loop_live(loop), ==, 0);
    CHECK_INT(tiny.plan->prefixes.in_use, ==, 0);
    loop_frame(loop, NULL, 0, 0);
    for (int i = 0; i < 2; i++) {
        const struct tec_utterance *text = text_of(loop, i);
        CHECK(text && text->done == 2);
        CHECK_STR(text ? text->reason : "", "policy");
    }
    tec_loop_destroy(loop);
    tiny_close(&tiny);
}

/* --- triggers -------------------------------------------------------------------------------- */

/* The events of a loop that concern requests. */
struct told {
    int arrived, admitted, refused, shed, superseded, finished;
    int64_t last; /* admitted */
};

static void listen(void *self, const struct tec_event *e)
{
    struct told *t = self;
    t->arrived += e->kind == TEC_EVENT_ARRIVE;
    t->admitted += e->kind == TEC_EVENT_ADMIT;
    t->refused += e->kind == TEC_EVENT_REFUSE;
    t->finished += e->kind == TEC_EVENT_FINISH;
    t->shed += e->kind == TEC_EVENT_SHED;
    t->superseded += e->kind == TEC_EVENT_SHED && strcmp(e->what, "superseded") == 0;
    if (e->kind == TEC_EVENT_ADMIT)
        t->last = e->request;
}

static enum tec_status pause_all(void *self, const struct tec_frame_view *view,
                                 struct tec_decision *decision, struct tec_error *error)
{
    (void)self, (void)view, (void)error;
    for (int i = 0; i < decision->n_rows; i++)
        decision->rows[i].k = 0;
    return TEC_OK;
}

static struct tec_loop *open_told(struct tec_virtual *costs, struct told *told,
                                  struct tec_loop_options o)
{
    struct tec_loop *loop = NULL;
    costs->plan = tiny.plan;
    o.chains[0].executor = tec_executor_virtual(costs);
    o.events = (struct tec_event_sink){listen, told};
    REQUIRE(tec_loop_create(&loop, &o, &tiny_heap, &err) == TEC_OK);
    return loop;
}

/* Run a frame of a session with that instruction. */
static void frame_of(struct tec_loop *loop, const struct tiny_observation *seen, int session,
                     uint64_t key, unsigned mute)
{
    struct tec_frame_input input = seen->input;
    struct tec_tick tick = tec_loop_tick(loop, 0, 0);
    input.chains[0].keys[0] = key;
    tick.session = session;
    tick.mute = mute;
    tec_loop_run(loop, &input, &tick);
}

TEST(a_change_of_the_instruction_starts_a_request)
{
    static struct tiny_observation seen;
    static const struct {
        int session;
        uint64_t key;
        unsigned mute;
        int arrived; /* so far */
    } frames[] = {{0, 7, 0, 1}, {0, 7, 0, 1}, {0, 8, 0, 2}, {1, 8, 0, 3}, {0, 8, 0, 3},
                  {1, 9, 0, 4}, {0, 0, 2, 4}, {0, 0, 0, 4}, {0, 8, 0, 5}, {15, 8, 0, 6}};
    int64_t now = 0;
    struct told told = {0};
    struct tec_virtual costs = {.clock_ns = &now};
    REQUIRE(tiny_open(&tiny, "pi05", false, 1, 0, &err));
    tiny_observe(&seen, tiny.model, 1);
    struct tec_loop_options o = tiny_loop(&tiny);
    o.decoders[1].on_change = true;
    struct tec_loop *loop = open_told(&costs, &told, o);
    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++) {
        frame_of(loop, &seen, frames[i].session, frames[i].key, frames[i].mute);
        CHECK_INT(told.arrived, ==, frames[i].arrived);
        loop_frame(loop, NULL, 0, 0); /* no observation: nothing has changed */
    }
    CHECK_INT(told.arrived, ==, 6);
    tec_loop_restart(loop);
    frame_of(loop, &seen, 0, 8, 0); /* the first frame, again */
    CHECK_INT(told.arrived, ==, 7);
    tec_loop_destroy(loop);
    tiny_close(&tiny);
}

TEST(a_new_request_supersedes_older_ones_of_its_node_and_session)
{
    static struct tiny_observation seen;
    int64_t now = 0;
    struct told told = {0};
    struct tec_virtual costs = {.clock_ns = &now};
    REQUIRE(tiny_open(&tiny, "pi05", false, 1, 0, &err));
    tiny_observe(&seen, tiny.model, 1);
    struct tec_loop_options o = tiny_loop(&tiny);
    o.decoders[0].supersede = true;
    o.planner = (struct tec_planner){.name = "pause", .plan = pause_all};
    struct tec_loop *loop = open_told(&costs, &told, o);
    loop_frame(loop, &seen.input, 0, 3U); /* 0 of talk, 1 of think */
    const struct tec_frame_record *r = loop_frame(loop, &seen.input, 0, 3U);
    CHECK_INT(r->shed, ==, 1);
    CHECK_INT(told.superseded, ==, 1);
    CHECK_STR(text_of(loop, 0)->reason, "superseded");
    CHECK_INT(text_of(loop, 0)->done, ==, 2);
    CHECK_INT(text_of(loop, 1)->done, ==, 0);
    CHECK_INT(tec_loop_live(loop), ==, 3);
    struct tec_tick tick = tec_loop_tick(loop, 0, 1U);
    tick.session = 1; /* another robot's text is its own */
    tec_loop_run(loop, &seen.input, &tick);
    CHECK_INT(told.superseded, ==, 1);
    CHECK_INT(tec_loop_live(loop), ==, 4);
    for (int i = 0; i < 2; i++)
        loop_frame(loop, &seen.input, 0, 2U);
    CHECK_INT(tec_loop_live(loop), ==, TINY_SLOTS);
    r = loop_frame(loop, &seen.input, 0,
                   3U); /* full: talk takes its own request slot, think has none */
    CHECK_INT(told.superseded, ==, 2);
    CHECK_INT(r->refused, ==, 1);
    CHECK_INT(tec_loop_live(loop), ==, TINY_SLOTS);
    tec_loop_restart(loop);
    CHECK_INT(tiny.plan->prefixes.in_use, ==, 0);
    tec_loop_destroy(loop);
    tiny_close(&tiny);
}

/* Three tokens say what ends the first decoder's answers, and all that is longer. */
static bool stops_at_three(void *self, int decoder, const int *tokens, int n)
{
    (void)self, (void)tokens;
    return n >= 3 && decoder == 0;
}

static enum tec_status go_on(void *self, const struct tec_frame_view *view,
                             struct tec_decision *decision, struct tec_error *error)
{
    (void)self, (void)view, (void)error;
    for (int i = 0; i < decision->n_rows; i++)
        decision->rows[i].k = 2;
    return TEC_OK;
}

TEST(an_answer_ends_with_the_text_that_ends_it)
{
    static struct tiny_observation seen;
    const char *stop = "stop";
    int64_t now = 0;
    struct told told = {0};
    struct tec_virtual costs = {.clock_ns = &now};
    REQUIRE(tiny_open(&tiny, "pi05", false, 1, 0, &err));
    tiny_observe(&seen, tiny.model, 1);
    struct tec_loop_options o = tiny_loop(&tiny);
    o.decoders[0].stops = o.decoders[1].stops = (struct tec_texts){1, &stop};
    o.stops = stops_at_three;
    o.planner = (struct tec_planner){.name = "go on", .plan = go_on};
    struct tec_loop *loop = open_told(&costs, &told, o);
    loop_frame(loop, &seen.input, 0, 3U);
    for (int i = 0; i < 2 * TINY_NEW && tec_loop_live(loop) > 0; i++)
        loop_frame(loop, NULL, 0, 0);
    CHECK_INT(told.finished, ==, 2);
    CHECK_STR(text_of(loop, 0)->reason, "stop");
    CHECK_INT(atomic_load(&text_of(loop, 0)->count), ==, 3);
    CHECK_STR(text_of(loop, 1)->reason, "length");
    CHECK_INT(atomic_load(&text_of(loop, 1)->count), ==, TINY_NEW - 5);
    CHECK_INT(tiny.plan->prefixes.in_use, ==, 0);
    tec_loop_destroy(loop);
    tiny_close(&tiny);
}

static bool refuse_late(void *self, const struct tec_frame_view *view,
                        const struct tec_request_view *r, char reason[32])
{
    (void)self, (void)view;
    snprintf(reason, 32, "busy");
    return r->id == 0;
}

TEST(a_kept_request_slot_is_for_its_node_alone)
{
    static struct tiny_observation seen;
    int64_t now = 0;
    struct told told = {0};
    struct tec_virtual costs = {.clock_ns = &now};
    REQUIRE(tiny_open(&tiny, "pi05", false, 1, 0, &err));
    tiny_observe(&seen, tiny.model, 1);
    struct tec_loop_options o = tiny_loop(&tiny);
    o.decoders[1].keeps_slot = true;
    o.planner = (struct tec_planner){.name = "pause", .plan = pause_all};
    struct tec_loop *loop = open_told(&costs, &told, o);
    for (int i = 0; i < TINY_SLOTS; i++) /* talk takes all but the one that think keeps */
        loop_frame(loop, &seen.input, 0, 1U);
    CHECK_INT(tec_loop_live(loop), ==, TINY_SLOTS - 1);
    CHECK_INT(told.refused, ==, 1);
    const struct tec_frame_record *r = loop_frame(loop, &seen.input, 0, 2U);
    CHECK_INT(r->refused, ==, 0);
    CHECK_INT(tec_loop_live(loop), ==, TINY_SLOTS);
    r = loop_frame(loop, &seen.input, 0, 3U); /* full */
    CHECK_INT(r->refused, ==, 2);
    tec_loop_restart(loop);
    loop_frame(loop, &seen.input, 0, 2U); /* used: all others are talk's */
    for (int i = 1; i < TINY_SLOTS; i++)
        CHECK_INT(loop_frame(loop, &seen.input, 0, 1U)->refused, ==, 0);
    CHECK_INT(tec_loop_live(loop), ==, TINY_SLOTS);
    tec_loop_destroy(loop);
    tiny_close(&tiny);
}

TEST(what_is_refused_supersedes_nothing)
{
    static struct tiny_observation seen;
    int64_t now = 0;
    struct told told = {0};
    struct tec_virtual costs = {.clock_ns = &now};
    REQUIRE(tiny_open(&tiny, "pi05", false, 1, 0, &err));
    tiny_observe(&seen, tiny.model, 1);
    struct tec_loop_options o = tiny_loop(&tiny);
    o.decoders[0].supersede = true;
    o.planner = (struct tec_planner){.name = "pause", .admit = refuse_late, .plan = pause_all};
    struct tec_loop *loop = open_told(&costs, &told, o);
    for (int f = 0; f < 3; f++)
        loop_frame(loop, &seen.input, 0, 1U);
    CHECK_INT(told.superseded, ==, 0);
    CHECK_INT(told.refused, ==, 2);
    CHECK_INT(tec_loop_live(loop), ==, 1);
    CHECK_INT(text_of(loop, 0)->done, ==, 0);
    tec_loop_destroy(loop);
    tiny_close(&tiny);
}

/* --- asks ------------------------------------------------------------------------------------ */

TEST(asks_and_cancels_are_answered)
{
    static struct tiny_observation seen;
    int64_t now = 0;
    struct told told = {0};
    struct tec_virtual costs = {.clock_ns = &now};
    struct tec_ask asks[TINY_SLOTS + 2];
    const int64_t cancels[] = {3, 99, 3, -1};
    bool cancelled[4];
    REQUIRE(tiny_open(&tiny, "pi05", false, 1, 0, &err));
    tiny_observe(&seen, tiny.model, 1);
    struct tec_loop_options o = tiny_loop(&tiny);
    o.planner = (struct tec_planner){.name = "pause", .plan = pause_all};
    struct tec_loop *loop = open_told(&costs, &told, o);
    struct tec_tick tick = tec_loop_tick(loop, 0, 0);
    tick.asks = asks;
    tick.n_asks = TINY_SLOTS + 2;
    for (int i = 0; i < tick.n_asks; i++)
        asks[i] = (struct tec_ask){.decoder = i % 2, .max_tokens = i, .prio = i};
    tec_loop_run(loop, &seen.input, &tick);
    for (int i = 0; i < tick.n_asks; i++) {
        CHECK_INT(asks[i].id, ==, i);
        CHECK(asks[i].refused == (i >= TINY_SLOTS));
        CHECK_STR(asks[i].reason, i < TINY_SLOTS ? "" : "no kv slot");
    }
    loop_frame(loop, NULL, 0, 0);
    int live = tec_loop_live(loop);
    tick = tec_loop_tick(loop, 0, 0);
    tick.cancels = cancels;
    tick.cancelled = cancelled;
    tick.n_cancels = 4;
    tick.asks = asks;
    tick.n_asks = 1;
    tec_loop_run(loop, NULL, &tick);
    CHECK(cancelled[0] && !cancelled[1] && !cancelled[2] && !cancelled[3]);
    CHECK_INT(tec_loop_live(loop), ==, live - 1);
    CHECK(asks[0].refused && asks[0].id == -1);
    CHECK_STR(asks[0].reason, "no observation");
    CHECK_STR(text_of(loop, 3)->reason, "cancelled");
    tec_loop_restart(loop);
    CHECK_INT(tiny.plan->prefixes.in_use, ==, 0);
    tec_loop_destroy(loop);
    tiny_close(&tiny);
}

/* --- nothing is lost ------------------------------------------------------------------------- */

struct storm {
    uint64_t dice;
};

static bool storm_admit(void *self, const struct tec_frame_view *view,
                        const struct tec_request_view *r, char reason[32])
{
    struct storm *s = self;
    (void)view, (void)r, (void)reason;
    return tiny_below(&s->dice, 6) != 0;
}

static enum tec_status storm_plan(void *self, const struct tec_frame_view *view,
                                  struct tec_decision *d, struct tec_error *error)
{
    struct storm *s = self;
    (void)view, (void)error;
    for (int i = 0; i < d->n_rows; i++) {
        d->rows[i].k = (int[]){0, 1, 2, 5, 8, 8}[tiny_below(&s->dice, 6)];
        d->rows[i].shed = tiny_below(&s->dice, 30) == 0;
        d->rows[i].unshare = tiny_below(&s->dice, 9) == 0;
    }
    return TEC_OK;
}

static int storm_evict(void *self, const struct tec_frame_view *view, int n)
{
    struct storm *s = self;
    (void)n;
    return tiny_below(&s->dice, 3) ? tiny_below(&s->dice, view->n_req) : -1;
}

static int storm_end(void *user, int64_t request)
{
    (void)user;
    return (int)(request % 17);
}

/* Run one frame with a burst of asks and some cancels, known and unknown. */
static void storm_frame(struct tec_loop *loop, const struct tiny_observation *seen, uint64_t *dice,
                        int64_t newest)
{
    struct tec_ask asks[3 * TINY_SLOTS];
    int64_t cancels[4];
    struct tec_tick tick = tec_loop_tick(loop, 0, (unsigned)tiny_below(dice, 4));
    tick.asks = asks;
    tick.n_asks = tiny_below(dice, 3 * TINY_SLOTS);
    tick.cancels = cancels;
    tick.n_cancels = tiny_below(dice, 5);
    tick.session = tiny_below(dice, 3);
    for (int i = 0; i < tick.n_asks; i++)
        asks[i] =
            (struct tec_ask){.decoder = tiny_below(dice, 2), .max_tokens = tiny_below(dice, 20)};
    for (int i = 0; i < tick.n_cancels; i++)
        cancels[i] = newest - tiny_below(dice, 12);
    tec_loop_run(loop, tiny_below(dice, 9) ? &seen->input : NULL, &tick);
}

TEST(a_million_requests_leave_nothing_behind)
{
    static struct tiny_observation seen;
    int64_t now = 0;
    struct told told = {0};
    struct storm storm = {.dice = 12345};
    struct tec_virtual costs = {.clock_ns = &now, .step_ns = 1, .end = storm_end};
    REQUIRE(tiny_open(&tiny, "pi05", false, 1, 0, &err));
    tiny_observe(&seen, tiny.model, 1);
    struct tec_loop_options o = tiny_loop(&tiny);
    o.decoders[1].supersede = true;
    o.decoders[0].deadline_us = 1;
    o.decoders[0].sheds = true;
    o.planner = (struct tec_planner){.name = "storm",
                                     .self = &storm,
                                     .admit = storm_admit,
                                     .plan = storm_plan,
                                     .evict = storm_evict};
    struct tec_loop *loop = open_told(&costs, &told, o);
    int64_t before = tiny_heap.live;
    while (told.arrived < 1000000) {
        storm_frame(loop, &seen, &storm.dice, told.last);
        now += tiny_below(&storm.dice, 3000);
        CHECK_INT(tec_loop_live(loop), <=, TINY_SLOTS);
    }
    CHECK_INT(tiny_heap.live, ==, before);
    CHECK(told.admitted > 100000 && told.refused > 10000 && told.superseded > 10000);
    CHECK(told.finished > 10000 && told.shed > told.superseded);
    CHECK_INT(told.arrived, ==, told.admitted + told.refused);
    for (int i = 0; tec_loop_live(loop) && i < 1000; i++) { /* those that are left come to an end */
        loop_frame(loop, NULL, 0, 0);
        now += 1000000;
    }
    CHECK_INT(tec_loop_live(loop), ==, 0);
    CHECK_INT(tiny.plan->prefixes.in_use, ==, 0);
    for (int i = 0; i < tec_loop_utterances(loop); i++)
        CHECK(tec_loop_utterance(loop, i)->id < 0 || tec_loop_utterance(loop, i)->done != 0);
    storm.dice = 1; /* every request slot can still be had */
    int64_t admitted = told.admitted;
    tec_loop_set_planner(loop, &(struct tec_planner){.name = "pause", .plan = pause_all});
    for (int i = 0; i < TINY_SLOTS; i++)
        loop_frame(loop, &seen.input, 0, 1U);
    CHECK_INT(told.admitted - admitted, ==, TINY_SLOTS);
    tec_loop_destroy(loop);
    tiny_close(&tiny);
    CHECK_INT(tiny_heap.live, ==, 0);
}

static enum tec_status run_wild(void *self, const struct tec_frame_view *view,
                                struct tec_decision *d, struct tec_error *error)
{
    (void)self, (void)view, (void)error;
    for (int i = 0; i < d->n_rows; i++)
        d->rows[i].k = 7;
    memset(d->rows[0].reason, 'x', sizeof d->rows[0].reason);
    d->rows[0].shed = true;
    d->nodes[2].partition = 77;
    d->n_rows = d->n_notes = d->n_recompute = 1 << 20;
    d->n_seg = -5;
    return TEC_OK;
}

/* A planner writes counts and points that do not exist, and a reason without an end. */
TEST(a_planner_in_c_may_write_anything)
{
    static struct tiny_observation seen;
    int64_t now = 0;
    struct tec_virtual costs = {.clock_ns = &now};
    REQUIRE(tiny_open(&tiny, "pi05", false, 1, 0, &err));
    tiny_observe(&seen, tiny.model, 1);
    struct tec_loop *loop =
        open_loop(&costs, (struct tec_planner){.name = "wild", .plan = run_wild}, 0);
    const struct tec_frame_record *r = loop_frame(loop, &seen.input, 0, 3U);
    CHECK_INT(r->shed, ==, 1);
    CHECK_INT(r->tokens, ==, 5); /* of the other one: 7 is not captured, 5 is */
    const struct tec_utterance *text = text_of(loop, 0);
    CHECK(text && strlen(text->reason) == sizeof text->reason - 1);
    tec_loop_destroy(loop);
    tiny_close(&tiny);
}

TAP_MAIN
