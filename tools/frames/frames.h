/* frames.h - one frame after another: values observed, the loop run, actions and texts collected.
 */
#ifndef TEC_TOOLS_FRAMES_FRAMES_H
#define TEC_TOOLS_FRAMES_FRAMES_H

#include "graph/live/runtime.h"
#include "graph/live/text_cursor.h"
#include "tools/cli/open_engine.h"
#include "tools/frames/inputs.h"
#include "tools/record/view.h"

/* The tokens that a request's text gained in a frame. */
struct tec_frame_text {
    int64_t request;
    int session;
    int decoder; /* index into decoders of struct tec_frames */
    int n;
    const int *tokens; /* [n] new ones */
    const char *text;  /* the text of these tokens; a request's texts, joined, are the sentence */
    bool done;
    const char *reason; /* of done: "eos", "length", or why it was shed; else "" */
    const char *whole;  /* the sentence when done, else NULL */
    int n_whole;
    const int *all; /* [n_whole] every token of it so far */
    int n_ranked;   /* when done: the ranked texts, the likeliest first; 0 = none */
    const struct tec_ranked *ranked;
    const struct tec_texts *list; /* the list that the ranked indices refer to */
};

/* Actions that left in a frame, or what stands for those that it leaves out. */
struct tec_frame_left {
    int action;   /* whose: index into actions of struct tec_frames */
    int64_t seen; /* number of the frame whose observation they are of */
    int64_t age_us, released_ns;
    enum tec_action_source source; /* FRESH with a watchdog, which decides the source itself */
    struct tec_beyond beyond;      /* values beyond the limits; refused actions were replaced */
    int rows, columns;     /* of actions; fewer rows than there are where one is not finite */
    const double *actions; /* [rows, columns] of the robot; NULL with a watchdog */
    const float *chunk;    /* [horizon, dim] of the model; NULL: the frame leaves the action out */
    const double *state_raw; /* of that observation */
};

/* The results of one frame; valid until the next one. */
struct tec_frame_out {
    const struct tec_frame_record *record;
    bool observed;
    struct tec_frame_input input; /* where observed */
    /* The first action's, what left last; of others left[] says it. */
    bool acted;
    enum tec_action_source source;
    struct tec_beyond beyond;
    int rows, columns;
    const double *actions; /* [rows, columns] of the robot */
    const float *chunk;    /* [horizon, dim] of the model; NULL: the frame leaves it out */
    int n_left;            /* one of each action, but in a ring that has become less deep */
    const struct tec_frame_left *left; /* [n_left] in the order in which they left */
    char warning[200];                 /* "" or a sentence */
    int n_texts;
    const struct tec_frame_text *texts; /* ascending by request */
    int n_asks, n_cancels;
    const struct tec_ask *asks; /* [n_asks] with what became of them */
    const int64_t *cancels;     /* [n_cancels] */
    const bool *cancelled;      /* [n_cancels] it was alive */
};

/* Reads one text record. */
struct tec_frame_reader {
    struct tec_text_cursor at;
    bool reads; /* there is a tokenizer */
    struct tec_detokenizer speaker;
};

/* What is one session's. */
struct tec_frames_session {
    struct tec_action_output *outputs[TEC_MAX_ACTIONS]; /* without watchdogs: the last command, and
                                                         * the robot's limits */
    int n_left;
    struct tec_frame_left *left; /* [max_left] */
    float *chunks;               /* [max_left, chunk] */
    double *numbers;             /* [max_left, actions_size] */
    int n_asks, n_cancels;       /* of the next frame */
    struct tec_ask asks[TEC_MAX_ASKS];
    int64_t cancels[TEC_MAX_ASKS];
    bool cancelled[TEC_MAX_ASKS];
    struct tec_counted counted; /* what texts are counted by */
    int64_t number;             /* of the frame: that of its noise */
    const float *noise;         /* of the frame, as given; NULL: drawn */
    struct tec_frame_out out;
    struct tec_memory_counts remembered[TEC_MAX_MEMORIES]; /* of its memories, before the frame */
};

