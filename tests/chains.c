/* chains.c - several prefills in one pipeline: what each chain makes is what it makes alone,
 * pictures of an observation outlive its frame, and the weights of a model are there once. */
#include "graph/load/pipeline_texts.h"
#include "graph/run/engine/engine.h"
#include "tests/loop_frame.h"
#include "tests/stage_work.h"
#include "tests/tap.h"
#include "tests/told.h"

#include <string.h>

#define FOLDER "tests/pipelines/graphs/"

enum { FRAMES = 8, CHUNK = 6 * 32, MOST = 8, SIDE = 56 };

static struct tec_heap heap;
static struct tec_error err;

/* Steps and slices of a frame; with dice 0 always the same. */
struct pace {
    int k, slices, node; /* node: the prefill that is in slices, -1 = none */
    uint64_t dice;
};

struct said {
    int count, tokens[MOST];
};

struct open {
    struct tec_pipeline *pipeline;
    struct tec_engine *engine;
    struct pace pace;
    float chunks[FRAMES][CHUNK];
    int n_chunks;
    size_t chunk;
    bool same_prompt;
    bool spoils;              /* the rows of pictures that the frames' prefill has left */
    struct said said[FRAMES]; /* by the frame of the observation */
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
    (void)view;
    (void)error;
    for (int i = 0; i < d->n_rows; i++)
        d->rows[i].k = p->dice ? below(&p->dice, p->k + 1) : p->k;
    if (p->node >= 0)
        d->nodes[p->node].slices = p->dice ? below(&p->dice, p->slices + 1) : p->slices;
    return TEC_OK;
}

/* Zeros in place of what the towers made. */
static void spoil(const struct tec_plan *plan)
{
    static const float zeros[64 * 256];
    const struct tec_model *m = plan->model;
    size_t bytes = (size_t)m->n_slots * (size_t)m->vision.tokens * (size_t)m->text.stack.width * 4;
    REQUIRE(bytes <= sizeof zeros);
    tec_device_upload(plan->device, TEC_STREAM_MAIN, plan->picture_rows, zeros, bytes);
}

static void released(void *user, int action, const float *chunk,
                     const struct tec_frame_record *record)
{
    struct open *o = user;
    (void)record;
    if (o->spoils)
        spoil(o->engine->plan);
    if (action == 0 && o->n_chunks < FRAMES)
        memcpy(o->chunks[o->n_chunks++], chunk, o->chunk * sizeof *chunk);
}

static enum tec_status load(struct open *o, const char *path, const char *set)
{
    struct tec_diagnostics d;
    const struct tec_load_options how = {
        .path = path, .root = "pipelines", .set = &set, .n_set = set ? 1 : 0};
    memset(o, 0, sizeof *o);
    tec_diagnostics_init(&d, &heap);
    enum tec_status status = tec_pipeline_load(&o->pipeline, &how, &heap, &d, &err);
    tec_diagnostics_finish(&d);
    return status;
}

static enum tec_status open_engine(struct open *o, const char *path, const char *set)
{
    enum tec_status status = load(o, path, set);
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
        return status;
    const struct tec_flow *flow = &o->engine->model->flow;
    o->chunk = (size_t)flow->horizon * (size_t)flow->dim;
    o->chunk = o->chunk < CHUNK ? o->chunk : CHUNK; /* more only where no chunk is made */
    o->pace = (struct pace){.k = 2, .slices = 1000, .node = -1};
    for (int i = 0; i < o->engine->topology.n_nodes; i++)
        if (o->engine->topology.nodes[i].slices)
            o->pace.node = i;
    const struct tec_planner planner = {.name = "pace", .self = &o->pace, .plan = plan};
    tec_loop_set_planner(o->engine->loop, &planner);
    return TEC_OK;
}

static void close_engine(struct open *o)
{
    for (int i = 0; i < o->engine->n_chains; i++)
        CHECK_INT(o->engine->chains[i].plan->prefixes.in_use, ==, 0);
    tec_engine_close(o->engine);
    tec_pipeline_free(o->pipeline);
}

static void listen(struct open *o)
{
    struct tec_loop *loop = o->engine->loop;
    for (int i = 0; i < tec_loop_utterances(loop); i++) {
        const struct tec_utterance *u = tec_loop_utterance(loop, i);
        if (u->id < 0 || u->frame >= FRAMES)
            continue;
        o->said[u->frame].count = u->count;
        memcpy(o->said[u->frame].tokens, u->tokens, (size_t)u->count * sizeof(int));
    }
}

