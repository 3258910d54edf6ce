/* pending_prefill.c - tests of prefills that requests wait for: a draft's that a hard text needs is
 * whole in the text's frame, and one that no hard text needs any more has its turn. One that is
 * held is there for all requests until its trigger begins the next, and no longer. */
#include "graph/run/engine/engine.h"
#include "graph/run/loop/requests.h"
#include "tests/loop_frame.h"
#include "tests/tap.h"
#include "tools/simulate/simulated.h"

#include <string.h>

static struct tec_heap heap;
static struct tec_error err;

/* Every text is decoded, and a prefill has all slices that it needs. */
struct pace {
    struct tec_loop *loop;
    int64_t cancel; /* a request that is gone when turns are planned; -1 = none */
    int n_nodes, slices;
};

static enum tec_status plan(void *self, const struct tec_frame_view *view,
                            struct tec_decision *decision, struct tec_error *error)
{
    struct pace *p = self;
    (void)view, (void)error;
    for (int i = 0; i < decision->n_rows; i++)
        decision->rows[i].k = 2;
    for (int i = 0; i < p->n_nodes; i++)
        decision->nodes[i].slices = p->slices;
    if (p->cancel >= 0)
        CHECK(tec_requests_cancel(p->loop, p->cancel));
    p->cancel = -1;
    return TEC_OK;
}

struct open {
    struct tec_pipeline *pipeline;
    struct tec_engine *engine;
    struct tec_virtual device[TEC_MAX_CHAINS];
    struct tec_frame_input input;
    struct tec_arena arena;
    struct pace pace;
    int64_t now;
    int say, tell; /* decoders: the soft text, the hard one */
    int freed[2];  /* prefixes of "context", by session */
};

static void hear(void *self, const struct tec_event *e)
{
    struct open *o = self;
    if (e->kind == TEC_EVENT_KV && !strcmp(e->what, "free") && e->kv && !strcmp(e->kv, "context"))
        o->freed[e->tick->session]++;
}

static int decoder_of(const struct open *o, const char *name)
{
    const struct tec_loop_options *l = tec_loop_settings(o->engine->loop);
    int d = 0;
    while (d < l->n_decoders && strcmp(l->decoders[d].name, name) != 0)
        d++;
    REQUIRE(d < l->n_decoders);
    return d;
}

static void open_engine_with(struct open *o, const char *path, const char *set, const char *soft,
                             const char *other)
{
    struct tec_diagnostics d;
    const struct tec_load_options load = {
        .path = path, .root = "pipelines", .set = &set, .n_set = set != NULL};
    *o = (struct open){.pipeline = NULL};
    o->device[0] = (struct tec_virtual){
        .clock_ns = &o->now, .prefill_ns = 1000, .action_ns = 100, .step_ns = 10};
    tec_arena_init(&o->arena, &heap);
    tec_diagnostics_init(&d, &heap);
    enum tec_status status = tec_pipeline_load(&o->pipeline, &load, &heap, &d, &err);
    tec_diagnostics_finish(&d);
    REQUIRE(status == TEC_OK);
    const struct tec_engine_options options = {
        .pipeline = o->pipeline,
        .root = ".",
        .random = true,
        .size = "tiny",
        .saturated = true,
        .events = {hear, o},
        .device = {.kind = "cpu", .threads = 1, .tier = tec_tier_best()}};
    REQUIRE(tec_engine_simulate(&o->engine, &options, o->device, &heap, &err) == TEC_OK);
    REQUIRE(tec_simulated_input(&o->input, o->engine, &o->arena, &err) == TEC_OK);
    o->pace = (struct pace){o->engine->loop, -1, o->engine->topology.n_nodes, 1000};
    tec_loop_set_planner(o->engine->loop, &(struct tec_planner){"pace", &o->pace, .plan = plan});
    o->say = decoder_of(o, soft);
    o->tell = decoder_of(o, other);
}

static void open_engine_of(struct open *o, const char *path, const char *soft, const char *other)
{
    open_engine_with(o, path, NULL, soft, other);
}

static void open_engine(struct open *o)
{
    open_engine_of(o, "tests/pipelines/draft_shared.lua", "say", "tell");
}

