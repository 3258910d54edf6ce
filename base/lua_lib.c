/* lua_lib.c - the functions that a script may call. All of them run inside a protected call.
 *
 * Results must not differ from run to run: tables are traversed in key order, values without a text
 * are shown by their type instead of their address, and there are no random numbers. */
#include "base/lua_lib.h"
#include "base/nearest.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <string.h>

enum { MAX_STRING_KEYS = 256, MAX_FORMAT = 128, MAX_FORMATTED = 1024 };
enum { SCAN_WORK = 50 };

static const char names_key = 'n'; /* its address is the key in the registry */

void tec_lua_push_names(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &names_key);
}

/* A key of a table. The text is the table's, or that of a place on the stack. */
struct key {
    bool is_string;
    lua_Integer number;
    const char *text;
    size_t n;
};

/* The key at a place; false: it is neither an integer nor a string. */
static bool read_key(lua_State *L, int at, struct key *key)
{
    key->is_string = lua_type(L, at) == LUA_TSTRING;
    if (key->is_string) {
        key->text = lua_tolstring(L, at, &key->n);
        return true;
    }
    key->number = lua_tointeger(L, at);
    return lua_isinteger(L, at);
}

/* Whether a comes before b: integers ascending, then strings in byte order. */
static bool key_before(const struct key *a, const struct key *b)
{
    if (a->is_string != b->is_string)
        return b->is_string;
    if (!a->is_string)
        return a->number < b->number;
    int order = memcmp(a->text, b->text, a->n < b->n ? a->n : b->n);
    return order < 0 || (order == 0 && a->n < b->n);
}

/* Find the smallest key that comes after the given one in a single pass over the table. This needs
 * no memory, and the order does not depend on addresses. Lua is asked once for each key: the pass
 * is made for every key again. */
static enum tec_lua_scan scan_all(lua_State *L, int index, int64_t *visited)
{
    int from = lua_gettop(L), best = from + 1, strings = 0;
    struct key given = {.n = 0}, smallest = {.n = 0}, key = {.n = 0};
    bool begins = lua_isnil(L, from), found = false;
    if (!begins && !read_key(L, from, &given)) {
        lua_settop(L, from - 1);
        return TEC_LUA_SCAN_TYPE;
    }
    lua_pushnil(L);
    lua_pushnil(L);
    while (lua_next(L, index)) {
        lua_pop(L, 1);
        (*visited)++;
        bool good = read_key(L, -1, &key);
        strings += good && key.is_string;
        if (!good || strings > MAX_STRING_KEYS) {
            lua_settop(L, from - 1);
            return good ? TEC_LUA_SCAN_MANY : TEC_LUA_SCAN_TYPE;
        }
        if ((begins || key_before(&given, &key)) && (!found || key_before(&key, &smallest))) {
            lua_copy(L, -1, best);
            smallest = key;
            found = true;
        }
    }
    lua_copy(L, best, from);
    lua_settop(L, found ? from : from - 1);
    return found ? TEC_LUA_SCAN_KEY : TEC_LUA_SCAN_END;
}

enum tec_lua_scan tec_lua_scan(lua_State *L, int index, int64_t *visited)
{
    index = lua_absindex(L, index);
    *visited = 1;
    if (lua_isinteger(L, -1) && lua_tointeger(L, -1) < LUA_MAXINTEGER) {
        lua_Integer following = lua_tointeger(L, -1) + 1;
        bool there = lua_rawgeti(L, index, following) != LUA_TNIL;
        lua_pop(L, 1);
        if (there) {
            lua_pop(L, 1);
            lua_pushinteger(L, following);
            return TEC_LUA_SCAN_KEY;
        }
    }
    return scan_all(L, index, visited);
}

static int lib_next(lua_State *L)
{
    int64_t visited = 0;
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 2);
    if (!lua_isnil(L, 2) && lua_type(L, 2) != LUA_TSTRING && !lua_isinteger(L, 2))
        return luaL_error(L, "next: the key must be a string or an integer");
    enum tec_lua_scan found = tec_lua_scan(L, 1, &visited);
    tec_lua_charge(L, visited > 1 ? visited + SCAN_WORK : visited);
    switch (found) {
    case TEC_LUA_SCAN_KEY:
        lua_pushvalue(L, -1);
        lua_rawget(L, 1);
        return 2;
    case TEC_LUA_SCAN_END:
        lua_pushnil(L);
        return 1;
    case TEC_LUA_SCAN_MANY:
        return luaL_error(L, "a table with more than %d string keys cannot be iterated",
                          MAX_STRING_KEYS);
    case TEC_LUA_SCAN_TYPE:
        break;
    }
    return luaL_error(L, "only string and integer keys can be iterated: others have no order");
}

