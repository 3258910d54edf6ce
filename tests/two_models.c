/* two_models.c - a planner beside an arm: neither's bytes know of the other, a prefill in slices
 * makes what it makes in one, an open one is given up and begun again without a trace, and memory
 * is one plan. */
#include "graph/run/engine/engine.h"
#include "tests/device_facts.h"
#include "tests/loop_frame.h"
#include "tests/tap.h"
#include "tests/told.h"

#include <string.h>

#define BOTH "tests/pipelines/two_models.lua"
#define ARM "tests/pipelines/two_models_arm.lua"
#define PLANNER "tests/pipelines/two_models_planner.lua"

enum { FRAMES = 16, CHUNK = 6 * 32, MOST = 16, TEXTS = 64 };

static struct tec_heap heap;
static struct tec_error err;

/* What a frame does with language and slices, for all requests alike. */
struct pace {
    int k, slices, node; /* slices in turn: 0 .. slices; node of the planner's prefill, -1 = none */
    uint64_t dice;       /* 0: always k and slices */
    int64_t left[TEXTS]; /* seen: slices to come of each request, newest */
    int begun;           /* frames that left a prefill open */
};

static int below(uint64_t *dice, int n)
{
    *dice = *dice * 6364136223846793005u + 1442695040888963407u;
    return (int)((*dice >> 33) % (uint64_t)n);
}

static enum tec_status plan(void *self, const struct tec_frame_view *view, struct tec_decision *d,
                            struct tec_error *error)
{
    struct pace *p = self;
    (void)error;
    for (int i = 0; i < d->n_rows; i++) {
        d->rows[i].k = p->dice ? below(&p->dice, p->k + 1) : p->k;
        d->rows[i].unshare = p->dice && below(&p->dice, 4) == 0;
        if (view->req[i].id < TEXTS)
            p->left[view->req[i].id] = view->req[i].slices;
    }
    if (p->node >= 0)
        d->nodes[p->node].slices = p->dice ? below(&p->dice, p->slices + 1) : p->slices;
    return TEC_OK;
}

struct said {
    int count, tokens[MOST];
    char reason[32];
};

struct open {
    struct tec_pipeline *pipeline;
    struct tec_engine *engine;
    struct pace pace;
    float chunks[FRAMES][CHUNK];
    int n_chunks, slices_run, longest; /* longest: most slices of one launch */
    struct said said[TEXTS];           /* by request */
};

static void released(void *user, int action, const float *chunk,
                     const struct tec_frame_record *record)
{
    (void)action;
    struct open *o = user;
    (void)record;
    if (o->n_chunks < FRAMES)
        memcpy(o->chunks[o->n_chunks++], chunk, sizeof o->chunks[0]);
}

static bool soften; /* leave hard deadlines out */
static int n_open;