static void close_engine(struct open *o)
{
    tec_engine_close(o->engine);
    tec_pipeline_free(o->pipeline);
    tec_arena_finish(&o->arena);
    CHECK_INT(heap.live, ==, 0);
}

static const struct tec_utterance *newest_of(const struct open *o, int decoder)
{
    const struct tec_utterance *newest = NULL;
    for (int i = 0; i < tec_loop_utterances(o->engine->loop); i++) {
        const struct tec_utterance *u = tec_loop_utterance(o->engine->loop, i);
        if (u->id >= 0 && u->decoder == decoder && (!newest || u->id > newest->id))
            newest = u;
    }
    return newest;
}

/* Why the newest text of a decoder has ended; "" while it has not. */
static const char *ended(const struct open *o, int decoder)
{
    const struct tec_utterance *newest = newest_of(o, decoder);
    return newest && newest->done ? newest->reason : "";
}

static void frames(struct open *o, int n)
{
    for (int i = 0; i < n; i++)
        loop_frame(o->engine->loop, NULL, o->now, 0);
}

static unsigned both(const struct open *o)
{
    return 1U << o->say | 1U << o->tell;
}

TEST(a_hard_text_has_its_drafts_prefill_in_its_frame)
{
    struct open o;
    open_engine(&o);
    loop_frame(o.engine->loop, &o.input, o.now, both(&o));
    CHECK_STR(ended(&o, o.tell), "length");
    frames(&o, 20);
    CHECK_STR(ended(&o, o.say), "length");
    CHECK_INT(tec_loop_live(o.engine->loop), ==, 0);
    close_engine(&o);
}

/* It waits for the same prefill, whose turn no hard text brings any more. */
TEST(a_soft_text_has_its_turn_when_the_hard_one_is_gone)
{
    struct open o;
    open_engine(&o);
    o.pace.cancel = o.tell > o.say ? 1 : 0; /* requests are born in the order of the decoders */
    loop_frame(o.engine->loop, &o.input, o.now, both(&o));
    CHECK_STR(ended(&o, o.tell), "cancelled");
    frames(&o, 20);
    CHECK_STR(ended(&o, o.say), "length");
    CHECK_INT(tec_loop_live(o.engine->loop), ==, 0);
    close_engine(&o);
}

/* Turns of soft texts are those that were planned: what a hard text adds behind them is its own. */
TEST(a_turn_that_a_hard_text_adds_is_not_planned)
{
    struct open o;
    open_engine(&o);
    loop_frame(o.engine->loop, &o.input, o.now, 1U << o.tell);
    CHECK_INT(o.engine->loop->n_planned, ==, 0);
    CHECK_INT(o.engine->loop->n_turns, ==, 1);
    loop_frame(o.engine->loop, &o.input, o.now, 1U << o.say);
    CHECK_INT(o.engine->loop->n_planned, ==, 1);
    CHECK_INT(o.engine->loop->n_turns, ==, 1);
    frames(&o, 20);
    CHECK_INT(tec_loop_live(o.engine->loop), ==, 0);
    close_engine(&o);
}

/* --- held ------------------------------------------------------------------------------------ */

/* "ask" is asked for, "plan" is born with each run of the prefill. */
static void open_held(struct open *o)
{
    open_engine_of(o, "tests/pipelines/held.lua", "ask", "plan");
}

/* Regions of keys that the chain of the questions has; and its draft's. */
static int regions(const struct open *o)
{
    const struct tec_loop *l = o->engine->loop;
    return l->chains[l->o.decoders[o->say].chain].plan->prefixes.in_use;
}

static int draft_regions(const struct open *o)
{
    const struct tec_loop *l = o->engine->loop;
    return l->chains[l->o.decoders[o->say].draft - 1].plan->prefixes.in_use;
}

/* A frame with an observation; whether it launched the prefill. */
static bool thinks(struct open *o, unsigned spawn)
{
    const struct tec_frame_record *r = loop_frame(o->engine->loop, &o->input, o->now, spawn);
    bool any = false;
    for (int i = 0; i < r->n_launches; i++)
        any |= strcmp(r->launches[i].node, "think") == 0;
    return any;
}

