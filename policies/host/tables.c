/* tables.c - builds the Lua tables behind F, R and D once at load; views.c refreshes them in place
 * each frame. */
#include "policies/host/host.h"
#include "policies/host/view_fields.h"

#include <lauxlib.h>
#include <string.h>

static const char enter_key = 'e'; /* a key in the registry by its address */

void tec_host_push_enter(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &enter_key);
}

/* Push a table with the fields of a list, each set to its type's zero. */
static void push_fields(lua_State *L, int at, int n)
{
    lua_createtable(L, 0, n);
    for (int i = at; i < at + n; i++) {
        lua_pushboolean(L, 0);
        lua_setfield(L, -2, tec_host_fields[i].name);
    }
}

/* Push such a table with a guard against unknown fields and writes. */
static void push_view(lua_State *L, int at, int n, const char *what)
{
    push_fields(L, at, n);
    tec_host_guard(L, what);
}

/* Anchor a pool of `most` views that share a guard, and an empty list that will show some of
 * them. */
static void make_list(lua_State *L, int list, int pool, int most, int at, int n, const char *what,
                      const char *list_what)
{
    lua_createtable(L, most, 0);
    push_view(L, at, n, what);
    for (int i = 1; i <= most; i++) {
        push_fields(L, at, n);
        lua_getmetatable(L, -2);
        lua_setmetatable(L, -2);
        lua_rawseti(L, -3, i);
    }
    lua_pop(L, 1);
    lua_rawseti(L, 2, pool);
    lua_createtable(L, most, 0);
    tec_host_guard(L, list_what);
    lua_rawseti(L, 2, list);
}

/* Anchor a table of names; its indices start at 0. */
static void anchor_names(lua_State *L, int anchor, const char *const *names, int n)
{
    lua_createtable(L, n, 1);
    for (int i = 0; i < n; i++) {
        lua_pushstring(L, names[i]);
        lua_rawseti(L, -2, i);
    }
    lua_rawseti(L, 2, anchor);
}

/* Anchor a table that holds 0 under each name. */
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
    push_view(L, TEC_RESULT_AT, TEC_N_RESULT, what);
    lua_rawgeti(L, 2, nodes);
    lua_pushstring(L, "node_us");
    lua_insert(L, -2);
    lua_rawset(L, -3);
    lua_rawseti(L, 2, table);
}

static void make_pools(lua_State *L, const struct tec_topology *t)
{
    lua_createtable(L, 0, t->n_kv);
    for (int i = 0; i < t->n_kv; i++) {
        push_view(L, TEC_POOL_AT, TEC_N_POOL, "resource view");
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
    push_view(L, 0, TEC_N_FRAME, "frame view");
    set_anchored(L, "req", A_ROWS);
    set_anchored(L, "seg", A_SEGMENTS);
    set_anchored(L, "gpu", A_DEVICE);
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

/* Build the function that enters a hook. Arguments: the policy, and the anchors. */
static void make_enter(lua_State *L, struct tec_policy *policy)
{
    luaL_checkstack(L, TEC_N_FIELDS + 8, NULL);
    lua_pushlightuserdata(L, policy);
    lua_pushvalue(L, 2);
    for (int i = 0; i < TEC_N_FIELDS; i++)
        lua_pushstring(L, tec_host_fields[i].name);
    lua_pushcclosure(L, tec_host_enter, UP_KEYS - 1 + TEC_N_FIELDS);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &enter_key);
}

int tec_host_views(lua_State *L)
{
    const char *causes[TEC_CAUSES];
    for (int i = 0; i < TEC_CAUSES; i++)
        causes[i] = tec_cause_name((enum tec_cause)i);
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
    anchor_names(L, A_CAUSES, causes, TEC_CAUSES);
    anchor_zeros(L, A_LATE, t->inputs, t->n_inputs, "lateness of inputs");
    anchor_zeros(L, A_LAST_NODES, nodes, t->n_nodes, "times of nodes");
    anchor_zeros(L, A_RESULT_NODES, nodes, t->n_nodes, "times of nodes");
    make_result(L, A_LAST, A_LAST_NODES, "result view");
    make_result(L, A_RESULT, A_RESULT_NODES, "result view");
    make_params(L, policy);
    make_list(L, A_ROWS, A_POOL, TEC_MAX_ROWS, TEC_REQUEST_AT, TEC_N_REQUEST, "request view",
              "list of requests");
    make_list(L, A_SEGMENTS, A_SEGMENT_POOL, policy->max_segments, TEC_SEGMENT_AT, TEC_N_SEGMENT,
              "segment view", "list of segments");
    push_view(L, TEC_REQUEST_AT, TEC_N_REQUEST, "request view");
    lua_rawseti(L, 2, A_CANDIDATE);
    push_view(L, TEC_DEVICE_AT, TEC_N_DEVICE, "device view");
    lua_rawseti(L, 2, A_DEVICE);
    make_pools(L, t);
    make_frame(L, policy);
    tec_host_push_decision(L, policy);
    lua_rawseti(L, 2, A_DECISION);
    make_enter(L, policy);
    return 0;
}
