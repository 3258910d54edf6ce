/* policy.c - opens a policy: from its Lua file to a bounded state that is ready for frames. */
#include "graph/nodes/node.h"
#include "policies/host/host.h"

#include <string.h>

enum { KIB = 1024, NS_PER_US = 1000, STACK = 96, DEPTH = 8 };

static const struct tec_policy_limits default_limits = {.soft_us = 100,
                                                        .hard_us = 500,
                                                        .setup_us = 100000,
                                                        .state_us = 300,
                                                        .heap = (size_t)512 * KIB,
                                                        .block = (size_t)64 * KIB,
                                                        .string = (size_t)4 * KIB,
                                                        .strikes = 3,
                                                        .window_frames = 1000};

#define FILL(member)        \
    if (limits.member <= 0) \
    limits.member = default_limits.member

static struct tec_policy_limits complete(const struct tec_policy_limits *given)
{
    struct tec_policy_limits limits = given ? *given : default_limits;
    FILL(soft_us);
    FILL(hard_us);
    FILL(setup_us);
    FILL(state_us);
    FILL(strikes);
    FILL(window_frames);
    limits.heap = limits.heap ? limits.heap : default_limits.heap;
    limits.block = limits.block ? limits.block : default_limits.block;
    limits.string = limits.string ? limits.string : default_limits.string;
    if (limits.strikes > TEC_MAX_STRIKES)
        limits.strikes = TEC_MAX_STRIKES;
    return limits;
}

/* --- loading ------------------------------------------------------------------------------ */

enum tec_status tec_host_build(struct tec_policy *policy, lua_CFunction function, int extra,
                               struct tec_error *err)
{
    lua_State *L = tec_lua_state(policy->lua);
    lua_pushcfunction(L, function);
    lua_insert(L, -1 - extra);
    lua_pushlightuserdata(L, policy);
    lua_insert(L, -1 - extra);
    return tec_lua_call(policy->lua, 1 + extra, 0, err);
}

static enum tec_status run_file(struct tec_policy *policy, const char *name, const char *root,
                                struct tec_error *err)
{
    TEC_TRY(tec_host_build(policy, tec_host_constructors, 0, err));
    TEC_TRY(tec_host_load_file(policy, name, root, err));
    enum tec_status status = tec_lua_call(policy->lua, 0, 1, err);
    if (status != TEC_OK && err && strstr(err->message, "unknown name 'pipeline'"))
        return tec_fail(err, TEC_MALFORMED, "%s is a pipeline file, a policy was expected", name);
    TEC_TRY(status);
    status = tec_host_build(policy, tec_host_adopt, 1, err);
    if (policy->unfit && status != TEC_OK) {
        status = TEC_UNSUPPORTED;
        if (err)
            err->status = status;
    }
    return tec_context(err, status, "%s", name);
}

/* Check that the initial state is plain data, because a reload hands it on to the next policy. */
static enum tec_status check_state(struct tec_policy *policy, struct tec_error *err)
{
    json_t *json = NULL;
    lua_State *L = tec_lua_state(policy->lua);
    tec_host_push_anchors(L);
    lua_rawgeti(L, -1, A_STATE);
    enum tec_status status = tec_lua_to_json(policy->lua, -1, &json, err);
    lua_pop(L, 2);
    json_decref(json);
    return tec_context(err, status, "policy '%s': state", policy->name);
}

/* Nested calls make Lua allocate its call records now, so that the first frame need not. */
static int nest(lua_State *L)
{
    lua_Integer depth = lua_tointeger(L, 1);
    if (depth > 0) {
        lua_pushcfunction(L, nest);
        lua_pushinteger(L, depth - 1);
        lua_call(L, 1, 0);
    }
    return 0;
}

int tec_host_settle(lua_State *L)
{
    lua_gc(L, LUA_GCCOLLECT);
    lua_gc(L, LUA_GCGEN, 0, 0);
    lua_gc(L, LUA_GCSTOP);
    lua_pushcfunction(L, nest);
    lua_pushinteger(L, DEPTH);
    lua_call(L, 1, 0);
    return 0;
}

