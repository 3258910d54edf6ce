/* argument.c - reads tables that a script gives to a C function strictly, and raises an error for
 * anything unexpected. */
#include "tools/policy/argument.h"

#include "base/nearest.h"

#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static bool known(const char *name, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

void tec_argument_check(lua_State *L, int table, const char *what, const char *const *names, int n)
{
    const char *wrong = NULL;
    luaL_checktype(L, table, LUA_TTABLE);
    table = lua_absindex(L, table);
    lua_pushnil(L);
    while (lua_next(L, table)) {
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

/* Push the field; false, with nothing pushed, when it is nil. */
static bool push(lua_State *L, int table, const char *name, int type)
{
    table = lua_absindex(L, table);
    lua_pushstring(L, name);
    int found = lua_rawget(L, table);
    if (found == LUA_TNIL) {
        lua_pop(L, 1);
        return false;
    }
    if (found != type)
        luaL_error(L, "field '%s' must be a %s, it is %s", name, lua_typename(L, type),
                   lua_typename(L, found));
    return true;
}

double tec_argument_number(lua_State *L, int table, const char *name, double missing)
{
    if (!push(L, table, name, LUA_TNUMBER))
        return missing;
    double value = lua_tonumber(L, -1);
    lua_pop(L, 1);
    return value;
}

int tec_argument_int(lua_State *L, int table, const char *name, int low, int high, int missing)
{
    double value = tec_argument_number(L, table, name, missing);
    if (value == missing)
        return missing;
    if (!(value >= low && value <= high) || floor(value) != value)
        luaL_error(L, "field '%s' must be a whole number from %d to %d, it is %f", name, low, high,
                   value);
    return (int)value;
}

int64_t tec_argument_us(lua_State *L, int table, const char *name, int64_t missing)
{
    if (!push(L, table, name, LUA_TNUMBER))
        return missing;
    double value = lua_tonumber(L, -1);
    int64_t us = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : 0;
    if (!lua_isinteger(L, -1)) {
        if (isnan(value) || (floor(value) != value && !isinf(value)))
            luaL_error(L, "field '%s' must be a whole number of microseconds, it is %f", name,
                       value);
        us = value >= 9.2e18 ? INT64_MAX : value <= -9.2e18 ? INT64_MIN : (int64_t)value;
    }
    lua_pop(L, 1);
    return us;
}

bool tec_argument_bool(lua_State *L, int table, const char *name, bool missing)
{
    if (!push(L, table, name, LUA_TBOOLEAN))
        return missing;
    bool value = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return value;
}

const char *tec_argument_text(lua_State *L, int table, const char *name, const char *missing)
{
    if (!push(L, table, name, LUA_TSTRING))
        return missing;
    const char *value = lua_tostring(L, -1); /* the text lives as long as the table */
    lua_pop(L, 1);
    return value;
}

int tec_argument_table(lua_State *L, int table, const char *name)
{
    if (!push(L, table, name, LUA_TTABLE))
        return -1;
    size_t n = lua_rawlen(L, -1);
    return n > INT32_MAX ? INT32_MAX : (int)n;
}
