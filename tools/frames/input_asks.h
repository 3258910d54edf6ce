/* input_asks.h - requests that a line of inputs asks for or gives up: its members "#ask" and
 * "#cancel". No input has such a name: '#' begins none. */
#ifndef TEC_TOOLS_FRAMES_INPUT_ASKS_H
#define TEC_TOOLS_FRAMES_INPUT_ASKS_H

#include "base/arena.h"
#include "graph/load/pipeline.h"

#include <jansson.h>

enum { TEC_MAX_ASKS = 64 };

struct tec_input_ask {
    const char *node; /* a decode node of the pipeline */
    int max_tokens;   /* 0: the node's */
    int prio;         /* 0 first */
};

/* The requests and cancels of one frame. Zeroed: none. */
struct tec_input_asks {
    int n_asks, n_cancels;
    struct tec_input_ask asks[TEC_MAX_ASKS];
    int64_t cancels[TEC_MAX_ASKS];
};

/* Whether tec_input_asks_read takes the member of that name. */
bool tec_input_is_ask(const char *name);

/* "#ask": [{"node": NAME, "max_tokens": N, "prio": P}, ...], each member optional, or one such
 * object; without `node` the first decode node. "#cancel": [ID, ...], or one id. Adds to *out;
 * names are the pipeline's. TEC_MALFORMED, or TEC_NOT_FOUND for an unknown node or member. */
enum tec_status tec_input_asks_read(struct tec_input_asks *out, const char *name,
                                    const json_t *json, const struct tec_pipeline *pipeline,
                                    struct tec_error *err);

#endif