static int lib_pairs(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    tec_lua_check(L);
    lua_pushcfunction(L, lib_next);
    lua_pushvalue(L, 1);
    lua_pushnil(L);
    return 3;
}

/* Push a value as text. Values other than strings, numbers and booleans show only their type,
 * because addresses differ from run to run. */
static void push_text(lua_State *L, int index)
{
    int type = lua_type(L, index);
    if (type == LUA_TSTRING || type == LUA_TNUMBER) {
        lua_pushvalue(L, index);
        lua_tolstring(L, -1, NULL);
    } else if (type == LUA_TBOOLEAN) {
        lua_pushstring(L, lua_toboolean(L, index) ? "true" : "false");
    } else {
        lua_pushstring(L, lua_typename(L, type));
    }
}

static int lib_tostring(lua_State *L)
{
    luaL_checkany(L, 1);
    push_text(L, 1);
    return 1;
}

/* Call the function of Lua's math library that is the upvalue, with bounded numerals and work
 * charged. */
static int lib_math(lua_State *L)
{
    int n = lua_gettop(L);
    tec_lua_charge(L, n);
    for (int i = 1; i <= n; i++)
        tec_lua_check_numeral(L, i);
    return lua_tocfunction(L, lua_upvalueindex(1))(L);
}

static int lib_select(lua_State *L)
{
    int n = lua_gettop(L);
    tec_lua_charge(L, n);
    if (lua_type(L, 1) == LUA_TSTRING && *lua_tostring(L, 1) == '#') {
        lua_pushinteger(L, n - 1);
        return 1;
    }
    tec_lua_check_numeral(L, 1);
    lua_Integer i = luaL_checkinteger(L, 1);
    if (i < 0)
        i = n + i;
    else if (i > n)
        i = n;
    luaL_argcheck(L, i >= 1, 1, "index out of range");
    return n - (int)i;
}

/* tonumber, for which texts longer than TEC_LUA_NUMERAL are not numbers. The upvalue is Lua's
 * tonumber. */
static int lib_tonumber(lua_State *L)
{
    tec_lua_check_numeral(L, 2);
    tec_lua_charge(L, 1);
    if (lua_type(L, 1) != LUA_TSTRING || lua_rawlen(L, 1) <= TEC_LUA_NUMERAL)
        return lua_tocfunction(L, lua_upvalueindex(1))(L);
    lua_pushnil(L);
    return 1;
}

struct text {
    char bytes[MAX_FORMATTED];
    size_t n;
};

static void append(lua_State *L, struct text *text, const char *bytes, size_t n)
{
    if (n > sizeof text->bytes - text->n)
        luaL_error(L, "string.format: a result longer than %d bytes", MAX_FORMATTED);
    memcpy(text->bytes + text->n, bytes, n);
    text->n += n;
}

static void append_value(lua_State *L, struct text *text, char what, int arg)
{
    char number[64];
    size_t n;
    if (what == 'd' || what == 'g')
        tec_lua_check_numeral(L, arg);
    switch (what) {
    case 'd':
        n = (size_t)snprintf(number, sizeof number, "%lld", (long long)luaL_checkinteger(L, arg));
        append(L, text, number, n);
        break;
    case 'g':
        n = (size_t)snprintf(number, sizeof number, "%g", luaL_checknumber(L, arg));
        append(L, text, number, n);
        break;
    case 's': {
        luaL_checkany(L, arg);
        push_text(L, arg);
        const char *s = lua_tolstring(L, -1, &n);
        append(L, text, s, n);
        lua_pop(L, 1);
        break;
    }
    default:
        luaL_error(L, "string.format knows %%d, %%g, %%s and %%%%");
    }
}

static int lib_format(lua_State *L)
{
    size_t n;
    const char *format = luaL_checklstring(L, 1, &n);
    if (n > MAX_FORMAT)
        return luaL_error(L, "string.format: a format of %d bytes, the limit is %d", (int)n,
                          MAX_FORMAT);
    tec_lua_check(L);
    struct text text = {.n = 0};
    int arg = 1;
    for (size_t i = 0; i < n; i++) {
        if (format[i] != '%')
            append(L, &text, format + i, 1);
        else if (++i < n && format[i] == '%')
            append(L, &text, "%", 1);
        else
            append_value(L, &text, (char)(i < n ? format[i] : 0), ++arg);
    }
    lua_pushlstring(L, text.bytes, text.n);
    return 1;
}

const char *tec_lua_nearest_key(lua_State *L, int index, const char *word)
{
    index = lua_absindex(L, index);
    const char *best = NULL;
    int limit = tec_near_limit(word);
    lua_pushnil(L);
    while (lua_next(L, index)) {
        lua_pop(L, 1);
        if (lua_type(L, -1) != LUA_TSTRING)
            continue;
        const char *name = lua_tostring(L, -1);
        int d = tec_word_distance(word, name, limit);
        /* Lua's traversal order is random: among equal distances the first name in byte order
         * wins. */
        if (d < limit || (d == limit && (!best || strcmp(name, best) < 0))) {
            best = name;
            limit = d;
        }
    }
    return best;
}

