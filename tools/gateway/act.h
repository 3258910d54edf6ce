/* act.h - POST /act, which OpenVLA's and OpenVLA-OFT's servers speak (vla-scripts/deploy.py of
 * openvla and openvla-oft): an observation as a JSON object comes, actions go. */
#ifndef TEC_TOOLS_GATEWAY_ACT_H
#define TEC_TOOLS_GATEWAY_ACT_H

#include "tools/client/observation.h"
#include "tools/gateway/answer.h"
#include "tools/gateway/names.h"
#include "tools/serve/request.h"

/* Values of a body, each of which takes memory many times its length: a list is two, an object 64.
 */
enum { TEC_ACT_VALUES = 1 << 21 };

/* What of a request the way of its answer depends on. */
struct tec_act_asked {
    bool encoded; /* it was a JSON text in {"encoded": TEXT}: so is the reply */
    char session[TEC_REQUEST_NAME + 1]; /* its session_id */
};

/* Decode the body of a request and add the server's request to `out`. Members of the object are
 * values by the names of names.h:
 *
 *     {"__numpy__": BASE64, "dtype": "|u1", "shape": [H, W, 3]}   an array as json-numpy writes it
 *     [[0.5, 1], ...], 0.5                                       an array, a number
 *     "..."                       a text; of a camera: a JPEG or PNG file in base64
 *     null                        as if it were not there
 *
 * beside `unnorm_key`, which must be that of the pipeline's statistics, `session_id` and `tectum`,
 * which are the openpi protocol's. `client` is the session_id of a request that says none, or an
 * empty one. TEC_MALFORMED, TEC_NOT_FOUND or TEC_NO_MEMORY: one sentence that begins with the
 * member. */
enum tec_status tec_act_request(struct tec_buffer *out, struct tec_act_asked *asked,
                                const struct tec_gateway_names *names, const void *body, size_t n,
                                const char *client, struct tec_arena *arena, struct tec_error *err);

/* Add the actions of the server's reply to `out`: of a chunk of one row, an array [columns]; of
 * more, a list of such arrays, a row each, float64. Fails as tec_gateway_answer_read does. */
enum tec_status tec_act_reply(struct tec_buffer *out, struct tec_gateway_answer *answer,
                              const struct tec_act_asked *asked, const struct tec_buffer *reply,
                              struct tec_arena *arena, struct tec_error *err);

/* Add {"error": TEXT}. */
void tec_act_error(struct tec_buffer *out, const char *text, size_t n);

#endif
