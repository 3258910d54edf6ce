/* recall.h - what tests of prompts of remembered segments share: a small random model, a prompt
 * whose segments are kept in plain memory, and what a run of it leaves. */
#ifndef TEC_TESTS_RECALL_H
#define TEC_TESTS_RECALL_H

#include "tests/recall_region.h"

#include <stdlib.h>
#include <string.h>

enum { SEGMENTS = 9, BEGINNING = 4, QUERY = 5, MOST = 96, LAYERS = 16 };
enum {
    LONG = 62250
}; /* a seed whose prompt fills most of the room: 83 tokens with the C library's */

static int ids[MOST], query;
static struct tec_segment_range segments[SEGMENTS];
static unsigned char *kept_k[LAYERS], *kept_v[LAYERS];
static bool branching; /* plans branch, on a CPU too */

static inline void open_model(bool bf16, int threads)
{
    const struct tec_device_options d = {
        .kind = tap.device, .threads = threads, .tier = tec_tier_best(), .branches = branching};
    const struct tec_model_choice choice = {
        .root = "pipelines/models", .arch = "qwen2", .size = "tiny"};
    const struct tec_weight_source source = {.seed = 5};
    REQUIRE(tec_device_open(&device, &d, &heap, &err) == TEC_OK);
    REQUIRE(tec_model_open(&model, &choice, &heap, &err) == TEC_OK);
    model->text.scale = 0.1F;
    const struct tec_weights_options w = {
        .model = model, .source = source, .device = device, .bf16 = bf16, .language = true};
    REQUIRE(tec_weights_load(&weights, &w, &heap, &err) == TEC_OK);
    const struct tec_plan_spec spec = {.frame_tokens = MOST,
                                       .text_tokens = MOST,
                                       .request_slots = 2,
                                       .new_tokens = 8,
                                       .n_batches = 1,
                                       .batches = {1},
                                       .max_k = 8,
                                       .segments = SEGMENTS + 1,
                                       .branches = branching,
                                       .segment_tokens = MOST};
    const struct tec_plan_inputs in = {
        .spec = &spec, .model = model, .weights = weights, .source = source, .device = device};
    REQUIRE(tec_plan_create(&plan, &in, &heap, &err) == TEC_OK);
    tec_arena_init(&arena, &heap);
    REQUIRE(tec_recall_create(&recall, plan, &arena, &err) == TEC_OK);
    REQUIRE(model->text.stack.layers <= LAYERS);
    row = (size_t)model->text.stack.kv_heads * (size_t)model->text.stack.head_dim * (bf16 ? 2 : 4);
}

/* Memory that the device copies from, until the model is closed. */
static unsigned char *pinned[4 * LAYERS];
static int n_pinned;

static inline unsigned char *pin(size_t size)
{
    REQUIRE(n_pinned < (int)(sizeof pinned / sizeof *pinned));
    return pinned[n_pinned++] = tec_device_pin(device, size);
}

static inline void unpin(void)
{
    while (n_pinned)
        tec_device_unpin(device, pinned[--n_pinned]);
}

static inline void close_recall(void)
{
    unpin();
    close_model();
}

/* A prompt of segments of 1 to 9 tokens, and each of them kept. */
static inline void make_prompt(unsigned seed)
{
    int at = BEGINNING;
    unpin();
    srand(seed);
    for (int u = 0; u < SEGMENTS; u++) {
        segments[u].begin = at;
        at = segments[u].end = at + 1 + rand() % 9;
    }
    query = at;
    n_tokens = query + QUERY;
    for (int t = 0; t < n_tokens; t++)
        ids[t] = rand() % model->text.vocab;
    struct tec_remember_text texts[SEGMENTS + 1] = {{ids, BEGINNING}};
    for (int u = 0; u < SEGMENTS; u++)
        texts[u + 1] = (struct tec_remember_text){ids + segments[u].begin,
                                                  segments[u].end - segments[u].begin};
    REQUIRE(tec_remember_run(plan, texts, SEGMENTS + 1, &err) == TEC_OK);
    for (int l = 0; l < model->text.stack.layers; l++) {
        kept_k[l] = pin((size_t)query * row);
        kept_v[l] = pin((size_t)query * row);
        REQUIRE(kept_k[l] && kept_v[l]);
        tec_remember_read(plan, 0, query, l, kept_k[l], kept_v[l]);
    }
}

static int lost = -1; /* a segment whose pieces are gone */

static inline bool find(void *self, int layer, int segment, const void **k, const void **v)
{
    size_t at = segment < SEGMENTS ? (size_t)segments[segment].begin * row : 0;
    (void)self;
    *k = kept_k[layer] + at;
    *v = kept_v[layer] + at;
    return segment != lost;
}

static inline struct tec_recall_input prompt_in(int region)
{
    return (struct tec_recall_input){.ids = ids,
                                     .n = n_tokens,
                                     .segments = segments,
                                     .n_segments = SEGMENTS,
                                     .query = query,
                                     .region = region};
}

static inline bool run(const struct tec_recall_rule *rule, int region)
{
    const struct tec_recall_source source = {.find = find};
    const struct tec_recall_input in = prompt_in(region);
    return tec_recall_run(&recall, &in, rule, &source, &err) == TEC_OK;
}

static const double some[LAYERS] = {1, 0.7, 0.5, 0.3, 0.3, 0.2, 0.2, 0.2};

/* The sets of a rule in every layer, and keys and values; by a plan that branches or does not. */
static inline unsigned char *run_as(const struct tec_recall_rule *rule, bool bf16, bool branches,
                                    unsigned char *sets, size_t *size)
{
    branching = branches;
    open_model(bf16, 2);
    branching = false;
    make_prompt(LONG);
    int region = tec_kv_pool_take(&plan->prefixes);
    CHECK((recall.branch != NULL) == branches);
    REQUIRE(run(rule, region));
    CHECK(recall.branches == (branches && rule->selection != TEC_SELECTION_cacheblend));
    for (int l = 0; l < recall.layers; l++)
        memcpy(sets + l * SEGMENTS, recall.sets + l * (recall.max_segments + 1), SEGMENTS);
    *size = region_bytes();
    unsigned char *copy = malloc(*size);
    REQUIRE(copy != NULL);
    memcpy(copy, read_region(region), *size);
    close_recall();
    return copy;
}

#endif
