/* frame.c - the functions of F (cost, slack_us, kv, rng), and the guard against unknown fields and
 * writes that all tables for scripts share. */
#include "base/nearest.h"
#include "policies/host/host.h"

#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

int tec_host_unknown(lua_State *L, const char *what, const char *name, const char *near)
{
    char message[200];
    snprintf(message, sizeof message, "unknown %s '%.60s'%s", what, name,
             tec_meant(',', near).text);
    return luaL_error(L, "%s", message);
}

static int no_field(lua_State *L)
{
    char message[240];
    const char *what = lua_tostring(L, lua_upvalueindex(1));
    /* An index past the end of a list gives nil, as loops over lists expect. */
    if (lua_type(L, 2) == LUA_TNUMBER)
        return 0;
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : luaL_typename(L, 2);
    const char *near = tec_lua_nearest_key(L, 1, name);
    snprintf(message, sizeof message, "no field '%.60s' in %s%s", name, what,
             tec_meant(',', near).text);
    return luaL_error(L, "%s", message);
}

static int no_write(lua_State *L)
{
    return luaL_error(L, "%s is read-only", lua_tostring(L, lua_upvalueindex(1)));
}

void tec_host_guard(lua_State *L, const char *what)
{
    lua_createtable(L, 0, 2);
    lua_pushstring(L, what);
    lua_pushcclosure(L, no_field, 1);
    lua_setfield(L, -2, "__index");
    lua_pushstring(L, what);
    lua_pushcclosure(L, no_write, 1);
    lua_setfield(L, -2, "__newindex");
    lua_setmetatable(L, -2);
}

/* The policy whose view is current; the functions of F are errors outside a frame. */
static struct tec_policy *in_frame(lua_State *L)
{
    struct tec_policy *policy = lua_touserdata(L, lua_upvalueindex(1));
    if (!policy->view)
        luaL_error(L, "F can be used inside a frame's hooks only");
    return policy;
}

/* The number argument, or `missing`; a text that looks like a number is refused. */
static double optional(lua_State *L, int arg, double missing)
{
    if (lua_isnoneornil(L, arg))
        return missing;
    luaL_checktype(L, arg, LUA_TNUMBER);
    return lua_tonumber(L, arg);
}

static double quantile(lua_State *L, int arg)
{
    double q = optional(L, arg, 0.99);
    if (!(q >= 0 && q <= 1))
        luaL_error(L, "q must lie between 0 and 1, it is %f", q);
    return q;
}

/* What is told of a name that nothing costs. */
static int unknown_cost(lua_State *L, const struct tec_topology *t, const char *name)
{
    const char *names[TEC_MAX_NODES + 4] = {"prefill", "action", "decode", "packed"};
    char message[200];
    int n = 4;
    for (int i = 0; i < t->n_nodes && i < TEC_MAX_NODES; i++)
        names[n++] = t->nodes[i].name;
    const char *near = tec_nearest(name, names, n);
    near = near && strcmp(near, name) != 0 ? near : NULL;
    snprintf(message, sizeof message, "F.cost: no cost is known for '%.60s'%s", name,
             tec_meant(',', near).text);
    return luaL_error(L, "%s", message);
}

static int frame_cost(lua_State *L)
{
    struct tec_policy *policy = in_frame(L);
    const struct tec_cost_source *costs = &policy->view->costs;
    if (lua_type(L, 1) != LUA_TSTRING)
        return luaL_error(L, "F.cost(name, point, q): the name is %s", luaL_typename(L, 1));
    double point = optional(L, 2, 0), q = quantile(L, 3);
    if (!isfinite(point))
        return luaL_error(L, "F.cost: the point must be finite");
    double us = costs->cost ? costs->cost(costs->self, lua_tostring(L, 1), point, q) : -1;
    if (!(us >= 0))
        return unknown_cost(L, policy->topology, lua_tostring(L, 1));
    tec_record_cost(policy->record, lua_tostring(L, 1), point, q, us);
    lua_pushnumber(L, us);
    return 1;
}

static int frame_slack(lua_State *L)
{
    struct tec_policy *policy = in_frame(L);
    const struct tec_cost_source *costs = &policy->view->costs;
    double q = quantile(L, 1), us = costs->slack ? costs->slack(costs->self, q) : 0;
    tec_record_cost(policy->record, "", 0, q, us);
    lua_pushnumber(L, us);
    return 1;
}

/* F.kv(name). Upvalues: the policy, and the pools by name. */
static int frame_kv(lua_State *L)
{
    in_frame(L);
    luaL_checktype(L, 1, LUA_TSTRING);
    lua_settop(L, 1);
    lua_pushvalue(L, 1);
    if (lua_rawget(L, lua_upvalueindex(2)) == LUA_TTABLE)
        return 1;
    const char *name = lua_tostring(L, 1);
    return tec_host_unknown(L, "resource", name, tec_lua_nearest_key(L, lua_upvalueindex(2), name));
}

/* A bijection of 64-bit words that leaves no visible pattern of its input (Steele, Lea, Flood
 * 2014). */
static uint64_t scramble(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* F.rng(): a number in [0, 1) that is the same for the same seed, frame, hook and number of
 * draws. */
static int frame_rng(lua_State *L)
{
    struct tec_policy *policy = in_frame(L);
    uint64_t x = scramble(policy->view->seed);
    x = scramble(x ^ (uint64_t)policy->view->index);
    x = scramble(x ^ ((uint64_t)policy->hook << 56) ^ policy->draws++);
    lua_pushnumber(L, (double)(x >> 11) * 0x1p-53);
    return 1;
}

void tec_host_add_functions(lua_State *L, struct tec_policy *policy)
{
    static const luaL_Reg functions[] = {{"cost", frame_cost},
                                         {"slack_us", frame_slack},
                                         {"kv", frame_kv},
                                         {"rng", frame_rng},
                                         {NULL, NULL}};
    for (const luaL_Reg *f = functions; f->name; f++) {
        lua_pushstring(L, f->name);
        lua_pushlightuserdata(L, policy);
        lua_pushvalue(L, -3);
        lua_pushcclosure(L, f->func, 2);
        lua_rawset(L, -4);
    }
    lua_pop(L, 1);
}
