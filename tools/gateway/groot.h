/* groot.h - the messages of GR00T's policy server (gr00t/eval/service.py of Isaac-GR00T N1.5,
 * gr00t/policy/server_client.py of N1.6 and N1.7): MessagePack maps {endpoint, data, api_token}. */
#ifndef TEC_TOOLS_GATEWAY_GROOT_H
#define TEC_TOOLS_GATEWAY_GROOT_H

#include "tools/gateway/names.h"
#include "tools/record/buffer.h"
#include "tools/serve/key.h"

enum tec_groot_endpoint {
    TEC_GROOT_PING,
    TEC_GROOT_GET_ACTION,
    TEC_GROOT_RESET,
    TEC_GROOT_MODALITY,
    TEC_GROOT_REFUSED, /* there is an error */
    TEC_GROOT_NO_KEY   /* there is one: the key is not there, or wrong */
};

/* What of a request its reply depends on. */
struct tec_groot_asked {
    bool nested; /* the observation was {video, state, language}, as N1.6 has it; else flat keys */
    bool packed; /* arrays came as msgpack-numpy packs them, as N1.7 has it; else as .npy files */
};

/* What the server knows of its robot; borrowed. */
struct tec_groot_robot {
    struct tec_gateway_names names;
    int rows; /* of a chunk */
    const struct tec_key *key;
};

/* Read a request; of GET_ACTION, add the server's request to `out`: pictures [1, H, W, 3] or
 * [1, 1, H, W, 3], parts of the state [1, D] or [1, 1, D], a text or a list of one. Names are the
 * robot's inputs, with or without "video." and "state.". `session` becomes its session_id. REFUSED
 * and NO_KEY: the error says why. */
enum tec_groot_endpoint tec_groot_request(struct tec_buffer *out, struct tec_groot_asked *asked,
                                          const struct tec_groot_robot *robot, const void *message,
                                          size_t n, const char *session, struct tec_arena *arena,
                                          struct tec_error *err);

/* Add the actions of the server's reply: float32 by part of the action (the robot's outputs; one
 * part "actions" without them), [rows, columns] under "action.PART", or, nested, [1, rows, columns]
 * under PART, in a list with a map {source, missed} behind them. */
enum tec_status tec_groot_reply(struct tec_buffer *out, const struct tec_groot_asked *asked,
                                const struct tec_groot_robot *robot, const struct tec_buffer *reply,
                                struct tec_arena *arena, struct tec_error *err);

/* Add the answer to ping, to reset, the robot's modalities, or {error: TEXT}. */
void tec_groot_pong(struct tec_buffer *out);
void tec_groot_was_reset(struct tec_buffer *out);
void tec_groot_modality(struct tec_buffer *out, const struct tec_groot_robot *robot);
void tec_groot_error(struct tec_buffer *out, const char *text, size_t n);

#endif
