/* tectum.h - the public interface of tectum: open a pipeline, submit observations, get actions and
 * text.
 *
 * One `struct tectum` is one pipeline with its model and a frame thread of its own. The thread runs
 * a frame for every new observation (the newest wins; one that is replaced before its frame begins
 * is never run), hands the actions out the moment they are ready, and goes on with live language
 * once a period when nothing new has come. It takes no lock and allocates nothing. An observation
 * that is given while a frame runs waits for its end: frames are never made up for. A pipeline
 * whose actions come from a ring gives in each frame those of an older observation, and goes on
 * without new ones, half a period later than that, until it has given all.
 *
 * Two ways to the actions. tectum_wait: those of an observation, whenever they are ready.
 * tectum_handout: what the robot is to do in this tick, at the deadline at the latest, whatever has
 * happened to the model; what that is when the actions are not there, the pipeline's
 * hard { ms, on_miss, limit } say. Use one of them. Of a pipeline with several action nodes they
 * give those of the first; tectum_wait_for and tectum_handout_of those of any.
 *
 * A pipeline of several sessions has a handle for each robot (tectum_session). A process may have
 * several pipelines, opened, used and closed by any threads: each runs its own frames, which share
 * the processor, and gives what it gives alone.
 *
 * Every function but tectum_open and tectum_close may be called from any thread at any time. No
 * call prints, exits or reads the environment. Pointers given are borrowed for the call. */
#ifndef TECTUM_H
#define TECTUM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TECTUM_API __attribute__((visibility("default")))
#else
#define TECTUM_API
#endif

/* How a call ended. Values never change; new ones are appended. */
enum tectum_status {
    TECTUM_OK = 0,
    TECTUM_INVALID = 1,     /* an argument; nothing was done */
    TECTUM_MALFORMED = 2,   /* a file or an input that is not what it should be */
    TECTUM_SHAPE = 3,       /* a shape or dtype that does not fit */
    TECTUM_NOT_FOUND = 4,   /* no such file or name */
    TECTUM_NO_MEMORY = 5,   /* the message says how much is needed and there is */
    TECTUM_UNSUPPORTED = 6, /* valid, but this release cannot do it */
    TECTUM_DEVICE = 7,
    TECTUM_IO = 8,
    TECTUM_POLICY = 9, /* a policy script failed */
    TECTUM_TIME = 10   /* nothing came in time */
};

/* Filled on failure only: one line that names the thing, the numbers and what to do. Every function
 * takes NULL in its place. */
struct tectum_error {
    enum tectum_status status;
    char message[400];
};

/* "NO_MEMORY" of a status; never NULL. */
TECTUM_API const char *tectum_status_name(enum tectum_status status);

/* Members that are 0 or NULL take the default said here. */
struct tectum_options {
    const char *pipeline;   /* a pipeline file, or a folder as LeRobot saves it; required */
    const char *root;       /* holds pipelines/ and policies/; looked for near the program */
    const char *weights;    /* checkpoint; the pipeline's */
    const char *tokenizer;  /* file; the checkpoint's */
    const char *policy;     /* name or file; the pipeline's */
    int random_weights;     /* 1: no weights of a checkpoint, random ones of `size` from `seed` */
    const char *size;       /* "full", "small", "tiny"; as a folder of LeRobot says, else full */
    uint64_t seed;          /* of random weights and of the noise that actions start from */
    const char *dtype;      /* "f32", "bf16"; the pipeline's */
    int threads;            /* of the CPU, the frame thread among them; all */
    const char *const *set; /* "PATH=VALUE" over fields of the pipeline */
    int n_set;
    int actions; /* that the robot carries out a tick, for tectum_handout; `execute` of the robot's
                  * description, else all rows of a chunk */
    const char *device;  /* "cpu", "cuda", "cuda:N"; a GPU where one can be used, else the CPU */
    const char *adapter; /* folder of a LoRA adapter (PEFT), merged into the checkpoint at load */
    const char *hub;     /* cache of Hugging Face's hub, ~/.cache/huggingface/hub for example, where
                          * files that the checkpoint lacks are looked for; not looked for */
    const char *embodiment; /* the robot, of a checkpoint folder that knows several; the only one */
};

struct tectum;

/* Open a pipeline and start its frame thread; reads the checkpoint, which takes seconds for large
 * ones. Close with tectum_close. */
TECTUM_API enum tectum_status tectum_open(struct tectum **out, const struct tectum_options *options,
                                          struct tectum_error *err);

