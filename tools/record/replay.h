/* replay.h - a recording run again: the same inputs, ticks and requests, and what came of them held
 * against what the recording says. */
#ifndef TEC_TOOLS_RECORD_REPLAY_H
#define TEC_TOOLS_RECORD_REPLAY_H

#include "tools/record/recorded.h"

struct tec_replay_counts {
    int64_t frames, observed;
    int64_t chunks_equal, chunks_differ, chunks_missing; /* missing: of the recording or of the run
                                                          */
    int64_t texts_equal, texts_differ, texts_partial; /* partial: one of the two has more of it, or
                                                       * it has not ended */
    int64_t plans_equal, plans_differ;
    int64_t followed, by_policy; /* frames as the recording decided them; as the policy does now */
    int64_t stops, resets;       /* of the robot, as the recording says */
    bool stopped;                /* at its end */
    int64_t not_begun[TEC_CAUSES]; /* requests, or ticks, that missed before a frame of theirs
                                    * began, as the recording says; by cause */
    double first_stop_s;           /* behind the first frame's tick; negative: before */
    double seconds, recorded_s;
};

struct tec_replay_options {
    const char *path;
    double speed;    /* times as fast as recorded; 0: as fast as it can */
    double every_ms; /* simulated: a server's observations follow each other so; 0: as they came */
    bool diff;       /* print a JSON line for every frame whose plan or actions differ */
    bool empty_memories; /* memories begin empty, whatever they began with then */
    const char *html; /* write a page of what was and what is (replay_page.h) there; NULL: none */
};

/* Run it. Shared options that the call does not give are the recording's. TEC_MALFORMED for a
 * recording without inputs. What is missing of a cut one is said on stderr. */
enum tec_status tec_replay_run(struct tec_replay_counts *out, struct tec_invocation *call,
                               const struct tec_replay_options *options, struct tec_error *err);

#endif
