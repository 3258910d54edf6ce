/* actionflow.c - tests of a ring of sequences in flight: the tokens and logits of each do not
 * depend on what it shares a forward with. */
#include "tests/loop_frame.h"
#include "tests/tiny.h"

#include <string.h>

enum { MOST = 70, STAGES = TEC_MAX_STAGES };

static struct tec_error err;
static struct tiny tiny;
static int n_frames;
static struct tiny_observation seen[MOST];
static const char *const ring_kv[] = {"ring"};

/* The result of each observation: its tokens, and a hash of the logits of each. */
struct said {
    bool whole;
    int n, released_in, tokens[STAGES];
    uint64_t logits[STAGES];
};

struct run {
    int depth_of[MOST]; /* 0: as deep as possible */
    bool missing[MOST], flushes;
    int change; /* frame of another instruction; 0: none */
    struct tec_loop *loop;
    const char *launch;
    int n_segments;
    struct tec_ring_segment segments[STAGES];
    struct said said[MOST];
    int frame, flushed, evicted, copies, missed[MOST], cause[MOST];
    struct tec_executor real; /* behind one that counts launches, forwards among them, and moves */
    int launches, forwards, moves;
    int64_t in_flight[MOST];
    bool bad_slot;
};

static uint64_t hash_row(const struct tec_plan_part *part, int row)
{
    static float values[4096];
    for (int i = 0; i < part->taps.n; i++) {
        const struct tec_tap *t = &part->taps.items[i];
        if (strcmp(t->name, "logits") != 0)
            continue;
        REQUIRE(t->cols <= 4096);
        tec_device_download(tiny.device, TEC_STREAM_MAIN, values, t->data + (ptrdiff_t)row * t->ld,
                            (size_t)t->cols * 4);
        uint64_t h = 14695981039346656037U;
        for (size_t b = 0; b < (size_t)t->cols * 4; b++)
            h = (h ^ ((const unsigned char *)values)[b]) * 1099511628211U;
        return h;
    }
    return 0;
}

static void note_tokens(struct run *r)
{
    bool packed = strcmp(r->launch, "packed") == 0;
    const struct tec_plan_part *part =
        tec_plan_part(tiny.plan, packed ? TEC_PART_PACKED : TEC_PART_DECODE, r->n_segments);
    for (int i = 0; i < r->n_segments; i++) {
        struct said *s = &r->said[r->segments[i].request];
        if (tiny_ring.taps)
            s->logits[r->segments[i].stage] = hash_row(part, i);
        s->n++;
    }
}

static void listen(void *self, const struct tec_event *e)
{
    struct run *r = self;
    bool forward = e->kind == TEC_EVENT_START && e->ring && e->ring->segments;
    if (forward) {
        r->forwards++;
        r->launch = e->what;
        r->n_segments = e->n;
        memcpy(r->segments, e->ring->segments, (size_t)e->n * sizeof r->segments[0]);
        for (int i = 0; i < e->n; i++)
            for (int j = 0; j < i; j++)
                r->bad_slot |= e->ring->segments[i].slot == e->ring->segments[j].slot;
    }
    if (e->kind == TEC_EVENT_TOKENS)
        note_tokens(r);
    if (e->kind == TEC_EVENT_KV && strcmp(e->what, "flush") == 0)
        r->flushed += e->n;
    if (e->kind == TEC_EVENT_KV && strcmp(e->what, "copy") == 0)
        r->copies += e->n;
    if (e->kind == TEC_EVENT_RELEASE) {
        struct said *s = &r->said[e->request];
        s->whole = true;
        s->released_in = r->frame;
        for (int i = 0; i < tiny_ring.stages; i++)
            s->tokens[i] = (int)e->chunk[i];
    }
}

static enum tec_status choose_depth(void *self, const struct tec_frame_view *view,
                                    struct tec_decision *decision, struct tec_error *error)
{
    const struct run *r = self;
    (void)view, (void)error;
    if (r->depth_of[r->frame])
        decision->depth[0] = r->depth_of[r->frame];
    return TEC_OK;
}

static void count_launch(void *self, struct tec_launch *launch)
{
    struct run *r = self;
    r->launches++;
    if (launch->kind == TEC_LAUNCH_packed)
        r->moves += launch->packed.in.n_moves;
    tec_executor_launch(&r->real, launch);
}

static struct tec_executor counting(struct run *r)
{
    struct tec_executor e = r->real = tec_executor_real(tiny.plan);
    e.self = r;
    e.launch = count_launch;
    return e;
}

