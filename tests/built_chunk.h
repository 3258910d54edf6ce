/* built_chunk.h - the chunk that a model of random weights makes of one observation, from its
 * description to a plan that ran once. */
#ifndef TEC_TESTS_BUILT_CHUNK_H
#define TEC_TESTS_BUILT_CHUNK_H

#include "graph/run/launch/launch.h"
#include "tests/tap.h"

struct built_chunk {
    struct tec_model *model; /* closed; NULL fails the test with `err` */
    bool bf16;
    struct tec_plan_spec spec;
    struct tec_prefix_input seen;
    struct tec_action_inputs start;
};

static inline void built_chunk(const struct built_chunk *b, struct tec_heap *heap,
                               struct tec_error *err, float *chunk)
{
    const struct tec_device_options d = {.kind = "cpu", .threads = 1, .tier = tec_tier_best()};
    struct tec_device *device = NULL;
    struct tec_weights *weights = NULL;
    struct tec_plan *plan = NULL;
    if (!b->model)
        fprintf(stderr, "# %s\n", err->message);
    REQUIRE(b->model);
    REQUIRE(tec_device_open(&device, &d, heap, err) == TEC_OK);
    const struct tec_weights_options w = {
        .model = b->model, .source = {.seed = 7}, .device = device, .bf16 = b->bf16};
    REQUIRE(tec_weights_load(&weights, &w, heap, err) == TEC_OK);
    const struct tec_plan_inputs in = {.spec = &b->spec,
                                       .model = b->model,
                                       .weights = weights,
                                       .source = {.seed = 7},
                                       .device = device};
    enum tec_status status = tec_plan_create(&plan, &in, heap, err);
    if (status != TEC_OK)
        fprintf(stderr, "# %s\n", err->message);
    REQUIRE(status == TEC_OK);
    struct tec_replay replay = {0};
    tec_launch_prefix(plan, &plan->parts[0], tec_kv_pool_take(&plan->prefixes), &b->seen, &b->start,
                      &replay);
    tec_launch_actions(plan, &plan->parts[0], chunk);
    tec_plan_destroy(plan);
    tec_weights_close(weights);
    tec_device_close(device);
    tec_model_close(b->model);
    CHECK_INT(heap->live, ==, 0);
}

#endif
