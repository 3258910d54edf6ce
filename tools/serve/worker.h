/* worker.h - the engine side of a pipeline that is served: it answers jobs and, while there are
 * none, goes on with language that is not finished. One thread does so for all of a server's.
 *
 * A client has one of the pipeline's sessions (frame.sessions) from its first request on: a free
 * one, else one whose connection has closed, else the one that was not asked for longest, which
 * then begins anew. A client is a connection, or whoever says the same session_id. Requests of
 * several sessions that come within gather_ms share a frame; those of one session run in turn.
 *
 * A job's actions leave in the moment the frame has them, those of all its action nodes. A job that
 * asked for text leaves when the text of its own observation has ended; the frames of other jobs
 * run meanwhile, and the policy batches their language with it.
 *
 * A ring takes a request's observation in and gives what leaves in the same frame. Where nothing
 * would leave, because it is filled anew, it is given the same observation until something does;
 * those are frames like others, which the requests of other robots share.
 * Each session has one, with observations of one client: another one's begin with an empty ring.
 * Where the action that a request is given was ended early by the model, what on_miss says leaves
 * in its place. */
#ifndef TEC_TOOLS_SERVE_WORKER_H
#define TEC_TOOLS_SERVE_WORKER_H

#include "graph/live/runtime.h"
#include "graph/live/text_cursor.h"
#include "graph/live/turns.h"
#include "tools/cli/open_engine.h"
#include "tools/record/view.h"
#include "tools/serve/exchange.h"
#include "tools/serve/reply.h"
#include "tools/serve/request.h"
#include "tools/serve/worker_unread.h"

/* The progress of a job. */
struct tec_worker_job {
    bool waits;       /* the job waits for its text */
    unsigned streams; /* decoders whose texts are wanted, by wants_streams */
    int session;      /* whose its request is */
    int64_t request;  /* the request that makes the text */
    bool refused;
    double *actions[TEC_MAX_ACTIONS]; /* [rows, columns] of each action node */
    bool made[TEC_MAX_ACTIONS];       /* these are there */
    double policy_ms;
    int64_t started_ns, chunk_id; /* chunk_id: of the observation that its actions come from */
    int64_t due_ns; /* copy of the exchange's due_ns, because that job may be returned earlier */
    int64_t picked_cpu_ns, prepared_cpu_ns; /* CPU time of the thread: when it was taken; since
                                             * then, until the observation was prepared */
    int64_t decoded_ns, prepared_ns,
        left_ns; /* when these were done; left: its actions, the frame */
    bool wants_streams, pushes;
    bool extended, wants_actions, wants_text, wants_timing, missed;
    bool by_watch; /* the connection thread has answered it at its deadline */
    int age_frames;
};

/* Texts that ended, until the client's next request that wants them. What is too much replaces the
 * oldest. */
enum { TEC_WORKER_TEXTS = 32, TEC_WORKER_TEXT_BYTES = 1 << 15 };
struct tec_worker_texts {
    bool anew;                  /* its client has just come: frames before its first are not its */
    int64_t from;               /* its first frame */
    unsigned of;                /* bit set of decoders; 0: nobody wants any */
    bool pushes;                /* they leave at once, as messages of their own */
    struct tec_text_cursor *at; /* [utterances of the loop]: those that are kept or past */
    struct tec_reply_text kept[TEC_WORKER_TEXTS];
    char reasons[TEC_WORKER_TEXTS][32];
    char *bytes; /* [TEC_WORKER_TEXT_BYTES] of the kept ones, in their order */
    size_t n_bytes;
    int n, lost;
    int sent, sent_lost; /* of these so many are in the newest reply: gone when it has left whole */
};