static bool declared(const struct open *o, const char *name)
{
    for (int i = 0; i < o->pipeline->n_inputs; i++)
        if (strncmp(o->pipeline->inputs[i].name, name, strcspn(name, "#")) == 0)
            return true;
    return false;
}

/* Observation `frame`: everything in it depends on its number. The buffers are used again. */
static void step(struct open *o, int frame)
{
    static uint8_t cam[SIDE * SIDE * 3], side[SIDE * SIDE * 3];
    static float state[8];
    static int32_t prompt[5], question[6];
    for (int i = 0; i < SIDE * SIDE * 3; i++) {
        cam[i] = (uint8_t)(i * 7 + frame * 31);
        side[i] = (uint8_t)(i / 3 + frame * 17);
    }
    state[0] = (float)frame * 0.1F;
    for (int i = 0; i < 5; i++)
        prompt[i] = 3 + (i + (o->same_prompt ? 0 : frame)) % 9;
    for (int i = 0; i < 6; i++)
        question[i] = 20 + (i * 3 + frame) % 40;
    const struct tec_value all[] = {
        {"cam", TEC_VALUE_U8, 3, {SIDE, SIDE, 3}, cam, sizeof cam},
        {"side", TEC_VALUE_U8, 3, {SIDE, SIDE, 3}, side, sizeof side},
        {"state", TEC_VALUE_F32, 1, {8}, state, sizeof state},
        {"prompt#ids", TEC_VALUE_I32, 1, {5}, prompt, sizeof prompt},
        {"question#ids", TEC_VALUE_I32, 1, {6}, question, sizeof question}};
    struct tec_value given[5];
    size_t n = 0;
    for (int i = 0; i < 5; i++)
        if (declared(o, all[i].name))
            given[n++] = all[i];
    struct tec_frame_input input;
    REQUIRE(tec_session_observe(o->engine->session, given, n, NULL, frame, 0, &input, NULL, &err) ==
            TEC_OK);
    loop_frame(o->engine->loop, &input, 0, 0);
    listen(o);
}

static void drain(struct open *o)
{
    for (int i = 0; i < 400 && tec_loop_live(o->engine->loop) > 0; i++) {
        loop_frame(o->engine->loop, NULL, 0, 0);
        listen(o);
    }
    CHECK_INT(tec_loop_live(o->engine->loop), ==, 0);
}

static void run(struct open *o)
{
    for (int f = 0; f < FRAMES; f++)
        step(o, f);
    o->pace = (struct pace){.k = 3, .slices = 1000, .node = o->pace.node};
    drain(o);
}

static bool same(const struct said *a, const struct said *b)
{
    return a->count == b->count &&
           memcmp(a->tokens, b->tokens, sizeof(int) * (size_t)a->count) == 0;
}

