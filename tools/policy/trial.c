/* trial.c - one policy under test: the questions that a test file asks its mock, read from Lua
 * tables, and the policy's answers.
 *
 * It runs inside the protected calls of the test file's Lua state. */
#include "tools/policy/trial.h"

#include "tools/policy/argument.h"

#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define COUNT(list) ((int)(sizeof(list) / sizeof(list)[0]))

static const char *const frame_fields[] = {
    "nreq",   "requests",    "slack_us",  "cost",   "params", "index",
    "now_us", "deadline_us", "budget_us", "late",   "kv",     "last",
    "slots",  "horizon",     "segments",  "audits", "agreed"};
static const char *const request_fields[] = {
    "id",          "node",     "left", "done",     "max",    "age_frames", "born_us",
    "deadline_us", "slack_us", "prio", "kv_bytes", "shared", "fresh",      "slices"};
static const char *const result_fields[] = {"total_us", "overrun_us", "missed",  "cause",
                                            "tokens",   "rows",       "snapped", "node_us"};
static const char *const pool_fields[] = {"used", "cap", "bytes", "pinned", "oldest"};
/* --- names -------------------------------------------------------------------------------- */

/* Find the key at -2 among n names; raise an error for any other. */
static int key_among(lua_State *L, const char *what, const char *const *names, int n)
{
    const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : luaL_typename(L, -2);
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], key) == 0)
            return i;
    return luaL_error(L, "the pipeline has no %s '%s'", what, key);
}

static int node_index(lua_State *L, const struct tec_mock *m, const char *name)
{
    int i = tec_mock_node(m, name);
    return i >= 0 ? i : luaL_error(L, "the pipeline has no node '%s'", name);
}

/* Read the number on top of the stack, which may be NaN or infinite. */
static double value_of(lua_State *L, const char *what)
{
    if (lua_type(L, -1) != LUA_TNUMBER)
        luaL_error(L, "%s must be a number, it is %s", what, luaL_typename(L, -1));
    return lua_tonumber(L, -1);
}

static int64_t whole_of(lua_State *L, const char *what)
{
    double value = value_of(L, what);
    if (!(fabs(value) < 9e18) || floor(value) != value)
        luaL_error(L, "%s must be a whole number, it is %f", what, value);
    return (int64_t)value;
}

/* --- costs -------------------------------------------------------------------------------- */

static void add_cost(lua_State *L, struct tec_mock *m, const char *name, int batch, int level)
{
    if (m->n_costs == TEC_MOCK_COSTS)
        luaL_error(L, "cost: more than %d entries", TEC_MOCK_COSTS);
    struct tec_mock_cost *c = &m->costs[m->n_costs++];
    *c = (struct tec_mock_cost){.batch = batch, .level = level, .us = value_of(L, "a cost")};
    snprintf(c->name, sizeof c->name, "%s", name);
}

/* Add the points of the table { [batch] = us, ... } on top of the stack. */
static void add_points(lua_State *L, struct tec_mock *m, const char *name, int level)
{
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        if (!lua_isinteger(L, -2) || lua_tointeger(L, -2) < 1 || lua_tointeger(L, -2) > INT32_MAX)
            luaL_error(L, "cost of '%s': a point is a number of rows from 1 on", name);
        add_cost(L, m, name, (int)lua_tointeger(L, -2), level);
    }
}

static void add_level(lua_State *L, struct tec_mock *m, const char *name)
{
    int level = 0;
    while (level < TEC_MOCK_LEVELS && strcmp(tec_mock_level_names[level], lua_tostring(L, -2)) != 0)
        level++;
    if (level == TEC_MOCK_LEVELS)
        luaL_error(L, "cost of '%s': a quantile is p50, p99, p999 or max", name);
    if (lua_type(L, -1) == LUA_TTABLE)
        add_points(L, m, name, level);
    else
        add_cost(L, m, name, 0, level);
}

/* Read the cost on top of the stack: a number, a table of points, or quantiles of either. */
static void read_cost(lua_State *L, struct tec_mock *m, const char *name)
{
    int kept = 0;
    for (int i = 0; i < m->n_costs; i++)
        if (strcmp(m->costs[i].name, name) != 0)
            m->costs[kept++] = m->costs[i];
    m->n_costs = kept;
    if (lua_type(L, -1) != LUA_TTABLE) {
        add_cost(L, m, name, 0, -1);
        return;
    }
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
        if (lua_type(L, -2) == LUA_TSTRING) {
            add_level(L, m, name);
        } else {
            lua_pushvalue(L, -3);
            add_points(L, m, name, -1);
            lua_pop(L, 3);
            return;
        }
}

