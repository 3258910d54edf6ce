/* tiny.h - a model of random weights made ready to run in milliseconds, and observations for it:
 * what tests of the frame loop share. Everything static; one translation unit a test. */
#ifndef TEC_TESTS_TINY_H
#define TEC_TESTS_TINY_H

#include "graph/run/launch/partitions.h"
#include "graph/run/loop/loop.h"
#include "tests/tap.h"

#include <string.h>

enum {
    TINY_SLOTS = 6,
    TINY_NEW = 12,
    TINY_TEXT = 9,
    TINY_STEPS = 2,
    TINY_CAMERAS = 3,
    TINY_SIDE = 56,
    TINY_HORIZON = 6
};

struct tiny {
    struct tec_device *device;
    struct tec_model *model;
    struct tec_weights *weights;
    struct tec_plan *plan;
    struct tec_partitions *partitions; /* NULL: launches run one after the other */
    struct tec_topology topology;
};

static struct tec_heap tiny_heap;
static int tiny_patience_ms; /* 0: the device's own */
static bool tiny_apart;      /* the action is a launch of its own */
static struct {
    int stages; /* 0: no ring, but actions and language */
    bool shifts, gathers, taps, interpret;
} tiny_ring;

static const char *const tiny_kv[] = {"obs", "lang"};
static const char *const tiny_partitions[] = {"rt", "bg"};

static inline struct tec_plan_spec tiny_spec(const struct tec_model *m)
{
    int prefix = m->n_slots * m->vision.tokens + TINY_TEXT;
    if (tiny_ring.stages)
        return (struct tec_plan_spec){.frame_tokens = prefix,
                                      .text_tokens = TINY_TEXT,
                                      .stages = tiny_ring.stages,
                                      .ring_tokens = prefix + tiny_ring.stages,
                                      .shifts = tiny_ring.shifts,
                                      .gathers = tiny_ring.gathers,
                                      .new_tokens = tiny_ring.stages,
                                      .max_k = 1,
                                      .taps = tiny_ring.taps,
                                      .interpret = tiny_ring.interpret,
                                      .n_batches = tiny_ring.stages > 1,
                                      .batches = {tiny_ring.stages - 1}};
    return (struct tec_plan_spec){.frame_tokens = m->n_slots * m->vision.tokens + TINY_TEXT,
                                  .text_tokens = TINY_TEXT,
                                  .n_actions = 1,
                                  .actions = {{.steps = TINY_STEPS}},
                                  .frame_action = tiny_apart ? -1 : 0,
                                  .request_slots = TINY_SLOTS,
                                  .new_tokens = TINY_NEW,
                                  .isolated = true,
                                  .n_batches = 3,
                                  .batches = {1, 3, 4},
                                  .max_k = 8};
}

static inline struct tec_topology tiny_topology(void)
{
    return (struct tec_topology){
        .n_nodes = 4,
        .nodes = {{.name = "see", .kind = "prefill", .partition = "rt"},
                  {.name = "act", .kind = "action", .partition = "rt", .hard = true},
                  {.name = "talk", .kind = "decode"},
                  {.name = "think", .kind = "decode"}},
        .n_batch = 3,
        .batch = {1, 3, 4},
        .n_k = 4,
        .k = {1, 2, 5, 8},
        .n_kv = 2,
        .kv = tiny_kv,
        .n_partitions = 2,
        .partitions = tiny_partitions,
        .slots = TINY_SLOTS,
        .horizon = 10,
        .layers = 4,
        .period_us = 50000,
        .seed = 7};
}

/* The loop of both decode tasks over that plan; the caller sets executor and planner. */
static inline struct tec_loop_options tiny_loop(struct tiny *t)
{
    return (struct tec_loop_options){
        .n_chains = 1,
        .chains = {{.in_frames = true, .plan = t->plan, .prefill_node = 0}},
        .n_actions = 1,
        .actions = {{.name = "act", .node = 1}},
        .topology = &t->topology,
        .planner = tec_default_planner,
        .n_decoders = 2,
        .decoders = {{.name = "talk", .node = 2, .max_tokens = TINY_NEW},
                     {.name = "think", .node = 3, .max_tokens = TINY_NEW - 5}}};
}

static inline void tiny_close(struct tiny *t)
{
    tec_partitions_destroy(t->partitions);
    tec_plan_destroy(t->plan);
    tec_weights_close(t->weights);
    tec_model_close(t->model);
    tec_device_close(t->device);
    *t = (struct tiny){.plan = NULL};
}

static inline struct tec_executor tiny_executor(const struct tiny *t)
{
    return t->partitions ? tec_partitions_executor(t->partitions) : tec_executor_real(t->plan);
}

