/* Language requests: how one ends is told, and stays readable. */
#include "tests/tiny.h"

#include <string.h>

static struct tec_error err;
static struct tiny tiny;

/* "talk" runs at full speed, "think" waits for ever. */
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
    o.executor = tec_executor_virtual(costs);
    o.planner = planner;
    o.decoders[1].deadline_us = deadline_us;
    o.decoders[1].sheds = true;
    REQUIRE(tec_loop_create(&loop, &o, &tiny_heap, &err) == TEC_OK);
    return loop;
}

/* Request 1 ends in the frame in which another one is born, whichever record is next by then. */
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
            tec_loop_frame(loop, &seen.input, now, f == 0 ? 3U : 1U);
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
    CHECK_INT(tec_loop_frame(loop, &seen.input, 0, 3U)->tokens, ==, 2);
    CHECK_INT(tec_loop_frame(loop, NULL, 0, 0)->tokens, ==, 4);
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
    const struct tec_frame_record *r = tec_loop_frame(loop, &seen.input, 0, 3U);
    CHECK_INT(r->shed, ==, 2);
    CHECK_INT(tec_loop_live(loop), ==, 0);
    CHECK_INT(tiny.plan->prefixes.in_use, ==, 0);
    tec_loop_frame(loop, NULL, 0, 0);
    for (int i = 0; i < 2; i++) {
        const struct tec_utterance *text = text_of(loop, i);
        CHECK(text && text->done == 2);
        CHECK_STR(text ? text->reason : "", "policy");
    }
    tec_loop_destroy(loop);
    tiny_close(&tiny);
}

TAP_MAIN
