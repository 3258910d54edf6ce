/* lua_table.c - table.insert, remove and sort for scripts: bounded, stable, and only for lists of
 * their own. */
#include "base/lua_lib.h"

#include <lauxlib.h>

enum { MAX_LENGTH = 1024 };

static lua_Integer length(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    if (lua_getmetatable(L, 1))
        luaL_error(L, "table functions take lists of your own: this table is read-only");
    tec_lua_check(L);
    size_t n = lua_rawlen(L, 1);
    if (n > MAX_LENGTH)
        luaL_error(L, "list of %d elements, the limit of table functions is %d",
                   n > INT32_MAX ? INT32_MAX : (int)n, MAX_LENGTH);
    return (lua_Integer)n;
}

static int lib_insert(lua_State *L)
{
    lua_Integer n = length(L), at = n + 1;
    int args = lua_gettop(L);
    if (args != 2 && args != 3)
        return luaL_error(L, "table.insert takes (list, value) or (list, position, value)");
    if (args == 3) {
        tec_lua_check_numeral(L, 2);
        at = luaL_checkinteger(L, 2);
    }
    luaL_argcheck(L, at >= 1 && at <= n + 1, 2, "position out of bounds");
    for (lua_Integer i = n; i >= at; i--) {
        lua_rawgeti(L, 1, i);
        lua_rawseti(L, 1, i + 1);
    }
    lua_pushvalue(L, args);
    lua_rawseti(L, 1, at);
    tec_lua_charge(L, n - at + 1);
    return 0;
}

static int lib_remove(lua_State *L)
{
    tec_lua_check_numeral(L, 2);
    lua_Integer n = length(L), at = luaL_optinteger(L, 2, n);
    luaL_argcheck(L, (at >= 1 && at <= n + 1) || (at == 0 && n == 0), 2, "position out of bounds");
    lua_rawgeti(L, 1, at);
    for (lua_Integer i = at; i < n; i++) {
        lua_rawgeti(L, 1, i + 1);
        lua_rawseti(L, 1, i);
    }
    if (at <= n) {
        lua_pushnil(L);
        lua_rawseti(L, 1, n);
    }
    tec_lua_charge(L, n - at + 1);
    return 1;
}

/* True if the value on top is smaller than the one below it. Pops neither. */
static bool smaller(lua_State *L, bool own_order)
{
    tec_lua_charge(L, 2);
    if (!own_order)
        return lua_compare(L, -1, -2, LUA_OPLT);
    lua_pushvalue(L, 2);
    lua_pushvalue(L, -2);
    lua_pushvalue(L, -4);
    lua_call(L, 2, 1);
    bool yes = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return yes;
}

/* Insertion sort: it is stable, so equal elements have one order everywhere, whatever the
 * comparison does. */
static int lib_sort(lua_State *L)
{
    lua_Integer n = length(L);
    bool own_order = !lua_isnoneornil(L, 2);
    if (own_order)
        luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_settop(L, 2);
    for (lua_Integer i = 2; i <= n; i++) {
        lua_Integer j = i - 1;
        for (; j >= 1; j--) {
            lua_rawgeti(L, 1, j);
            lua_rawgeti(L, 1, j + 1);
            if (!smaller(L, own_order))
                break;
            lua_rawseti(L, 1, j);
            lua_rawseti(L, 1, j + 1);
        }
        lua_settop(L, 2);
    }
    return 0;
}

void tec_lua_push_table_functions(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"insert", lib_insert}, {"remove", lib_remove}, {"sort", lib_sort}, {NULL, NULL}};
    luaL_newlib(L, functions);
}
