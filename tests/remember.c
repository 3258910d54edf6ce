/* remember.c - tests of remember nodes: what was said is a segment of the next prompt, the newest
 * text alone, and durable. */
#include "graph/run/engine/engine.h"
#include "graph/run/recall/memory_own.h"
#include "tests/box.h"
#include "tests/loop_frame.h"
#include "tests/store_inside.h"
#include "tests/told.h"

#include <unistd.h>

#define PIPELINE TECTUM_SOURCE "/pipelines/graphs/g18_answer_is_remembered.lua"
#define KEY "last answer"

static struct tec_error err;
static struct tec_heap heap;
static char folder[32], path[64], trouble[TEC_MEMORY_TEXT + 64];

static void hear(void *user, const char *line)
{
    (void)user;
    snprintf(trouble, sizeof trouble, "%s", line);
}

struct open {
    struct tec_pipeline *pipeline;
    struct tec_engine *engine;
    int frame;
};

/* `more` (NULL = none): a setting. */
static void open_graph(struct open *o, const char *more)
{
    char store[96];
    struct tec_diagnostics d;
    snprintf(store, sizeof store, "resources.mem.store=%s", path);
    const char *set[] = {store, more};
    const struct tec_load_options load = {
        .path = PIPELINE, .root = TECTUM_SOURCE "/pipelines", .set = set, .n_set = more ? 2 : 1};
    *o = (struct open){.pipeline = NULL};
    tec_diagnostics_init(&d, &heap);
    enum tec_status status = tec_pipeline_load(&o->pipeline, &load, &heap, &d, &err);
    tec_diagnostics_finish(&d);
    REQUIRE(status == TEC_OK);
    const struct tec_engine_options options = {
        .pipeline = o->pipeline,
        .root = TECTUM_SOURCE,
        .random = true,
        .seed = 1,
        .size = "tiny",
        .saturated = true,
        .trouble = hear,
        .device = {.kind = tap.device, .threads = 1, .tier = tec_tier_best()}};
    REQUIRE(went_well(tec_engine_open(&o->engine, &options, &heap, &err), &err));
}

static void close_graph(struct open *o)
{
    tec_engine_close(o->engine);
    tec_pipeline_free(o->pipeline);
}

static void begin(void)
{
    box_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/store", folder);
    trouble[0] = '\0';
}

static void end(void)
{
    unlink(path);
    CHECK_INT(rmdir(folder), ==, 0);
    CHECK_INT(heap.live, ==, 0);
}

static struct tec_frame_input see(struct open *o, const char *goal)
{
    const struct tec_value value = {
        .name = "goal", .kind = TEC_VALUE_TEXT, .data = goal, .bytes = strlen(goal)};
    struct tec_frame_input input;
    REQUIRE(tec_session_observe(o->engine->session, &value, 1, NULL, o->frame++, 0, &input, NULL,
                                &err) == TEC_OK);
    return input;
}

/* A question to its end: its newest answer. */
static const struct tec_utterance *ask(struct open *o, const char *goal)
{
    struct tec_loop *loop = o->engine->loop;
    struct tec_frame_input input = see(o, goal);
    CHECK(!loop_frame(loop, &input, 0, 1)->failed);
    for (int i = 0; i < 40 && tec_loop_live(loop) > 0; i++)
        (void)loop_frame(loop, NULL, 0, 0);
    CHECK_INT(tec_loop_live(loop), ==, 0);
    const struct tec_utterance *newest = tec_loop_utterance(loop, 0);
    for (int i = 1; i < tec_loop_utterances(loop); i++)
        if (tec_loop_utterance(loop, i)->id > newest->id)
            newest = tec_loop_utterance(loop, i);
    return newest;
}

/* What the memory says under a key: "" where it says nothing. Copied. */
static void kept(struct open *o, const char *key, char out[256])
{
    struct tec_store *store = o->engine->memories[0]->store;
    struct tec_store_segment_view view;
    uint32_t segment;
    out[0] = '\0';
    if (store_find(store, key, &segment) == TEC_OK && tec_store_view(store, segment, &view))
        snprintf(out, 256, "%.*s", (int)view.text_bytes, view.text);
}