static void read_costs(lua_State *L, struct tec_mock *m)
{
    static const char *const kinds[] = {"prefill", "action", "decode", "packed"};
    if (tec_argument_table(L, 2, "cost") < 0)
        return;
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";
        bool known = tec_mock_node(m, name) >= 0;
        for (int i = 0; i < COUNT(kinds); i++)
            known = known || strcmp(kinds[i], name) == 0;
        if (!known || strlen(name) >= sizeof m->costs[0].name)
            luaL_error(L, "cost: '%s' is no node and none of prefill, action, decode, packed",
                       name);
        read_cost(L, m, name);
    }
    lua_pop(L, 1);
}

static void read_slack(lua_State *L, struct tec_mock *m)
{
    lua_getfield(L, 2, "slack_us");
    if (lua_type(L, -1) == LUA_TTABLE) {
        tec_argument_check(L, -1, "slack_us", tec_mock_level_names, TEC_MOCK_LEVELS);
        double held = 0;
        for (int i = TEC_MOCK_LEVELS - 1; i >= 0; i--) /* left out: the next higher level */
            m->slack[i] = held = tec_argument_number(L, -1, tec_mock_level_names[i], held);
    } else if (!lua_isnil(L, -1)) {
        double us = value_of(L, "slack_us");
        for (int i = 0; i < TEC_MOCK_LEVELS; i++)
            m->slack[i] = us;
    }
    lua_pop(L, 1);
}

/* --- views -------------------------------------------------------------------------------- */

/* Read the table on top of the stack over the values that `r` holds. */
static void read_request(lua_State *L, const struct tec_mock *m, struct tec_request_view *r)
{
    int most = 1 << 24, at = lua_gettop(L);
    tec_argument_check(L, at, "a request", request_fields, COUNT(request_fields));
    const char *node = tec_argument_text(L, at, "node", NULL);
    r->node = node ? node_index(L, m, node) : r->node;
    r->prefill = tec_mock_prefill(m, r->node);
    r->slices = tec_argument_int(L, at, "slices", 0, most, r->slices);
    r->id = tec_argument_us(L, at, "id", r->id);
    r->max = tec_argument_int(L, at, "max", 0, most, r->max);
    r->done = tec_argument_int(L, at, "done", 0, most, r->done);
    r->left = tec_argument_int(L, at, "left", 0, most, r->max - r->done);
    r->age_frames = tec_argument_int(L, at, "age_frames", 0, most, r->age_frames);
    r->born_us =
        tec_argument_us(L, at, "born_us", m->view.now_us - r->age_frames * m->view.period_us);
    r->deadline_us = tec_argument_us(L, at, "deadline_us", r->deadline_us);
    int64_t slack = r->deadline_us == INT64_MAX ? INT64_MAX : r->deadline_us - m->view.now_us;
    r->slack_us = tec_argument_us(L, at, "slack_us", slack);
    r->prio = tec_argument_int(L, at, "prio", 0, 1000, r->prio);
    r->kv_bytes = tec_argument_us(L, at, "kv_bytes", r->kv_bytes);
    r->shared = tec_argument_bool(L, at, "shared", r->shared);
    r->fresh = tec_argument_bool(L, at, "fresh", r->age_frames == 0);
}

static void read_requests(lua_State *L, struct tec_mock *m)
{
    int n = tec_argument_int(L, 2, "nreq", 0, TEC_MAX_ROWS, -1);
    int listed = tec_argument_table(L, 2, "requests");
    if (n >= 0 && listed >= 0)
        luaL_error(L, "a frame has 'nreq' or 'requests', not both");
    if (n < 0 && listed < 0)
        return;
    m->view.n_req = n >= 0 ? n : listed;
    if (listed > TEC_MAX_ROWS)
        luaL_error(L, "more than %d requests", TEC_MAX_ROWS);
    for (int i = 0; i < m->view.n_req; i++) {
        m->req[i] = tec_mock_request(m, i);
        if (listed < 0)
            continue;
        lua_rawgeti(L, -1, i + 1);
        read_request(L, m, &m->req[i]);
        lua_pop(L, 1);
        if (i > 0 && m->req[i].id <= m->req[i - 1].id)
            luaL_error(L, "requests stand in order of id: %d is not after %d", (int)m->req[i].id,
                       (int)m->req[i - 1].id);
    }
    if (listed >= 0)
        lua_pop(L, 1);
}