/* A session of the pipeline, and its part of the running frame. */
struct tec_worker_session {
    int index;                       /* among the sessions */
    int64_t client;                  /* whose it is: a connection's number, -1 = nobody's yet */
    char name[TEC_REQUEST_NAME + 1]; /* the session_id of its client; "": it says none */
    int64_t asked_ns;                /* when its newest request was taken in, or its frame ended */
    struct tec_session *session;     /* borrowed */
    struct tec_frame_input input;
    int taken;          /* the job that the frame is for, -1 = none */
    int job;            /* the same until it is answered */
    bool own;           /* the request is of the client whose the session was */
    bool asked;         /* the loop has the request for its text */
    bool text;          /* that job waits for its text */
    bool fresh;         /* its client or episode is another than before */
    struct tec_ask ask; /* the request for that text */
    struct tec_worker_texts texts;
    int64_t *cancels; /* [n] requests whose client has left, for the next frame */
    int n_cancels;
    bool acted;    /* the running frame has made actions */
    bool holds;    /* newer actions will leave in this frame, so these are not sent yet */
    bool lost;     /* the model ended the request's actions before they were complete */
    int good_rows; /* of its actions */
    char why[120]; /* the row behind those is none */
    int64_t number, observations; /* of its observation; that it has had */
    int64_t began_ns;             /* of its first frame */
    int64_t frame;                /* frames that it was in, where there are several sessions */
    int fills;                  /* frames that its job may have yet, until its ring gives actions */
    int64_t observed;           /* its observations that frames had */
    struct tec_counted counted; /* what texts are counted by */
    int64_t passed;             /* others, which were answered before a frame could have them */
    const struct tec_frame_record *record; /* of the newest frame */
    float *noise;                          /* [horizon, dim] */
    const float *given_noise;              /* of the observation; NULL: drawn */
    enum tec_recorded_reset reset;         /* since the newest frame */
};

/* Owned by the caller of open until close; must not move in between. */
struct tec_worker {
    struct tec_opened opened;
    struct tec_runtime runtime;
    struct tec_exchange *exchange; /* borrowed */
    struct tec_arena arena, moment;
    struct tec_request_message request;
    int n_sessions;
    struct tec_worker_session *sessions; /* [n_sessions] */
    int next;                       /* a job that waits for its session's next frame, -1 = none */
    int64_t frame_ns;               /* how long the newest frame with an observation took */
    int64_t gather_ns;              /* it waits so long for those of other sessions */
    int stages;                     /* of a ring; 0 = none */
    int rows, columns;              /* of a reply, of the first action node */
    int others[TEC_MAX_ACTIONS][2]; /* of further ones */
    int n_actions;                  /* action nodes, at least one */
    const char *streams[TEC_MAX_DECODERS]; /* of each decoder; NULL = its node has none */
    const char *outs[TEC_MAX_ACTIONS];     /* what a reply calls each one's actions */
    int text_bytes;                        /* most of a reply's text */
    double *actions;                       /* [session rows, columns] */
    const char *prompt;                    /* key */
    const char *default_prompt;            /* NULL = the robot's */
    struct tec_worker_job *jobs;           /* [n] */
    struct tec_recording *recording;       /* borrowed; NULL: nothing is recorded */
    struct tec_view *view;                 /* borrowed; NULL: nobody looks */
    bool warned, unread;                   /* a cut text, a text without a prompt: have been told */
    struct tec_worker_unread unread_keys;
    struct tec_clock clock;
};

/* What a worker is opened with. */
struct tec_worker_options {
    struct tec_exchange *exchange; /* initialised by open for n jobs, and not yet used; borrowed */
    int n;
    int limit_rows;                  /* 0: all */
    int actions;                     /* of struct tec_engine_options */
    const char *default_prompt;      /* NULL: the robot's */
    struct tec_turns *turns;         /* that its frames have, with those of the workers before it */
    const struct tec_worker *before; /* its engine's device is that of this one's; NULL: it is the
                                      * first. Closed later */
};

/* Open the engine of a pipeline file with the policy asked for. */
enum tec_status tec_worker_open(struct tec_worker *w, struct tec_invocation *call, const char *path,
                                const struct tec_worker_options *options, struct tec_error *err);
void tec_worker_close(struct tec_worker *w); /* zeroed is allowed */

/* For the worker: decode a job's request, into `request`. Then: whether that is of a session's
 * client. And: prepare its observation for its session. */
enum tec_status tec_worker_read(struct tec_worker *w, int job, struct tec_error *err);
bool tec_worker_belongs(const struct tec_worker *w, const struct tec_worker_session *s, int job);
enum tec_status tec_worker_observe(struct tec_worker *w, struct tec_worker_session *s, int job,
                                   struct tec_error *err);

/* The runtime's listener; `user` is the worker. */
void tec_worker_left(void *user, const struct tec_runtime_left *left);
void tec_worker_lost(void *user, int session, const struct tec_observation_record *seen);

/* Take jobs and run their frames: for tec_turns_work. When that has returned, the misses that are
 * not counted yet are. */
struct tec_runtime_source tec_worker_source(struct tec_worker *w);
void tec_worker_settle(struct tec_worker *w);

#endif