/* Owned by the caller of open until close; must not move in between. */
struct tec_frames {
    struct tec_opened opened;
    const struct tec_model *model;
    int n_actions; /* of nodes that make actions, the robot's first */
    const char *actions[TEC_MAX_ACTIONS];
    int stages; /* of a ring; 0 = none */
    int n_decoders;
    const char *decoders[TEC_MAX_DECODERS];
    const struct tec_texts *lists[TEC_MAX_DECODERS]; /* of each node; n 0: any text */
    int64_t frame, began_ns; /* frames so far; the clock when the first one was opened */
    struct tec_clock clock;
    struct tec_runtime runtime; /* where it has watchdogs, whoever takes from them makes robot
                                 * actions: `out` has none then */
    size_t chunk;               /* numbers of the model's */
    int max_left;
    size_t actions_size; /* rows x columns, the most of any action node */
    int n_sessions;
    struct tec_frames_session *sessions; /* [n_sessions] */
    struct tec_frame_reader *readers;
    struct tec_frame_text *texts;
    struct tec_recording *recording; /* borrowed; NULL: nothing is recorded */
    struct tec_view *view;           /* borrowed; NULL: nobody looks */
    bool reset;                      /* since the newest frame */
    struct tec_arena arena, moment;
};

/* What comes of one session: n values, or NULL for no observation. */
struct tec_frame_given {
    const struct tec_value *values;
    size_t n;
};

/* A session's part in a frame that has run before, as its record says. */
struct tec_frame_again {
    int session;
    int64_t number, frame, ahead, counted; /* of its noise; of its tick */
    unsigned spawn, mute;
    bool rests;
    const float *noise; /* [horizon, dim]; NULL: drawn */
    struct tec_frame_given given;
};

/* Open the engine for frames that follow each other, with the policy asked for. `dtype`: "f32",
 * "bf16", NULL = the pipeline's. */
enum tec_status tec_frames_open(struct tec_frames *f, struct tec_invocation *call, const char *path,
                                const struct tec_engine_options *more, struct tec_error *err);
/* Open the engine for frames at the pipeline's period; TEC_INVALID if it has none. */
enum tec_status tec_frames_open_paced(struct tec_frames *f, struct tec_invocation *call,
                                      const char *path, const struct tec_engine_options *more,
                                      struct tec_error *err);
void tec_frames_close(struct tec_frames *f); /* zeroed is allowed */

/* Requests of a session that the next frame starts or gives up. */
void tec_frames_ask(struct tec_frames *f, int session, const struct tec_input_asks *asks);

/* Run one frame, whose tick is now: preparing the values is in its deadline. values NULL: no
 * observation. `noise` [horizon, dim] or NULL. On failure nothing
 * has run. The frame's number is that of its noise. */
enum tec_status tec_frames_next(struct tec_frames *f, const struct tec_value *values, size_t n,
                                const float *noise, const struct tec_frame_out **out,
                                struct tec_error *err);

/* The same of all sessions together: `given` [n_sessions]. What came of each is sessions[].out;
 * `failed` gets the session whose values were refused. */
enum tec_status tec_frames_next_of_all(struct tec_frames *f, const struct tec_frame_given *given,
                                       const float *noise, int *failed, struct tec_error *err);

/* The same of the sessions that were in a frame that has run before, in their order then, which is
 * that of their deadlines. What came of the others is nothing. */
enum tec_status tec_frames_again(struct tec_frames *f, const struct tec_frame_again *parts, int n,
                                 struct tec_error *err);

/* The same of tick f->frame, which was due at `tick_ns`, when its observations were captured, so
 * preparing the values counts as part of the frame's time. `waited_ns`: for how long they
 * were waited for after it; that and the time of preparing them is the inputs' own lateness, and
 * the rest until the frame begins is the host's. Set f->frame before. */
enum tec_status tec_frames_tick(struct tec_frames *f, int64_t tick_ns, int64_t waited_ns,
                                const struct tec_frame_given *given, const float *noise,
                                int *failed, struct tec_error *err);

/* Drop every request and start over with frame 0. */
void tec_frames_reset(struct tec_frames *f);

/* Returns what left last of an action in the frame; NULL = nothing. */
const struct tec_frame_left *tec_frame_left_of(const struct tec_frame_out *frame, int action);

/* Most rows in one decode launch of the frame, and launches of decode nodes. */
int tec_frame_batch(const struct tec_frames *f, const struct tec_frame_record *record,
                    int *launches);

#endif
