/* recall_region.h - what all tests of recalls share: a model with its plan, and the keys and values
 * that a prompt leaves in a region of it. */
#ifndef TEC_TESTS_RECALL_REGION_H
#define TEC_TESTS_RECALL_REGION_H

#include "graph/run/recall/recall.h"
#include "tests/tap.h"

static struct tec_heap heap;
static struct tec_error err;
static struct tec_device *device;
static struct tec_model *model;
static struct tec_weights *weights;
static struct tec_plan *plan;
static struct tec_recall recall;
static struct tec_arena arena;
static int n_tokens; /* of the prompt */
static size_t row;   /* bytes of K of a token at a layer */

static inline void close_model(void)
{
    tec_recall_finish(&recall);
    tec_arena_finish(&arena);
    tec_plan_destroy(plan);
    tec_weights_close(weights);
    tec_model_close(model);
    tec_device_close(device);
}

/* All keys and values of the prompt in a region. */
static inline unsigned char *read_region(int region)
{
    size_t size = (size_t)n_tokens * row, layers = (size_t)model->text.stack.layers;
    unsigned char *all = TEC_NEW(&arena, 2 * size * layers, unsigned char), *to = all;
    REQUIRE(all != NULL);
    for (size_t l = 0; l < layers; l++)
        for (int i = 0; i < 2; i++, to += size) {
            const unsigned char *from = (i ? plan->space.v : plan->space.k)[l];
            tec_device_download(device, TEC_STREAM_MAIN, to,
                                from + (size_t)plan->prefixes.first[region] * row, size);
        }
    return all;
}

static inline size_t region_bytes(void)
{
    return 2 * (size_t)n_tokens * row * (size_t)model->text.stack.layers;
}

#endif
