#include "base/clock.h"
#include "base/nearest.h"
#include "policies/host/host.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { KIB = 1024, GARBAGE = 1024, NS_PER_US = 1000 };

static const struct tec_policy_limits default_limits = {.soft_us = 100,
                                                        .hard_us = 500,
                                                        .setup_us = 100000,
                                                        .heap = (size_t)512 * KIB,
                                                        .block = (size_t)64 * KIB,
                                                        .string = (size_t)4 * KIB,
                                                        .strikes = 3,
                                                        .window_frames = 1000};

static const struct tec_clock real_clock = {NULL};

#define FILL(member)        \
    if (limits.member <= 0) \
    limits.member = default_limits.member

static struct tec_policy_limits complete(const struct tec_policy_limits *given)
{
    struct tec_policy_limits limits = given ? *given : default_limits;
    FILL(soft_us);
    FILL(hard_us);
    FILL(setup_us);
    FILL(strikes);
    FILL(window_frames);
    limits.heap = limits.heap ? limits.heap : default_limits.heap;
    limits.block = limits.block ? limits.block : default_limits.block;
    limits.string = limits.string ? limits.string : default_limits.string;
    if (limits.strikes > TEC_MAX_STRIKES)
        limits.strikes = TEC_MAX_STRIKES;
    return limits;
}

/* --- failures ----------------------------------------------------------------------------- */

static int recent_strikes(const struct tec_policy *policy, int64_t frame)
{
    int n = 0;
    while (n < policy->n_strikes && frame - policy->strike_frames[n] < policy->limits.window_frames)
        n++;
    return n;
}

static void strike(struct tec_policy *policy, int64_t frame, const char *why)
{
    struct tec_policy_report *report = &policy->report;
    memmove(policy->strike_frames + 1, policy->strike_frames,
            (TEC_MAX_STRIKES - 1) * sizeof policy->strike_frames[0]);
    policy->strike_frames[0] = frame;
    if (policy->n_strikes < TEC_MAX_STRIKES)
        policy->n_strikes++;
    policy->n_strikes = recent_strikes(policy, frame);
    policy->collect = true;
    report->strikes = policy->n_strikes;
    report->failures++;
    report->last_failure = frame;
    report->quarantined = report->quarantined || report->strikes >= policy->limits.strikes;
    snprintf(report->message, sizeof report->message,
             "frame %lld: policy '%s' failed: %.260s -> default plan (strike %d/%d)%s",
             (long long)frame, policy->name, why, report->strikes, policy->limits.strikes,
             report->quarantined ? ", quarantined" : "");
}

/* --- calls -------------------------------------------------------------------------------- */

/* One hook on the view that the caller has set; a failure is a strike. */
static enum tec_status ask(struct tec_policy *policy, enum tec_hook hook,
                           const struct tec_frame_view *view, struct tec_error *err)
{
    struct tec_error own = {TEC_OK, ""};
    int64_t start = tec_clock_now(&real_clock);
    policy->hook = hook;
    policy->view = view;
    policy->draws = 0;
    policy->deciding = hook == TEC_HOOK_plan;
    policy->report.calls++;
    tec_host_push_enter(tec_lua_state(policy->lua));
    enum tec_status status = tec_lua_call(policy->lua, 0, 0, &own);
    policy->view = NULL;
    policy->deciding = false;
    int64_t took = tec_clock_now(&real_clock) - start;
    if (hook == TEC_HOOK_plan)
        policy->report.last_ns = took;
    policy->report.slow += took > (int64_t)policy->limits.soft_us * NS_PER_US;
    if (status == TEC_OK)
        return TEC_OK;
    strike(policy, view->index, own.message);
    return tec_fail(err, status, "policy '%s': %s", policy->name, own.message);
}

static int moved(const struct tec_policy *policy)
{
    int n = policy->depth_moved;
    for (int i = 0; i < policy->scratch.n_rows; i++)
        n += policy->row_moved[i];
    return n;
}

