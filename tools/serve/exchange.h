/* exchange.h - everything that the two threads of the server share: jobs, and two rings of their
 * numbers.
 *
 *     connection thread                    engine thread
 *     writes the request   -> inbox  ->    decodes, runs the frame, writes the reply
 *     sends the reply      <- outbox <-    (from inside the frame, where it waits for nobody)
 *
 * A job belongs to the thread that took its number out of a ring last; at first to the connection
 * thread. Rings have room for every job, so a push cannot fail. There is no lock. What either
 * thread may touch at any time is atomic and said so. */
#ifndef TEC_TOOLS_SERVE_EXCHANGE_H
#define TEC_TOOLS_SERVE_EXCHANGE_H

#include "base/ring.h"
#include "graph/live/runtime.h"
#include "graph/transform/limits.h"
#include "tools/serve/push.h"
#include "tools/serve/reply.h"
#include "tools/serve/safety.h"

enum { TEC_REPLY_HEAD = 64 /* bytes before a reply, for the frame's header */ };

/* The thread that answers a job with a deadline: the first to claim it. */
enum tec_job_answer { TEC_JOB_OPEN, TEC_JOB_BY_ENGINE, TEC_JOB_BY_WATCH };

struct tec_job {
    /* Written by the connection thread. */
    uint8_t *message; /* borrowed from the connection */
    size_t n;
    bool is_text; /* it came as a text message: refused */
    int64_t received_ns;
    int64_t due_ns;     /* time by which the reply must leave; 0: whenever it is ready */
    bool due_acts;      /* due_ns applies to the actions alone; the text may follow */
    int64_t client;     /* number of the connection */
    double previous_ms; /* duration of the connection's previous cycle; negative: none */
    bool replaced;      /* the reply before left without what the engine had packed into it */

    /* Written by the engine thread. */
    const double *actions; /* [rows, columns] of a reply, of the first action node; read them when
                            * `acted` */
    int64_t captured_ns, released_ns, chunk_id; /* of the observation that the actions are of */
    int over;                                   /* of struct tec_action_record: of that chunk */
    bool slow;                                  /* the pipeline's own deadline was missed */
    struct tec_beyond beyond; /* values beyond the limits; if refused there is no reply yet */
    size_t actions_at;        /* offset of their bytes in the reply; 0: it has none */
    /* The frame leaves the first node's actions out: there is no reply yet, and the connection
     * thread makes one, with what else the engine's would have. What that points to is the job's.
     */
    bool left_out;
    struct tec_reply beside;
    struct tec_reply_actions others[TEC_MAX_ACTIONS];
    struct tec_reply_timing timing;
    char *text, reason[32];
    bool lost; /* the model ended the actions before they were whole: there is no reply yet, and the
                  connection thread makes one */

    /* Written by the thread that answers. */
    uint8_t *reply; /* follows TEC_REPLY_HEAD bytes of its block, from the heap */
    size_t room, reply_n;
    bool failed; /* the reply is a sentence, and the connection ends with it */
    int64_t picked_ns, infer_ns;

    _Atomic int answer; /* enum tec_job_answer: at the deadline the connection thread may be first.
                           The engine still gives the job back */
    _Atomic bool acted; /* the actions are ready, perhaps before their text */
    _Atomic int64_t connected; /* number of the slot's connection, 0 = none. Relaxed: only chooses
                                  which session goes to another client */
    _Atomic bool gone; /* the client left: the result is not needed. Relaxed: only saves work */
};

/* Whether the deadline applies to the actions alone and they were made in time, so that the reply
 * waits for its text. Either thread may ask. */
bool tec_job_in_time(const struct tec_job *job);

struct tec_exchange {
    int n;
    struct tec_job *jobs;    /* [n] */
    struct tec_push *pushes; /* [n] of each job's connection */
    int64_t clients;         /* the connection thread's: connections so far */
    struct tec_ring inbox, outbox;
    struct tec_safety safety;
    struct tec_runtime *engine; /* of the engine thread; borrowed */
    void (*wake)(void *user);   /* wakes the connection thread; never blocks */
    void *user;
};

/* Make `n` jobs for the engine thread, whose replies have room for `reply` bytes. TEC_NO_MEMORY. */
enum tec_status tec_exchange_init(struct tec_exchange *x, int n, struct tec_runtime *engine,
                                  size_t reply, struct tec_arena *arena, struct tec_error *err);

/* Connection thread: hand a job over; take one back, -1 = none. */
void tec_exchange_submit(struct tec_exchange *x, int job);
int tec_exchange_collect(struct tec_exchange *x);

/* Engine thread: the next job, -1 = none; give one back. Giving back neither locks nor allocates.
 */
int tec_exchange_take(struct tec_exchange *x);
int tec_exchange_peek(const struct tec_exchange *x, int i); /* the i-th that would be taken */
void tec_exchange_return(struct tec_exchange *x, int job);

#endif