/* `beside` of the threads may run requests beside the frame. */
static inline bool tiny_open_split(struct tiny *t, const char *arch, bool bf16, int threads,
                                   int beside, int spin_us, struct tec_error *err)
{
    const struct tec_device_options d = {.kind = tap.device,
                                         .threads = threads,
                                         .spin_us = spin_us,
                                         .tier = tec_tier_best(),
                                         .beside = beside,
                                         .patience_ms = tiny_patience_ms};
    json_t *given = json_pack("{s:i,s:i}", "horizon", TINY_HORIZON, "count",
                              tiny_ring.stages ? tiny_ring.stages : 7);
    const struct tec_model_choice choice = {
        .root = "pipelines/models", .arch = arch, .size = "tiny", .overrides = given};
    *t = (struct tiny){.topology = tiny_topology()};
    bool opened = tec_device_open(&t->device, &d, &tiny_heap, err) == TEC_OK &&
                  tec_model_open(&t->model, &choice, &tiny_heap, err) == TEC_OK;
    json_decref(given);
    if (!opened)
        return false;
    const struct tec_weight_source source = {.seed = 11};
    t->model->text.scale = 0.1F; /* else a random model only repeats the token it is given */
    const struct tec_weights_options w = {
        .model = t->model, .source = source, .device = t->device, .bf16 = bf16, .language = true};
    struct tec_plan_spec spec = tiny_spec(t->model);
    spec.beside = beside > 0;
    if (tec_weights_load(&t->weights, &w, &tiny_heap, err) != TEC_OK)
        return false;
    const struct tec_plan_inputs in = {.spec = &spec,
                                       .model = t->model,
                                       .weights = t->weights,
                                       .source = source,
                                       .device = t->device};
    t->topology.horizon = t->model->flow.horizon;
    t->topology.layers = t->model->text.stack.layers;
    if (tec_plan_create(&t->plan, &in, &tiny_heap, err) != TEC_OK)
        return false;
    const struct tec_executor whole = tec_executor_real(t->plan);
    return !beside ||
           tec_partitions_create(&t->partitions, t->plan, &whole, &tiny_heap, err) == TEC_OK;
}

static inline bool tiny_open(struct tiny *t, const char *arch, bool bf16, int threads, int spin_us,
                             struct tec_error *err)
{
    return tiny_open_split(t, arch, bf16, threads, 0, spin_us, err);
}

/* xorshift64*: the same observations and schedules for the same seed, everywhere. */
static inline uint32_t tiny_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)(*state * UINT64_C(2685821657736338717) >> 32);
}
static inline int tiny_below(uint64_t *state, int n)
{
    return (int)(tiny_random(state) % (uint32_t)n);
}

/* One observation: some cameras, a prompt of some length, noise, state. */
struct tiny_observation {
    uint8_t picture[TINY_CAMERAS][TINY_SIDE * TINY_SIDE * 3]; /* the model's side, at most */
    int ids[TINY_TEXT];
    float noise[TINY_HORIZON * 32], state[64];
    struct tec_frame_input input;
};

static inline void tiny_observe(struct tiny_observation *o, const struct tec_model *m,
                                uint64_t seed)
{
    uint64_t s = seed * 2654435761U + 88172645463325252U;
    struct tec_prefix_input *p = &o->input.chains[0].prefix;
    memset(&o->input, 0, sizeof o->input);
    REQUIRE(m->vision.image_size <= TINY_SIDE &&
            m->flow.horizon * m->flow.dim <= TINY_HORIZON * 32);
    REQUIRE(m->n_slots <= TINY_CAMERAS && m->flow.dim <= 64);
    size_t side = (size_t)m->vision.image_size, lead = m->text.lead;
    *p = (struct tec_prefix_input){.n_pictures = 1 + tiny_below(&s, m->n_slots),
                                   .n_text = 1 + (int)lead + tiny_below(&s, TINY_TEXT - (int)lead),
                                   .ids = o->ids};
    for (int c = 0; c < p->n_pictures; c++) {
        p->picture[c] = o->picture[c];
        for (size_t i = 0; i < side * side * 3; i++)
            o->picture[c][i] = (uint8_t)tiny_random(&s);
    }
    for (int i = 0; i < p->n_text; i++)
        o->ids[i] = 3 + tiny_below(&s, m->text.vocab - 3);
    for (int i = 0; i < m->flow.horizon * m->flow.dim; i++)
        o->noise[i] = (float)tiny_below(&s, 4001) / 1000.0F - 2.0F;
    for (int i = 0; i < m->flow.dim; i++)
        o->state[i] = (float)tiny_below(&s, 2001) / 1000.0F - 1.0F;
    o->input.chains[0].noise[0] = o->noise;
    o->input.chains[0].state = o->state;
}

#endif
