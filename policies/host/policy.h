/* policy.h - scheduling policies written in Lua, as planners for the frame loop.
 *
 * A policy runs inline on the frame thread, in a bounded state that allocates nothing in steady
 * state. Whatever it does wrong, the frame gets the default plan and the policy a strike; after
 * `strikes` of them within `window_frames` frames with an observation it is not asked any more. Not
 * thread-safe: open
 * anywhere, then one owner at a time (the frame thread). What other threads may call says so. */
#ifndef TEC_POLICIES_HOST_POLICY_H
#define TEC_POLICIES_HOST_POLICY_H

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "graph/run/launch/planner.h"

#include <stdio.h>

enum { TEC_MAX_PARAMS = 16, TEC_MAX_STRIKES = 16 };

/* A member that is 0 takes its default. */
struct tec_policy_limits {
    int soft_us;          /* a call that takes longer is counted as slow; 100 */
    int hard_us;          /* a call that takes longer, or all of admit and evict in a frame, is
                             ended: a strike; 500. So is one that nothing could end in time, but
                             that took 200 us more of the CPU than it had. */
    int setup_us;         /* loading and setup; 100000 */
    int state_us;         /* copying the state for a new version, at the end of a frame; 300 */
    size_t heap;          /* bytes of Lua memory; 512 KiB. It bounds the longest collection. */
    size_t block, string; /* largest block, 64 KiB; largest string, 4 KiB */
    int strikes;          /* 3; at most TEC_MAX_STRIKES */
    int window_frames;    /* 1000 */
};

/* A parameter's value from the pipeline file or the command line. */
struct tec_param_value {
    const char *name;
    double value;
};

/* One parameter as declared. Integers are exact: at most 2^53. */
struct tec_param {
    char name[32];
    bool is_int;
    double value, def, min, max;
};

/* The record of a policy: calls, failures, strikes. */
struct tec_policy_report {
    int strikes;          /* within the window that ends with the last failure */
    bool quarantined;     /* not asked any more: its fallback is, from the next frame on */
    bool standby;         /* the fallback decides, by quarantine or by order */
    int64_t calls;        /* hooks called */
    int64_t failures;     /* calls that ended in an error */
    int64_t struck;       /* strikes so far: failures, and windows full of missed deadlines */
    int64_t slow;         /* calls over soft_us */
    int64_t costly;       /* calls over soft_us of CPU time, of those on trial */
    int64_t last_ns;      /* duration of the newest plan */
    int64_t last_failure; /* frame of the last strike, -1 = none */
    char message[480];    /* of the last strike, one line */
};

struct tec_policy;

/* Whether a policy's name is a path: it contains '/' or ends in ".lua". */
bool tec_policy_is_path(const char *name);

/* The file that a policy's name means: a path as it is, or root/policies/<name>.lua. TEC_INVALID
 * when it is too long. */
enum { TEC_POLICY_PATH = 4096 };
enum tec_status tec_policy_path(char path[TEC_POLICY_PATH], const char *name, const char *root,
                                struct tec_error *err);

/* Load a policy and run its setup. `name` is as tec_policy_path takes it. `topology` is borrowed
 * for the life of the policy, `params` for the call. TEC_NOT_FOUND for an unknown name,
 * TEC_INVALID for an unknown parameter or a value out of range, TEC_UNSUPPORTED when the pipeline
 * lacks an axis that the policy needs, TEC_MALFORMED, TEC_POLICY, TEC_TIME or TEC_NO_MEMORY when
 * the file is wrong or misbehaves. */
enum tec_status tec_policy_open(struct tec_policy **out, const char *name, const char *root,
                                const struct tec_topology *topology,
                                const struct tec_policy_limits *limits,
                                const struct tec_param_value *params, int n_params,
                                struct tec_heap *heap, struct tec_error *err);
void tec_policy_close(struct tec_policy *policy); /* NULL is allowed */

/* The planner that asks this policy, or its fallback; valid until close. A refused request's reason
 * is one printable line. evict gives the index of a row of the view, or -1: the loop chooses. */
struct tec_planner tec_policy_planner(struct tec_policy *policy);

/* Sets the policy that decides from the frame after a quarantine on: another policy, borrowed and
 * owned by the same thread, or NULL, the default plan. A fallback that fails too often in turn
 * leaves the default plan: its own fallback is not asked. For the owner. */
void tec_policy_set_fallback(struct tec_policy *policy, struct tec_policy *fallback);

/* Is it only asked beside another one, to be judged? Then it does not answer for deadlines that are
 * missed, and the CPU time of its calls is taken (report.costly). Either way the count of missed
 * deadlines begins anew. At first it is not. For the owner. */
void tec_policy_on_trial(struct tec_policy *policy, bool on_trial);

/* Orders of an operator, from any thread, obeyed when the next frame begins: let the fallback
 * decide now; let the policy decide again, with its strikes cleared. */
void tec_policy_fallback_now(struct tec_policy *policy);
void tec_policy_reinstate(struct tec_policy *policy);

/* Change a parameter between two calls; the policy sees it from the next one on. For the owner. */
enum tec_status tec_policy_set_param(struct tec_policy *policy, const char *name, double value,
                                     struct tec_error *err);

/* Change a parameter from any thread while frames run: the value is checked at once, and the policy
 * sees it from the beginning of the next frame on. Of several values for a parameter the last one
 * counts. Lock-free. */
enum tec_status tec_policy_post_param(struct tec_policy *policy, const char *name, double value,
                                      struct tec_error *err);

/* The record of the last 64 frames. It may be read when it is held: from the frame after a
 * quarantine on by itself, else once hold was called and another frame has begun (hold says true
 * when it is so), or by the owner when no frame runs. A policy whose record is held goes on, but is
 * not recorded until go_on. hold and go_on may be called by any one thread beside the owner. */
bool tec_policy_hold(struct tec_policy *policy);
void tec_policy_go_on(struct tec_policy *policy);

/* Write the record as JSON lines: one about the policy and its last failure with the Lua traceback,
 * then one for each frame, oldest first: view, costs that plan asked for, decision, duration,
 * result. A line is whole or not there: TEC_NO_MEMORY. Whether it could be written, `to` knows. */
enum tec_status tec_policy_dump(struct tec_policy *policy, FILE *to, struct tec_error *err);

const char *tec_policy_name(const struct tec_policy *policy);
int tec_policy_version(const struct tec_policy *policy);

/* Parameter i in order of name, or NULL past the last one. */
const struct tec_param *tec_policy_param(const struct tec_policy *policy, int i);

/* State of the policy; valid until the next call. */
const struct tec_policy_report *tec_policy_report(const struct tec_policy *policy);

/* Lua's allocations since it was opened: constant in steady state. */
int64_t tec_policy_allocations(const struct tec_policy *policy);

#endif
