/* partitions.c - tests of partitions: lanes by shares, requests beside the frame with the bytes of
 * a run on one lane, and the memory of the second set.
 *
 * They also check that nothing keeps jobs waiting for ever. */
#include "graph/run/engine/engine.h"
#include "policies/host/policy.h"
#include "tests/loop_frame.h"
#include "tests/tiny.h"
#include "tests/told.h"

#include <sched.h>

enum { FRAMES = 12, TEXTS = 64, CHUNK = 64 * 32 };

static struct tec_error err;

/* Whether the device's lanes are no threads. */
static bool on_gpu(void)
{
    return strcmp(tap.device, "cpu") != 0;
}

/* Emulated kernels are slow, and so is a processor whose threads are watched. */
static int frames(void)
{
#ifdef TECTUM_CUDA_EMULATED
    return on_gpu() ? 2 * FRAMES / 3 : FRAMES;
#else
    return THREADS_WATCHED ? FRAMES / 2 : FRAMES;
#endif
}

/* --- shares ---------------------------------------------------------------------------------- */

struct declared {
    struct tec_decl_node nodes[3];
    struct tec_decl_partition partitions[3];
    struct tec_pipeline p;
};

static const struct tec_pipeline *declare(struct declared *d, int hard, int n, const double *share)
{
    *d = (struct declared){
        .nodes = {{.kind = TEC_DECL_PREFILL, .partition = {.index = -1}},
                  {.kind = TEC_DECL_ACTION, .partition = {.index = hard}},
                  {.kind = TEC_DECL_DECODE, .kv = {.index = -1}, .partition = {.index = -1}}}};
    for (int i = 0; i < n; i++)
        d->partitions[i].share = share[i];
    d->p.nodes = d->nodes;
    d->p.n_nodes = 3;
    d->p.partitions = d->partitions;
    d->p.n_partitions = n;
    return &d->p;
}

TEST(lanes_follow_the_shares)
{
    static const double quarter[] = {0.75, 0.25}, half[] = {0.5, 0.5}, three[] = {0.5, 0.25, 0.25};
    struct declared d;
    const struct tec_pipeline *p = declare(&d, 0, 2, quarter);
    CHECK_INT(tec_partition_lanes(p, 1), ==, 0);
    CHECK_INT(tec_partition_lanes(p, 2), ==, 0);
    CHECK_INT(tec_partition_lanes(p, 4), ==, 1);
    CHECK_INT(tec_partition_lanes(p, 8), ==, 2);
    CHECK_INT(tec_partition_lanes(declare(&d, 1, 2, quarter), 8), ==, 6);
    CHECK_INT(tec_partition_lanes(declare(&d, 0, 2, half), 16), ==, 8);
    CHECK_INT(tec_partition_lanes(declare(&d, 0, 3, three), 8), ==, 4);
    CHECK_INT(tec_partition_lanes(declare(&d, 0, 1, half), 8), ==, 0);
    /* the hard nodes have what no partition takes */
    CHECK_INT(tec_partition_lanes(declare(&d, -1, 1, quarter), 8), ==, 6);
    CHECK_INT(tec_partition_lanes(declare(&d, -1, 3, three), 8), ==, 7);
    CHECK_INT(tec_partition_lanes(declare(&d, -1, 0, NULL), 8), ==, 0);
    p = declare(&d, 0, 2, half);
    d.nodes[2].culled = true;
    CHECK_INT(tec_partition_lanes(p, 8), ==, 0);
}

/* --- bytes ----------------------------------------------------------------------------------- */

/* The result of a run: a chunk for each frame, and the tokens of each request. */
struct outcome {
    float chunks[FRAMES][CHUNK];
    size_t chunk;
    int frame, released;
    int tokens[TEXTS][64], count[TEXTS], done[TEXTS];
    int beside, finished;
};

static struct outcome alone, now;

