/* construct.c - the strict constructors policy{}, int{} and num{}, and the code that takes their
 * values over into the host's policy. */
#include "base/nearest.h"
#include "policies/host/host.h"

#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SPEC_MAGIC = 0x53504543, MAX_FIELDS = 24, MAX_NAME = 31 };

/* The value of int{} and num{}: userdata, which no script can forge. */
struct spec {
    unsigned magic;
    bool is_int;
    double def, min, max;
};

static const char *const hook_names[] = {
#define HOOK(name, args, meaning, without) #name,
#include "policies/hooks.def"
};

static const char policy_key = 'p'; /* its address is the key in the registry */
static const char *const policy_fields[] = {
    "name", "api", "version", "needs", "params", "state",
#define HOOK(name, args, meaning, without) #name,
#include "policies/hooks.def"
};
static const char *const spec_fields[] = {"default", "min", "max"};

#define COUNT(list) ((int)(sizeof(list) / sizeof(list)[0]))

static bool known(const char *name, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Raise an error if the table at 1 has a field that is none of `names`; of several, the first in
 * byte order is named. */
static void check_fields(lua_State *L, const char *what, const char *const *names, int n)
{
    const char *wrong = NULL;
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_pushnil(L);
    while (lua_next(L, 1)) {
        lua_pop(L, 1);
        if (lua_type(L, -1) != LUA_TSTRING)
            luaL_error(L, "%s takes named fields only", what);
        const char *name = lua_tostring(L, -1);
        if (!known(name, names, n) && (!wrong || strcmp(name, wrong) < 0))
            wrong = name;
    }
    if (!wrong)
        return;
    char message[200];
    const char *near = tec_nearest(wrong, names, n);
    snprintf(message, sizeof message, "unknown field '%.60s' in %s%s", wrong, what,
             tec_meant(',', near).text);
    luaL_error(L, "%s", message);
}

/* The finite number in the field, or `missing` if the field is absent. */
static double number_field(lua_State *L, const char *what, const char *field, double missing)
{
    double value = missing;
    int type = lua_getfield(L, 1, field);
    if (type == LUA_TNUMBER)
        value = lua_tonumber(L, -1);
    if ((type != LUA_TNUMBER && type != LUA_TNIL) || !isfinite(value))
        luaL_error(L, "%s: field '%s' must be a finite number", what, field);
    lua_pop(L, 1);
    return value;
}

static int make_spec(lua_State *L, bool is_int)
{
    const char *what = is_int ? "int" : "num";
    double widest = is_int ? 9007199254740992.0 : 1e300;
    check_fields(L, what, spec_fields, COUNT(spec_fields));
    if (lua_getfield(L, 1, "default") == LUA_TNIL)
        return luaL_error(L, "%s: field 'default' is missing", what);
    lua_pop(L, 1);
    struct spec spec = {SPEC_MAGIC, is_int, number_field(L, what, "default", 0),
                        number_field(L, what, "min", -widest),
                        number_field(L, what, "max", widest)};
    if (spec.min < -widest || spec.max > widest)
        return luaL_error(L, "%s: the limits are -%f and %f", what, widest, widest);
    if (is_int &&
        (floor(spec.def) != spec.def || floor(spec.min) != spec.min || floor(spec.max) != spec.max))
        return luaL_error(L, "int: default, min and max must be integers");
    if (spec.min > spec.max || spec.def < spec.min || spec.def > spec.max)
        return luaL_error(L, "%s: default %f must lie between min %f and max %f", what, spec.def,
                          spec.min, spec.max);
    *(struct spec *)lua_newuserdatauv(L, sizeof spec, 0) = spec;
    return 1;
}

static int construct_int(lua_State *L)
{
    return make_spec(L, true);
}

static int construct_num(lua_State *L)
{
    return make_spec(L, false);
}

static void want(lua_State *L, const char *field, int type, bool required)
{
    int is = lua_getfield(L, 1, field);
    if (is != type && (is != LUA_TNIL || required))
        luaL_error(L, "policy: field '%s' must be a %s, it is %s", field, lua_typename(L, type),
                   is == LUA_TNIL ? "missing" : lua_typename(L, is));
    lua_pop(L, 1);
}

static int construct_policy(lua_State *L)
{
    check_fields(L, "policy", policy_fields, COUNT(policy_fields));
    want(L, "name", LUA_TSTRING, true);
    want(L, "api", LUA_TNUMBER, true);
    want(L, "version", LUA_TNUMBER, false);
    want(L, "needs", LUA_TTABLE, false);
    want(L, "params", LUA_TTABLE, false);
    want(L, "state", LUA_TTABLE, false);
    for (int i = 0; i < TEC_HOOKS; i++)
        want(L, hook_names[i], LUA_TFUNCTION, i == TEC_HOOK_plan);
    lua_getfield(L, 1, "api");
    if (!lua_isinteger(L, -1) || lua_tointeger(L, -1) != 1)
        return luaL_error(L, "policy: api must be 1, the only one this engine has");
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &policy_key) != LUA_TNIL)
        return luaL_error(L, "policy: a file defines one policy");
    lua_pushvalue(L, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &policy_key);
    lua_settop(L, 1);
    return 1;
}

