/* answer.h - the reply of the server, as far as other protocols have a place for it. */
#ifndef TEC_TOOLS_GATEWAY_ANSWER_H
#define TEC_TOOLS_GATEWAY_ANSWER_H

#include "graph/transform/observer.h"
#include "tools/record/buffer.h"

struct tec_gateway_answer {
    struct tec_value actions; /* float64 [rows, columns], within the reply, of any alignment */
    char source[16];          /* "fresh", "held", ...: where they come from */
    bool missed;
};

/* TEC_MALFORMED, or TEC_NOT_FOUND where the reply has no actions. */
enum tec_status tec_gateway_answer_read(struct tec_gateway_answer *out,
                                        const struct tec_buffer *reply, struct tec_arena *arena,
                                        struct tec_error *err);

#endif
