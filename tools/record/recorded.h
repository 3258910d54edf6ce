/* recorded.h - a recording read back frame by frame: what came in, and what left then. */
#ifndef TEC_TOOLS_RECORD_RECORDED_H
#define TEC_TOOLS_RECORD_RECORDED_H

#include "tools/frames/frames.h"
#include "tools/record/mcap_read.h"

/* A tick, with the values that were there for it: until the session's next tick but one, so that
 * who finds a frame over only by its next tick still has it. */
struct tec_recorded_frame {
    int64_t tick_us;
    enum tec_recorded_reset reset;
    struct tec_input_asks asks;
    size_t n_noise; /* of again.noise */
    struct tec_frame_again again;
};

/* Values of an observation. */
struct tec_recorded_inputs {
    struct tec_arena arena;
    int64_t number;
    size_t n;
    struct tec_value values[TEC_MAX_INPUTS];
};

/* What is kept of a session. */
struct tec_recorded_session {
    struct tec_arena moments[2]; /* what a tick points to beside its values: the last two ticks' */
    int moment;                  /* the last one's */
    struct tec_recorded_inputs inputs[2];
    int seen; /* those that the last tick with an observation has; the others are filled */
};

/* Owned by the caller of init until finish. */
struct tec_recorded {
    struct tec_mcap_reader *file;
    struct tec_recorded_session sessions[TEC_MAX_SESSIONS];
};

/* What a message is. */
enum tec_recorded_message {
    TEC_RECORDED_TICK,
    TEC_RECORDED_ACTIONS,
    TEC_RECORDED_FRAME,
    TEC_RECORDED_TEXT,
    TEC_RECORDED_SAFETY,    /* of no frame: it may stand between two ticks of one */
    TEC_RECORDED_NOT_BEGUN, /* likewise */
    TEC_RECORDED_DECISIONS,
    TEC_RECORDED_OTHER
};

void tec_recorded_init(struct tec_recorded *r, struct tec_mcap_reader *file, struct tec_heap *heap);
void tec_recorded_finish(struct tec_recorded *r);

/* Take the next message: inputs are kept, a tick fills `frame`, of others `json` is the object, a
 * new reference, and `node` what the topic ends in. false: there are no more. TEC_MALFORMED names
 * the frame and what is wrong with it. */
enum tec_status tec_recorded_next(struct tec_recorded *r, enum tec_recorded_message *what,
                                  struct tec_recorded_frame *frame, json_t **json, char node[120],
                                  bool *more, struct tec_error *err);

/* The object of a message in JSON, a new reference; no object is one, too, or NULL. TEC_MALFORMED.
 */
enum tec_status tec_recorded_object(json_t **json, const struct tec_mcap_message *m,
                                    struct tec_error *err);

/* The value of an input's message in JSON; the name is not filled in. It lies in the arena.
 * TEC_MALFORMED. */
enum tec_status tec_recorded_value(struct tec_value *v, const struct tec_mcap_message *m,
                                   struct tec_arena *arena, struct tec_error *err);

/* TEC_MALFORMED, with the message's topic and frame in front of `what`. */
enum tec_status tec_recorded_malformed(const struct tec_mcap_message *m, const char *what,
                                       struct tec_error *err);

/* Misses that no frame was run for, by cause, out of /tectum/not_begun. Their sum is an int64, too.
 * TEC_MALFORMED. */
enum tec_status tec_recorded_not_begun(int64_t out[TEC_CAUSES], const json_t *json,
                                       struct tec_error *err);

/* Did a text with this reason come to its end? One that was given up, by its deadline or the
 * policy, is as long as time allowed. NULL: it has none yet. */
bool tec_recorded_whole(const char *reason);

#endif
