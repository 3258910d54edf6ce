/* record.h - what a frame leaves: its record, and the texts that its requests have said. */
#ifndef TEC_GRAPH_RUN_LOOP_RECORD_H
#define TEC_GRAPH_RUN_LOOP_RECORD_H

#include "graph/run/launch/planner.h"

#include <stdatomic.h>

enum { TEC_MAX_LAUNCHES = 2 + 2 * TEC_MAX_ROWS };

/* A text of a list: its index there, and the sum or mean of its tokens' log-probabilities. */
struct tec_ranked {
    int index;
    double likely;
};

/* A request's text, for one reader. Tokens are stored, then `count` is published (release). */
struct tec_utterance {
    int64_t id;
    int decoder, session;
    int64_t frame;           /* that it was born in */
    _Atomic int count, done; /* done: 1 by end or length, 2 shed */
    char reason[32];         /* set before done: "eos", "length", "stop", "choice", "ranked", or why
                              * it was given up */
    int *tokens;             /* [max_tokens]; of a ranking the likeliest text's */
    int n_ranked;            /* set before done, too: of a ranking, the likeliest first */
    struct tec_ranked *ranked;
    int64_t finished_ns;
};

/* The record of one frame. Times on the frame clock, nanoseconds; -1 = did not happen. */
struct tec_launch_record {
    const char *node;
    int rows, batch, k; /* rows of hard nodes: observations */
    int64_t request;    /* private prefill: whose; else -1 */
    int64_t start_ns, end_ns;
};

enum { TEC_MAX_READS = TEC_MAX_CHAINS * TEC_MAX_TEXTS }; /* streams that prefills of a frame read */

/* A text that a prefill of this frame read: of a stream, an earlier version. */
struct tec_read_record {
    const char *node, *stream;
    int64_t request, frame; /* whose text, and the frame it was born in; -1 = the default */
    int64_t age_us;         /* since then, at the frame's start; -1 = the default */
};

/* What became of an action node in a frame; of a ring, of the chunk that left last. */
struct tec_action_record {
    int64_t release_ns, deadline_ns;
    int64_t
        seen; /* frame whose observation the chunk is of: its own but in a ring; -1 = none left */
    int64_t captured_ns; /* of that observation; -1 = none left */
    int64_t age_us;      /* of the observation when its chunk left; -1 = none left */
    int64_t slack_us;    /* until the deadline when the chunk left */
    bool missed;         /* it left after the deadline, or was due and did not leave */
    bool left_out;       /* the decision leaves it out of the frame: nothing leaves, and that is no
                          * miss */
    int over; /* rows of the chunk that were over before it left: the chunk begins behind them, and
               * as many at its end repeat its last one */
    enum tec_cause cause;
    int to_come; /* of a ring: chunks that leave in this frame after the one that left last, but for
                  * sequences that end early */
};

struct tec_frame_record {
    int64_t frame, tick_ns, start_ns, end_ns;
    int session;           /* the tick's */
    int place, n_sessions; /* among those that had this frame together; how many they were.
                            * Launches, tokens and rows are of all of them */
    int n_actions;
    struct tec_action_record actions[TEC_MAX_ACTIONS]; /* [n_actions]; the first is there always */
    int64_t planner_ns;                                /* admission, views, policy, snapping */
    int64_t host_ns;                                   /* everything that was not a replay */
    int64_t waited_ns;    /* of its launches: for keys and values of a memory */
    int64_t stood_ns;     /* of its launches: the whole program stood still; a lower bound */
    int64_t text_late_ns; /* of its texts with a hard deadline: the latest ended so long after it */
    int64_t overrun_us;   /* past a deadline, or the session's next tick: the most */
    bool missed;          /* any of its actions was, such a text, or the session's next tick */
    bool failed; /* the device has (tec_device_failure): this frame's launches and all later ones
                  * made nothing; without a release there are no actions; cause is gpu */
    bool cut; /* language that was decided has not run: a frame of another loop waited, or keys and
               * values of a memory were not there yet */
    enum tec_cause cause;
    int tokens, rows, in_flight, snapped, refused, shed;
    int drafted, kept; /* tokens that drafts proposed; of these what the model would have said */
    int to_come;  /* chunks that leave in this frame after the one that left last, of all nodes */
    int depth;    /* of the first ring, in this frame; 0 without one */
    bool filling; /* some ring of the session has released nothing since its start or its last
                   * flush */
    char policy[64]; /* whose plan it ran */
    int n_reads;
    struct tec_read_record reads[TEC_MAX_READS];
    int n_launches;
    struct tec_launch_record launches[TEC_MAX_LAUNCHES];
};

#endif
