/* tectum_client.h - a robot's side of `tectum serve`: observations in at any time, an action out of
 * the queue at each turn of the control loop.
 *
 * A thread of its own speaks openpi's WebSocket protocol. It asks for the next chunk while the
 * robot carries out the one before, with one request at a time. Actions belong to instants: row i
 * of a chunk is for the time of its observation plus i / rate. So a chunk that comes late begins
 * with the row of the moment at which it comes, however long it took; no estimate is in that.
 *
 * tectum_client_next is for the control loop: it takes no lock, waits for nothing and allocates
 * nothing. tectum_client_observe allocates only where an observation has more bytes than the two
 * before it. The library prints nothing and reads no environment, but for OpenSSL's: its
 * configuration (OPENSSL_CONF) and the system's certificates (SSL_CERT_FILE, SSL_CERT_DIR). It
 * links nothing of the engine; of tectum.h it uses types alone, and defines none of its functions.
 * doc/async-client.md explains the options. */
#ifndef TECTUM_CLIENT_H
#define TECTUM_CLIENT_H

#include "tectum.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tectum_client;

/* What becomes of a row that both the queue and a new chunk have. */
enum tectum_client_merge {
    TECTUM_CLIENT_LATEST_ONLY = 0,      /* the new one */
    TECTUM_CLIENT_WEIGHTED_AVERAGE = 1, /* 0.3 queue + 0.7 new, as LeRobot's of that name */
    TECTUM_CLIENT_AVERAGE = 2,          /* 0.5 queue + 0.5 new */
    TECTUM_CLIENT_CONSERVATIVE = 3,     /* 0.7 queue + 0.3 new */
    TECTUM_CLIENT_LINEAR = 4,           /* from the queue's to the new one over `blend_rows` */
    TECTUM_CLIENT_ENSEMBLE = 5 /* ACT's temporal ensemble: weights exp(-0.01 i), the oldest i = 0;
                                * for servers whose robot declares none itself */
};

/* What the robot is given when the queue has run dry. */
enum tectum_client_dry {
    TECTUM_CLIENT_HOLD = 0,    /* the last action again, for at most hold_ms */
    TECTUM_CLIENT_ZEROS = 1,   /* zeros */
    TECTUM_CLIENT_ON_MISS = 2, /* the rows that the server sent by its pipeline's on_miss, if it
                                * did; then as HOLD */
    TECTUM_CLIENT_ERROR = 3    /* nothing: tectum_client_next returns TECTUM_TIME */
};

/* Real-time chunking: what of the queue goes along with a request. */
enum tectum_client_rtc {
    TECTUM_CLIENT_FREE = 0,   /* nothing */
    TECTUM_CLIENT_GUIDED = 1, /* all rows from the observation on, and how many of them are carried
                               * out until the reply: the inputs of a `guide` */
    TECTUM_CLIENT_GIVEN = 2   /* the rows that are carried out until the reply: the input of a
                               * `prefix`, for models that were trained for it */
};

/* Members that are 0 or NULL take the default said here. Texts are copied. */
struct tectum_client_options {
    double rate_hz;         /* rows of a chunk that are for one second; required, 0.001 to 10000 */
    int horizon;            /* rows of a chunk that are carried out at most; all */
    double queue_threshold; /* the next chunk is asked for when no more than this share of the rows
                             * that may be carried out is left, above 0 up to 1; 0.5 */
    enum tectum_client_merge merge;
    int blend_rows; /* LINEAR: rows of the transition; 4 */
    enum tectum_client_dry on_dry;
    int hold_ms;     /* longest time of HOLD; 1000; negative: as long as it takes */
    int by_motion;   /* 1: the time for which the queue was dry does not count. A chunk then begins
                      * behind the rows that were carried out since its observation, the first one
                      * with its row 0: for robots that stand still meanwhile */
    int interpolate; /* 1: between two rows of a chunk, by a line; 0: a row holds until the next */
    const int *discrete; /* [n_discrete] columns, from 0, of which nothing is between two values: a
                          * gripper that is open or shut, a mode. They are never mixed, neither of
                          * two rows nor of two chunks; copied */
    int n_discrete;      /* columns of an action beyond max_columns: TECTUM_INVALID */
    enum tectum_client_rtc rtc;
    const char *left_input;    /* GUIDED: input of the rows; "prev_chunk_left_over" */
    const char *delay_input;   /* GUIDED: input of their number; "inference_delay" */
    const char *given_input;   /* GIVEN: input of the rows; "prev_actions" */
    int given_rows;            /* GIVEN: rows that input has at most; 8 */
    int first_delay;           /* the delay in rows until one has been measured; 1 */
    const char *key;           /* of a server with --key */
    const char *session_id;    /* who asks, over connections; a random one */
    double deadline_ms;        /* the server replies at the latest then; none */
    const uint64_t *seed;      /* the noise of every chunk; the server's own */
    int reply_ms;              /* how long a reply is waited for before the connection is given up,
                                * whatever else the server sends meanwhile; 10000 */
    int max_rows, max_columns; /* largest chunk that is taken; 256, 64; up to 4096, 1024 */
    const char *ca_file;       /* TLS: a PEM file of the certificates that are believed, in place of
                                * the system's: authorities', or the server's own */
    const char *server_name;   /* TLS: what the server's certificate must be for; the URL's host */
};

