/* reply.h - what the server says, byte for byte as openpi's server packs it. */
#ifndef TEC_TOOLS_SERVE_REPLY_H
#define TEC_TOOLS_SERVE_REPLY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory of the caller. What does not fit sets `full` and is left out. */
struct tec_reply_buffer {
    uint8_t *data;
    size_t room, n;
    size_t actions_at; /* where the numbers of the actions begin */
    bool full;
};

/* Actions of a node besides the first. */
struct tec_reply_actions {
    const char *name;
    const double *actions; /* [rows, columns] */
    int rows, columns;
};

/* Where a request's time went, microseconds. */
struct tec_reply_timing {
    int64_t wait, decode, prepare; /* for the engine; of the message; of the observation */
    int64_t model, finish;         /* until the actions left the frame; until they were packed */
    int64_t received, left; /* monotonic nanoseconds: the request was whole; the reply was packed */
};

/* A text that ended, of a client that wants those of streams. */
struct tec_reply_text {
    const char *stream, *node; /* stream NULL: the node has none */
    int64_t request, chunk_id; /* chunk_id: of its observation; -1 = of none */
    int tokens;
    bool done;          /* it ended by itself and was not given up */
    const char *reason; /* as of tec_reply */
    const char *text;   /* UTF-8 */
    size_t bytes;
};

struct tec_reply {
    const double *actions; /* [rows, columns]; NULL: the reply has none */
    int rows, columns;
    int n_others;
    const struct tec_reply_actions *others; /* [n_others] */
    double policy_ms;                       /* of the model */
    double server_ms;                       /* and of what is around it */
    double previous_ms;                     /* of the cycle before; negative: there was none */
    bool aged;                              /* actions of a ring: */
    double age_ms;                          /* of their observation when they leave */
    int age_frames;                         /* how many frames it was seen before */
    bool extended;                          /* a `tectum` map follows */
    const struct tec_reply_timing *timing;  /* NULL: not asked for */
    bool has_texts;                         /* `texts`: */
    int n_texts, texts_lost;                /* lost: that ended since, and were too many */
    const struct tec_reply_text *texts;     /* [n_texts] */
    bool has_text;
    const char *text; /* UTF-8 */
    size_t text_bytes;
    bool text_done; /* the text ended by itself and was not shed */
    bool refused;   /* there was no request */
    int64_t request;
    const char *reason; /* "eos", "length", why it was given up or refused; with text */
    int64_t chunk_id;
    int64_t obs_ts;     /* monotonic nanoseconds when the cameras saw what the actions come from, or
                           when the request was whole */
    const char *source; /* NULL: "fresh" */
    const char *cause;  /* why there are no actions of the request's own; NULL: not said */
    int64_t age_us;     /* of that observation when the actions leave; negative: there is none */
    int limited;        /* values of the actions that were held to the robot's limits */
    bool missed;        /* the actions are not the request's own, or left after the pipeline's
                           deadline */
    bool left_out;      /* the frame left the request's own actions out, which is no miss */
};

/* Bytes that a reply with the chunks of so many action nodes needs at most, with a text of its own
 * and `texts` that ended, of so many bytes together. */
size_t tec_reply_size(int rows, int columns, int actions, size_t text_bytes, int texts,
                      size_t texts_bytes);

/* {actions[, NAME ...], policy_timing, server_timing[, tectum]}. Takes no memory. */
void tec_reply_pack(struct tec_reply_buffer *out, const struct tec_reply *reply);

/* {tectum: {texts: [one], texts_lost}}: a message that is no reply. Takes no memory. */
void tec_reply_pack_text(struct tec_reply_buffer *out, const struct tec_reply_text *text, int lost);

/* A JSON value, up to 8 deep: integers stay integers, reals become float64. NULL is
 * an empty map. */
void tec_reply_pack_json(struct tec_reply_buffer *out, const json_t *json);

#endif
