/* text_keys.c - tests of actions on keys that language has extended: what they read, of which
 * frame, and that nothing of it is left behind. */
#include "tests/loop_frame.h"
#include "tests/tiny.h"

#include <string.h>

enum { MOST = TINY_HORIZON * 32 };

static struct tec_error err;
static struct tiny tiny;
static float left[4][MOST]; /* the chunk of each frame */
static int64_t seen_in[4];  /* the frame whose observation it is of; -1 = none left */

static void released(void *user, int action, const float *chunk,
                     const struct tec_frame_record *record)
{
    const struct tec_flow *f = &tiny.model->flow;
    (void)user;
    memcpy(left[record->frame], chunk, (size_t)f->horizon * (size_t)f->dim * sizeof(float));
    seen_in[record->frame] = record->actions[action].seen;
}

static enum tec_status fast(void *self, const struct tec_frame_view *view,
                            struct tec_decision *decision, struct tec_error *error)
{
    (void)self, (void)view, (void)error;
    for (int i = 0; i < decision->n_rows; i++)
        decision->rows[i].k = 8;
    return TEC_OK;
}

/* A loop whose action acts on the texts of "think", of 7 tokens. */
static struct tec_loop *open_loop(bool waits)
{
    struct tec_loop *loop = NULL;
    struct tec_loop_options o = tiny_loop(&tiny);
    o.chains[0].executor = tec_executor_real(tiny.plan);
    o.planner = (struct tec_planner){.name = "fast", .plan = fast};
    o.decoders[1].awaited = waits;
    o.decoders[1].keeps_keys = true;
    o.actions[0].texts = 2U;
    o.actions[0].waits_for = waits ? 2 : 0;
    o.actions[0].or_prefix = !waits;
    o.released = released;
    for (int i = 0; i < 4; i++)
        seen_in[i] = -1;
    REQUIRE(tec_loop_create(&loop, &o, &tiny_heap, &err) == TEC_OK);
    return loop;
}

/* The chunk that launches by hand make on the prefix of `of`, with the noise and state of `with`:
 * behind the prefix n tokens, of which each was read in a step of its own. */
static void by_hand(const struct tiny_observation *of, const struct tiny_observation *with, int n,
                    float *chunk)
{
    struct tec_plan *p = tiny.plan;
    const struct tec_prefix_input *o = &of->input.chains[0].prefix;
    int region = tec_kv_pool_take(&p->prefixes), rows = tec_prefix_rows(p, o), tokens[8], made;
    struct tec_replay replay = {0};
    struct tec_row_state row, *list[] = {&row};
    struct tec_action_inputs a = {.noise = with->noise, .state = of->state};
    tec_launch_prefix(p, tec_plan_part(p, TEC_PART_FRAME, 0), region, o, &a, &replay);
    tec_row_start(&row, p, region, rows, o->ids[o->n_text - 1], 0, n + 1, -1);
    for (int i = 0; n && i <= n; i++)
        tec_launch_decode(p, tec_plan_part(p, TEC_PART_DECODE, 1), list, 1, 1, tokens, &made,
                          &replay);
    a.text = n;
    a.tail = p->tails[0];
    tec_launch_action(p, tec_plan_part(p, TEC_PART_ACTION, 0), region, rows, &a, &replay);
    tec_launch_actions(p, tec_plan_part(p, TEC_PART_ACTION, 0), chunk);
    tec_kv_pool_drop(&p->prefixes, region);
}

static bool same(const float *a, const float *b)
{
    const struct tec_flow *f = &tiny.model->flow;
    return memcmp(a, b, (size_t)f->horizon * (size_t)f->dim * sizeof *a) == 0;
}

static void open_tiny(struct tiny_observation seen[2])
{
    tiny_apart = true;
    REQUIRE(tiny_open(&tiny, "pi05", false, 1, 0, &err));
    tiny_observe(&seen[0], tiny.model, 1);
    tiny_observe(&seen[1], tiny.model, 2);
}

TEST(an_action_that_waits_sees_the_whole_text_of_its_frame)
{
    static struct tiny_observation seen[2];
    static float chunk[MOST], bare[MOST];
    open_tiny(seen);
    struct tec_loop *loop = open_loop(true);
    for (int f = 0; f < 2; f++) {
        const struct tec_frame_record *r = loop_frame(loop, &seen[f].input, 0, 2U);
        CHECK_INT(r->tokens, ==, 7);
        CHECK_INT(r->actions[0].seen, ==, f);
    }
    CHECK_INT(tec_loop_live(loop), ==, 0);
    CHECK_INT(tiny.plan->prefixes.in_use, ==, 1);
    tec_loop_restart(loop);
    CHECK_INT(tiny.plan->prefixes.in_use, ==, 0);
    tec_loop_destroy(loop);
    for (int f = 0; f < 2; f++) {
        by_hand(&seen[f], &seen[f], 7, chunk);
        by_hand(&seen[f], &seen[f], 0, bare);
        CHECK(same(left[f], chunk));
        CHECK(!same(left[f], bare));
    }
    tiny_close(&tiny);
    CHECK_INT(tiny_heap.live, ==, 0);
}

/* Frame 0 has no text yet; the one that it begins is finished behind its actions. Frame 1 acts on
 * that, so on what frame 0 saw, and so does frame 2, whose own text frame 3 acts on. */
TEST(an_action_that_does_not_wait_acts_on_the_newest_finished_text)
{
    static struct tiny_observation seen[2];
    static float chunk[MOST];
    open_tiny(seen);
    struct tec_loop *loop = open_loop(false);
    loop_frame(loop, &seen[0].input, 0, 2U);
    loop_frame(loop, &seen[1].input, 0, 0U);
    loop_frame(loop, &seen[1].input, 0, 2U);
    CHECK_INT(seen_in[0], ==, 0);
    CHECK_INT(seen_in[1], ==, 0);
    CHECK_INT(seen_in[2], ==, 0);
    loop_frame(loop, &seen[0].input, 0, 0U);
    CHECK_INT(seen_in[3], ==, 2);
    CHECK_INT(tiny.plan->prefixes.in_use, ==, 1);
    tec_loop_restart(loop);
    CHECK_INT(tiny.plan->prefixes.in_use, ==, 0);
    tec_loop_destroy(loop);
    by_hand(&seen[0], &seen[0], 0, chunk);
    CHECK(same(left[0], chunk));
    by_hand(&seen[0], &seen[1], 7, chunk);
    CHECK(same(left[1], chunk) && same(left[2], chunk));
    by_hand(&seen[1], &seen[0], 7, chunk);
    CHECK(same(left[3], chunk));
    tiny_close(&tiny);
    CHECK_INT(tiny_heap.live, ==, 0);
}

/* The text of an episode that a reset has ended is nobody's. */
TEST(a_text_of_another_episode_is_not_acted_on)
{
    static struct tiny_observation seen[2];
    open_tiny(seen);
    struct tec_loop *loop = open_loop(false);
    loop_frame(loop, &seen[0].input, 0, 2U);
    seen[1].input.episode = 1;
    loop_frame(loop, &seen[1].input, 0, 0U);
    CHECK_INT(seen_in[1], ==, 1);
    tec_loop_destroy(loop);
    tiny_close(&tiny);
}

TAP_MAIN