/* Stop the frame thread, give everything back, set *engine to NULL. No other call may be running or
 * come later. NULL and a NULL engine are allowed. */
TECTUM_API void tectum_close(struct tectum **engine);

/* The robots that the pipeline serves, frame { sessions = N }, and the handle of the i-th: its
 * observations, actions, texts, requests and memories, as if it had the engine to itself. The
 * engine that tectum_open gave is the first. Those whose observations come within the pipeline's
 * gather_ms share a frame; one that has been silent for a second is not waited for. Requests are
 * numbered by the engine. Belongs to the engine and ends with it: tectum_close of it only sets the
 * pointer to NULL. NULL: there is no such session. */
TECTUM_API int tectum_sessions(const struct tectum *engine);
TECTUM_API struct tectum *tectum_session(struct tectum *engine, int i);

/* Monotonic nanoseconds, the clock of all times here. */
TECTUM_API int64_t tectum_now(void);

enum tectum_type {
    TECTUM_TYPE_TEXT, /* UTF-8, `bytes` of it; needs no NUL */
    TECTUM_TYPE_U8,
    TECTUM_TYPE_F32,
    TECTUM_TYPE_F64,
    TECTUM_TYPE_I32 /* token ids: a prompt under the name "NAME#ids" */
};

/* One named input: pictures u8 [height, width, 3] (any size, RGB), states [n], texts. Names are the
 * robot's, or the pipeline's where it has no robot. Where an action node has a `prefix`, the name
 * of that input may come too: the first actions of the chunk, [d, columns] in the robot's units, d
 * from 0 to the rows declared. A name that neither has is ignored. Row-major, native byte order,
 * any alignment. */
struct tectum_value {
    const char *name;
    enum tectum_type type;
    int rank;         /* 0 .. 4; 0 for text */
    int64_t shape[4]; /* outermost first */
    const void *data;
    size_t bytes; /* of data; checked against type and shape */
};

/* Submit an observation: resize, normalise, tokenise here, on the calling thread, then hand it to
 * the frame thread. captured_ns is when the cameras saw it (tectum_now; 0: now). *observation (NULL
 * is allowed) becomes its number, from 0 upward. On failure nothing is submitted and the engine
 * goes on: TECTUM_NOT_FOUND, TECTUM_SHAPE, TECTUM_INVALID or TECTUM_MALFORMED name the input.
 * TECTUM_DEVICE: the device has failed, for good; tectum_handout still bridges. */
TECTUM_API enum tectum_status tectum_submit(struct tectum *engine,
                                            const struct tectum_value *values, size_t n,
                                            int64_t captured_ns, int64_t *observation,
                                            struct tectum_error *err);

/* The actions of one observation. */
struct tectum_chunk {
    int64_t observation; /* that they are of; with a ring an older one than its frame's */
    int rows, columns;   /* of the actions; rows in the order of execution */
    int64_t captured_ns; /* of the observation */
    int64_t released_ns; /* when the actions were ready */
    int missed;          /* 1: later than the action node's deadline, counted from tectum_submit */
    char reason[16];     /* where rows is 0: why there are none. Of a ring "eos": the model ended
                          * the action before it was whole; "reset": tectum_reset dropped it. Of
                          * any: "limits", the robot's are on = "hold" or "stop"; "stopped";
                          * "left out": the policy left the action node out of the frame, and
                          * missed is 0 */
    int limited; /* values that were beyond the robot's limits, and were clipped if rows > 0 */
};

/* Most rows, and the columns, of a chunk: what tectum_wait needs room for. */
TECTUM_API int tectum_rows(const struct tectum *engine);
TECTUM_API int tectum_columns(const struct tectum *engine);

/* The newest actions, if they are of observation `from` or a later one; else wait for such, at most
 * timeout_ns (0: only look; negative: as long as it takes), then TECTUM_TIME. actions
 * [rows, columns] float64, in the robot's units, `room` values: TECTUM_INVALID when that is too
 * few, TECTUM_DEVICE when the device has failed. Several threads may wait.
 *
 * An observation in a ring may end without actions. Where that is `from` or a later one, and there
 * are no actions of such and none older in flight, nobody is kept waiting: TECTUM_OK with rows 0,
 * the newest such observation (captured_ns 0 where a reset dropped it) and the reason. */