static struct tec_pipeline *load(const char *path, struct tec_heap *heap)
{
    struct tec_diagnostics d;
    struct tec_pipeline *p = NULL;
    tec_diagnostics_init(&d, heap);
    /* no request is given up because the machine is slow */
    static const char *const set[] = {"nodes.talk.deadline.on_miss=continue"};
    const struct tec_load_options o = {
        .path = path, .root = TECTUM_SOURCE "/pipelines", .set = set, .n_set = 1};
    if (tec_pipeline_load(&p, &o, heap, &d, &err) != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    tec_diagnostics_finish(&d);
    return p;
}

static void released(void *user, int action, const float *chunk,
                     const struct tec_frame_record *record)
{
    (void)action;
    struct outcome *o = user;
    (void)record;
    if (o->chunk) { /* else the warm-up */
        memcpy(o->chunks[o->frame], chunk, o->chunk * sizeof(float));
        o->released++;
    }
}

static void count_concurrent(void *self, const struct tec_event *event)
{
    struct outcome *o = self;
    o->beside += event->kind == TEC_EVENT_START && event->lane == 1;
}

static struct tec_engine_options options_for(const struct tec_pipeline *p, int threads)
{
    return (struct tec_engine_options){
        .pipeline = p,
        .root = TECTUM_SOURCE,
        .random = true,
        .seed = 1,
        .size = "tiny",
        .dtype = "f32",
        .device = {.kind = tap.device, .threads = threads, .spin_us = 100, .tier = tec_tier_best()},
        .saturated = true,
        .released = released,
        .user = &now,
        .events = {.self = &now, .emit = count_concurrent}};
}

static void collect(struct outcome *o, const struct tec_loop *loop,
                    const struct tec_frame_record *record)
{
    for (int i = 0; i < tec_loop_utterances(loop); i++) {
        const struct tec_utterance *u = tec_loop_utterance(loop, i);
        if (u->id < 0)
            continue;
        REQUIRE(u->id < TEXTS && u->count <= 64);
        memcpy(o->tokens[u->id], u->tokens, (size_t)u->count * sizeof(int));
        o->count[u->id] = u->count;
        o->finished += u->done == 1 && !o->done[u->id];
        o->done[u->id] = u->done;
    }
    CHECK_INT(record->host_ns, >=, 0);
}

/* Noise, a prompt and pictures of a frame. */
struct seen {
    uint8_t *pictures;
    int ids[8];
    float noise[CHUNK], state[64];
    struct tec_frame_input input;
};

static void look(struct seen *s, const struct tec_engine *e, int frame)
{
    const struct tec_model *m = e->model;
    uint64_t dice = (uint64_t)frame * 7919 + 5;
    size_t size = (size_t)m->vision.image_size * (size_t)m->vision.image_size * 3;
    REQUIRE(m->flow.horizon * m->flow.dim <= CHUNK && m->flow.dim <= 64);
    s->input =
        (struct tec_frame_input){.chains[0].noise[0] = s->noise, .chains[0].state = s->state};
    s->input.chains[0].prefix = (struct tec_prefix_input){.n_pictures = 1 + frame % 2, .n_text = 8};
    s->input.chains[0].prefix.ids = s->ids;
    for (int c = 0; c < s->input.chains[0].prefix.n_pictures; c++)
        s->input.chains[0].prefix.picture[c] = s->pictures;
    for (size_t i = 0; i < size; i++)
        s->pictures[i] = (uint8_t)tiny_random(&dice);
    for (int i = 0; i < 8; i++)
        s->ids[i] = 3 + tiny_below(&dice, m->text.vocab - 3);
    for (int i = 0; i < CHUNK; i++)
        s->noise[i] = (float)tiny_below(&dice, 4001) / 1000.0F - 2.0F;
    for (int i = 0; i < 64; i++)
        s->state[i] = 0.25F;
}

static void run_policy(struct outcome *o, struct tec_engine *e, const char *name,
                       struct tec_heap *heap)
{
    static const struct tec_policy_limits patient = {.soft_us = 100000, .hard_us = 200000};
    static struct seen seen;
    struct tec_policy *policy;
    size_t side = (size_t)e->model->vision.image_size;
    REQUIRE(tec_policy_open(&policy, name, TECTUM_SOURCE, &e->topology, &patient, NULL, 0, heap,
                            &err) == TEC_OK);
    const struct tec_planner planner = tec_policy_planner(policy);
    tec_loop_set_planner(e->loop, &planner);
    seen.pictures = tec_heap_get(heap, side * side * 3);
    REQUIRE(seen.pictures);
    memset(o, 0, sizeof *o);
    o->chunk = (size_t)e->model->flow.horizon * (size_t)e->model->flow.dim;
    for (o->frame = 0; o->frame < frames(); o->frame++) {
        look(&seen, e, o->frame);
        collect(o, e->loop, loop_frame(e->loop, &seen.input, o->frame * 1000, 0));
    }
    o->chunk = 0;
    tec_loop_restart(e->loop);
    tec_loop_set_planner(e->loop, &tec_default_planner);
    CHECK_INT(tec_policy_report(policy)->failures, ==, 0);
    CHECK_INT(e->plan->prefixes.in_use, ==, 0);
    tec_policy_close(policy);
    tec_heap_put(heap, seen.pictures);
}

/* Against the run alone: whatever was made is the same. */
static void compare(const char *policy, int threads)
{
    int same = 0;
    CHECK_INT(now.released, ==, frames());
    for (int f = 0; f < frames(); f++)
        same += memcmp(now.chunks[f], alone.chunks[f], sizeof now.chunks[f]) == 0;
    CHECK_INT(same, ==, frames());
    for (int id = 0; id < frames(); id++) {
        int n = now.count[id] < alone.count[id] ? now.count[id] : alone.count[id];
        CHECK(memcmp(now.tokens[id], alone.tokens[id], (size_t)n * sizeof(int)) == 0);
        CHECK(now.done[id] != 1 || now.count[id] == alone.count[id]);
    }
    if (strcmp(policy, "parallel") == 0)
        CHECK_INT(now.beside, ==, threads > 1 ? 2 * frames() : 0);
    if (strcmp(policy, "parallel") != 0 || threads == 1)
        CHECK_INT(now.beside, ==, 0);
}

TEST(partitions_do_not_change_a_byte)
{
    static const char *const policies[] = {"parallel", "chaos", "isolated", "oxygen", "parallel"};
    enum { ALL = sizeof policies / sizeof policies[0] };
    struct tec_heap heap = {0};
    struct tec_pipeline *p = load(TECTUM_SOURCE "/pipelines/pi05_libero_parallel.lua", &heap);
    REQUIRE(p);
    int least = on_gpu() ? 2 : 1;
    for (int threads = least; threads <= (on_gpu() ? 2 : 3); threads++) {
        struct tec_engine *e = NULL;
        struct tec_engine_options o = options_for(p, threads);
        if (tec_engine_open(&e, &o, &heap, &err) != TEC_OK)
            fprintf(stderr, "# %s\n", err.message);
        REQUIRE(e);
        CHECK((e->partitions != NULL) == (threads > 1));
        CHECK_INT(tec_device_peak(e->device), ==, e->plan->bytes.total);
        if (threads == least) {
            run_policy(&now, e, "isolated", &heap);
            alone = now;
            CHECK_INT(alone.finished, ==, frames());
        }
        for (int i = 0; i < (threads < 3 && !on_gpu() ? ALL : 2); i++) {
            run_policy(&now, e, policies[i], &heap);
            compare(policies[i], threads);
        }
        tec_engine_close(e);
    }
    tec_pipeline_free(p);
    CHECK_INT(heap.live, ==, 0);
}

/* Language that is declared to stand in another partition shares the frame's prefix there. */
TEST(a_request_beside_shares_the_running_frames_prefix)
{
    struct tec_heap heap = {0};
    struct tec_pipeline *p = load(TECTUM_SOURCE "/pipelines/pi05_aloha.lua", &heap);
    REQUIRE(p);
    for (int threads = on_gpu() ? 4 : 1; threads <= 4; threads += 3) { /* a quarter of 4: 1 */
        struct tec_engine *e = NULL;
        struct tec_engine_options o = options_for(p, threads);
        REQUIRE(went_well(tec_engine_open(&e, &o, &heap, &err), &err));
        run_policy(&now, e, "oxygen", &heap);
        if (threads == 1)
            alone = now;
        else
            CHECK_INT(now.beside, >=, frames());
        if (on_gpu())
            alone = now; /* no such device has one lane */
        CHECK_INT(now.finished, >, on_gpu() || THREADS_WATCHED ? 0 : 3);
        CHECK(memcmp(now.chunks, alone.chunks, sizeof now.chunks) == 0);
        CHECK(memcmp(now.tokens, alone.tokens, sizeof now.tokens) == 0);
        tec_engine_close(e);
    }
    tec_pipeline_free(p);
    CHECK_INT(heap.live, ==, 0);
}

/* --- memory, and an end ---------------------------------------------------------------------- */

TEST(the_second_set_is_in_the_byte_plan)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_measured one, two;
    if (on_gpu())
        SKIP("its lanes are always enough for a second set");
    struct tec_engine *e = NULL;
    struct tec_pipeline *p = load(TECTUM_SOURCE "/pipelines/pi05_libero_parallel.lua", &heap);
    REQUIRE(p);
    tec_arena_init(&arena, &heap);
    struct tec_engine_options o = options_for(p, 1);
    REQUIRE(went_well(tec_engine_measure(&one, &o, &heap, &arena, &err), &err));
    o.device.threads = 2;
    REQUIRE(went_well(tec_engine_measure(&two, &o, &heap, &arena, &err), &err));
    CHECK_INT(two.captures, ==, 2 * one.captures - 1);
    CHECK_INT(two.bytes.weights, ==, one.bytes.weights);
    CHECK_INT(two.bytes.activations, >, one.bytes.activations);
    CHECK_INT(two.bytes.captures, >, one.bytes.captures);
    REQUIRE(went_well(tec_engine_open(&e, &o, &heap, &err), &err));
    CHECK_INT(two.bytes.total, ==, e->plan->bytes.total);
    CHECK_INT(two.captures, ==, e->plan->n_parts);
    tec_engine_close(e);
    tec_pipeline_free(p);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

/* Jobs that wait for a prefill which nobody launches: they are let go, not waited for for ever. */
TEST(jobs_that_were_started_always_end)
{
    static struct tiny t;
    static struct tiny_observation seen;
    struct tec_row_state row, *list[1] = {&row};
    int tokens[8], made = 0;
    for (int joined = 0; joined < 2; joined++) {
        REQUIRE(tiny_open_split(&t, "pi05", false, 2, 1, 0, &err));
        tiny_observe(&seen, t.model, 3);
        struct tec_executor e = tiny_executor(&t);
        tec_row_start(&row, t.plan, 0, 4, 5, 0, TINY_NEW, -1);
        struct tec_launch job = {
            .kind = TEC_LAUNCH_decode,
            .after_prefill = true,
            .decode = {.rows = list, .n = 1, .k = 2, .tokens = tokens, .made = &made}};
        made = 0;
        e.start(e.self, &job, 1);
        if (joined) {
            e.wait(e.self);
            CHECK_INT(made, ==, 2);
            CHECK_INT(job.replay.end_ns, >=, job.replay.start_ns);
        }
        tiny_close(&t);
        CHECK_INT(made, ==, 2);
    }
    CHECK_INT(tiny_heap.live, ==, 0);
}

/* The frame thread waits for the job's end before it launches the frame: only another thread can
 * have run it. A job that reads the frame's prefix begins when that is there. */
static void ended(void *user, int mark, int64_t now_ns)
{
    (void)mark, (void)now_ns;
    atomic_store((_Atomic bool *)user, true);
}

TEST(jobs_run_while_the_frame_thread_does_not)
{
    static struct tiny t;
    static struct tiny_observation seen;
    static _Atomic bool over;
    struct tec_row_state row, *list[1] = {&row};
    int tokens[8], made = 0;
    const struct tec_clock clock = {NULL};
    REQUIRE(tiny_open_split(&t, "pi05", false, 2, 1, 0, &err));
    tiny_observe(&seen, t.model, 3);
    struct tec_executor e = tiny_executor(&t);
    for (int after = 0; after < 2; after++) {
        const struct tec_observed of = {.region = 1, .input = &seen.input.chains[0]};
        struct tec_launch frame = {.kind = TEC_LAUNCH_prefix,
                                   .prefix = {.each = &of, .n = 1, .acts = true}};
        int64_t until = tec_clock_now(&clock) + (int64_t)(after ? 20 : 10000) * 1000000;
        struct tec_launch job = {
            .kind = TEC_LAUNCH_decode,
            .after_prefill = after,
            .replay = {.marked = ended, .user = &over},
            .decode = {.rows = list, .n = 1, .k = 2, .tokens = tokens, .made = &made}};
        tec_row_start(&row, t.plan, 0, 4, 5, 0, TINY_NEW, -1);
        atomic_store(&over, false);
        e.start(e.self, &job, 1);
        while (!atomic_load(&over) && tec_clock_now(&clock) < until)
            sched_yield();
        CHECK_INT(atomic_load(&over), ==, !after);
        e.launch(e.self, &frame);
        e.wait(e.self);
        CHECK(atomic_load(&over));
        CHECK_INT(made, ==, 2);
        if (after)
            CHECK_INT(job.replay.start_ns, >=, frame.replay.mark_ns[TEC_MARK_PREFILL]);
        else
            CHECK_INT(job.replay.end_ns, <=, frame.replay.start_ns);
    }
    tiny_close(&t);
    CHECK_INT(tiny_heap.live, ==, 0);
}

TEST(a_second_set_needs_lanes)
{
    static struct tiny t;
    REQUIRE(tiny_open(&t, "pi05", false, 2, 0, &err));
    struct tec_plan_spec spec = tiny_spec(t.model);
    struct tec_plan *plan = NULL;
    spec.beside = true;
    const struct tec_plan_inputs in = {.spec = &spec,
                                       .model = t.model,
                                       .weights = t.weights,
                                       .source = {.seed = 11},
                                       .device = t.device};
    CHECK_INT(tec_plan_create(&plan, &in, &tiny_heap, &err), ==, TEC_INVALID);
    CHECK(plan == NULL);
    tiny_close(&t);
    CHECK_INT(tiny_heap.live, ==, 0);
}

TAP_MAIN