static void open_engine(struct open *o, const char *path, const char *set)
{
    struct tec_diagnostics d;
    const struct tec_load_options load = {
        .path = path, .root = "pipelines", .set = &set, .n_set = set ? 1 : 0};
    memset(o, 0, sizeof *o);
    tec_diagnostics_init(&d, &heap);
    enum tec_status status = tec_pipeline_load(&o->pipeline, &load, &heap, &d, &err);
    tec_diagnostics_finish(&d);
    for (int i = 0; soften && status == TEC_OK && i < o->pipeline->n_nodes; i++)
        ((struct tec_decl_node *)(uintptr_t)&o->pipeline->nodes[i])->deadline.kind =
            TEC_DEADLINE_NONE;
    const struct tec_engine_options options = {
        .pipeline = o->pipeline,
        .root = ".",
        .random = true,
        .seed = 3,
        .size = "tiny",
        .saturated = true,
        .device = {.kind = tap.device, .threads = 1, .tier = tec_tier_best()},
        .released = released,
        .user = o};
    if (status == TEC_OK)
        status = tec_engine_open(&o->engine, &options, &heap, &err);
    if (status != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(status == TEC_OK);
    n_open++;
    o->pace = (struct pace){.k = 2, .slices = 1000, .node = -1};
    for (int i = 0; i < o->engine->topology.n_nodes; i++)
        if (strcmp(o->engine->topology.nodes[i].name, "think") == 0 &&
            o->engine->topology.nodes[i].slices)
            o->pace.node = i;
    const struct tec_planner planner = {.name = "pace", .self = &o->pace, .plan = plan};
    tec_loop_set_planner(o->engine->loop, &planner);
}

static void close_engine(struct open *o)
{
    for (int i = 0; i < o->engine->n_chains; i++)
        CHECK_INT(o->engine->chains[i].plan->prefixes.in_use, ==, 0);
    tec_engine_close(o->engine);
    tec_pipeline_free(o->pipeline);
    if (--n_open == 0)
        CHECK_INT(heap.live, ==, 0);
}

/* Texts that end are read before their record is used again. */
static void listen(struct open *o)
{
    struct tec_loop *loop = o->engine->loop;
    for (int i = 0; i < tec_loop_utterances(loop); i++) {
        const struct tec_utterance *u = tec_loop_utterance(loop, i);
        if (u->id < 0 || u->id >= TEXTS)
            continue;
        struct said *s = &o->said[u->id];
        s->count = u->count;
        memcpy(s->tokens, u->tokens, (size_t)u->count * sizeof(int));
        snprintf(s->reason, sizeof s->reason, "%s", u->done ? u->reason : "");
    }
}

/* Between frames nothing is left in the arenas that launches overlay: not-a-numbers. */
static void poison(const struct open *o)
{
    static unsigned char ones[1 << 16];
    memset(ones, 0xFF, sizeof ones);
    for (int i = 0; i < o->engine->n_chains; i++) {
        const struct tec_plan *p = o->engine->chains[i].plan;
        for (int s = 0; s < p->n_streams; s++)
            for (size_t at = 0, n; at < p->activation_bytes[s]; at += n) {
                n = p->activation_bytes[s] - at < sizeof ones ? p->activation_bytes[s] - at
                                                              : sizeof ones;
                tec_device_upload(o->engine->device, TEC_STREAM_MAIN, p->activations[s] + at, ones,
                                  n);
            }
    }
}

/* Observation `frame` with goal number `goal`. */
static const struct tec_frame_record *step(struct open *o, int frame, int goal, unsigned spawn)
{
    int32_t goal_ids[40], prompt_ids[5] = {3, 4 + frame % 3, 5, 6, 7};
    float state[8] = {(float)frame * 0.1F};
    int n = 40 - goal % 3;
    for (int i = 0; i < n; i++)
        goal_ids[i] = 3 + (i * 7 + goal * 31) % 500;
    const struct tec_value v[] = {
        {"prompt#ids", TEC_VALUE_I32, 1, {5}, prompt_ids, sizeof prompt_ids},
        {"state", TEC_VALUE_F32, 1, {8}, state, sizeof state},
        {"goal#ids", TEC_VALUE_I32, 1, {n}, goal_ids, (size_t)n * 4}};
    struct tec_frame_input input;
    REQUIRE(tec_session_observe(o->engine->session, v, 3, NULL, frame, 0, &input, NULL, &err) ==
            TEC_OK);
    const struct tec_frame_record *r = loop_frame(o->engine->loop, &input, 0, spawn);
    for (int i = 0; i < r->n_launches; i++)
        if (strcmp(r->launches[i].node, "think") == 0 && r->launches[i].request >= 0) {
            o->slices_run += r->launches[i].k;
            o->longest = r->launches[i].k > o->longest ? r->launches[i].k : o->longest;
        }
    listen(o);
    poison(o);
    return r;
}

/* Until nothing is alive. */
static void drain(struct open *o)
{
    for (int i = 0; i < 400 && tec_loop_live(o->engine->loop) > 0; i++) {
        const struct tec_frame_record *r = loop_frame(o->engine->loop, NULL, 0, 0);
        for (int k = 0; k < r->n_launches; k++)
            if (strcmp(r->launches[k].node, "think") == 0)
                o->slices_run += r->launches[k].k;
        listen(o);
        poison(o);
    }
    CHECK_INT(tec_loop_live(o->engine->loop), ==, 0);
}

static void run(struct open *o, int frames, int goal)
{
    for (int f = 0; f < frames; f++)
        step(o, f, goal, 0);
    drain(o);
}

/* The text of goal `goal` where the planner is all there is. */
static struct said alone(int goal)
{
    static struct open o;
    open_engine(&o, PLANNER, NULL);
    step(&o, 0, goal, 0);
    drain(&o);
    struct said s = o.said[0];
    close_engine(&o);
    return s;
}

static bool same(const struct said *a, const struct said *b)
{
    return a->count == b->count && a->count > 0 &&
           memcmp(a->tokens, b->tokens, (size_t)a->count * sizeof(int)) == 0;
}

/* Of request `id`, whatever was said beside it. */
static int find_plan(const struct open *o, const struct said *want)
{
    for (int i = 0; i < TEXTS; i++)
        if (same(&o->said[i], want))
            return i;
    return -1;
}

/* --- the same bytes -------------------------------------------------------------------------- */

TEST(actions_do_not_know_of_a_planner)
{
    static struct open with, without;
    open_engine(&without, ARM, NULL);
    run(&without, FRAMES, 0);
    for (int way = 0; way < 3; way++) {
        open_engine(&with, BOTH, NULL);
        with.pace.slices = way == 0 ? 0 : way == 1 ? 1 : 3;
        with.pace.dice = way == 2 ? 77 : 0;
        for (int f = 0; f < FRAMES; f++)
            step(&with, f, f / 5, 0);
        with.pace = (struct pace){.k = 3, .slices = 100, .node = with.pace.node};
        drain(&with);
        CHECK_INT(with.n_chunks, ==, FRAMES);
        CHECK(memcmp(with.chunks, without.chunks, sizeof with.chunks) == 0);
        CHECK(with.slices_run > 0);
        close_engine(&with);
    }
    CHECK(memcmp(without.chunks[0], without.chunks[1], sizeof without.chunks[0]) != 0);
    close_engine(&without);
}

TEST(language_of_the_arm_does_not_either)
{
    static struct open with, without;
    open_engine(&without, ARM, NULL);
    run(&without, 6, 0);
    open_engine(&with, BOTH, NULL);
    with.pace.dice = 5;
    with.pace.k = 3;
    with.pace.slices = 2;
    run(&with, 6, 0);
    int found = 0;
    for (int i = 0; i < TEXTS; i++)
        if (without.said[i].count) {
            CHECK(find_plan(&with, &without.said[i]) >= 0);
            found++;
        }
    CHECK_INT(found, ==, 3);
    close_engine(&with);
    close_engine(&without);
}

/* In how many pieces it is captured, how many run in a frame, at what k it goes on: all the same.
 */
TEST(slices_make_what_one_launch_makes)
{
    static struct open o;
    const char *const sets[] = {NULL, "capture.slices=1", "capture.slices=2", "capture.slices=3"};
    const int captured[] = {4, 1, 2, 3};
    const struct said want = alone(2);
    REQUIRE(want.count > 0);
    for (int i = 0; i < 4; i++)
        for (int n = 1; n <= captured[i] + 1; n += 1 + (n > 1)) {
            open_engine(&o, BOTH, sets[i]);
            CHECK_INT(o.engine->topology.nodes[o.pace.node].slices, ==, captured[i]);
            o.pace.slices = n;
            o.pace.k = 1 + n % 3;
            run(&o, 2, 2);
            CHECK(find_plan(&o, &want) >= 0);
            CHECK_INT(o.slices_run, ==, captured[i]);
            close_engine(&o);
        }
}

TEST(goals_matter)
{
    const struct said a = alone(2), b = alone(3);
    CHECK(!same(&a, &b));
}

/* --- open slices ----------------------------------------------------------------------------- */

/* A new goal gives up what is open; the plan for it is as if there had been nothing before. */
TEST(an_open_prefill_is_superseded)
{
    static struct open o;
    const struct said want = alone(1);
    open_engine(&o, BOTH, NULL);
    o.pace.slices = 3;
    step(&o, 0, 0, 0);
    CHECK_INT(o.slices_run, ==, 3);
    o.pace.slices = 2;
    step(&o, 1, 1, 0);
    CHECK_INT(o.slices_run, ==, 5);
    run(&o, 1, 1);
    CHECK(find_plan(&o, &want) >= 0);
    CHECK_INT(o.slices_run, ==, 3 + 4);
    int superseded = 0;
    for (int i = 0; i < TEXTS; i++)
        superseded += strcmp(o.said[i].reason, "superseded") == 0;
    CHECK_INT(superseded, ==, 1);
    close_engine(&o);
}

static int64_t first_of(const struct open *o, const char *node)
{
    const struct tec_loop_options *l = tec_loop_settings(o->engine->loop);
    for (int i = 0; i < tec_loop_utterances(o->engine->loop); i++) {
        const struct tec_utterance *u = tec_loop_utterance(o->engine->loop, i);
        if (u->id >= 0 && !u->done && strcmp(l->decoders[u->decoder].name, node) == 0)
            return u->id;
    }
    return -1;
}

/* Cancelled from outside in the middle of a prefill; its region is free at once. */
TEST(an_open_prefill_is_cancelled)
{
    static struct open o;
    open_engine(&o, BOTH, NULL);
    o.pace.slices = 2;
    step(&o, 0, 0, 0);
    int64_t id = first_of(&o, "plan");
    REQUIRE(id >= 0);
    CHECK_INT(o.engine->chains[1].plan->prefixes.in_use, ==, 1);
    bool was = false;
    struct tec_tick tick = tec_loop_tick(o.engine->loop, 0, 0);
    tick.cancels = &id;
    tick.cancelled = &was;
    tick.n_cancels = 1;
    tec_loop_run(o.engine->loop, NULL, &tick);
    CHECK(was);
    CHECK_INT(o.engine->chains[1].plan->prefixes.in_use, ==, 0);
    drain(&o);
    CHECK_INT(o.slices_run, ==, 2);
    close_engine(&o);
}

static unsigned decoder_bit(const struct open *o, const char *name)
{
    const struct tec_loop_options *l = tec_loop_settings(o->engine->loop);
    for (int i = 0; i < l->n_decoders; i++)
        if (strcmp(l->decoders[i].name, name) == 0)
            return 1U << i;
    return 0;
}

/* Two requests of one frame wait for one prefill; one of another frame for its own. */
TEST(requests_of_a_frame_share_their_prefill)
{
    static struct open o;
    open_engine(&o, BOTH, NULL);
    const unsigned remark = decoder_bit(&o, "remark");
    o.pace.slices = 1;
    step(&o, 0, 2, remark);
    drain(&o);
    CHECK_INT(o.slices_run, ==, 4);
    const struct said want = alone(2);
    int whole = find_plan(&o, &want), part = 0;
    CHECK(whole >= 0);
    for (int i = 0; i < TEXTS; i++)
        part += i != whole && o.said[i].count == 5 &&
                memcmp(o.said[i].tokens, want.tokens, 5 * sizeof(int)) == 0;
    CHECK_INT(part, ==, 1);
    o.slices_run = 0;
    step(&o, 1, 2, remark);
    step(&o, 2, 2, 0);
    drain(&o);
    CHECK_INT(o.slices_run, ==, 4);
    close_engine(&o);
}

/* Slices stop where the policy says, and nothing of another prefill runs while one is open. */
TEST(one_prefill_is_open_at_a_time)
{
    static struct open o;
    open_engine(&o, BOTH, NULL);
    const unsigned remark = decoder_bit(&o, "remark");
    o.pace.slices = 3;
    step(&o, 0, 0, 0);
    o.pace.slices = 0;
    step(&o, 1, 0, remark);
    CHECK_INT(o.slices_run, ==, 3);
    CHECK_INT(o.engine->chains[1].plan->prefixes.in_use, ==, 1);
    o.pace.slices = 2; /* the last of the first, the first of the second */
    step(&o, 2, 0, 0);
    CHECK_INT(o.slices_run, ==, 5);
    CHECK_INT(o.longest, ==, 3);
    drain(&o);
    CHECK_INT(o.slices_run, ==, 8);
    close_engine(&o);
}

/* An older request of the same model decodes in every frame that leaves the prefill open. */
TEST(decodes_between_slices_leave_them_alone)
{
    static struct open o;
    const struct said want = alone(1), older = alone(0);
    open_engine(&o, BOTH, NULL);
    o.pace.k = 1;
    step(&o, 0, 0, decoder_bit(&o, "remark"));
    o.pace.slices = 1;
    int beside = 0;
    for (int f = 1; f < 5; f++)
        beside += step(&o, f, 1, 0)->rows > 1; /* the arm's row, and the planner's */
    CHECK(beside >= 3);
    CHECK_INT(o.longest, ==, 4);
    drain(&o);
    CHECK(find_plan(&o, &want) >= 0);
    int part = 0;
    for (int i = 0; i < TEXTS; i++)
        part += o.said[i].count == 5 && memcmp(o.said[i].tokens, older.tokens, 20) == 0;
    CHECK_INT(part, ==, 1);
    close_engine(&o);
}

/* The default plan: no slice beside hard nodes, all of them where there are none. */
TEST(the_default_plan_runs_none_beside_hard_nodes)
{
    static struct open o;
    open_engine(&o, BOTH, NULL);
    tec_loop_set_planner(o.engine->loop, &tec_default_planner);
    for (int f = 0; f < 4; f++)
        step(&o, f, 0, 0);
    CHECK_INT(o.slices_run, ==, 0);
    CHECK_INT(o.n_chunks, ==, 4);
    tec_loop_restart(o.engine->loop);
    close_engine(&o);
    soften = true;
    open_engine(&o, BOTH, NULL);
    soften = false;
    tec_loop_set_planner(o.engine->loop, &tec_default_planner);
    CHECK_INT(o.engine->topology.nodes[o.pace.node].slices, ==, 1);
    step(&o, 0, 2, 0);
    CHECK_INT(o.slices_run, ==, 1);
    drain(&o);
    const struct said want = alone(2);
    CHECK(find_plan(&o, &want) >= 0);
    close_engine(&o);
}

/* --- texts ----------------------------------------------------------------------------------- */

/* What a session makes of a goal; "" = none is given. */
static enum tec_status see(struct tec_session *s, const char *goal, struct tec_frame_input *input)
{
    const int32_t ids[] = {3, 4};
    const float state[8] = {0};
    const struct tec_value v[] = {{"prompt#ids", TEC_VALUE_I32, 1, {2}, ids, sizeof ids},
                                  {"state", TEC_VALUE_F32, 1, {8}, state, sizeof state},
                                  {"goal", TEC_VALUE_TEXT, 0, {0}, goal, strlen(goal)}};
    return tec_session_observe(s, v, *goal ? 3 : 2, NULL, 0, 0, input, NULL, &err);
}

TEST(a_goal_goes_through_its_own_template_and_tokenizer)
{
    static struct open o;
    struct tec_tokenizer *tokenizer = NULL;
    struct tec_session *s = NULL;
    struct tec_frame_input a, b, c;
    struct tec_arena arena;
    size_t n = 0;
    int ids[160];
    const struct tec_encode how = {0};
    open_engine(&o, BOTH, NULL);
    REQUIRE(tec_tokenizer_open(&tokenizer, "tests/golden/tokenizers/qwen_like/tokenizer.json",
                               &heap, &err) == TEC_OK);
    struct tec_model model = *o.engine->models[1].model;
    model.text.vocab = 2000; /* the tokenizer's */
    struct tec_session_options options = {
        .pipeline = o.pipeline,
        .model = o.engine->model,
        .root = ".",
        .max_text = 12,
        .n_secondary = 1,
        .secondary = {
            {.chain = 1, .reads = true, .model = &model, .tokenizer = tokenizer, .max_text = 160}}};
    REQUIRE(tec_session_create(&s, &options, &heap, &err) == TEC_OK);
    REQUIRE(see(s, "put the cup away", &a) == TEC_OK);
    REQUIRE(see(s, "wash the plate", &b) == TEC_OK);
    REQUIRE(see(s, "wash the plate", &c) == TEC_OK); /* not encoded again */
    CHECK(a.chains[1].keys[0] != b.chains[1].keys[0] && b.chains[1].keys[0] == c.chains[1].keys[0]);
    CHECK(c.chains[1].prefix.ids != b.chains[1].prefix.ids &&
          c.chains[1].prefix.n_text == b.chains[1].prefix.n_text);
    CHECK(memcmp(c.chains[1].prefix.ids, b.chains[1].prefix.ids,
                 (size_t)b.chains[1].prefix.n_text * sizeof(int)) == 0);
    tec_arena_init(&arena, &heap);
    const char *last = "<|im_end|>\n<|im_start|>assistant\n";
    REQUIRE(tec_tokenizer_encode(tokenizer, last, strlen(last), how, ids, 160, &n, &arena, &err) ==
            TEC_OK);
    REQUIRE((int)n < a.chains[1].prefix.n_text);
    CHECK(memcmp(a.chains[1].prefix.ids + a.chains[1].prefix.n_text - n, ids, n * sizeof(int)) ==
          0);
    CHECK(memcmp(a.chains[1].prefix.ids, b.chains[1].prefix.ids, 8 * sizeof(int)) ==
          0); /* the system's text */
    CHECK_INT(see(s, "", &a), ==, TEC_NOT_FOUND);
    CHECK(strstr(err.message, "goal: missing: a prefill reads it") != NULL);
    tec_arena_finish(&arena);
    tec_session_destroy(s);
    tec_tokenizer_close(tokenizer);
    close_engine(&o);
}

/* --- memory ---------------------------------------------------------------------------------- */

TEST(memory_is_one_plan)
{
    static struct open o;
    struct tec_arena arena;
    struct tec_measured m;
    open_engine(&o, BOTH, NULL);
    tec_arena_init(&arena, &heap);
    REQUIRE(went_well(tec_engine_measure(&m, &o.engine->options, &heap, &arena, &err), &err));
    int64_t weights = 0, total = 0;
    for (int i = 0; i < o.engine->n_chains; i++) {
        weights += o.engine->models[i].weights->bytes;
        total += o.engine->chains[i].plan->bytes.total;
    }
    CHECK_INT(m.bytes.weights, ==, weights);
    CHECK_INT(m.bytes.total, ==, total - o.engine->chains[1].plan->bytes.workspace);
    CHECK_INT(m.bytes.total - m.bytes.workspace, <=, device_bytes_of(o.engine->device));
    CHECK_INT(m.parts, ==, o.engine->chains[0].plan->n_parts + o.engine->chains[1].plan->n_parts);
    CHECK_INT(m.captures, ==, m.parts + 4);
    tec_arena_finish(&arena);
    close_engine(&o);
}

/* Fail the n-th allocation, for growing n, until opening succeeds: one status, nothing kept. */
TEST(every_refused_allocation_is_survived)
{
    static struct open o;
    open_engine(&o, BOTH, NULL);
    bool opened = false;
    int refused = 0;
    for (int64_t n = 1; !opened && n < 20000; n += 1 + n / 8) {
        struct tec_heap own = {.fail_at = n};
        struct tec_engine *e = NULL;
        enum tec_status status = tec_engine_open(&e, &o.engine->options, &own, &err);
        opened = status == TEC_OK;
        refused += !opened;
        CHECK(opened || status == TEC_NO_MEMORY);
        tec_engine_close(e);
        CHECK_INT(own.live, ==, 0);
    }
    CHECK(opened);
    CHECK_INT(refused, >, 20);
    close_engine(&o);
}

TAP_MAIN
