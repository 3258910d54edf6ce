/* check_policies.c - loads the policies that a pipeline names; says where one is wrong. */
#include "tools/cli/check_policies.h"

#include "graph/load/pipeline_texts.h"
#include "tools/api/topology.h"

#include <math.h>
#include <string.h>

/* A policy that a pipeline names at that place cannot be used: an error of the file. */
static void refuse_policy(struct tec_diagnostics *d, struct tec_where where, enum tec_status status,
                          const char *message)
{
    tec_diagnostics_add(d, status == TEC_NOT_FOUND ? TEC_E021 : TEC_E011, where, "%s", message);
}

static bool has_param(const struct tec_policy *policy, const char *name)
{
    const struct tec_param *p;
    for (int i = 0; (p = tec_policy_param(policy, i)); i++)
        if (strcmp(p->name, name) == 0)
            return true;
    return false;
}

/* One that the policy does not take, which --set may have named in place of the one it is of. */
static void refuse_param(struct tec_diagnostics *d, const struct tec_pipeline *pipeline,
                         const struct tec_policy *policy, const struct tec_decl_place *param,
                         const char *message)
{
    bool unknown = !has_param(policy, param->name);
    struct tec_diagnostic *entry =
        tec_diagnostics_add(d, unknown ? TEC_E021 : TEC_E011, param->where, "%s", message);
    if (unknown && tec_live_policy_is_set(pipeline))
        tec_diagnostics_help(d, entry,
                             "--set policy.name keeps the parameters of the file, --policy %.60s "
                             "does not",
                             tec_policy_name(policy));
}

/* The parameters that the file gives its policy: each that is wrong is told at its place. False:
 * none is, or the policy cannot be opened without them either. */
static bool refuse_params(struct tec_invocation *call, const struct tec_pipeline *pipeline,
                          const struct tec_topology *topology, struct tec_diagnostics *d)
{
    struct tec_pipeline bare = *pipeline;
    struct tec_policy *policy = NULL;
    struct tec_error why;
    int before = d->n_errors;
    bare.policy.params = NULL;
    if (tec_open_policy(&policy, &bare, NULL, call->root, topology, NULL, 0, call->heap, &why) !=
        TEC_OK)
        return false;
    for (int i = 0; policy && i < pipeline->policy.places.n; i++) {
        const struct tec_decl_place *param = &pipeline->policy.places.item[i];
        const json_t *value = json_object_get(pipeline->policy.params, param->name);
        double number = json_is_number(value) ? json_number_value(value) : (double)NAN;
        enum tec_status status = tec_policy_set_param(policy, param->name, number, &why);
        if (status != TEC_OK)
            refuse_param(d, pipeline, policy, param, why.message);
    }
    tec_policy_close(policy);
    return d->n_errors > before;
}

/* The policy that takes over when the other one fails. */
static enum tec_status check_fallback(struct tec_invocation *call,
                                      const struct tec_pipeline *pipeline,
                                      const struct tec_topology *topology,
                                      struct tec_diagnostics *d, struct tec_error *err)
{
    struct tec_policy *fallback = NULL;
    struct tec_error mine = {0};
    int64_t refused = atomic_load(&call->heap->refused);
    enum tec_status status =
        tec_open_fallback(&fallback, pipeline, call->root, topology, call->heap, &mine);
    if (status == TEC_NO_MEMORY && atomic_load(&call->heap->refused) != refused)
        return tec_fail(err, status, "%s", mine.message);
    if (status != TEC_OK)
        refuse_policy(d, pipeline->guard.where_fallback, status, mine.message);
    tec_policy_close(fallback);
    return TEC_OK;
}

enum tec_status tec_cli_check_policies(struct tec_invocation *call,
                                       const struct tec_pipeline *pipeline,
                                       struct tec_diagnostics *d, struct tec_error *err)
{
    struct tec_topology topology;
    struct tec_policy *policy = NULL;
    struct tec_error mine = {0};
    TEC_TRY(tec_live_topology_of(&topology, pipeline, 0, 0, call->arena, err));
    int64_t refused = atomic_load(&call->heap->refused);
    enum tec_status status =
        tec_open_policy(&policy, pipeline, call->shared.policy, call->root, &topology,
                        call->shared.param.item, call->shared.param.n, call->heap, &mine);
    struct tec_where where =
        pipeline->policy.where_name.file ? pipeline->policy.where_name : pipeline->where;
    bool ours = status == TEC_NO_MEMORY && atomic_load(&call->heap->refused) != refused;
    bool words = status == TEC_INVALID && call->shared.param.n;
    if ((call->shared.policy || words || ours) && status != TEC_OK) /* else a limit of its own */
        return tec_fail(err, status, "%s", mine.message);
    if (status != TEC_OK && !refuse_params(call, pipeline, &topology, d))
        refuse_policy(d, where, status, mine.message);
    tec_pipeline_check_policy(pipeline, call->shared.policy, d);
    tec_policy_close(policy);
    return check_fallback(call, pipeline, &topology, d, err);
}
