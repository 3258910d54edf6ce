/* answer.h - the reply of the server, as far as other protocols have a place for it. */
#ifndef TEC_TOOLS_GATEWAY_ANSWER_H
#define TEC_TOOLS_GATEWAY_ANSWER_H

#include "graph/transform/observer.h"
#include "tools/record/buffer.h"

struct tec_gateway_answer {
    struct tec_value actions; /* float64 [rows, columns], within the reply, of any alignment */
    char source[16];          /* "fresh", "held", ...: where they come from */
    bool missed, left_out;
};

/* TEC_MALFORMED, TEC_NOT_FOUND where the reply has no actions, or TEC_TIME where they have no rows,
 * after a stop or a miss: clients of these protocols would carry out an empty chunk, so it is an
 * error. */
enum tec_status tec_gateway_answer_read(struct tec_gateway_answer *out,
                                        const struct tec_buffer *reply, struct tec_arena *arena,
                                        struct tec_error *err);

#endif
