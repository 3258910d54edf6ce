/* canary.h - a new policy on trial beside the one in force, and the one before it, to go back to.
 *
 * A canary is a planner. The frame thread calls that planner and nothing else here; in it nothing
 * allocates, frees or locks. One loader thread at a time calls all other functions: it builds a new
 * policy beside the running one, hands it the old one's state, and closes what was replaced. The
 * two meet in atomics and rings only. When no frame runs, one thread may be both.
 *
 *     tec_canary_load(c, "new.lua", ...)      a fresh policy is built: parse, setup (loader)
 *     the end of a frame                      the running policy's state is copied (frame thread)
 *     tec_canary_poll(c)                      migrate(copy, version), hand over (loader)
 *     `trial_frames` frames                   decides on the real views too; decisions are compared
 *                                             and thrown away (frame thread)
 *     the next frame                          it is in force, the old one stays at hand
 *     a failure in its first `probation_frames` frames: the old one is back in the next frame
 *
 * Every failure on this way leaves the running policy where it is. In its trial a candidate may
 * cost a frame its own time limit once: the first failure ends the trial. One whose calls take more
 * than soft_us of CPU time in more than a tenth of as many calls as the trial has frames is
 * rejected, too. */
#ifndef TEC_POLICIES_HOST_CANARY_H
#define TEC_POLICIES_HOST_CANARY_H

#include "policies/host/policy.h"

/* A member that is 0 takes its default. */
struct tec_canary_options {
    const struct tec_topology *topology; /* borrowed */
    const char *root;                    /* borrowed; see tec_policy_open */
    struct tec_policy_limits limits;     /* of the policies it loads */
    int trial_frames;                    /* with an observation; 100; negative: none */
    int probation_frames;                /* with an observation; 1000 */
    size_t state;                        /* largest state that is handed on; 64 KiB */
    struct tec_policy *fallback; /* borrowed: who decides after a quarantine; NULL: nobody */
    /* Called on the loader thread with each policy that is about to be closed, NULL = not. */
    void (*closing)(void *user, struct tec_policy *policy);
    void *user;
};

enum tec_canary_event_kind {
    TEC_CANARY_TRIAL,    /* the candidate is asked beside the policy */
    TEC_CANARY_ADOPTED,  /* it is in force */
    TEC_CANARY_REJECTED, /* it failed on trial, or was dropped by order */
    TEC_CANARY_RETURNED, /* it failed in force: the previous policy is back */
    TEC_CANARY_ROLLBACK, /* the previous policy is back, by order */
    TEC_CANARY_FALLBACK, /* the policy was quarantined or stood down: the fallback decides */
    TEC_CANARY_SET       /* a parameter was set, by order; whoever takes the order tells it */
};

/* The comparison of the candidate with the policy in force. Times are those of plan's calls. */
struct tec_canary_trial {
    int64_t frames, differing, first_differing; /* frame of the first one, -1 = none */
    int64_t differing_between; /* of the frames between observations, which are not in `frames` */
    int64_t other_answers;     /* of admit and evict */
    int64_t policy_ns, candidate_ns; /* sums */
    int64_t policy_max_ns, candidate_max_ns;
};

struct tec_canary_event {
    enum tec_canary_event_kind kind;
    int64_t frame;
    char policy[64]; /* that the event is about */
    int version;
    struct tec_canary_trial trial; /* of the latest candidate */
    char message[480];             /* one line, "" = none */
};

struct tec_canary;

/* Takes `first` on success, an open policy of the same topology. */
enum tec_status tec_canary_create(struct tec_canary **out, const struct tec_canary_options *options,
                                  struct tec_policy *first, struct tec_heap *heap,
                                  struct tec_error *err);

/* Closes all its policies; no frame may run. NULL is allowed. */
void tec_canary_destroy(struct tec_canary *canary);

/* The public state of a canary, as it was when the last frame ended. */
struct tec_canary_status {
    int64_t frame;                                /* that ended; -1 = none yet */
    char policy[64], previous[64], candidate[64]; /* "" = none */
    int version, previous_version, candidate_version;
    char decides[64]; /* whose plan the frame ran: the policy, its fallback, "default" */
    struct tec_policy_report report;
    struct tec_canary_trial trial; /* of the latest candidate */
    int trial_frames;              /* that a trial takes */
    int n_params;
    struct tec_param params[TEC_MAX_PARAMS];
};

/* The planner for the frame loop; who decides is the policy in force, or its fallback. Valid
 * until destroy. */
struct tec_planner tec_canary_planner(struct tec_canary *canary);

/* Do the work of the end of a frame, for a frame thread that stands idle. */
void tec_canary_rest(struct tec_canary *canary);

/* Load a policy as candidate. TEC_INVALID while another one is on its way or on trial; otherwise
 * as tec_policy_open. *version (NULL: not asked for) is the file's. What follows happens by itself,
 * as long as poll is called. */
enum tec_status tec_canary_load(struct tec_canary *canary, const char *name,
                                const struct tec_param_value *params, int n_params, int *version,
                                struct tec_error *err);

/* The loader's share of the work, never waiting: hands a loaded policy on as soon as the state has
 * been copied, closes what was replaced. On failure the candidate is closed, the policy stays. */
enum tec_status tec_canary_poll(struct tec_canary *canary, struct tec_error *err);

/* Does a loaded policy still wait for the state, which is copied when a frame ends? Then poll. */
bool tec_canary_waits(const struct tec_canary *canary);

/* Orders, obeyed when the next frame begins. rollback: exchange the policy with the one before it
 * (a second rollback takes that back); nothing happens without one. drop: give up the candidate.
 * fallback_now, reinstate: see tec_policy_fallback_now. */
void tec_canary_rollback(struct tec_canary *canary);
void tec_canary_drop(struct tec_canary *canary);
void tec_canary_fallback_now(struct tec_canary *canary);
void tec_canary_reinstate(struct tec_canary *canary);

/* A parameter of the policy in force; see tec_policy_post_param. */
enum tec_status tec_canary_set_param(struct tec_canary *canary, const char *name, double value,
                                     struct tec_error *err);

/* The policy in force, for what other threads may ask of it. It is closed by poll and destroy
 * only. */
struct tec_policy *tec_canary_policy(struct tec_canary *canary);

/* The newest status; valid until the next call. */
const struct tec_canary_status *tec_canary_look(struct tec_canary *canary);

/* Take the oldest event. False: there is none. At most 64 wait, later ones are lost. */
bool tec_canary_next_event(struct tec_canary *canary, struct tec_canary_event *event);

/* "trial", "adopted", ... */
const char *tec_canary_event_name(enum tec_canary_event_kind kind);

#endif