static void open_or_say(struct open *o, const char *path, const char *set)
{
    enum tec_status status = open_engine(o, path, set);
    if (status != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(status == TEC_OK);
}

/* One pipeline of both against each half: at four paces, the first of which begins no prefill
 * before the last observation. */
static void compare(const char *both, const char *hard, const char *arch)
{
    static struct open arm, answer, with;
    open_or_say(&arm, hard, arch);
    run(&arm);
    open_or_say(&answer, FOLDER "chains_answer.lua", NULL);
    run(&answer);
    for (int way = 0; way < 4; way++) {
        open_or_say(&with, both, NULL);
        with.pace.slices = way;
        with.pace.dice = way > 1 ? 40 + (uint64_t)way : 0;
        run(&with);
        CHECK_INT(with.n_chunks, ==, arm.n_chunks);
        CHECK(memcmp(with.chunks, arm.chunks, sizeof with.chunks) == 0);
        for (int f = 0; f < FRAMES; f += 2) {
            CHECK_INT(answer.said[f].count, >, 0);
            CHECK(same(&with.said[f], &answer.said[f]));
        }
        close_engine(&with);
    }
    CHECK(!same(&answer.said[0], &answer.said[2]) || !same(&answer.said[2], &answer.said[4]));
    CHECK_INT(arm.n_chunks, ==, FRAMES);
    int others = 0;
    for (int f = 1; f < FRAMES; f++)
        others += memcmp(arm.chunks[0], arm.chunks[f], sizeof arm.chunks[0]) != 0;
    CHECK_INT(others, >, 0);
    close_engine(&arm);
    close_engine(&answer);
    CHECK_INT(heap.live, ==, 0);
}

TEST(two_prompts_of_one_model_are_those_of_each_alone)
{
    compare(FOLDER "chains.lua", FOLDER "chains_arm.lua", NULL);
}

TEST(a_second_model_sees_what_it_sees_alone)
{
    compare(FOLDER "chains_two_models.lua", FOLDER "chains_arm.lua", "models.arm.arch=pi05");
}

TEST(a_picture_that_another_arm_alone_acts_on_is_in_a_question)
{
    compare(FOLDER "chains_lent.lua", FOLDER "chains_arm.lua", NULL);
}

TEST(a_ring_and_answers_of_its_model_are_those_of_each_alone)
{
    compare(FOLDER "chains_ring.lua", FOLDER "chains_ring_alone.lua", NULL);
}

/* A new instruction empties the ring; a new question does not. */
TEST(only_its_own_instruction_empties_a_ring)
{
    static struct open o;
    open_or_say(&o, FOLDER "chains_ring.lua", "resources.ring.on_change=flush");
    o.same_prompt = true;
    for (int f = 0; f < FRAMES; f++)
        step(&o, f);
    CHECK_INT(o.n_chunks, ==, FRAMES - 6);
    drain(&o);
    close_engine(&o);
    CHECK_INT(heap.live, ==, 0);
}

static int64_t picture_products(struct tec_plan *plan, enum tec_part_kind kind, bool known)
{
    const struct tec_work_size size = {.pictures = 2, .text = 6, .known = known};
    const struct tec_plan_part *part = tec_plan_part(plan, kind, 0);
    struct stage_work stages[TEC_STAGE_COUNT];
    REQUIRE(tec_work_check(plan, part, &size, &err) == TEC_OK);
    stage_work_sum(plan, part, &size, stages);
    const struct tec_cost *c = &stages[TEC_STAGE_PICTURES].cost;
    return c->products + c->products_f32;
}

/* Answers to the observation of an arm that reads the same pictures: their rows are copied where
 * the question is read in the frame of its observation, so zeros in their place are read too; where
 * it is read later they are computed again, whatever is there. */
TEST(pictures_that_two_prompts_read_are_computed_once)
{
    static struct open answer, with;
    const char *both = "nodes.see.reads=[\"cam\",\"side\",\"state\",\"prompt\"]";
    open_or_say(&answer, FOLDER "chains_answer.lua", NULL);
    CHECK(!answer.engine->plan->spec.shares);
    run(&answer);
    for (int way = 0; way < 4; way++) {
        bool now = way & 1;
        int others = 0;
        open_or_say(&with, FOLDER "chains.lua", both);
        struct tec_plan *look = with.engine->chains[1].plan;
        CHECK(look->spec.shares && look->picture_rows == with.engine->plan->picture_rows);
        CHECK_INT(picture_products(look, TEC_PART_PREFIX, false), >, 0);
        CHECK_INT(picture_products(look, TEC_PART_PREFIX, true), ==, 0);
        with.pace.slices = now ? 1000 : 0;
        with.spoils = way & 2;
        run(&with);
        for (int f = 0; f < FRAMES; f += 2)
            others += !same(&with.said[f], &answer.said[f]);
        CHECK(with.spoils && now ? others > 0 : others == 0);
        close_engine(&with);
    }
    close_engine(&answer);
    CHECK_INT(heap.live, ==, 0);
}

/* A question about no picture: whatever the cameras show and however its prefill is cut. */
TEST(a_model_with_cameras_reads_a_text_alone)
{
    static struct open o, cut;
    const char *text = "nodes.look.reads=[\"question\"]";
    open_or_say(&o, FOLDER "chains.lua", text);
    CHECK_INT(o.engine->chains[1].plan->spec.pictures, ==, 0);
    run(&o);
    open_or_say(&cut, FOLDER "chains.lua", text);
    cut.pace.dice = 9;
    cut.pace.slices = 2;
    run(&cut);
    for (int f = 0; f < FRAMES; f += 2) {
        CHECK_INT(o.said[f].count, >, 0);
        CHECK(same(&o.said[f], &cut.said[f]));
    }
    CHECK(memcmp(o.chunks, cut.chunks, sizeof o.chunks) == 0);
    close_engine(&o);
    close_engine(&cut);
    CHECK_INT(heap.live, ==, 0);
}

/* The text of a node of the first frame, of a pipeline whose planner is given these ids. */
static struct said text_of(const char *path, const char *node, const int32_t *goal, int n)
{
    static struct open o;
    static uint8_t cam[SIDE * SIDE * 3];
    static const float state[8] = {0.5F};
    static const int32_t prompt[3] = {3, 4, 5}, question[3] = {31, 41, 59};
    struct said said = {0};
    struct tec_frame_input input;
    const struct tec_value all[] = {
        {"goal#ids", TEC_VALUE_I32, 1, {n}, goal, (size_t)n * sizeof *goal},
        {"cam", TEC_VALUE_U8, 3, {SIDE, SIDE, 3}, cam, sizeof cam},
        {"state", TEC_VALUE_F32, 1, {8}, state, sizeof state},
        {"prompt#ids", TEC_VALUE_I32, 1, {3}, prompt, sizeof prompt},
        {"question#ids", TEC_VALUE_I32, 1, {3}, question, sizeof question}};
    open_or_say(&o, path, NULL);
    REQUIRE(tec_session_observe(o.engine->session, all, declared(&o, "cam") ? 5 : 1, NULL, 0, 0,
                                &input, NULL, &err) == TEC_OK);
    struct tec_loop *loop = o.engine->loop;
    for (int i = 0; i == 0 || (i < 400 && tec_loop_live(loop) > 0); i++) {
        loop_frame(loop, i ? NULL : &input, 0, 0);
        for (int u = 0; u < tec_loop_utterances(loop); u++) {
            const struct tec_utterance *t = tec_loop_utterance(loop, u);
            if (t->id < 0 || strcmp(tec_loop_settings(loop)->decoders[t->decoder].name, node) != 0)
                continue;
            said.count = t->count < MOST ? t->count : MOST;
            memcpy(said.tokens, t->tokens, (size_t)said.count * sizeof(int));
        }
    }
    close_engine(&o);
    CHECK_INT(heap.live, ==, 0);
    return said;
}

/* Two kv.requests on a prefix that requests wait for; a question behind it is the end of a prompt.
 */
TEST(texts_behind_a_secondary_prefix_are_those_of_a_prompt_alone)
{
    static const char both[] = "tests/pipelines/two_requests.lua";
    static const char planner[] = "tests/pipelines/two_models_planner.lua";
    static const int32_t goal[8] = {3, 10, 20, 30, 40, 31, 41, 59};
    const struct said plan = text_of(planner, "plan", goal, 5),
                      asked = text_of(planner, "plan", goal, 8);
    struct said own = text_of(both, "plan", goal, 5);
    CHECK_INT(own.count, ==, MOST);
    CHECK(same(&own, &plan));
    own = text_of(both, "remark", goal, 5);
    CHECK_INT(own.count, ==, 5);
    CHECK(memcmp(own.tokens, plan.tokens, 5 * sizeof(int)) == 0);
    own = text_of(both, "aside", goal, 5);
    CHECK_INT(own.count, ==, 4);
    CHECK(memcmp(own.tokens, asked.tokens, 4 * sizeof(int)) == 0);
    CHECK(memcmp(asked.tokens, plan.tokens, 4 * sizeof(int)) != 0); /* the question matters */
    CHECK_INT(text_of(both, "answer", goal, 5).count, ==, 5);
}

/* Which request slots of its chain a node's texts take. */
TEST(each_kv_requests_has_slots_of_its_own)
{
    static struct open o;
    static const struct {
        const char *node;
        int first, n;
    } want[] = {{"plan", 0, 1}, {"remark", 1, 2}, {"rank", 1, 2},  {"aside", 3, 1},
                {"talk", 0, 4}, {"bare", 0, 4},   {"answer", 4, 1}};
    REQUIRE(load(&o, "tests/pipelines/two_requests.lua", NULL) == TEC_OK);
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        const struct tec_decl_node *n =
            &o.pipeline->nodes[tec_pipeline_find_node(o.pipeline, want[i].node)];
        const struct tec_decl_slots slots = tec_pipeline_slots(o.pipeline, n->chain, n);
        CHECK_INT(slots.first, ==, want[i].first);
        CHECK_INT(slots.n, ==, want[i].n);
    }
    CHECK_INT(tec_pipeline_slots(o.pipeline, 0, NULL).n, ==, 5);
    tec_pipeline_free(o.pipeline);
}

