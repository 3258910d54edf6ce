/* request_prompt.c - tests of several language tasks on one observation, each with a prompt of its
 * own: pictures and task are computed once, and the rest is forked.
 *
 * With a causal text, forking gives the same bytes as prefilling each prompt whole. */
#include "tests/loop_frame.h"
#include "tests/tiny.h"

#include <string.h>

enum { OWN = 4, TASK = TINY_TEXT - OWN };

static struct tec_error err;
static struct tiny tiny;
static struct tiny_observation seen;

/* Make the tiny plan again, with room for the requests' own prompts. */
static enum tec_status open_own(const char *arch, bool bf16, int threads)
{
    REQUIRE(tiny_open(&tiny, arch, bf16, threads, 0, &err));
    tec_plan_destroy(tiny.plan);
    tiny.plan = NULL;
    struct tec_plan_spec spec = tiny_spec(tiny.model);
    spec.prompt_tokens = OWN;
    const struct tec_plan_inputs in = {.spec = &spec,
                                       .model = tiny.model,
                                       .weights = tiny.weights,
                                       .source = {.seed = 11},
                                       .device = tiny.device};
    tiny.model->text.eos = -1;
    return tec_plan_create(&tiny.plan, &in, &tiny_heap, &err);
}

struct how {
    int k;
    bool unshare, alone;
    int talk, think, most_rows; /* tokens of the prompts of their own; out: rows in a launch */
};

static enum tec_status advance(void *self, const struct tec_frame_view *view,
                               struct tec_decision *d, struct tec_error *error)
{
    const struct how *how = self;
    (void)view, (void)error;
    for (int i = 0; i < d->n_rows; i++) {
        d->rows[i].k = how->k;
        d->rows[i].unshare = how->unshare;
        d->rows[i].group = how->alone ? i : 0;
    }
    return TEC_OK;
}

struct result {
    int count[2], tokens[2][TINY_NEW];
};

/* One observation of `task` prompt tokens for both nodes; their own ones follow it in
 * `observation_records.ids`.
 */
static void run(struct result *out, struct how *how, int task)
{
    struct tec_loop *loop = NULL;
    struct tec_loop_options o = tiny_loop(&tiny);
    struct tec_frame_input input = seen.input;
    input.chains[0].prefix.n_text = task;
    input.prompts[0] = (struct tec_request_prompt){seen.ids + task, how->talk};
    input.prompts[1] = (struct tec_request_prompt){seen.ids + task, how->think};
    o.decoders[0].prompt = 1;
    o.decoders[1].prompt = 2;
    o.chains[0].executor = tec_executor_real(tiny.plan);
    o.planner = (struct tec_planner){.name = "pace", .self = how, .plan = advance};
    REQUIRE(tec_loop_create(&loop, &o, &tiny_heap, &err) == TEC_OK);
    memset(out, 0, sizeof *out);
    for (int f = 0; f < 40 && (f == 0 || tec_loop_live(loop)); f++) {
        const struct tec_frame_record *r = loop_frame(loop, f ? NULL : &input, 0, f ? 0U : 3U);
        for (int i = 0; i < r->n_launches; i++)
            if (r->launches[i].rows > how->most_rows)
                how->most_rows = r->launches[i].rows;
        /* What came with the frame is gone after it. */
        memset(seen.ids, 0, sizeof seen.ids);
    }
    for (int i = 0; i < tec_loop_utterances(loop); i++) {
        const struct tec_utterance *u = tec_loop_utterance(loop, i);
        if (u->id < 0)
            continue;
        REQUIRE(u->done == 1);
        out->count[u->decoder] = u->count;
        memcpy(out->tokens[u->decoder], u->tokens, (size_t)u->count * sizeof(int));
    }
    tec_loop_destroy(loop);
    CHECK_INT(tiny.plan->prefixes.in_use, ==, 0);
}

static void observe(uint64_t seed)
{
    tiny_observe(&seen, tiny.model, seed);
    uint64_t dice = seed * 977 + 5;
    for (int i = 0; i < TINY_TEXT; i++)
        seen.ids[i] = 3 + tiny_below(&dice, tiny.model->text.vocab - 3);
}

/* Compare prefilling the whole prompt with forking at TASK, for each node alone. */
static void compare(uint64_t seed, int own, int k, bool unshare, bool alone)
{
    static struct result whole, forked, plain;
    struct how how = {.k = 8};
    observe(seed);
    run(&whole, &how, TASK + own);
    observe(seed);
    run(&plain, &how, TASK);
    observe(seed);
    how = (struct how){.k = k, .unshare = unshare, .alone = alone, .think = own};
    run(&forked, &how, TASK);
    CHECK_INT(how.most_rows, ==, alone ? 1 : 2);
    CHECK_INT(forked.count[0], ==, TINY_NEW);
    CHECK_INT(forked.count[1], ==, TINY_NEW - 5);
    CHECK(memcmp(forked.tokens[1], whole.tokens[1], sizeof whole.tokens[1]) == 0);
    CHECK(memcmp(forked.tokens[0], plain.tokens[0], sizeof plain.tokens[0]) == 0);
}

static void compare_all(bool bf16, int threads)
{
    static struct result whole, plain;
    struct how how = {.k = 8};
    REQUIRE(open_own("pi05_causal", bf16, threads) == TEC_OK);
    observe(1);
    run(&whole, &how, TASK + OWN);
    observe(1);
    run(&plain, &how, TASK);
    CHECK(memcmp(&whole, &plain, sizeof whole) != 0); /* the prompt matters */
    bool emulated = strcmp(tap.device, "cpu") != 0;   /* kernels are slow there */
    for (uint64_t seed = 1; seed < (emulated ? 2 : 3); seed++)
        for (int own = emulated ? OWN : 1; own <= OWN; own++) {
            compare(seed, own, 1, false, false);
            compare(seed, own, 2, false, true);
            compare(seed, own, 5, true, false);
            compare(seed, own, 8, false, false);
        }
    tiny_close(&tiny);
}

TEST(a_forked_prompt_says_what_a_whole_one_says_f32)
{
    compare_all(false, 1);
}
TEST(a_forked_prompt_says_what_a_whole_one_says_bf16)
{
    compare_all(true, 2);
}

/* Run two requests with prompts of their own beside each other. */
TEST(two_tasks_with_prompts_of_their_own_share_launches)
{
    static struct result one, other, both;
    REQUIRE(open_own("pi05_causal", true, 1) == TEC_OK);
    struct how how = {.k = 8};
    observe(9);
    run(&one, &how, TASK + 1);
    observe(9);
    run(&other, &how, TASK + 3);
    observe(9);
    how = (struct how){.k = 2, .talk = 1, .think = 3};
    run(&both, &how, TASK);
    CHECK_INT(how.most_rows, ==, 2);
    CHECK(memcmp(both.tokens[0], one.tokens[0], sizeof one.tokens[0]) == 0);
    CHECK(memcmp(both.tokens[1], other.tokens[1], sizeof other.tokens[1]) == 0);
    tiny_close(&tiny);
}

TEST(text_that_sees_all_of_the_prompt_has_none_of_its_own)
{
    CHECK_INT(open_own("pi05", true, 1), ==, TEC_INVALID);
    CHECK(strstr(err.message, "causal") != NULL);
    tiny_close(&tiny);
    CHECK_INT(tiny_heap.live, ==, 0);
}

TAP_MAIN
