/* worker.h - the engine side of the server: one thread that answers jobs in turn and, while there
 * are none, goes on with language that is not finished.
 *
 * A job's actions leave in the moment the frame has them, those of all its action nodes. A job that
 * asked for text leaves when the text of its own observation has ended; the frames of other jobs
 * run meanwhile, and the policy batches their language with it.
 *
 * A ring takes a request's observation in and gives what leaves in the same frame. Where nothing
 * would leave, because it is filled anew, it is given the same observation until something does. It
 * holds observations of one connection: another one's begin with an empty ring. Where the action
 * that a request is given was ended early by the model, what on_miss says leaves in its place. */
#ifndef TEC_TOOLS_SERVE_WORKER_H
#define TEC_TOOLS_SERVE_WORKER_H

#include "graph/live/runtime.h"
#include "tools/cli/open_engine.h"
#include "tools/record/recording.h"
#include "tools/serve/exchange.h"
#include "tools/serve/request.h"

/* The progress of a job. */
struct tec_worker_job {
    bool waits;      /* the job waits for its text */
    int64_t request; /* the request that makes the text */
    bool refused;
    double *actions[TEC_MAX_ACTIONS]; /* [rows, columns] of each action node */
    bool made[TEC_MAX_ACTIONS];       /* these are there */
    double policy_ms;
    int64_t started_ns, chunk_id; /* chunk_id: of the observation that its actions come from */
    int64_t due_ns; /* copy of the exchange's due_ns, because that job may be returned earlier */
    int64_t decoded_ns, prepared_ns,
        left_ns; /* when these were done; left: its actions, the frame */
    bool extended, wants_actions, wants_timing, missed;
    bool by_watch; /* the connection thread has answered it at its deadline */
    int age_frames;
};

/* Owned by the caller of open until close; must not move in between. */
struct tec_worker {
    struct tec_opened opened;
    struct tec_runtime runtime;
    struct tec_exchange *exchange; /* borrowed */
    struct tec_arena arena, moment;
    struct tec_request_message request;
    struct tec_frame_input input; /* of the running frame */
    int running;                  /* the job that the running frame is for, -1 = none */
    bool running_text;            /* that job waits for its text */
    struct tec_ask ask;           /* the request for that text */
    int64_t *cancels;             /* [n] requests whose client has left, for the next frame */
    int n_cancels;
    bool acted;     /* the running frame has made actions */
    bool holds;     /* newer actions will leave in this frame, so these are not sent yet */
    bool lost;      /* the model ended the request's actions before they were complete */
    int stages;     /* of a ring; 0 = none */
    int64_t client; /* whose observations are in the ring */
    int good_rows;  /* of its actions */
    char why[120];  /* the row behind those is none */
    int64_t number, began_ns;          /* of its observation; of its first frame */
    int rows, columns;                 /* of a reply, of the first action node */
    int others[TEC_MAX_ACTIONS][2];    /* of further ones */
    int n_actions;                     /* action nodes, at least one */
    const char *outs[TEC_MAX_ACTIONS]; /* what a reply calls each one's actions */
    int text_bytes;                    /* most of a reply's text */
    double *actions;                   /* [session rows, columns] */
    float *noise;                      /* [horizon, dim] */
    const char *prompt;                /* key */
    const char *default_prompt;        /* NULL = the robot's */
    struct tec_worker_job *jobs;       /* [n] */
    int64_t observations;
    struct tec_recording *recording; /* borrowed; NULL: nothing is recorded */
    enum tec_recorded_reset reset;   /* since the newest frame */
    const float *given_noise;        /* of the running observation; NULL: drawn */
    bool warned;
    struct tec_clock clock;
};

/* Open the engine with the policy asked for. `limit_rows` 0: all. The exchange is initialised here
 * for n jobs, and not yet used. */
enum tec_status tec_worker_open(struct tec_worker *w, struct tec_invocation *call, const char *path,
                                struct tec_exchange *exchange, int n, int limit_rows,
                                const char *default_prompt, struct tec_error *err);
void tec_worker_close(struct tec_worker *w); /* zeroed is allowed */

/* For the worker: decode a job's request and prepare its observation, into `request` and `input`.
 */
enum tec_status tec_worker_observe(struct tec_worker *w, int job, struct tec_error *err);

/* The runtime's listener; `user` is the worker. */
void tec_worker_left(void *user, const struct tec_runtime_left *left);
void tec_worker_lost(void *user, const struct tec_observation_record *seen);

/* Answer jobs until tec_runtime_end. */
void tec_worker_run(struct tec_worker *w);

#endif