TEST(chains_are_derived)
{
    static struct open o;
    REQUIRE(load(&o, FOLDER "chains.lua", NULL) == TEC_OK);
    const struct tec_pipeline *p = o.pipeline;
    CHECK_INT(p->n_chains, ==, 2);
    CHECK_STR(p->chains[0].name, "see");
    CHECK_STR(p->chains[1].name, "look");
    const int nodes[] = {1, 1, 0, 0}, resources[] = {1, 1, 0, -1};
    for (int i = 0; i < 4; i++) {
        CHECK_INT(p->nodes[i].chain, ==, nodes[i]);
        CHECK_INT(p->resources[i].chain, ==, resources[i]);
    }
    tec_pipeline_free(o.pipeline);
    REQUIRE(load(&o, FOLDER "chains_two_models.lua", NULL) == TEC_OK);
    CHECK_STR(o.pipeline->chains[1].name, "planner");
    tec_pipeline_free(o.pipeline);
}

TEST(prefills_that_begin_alike_are_one)
{
    static struct open o;
    static const struct {
        const char *set;
        int chains;
    } cases[] = {{NULL, 2},
                 {"nodes.see.spawn=every(2)", 3},
                 {"nodes.think2.spawn=every(1)", 3},
                 {"nodes.think2.spawn=every(2)", 3}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        REQUIRE(load(&o, "tests/pipelines/begun_alike.lua", cases[i].set) == TEC_OK);
        CHECK_INT(o.pipeline->n_chains, ==, cases[i].chains);
        tec_pipeline_free(o.pipeline);
    }
}