/* Read a frame's result from the table on top of the stack. */
static void read_result(lua_State *L, const struct tec_mock *m, struct tec_frame_result *r)
{
    int at = lua_gettop(L), most = 1 << 24, cause = 0;
    *r = (struct tec_frame_result){.n_nodes = m->topology.n_nodes};
    tec_argument_check(L, at, "a result", result_fields, COUNT(result_fields));
    r->total_us = tec_argument_us(L, at, "total_us", 0);
    r->overrun_us = tec_argument_us(L, at, "overrun_us", 0);
    r->missed = tec_argument_bool(L, at, "missed", false);
    r->tokens = tec_argument_int(L, at, "tokens", 0, most, 0);
    r->rows = tec_argument_int(L, at, "rows", 0, most, 0);
    r->snapped = tec_argument_int(L, at, "snapped", 0, most, 0);
    const char *name = tec_argument_text(L, at, "cause", r->missed ? "plan" : "none");
    while (cause < TEC_CAUSES && strcmp(tec_cause_name((enum tec_cause)cause), name) != 0)
        cause++;
    if (cause == TEC_CAUSES)
        luaL_error(L, "cause '%s' is none of none, policy, plan, gpu, host, input, memory", name);
    r->cause = (enum tec_cause)cause;
    if (tec_argument_table(L, at, "node_us") < 0)
        return;
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        const char *node = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";
        r->node_us[node_index(L, m, node)] = whole_of(L, "node_us");
    }
    lua_pop(L, 1);
}

/* Read the segments of a memory, all alike, and the results of audits. */
static void read_memory(lua_State *L, struct tec_mock *m)
{
    m->view.n_seg = tec_argument_int(L, 2, "segments", 0, TEC_MAX_SEGMENTS, m->view.n_seg);
    m->view.seg = m->seg;
    for (int i = 0; i < m->view.n_seg; i++)
        m->seg[i] = (struct tec_segment_view){.id = i + 1, .tokens = 20};
    m->view.n_audits = tec_argument_int(L, 2, "audits", 0, 1 << 24, m->view.n_audits);
    m->view.n_agreed = tec_argument_int(L, 2, "agreed", 0, 1 << 24, m->view.n_agreed);
}

static void read_late(lua_State *L, struct tec_mock *m)
{
    memset(m->late, 0, (size_t)m->topology.n_inputs * sizeof *m->late);
    if (tec_argument_table(L, 2, "late") < 0)
        return;
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
        m->late[key_among(L, "input", m->topology.inputs, m->topology.n_inputs)] =
            whole_of(L, "late");
    lua_pop(L, 1);
}

static void read_pools(lua_State *L, struct tec_mock *m)
{
    if (tec_argument_table(L, 2, "kv") < 0)
        return;
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        struct tec_kv_view *kv = &m->kv[key_among(L, "resource", m->topology.kv, m->topology.n_kv)];
        tec_argument_check(L, -1, "a resource", pool_fields, COUNT(pool_fields));
        kv->used = tec_argument_us(L, -1, "used", kv->used);
        kv->cap = tec_argument_us(L, -1, "cap", kv->cap);
        kv->bytes = tec_argument_us(L, -1, "bytes", kv->bytes);
        kv->pinned = tec_argument_us(L, -1, "pinned", kv->pinned);
        kv->oldest = tec_argument_us(L, -1, "oldest", kv->oldest);
    }
    lua_pop(L, 1);
}

/* Change a parameter live, as an operator would. */
static void read_params(lua_State *L, struct tec_mock *m)
{
    struct tec_error err;
    if (tec_argument_table(L, 2, "params") < 0)
        return;
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";
        if (tec_policy_set_param(m->policy, name, value_of(L, name), &err) != TEC_OK)
            luaL_error(L, "%s", err.message);
    }
    lua_pop(L, 1);
}