static enum tec_status plan(void *self, const struct tec_frame_view *view,
                            struct tec_decision *decision, struct tec_error *err)
{
    struct tec_policy *policy = self;
    if (policy->report.quarantined)
        return TEC_OK;
    policy->scratch = *decision;
    memset(policy->row_moved, 0, sizeof policy->row_moved);
    memset(policy->wished, 0, sizeof policy->wished);
    policy->depth_moved = false;
    TEC_TRY(ask(policy, TEC_HOOK_plan, view, err));
    policy->scratch.snapped = moved(policy);
    *decision = policy->scratch;
    return TEC_OK;
}

static bool admit(void *self, const struct tec_frame_view *view, const struct tec_request_view *r,
                  char reason[32])
{
    struct tec_policy *policy = self;
    if (policy->report.quarantined || !policy->has[TEC_HOOK_admit])
        return true;
    policy->request = r;
    if (ask(policy, TEC_HOOK_admit, view, NULL) != TEC_OK || policy->admitted)
        return true;
    memcpy(reason, policy->reason, sizeof policy->reason);
    return false;
}

static int evict(void *self, const struct tec_frame_view *view, int n)
{
    struct tec_policy *policy = self;
    if (policy->report.quarantined || !policy->has[TEC_HOOK_evict])
        return -1;
    policy->missing_seats = n;
    return ask(policy, TEC_HOOK_evict, view, NULL) == TEC_OK ? policy->victim : -1;
}

/* Protected: collection may raise in theory. */
static int collect_all(lua_State *L)
{
    lua_gc(L, LUA_GCCOLLECT);
    return 0;
}

static int collect_some(lua_State *L)
{
    lua_gc(L, LUA_GCSTEP, 0);
    return 0;
}

/* Off the critical path. A collection may shrink the stack, which grows again in the next frame:
 * small changes must not start one, or there would be one every frame. */
static void tidy(struct tec_policy *policy)
{
    tec_lua_release(policy->lua);
    if (!policy->collect && tec_lua_bytes(policy->lua) < policy->settled + GARBAGE)
        return;
    lua_pushcfunction(tec_lua_state(policy->lua), policy->collect ? collect_all : collect_some);
    tec_lua_call(policy->lua, 0, 0, NULL);
    policy->collect = false;
    policy->settled = tec_lua_bytes(policy->lua);
}

static void observe(void *self, const struct tec_frame_view *view,
                    const struct tec_frame_result *result)
{
    struct tec_policy *policy = self;
    if (policy->report.quarantined)
        return;
    policy->result = result;
    if (policy->has[TEC_HOOK_observe])
        ask(policy, TEC_HOOK_observe, view, NULL);
    tidy(policy);
}

/* --- loading ------------------------------------------------------------------------------ */

/* A C function of the host with the policy as first argument; `extra` values from the stack. */
static enum tec_status build(struct tec_policy *policy, lua_CFunction function, int extra,
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
    TEC_TRY(build(policy, tec_host_constructors, 0, err));
    TEC_TRY(tec_host_load_file(policy, name, root, err));
    enum tec_status status = tec_lua_call(policy->lua, 0, 1, err);
    if (status != TEC_OK && err && strstr(err->message, "unknown name 'pipeline'"))
        return tec_fail(err, TEC_MALFORMED, "%s is a pipeline file, a policy was expected", name);
    TEC_TRY(status);
    return tec_context(err, build(policy, tec_host_adopt, 1, err), "%s", name);
}

/* The initial state must be plain data: it is what a reload hands on. */
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

static int settle(lua_State *L)
{
    lua_gc(L, LUA_GCCOLLECT);
    lua_gc(L, LUA_GCGEN, 0, 0);
    lua_gc(L, LUA_GCSTOP);
    return 0;
}

