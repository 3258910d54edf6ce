/* request.h - one message of a client: the observation as named values, and what its optional
 * `tectum` map asks for. */
#ifndef TEC_TOOLS_SERVE_REQUEST_H
#define TEC_TOOLS_SERVE_REQUEST_H

#include "tools/frames/inputs.h"
#include "tools/serve/msgpack_numpy.h"

enum {
    TEC_REQUEST_DEPTH = 4 /* of maps in maps */,
    TEC_REQUEST_STREAMS = 8,
    TEC_REQUEST_NAME = 200
};

struct tec_request_message {
    size_t n;
    struct tec_value values[TEC_MAX_INPUTS];
    bool inner[TEC_MAX_INPUTS]; /* it stood in a map: "images" -> "images/cam_high" */
    bool extended;              /* there is a `tectum` map */
    bool has_seed;
    uint64_t seed;
    struct tec_value noise; /* name NULL: none */
    bool wants_actions, wants_text;
    double deadline_ms; /* the reply leaves by then, after the request is whole; 0: whenever */
    bool has_captured;
    int64_t captured_ns; /* `obs_ts`: when the cameras saw it, on the server's monotonic clock */
    bool reset;          /* go on after a stop */
    bool wants_timing;   /* the reply says where the time went */
    const char *session; /* `session_id`: whose request it is, over connections; NULL: not said */
    bool wants_streams;  /* the reply has the texts that ended since */
    bool push;           /* with it: each as a message of its own, from now on */
    int n_streams;       /* of these streams or nodes; 0: of all */
    const char *streams[TEC_REQUEST_STREAMS];
    struct {
        const char *node; /* NULL: the first decode node */
        int max_tokens;   /* 0: the node's */
        int prio;
    } ask; /* the text that is wanted */
};

/* Decode. Values point into the message or the arena. A member of a map inside gets the map's name,
 * a slash and its own. Unknown keys are values too; inside `tectum` they are TEC_NOT_FOUND with the
 * nearest one. TEC_MALFORMED for what is no MessagePack, has bytes behind it, or names a thing
 * twice; else as of tec_numpy_read. Memory: a small multiple of the message, at most 8 MiB for each
 * value that changes its type. */
enum tec_status tec_serve_request_read(struct tec_request_message *out, const void *message,
                                       size_t n, struct tec_arena *arena, struct tec_error *err);

/* Only what the `tectum` map asks for; nothing else is decoded, no value is named. Costs little
 * enough for the thread that answers pings. */
enum tec_status tec_serve_request_options(struct tec_request_message *out, const void *message,
                                          size_t n, struct tec_arena *arena, struct tec_error *err);

#endif