/* Begin to speak with the server at `url`, "ws://HOST:PORT/PATH" (8000 and "/" unless given), or
 * "wss://..." (443) for TLS; "https" means the same. With TLS a server that does not prove who it
 * is hears nothing, the key included, and nothing is ever said without TLS in its place. Returns at
 * once; the server may come later, and is connected to again whenever it was lost. TECTUM_INVALID
 * names the option, TECTUM_IO and TECTUM_MALFORMED ca_file, TECTUM_UNSUPPORTED for TLS where the
 * library was built without, TECTUM_NO_MEMORY. Close with tectum_client_close. */
TECTUM_API enum tectum_status tectum_client_open(struct tectum_client **out, const char *url,
                                                 const struct tectum_client_options *options,
                                                 struct tectum_error *err);

/* End the thread and the connection, set *client to NULL. No other call may be running or come
 * later. NULL and a NULL client are allowed. */
TECTUM_API void tectum_client_close(struct tectum_client **client);

/* Monotonic nanoseconds, the clock of all times here: as tectum_now. */
TECTUM_API int64_t tectum_client_now(void);

/* Hand an observation over: copied here, sent when a chunk is to be asked for; the newest wins.
 * `values` as for tectum_submit, names are the robot's inputs; what they must be is checked by the
 * server. captured_ns: when the cameras saw it (0, or a time to come: now). *observation (NULL is
 * allowed) becomes its number, from 0. One thread at a time. TECTUM_INVALID for more than 64
 * values, a rank, a type or a number of bytes that contradict each other, a name that the request
 * itself uses ("tectum", "images", "images/"); TECTUM_NO_MEMORY. */
TECTUM_API enum tectum_status tectum_client_observe(struct tectum_client *client,
                                                    const struct tectum_value *values, size_t n,
                                                    int64_t captured_ns, int64_t *observation,
                                                    struct tectum_error *err);

enum tectum_client_source {
    TECTUM_CLIENT_NONE = 0,       /* there is no action: before the first chunk, or dry */
    TECTUM_CLIENT_FRESH = 1,      /* of a chunk */
    TECTUM_CLIENT_HELD = 2,       /* the last action again */
    TECTUM_CLIENT_ZERO = 3,       /* zeros */
    TECTUM_CLIENT_SUBSTITUTE = 4, /* of what the server sent by on_miss */
    TECTUM_CLIENT_STOPPED = 5     /* there is no action: the server has stopped the robot */
};

/* Where an action comes from. */
struct tectum_client_action {
    enum tectum_client_source source;
    int columns;         /* of the action; 0: there is none. With TECTUM_INVALID: those needed */
    int64_t chunk;       /* number of the chunk, from 0; of the newest where several were merged */
    int64_t observation; /* the chunk's, as tectum_client_observe counted it */
    int64_t captured_ns; /* of that observation */
    int64_t age_ns;      /* from captured_ns to `now` */
    int row;             /* of that chunk */
    int left;            /* rows in the queue behind this one */
};

/* The action of the instant `now` (0: tectum_client_now) into action [room] float64, in the robot's
 * units. For one thread, the control loop. `told` may be NULL. TECTUM_TIME: there is none, told
 * says why; stop the robot. TECTUM_INVALID: room is less than told->columns. */
TECTUM_API enum tectum_status tectum_client_next(struct tectum_client *client, int64_t now,
                                                 double *action, int room,
                                                 struct tectum_client_action *told);

/* Wait until a chunk of this episode has come. TECTUM_TIME after timeout_ns (INT64_MAX: no end),
 * with the reason in the message: no observation, no server, what the server refused since its last
 * reply. Not for the control loop. */
TECTUM_API enum tectum_status tectum_client_ready(struct tectum_client *client, int64_t timeout_ns,
                                                  struct tectum_error *err);

/* A new episode: the queue is empty at once, what was observed or asked before counts for nothing,
 * and the session gets a new name. end_stop 1: the next request also ends the server's stop. From
 * any thread. */
TECTUM_API void tectum_client_reset(struct tectum_client *client, int end_stop);

/* What has happened since the start. Times are nanoseconds; of the newest 128 replies, without the
 * first one of each connection. */
struct tectum_client_stats {
    int connected;
    int64_t connections, requests, replies; /* replies: with actions that were taken */
    int64_t substitutes;                    /* replies that were no fresh actions */
    int64_t late;                           /* chunks without a row that was not yet over */
    int64_t failures;                       /* connections that failed or were lost */
    int64_t dry;                            /* calls of tectum_client_next with a dry queue */
    int64_t round_trip_p50, round_trip_p99; /* from the request's first byte to the reply's last */
    int64_t delay_p50, delay_p99;           /* from the observation to the reply */
    int inference_delay;                    /* in rows, as the newest request said it */
    int64_t clock_offset;                   /* the server's clock minus ours */
    int64_t clock_error;                    /* at most; -1: nothing is known of this connection's */
    double seam;       /* largest change of an action's value at the newest seam,
                        * before rows were merged */
    char message[400]; /* the newest failure since the last reply; "" */
};

/* Takes a lock that the network's thread takes too: not for the control loop. */
TECTUM_API void tectum_client_stats(struct tectum_client *client,
                                    struct tectum_client_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
