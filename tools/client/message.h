/* message.h - a robot's requests, and what of a server's messages it needs. The server is trusted
 * as little as any input. */
#ifndef TEC_TOOLS_CLIENT_MESSAGE_H
#define TEC_TOOLS_CLIENT_MESSAGE_H

#include "base/error.h"
#include "tectum_client.h"
#include "tools/client/queue.h"
#include "tools/client/times.h"
#include "tools/record/buffer.h"

enum { TEC_CLIENT_VALUES = 64, TEC_CLIENT_NAME = 200 };

/* An observation, packed as far as it can be before it is sent. */
struct tec_client_observation {
    struct tec_buffer bytes; /* of a map without its head */
    size_t pairs;
    int64_t number, captured_ns, episode;
};

/* TEC_INVALID for a name that a request itself uses. */
enum tec_status tec_client_check_name(const char *name, struct tec_error *err);

/* Checks values and packs them: TEC_INVALID names the value, TEC_NO_MEMORY. */
enum tec_status tec_client_pack_observation(struct tec_client_observation *out,
                                            const struct tectum_value *values, size_t n,
                                            struct tec_error *err);

/* What a request says besides its observation. */
struct tec_client_asked {
    struct tec_client_ahead ahead;
    enum tectum_client_rtc rtc;
    const char *left_input, *delay_input, *given_input;
    const char *session_id;
    bool has_obs_ts, reset;
    int64_t obs_ts;
    double deadline_ms;   /* 0: none */
    const uint64_t *seed; /* NULL: none */
};

/* Complete the message: head, observation, what goes along. `out` is emptied first. */
void tec_client_pack_request(struct tec_buffer *out, const struct tec_client_observation *seen,
                             const struct tec_client_asked *asked);

/* A reply. */
struct tec_client_reply {
    bool is_reply;     /* it is a reply, and no message of its own that texts come with */
    int rows, columns; /* 0 rows: it has no actions */
    bool fresh, stopped;
    bool has_stamps;
    int64_t received_ts, left_ts;
};

/* Read a reply; actions go into `actions` [most_rows, most_columns], rows one behind the other.
 * TEC_MALFORMED: no reply, actions of another type than float64 and float32, a value that is not
 * finite or whose magnitude is above 1e100; TEC_SHAPE: more rows or columns than there is room
 * for. */
enum tec_status tec_client_read_reply(struct tec_client_reply *reply, double *actions,
                                      int most_rows, int most_columns, const void *message,
                                      size_t n, struct tec_error *err);

#endif
