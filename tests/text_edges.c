/* text_edges.c - edges of text: a prefill reads the newest finished text of a stream, of its own
 * episode: of an earlier version, which nobody waits for, or of its frame, for which it does. */
#include "graph/run/engine/engine.h"
#include "tests/loop_frame.h"
#include "tests/tap.h"
#include "tests/told.h"

#include <string.h>

#define EDGES "tests/pipelines/text_edges.lua"
#define LOOP "tests/pipelines/text_loop.lua"
#define TASK "tests/pipelines/text_task.lua"
#define SEVERAL "tests/pipelines/several_texts.lua"
#define ARM "tests/pipelines/two_models_arm.lua"
#define SAID "tests/pipelines/said_first.lua"
#define SAID_BESIDE "tests/pipelines/said_beside.lua"
#define SAID_CUT "tests/pipelines/said_cut.lua"
#define SAID_TWO "tests/pipelines/said_two.lua"

enum { FRAMES = 24, CHUNK = 6 * 32, MOST = 16 };

static struct tec_heap heap;
static struct tec_error err;
static int n_open;

struct open {
    struct tec_pipeline *pipeline;
    struct tec_engine *engine;
    int k, slices;      /* of every request and prefill in a frame */
    bool demo;          /* the bundled checkpoint in place of random weights */
    int versions;       /* events */
    int64_t version_of; /* request of the newest one */
    int arrived[TEC_MAX_NODES];
    int unread; /* events, and what the newest one says */
    char why[400];
    float chunk[CHUNK];
    char warning[200];
};

static enum tec_status plan(void *self, const struct tec_frame_view *view, struct tec_decision *d,
                            struct tec_error *error)
{
    const struct open *o = self;
    (void)view;
    (void)error;
    for (int i = 0; i < d->n_rows; i++)
        d->rows[i].k = o->k;
    for (int i = 0; i < o->engine->topology.n_nodes; i++)
        d->nodes[i].slices = o->slices;
    return TEC_OK;
}

static void released(void *user, int action, const float *chunk,
                     const struct tec_frame_record *record)
{
    (void)action;
    struct open *o = user;
    (void)record;
    size_t floats = tec_engine_chunk(o->engine, 0);
    memcpy(o->chunk, chunk, (floats < CHUNK ? floats : CHUNK) * sizeof *chunk);
}

static void tell(void *self, const struct tec_event *e)
{
    struct open *o = self;
    if (e->kind == TEC_EVENT_UNREAD) {
        o->unread++;
        snprintf(o->why, sizeof o->why, "%s %s %lld: %s", o->engine->topology.nodes[e->node].name,
                 e->what, (long long)e->request, e->from);
    }
    if (e->kind == TEC_EVENT_ARRIVE)
        o->arrived[e->node]++;
    if (e->kind != TEC_EVENT_VERSION)
        return;
    o->versions++;
    o->version_of = e->request;
}

static enum tec_status load(struct open *o, const char *path, const char *set)
{
    struct tec_diagnostics d;
    const struct tec_load_options options = {
        .path = path, .root = "pipelines", .set = &set, .n_set = set ? 1 : 0};
    tec_diagnostics_init(&d, &heap);
    enum tec_status status = tec_pipeline_load(&o->pipeline, &options, &heap, &d, &err);
    tec_diagnostics_finish(&d);
    return status;
}

