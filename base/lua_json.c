/* lua_json.c - converts Lua values to JSON.
 *
 * Only Lua functions that do not raise are used, so no protected call is needed. Depth, cycles and
 * the amount of data are checked, because scripts are not trusted. */
#include "base/lua_lib.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_DEPTH = 64, NODE_COST = 64, VISIT_COST = 4 };

struct walker {
    lua_State *state;
    struct tec_error *err;
    int depth;
    const void *open[MAX_DEPTH]; /* tables being converted, to find cycles */
    size_t room; /* bytes that may still be built: a table may be reached many times */
    char path[160];
};

static enum tec_status refuse(const struct walker *w, const char *what)
{
    return tec_fail(w->err, TEC_MALFORMED, "value%s%s: %s", w->path[0] ? " at " : "", w->path,
                    what);
}

static enum tec_status spend(struct walker *w, size_t bytes)
{
    if (bytes > w->room)
        return refuse(w, "more data than the limit of the state allows");
    w->room -= bytes;
    return TEC_OK;
}

static enum tec_status convert(struct walker *w, json_t **out);

/* Convert the value on top for the element that the end of the path names, then restore the
 * path. */
static enum tec_status element(struct walker *w, const char *key, lua_Integer i, json_t **out)
{
    size_t n = strlen(w->path);
    if (key)
        snprintf(w->path + n, sizeof w->path - n, ".%s", key);
    else
        snprintf(w->path + n, sizeof w->path - n, "[%lld]", (long long)i);
    enum tec_status status = convert(w, out);
    w->path[n] = '\0';
    return status;
}

static enum tec_status array(struct walker *w, int table, size_t n, json_t *into)
{
    lua_State *L = w->state;
    for (size_t i = 1; i <= n; i++) {
        json_t *value = NULL;
        lua_rawgeti(L, table, (lua_Integer)i);
        enum tec_status status = element(w, NULL, (lua_Integer)i, &value);
        lua_pop(L, 1);
        TEC_TRY(status);
        if (json_array_append_new(into, value) != 0)
            return tec_fail(w->err, TEC_NO_MEMORY, "no memory for JSON");
    }
    return TEC_OK;
}

/* Convert one member of a table. Its key is on top of the stack and stays there. */
static enum tec_status member(struct walker *w, int table, json_t *into)
{
    lua_State *L = w->state;
    size_t n;
    const char *key = lua_tolstring(L, -1, &n);
    if (memchr(key, 0, n))
        return refuse(w, "a key with a NUL byte");
    TEC_TRY(spend(w, n));
    json_t *value = NULL;
    lua_pushvalue(L, -1);
    lua_rawget(L, table);
    enum tec_status status = element(w, key, 0, &value);
    lua_pop(L, 1);
    TEC_TRY(status);
    if (json_object_set_new(into, key, value) != 0)
        return refuse(w, "a key that is not UTF-8");
    return TEC_OK;
}

static enum tec_status object(struct walker *w, int table, json_t *into)
{
    int64_t visited;
    lua_pushnil(w->state);
    enum tec_lua_scan found;
    while ((found = tec_lua_scan(w->state, table, &visited)) == TEC_LUA_SCAN_KEY) {
        TEC_TRY(spend(w, VISIT_COST * (size_t)visited));
        if (lua_type(w->state, -1) != LUA_TSTRING)
            return refuse(w, "a table has keys 1..n or names, not both and no holes");
        TEC_TRY(member(w, table, into));
    }
    if (found == TEC_LUA_SCAN_MANY)
        return refuse(w, "a table with more than 256 names");
    return found == TEC_LUA_SCAN_TYPE ? refuse(w, "a key that is no integer and no string")
                                      : TEC_OK;
}

/* True if the keys of a table of raw length n are exactly 1 .. n, which is found by counting
 * them. */
static bool is_list(lua_State *L, int table, size_t n)
{
    size_t entries = 0;
    lua_pushnil(L);
    while (lua_next(L, table)) {
        lua_pop(L, 1);
        lua_Integer i = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : 0;
        if (++entries > n || i < 1 || (size_t)i > n) {
            lua_pop(L, 1);
            return false;
        }
    }
    return true;
}

static enum tec_status table(struct walker *w, json_t **out)
{
    lua_State *L = w->state;
    int at = lua_gettop(L);
    const void *self = lua_topointer(L, at);
    for (int i = 0; i < w->depth; i++)
        if (w->open[i] == self)
            return refuse(w, "a table that contains itself");
    if (w->depth == MAX_DEPTH)
        return refuse(w, "tables nested more than 64 deep");
    if (!lua_checkstack(L, 10))
        return tec_fail(w->err, TEC_NO_MEMORY, "no stack left for JSON");
    size_t n = lua_rawlen(L, at);
    bool list = is_list(L, at, n);
    json_t *into = list ? json_array() : json_object();
    if (!into)
        return tec_fail(w->err, TEC_NO_MEMORY, "no memory for JSON");
    w->open[w->depth++] = self;
    enum tec_status status = list ? array(w, at, n, into) : object(w, at, into);
    w->depth--;
    lua_settop(L, at);
    if (status != TEC_OK) {
        json_decref(into);
        return status;
    }
    *out = into;
    return TEC_OK;
}

static enum tec_status text(struct walker *w, json_t **out)
{
    size_t n;
    const char *s = lua_tolstring(w->state, -1, &n);
    TEC_TRY(spend(w, n));
    *out = json_stringn(s, n);
    return *out ? TEC_OK : refuse(w, "a string that is not UTF-8");
}

static enum tec_status convert(struct walker *w, json_t **out)
{
    lua_State *L = w->state;
    TEC_TRY(spend(w, NODE_COST));
    switch (lua_type(L, -1)) {
    case LUA_TNIL:
        *out = json_null();
        return TEC_OK;
    case LUA_TBOOLEAN:
        *out = json_boolean(lua_toboolean(L, -1));
        return TEC_OK;
    case LUA_TNUMBER:
        if (!lua_isinteger(L, -1) && !isfinite(lua_tonumber(L, -1)))
            return refuse(w, "a number that is not finite");
        *out = lua_isinteger(L, -1) ? json_integer(lua_tointeger(L, -1))
                                    : json_real(lua_tonumber(L, -1));
        return *out ? TEC_OK : tec_fail(w->err, TEC_NO_MEMORY, "no memory for JSON");
    case LUA_TSTRING:
        return text(w, out);
    case LUA_TTABLE:
        return table(w, out);
    default:
        return refuse(w, "a function or other value that is no data");
    }
}

enum tec_status tec_lua_to_json(struct tec_lua *lua, int index, json_t **out, struct tec_error *err)
{
    *out = NULL;
    size_t heap = lua->limits.heap ? lua->limits.heap : tec_lua_file_limits.heap;
    struct walker w = {.state = lua->state, .err = err, .room = 4 * heap};
    int top = lua_gettop(lua->state);
    if (!lua_checkstack(lua->state, 10))
        return tec_fail(err, TEC_NO_MEMORY, "no stack left for JSON");
    lua_pushvalue(lua->state, index);
    enum tec_status status = convert(&w, out);
    lua_settop(lua->state, top);
    return status;
}