static int unknown_name(lua_State *L)
{
    if (lua_type(L, 2) != LUA_TSTRING)
        return luaL_error(L, "names of globals are strings");
    const char *name = lua_tostring(L, 2);
    lua_settop(L, 2);
    tec_lua_push_names(L);
    const char *near = tec_lua_nearest_key(L, 3, name);
    char message[200];
    if (near)
        snprintf(message, sizeof message, "unknown name '%.80s', did you mean '%.80s'?", name,
                 near);
    else
        snprintf(message, sizeof message, "unknown name '%.80s'", name);
    return luaL_error(L, "%s", message);
}

static int no_globals(lua_State *L)
{
    char message[200];
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "?";
    snprintf(message, sizeof message, "global '%.80s' cannot be assigned: write 'local %.40s'",
             name, name);
    return luaL_error(L, "%s", message);
}

/* Copy named functions from the table on top into the table below it; pops the former. */
static void copy_names(lua_State *L, const char *const *names)
{
    for (; *names; names++) {
        lua_getfield(L, -1, *names);
        lua_setfield(L, -3, *names);
    }
    lua_pop(L, 1);
}

static const char *const base_names[] = {"assert", "error", "ipairs", "type", "tonumber", NULL};
static const luaL_Reg own_base[] = {{"next", lib_next},
                                    {"pairs", lib_pairs},
                                    {"select", lib_select},
                                    {"tostring", lib_tostring},
                                    {NULL, NULL}};
static const luaL_Reg own_string[] = {{"format", lib_format}, {NULL, NULL}};
static const luaL_Reg on_missing[] = {
    {"__index", unknown_name}, {"__newindex", no_globals}, {NULL, NULL}};

static int no_library(lua_State *L)
{
    return luaL_error(L, "library '%s' is read-only", lua_tostring(L, lua_upvalueindex(1)));
}

/* Pop a library and store it as `name` in the table below it, behind an empty table that makes it
 * read-only. */
static void set_library(lua_State *L, const char *name)
{
    lua_createtable(L, 0, 0);
    lua_createtable(L, 0, 2);
    lua_rotate(L, -3, -1);
    lua_setfield(L, -2, "__index");
    lua_pushstring(L, name);
    lua_pushcclosure(L, no_library, 1);
    lua_setfield(L, -2, "__newindex");
    lua_setmetatable(L, -2);
    lua_setfield(L, -2, name);
}

/* Replace the function `name` of the table on top by `wrapper` with it as upvalue. */
static void wrap(lua_State *L, const char *name, lua_CFunction wrapper)
{
    if (lua_getfield(L, -1, name) == LUA_TFUNCTION) {
        lua_pushcclosure(L, wrapper, 1);
        lua_setfield(L, -2, name);
    } else {
        lua_pop(L, 1);
    }
}

static const char *const wrapped_math[] = {
    "abs", "acos", "asin", "atan", "ceil", "cos",  "deg", "exp", "floor",     "fmod", "log",
    "max", "min",  "modf", "rad",  "sin",  "sqrt", "tan", "ult", "tointeger", NULL};

static void fill_math(lua_State *L)
{
    lua_pushcfunction(L, luaopen_math);
    lua_call(L, 0, 1);
    for (const char *const *name = wrapped_math; *name; name++)
        wrap(L, *name, lib_math);
    lua_pushnil(L);
    lua_setfield(L, -2, "random");
    lua_pushnil(L);
    lua_setfield(L, -2, "randomseed");
}

static void fill_names(lua_State *L)
{
    lua_pushcfunction(L, luaopen_base);
    lua_call(L, 0, 1);
    copy_names(L, base_names);
    luaL_setfuncs(L, own_base, 0);
    wrap(L, "tonumber", lib_tonumber);
    tec_lua_push_table_functions(L);
    set_library(L, "table");
    luaL_newlib(L, own_string);
    set_library(L, "string");
    fill_math(L);
    set_library(L, "math");
}

/* Make the globals. Scripts see an empty table in front of the names, so names cannot be assigned
 * either. */
int tec_lua_open(lua_State *L)
{
    luaL_checkstack(L, 10, NULL);
    lua_newtable(L);
    fill_names(L);
    luaL_newlib(L, on_missing);
    lua_setmetatable(L, -2);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &names_key);
    lua_newtable(L);
    lua_newtable(L);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, no_globals);
    lua_setfield(L, -2, "__newindex");
    lua_setmetatable(L, -2);
    lua_rawseti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
    lua_gc(L, LUA_GCCOLLECT);
    return 0;
}