static void open_ring(const char *arch, bool bf16, int threads)
{
    n_frames = strcmp(tap.device, "cpu") != 0 ? 16 : tiny_ring.stages > 8 ? MOST : 26;
    if (!tiny_open(&tiny, arch, bf16, threads, 0, &err))
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(tiny.plan);
    tiny.model->text.eos = -1;
    tiny.topology = (struct tec_topology){
        .n_nodes = 2,
        .nodes = {{.name = "enter", .kind = "prefill", .ring = 1},
                  {.name = "advance", .kind = "decode", .hard = true, .ring = 1}},
        .n_kv = 1,
        .kv = ring_kv,
        .n_rings = 1,
        .rings = {{"ring", tiny_ring.stages}},
        .layers = tiny.model->text.stack.layers};
    for (int i = 1; i < tiny_ring.stages && i < TEC_MAX_AXIS; i++)
        tiny.topology.depth[tiny.topology.n_depth++] = i;
    tiny.topology.depth[tiny.topology.n_depth++] = tiny_ring.stages;
}

static void play(struct run *r, int frames)
{
    REQUIRE(frames <= n_frames);
    struct tec_loop_options o = {.n_chains = 1,
                                 .chains = {{.in_frames = true,
                                             .plan = tiny.plan,
                                             .executor = counting(r),
                                             .prefill_node = 0,
                                             .ring = "ring",
                                             .flushes = r->flushes}},
                                 .n_actions = 1,
                                 .actions = {{.name = "act", .node = 1}},
                                 .topology = &tiny.topology,
                                 .planner = {.name = "depths", .self = r, .plan = choose_depth},
                                 .events = {listen, r}};
    memset(r->said, 0, sizeof r->said);
    REQUIRE(tec_loop_create(&r->loop, &o, &tiny_heap, &err) == TEC_OK);
    for (r->frame = 0; r->frame < frames; r->frame++) {
        struct tec_frame_input input = seen[r->frame].input;
        input.chains[0].keys[0] = r->change && r->frame >= r->change;
        const struct tec_frame_record *record =
            loop_frame(r->loop, r->missing[r->frame] ? NULL : &input, 0, 0);
        r->missed[r->frame] = record->missed;
        r->cause[r->frame] = (int)record->cause;
        r->in_flight[r->frame] = record->in_flight;
    }
    tec_loop_destroy(r->loop);
}

static struct run alone;

/* Run one observation after the other, each with all its forwards. */
static void play_alone(void)
{
    alone = (struct run){.flushes = true};
    for (int f = 0; f < n_frames; f++)
        alone.depth_of[f] = 1;
    play(&alone, n_frames);
    for (int f = 0; f < n_frames; f++)
        CHECK(alone.said[f].whole && alone.said[f].released_in == f);
}

static void check_same(const struct run *r)
{
    int same = 0, compared = 0;
    for (int f = 0; f < n_frames; f++) {
        for (int i = 0; i < r->said[f].n; i++) {
            compared++;
            same += r->said[f].logits[i] == alone.said[f].logits[i];
        }
        if (r->said[f].whole)
            CHECK(memcmp(r->said[f].tokens, alone.said[f].tokens, sizeof alone.said[f].tokens) ==
                  0);
    }
    CHECK(compared > 0);
    CHECK_INT(same, ==, compared);
    CHECK(!r->bad_slot);
    CHECK_INT(r->launches, ==, r->forwards); /* keys move inside */
    CHECK_INT(r->moves, ==, r->copies);
}

static int released(const struct run *r)
{
    int n = 0;
    for (int f = 0; f < n_frames; f++)
        n += r->said[f].whole;
    return n;
}

static void observe_all(void)
{
    for (int f = 0; f < n_frames; f++)
        tiny_observe(&seen[f], tiny.model, 40U + (uint64_t)f);
}

static void every_way(const char *arch, bool bf16, int stages)
{
    static struct run run;
    for (int variant = 0; variant < 4; variant++) {
        tiny_ring.stages = stages;
        tiny_ring.taps = true;
        tiny_ring.shifts = variant & 1;
        tiny_ring.gathers = variant >> 1;
        open_ring(arch, bf16, 2);
        if (strcmp(tap.device, "cpu") != 0)
            n_frames = 12;
        observe_all();
        if (variant == 0)
            play_alone();
        run = (struct run){.flushes = true}; /* the paper's ring */
        play(&run, n_frames);
        check_same(&run);
        CHECK_INT(released(&run), ==, n_frames - stages + 1);
        CHECK_INT(run.copies > 0, ==, tiny_ring.shifts && stages > 1);
        uint64_t s = 99U + (uint64_t)stages; /* any depths, bubbles, a new instruction */
        run = (struct run){.flushes = variant % 2 == 0, .change = n_frames / 2};
        for (int f = 0; f < n_frames; f++) {
            run.depth_of[f] = 1 + tiny_below(&s, stages);
            run.missing[f] = tiny_below(&s, 5) == 0;
        }
        play(&run, n_frames);
        check_same(&run);
        CHECK(released(&run) > (stages > 8 ? 0 : n_frames / 3));
        tiny_close(&tiny);
    }
    memset(&tiny_ring, 0, sizeof tiny_ring);
    CHECK_INT(tiny_heap.live, ==, 0);
}