TEST(weights_are_loaded_once)
{
    static struct open o;
    struct tec_measured m;
    struct tec_arena arena;
    open_or_say(&o, FOLDER "chains.lua", NULL);
    const struct tec_engine *e = o.engine;
    CHECK_INT(e->n_models, ==, 1);
    CHECK_INT(e->n_chains, ==, 2);
    CHECK(e->chains[0].plan->weights == e->chains[1].plan->weights);
    tec_arena_init(&arena, &heap);
    REQUIRE(went_well(tec_engine_measure(&m, &e->options, &heap, &arena, &err), &err));
    CHECK_INT(m.bytes.weights, ==, e->weights->bytes);
    CHECK_INT(m.bytes.total, ==,
              e->chains[0].plan->bytes.total + e->chains[1].plan->bytes.total - e->weights->bytes -
                  e->plan->bytes.workspace);
    tec_arena_finish(&arena);
    close_engine(&o);
    CHECK_INT(heap.live, ==, 0);
}

TEST(what_cannot_be_read_is_refused)
{
    static struct open o;
    static const struct {
        const char *set, *what;
    } wrong[] = {
        {"nodes.look.template=\"chatml_next\"",
         "'look': prompt template 'chatml_next' has {text2}, but 1 text is read"},
        {"nodes.look.reads=[\"cam\"]",
         "'look': prompt template 'plain' has {text}, but no text is read"},
        {"nodes.see.template=\"caption\"", "'caption' has neither {text} nor {text1}"},
        {"nodes.look.reads=[\"question\",\"state\"]", "'look' reads the state, but the robot's"},
        {"nodes.look.template=\"with_state\"", "'look' reads no state"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        enum tec_status status = open_engine(&o, FOLDER "chains.lua", wrong[i].set);
        CHECK(status != TEC_OK);
        CHECK(strstr(err.message, wrong[i].what) != NULL);
        if (!strstr(err.message, wrong[i].what))
            fprintf(stderr, "# %s\n", err.message);
        tec_pipeline_free(o.pipeline);
        CHECK_INT(heap.live, ==, 0);
    }
}

/* Fail the n-th allocation, for growing n, until opening succeeds: one status, nothing kept. */
TEST(every_refused_allocation_is_survived)
{
    static struct open o;
    open_or_say(&o, FOLDER "chains.lua", NULL);
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
    CHECK_INT(heap.live, ==, 0);
}

TAP_MAIN