static void open_engine(struct open *o, const char *path, const char *set)
{
    REQUIRE(load(o, path, set) == TEC_OK);
    const struct tec_engine_options options = {
        .pipeline = o->pipeline,
        .root = ".",
        .random = !o->demo,
        .seed = 3,
        .size = "tiny",
        .saturated = true,
        .device = {.kind = tap.device, .threads = 1, .tier = tec_tier_best()},
        .released = released,
        .user = o,
        .events = {tell, o}};
    enum tec_status status = tec_engine_open(&o->engine, &options, &heap, &err);
    if (status != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(status == TEC_OK);
    n_open++;
    const struct tec_planner planner = {.name = "pace", .self = o, .plan = plan};
    tec_loop_set_planner(o->engine->loop, &planner);
}

static void close_engine(struct open *o)
{
    tec_engine_close(o->engine);
    tec_pipeline_free(o->pipeline);
    if (--n_open == 0)
        CHECK_INT(heap.live, ==, 0);
}

/* Observation `frame`; `prompt` NULL: none is given. */
static const struct tec_frame_record *step(struct open *o, int frame, const int32_t *prompt, int n,
                                           struct tec_frame_input *input)
{
    const int32_t goal[6] = {3, 10, 20, 30, 40, 50 + frame / 8};
    float state[8] = {(float)frame * 0.1F};
    const struct tec_value v[] = {
        {"state", TEC_VALUE_F32, 1, {8}, state, sizeof state},
        {"goal#ids", TEC_VALUE_I32, 1, {6}, goal, sizeof goal},
        {"prompt#ids", TEC_VALUE_I32, 1, {n}, prompt, (size_t)n * sizeof *prompt}};
    enum tec_status status = tec_session_observe(o->engine->session, v, prompt ? 3 : 2, NULL, frame,
                                                 0, input, o->warning, &err);
    if (status != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(status == TEC_OK);
    return loop_frame(o->engine->loop, input, 0, 0);
}

/* --- versions -------------------------------------------------------------------------------- */

TEST(newest_is_of_the_latest_request_of_an_episode)
{
    struct open o = {.k = 1};
    struct tec_arena arena;
    struct tec_text_edges *edges = NULL;
    int tokens[] = {5, 6, 7}, room = 2;
    REQUIRE(load(&o, EDGES, NULL) == TEC_OK);
    tec_arena_init(&arena, &heap);
    CHECK_INT(o.pipeline->n_streams, ==, 1);
    REQUIRE(tec_text_edges_create(&edges, o.pipeline, &room, 2, &arena, &err) == TEC_OK);
    CHECK_STR(tec_text_edges_name(edges, 0), "plan");
    CHECK(tec_text_edges_newest(edges, 0, 0, 0) == NULL);
    struct tec_text_version v = {.request = 4, .n = 3, .tokens = tokens};
    CHECK(tec_text_edges_post(edges, 0, 0, &v));
    const struct tec_text_version *newest = tec_text_edges_newest(edges, 0, 0, 0);
    REQUIRE(newest != NULL);
    CHECK(newest->request == 4 && newest->number == 1);
    CHECK(newest->n == 2 && newest->tokens[1] == 6); /* no more than there is room for */
    CHECK(tec_text_edges_newest(edges, 0, 1, 0) == NULL);
    v.request = 3; /* one that was born earlier and took longer */
    CHECK(!tec_text_edges_post(edges, 0, 0, &v));
    CHECK_INT(tec_text_edges_newest(edges, 0, 0, 0)->request, ==, 4);
    CHECK(tec_text_edges_newest(edges, 0, 0, 1) == NULL);
    v.episode = 1;
    CHECK(tec_text_edges_post(edges, 0, 0, &v));
    v = (struct tec_text_version){.request = 9, .n = 1, .tokens = tokens};
    CHECK(!tec_text_edges_post(edges, 0, 0, &v)); /* of the episode before */
    CHECK_INT(tec_text_edges_newest(edges, 0, 0, 1)->request, ==, 3);
    tec_arena_finish(&arena);
    tec_pipeline_free(o.pipeline);
    CHECK_INT(heap.live, ==, 0);
}

/* --- what a prefill reads -------------------------------------------------------------------- */

/* The request whose text is finished, and its tokens. */
static int tokens_of(const struct open *o, int64_t request, int *tokens)
{
    for (int i = 0; i < tec_loop_utterances(o->engine->loop); i++) {
        const struct tec_utterance *u = tec_loop_utterance(o->engine->loop, i);
        if (u->id != request || u->done != 1)
            continue;
        memcpy(tokens, u->tokens, (size_t)u->count * sizeof *tokens);
        return u->count;
    }
    return 0;
}

/* The ids that stand for a text without tokenizers, as an arm alone is given them. */
static int prompt_of(const struct open *arm, const int *tokens, int n_tokens, int32_t *ids)
{
    const struct tec_text *t = &arm->engine->model->text;
    int n = arm->engine->plan->spec.text_tokens, first = t->bos >= 0;
    for (int i = 0; i < n; i++)
        ids[i] = i == 0 && first ? t->bos : 3 + i % (t->vocab - 3);
    for (int i = 0; i < n_tokens && first + i < n; i++)
        ids[first + i] = tokens[i] % t->vocab;
    return n;
}

TEST(a_prompt_is_the_newest_text_of_the_frame_before)
{
    struct open both = {.k = 2, .slices = 1}, arm = {.k = 2};
    struct tec_frame_input input;
    int tokens[MOST], n_tokens = 0, changes = 0;
    int64_t newest = -1, first = -1;
    open_engine(&both, EDGES, NULL);
    open_engine(&arm, ARM, "inputs.prompt.max_tokens=44");
    CHECK_INT(both.engine->plan->spec.text_tokens, ==, 44); /* 60 of the frame less a picture */
    for (int f = 0; f < FRAMES; f++) {
        int32_t ids[64];
        int n = prompt_of(&arm, tokens, n_tokens, ids);
        both.version_of = newest;
        const struct tec_frame_record *r = step(&both, f, NULL, 0, &input);
        REQUIRE(r->n_reads > 0);
        CHECK_STR(r->reads[0].node, "see");
        CHECK_STR(r->reads[0].stream, "plan");
        CHECK_INT(r->reads[0].request, ==, newest);
        CHECK((r->reads[0].age_us >= 0) == (newest >= 0));
        CHECK_INT(input.chains[0].prefix.n_text, ==, n);
        CHECK(memcmp(input.chains[0].prefix.ids, ids, (size_t)n * sizeof *ids) == 0);
        step(&arm, f, ids, n, &input);
        CHECK(memcmp(both.chunk, arm.chunk, sizeof arm.chunk) == 0);
        changes += both.version_of != newest;
        first = first < 0 && both.version_of >= 0 ? f : first;
        newest = both.version_of;
        n_tokens = newest < 0 ? 0 : tokens_of(&both, newest, tokens);
        CHECK((newest < 0) == (n_tokens == 0));
    }
    CHECK(first > 1);   /* slices and tokens take frames: nobody waited */
    CHECK(changes > 1); /* a second goal has a second plan */
    CHECK_INT(changes, ==, both.versions);
    close_engine(&both);
    close_engine(&arm);
}

TEST(a_prompt_that_waits_is_the_text_of_its_frame)
{
    struct open both = {.k = 0}, arm = {.k = 0};
    struct tec_frame_input input;
    open_engine(&both, SAID, NULL);
    open_engine(&arm, ARM, "inputs.prompt.max_tokens=44");
    int others = 0;
    for (int f = 0; f < FRAMES; f++) {
        int32_t ids[64], given[3] = {3, 9, 11 + f};
        int tokens[MOST];
        float before[CHUNK];
        memcpy(before, both.chunk, sizeof before);
        const struct tec_frame_record *r = step(&both, f, given, 3, &input);
        CHECK_INT(both.versions, ==, f + 1);
        REQUIRE(r->n_reads == 1);
        CHECK_STR(r->reads[0].node, "look");
        CHECK_INT(r->reads[0].request, ==, both.version_of);
        CHECK_INT(r->reads[0].frame, ==, f);
        int n_tokens = tokens_of(&both, both.version_of, tokens);
        CHECK_INT(n_tokens, ==, 6);
        step(&arm, f, ids, prompt_of(&arm, tokens, n_tokens, ids), &input);
        CHECK(memcmp(both.chunk, arm.chunk, sizeof arm.chunk) == 0);
        others += memcmp(both.chunk, before, sizeof before) != 0;
    }
    CHECK_INT(others, ==, FRAMES);
    close_engine(&both);
    close_engine(&arm);
}

/* Beside the text that is waited for stands another one, which the observation has brought. */
TEST(a_prompt_that_waits_has_other_texts_beside_it)
{
    struct open both = {.k = 0}, arm = {.k = 0};
    struct tec_frame_input input;
    open_engine(&both, SAID_BESIDE, NULL);
    open_engine(&arm, ARM, "inputs.prompt.max_tokens=44");
    for (int f = 0; f < 6; f++) {
        int32_t ids[64], given[3] = {3, 9, 11 + f};
        int tokens[MOST + 3];
        const struct tec_frame_record *r = step(&both, f, given, 3, &input);
        REQUIRE(r->n_reads == 1);
        CHECK_INT(r->reads[0].request, ==, both.version_of);
        int n = tokens_of(&both, both.version_of, tokens);
        for (int i = 0; i < 3; i++)
            tokens[n++] = given[i];
        step(&arm, f, ids, prompt_of(&arm, tokens, n, ids), &input);
        CHECK(memcmp(both.chunk, arm.chunk, sizeof arm.chunk) == 0);
    }
    close_engine(&both);
    close_engine(&arm);
}

/* Without a text of its frame: the newest of an earlier one, before any the default. */
TEST(a_prompt_does_not_wait_for_a_text_that_is_not_made)
{
    struct open o = {.k = 0};
    struct tec_frame_input input;
    const int32_t given[3] = {3, 9, 11};
    open_engine(&o, SAID, "nodes.talk.spawn=every(3)");
    for (int f = 0; f < 7; f++) {
        const struct tec_frame_record *r = step(&o, f, given, 3, &input);
        REQUIRE(r->n_reads == 1);
        CHECK_INT(r->reads[0].request, ==, f / 3);
        CHECK_INT(r->reads[0].frame, ==, f / 3 * 3);
    }
    tec_session_reset(o.engine->session);
    CHECK_INT(step(&o, 7, given, 3, &input)->reads[0].request, ==, -1);
    close_engine(&o);
}

TEST(a_reset_begins_with_the_default)
{
    struct open o = {.k = 3, .slices = 100};
    struct tec_frame_input input;
    int f = 0;
    open_engine(&o, EDGES, NULL);
    for (; f < 8; f++)
        step(&o, f, NULL, 0, &input);
    CHECK(input.chains[0].reads[0].request >= 0);
    o.k = 0;
    step(&o, f++, NULL, 0, &input); /* a new goal: its request lives on through the reset */
    int64_t old = input.chains[0].reads[0].request;
    tec_session_reset(o.engine->session);
    step(&o, f++, NULL, 0, &input);
    CHECK(old >= 0 && input.chains[0].reads[0].request == -1);
    int before = o.versions;
    o.k = 3;
    for (int i = 0; i < 5; i++, f++) { /* that of the episode before is given up */
        step(&o, f, NULL, 0, &input);
        int64_t read = input.chains[0].reads[0].request;
        CHECK(read == -1 || read > old);
    }
    CHECK_INT(o.versions, ==, before + 1);
    for (int i = 0; i < 12; i++, f++)
        step(&o, f, NULL, 0, &input);
    CHECK(input.chains[0].reads[0].request > old);
    close_engine(&o);
}

TEST(without_language_the_default_stays)
{
    struct open o = {.k = 0};
    struct tec_frame_input input;
    open_engine(&o, EDGES, NULL);
    for (int f = 0; f < 6; f++) {
        const struct tec_frame_record *r = step(&o, f, NULL, 0, &input);
        CHECK_INT(r->reads[0].request, ==, -1);
        CHECK(r->actions[0].release_ns > 0);
    }
    CHECK_INT(o.versions, ==, 0);
    close_engine(&o);
}

/* --- texts ----------------------------------------------------------------------------------- */

/* An observation of the bundled robot with an instruction. */
static void step_told(struct open *o, int frame, const char *told, struct tec_frame_input *input)
{
    static unsigned char picture[64 * 64 * 3];
    float state[4] = {0.0F, 0.6F, 0.2F, (float)(frame % 2)};
    const struct tec_value v[] = {
        {"observation/image", TEC_VALUE_U8, 3, {64, 64, 3}, picture, sizeof picture},
        {"observation/wrist_image", TEC_VALUE_U8, 3, {64, 64, 3}, picture, sizeof picture},
        {"observation/state", TEC_VALUE_F32, 1, {4}, state, sizeof state},
        {.name = "prompt", .kind = TEC_VALUE_TEXT, .data = told, .bytes = strlen(told)}};
    enum tec_status status =
        tec_session_observe(o->engine->session, v, 4, NULL, frame, 0, input, o->warning, &err);
    if (status != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(status == TEC_OK);
    loop_frame(o->engine->loop, input, 0, 0);
}

/* Which nobody reads. */
static void step_demo(struct open *o, int frame, struct tec_frame_input *input)
{
    step_told(o, frame, "open the drawer", input);
}

/* The bundled model acts on what it has said as if it had been told that. */
TEST(a_text_of_the_frame_goes_through_the_template)
{
    struct open said = {.k = 0, .demo = true}, told = {.k = 0, .demo = true};
    struct tec_frame_input input;
    struct tec_arena arena;
    open_engine(&said, "tests/pipelines/said_demo.lua", NULL);
    open_engine(&told, "pipelines/demo_metaworld.lua", NULL);
    tec_arena_init(&arena, &heap);
    for (int f = 0; f < 6; f++) {
        char *text = NULL;
        step_told(&said, f, f < 3 ? "open the drawer" : "press the button", &input);
        for (int i = 0; i < tec_loop_utterances(said.engine->loop); i++) {
            const struct tec_utterance *u = tec_loop_utterance(said.engine->loop, i);
            if (u->id == said.version_of)
                REQUIRE(went_well(tec_engine_text(said.engine, u, u->count, &arena, &text, &err),
                                  &err));
        }
        CHECK_INT(said.versions, ==, f + 1);
        REQUIRE(text && strlen(text) > 3);
        step_told(&told, f, text, &input);
        CHECK(memcmp(said.chunk, told.chunk, sizeof told.chunk) == 0);
    }
    tec_arena_finish(&arena);
    close_engine(&said);
    close_engine(&told);
}

TEST(a_text_goes_through_the_template)
{
    struct open o = {.k = 3, .demo = true};
    struct tec_frame_input input;
    struct tec_arena arena;
    int compared = 0;
    open_engine(&o, LOOP, NULL);
    tec_arena_init(&arena, &heap);
    for (int f = 0; f < 10; f++) {
        char *want = NULL;
        for (int i = 0; i < tec_loop_utterances(o.engine->loop); i++) {
            const struct tec_utterance *u = tec_loop_utterance(o.engine->loop, i);
            if (o.versions > 0 && u->id == o.version_of)
                REQUIRE(
                    went_well(tec_engine_text(o.engine, u, u->count, &arena, &want, &err), &err));
        }
        step_demo(&o, f, &input);
        const struct tec_observation *seen = tec_session_observation(o.engine->session);
        CHECK_STR(seen->text, want ? want : "press the button");
        compared += want != NULL && strlen(want) > 3;
    }
    CHECK(compared > 3);
    tec_arena_finish(&arena);
    close_engine(&o);
}

TEST(a_text_that_does_not_fit_is_cut)
{
    struct open o = {.k = 0, .demo = true};
    struct tec_frame_input input;
    static char set[800] = "nodes.talk.out.default=";
    for (size_t used = strlen(set); used < 700; used = strlen(set))
        snprintf(set + used, sizeof set - used, "press the button \xc3\xa9 ");
    open_engine(&o, LOOP, set);
    step_demo(&o, 0, &input);
    int room = o.engine->plan->spec.text_tokens;
    CHECK_INT(room, ==, 32);
    CHECK_INT(input.chains[0].prefix.n_text, <=, room);
    CHECK_INT(input.chains[0].prefix.n_text, >, room / 2);
    CHECK(strstr(o.warning, "stream 'narration' is cut") != NULL);
    const struct tec_observation *seen = tec_session_observation(o.engine->session);
    CHECK(seen->text_bytes > 10 && seen->text_bytes < 600);
    CHECK(strncmp(seen->text, "press the button", 16) == 0);
    close_engine(&o);
}

/* --- several texts, and none ------------------------------------------------------------------ */

static enum tec_status observe(struct open *o, int frame, const struct tec_value *prompt,
                               struct tec_frame_input *input)
{
    static unsigned char picture[64 * 64 * 3];
    float state[4] = {0.0F, 0.6F, 0.2F, (float)(frame % 2)};
    const struct tec_value v[] = {
        {"observation/image", TEC_VALUE_U8, 3, {64, 64, 3}, picture, sizeof picture},
        {"observation/wrist_image", TEC_VALUE_U8, 3, {64, 64, 3}, picture, sizeof picture},
        {"observation/state", TEC_VALUE_F32, 1, {4}, state, sizeof state},
        *prompt};
    return tec_session_observe(o->engine->session, v, prompt->name ? 4 : 3, NULL, frame, 0, input,
                               o->warning, &err);
}

static int node_called(const struct open *o, const char *name)
{
    for (int i = 0; i < o->engine->topology.n_nodes; i++)
        if (strcmp(o->engine->topology.nodes[i].name, name) == 0)
            return i;
    return -1;
}

static const struct tec_chain_input *of_node(const struct open *o, const char *name,
                                             const struct tec_frame_input *input)
{
    return &input->chains[o->engine->topology.nodes[node_called(o, name)].model];
}

/* The ids of calls of a text each, that begin with the begin token where `bos` says so. */
static int ids_of(const struct open *o, const char *const *calls, const bool *bos, int n, int *ids,
                  struct tec_arena *arena)
{
    const struct tec_tokenizer *t = o->engine->models[0].tokenizer;
    const struct tec_encode how = {0};
    size_t all = 0, count;
    for (int i = 0; i < n; i++) {
        if (bos[i])
            ids[all++] = tec_tokenizer_bos(t);
        REQUIRE(tec_tokenizer_encode(t, calls[i], strlen(calls[i]), how, ids + all, 64, &count,
                                     arena, &err) == TEC_OK);
        all += count;
    }
    return (int)all;
}

static bool is_prompt(const struct tec_chain_input *in, const int *ids, int n)
{
    return in->prefix.n_text == n && memcmp(in->prefix.ids, ids, (size_t)n * sizeof *ids) == 0;
}

static void check_prompts(const struct open *o, const struct tec_frame_input *input,
                          const char *task, const char *said, struct tec_arena *arena)
{
    static const bool first[] = {true, false};
    char text[400];
    int ids[160], n;
    snprintf(text, sizeof text, "%s%s%s", said, said[0] ? "\n" : "", task);
    const char *const heard[] = {text, "\n"}, *const caption[] = {"caption en", "\n"};
    for (char *c = text; *c; c++)
        if (*c == '\n') /* the template makes one line of it */
            *c = ' ';
    n = ids_of(o, heard, first, 2, ids, arena);
    CHECK(is_prompt(of_node(o, "hear", input), ids, n));
    n = ids_of(o, caption, first, 2, ids, arena);
    CHECK(is_prompt(of_node(o, "look", input), ids, n));
    CHECK_INT(of_node(o, "look", input)->prefix.n_pictures, ==, 1);
}

TEST(a_prompt_is_made_of_several_texts_or_of_none)
{
    static const char *const tasks[] = {"open the drawer", "close the drawer"};
    struct open o = {.k = 3, .slices = 1, .demo = true};
    struct tec_frame_input input;
    struct tec_arena arena;
    int compared = 0;
    open_engine(&o, TASK, NULL);
    tec_arena_init(&arena, &heap);
    for (int f = 0; f < 14; f++) {
        const char *task = tasks[f / 7];
        char *said = NULL, want[200];
        for (int i = 0; i < tec_loop_utterances(o.engine->loop); i++) {
            const struct tec_utterance *u = tec_loop_utterance(o.engine->loop, i);
            if (o.versions > 0 && u->id == o.version_of)
                REQUIRE(
                    went_well(tec_engine_text(o.engine, u, u->count, &arena, &said, &err), &err));
        }
        const struct tec_value prompt = {
            .name = "prompt", .kind = TEC_VALUE_TEXT, .data = task, .bytes = strlen(task)};
        REQUIRE(observe(&o, f, &prompt, &input) == TEC_OK);
        snprintf(want, sizeof want, "%s%s%s", task, said ? "\n" : "", said ? said : "");
        const struct tec_observation *seen = tec_session_observation(o.engine->session);
        CHECK_STR(seen->text, want); /* the default is empty, and no line */
        check_prompts(&o, &input, task, said ? said : "", &arena);
        const struct tec_frame_record *r = loop_frame(o.engine->loop, &input, 0, 0);
        CHECK(r->n_reads >= 1 && strcmp(r->reads[0].stream, "narration") == 0);
        compared += said != NULL;
    }
    CHECK(compared > 5);
    CHECK_INT(o.arrived[node_called(&o, "remark")], ==, 2); /* of the task alone */
    CHECK_INT(o.arrived[node_called(&o, "caption")], ==, 4);
    tec_arena_finish(&arena);
    close_engine(&o);
}

TEST(of_several_texts_those_of_streams_are_cut)
{
    struct open o = {.k = 0, .demo = true};
    struct tec_frame_input input;
    static char set[800] = "nodes.talk.out.default=";
    static const char task[] = "open the drawer";
    for (size_t used = strlen(set); used < 700; used = strlen(set))
        snprintf(set + used, sizeof set - used, "press the button \xc3\xa9 ");
    open_engine(&o, TASK, set);
    struct tec_value prompt = {
        .name = "prompt", .kind = TEC_VALUE_TEXT, .data = task, .bytes = sizeof task - 1};
    REQUIRE(observe(&o, 0, &prompt, &input) == TEC_OK);
    CHECK_INT(input.chains[0].prefix.n_text, <=, o.engine->plan->spec.text_tokens);
    CHECK(strstr(o.warning, "stream 'narration' is cut") != NULL);
    o.warning[0] = '\0';
    int tokens = input.chains[0].prefix.n_text;
    REQUIRE(observe(&o, 2, &prompt, &input) == TEC_OK); /* the same again */
    CHECK_INT(input.chains[0].prefix.n_text, ==, tokens);
    CHECK(strstr(o.warning, "stream 'narration' is cut") != NULL);
    const struct tec_observation *seen = tec_session_observation(o.engine->session);
    CHECK(strncmp(seen->text, "open the drawer\npress the", 25) == 0);
    CHECK(seen->text_bytes < 600);
    prompt = (struct tec_value){.name = NULL};
    CHECK_INT(observe(&o, 0, &prompt, &input), ==, TEC_NOT_FOUND);
    CHECK(strncmp(err.message, "prompt: missing", 15) == 0);
    static const int32_t ids[] = {3, 4};
    prompt = (struct tec_value){"prompt#ids", TEC_VALUE_I32, 1, {2}, ids, sizeof ids};
    CHECK_INT(observe(&o, 0, &prompt, &input), ==, TEC_INVALID);
    CHECK(strstr(err.message, "several texts") != NULL);
    static char most[1200];
    memset(most, 'a', sizeof most);
    prompt = (struct tec_value){
        .name = "prompt", .kind = TEC_VALUE_TEXT, .data = most, .bytes = sizeof most};
    CHECK_INT(observe(&o, 0, &prompt, &input), ==, TEC_INVALID); /* what is given is not cut */
    prompt.bytes = 700;
    CHECK_INT(observe(&o, 0, &prompt, &input), ==, TEC_INVALID);
    CHECK(strncmp(err.message, "see: prompt has ", 16) == 0); /* of several texts */
    close_engine(&o);
}

/* A text that says nothing is a prompt of nothing, not that of the text before. */
TEST(a_prompt_that_waits_may_hear_nothing)
{
    struct open o = {.k = 0, .demo = true};
    struct tec_frame_input input;
    struct tec_value prompt = {
        .name = "prompt", .kind = TEC_VALUE_TEXT, .data = "open", .bytes = 4};
    open_engine(&o, "tests/pipelines/said_demo.lua", "nodes.look.template=bare");
    REQUIRE(observe(&o, 0, &prompt, &input) == TEC_OK);
    int heard = 0;
    for (int i = 0; i < o.pipeline->n_chains; i++) {
        const struct tec_chain_input *in = &input.chains[i];
        if (!in->maker.make)
            continue;
        heard++;
        CHECK_INT(in->maker.make(in->maker.self, NULL, 0, &err), ==, 1);
        CHECK_INT(in->prefix.ids[0], ==, 0);
    }
    CHECK_INT(heard, ==, 1);
    close_engine(&o);
}

/* A text that no prompt can be made of leaves the prompt of the observation, which is of the text
 * before, and is told with its place. */
TEST(a_text_that_is_no_prompt_leaves_the_one_before_and_is_told)
{
    enum { BAD = 3 };
    struct open o = {.k = 0, .demo = true}, told = {.k = 0, .demo = true};
    struct tec_frame_input input;
    struct tec_arena arena;
    open_engine(&o, "tests/pipelines/said_demo.lua", NULL);
    open_engine(&told, "pipelines/demo_metaworld.lua", NULL);
    tec_arena_init(&arena, &heap);
    char *before = NULL;
    int *vocab = &o.engine->models[0].model->text.vocab, all = *vocab;
    for (int f = 0; f < 6; f++) {
        struct tec_value prompt = {
            .name = "prompt", .kind = TEC_VALUE_TEXT, .data = "open the drawer", .bytes = 15};
        prompt.data = f < BAD ? prompt.data : "close the window";
        prompt.bytes = strlen(prompt.data);
        REQUIRE(observe(&o, f, &prompt, &input) == TEC_OK);
        *vocab = f == BAD ? 1 : all; /* the tokenizer has tokens that the model does not know */
        const struct tec_frame_record *r = loop_frame(o.engine->loop, &input, 0, 0);
        *vocab = all;
        REQUIRE(r->n_reads == 1);
        CHECK_INT(r->reads[0].request, ==, f == BAD ? f - 1 : f);
        CHECK_INT(o.unread, ==, f >= BAD);
        for (int i = 0; i < tec_loop_utterances(o.engine->loop); i++) {
            const struct tec_utterance *u = tec_loop_utterance(o.engine->loop, i);
            if (u->id == r->reads[0].request)
                REQUIRE(
                    went_well(tec_engine_text(o.engine, u, u->count, &arena, &before, &err), &err));
        }
        REQUIRE(before != NULL);
        step_told(&told, f, before, &input);
        CHECK(memcmp(o.chunk, told.chunk, sizeof told.chunk) == 0);
    }
    CHECK(strstr(o.why, "talk narration 3: ") == o.why);
    CHECK(strstr(o.why, "demo_metaworld.lua:"));
    CHECK(strstr(o.why, "no prompt is made of the text of 'narration', the one before stays: "
                        "narration: token "));
    CHECK(strstr(o.why, "the model's vocabulary has 1; the tokenizer is another model's"));
    tec_arena_finish(&arena);
    close_engine(&o);
    close_engine(&told);
}

/* A request's text, of the loop's thread: one token. */
static void post(const struct open *o, int stream, int64_t request, int token)
{
    const struct tec_text_version v = {.request = request, .episode = 0, .n = 1, .tokens = &token};
    CHECK(tec_text_edges_post(o->engine->edges, stream, 0, &v));
}

/* What the prompt of the next observation is made of, and how many texts have been told. */
static void check_said(struct open *o, int frame, const char *text, int unread)
{
    struct tec_frame_input input;
    struct tec_value none = {.name = NULL};
    REQUIRE(observe(o, frame, &none, &input) == TEC_OK);
    CHECK_STR(tec_session_observation(o->engine->session)->text, text);
    loop_frame(o->engine->loop, &input, 0, 0);
    CHECK_INT(o->unread, ==, unread);
}

/* The last piece of the tokenizer is one that the model does not know. */
TEST(of_two_new_texts_only_the_one_that_is_no_prompt_is_left_out)
{
    struct open o = {.k = 0, .demo = true};
    struct tec_frame_input input;
    static const float few[3];
    static unsigned char picture[64 * 64 * 3];
    const struct tec_value wrong[] = {
        {"observation/image", TEC_VALUE_U8, 3, {64, 64, 3}, picture, sizeof picture},
        {"observation/wrist_image", TEC_VALUE_U8, 3, {64, 64, 3}, picture, sizeof picture},
        {"observation/state", TEC_VALUE_F32, 1, {3}, few, sizeof few}};
    char text[4][80], want[200], *said = NULL;
    struct tec_arena arena;
    open_engine(&o, SAID_TWO, NULL);
    tec_arena_init(&arena, &heap);
    int *vocab = &o.engine->models[0].model->text.vocab, last = *vocab - 1;
    const int tokens[4] = {last, last - 2, last - 3, last - 4};
    for (int i = 0; i < 4; i++) {
        REQUIRE(tec_tokenizer_decode(o.engine->models[0].tokenizer, &tokens[i], 1, true, &arena,
                                     &said, &(size_t){0}, &err) == TEC_OK);
        snprintf(text[i], sizeof text[i], "%s", said);
    }
    check_said(&o, 0, "open the\ndrawer", 0);
    *vocab = last;
    for (int bad = 0; bad < 2; bad++) { /* both are new */
        post(&o, bad, 10 + bad, last);
        post(&o, !bad, 10 + bad, tokens[1 + bad]);
        snprintf(want, sizeof want, "%s\n%s", bad ? text[2] : "open the", text[1]);
        check_said(&o, 1 + bad, want, 1 + bad);
        CHECK(strncmp(o.why, bad ? "tell aside 11: " : "talk narration 10: ", 15) == 0);
        check_said(&o, 1 + bad, want, 1 + bad);
    }
    post(&o, 0, 12, last); /* neither is one: the first is told at once, then the other */
    post(&o, 1, 12, last);
    snprintf(want, sizeof want, "%s\n%s", text[2], text[1]);
    check_said(&o, 3, want, 3);
    CHECK(strncmp(o.why, "talk narration 12: ", 19) == 0);
    check_said(&o, 4, want, 4);
    CHECK(strncmp(o.why, "tell aside 12: ", 15) == 0);
    check_said(&o, 5, want, 4);
    post(&o, 0, 13, tokens[3]); /* a wrong value beside it is the robot's to mend */
    for (int i = 0; i < 2; i++) {
        CHECK(tec_session_observe(o.engine->session, wrong, 3, NULL, 6, 0, &input, NULL, &err) !=
              TEC_OK);
        CHECK(strstr(err.message, "observation/state"));
    }
    snprintf(want, sizeof want, "%s\n%s", text[3], text[1]);
    check_said(&o, 6, want, 4);
    tec_arena_finish(&arena);
    close_engine(&o);
}

/* Without tokenizers, behind a memory. What was cut for a long text is there behind a short one,
 * and is of this observation. */
TEST(ids_that_were_cut_are_there_when_a_shorter_text_is_heard)
{
    enum { GIVEN = 10 };
    struct open o = {.k = 0};
    struct tec_frame_input input;
    open_engine(&o, SAID_CUT, NULL);
    for (int f = 0; f < 8; f++) {
        const int32_t said[1] = {7};
        int32_t given[GIVEN];
        for (int i = 0; i < GIVEN; i++)
            given[i] = 20 + 10 * f + i;
        step(&o, f, given, GIVEN, &input);
        const struct tec_chain_input *in = of_node(&o, "look", &input);
        REQUIRE(in->maker.make && in->memory);
        int all = in->prefix.n_text, made = in->maker.make(in->maker.self, said, 1, &err);
        const int *ids = in->prefix.ids + in->memory->query;
        CHECK_INT(made, ==, all);
        CHECK_INT(ids[0], ==, said[0]);
        for (int i = 0; i < GIVEN && in->memory->query + 1 + i < made; i++)
            CHECK_INT(ids[1 + i], ==, given[i]);
    }
    close_engine(&o);
}

TEST(a_value_that_is_named_starts_a_request)
{
    struct open o = {.k = 3, .slices = 100};
    struct tec_frame_input input;
    static const int32_t prompt[] = {3, 4, 5};
    open_engine(&o, SEVERAL, NULL);
    for (int f = 0; f < FRAMES; f++)
        step(&o, f, prompt, 3, &input);
    CHECK_INT(of_node(&o, "think", &input)->reads[0].stream, ==, 1);
    CHECK_INT(of_node(&o, "think", &input)->reads[1].stream, ==, 2);
    CHECK_INT(o.arrived[node_called(&o, "remark")], ==, 3); /* one a goal */
    CHECK_INT(o.arrived[node_called(&o, "plan")], >, 3);    /* what was said is read, too */
    close_engine(&o);
}

TAP_MAIN