TECTUM_API enum tectum_status tectum_wait(struct tectum *engine, int64_t from, int64_t timeout_ns,
                                          double *actions, size_t room, struct tectum_chunk *chunk,
                                          struct tectum_error *err);

/* tectum_wait for the chunk of one of the action nodes, by its name (NULL: the first one). */
TECTUM_API enum tectum_status tectum_wait_for(struct tectum *engine, const char *node, int64_t from,
                                              int64_t timeout_ns, double *actions, size_t room,
                                              struct tectum_chunk *chunk, struct tectum_error *err);

/* Name of the pipeline's i-th action node, in order of declaration, as long as the engine is open;
 * NULL: there are fewer. */
TECTUM_API const char *tectum_action(const struct tectum *engine, int i);

/* tectum_wait that only looks. */
TECTUM_API enum tectum_status tectum_poll(struct tectum *engine, int64_t from, double *actions,
                                          size_t room, struct tectum_chunk *chunk,
                                          struct tectum_error *err);

/* Where the actions that a robot is given come from. Values never change; new ones are appended. */
enum tectum_source {
    TECTUM_SOURCE_FRESH = 0,   /* the observation's own, in time */
    TECTUM_SOURCE_HELD = 1,    /* the last command, repeated */
    TECTUM_SOURCE_DECAYED = 2, /* the last fresh command, shrinking to zero */
    TECTUM_SOURCE_STALE = 3,   /* the newest actions there are, aligned in time */
    TECTUM_SOURCE_ZEROS = 4,
    TECTUM_SOURCE_STOPPED = 5, /* no actions: stopped until tectum_reset */
    TECTUM_SOURCE_NONE = 6     /* no actions: there was no command yet */
};

/* "fresh" of a source; never NULL. */
TECTUM_API const char *tectum_source_name(enum tectum_source source);

/* What the robot is given for a tick. */
struct tectum_handed {
    enum tectum_source source;
    int rows, columns;   /* of the actions: 0 rows, or tectum_options.actions of them */
    int64_t observation; /* that they come from; -1: none, as zeros and no actions */
    int64_t captured_ns; /* of that observation; 0 for none */
    int64_t handed_ns;   /* when this was decided */
    int64_t age_ns;      /* handed_ns - captured_ns, substitutes' too; -1 for none */
    int limited;         /* values of the observation's own actions that were beyond the robot's
                          * limits: clipped where the source is FRESH, else why it is not */
    int left_out;        /* 1: the policy left the action node out of the frame. The robot is given
                          * what on_miss says, and that is no miss */
};

/* The actions of a tick: those of `observation` (or of a later one) if they are ready by the
 * deadline, else what on_miss says; returns as soon as it is decided, at the deadline at the
 * latest. Nothing that the frame thread, its device or its policy does can hold it up.
 *
 * One observation is one tick: call it once for each, in their order, from one thread; numbers that
 * tectum_submit gave are the count of ticks that on_miss = "last_chunk" aligns by. observation -1
 * is a tick that has none (a camera failed): it uses up a number, and misses. deadline_ns:
 * absolute, on the clock of tectum_now; 0: the action node's hard { ms }, from tectum_submit on
 * (from now on for -1), TECTUM_INVALID where it has none. With a ring the actions of a tick are
 * those that leave in its frame, also in one that has no observation.
 *
 * actions [actions, columns] float64, in the robot's units, `room` values: TECTUM_INVALID when that
 * is too few. Numbers are finite always: an observation whose actions are not misses. TECTUM_OK for
 * every source; the robot is told to stop by rows = 0. */
TECTUM_API enum tectum_status tectum_handout(struct tectum *engine, int64_t observation,
                                             int64_t deadline_ns, double *actions, size_t room,
                                             struct tectum_handed *handed,
                                             struct tectum_error *err);

/* tectum_handout of one of the action nodes, by its name (NULL: the first one): with its deadline,
 * its on_miss and its last command. A tick is handed out once for each node. observation -1 of
 * another node than the first is the newest tick, which the first one's call has begun. */
TECTUM_API enum tectum_status tectum_handout_of(struct tectum *engine, const char *node,
                                                int64_t observation, int64_t deadline_ns,
                                                double *actions, size_t room,
                                                struct tectum_handed *handed,
                                                struct tectum_error *err);