static enum tec_status prepare(struct tec_policy *policy, const struct tec_param_value *params,
                               int n_params, struct tec_error *err)
{
    lua_State *L = tec_lua_state(policy->lua);
    TEC_TRY(check_state(policy, err));
    TEC_TRY(build(policy, tec_host_views, 0, err));
    TEC_TRY(build(policy, tec_host_set_params, 0, err));
    for (int i = 0; i < n_params; i++)
        TEC_TRY(tec_policy_set_param(policy, params[i].name, params[i].value, err));
    if (policy->has[TEC_HOOK_setup])
        TEC_TRY(tec_context(err, build(policy, tec_host_setup, 0, err), "policy '%s': setup",
                            policy->name));
    lua_settop(L, 0);
    lua_pushcfunction(L, settle);
    TEC_TRY(tec_lua_call(policy->lua, 0, 0, err));
    policy->settled = tec_lua_bytes(policy->lua);
    tec_lua_set_budget(policy->lua, 0, (int64_t)policy->limits.hard_us * NS_PER_US);
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
    policy->report.last_failure = -1;
    const struct tec_lua_limits bounds = {.heap = policy->limits.heap,
                                          .block = policy->limits.block,
                                          .string = policy->limits.string,
                                          .budget_ns =
                                              (int64_t)policy->limits.setup_us * NS_PER_US};
    enum tec_status status = tec_lua_create(&policy->lua, &bounds, heap, err);
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
    tec_heap_put(policy->heap, policy);
}

/* --- the rest of the interface ------------------------------------------------------------ */

struct tec_planner tec_policy_planner(struct tec_policy *policy)
{
    return (struct tec_planner){.name = policy->name,
                                .self = policy,
                                .admit = policy->has[TEC_HOOK_admit] ? admit : NULL,
                                .plan = plan,
                                .observe = observe,
                                .evict = policy->has[TEC_HOOK_evict] ? evict : NULL};
}

/* Writes all parameters into F.params. */
int tec_host_set_params(lua_State *L)
{
    const struct tec_policy *policy = lua_touserdata(L, 1);
    tec_host_push_anchors(L);
    lua_rawgeti(L, -1, A_PARAMS);
    for (int i = 0; i < policy->n_params; i++) {
        const struct tec_param *param = &policy->params[i];
        lua_pushstring(L, param->name);
        if (param->is_int)
            lua_pushinteger(L, (lua_Integer)param->value);
        else
            lua_pushnumber(L, param->value);
        lua_rawset(L, -3);
    }
    return 0;
}

static struct tec_param *find_param(struct tec_policy *policy, const char *name, const char **near)
{
    const char *names[TEC_MAX_PARAMS];
    for (int i = 0; i < policy->n_params; i++) {
        names[i] = policy->params[i].name;
        if (strcmp(names[i], name) == 0)
            return &policy->params[i];
    }
    *near = tec_nearest(name, names, policy->n_params);
    return NULL;
}

enum tec_status tec_policy_set_param(struct tec_policy *policy, const char *name, double value,
                                     struct tec_error *err)
{
    const char *near = NULL;
    struct tec_param *param = find_param(policy, name, &near);
    if (!param)
        return tec_fail(err, TEC_NOT_FOUND, "policy '%s' has no parameter '%.60s'%s%s%s",
                        policy->name, name, near ? ", did you mean '" : "", near ? near : "",
                        near ? "'?" : "");
    if (!(value >= param->min && value <= param->max))
        return tec_fail(err, TEC_INVALID,
                        "parameter '%s' of policy '%s' is %g, allowed is %g to %g", name,
                        policy->name, value, param->min, param->max);
    if (param->is_int && floor(value) != value)
        return tec_fail(err, TEC_INVALID, "parameter '%s' of policy '%s' is %g, not an integer",
                        name, policy->name, value);
    double old = param->value;
    param->value = value;
    enum tec_status status = build(policy, tec_host_set_params, 0, err);
    if (status != TEC_OK)
        param->value = old;
    return status;
}

const char *tec_policy_name(const struct tec_policy *policy)
{
    return policy->name;
}

int tec_policy_version(const struct tec_policy *policy)
{
    return policy->version;
}

const struct tec_param *tec_policy_param(const struct tec_policy *policy, int i)
{
    return i >= 0 && i < policy->n_params ? &policy->params[i] : NULL;
}

const struct tec_policy_report *tec_policy_report(const struct tec_policy *policy)
{
    return &policy->report;
}

int64_t tec_policy_allocations(const struct tec_policy *policy)
{
    return tec_lua_allocations(policy->lua);
}
