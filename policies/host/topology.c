/* topology.c - T, the description of the pipeline that the setup hook may read (nodes, axes, KV
 * pools), and the call of that hook. */
#include "base/nearest.h"
#include "policies/host/host.h"

#include <lauxlib.h>
#include <string.h>

static const struct tec_topology *topology(lua_State *L)
{
    const struct tec_policy *policy = lua_touserdata(L, lua_upvalueindex(1));
    return policy->topology;
}

static int find(lua_State *L, const char *what, const char *const *names, int n)
{
    luaL_checktype(L, 1, LUA_TSTRING);
    const char *name = lua_tostring(L, 1);
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return tec_host_unknown(L, what, name, tec_nearest(name, names, n));
}

static int topology_node(lua_State *L)
{
    const struct tec_topology *t = topology(L);
    const char *names[TEC_MAX_NODES];
    for (int i = 0; i < t->n_nodes; i++)
        names[i] = t->nodes[i].name;
    int at = find(L, "node", names, t->n_nodes);
    lua_createtable(L, 0, 7);
    lua_pushstring(L, t->nodes[at].name);
    lua_setfield(L, -2, "name");
    lua_pushstring(L, t->nodes[at].kind);
    lua_setfield(L, -2, "kind");
    lua_pushinteger(L, t->nodes[at].deadline_us);
    lua_setfield(L, -2, "deadline_us");
    lua_pushboolean(L, t->nodes[at].hard);
    lua_setfield(L, -2, "hard");
    lua_pushboolean(L, t->nodes[at].optional);
    lua_setfield(L, -2, "optional");
    lua_pushinteger(L, t->nodes[at].slices);
    lua_setfield(L, -2, "slices");
    lua_pushstring(L, t->nodes[at].partition ? t->nodes[at].partition : "");
    lua_setfield(L, -2, "partition");
    tec_host_guard(L, "node");
    return 1;
}

static void push_points(lua_State *L, const int *points, int n)
{
    lua_createtable(L, n, 0);
    for (int i = 0; i < n; i++) {
        lua_pushinteger(L, points[i]);
        lua_rawseti(L, -2, i + 1);
    }
}

static int topology_axis(lua_State *L)
{
    static const char *const axes[] = {"batch", "k", "depth", "ratio"};
    const struct tec_topology *t = topology(L);
    switch (find(L, "axis", axes, 4)) {
    case 0:
        push_points(L, t->batch, t->n_batch);
        return 1;
    case 1:
        push_points(L, t->k, t->n_k);
        return 1;
    case 2:
        push_points(L, t->depth, t->n_depth);
        return 1;
    default:
        lua_createtable(L, t->n_ratio, 0);
        for (int i = 0; i < t->n_ratio; i++) {
            lua_pushnumber(L, t->ratio[i]);
            lua_rawseti(L, -2, i + 1);
        }
        return 1;
    }
}

static int topology_kv(lua_State *L)
{
    const struct tec_topology *t = topology(L);
    int at = find(L, "resource", t->kv, t->n_kv);
    int stages = 0;
    for (int i = 0; i < t->n_rings; i++)
        stages = strcmp(t->rings[i].name, t->kv[at]) == 0 ? t->rings[i].stages : stages;
    lua_createtable(L, 0, 2);
    lua_pushstring(L, t->kv[at]);
    lua_setfield(L, -2, "name");
    lua_pushinteger(L, stages);
    lua_setfield(L, -2, "stages");
    tec_host_guard(L, "resource");
    return 1;
}

static void set_list(lua_State *L, const char *field, const char *const *names, int n)
{
    lua_createtable(L, n, 0);
    for (int i = 0; i < n; i++) {
        lua_pushstring(L, names[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, field);
}

/* `rings` names all of them; `ring` and `stages` are those of the first. */
static void push_rings(lua_State *L, const struct tec_topology *t)
{
    const char *names[TEC_MAX_RINGS];
    for (int i = 0; i < t->n_rings; i++)
        names[i] = t->rings[i].name;
    set_list(L, "rings", names, t->n_rings);
    lua_pushinteger(L, t->n_rings ? t->rings[0].stages : 0);
    lua_setfield(L, -2, "stages");
    if (t->n_rings) {
        lua_pushstring(L, t->rings[0].name);
        lua_setfield(L, -2, "ring");
    }
}

static void push_topology(lua_State *L, struct tec_policy *policy)
{
    static const luaL_Reg functions[] = {
        {"node", topology_node}, {"axis", topology_axis}, {"kv", topology_kv}, {NULL, NULL}};
    const struct tec_topology *t = policy->topology;
    const char *nodes[TEC_MAX_NODES];
    for (int i = 0; i < t->n_nodes; i++)
        nodes[i] = t->nodes[i].name;
    luaL_newlibtable(L, functions);
    lua_pushlightuserdata(L, policy);
    luaL_setfuncs(L, functions, 1);
    set_list(L, "nodes", nodes, t->n_nodes);
    set_list(L, "inputs", t->inputs, t->n_inputs);
    set_list(L, "partitions", t->partitions, t->n_partitions);
    lua_pushinteger(L, t->layers);
    lua_setfield(L, -2, "layers");
    lua_pushinteger(L, t->slots);
    lua_setfield(L, -2, "slots");
    lua_pushinteger(L, t->horizon);
    lua_setfield(L, -2, "horizon");
    push_rings(L, t);
    lua_pushinteger(L, t->period_us);
    lua_setfield(L, -2, "period_us");
    tec_host_guard(L, "topology");
}

int tec_host_setup(lua_State *L)
{
    struct tec_policy *policy = lua_touserdata(L, 1);
    tec_host_push_anchors(L);
    lua_rawgeti(L, -1, A_HOOK + TEC_HOOK_setup);
    lua_rawgeti(L, -2, A_STATE);
    push_topology(L, policy);
    lua_call(L, 2, 0);
    return 0;
}