/* Go on after a stop (on_miss = "stop", or more than `limit` misses in a row), and begin with an
 * empty ring: every observation that was submitted before is dropped, with what is in flight of it,
 * and no actions of it are given any more; who waits for them is told (tectum_wait). Does not wait
 * for the frame that runs, but for a tectum_submit that runs on another thread. The last command
 * and what runs without a ring stay, but nothing that comes from then on reads texts or keys that
 * were kept before. NULL is allowed. */
TECTUM_API void tectum_reset(struct tectum *engine);

/* Ask for a request of a decode node (NULL: the first one) on the next observation that is run, at
 * most max_tokens long (0, or more than the node's: the node's), with a priority that policies see
 * (0 first). Needed where the pipeline says spawn = on_request(); elsewhere one more. Does not
 * wait: *ticket (NULL is allowed) says later what became of it. TECTUM_NOT_FOUND: no such node;
 * TECTUM_TIME: 64 asks and cancels wait for a frame already. */
TECTUM_API enum tectum_status tectum_ask(struct tectum *engine, const char *node, int max_tokens,
                                         int priority, int64_t *ticket, struct tectum_error *err);

/* Give a request up: its text ends with the reason "cancelled". As tectum_ask, but no observation
 * is needed. */
TECTUM_API enum tectum_status tectum_cancel(struct tectum *engine, int64_t request, int64_t *ticket,
                                            struct tectum_error *err);

/* What became of a ticket. */
struct tectum_outcome {
    int64_t ticket, request; /* its number, also when it was refused */
    int refused;             /* 1: there is no such request, or none any more */
    char reason[32];         /* why: "no kv slot", a policy's word; "not alive" of a cancel */
};

/* Wait for a ticket's outcome (timeout_ns as for tectum_wait, then TECTUM_TIME). TECTUM_NOT_FOUND:
 * never given, or one of 64 tickets ago. */
TECTUM_API enum tectum_status tectum_asked(struct tectum *engine, int64_t ticket,
                                           int64_t timeout_ns, struct tectum_outcome *outcome,
                                           struct tectum_error *err);

/* One step of one request's text. */
struct tectum_piece {
    int64_t request;     /* number, from 0 upward */
    int64_t observation; /* whose prefix it reads */
    char node[64];       /* the decode node */
    int token;           /* its id, or -1: the end of the text */
    size_t bytes;        /* of text */
    char text[4096];     /* whole UTF-8 characters, NUL-terminated; "" without a tokenizer */
    int truncated;       /* 1 at the end: tokens were lost, pieces were read too late */
    char reason[32];     /* at the end: "eos", "length", or why it was dropped */
};

/* The next piece, over all requests in the order they were made; each is given once. TECTUM_TIME
 * when none comes within timeout_ns (as for tectum_wait). */
TECTUM_API enum tectum_status tectum_read(struct tectum *engine, int64_t timeout_ns,
                                          struct tectum_piece *piece, struct tectum_error *err);

/* A text that a score node ranks: its place among the node's candidates, and the sum (or mean, as
 * the node says) of the log-probabilities of its tokens. */
struct tectum_ranked {
    int index;
    double log_likelihood; /* NaN: the model gave none */
};

struct tectum_ranking {
    int64_t request;     /* whose pieces say the likeliest text, and end with "ranked" */
    int64_t observation; /* whose prefix was read */
    int n;               /* candidates */
};

/* The newest ranking of a score node (NULL: the first one), if it is of request `from` or a later
 * one; else wait for such (timeout_ns as for tectum_wait, then TECTUM_TIME). ranked: the likeliest
 * first, equals in the order of the candidates; `room` of them: TECTUM_INVALID when that is too few
 * (ranking->n says how many). TECTUM_NOT_FOUND: no such score node. */
TECTUM_API enum tectum_status tectum_ranking(struct tectum *engine, const char *node, int64_t from,
                                             int64_t timeout_ns, struct tectum_ranked *ranked,
                                             size_t room, struct tectum_ranking *ranking,
                                             struct tectum_error *err);

/* A candidate's text, as long as the engine is open; NULL: no such node or index. */
TECTUM_API const char *tectum_candidate(const struct tectum *engine, const char *node, int index);

/* Texts so far that no prompt could be made of: the prefill that waited for one kept the prompt
 * that it had (doc/values.md). first, which may be NULL, then has where and why, of the first of
 * them and of whichever session. For any thread. 0: none, first->message is "". */
TECTUM_API int64_t tectum_unread(const struct tectum *engine, struct tectum_error *first);

#ifdef __cplusplus
}
#endif

#endif