static enum tec_status prepare(struct tec_policy *policy, const struct tec_param_value *params,
                               int n_params, struct tec_error *err)
{
    lua_State *L = tec_lua_state(policy->lua);
    TEC_TRY(check_state(policy, err));
    TEC_TRY(tec_host_build(policy, tec_host_views, 0, err));
    TEC_TRY(tec_host_take_values(policy, params, n_params, err));
    TEC_TRY(tec_host_build(policy, tec_host_set_params, 0, err));
    policy->params_moved = false;
    if (policy->has[TEC_HOOK_setup])
        TEC_TRY(tec_context(err, tec_host_build(policy, tec_host_setup, 0, err),
                            "policy '%s': setup", policy->name));
    lua_settop(L, 0);
    /* Stack space requested here is kept: copying the state later then needs no memory for it. */
    if (!lua_checkstack(L, STACK))
        return tec_fail(err, TEC_NO_MEMORY, "policy '%s': no memory for its stack", policy->name);
    lua_pushcfunction(L, tec_host_settle);
    TEC_TRY(tec_lua_call(policy->lua, 0, 0, err));
    policy->settled = tec_lua_bytes(policy->lua);
    tec_lua_set_budget(policy->lua, 0, (int64_t)policy->limits.hard_us * NS_PER_US);
    return TEC_OK;
}

static enum tec_status take_memory(struct tec_policy *policy, struct tec_error *err)
{
    const struct tec_topology *t = policy->topology;
    for (int i = 0; i < t->n_nodes; i++)
        if (tec_node_recalls(t->nodes[i].kind))
            policy->max_segments = TEC_MAX_SEGMENTS;
    policy->shown = tec_heap_get(policy->heap, sizeof *policy->shown);
    policy->record = tec_record_create(policy->heap, policy->max_segments > 0);
    if (!policy->shown || !policy->record)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a policy's record");
    return TEC_OK;
}

enum tec_status tec_policy_open(struct tec_policy **out, const char *name, const char *root,
                                const struct tec_topology *topology,
                                const struct tec_policy_limits *limits,
                                const struct tec_param_value *params, int n_params,
                                struct tec_heap *heap, struct tec_error *err)
{
    *out = NULL;
    struct tec_policy *policy = tec_heap_get(heap, sizeof *policy);
    if (!policy)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for policy '%.80s'", name);
    policy->heap = heap;
    policy->topology = topology;
    policy->limits = complete(limits);
    policy->report.last_failure = policy->frame = -1;
    const struct tec_lua_limits bounds = {.heap = policy->limits.heap,
                                          .block = policy->limits.block,
                                          .string = policy->limits.string,
                                          .budget_ns =
                                              (int64_t)policy->limits.setup_us * NS_PER_US};
    enum tec_status status = take_memory(policy, err);
    if (status == TEC_OK)
        status = tec_lua_create(&policy->lua, &bounds, heap, err);
    if (status == TEC_OK)
        status = run_file(policy, name, root, err);
    if (status == TEC_OK)
        status = prepare(policy, params, n_params, err);
    if (status != TEC_OK) {
        tec_policy_close(policy);
        return status;
    }
    *out = policy;
    return TEC_OK;
}

void tec_policy_close(struct tec_policy *policy)
{
    if (!policy)
        return;
    tec_lua_destroy(policy->lua);
    tec_heap_put(policy->heap, policy->record);
    tec_heap_put(policy->heap, policy->shown);
    tec_heap_put(policy->heap, policy);
}

/* --- the rest of the interface ------------------------------------------------------------ */

const char *tec_policy_name(const struct tec_policy *policy)
{
    return policy->name;
}

int tec_policy_version(const struct tec_policy *policy)
{
    return policy->version;
}

const struct tec_policy_report *tec_policy_report(const struct tec_policy *policy)
{
    return &policy->report;
}

int64_t tec_policy_allocations(const struct tec_policy *policy)
{
    return tec_lua_allocations(policy->lua);
}