/* Seven stages; three on an emulated device, where each costs seconds. */
TEST(a_ring_says_what_each_says_alone)
{
    every_way("pi05_causal", true, strcmp(tap.device, "cpu") == 0 ? 7 : 3);
}

TEST(so_does_one_whose_text_sees_all_of_its_prompt)
{
    every_way("pi05", false, 4);
}

/* A model with two towers, rows before the pictures and a causal prefix, in a ring with as many
 * stages as there may be. */
TEST(so_do_long_rings_of_a_model_that_speaks_its_actions)
{
    if (strcmp(tap.device, "cpu") != 0)
        SKIP("a long ring takes minutes there");
    every_way("openvla", true, 16);
    every_way("openvla", false, TEC_MAX_STAGES);
}

TEST(so_do_rings_of_one_and_two_stages)
{
    every_way("pi05_causal", true, 1);
    every_way("pi05_causal", false, 2);
}

/* Fill the ring, let a bubble pass through it, and drain it. */
TEST(a_bubble_is_a_miss_when_its_action_would_have_come)
{
    static struct run run;
    tiny_ring.stages = 3;
    open_ring("pi05_causal", true, 1);
    observe_all();
    run = (struct run){.missing = {[4] = true}};
    play(&run, 10);
    for (int f = 0; f < 10; f++) {
        CHECK_INT(run.missed[f], ==, f == 6);
        CHECK_INT(run.cause[f], ==, f == 6 ? TEC_CAUSE_INPUT : TEC_CAUSE_NONE);
    }
    CHECK(!run.said[4].whole && run.said[5].whole && run.said[7].whole && !run.said[8].whole);
    tiny_close(&tiny);
    memset(&tiny_ring, 0, sizeof tiny_ring);
}

TEST(a_new_instruction_drops_or_keeps_what_is_in_flight)
{
    static struct run run;
    tiny_ring.stages = 5;
    open_ring("pi05_causal", true, 1);
    observe_all();
    run = (struct run){.flushes = true, .change = 8};
    play(&run, 16);
    CHECK_INT(run.flushed, ==, 4);
    CHECK(run.said[3].whole && !run.said[4].whole && !run.said[7].whole && run.said[8].whole);
    CHECK_INT(run.said[8].released_in, ==, 12);
    for (int f = 0; f < 16; f++)
        CHECK(!run.missed[f]);
    run = (struct run){.change = 8};
    play(&run, 16);
    CHECK_INT(run.flushed, ==, 0);
    for (int f = 0; f < 12; f++)
        CHECK(run.said[f].whole && run.said[f].released_in == f + 4);
    tiny_close(&tiny);
    memset(&tiny_ring, 0, sizeof tiny_ring);
}

/* The token in the middle of one action becomes the end token, so that this action is broken
 * off. */
static void end_early(bool moves)
{
    static struct run run;
    int broken = 0;
    tiny_ring.stages = 4;
    tiny_ring.shifts = moves;
    open_ring("pi05_causal", true, 1);
    observe_all();
    play_alone();
    tiny.model->text.eos = alone.said[6].tokens[1];
    run = (struct run){.flushes = true};
    play(&run, n_frames);
    CHECK_INT(run.moves, ==, run.copies);
    for (int f = 0; f < n_frames - 3; f++) {
        bool ends = false;
        for (int i = 0; i < 3; i++)
            ends |= alone.said[f].tokens[i] == tiny.model->text.eos;
        broken += ends;
        CHECK_INT(run.said[f].whole, ==, !ends);
        if (!ends)
            CHECK(memcmp(run.said[f].tokens, alone.said[f].tokens, sizeof run.said[f].tokens) == 0);
        if (ends)
            CHECK_INT(run.cause[f + 3], ==, TEC_CAUSE_MODEL);
    }
    CHECK(broken > 0);
    tiny_close(&tiny);
    memset(&tiny_ring, 0, sizeof tiny_ring);
}

TEST(an_early_end_token_breaks_an_action_off)
{
    end_early(false);
    end_early(true);
}

TAP_MAIN
