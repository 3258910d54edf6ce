/* lua_give.c - passes a JSON value to a Lua sandbox as a table under a name. */
#include "base/lua_lib.h"

#include <lauxlib.h>

enum { MAX_DEPTH = 64 };

static void push(lua_State *L, json_t *value, int depth);

static void push_object(lua_State *L, json_t *value, int depth)
{
    const char *key;
    json_t *item;
    lua_newtable(L);
    json_object_foreach(value, key, item)
    {
        lua_pushstring(L, key);
        push(L, item, depth + 1);
        lua_rawset(L, -3);
    }
}

static void push_array(lua_State *L, json_t *value, int depth)
{
    lua_newtable(L);
    for (size_t i = 0; i < json_array_size(value); i++) {
        push(L, json_array_get(value, i), depth + 1);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

/* Push a JSON value; null becomes nil. Raises a Lua error if the value is nested too deep or memory
 * runs out. */
static void push(lua_State *L, json_t *value, int depth)
{
    luaL_checkstack(L, 4, "JSON");
    if (depth > MAX_DEPTH)
        luaL_error(L, "JSON is more than %d deep", MAX_DEPTH);
    if (json_is_object(value))
        push_object(L, value, depth);
    else if (json_is_array(value))
        push_array(L, value, depth);
    else if (json_is_string(value))
        lua_pushlstring(L, json_string_value(value), json_string_length(value));
    else if (json_is_integer(value))
        lua_pushinteger(L, json_integer_value(value));
    else if (json_is_real(value))
        lua_pushnumber(L, json_real_value(value));
    else if (json_is_boolean(value))
        lua_pushboolean(L, json_is_true(value));
    else
        lua_pushnil(L);
}

struct gift {
    const char *name;
    json_t *value;
};

static int give(lua_State *L)
{
    const struct gift *gift = lua_touserdata(L, 1);
    tec_lua_push_names(L);
    lua_pushstring(L, gift->name);
    push(L, gift->value, 0);
    lua_rawset(L, -3);
    return 0;
}

enum tec_status tec_lua_give(struct tec_lua *lua, const char *name, json_t *value,
                             struct tec_error *err)
{
    struct gift gift = {name, value};
    lua_pushcfunction(lua->state, give);
    lua_pushlightuserdata(lua->state, &gift);
    enum tec_status status = tec_lua_call(lua, 1, 0, err);
    return tec_context(err, status, "value '%s'", name);
}
