/* replay_follow.h - frames of a replay decided as the recording says; by the policy where it does
 * not. */
#ifndef TEC_TOOLS_RECORD_REPLAY_FOLLOW_H
#define TEC_TOOLS_RECORD_REPLAY_FOLLOW_H

#include "tools/frames/frames.h"
#include "tools/record/recorded_decided.h"

/* Frames of one kind: how many, and the first of them. */
struct tec_replay_frames {
    int64_t n, first[4];
};

/* Zeroed: the policy decides every frame. */
struct tec_replay_follow {
    struct tec_heap *heap;
    const struct tec_topology *topology;
    struct tec_following following;
    struct tec_decided *next; /* of the frame that comes */
    bool known;               /* it has been read */
    bool any;                 /* one has, of whatever frame */
    int64_t followed;         /* frames so far */
    /* Whose decisions are missing, or name what the pipeline does not have; in which other requests
     * lived than then. */
    struct tec_replay_frames missing, strange, others;
    int64_t frame; /* that runs */
    bool own;      /* there are decisions of it */
};

/* Do options that a call gives say what decides, or by what: --policy, --param, --costs, --set
 * policy..., --set of a deadline? To be asked before the recording's are taken over. */
bool tec_replay_decides_afresh(const struct tec_shared *given);

/* Behind the choice of the policy, which is asked where nothing is recorded. TEC_NO_MEMORY. */
enum tec_status tec_replay_follow_open(struct tec_replay_follow *f, const struct tec_engine *engine,
                                       struct tec_heap *heap, struct tec_error *err);
void tec_replay_follow_close(struct tec_replay_follow *f); /* zeroed is allowed */

/* A message of decisions, in front of its frame. TEC_MALFORMED. */
enum tec_status tec_replay_follow_take(struct tec_replay_follow *f, const json_t *json,
                                       struct tec_error *err);

/* Around a frame: `first` of its ticks; decisions that were not taken are looked for from the
 * file's place on. TEC_MALFORMED. */
enum tec_status tec_replay_follow_begin(struct tec_replay_follow *f, struct tec_mcap_reader *file,
                                        const struct tec_frame_again *first, struct tec_error *err);
void tec_replay_follow_end(struct tec_replay_follow *f);

/* On stderr, where the policy has decided anything: why, and in which frames. */
void tec_replay_follow_tell(const struct tec_replay_follow *f, const struct tec_invocation *call,
                            const char *path);

#endif
