/* topology.h - what a policy may know of a pipeline, from the declaration alone: enough to load a
 * policy and run its setup where no model is there. */
#ifndef TEC_TOOLS_API_TOPOLOGY_H
#define TEC_TOOLS_API_TOPOLOGY_H

#include "graph/load/pipeline.h"
#include "policies/host/policy.h"

/* Fill `t`; what it points to belongs to the pipeline and the arena. `layers` and `horizon` are the
 * model's, 0 where it is not known. */
enum tec_status tec_live_topology_of(struct tec_topology *t, const struct tec_pipeline *pipeline,
                                     int layers, int horizon, struct tec_arena *arena,
                                     struct tec_error *err);

/* A topology with one node of each kind and all axes, to load a policy without a pipeline. */
void tec_live_topology_sample(struct tec_topology *t);

/* Limits of a policy as `guard` says. */
struct tec_policy_limits tec_live_guard_limits(const struct tec_pipeline *pipeline);

/* The policy that `name`, a word of the pipeline's file, means: a bare name as it is; a path beside
 * that file, then under `root` (NULL: none), as paths of descriptions are. Written to `out`.
 * TEC_NOT_FOUND with both folders, TEC_INVALID when it is too long. */
enum tec_status tec_live_own_policy(char out[TEC_POLICY_PATH], const struct tec_pipeline *pipeline,
                                    const char *name, const char *root, struct tec_error *err);

/* Open a pipeline's policy, or `name` in place of it when that is not NULL: parameters (the
 * pipeline's when the policy is its own, by name or by file, then "NAME=VALUE" words) and limits of
 * guard. A path in `name` begins at the current folder. TEC_INVALID: it does not take one of the
 * words, TEC_MALFORMED: one of the pipeline's; else as tec_policy_open. */
enum tec_status tec_open_policy(struct tec_policy **out, const struct tec_pipeline *pipeline,
                                const char *name, const char *root,
                                const struct tec_topology *topology, const char *const *words,
                                int n_words, struct tec_heap *heap, struct tec_error *err);

/* Is the name of the pipeline's policy from --set? Its parameters may be those of another one. */
bool tec_live_policy_is_set(const struct tec_pipeline *pipeline);

/* Open the guard's fallback, a policy like others, to be closed by the caller; NULL for "default",
 * the default plan, which needs none. Fails as tec_open_policy does, after "guard.fallback: ". */
enum tec_status tec_open_fallback(struct tec_policy **out, const struct tec_pipeline *pipeline,
                                  const char *root, const struct tec_topology *topology,
                                  struct tec_heap *heap, struct tec_error *err);

#endif