int tec_host_constructors(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"policy", construct_policy}, {"int", construct_int}, {"num", construct_num}, {NULL, NULL}};
    struct tec_policy *policy = lua_touserdata(L, 1);
    lua_createtable(L, A_HOOK + TEC_HOOKS, 0);
    tec_host_anchor(L);
    tec_lua_push_env(policy->lua);
    for (const luaL_Reg *f = functions; f->name; f++) {
        lua_pushstring(L, f->name);
        lua_pushcfunction(L, f->func);
        lua_rawset(L, -3);
    }
    return 0;
}

/* The parameter spec on top of the stack, if int{} or num{} made it. */
static const struct spec *to_spec(lua_State *L, const char *name)
{
    static const struct spec none;
    bool fits = lua_type(L, -1) == LUA_TUSERDATA && lua_rawlen(L, -1) == sizeof none;
    const struct spec *spec = fits ? lua_touserdata(L, -1) : &none;
    if (!spec || spec->magic != SPEC_MAGIC)
        luaL_error(L, "policy: parameter '%s' must be int{} or num{}", name);
    return spec ? spec : &none;
}

static void adopt_param(lua_State *L, struct tec_policy *policy)
{
    if (lua_type(L, -2) != LUA_TSTRING)
        luaL_error(L, "policy: params has named fields only");
    const char *name = lua_tostring(L, -2);
    if (strlen(name) > MAX_NAME || lua_rawlen(L, -2) != strlen(name))
        luaL_error(L, "policy: a parameter's name has at most %d letters", MAX_NAME);
    const struct spec *spec = to_spec(L, name);
    if (policy->n_params == TEC_MAX_PARAMS)
        luaL_error(L, "policy: more than %d parameters", TEC_MAX_PARAMS);
    int at = policy->n_params++; /* parameters are kept in order of name */
    for (; at > 0 && strcmp(policy->params[at - 1].name, name) > 0; at--)
        policy->params[at] = policy->params[at - 1];
    struct tec_param *param = &policy->params[at];
    *param = (struct tec_param){.is_int = spec->is_int,
                                .value = spec->def,
                                .def = spec->def,
                                .min = spec->min,
                                .max = spec->max};
    memcpy(param->name, name, strlen(name) + 1);
}

static void adopt_params(lua_State *L, struct tec_policy *policy)
{
    if (lua_getfield(L, 2, "params") == LUA_TTABLE) {
        int params = lua_gettop(L);
        for (lua_pushnil(L); lua_next(L, params); lua_pop(L, 1))
            adopt_param(L, policy);
    }
    lua_settop(L, 2);
}

struct axis {
    const char *name;
    int points;
};

static void adopt_needs(lua_State *L, struct tec_policy *policy)
{
    const struct tec_topology *t = policy->topology;
    const struct axis axes[] = {{"decode.k", t->n_k},  {"decode.batch", t->n_batch},
                                {"k", t->n_k},         {"batch", t->n_batch},
                                {"depth", t->n_depth}, {"ratio", t->n_ratio}};
    int n = lua_getfield(L, 2, "needs") == LUA_TTABLE ? (int)lua_rawlen(L, -1) : 0;
    for (int i = 1; i <= n && i <= MAX_FIELDS; i++) {
        const char *need = lua_rawgeti(L, 3, i) == LUA_TSTRING ? lua_tostring(L, -1) : "?";
        int at = 0;
        while (at < COUNT(axes) && strcmp(need, axes[at].name) != 0)
            at++;
        if (at == COUNT(axes))
            luaL_error(L,
                       "policy: needs '%s', which is no axis: decode.k, decode.batch, depth or "
                       "ratio",
                       need);
        policy->unfit = axes[at].points == 0;
        if (policy->unfit)
            luaL_error(L, "policy '%s' needs axis '%s', for which the pipeline captures no point",
                       policy->name, need);
        lua_pop(L, 1);
    }
    lua_settop(L, 2);
}

static void keep(lua_State *L, int anchors, const char *field, int anchor)
{
    if (lua_getfield(L, 2, field) == LUA_TNIL)
        lua_pop(L, 1);
    else
        lua_rawseti(L, anchors, anchor);
}

/* Arguments: the policy, and the value that its file returned. */
int tec_host_adopt(lua_State *L)
{
    struct tec_policy *policy = lua_touserdata(L, 1);
    lua_settop(L, 2);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &policy_key);
    if (!lua_istable(L, -1) || !lua_rawequal(L, -1, 2))
        return luaL_error(L, "the file must end with 'return policy { ... }'");
    lua_settop(L, 2);
    lua_getfield(L, 2, "name");
    tec_host_copy_text(policy->name, sizeof policy->name, lua_tostring(L, -1));
    lua_getfield(L, 2, "version");
    if (!lua_isnil(L, -1) && !lua_isinteger(L, -1))
        return luaL_error(L, "policy: version must be an integer");
    policy->version = (int)lua_tointeger(L, -1);
    lua_settop(L, 2);
    adopt_params(L, policy);
    adopt_needs(L, policy);
    tec_host_push_anchors(L);
    lua_newtable(L);
    lua_rawseti(L, 3, A_STATE);
    keep(L, 3, "state", A_STATE);
    for (int i = 0; i < TEC_HOOKS; i++) {
        keep(L, 3, hook_names[i], A_HOOK + i);
        policy->has[i] = lua_rawgeti(L, 3, A_HOOK + i) == LUA_TFUNCTION;
        lua_settop(L, 3);
    }
    return 0;
}
