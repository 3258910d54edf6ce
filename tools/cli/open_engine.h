/* open_engine.h - what a verb that runs frames works with: pipeline, engine, policies. */
#ifndef TEC_TOOLS_CLI_OPEN_ENGINE_H
#define TEC_TOOLS_CLI_OPEN_ENGINE_H

#include "graph/run/engine/engine.h"
#include "policies/host/canary.h"
#include "tools/cli/open_pipeline.h"

/* Owned by the caller of open until close; must not move in between. */
struct tec_opened {
    struct tec_invocation *call;   /* borrowed */
    struct tec_pipeline *pipeline; /* with --set applied */
    struct tec_engine *engine;
    struct tec_policy *policy;      /* the one in use; NULL before tec_use_policy, with a canary */
    struct tec_policy *fallback;    /* that of the guard; NULL = the default plan */
    struct tec_canary *canary;      /* NULL: the policy in use stays */
    struct tec_weight_cache cache;  /* as --weights-cache says */
    int kept;                       /* models whose packed weights are in a file that fits */
    struct tec_engine_options more; /* as given to open */
    bool unprepared;                /* more.prepared has failed */
};

/* Load the pipeline file and open its engine as the shared options say. What is wrong with the file
 * is printed on stderr as `check` does it, with its place; then the failure names the first error.
 * Where call->warns is set, so is what `check` warns of.
 * `more` (may be NULL) gives what no shared option says: dtype, exact, saturated, actions, settles,
 * forgets, starts, released, user, events, shares, others; its other members are ignored. Loading
 * tells its progress on a terminal. No policy is in use yet. */
enum tec_status tec_cli_open_engine(struct tec_opened *out, struct tec_invocation *call,
                                    const char *path, const struct tec_engine_options *more,
                                    struct tec_error *err);
void tec_close_engine(struct tec_opened *opened); /* zeroed is allowed */

/* Only the pipeline, and the options for tec_engine_measure or tec_engine_open. */
enum tec_status tec_cli_open_options(struct tec_opened *out, struct tec_engine_options *options,
                                     struct tec_invocation *call, const char *path,
                                     const struct tec_engine_options *more, struct tec_error *err);

/* The same for tec_engine_simulate: --device, --threads and --tier name the robot's, which need not
 * be here, so that the plan is made for a CPU whatever they say. */
enum tec_status tec_cli_open_simulated(struct tec_opened *out, struct tec_engine_options *options,
                                       struct tec_invocation *call, const char *path,
                                       const struct tec_engine_options *more,
                                       struct tec_error *err);

/* The status of an engine or a policy that was opened from files alone: what they say does not fit,
 * which is no mistake of the command line. */
enum tec_status tec_opened_status(enum tec_status status);

/* Let this policy plan from the next frame on, in place of the one in use: a name or a file, NULL =
 * --policy, or what the pipeline names, or the default plan. Parameters are the pipeline's where it
 * is the pipeline's policy, then those of --param; limits are the pipeline's guard, whose fallback
 * is loaded with it. On failure the policy in use stays. No canary may be there yet. */
enum tec_status tec_use_policy(struct tec_opened *opened, const char *name, struct tec_error *err);

/* From the next frame on a canary holds the policy in use: it can be replaced while frames run.
 * `closing`: see struct tec_canary_options. */
enum tec_status tec_use_canary(struct tec_opened *opened,
                               void (*closing)(void *user, struct tec_policy *policy), void *user,
                               struct tec_error *err);

/* "oxygen"; "default" when no policy was asked for. Not while a loader thread may close policies:
 * a frame's record names the policy of that frame. */
const char *tec_used_policy(const struct tec_opened *opened);

/* "k=5,margin=0.05" behind `before`, a comma between them: what the policy's parameters are. It
 * lives in the arena; NULL without memory. `policy` may be NULL, which has none. */
char *tec_used_params(struct tec_arena *arena, const struct tec_policy *policy, const char *before);

/* The policy in use, that in force where there is one; under the same rule. */
struct tec_policy *tec_cli_policy_in_use(const struct tec_opened *opened);

#endif