TEST(requests_share_the_prefill_that_is_held)
{
    struct open o;
    open_held(&o);
    CHECK(thinks(&o, 0)); /* for "plan" */
    CHECK_INT(draft_regions(&o), ==, 0);
    frames(&o, 20);
    CHECK_STR(ended(&o, o.tell), "length");
    CHECK_INT(tec_loop_live(o.engine->loop), ==, 0);
    CHECK_INT(regions(&o), ==, 1);
    CHECK(!thinks(&o, 1U << o.say));
    frames(&o, 20);
    CHECK_STR(ended(&o, o.say), "length");
    CHECK_INT(regions(&o), ==, 1);
    CHECK_INT(draft_regions(&o), ==, 1);
    tec_loop_restart(o.engine->loop);
    CHECK_INT(regions(&o), ==, 0);
    CHECK_INT(draft_regions(&o), ==, 0);
    close_engine(&o);
}

/* A new goal, or a new episode; a request goes on with what it began with. */
TEST(the_next_one_takes_its_place)
{
    struct open o;
    open_held(&o);
    int chain = tec_loop_settings(o.engine->loop)->decoders[o.say].chain;
    thinks(&o, 0);
    thinks(&o, 1U << o.say);
    o.input.chains[chain].keys[0]++;
    o.input.chains[chain].keys[1]++;
    CHECK(thinks(&o, 0));
    CHECK_INT(regions(&o), ==, 2);
    frames(&o, 20);
    CHECK_STR(ended(&o, o.say), "length");
    CHECK_INT(regions(&o), ==, 1);
    int64_t before = newest_of(&o, o.tell)->id;
    o.input.episode++; /* whose goal is the same */
    CHECK(thinks(&o, 0));
    frames(&o, 20);
    CHECK_STR(ended(&o, o.tell), "length");
    CHECK_INT(newest_of(&o, o.tell)->id, >, before);
    CHECK_INT(regions(&o), ==, 1);
    tec_loop_restart(o.engine->loop);
    close_engine(&o);
}

/* What has had some slices is given back with the last request that waits; the next one has it from
 * its beginning. */
TEST(one_that_is_not_whole_is_not_held)
{
    struct open o;
    open_held(&o);
    o.pace.slices = 1;
    CHECK(thinks(&o, 0));
    CHECK_INT(regions(&o), ==, 1);
    o.pace.cancel = 0;
    CHECK(!thinks(&o, 0));
    CHECK_STR(ended(&o, o.tell), "cancelled");
    CHECK_INT(regions(&o), ==, 0);
    CHECK(thinks(&o, 1U << o.say));
    frames(&o, 20);
    CHECK_STR(ended(&o, o.say), "length");
    CHECK_INT(regions(&o), ==, 1);
    tec_loop_restart(o.engine->loop);
    close_engine(&o);
}

TEST(a_restart_is_told_of_each_session)
{
    struct open o;
    open_engine_with(&o, "tests/pipelines/held.lua", "frame.sessions=2", "ask", "plan");
    for (int s = 0; s < 2; s++) {
        struct tec_tick tick = tec_loop_tick(o.engine->loop, o.now, 0);
        tick.session = s;
        tec_loop_run(o.engine->loop, &o.input, &tick);
    }
    frames(&o, 20);
    CHECK_INT(regions(&o), ==, 2);
    tec_loop_restart(o.engine->loop);
    CHECK_INT(o.freed[0], ==, 1);
    CHECK_INT(o.freed[1], ==, 1);
    close_engine(&o);
}

/* Without a prompt there is nothing to stand on. */
TEST(a_request_before_the_first_one_is_refused)
{
    struct open o;
    open_held(&o);
    int chain = tec_loop_settings(o.engine->loop)->decoders[o.say].chain;
    int n_text = o.input.chains[chain].prefix.n_text;
    o.input.chains[chain].prefix.n_text = 0;
    const struct tec_frame_record *r = loop_frame(o.engine->loop, &o.input, o.now, 1U << o.say);
    CHECK_INT(r->refused, ==, 2);
    o.input.chains[chain].prefix.n_text = n_text;
    CHECK(thinks(&o, 1U << o.say));
    tec_loop_restart(o.engine->loop);
    close_engine(&o);
}

TAP_MAIN