/* The text of an answer, as the memory should have it. */
static void text_of(struct open *o, const struct tec_utterance *u, char out[256])
{
    struct tec_arena arena;
    char *text = NULL;
    tec_arena_init(&arena, &heap);
    REQUIRE(went_well(tec_engine_text(o->engine, u, u->count, &arena, &text, &err), &err));
    out[0] = '\0';
    if (text)
        snprintf(out, 256, "%s", text);
    for (int i = 0; !text && i < u->count; i++)
        snprintf(out + strlen(out), 256 - strlen(out), "%d ", u->tokens[i]);
    tec_arena_finish(&arena);
}

TEST(what_was_said_is_in_the_next_prompt_and_durable)
{
    struct open o;
    char said[256], now[256];
    begin();
    open_graph(&o, NULL);
    struct tec_frame_input input = see(&o, "find:fork");
    CHECK_INT(input.chains[0].memory->n_segments, ==, 0);
    text_of(&o, ask(&o, "find:fork"), said);
    CHECK(said[0]);
    kept(&o, KEY, now);
    CHECK_STR(now, ""); /* not before an observation */
    input = see(&o, "find:fork");
    CHECK_INT(input.chains[0].memory->n_segments, ==, 1);
    kept(&o, KEY, now);
    CHECK_STR(now, said);
    /* What nobody has taken when the memory closes is durable, too. */
    text_of(&o, ask(&o, "find:a cup:of tea"), said);
    close_graph(&o);
    open_graph(&o, NULL);
    kept(&o, KEY, now);
    CHECK_STR(now, said);
    CHECK_INT(tec_memory_stored(o.engine->memories[0]), ==, 1);
    CHECK_STR(trouble, "");
    close_graph(&o);
    end();
}

TEST(the_newest_of_several_texts_is_the_segment)
{
    struct open o;
    char now[256];
    begin();
    open_graph(&o, NULL);
    struct tec_memory *m = o.engine->memories[0];
    int node = tec_pipeline_find_node(o.pipeline, "keep");
    const int words[] = {11, 12, 13, 14};
    tec_memory_said(m, node, NULL, words, 2);
    tec_memory_said(m, node, NULL, words + 2, 2);
    tec_memory_said(m, 0, NULL, words, 2); /* which is none of its nodes */
    REQUIRE(tec_memory_apply(m, NULL, 0, &err) == TEC_OK);
    kept(&o, KEY, now);
    CHECK_STR(now, "13 14 ");
    tec_memory_said(m, node, NULL, words, 0); /* an empty text says nothing */
    REQUIRE(tec_memory_apply(m, NULL, 0, &err) == TEC_OK);
    kept(&o, KEY, now);
    CHECK_STR(now, "13 14 ");
    close_graph(&o);
    end();
}

TEST(a_text_that_no_segment_holds_is_trouble_and_the_older_one_stays)
{
    enum { MOST = 16 };
    struct open o;
    char now[256];
    int words[MOST + 1];
    begin();
    open_graph(&o, NULL);
    struct tec_memory *m = o.engine->memories[0];
    int node = tec_pipeline_find_node(o.pipeline, "keep");
    for (int i = 0; i <= MOST; i++)
        words[i] = i + 5;
    tec_memory_said(m, node, NULL, words, 1);
    REQUIRE(tec_memory_apply(m, NULL, 0, &err) == TEC_OK);
    tec_memory_said(m, node, NULL, words, MOST + 1);
    REQUIRE(tec_memory_apply(m, NULL, 0, &err) == TEC_OK); /* the observation goes on */
    CHECK(strstr(trouble, "'keep' does not remember: it has 17 tokens, a segment at most 16"));
    kept(&o, KEY, now);
    CHECK_STR(now, "5 ");
    close_graph(&o);
    end();
}

TEST(the_key_names_the_segment)
{
    struct open o;
    char now[256];
    begin();
    open_graph(&o, "nodes.keep.key=keep");
    const int word = 7;
    tec_memory_said(o.engine->memories[0], tec_pipeline_find_node(o.pipeline, "keep"), NULL, &word,
                    1);
    REQUIRE(tec_memory_apply(o.engine->memories[0], NULL, 0, &err) == TEC_OK);
    kept(&o, "keep", now);
    CHECK_STR(now, "7 ");
    close_graph(&o);
    end();
}

TAP_MAIN
