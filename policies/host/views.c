/* F, R and the hooks' calls: tables made once and refreshed in place, inside the protected call.
 *
 * Steady state allocates nothing: every key and every string value exists since the load, tables
 * have their final size, and the pool of request tables is larger than any view. */
#include "policies/host/host.h"

#include <lauxlib.h>
#include <stddef.h>
#include <string.h>

enum kind { KIND_INT, KIND_I64, KIND_BOOL, KIND_NODE, KIND_CAUSE };

struct field {
    const char *name;
    size_t offset;
    enum kind kind;
};

static const struct field fields[] = {
#define FRAME(name, member, kind, meaning) \
    {#name, offsetof(struct tec_frame_view, member), KIND_##kind},
#include "policies/views.def"
#define REQUEST(name, member, kind, meaning) \
    {#name, offsetof(struct tec_request_view, member), KIND_##kind},
#include "policies/views.def"
#define RESULT(name, member, kind, meaning) \
    {#name, offsetof(struct tec_frame_result, member), KIND_##kind},
#include "policies/views.def"
#define POOL(name, member, kind, meaning) \
    {#name, offsetof(struct tec_kv_view, member), KIND_##kind},
#include "policies/views.def"
};

/* Where each list begins in `fields`, and the upvalues of enter: the policy, the anchors, then the
 * fields' names. */
enum {
#define FRAME(name, member, kind, meaning) +1
    N_FRAME = 0
#include "policies/views.def"
    ,
#define REQUEST(name, member, kind, meaning) +1
    N_REQUEST = 0
#include "policies/views.def"
    ,
#define RESULT(name, member, kind, meaning) +1
    N_RESULT = 0
#include "policies/views.def"
    ,
#define POOL(name, member, kind, meaning) +1
    N_POOL = 0
#include "policies/views.def"
    ,
    REQUEST_AT = N_FRAME,
    RESULT_AT = REQUEST_AT + N_REQUEST,
    POOL_AT = RESULT_AT + N_RESULT,
    N_FIELDS = POOL_AT + N_POOL,
    UP_POLICY = 1,
    UP_ANCHORS,
    UP_KEYS
};

static const char *const cause_names[] = {"none", "policy", "plan", "gpu", "host", "input"};
static const char anchors_key = 'a', enter_key = 'e'; /* keys in the registry by address */

void tec_host_push_anchors(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &anchors_key);
}

void tec_host_anchor(lua_State *L)
{
    lua_rawsetp(L, LUA_REGISTRYINDEX, &anchors_key);
}

void tec_host_push_enter(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &enter_key);
}

static void push_anchor(lua_State *L, int anchor)
{
    lua_rawgeti(L, lua_upvalueindex(UP_ANCHORS), anchor);
}

static void push_name(lua_State *L, int anchor, int i)
{
    push_anchor(L, anchor);
    lua_rawgeti(L, -1, i);
    lua_remove(L, -2);
}

static void push_field(lua_State *L, const struct field *field, const void *from)
{
    const char *p = (const char *)from + field->offset;
    switch (field->kind) {
    case KIND_INT:
        lua_pushinteger(L, *(const int *)(const void *)p);
        break;
    case KIND_I64:
        lua_pushinteger(L, *(const int64_t *)(const void *)p);
        break;
    case KIND_BOOL:
        lua_pushboolean(L, *(const bool *)(const void *)p);
        break;
    case KIND_NODE:
        push_name(L, A_NODE_NAMES, *(const int *)(const void *)p);
        break;
    case KIND_CAUSE:
        push_name(L, A_CAUSES, (int)*(const enum tec_cause *)(const void *)p);
        break;
    }
}

/* Into the table on top. */
static void refresh(lua_State *L, int at, int n, const void *from)
{
    for (int i = at; i < at + n; i++) {
        lua_pushvalue(L, lua_upvalueindex(UP_KEYS + i));
        push_field(L, &fields[i], from);
        lua_rawset(L, -3);
    }
}

static void refresh_rows(lua_State *L, const struct tec_frame_view *view)
{
    push_anchor(L, A_ROWS);
    push_anchor(L, A_POOL);
    int n = view->n_req < TEC_MAX_ROWS ? view->n_req : TEC_MAX_ROWS;
    for (int i = 0; i < n; i++) {
        lua_rawgeti(L, -1, i + 1);
        refresh(L, REQUEST_AT, N_REQUEST, &view->req[i]);
        lua_rawseti(L, -3, i + 1);
    }
    for (int i = n; i < TEC_MAX_ROWS; i++) {
        bool there = lua_rawgeti(L, -2, i + 1) != LUA_TNIL;
        lua_pop(L, 1);
        if (!there)
            break;
        lua_pushnil(L);
        lua_rawseti(L, -3, i + 1);
    }
    lua_pop(L, 2);
}

static void refresh_result(lua_State *L, int table, int nodes, const struct tec_topology *t,
                           const struct tec_frame_result *result)
{
    push_anchor(L, table);
    refresh(L, RESULT_AT, N_RESULT, result);
    push_anchor(L, nodes);
    push_anchor(L, A_NODE_NAMES);
    int n = result->n_nodes < t->n_nodes ? result->n_nodes : t->n_nodes;
    for (int i = 0; i < n; i++) {
        lua_rawgeti(L, -1, i);
        lua_pushinteger(L, result->node_us[i]);
        lua_rawset(L, -4);
    }
    lua_pop(L, 3);
}

static void refresh_late(lua_State *L, const struct tec_frame_view *view,
                         const struct tec_topology *t)
{
    push_anchor(L, A_LATE);
    push_anchor(L, A_INPUT_NAMES);
    int n = view->n_inputs < t->n_inputs ? view->n_inputs : t->n_inputs;
    for (int i = 0; i < n; i++) {
        lua_rawgeti(L, -1, i);
        lua_pushinteger(L, view->late_us[i]);
        lua_rawset(L, -4);
    }
    lua_pop(L, 2);
}

static void refresh_kv(lua_State *L, const struct tec_frame_view *view,
                       const struct tec_topology *t)
{
    push_anchor(L, A_KV);
    push_anchor(L, A_KV_NAMES);
    for (int i = 0; i < view->n_kv; i++) {
        int at = 0;
        while (at < t->n_kv && strcmp(t->kv[at], view->kv[i].name) != 0)
            at++;
        if (at == t->n_kv)
            continue;
        lua_rawgeti(L, -1, at);
        lua_rawget(L, -3);
        refresh(L, POOL_AT, N_POOL, &view->kv[i]);
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
}

static void refresh_frame(lua_State *L, const struct tec_policy *policy)
{
    push_anchor(L, A_FRAME);
    refresh(L, 0, N_FRAME, policy->view);
    lua_pop(L, 1);
    refresh_rows(L, policy->view);
    refresh_result(L, A_LAST, A_LAST_NODES, policy->topology, &policy->view->last);
    refresh_late(L, policy->view, policy->topology);
    refresh_kv(L, policy->view, policy->topology);
}

/* The third argument of the hook. */
static void push_subject(lua_State *L, const struct tec_policy *policy)
{
    switch (policy->hook) {
    case TEC_HOOK_admit:
        push_anchor(L, A_CANDIDATE);
        refresh(L, REQUEST_AT, N_REQUEST, policy->request);
        break;
    case TEC_HOOK_observe:
        refresh_result(L, A_RESULT, A_RESULT_NODES, policy->topology, policy->result);
        push_anchor(L, A_RESULT);
        break;
    case TEC_HOOK_evict:
        lua_pushinteger(L, policy->missing_seats);
        break;
    default:
        push_anchor(L, A_DECISION);
        break;
    }
}

static void take_admission(lua_State *L, struct tec_policy *policy)
{
    int type = lua_type(L, -2);
    if (type != LUA_TNIL && type != LUA_TBOOLEAN)
        luaL_error(L, "admit must return true or false, it returned %s", lua_typename(L, type));
    policy->admitted = type == LUA_TNIL || lua_toboolean(L, -2);
    bool said = lua_type(L, -1) == LUA_TSTRING;
    tec_host_copy_text(policy->reason, sizeof policy->reason,
                       said ? lua_tostring(L, -1) : "policy");
}

static void take_victim(lua_State *L, struct tec_policy *policy)
{
    policy->victim = -1;
    if (lua_isnil(L, -2))
        return;
    int exact = 0;
    lua_Integer i = lua_type(L, -2) == LUA_TNUMBER ? lua_tointegerx(L, -2, &exact) : 0;
    if (!exact || i < 1 || i > policy->view->n_req)
        luaL_error(L, "evict must return a row from 1 to %d or nil", policy->view->n_req);
    policy->victim = (int)i - 1;
}

static int enter(lua_State *L)
{
    struct tec_policy *policy = lua_touserdata(L, lua_upvalueindex(UP_POLICY));
    refresh_frame(L, policy);
    push_anchor(L, A_HOOK + (int)policy->hook);
    push_anchor(L, A_STATE);
    push_anchor(L, A_FRAME);
    push_subject(L, policy);
    lua_call(L, 3, 2);
    if (policy->hook == TEC_HOOK_admit)
        take_admission(L, policy);
    else if (policy->hook == TEC_HOOK_evict)
        take_victim(L, policy);
    return 0;
}

/* Push a table with the fields of a list set to their zero and a guard. */
static void push_view(lua_State *L, int at, int n, const char *what)
{
    lua_createtable(L, 0, n);
    for (int i = at; i < at + n; i++) {
        lua_pushboolean(L, 0);
        lua_setfield(L, -2, fields[i].name);
    }
    tec_host_guard(L, what);
}

/* Anchor a table of names (from index 0). */
static void anchor_names(lua_State *L, int anchor, const char *const *names, int n)
{
    lua_createtable(L, n, 1);
    for (int i = 0; i < n; i++) {
        lua_pushstring(L, names[i]);
        lua_rawseti(L, -2, i);
    }
    lua_rawseti(L, 2, anchor);
}

/* Anchor a table that has 0 under each name. */
static void anchor_zeros(lua_State *L, int anchor, const char *const *names, int n,
                         const char *what)
{
    lua_createtable(L, 0, n);
    for (int i = 0; i < n; i++) {
        lua_pushinteger(L, 0);
        lua_setfield(L, -2, names[i]);
    }
    tec_host_guard(L, what);
    lua_rawseti(L, 2, anchor);
}

static void make_result(lua_State *L, int table, int nodes, const char *what)
{
    push_view(L, RESULT_AT, N_RESULT, what);
    lua_rawgeti(L, 2, nodes);
    lua_pushstring(L, "node_us");
    lua_insert(L, -2);
    lua_rawset(L, -3);
    lua_rawseti(L, 2, table);
}

static void make_rows(lua_State *L)
{
    lua_createtable(L, TEC_MAX_ROWS, 0);
    for (int i = 1; i <= TEC_MAX_ROWS; i++) {
        push_view(L, REQUEST_AT, N_REQUEST, "request view");
        lua_rawseti(L, -2, i);
    }
    lua_rawseti(L, 2, A_POOL);
    lua_createtable(L, TEC_MAX_ROWS, 0);
    tec_host_guard(L, "list of requests");
    lua_rawseti(L, 2, A_ROWS);
    push_view(L, REQUEST_AT, N_REQUEST, "request view");
    lua_rawseti(L, 2, A_CANDIDATE);
}

static void make_pools(lua_State *L, const struct tec_topology *t)
{
    lua_createtable(L, 0, t->n_kv);
    for (int i = 0; i < t->n_kv; i++) {
        push_view(L, POOL_AT, N_POOL, "resource view");
        lua_setfield(L, -2, t->kv[i]);
    }
    lua_rawseti(L, 2, A_KV);
}

static void set_anchored(lua_State *L, const char *name, int anchor)
{
    lua_pushstring(L, name);
    lua_rawgeti(L, 2, anchor);
    lua_rawset(L, -3);
}

static void make_frame(lua_State *L, struct tec_policy *policy)
{
    push_view(L, 0, N_FRAME, "frame view");
    set_anchored(L, "req", A_ROWS);
    set_anchored(L, "late", A_LATE);
    set_anchored(L, "last", A_LAST);
    set_anchored(L, "params", A_PARAMS);
    lua_rawgeti(L, 2, A_KV);
    tec_host_add_functions(L, policy);
    lua_rawseti(L, 2, A_FRAME);
}

static void make_params(lua_State *L, const struct tec_policy *policy)
{
    const char *names[TEC_MAX_PARAMS];
    for (int i = 0; i < policy->n_params; i++)
        names[i] = policy->params[i].name;
    anchor_zeros(L, A_PARAMS, names, policy->n_params, "parameters");
}

/* Arguments: the policy, the anchors. */
static void make_enter(lua_State *L, struct tec_policy *policy)
{
    luaL_checkstack(L, N_FIELDS + 8, NULL);
    lua_pushlightuserdata(L, policy);
    lua_pushvalue(L, 2);
    for (int i = 0; i < N_FIELDS; i++)
        lua_pushstring(L, fields[i].name);
    lua_pushcclosure(L, enter, UP_KEYS - 1 + N_FIELDS);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &enter_key);
}

int tec_host_views(lua_State *L)
{
    struct tec_policy *policy = lua_touserdata(L, 1);
    const struct tec_topology *t = policy->topology;
    const char *nodes[TEC_MAX_NODES];
    for (int i = 0; i < t->n_nodes; i++)
        nodes[i] = t->nodes[i].name;
    lua_settop(L, 1);
    tec_host_push_anchors(L);
    anchor_names(L, A_NODE_NAMES, nodes, t->n_nodes);
    anchor_names(L, A_INPUT_NAMES, t->inputs, t->n_inputs);
    anchor_names(L, A_KV_NAMES, t->kv, t->n_kv);
    anchor_names(L, A_CAUSES, cause_names, (int)(sizeof cause_names / sizeof cause_names[0]));
    anchor_zeros(L, A_LATE, t->inputs, t->n_inputs, "lateness of inputs");
    anchor_zeros(L, A_LAST_NODES, nodes, t->n_nodes, "times of nodes");
    anchor_zeros(L, A_RESULT_NODES, nodes, t->n_nodes, "times of nodes");
    make_result(L, A_LAST, A_LAST_NODES, "result view");
    make_result(L, A_RESULT, A_RESULT_NODES, "result view");
    make_params(L, policy);
    make_rows(L);
    make_pools(L, t);
    make_frame(L, policy);
    tec_host_push_decision(L, policy);
    lua_rawseti(L, 2, A_DECISION);
    make_enter(L, policy);
    return 0;
}