static void read_clock(lua_State *L, struct tec_mock *m)
{
    struct tec_frame_view *v = &m->view;
    int64_t budget = v->budget_us;
    v->index = tec_argument_us(L, 2, "index", v->index);
    v->now_us = tec_argument_us(L, 2, "now_us", v->now_us);
    v->deadline_us = tec_argument_us(L, 2, "deadline_us", v->now_us + budget);
    v->budget_us = tec_argument_us(L, 2, "budget_us", v->deadline_us - v->now_us);
    v->slots = tec_argument_int(L, 2, "slots", 0, 1 << 24, v->slots);
    v->horizon = tec_argument_int(L, 2, "horizon", 0, 1 << 24, v->horizon);
}

/* --- what a test asks ---------------------------------------------------------------------- */

static void begin(lua_State *L, struct tec_trial *t, enum tec_asked asked)
{
    struct tec_error err;
    if (tec_trial_settle(t, &err) != TEC_OK)
        luaL_error(L, "%s", err.message);
    luaL_where(L, 1);
    snprintf(t->where, sizeof t->where, "%s", lua_tostring(L, -1));
    lua_pop(L, 1);
    size_t n = strlen(t->where);
    while (n > 0 && (t->where[n - 1] == ' ' || t->where[n - 1] == ':'))
        t->where[--n] = '\0';
    t->asked = asked;
    t->told = false;
    t->mock->failed = false;
}

void tec_trial_frame(lua_State *L, struct tec_trial *t)
{
    struct tec_mock *m = t->mock;
    tec_argument_check(L, 2, "a frame", frame_fields, COUNT(frame_fields));
    if (t->asked != TEC_ASKED_NOTHING)
        tec_mock_advance(m);
    begin(L, t, TEC_ASKED_FRAME);
    read_params(L, m);
    read_clock(L, m);
    read_requests(L, m);
    read_costs(L, m);
    read_slack(L, m);
    read_memory(L, m);
    read_late(L, m);
    read_pools(L, m);
    if (tec_argument_table(L, 2, "last") >= 0) {
        read_result(L, m, &m->view.last);
        lua_pop(L, 1);
    }
    tec_mock_plan(m);
}

void tec_trial_admit(lua_State *L, struct tec_trial *t)
{
    struct tec_mock *m = t->mock;
    struct tec_request_view r = tec_mock_request(m, m->view.n_req);
    if (m->view.n_req > 0)
        r.id = m->req[m->view.n_req - 1].id + 1;
    begin(L, t, TEC_ASKED_ADMIT);
    if (!lua_isnoneornil(L, 2)) {
        lua_pushvalue(L, 2);
        read_request(L, m, &r);
        lua_pop(L, 1);
    }
    int64_t failures = tec_policy_report(m->policy)->failures;
    snprintf(t->reason, sizeof t->reason, "policy");
    t->admitted = !m->planner.admit || m->planner.admit(m->planner.self, &m->view, &r, t->reason);
    tec_mock_note_failure(m, failures);
}

void tec_trial_observe(lua_State *L, struct tec_trial *t)
{
    struct tec_mock *m = t->mock;
    struct tec_frame_result result;
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_pushvalue(L, 2);
    read_result(L, m, &result);
    lua_pop(L, 1);
    begin(L, t, t->asked == TEC_ASKED_NOTHING ? TEC_ASKED_FRAME : t->asked);
    int64_t failures = tec_policy_report(m->policy)->failures;
    m->planner.observe(m->planner.self, &m->view, &result);
    tec_mock_note_failure(m, failures);
    m->view.last = result;
}

void tec_trial_evict(lua_State *L, struct tec_trial *t)
{
    struct tec_mock *m = t->mock;
    lua_Integer n = luaL_optinteger(L, 2, 1);
    luaL_argcheck(L, n >= 1 && n <= TEC_MAX_ROWS, 2, "request slots are 1 to 64");
    begin(L, t, TEC_ASKED_EVICT);
    int64_t failures = tec_policy_report(m->policy)->failures;
    t->victim = m->planner.evict ? m->planner.evict(m->planner.self, &m->view, (int)n) : -1;
    tec_mock_note_failure(m, failures);
}

enum tec_status tec_trial_settle(struct tec_trial *t, struct tec_error *err)
{
    if (!t->mock || !t->mock->failed || t->told)
        return TEC_OK;
    char detail[500];
    snprintf(detail, sizeof detail, "the policy failed: %s", t->mock->error.message);
    t->told = true;
    return tec_checks_add(t->checks, false, t->where, detail, err);
}
