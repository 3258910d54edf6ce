/* lua.c - the bounded Lua state: its texts and its protected calls. What bounds them is in
 * lua_limits.c. */
#include "base/lua_lib.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum { MIB = 1 << 20, SPARE = 10, PIECE = 64, MAX_LEVELS = 16 };
enum { PARSE_NS = 2000000000 }; /* the limit for parsing where calls have no time budget */

const struct tec_lua_limits tec_lua_file_limits = {.heap = (size_t)16 * MIB,
                                                   .block = (size_t)4 * MIB,
                                                   .string = MIB / 16,
                                                   .instructions = 1000000};

static const struct tec_clock real_clock = {NULL};

enum tec_status tec_lua_create(struct tec_lua **out, const struct tec_lua_limits *limits,
                               struct tec_heap *heap, struct tec_error *err)
{
    *out = NULL;
    struct tec_lua *lua = tec_heap_get(heap, sizeof *lua);
    if (!lua)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a Lua state");
    lua->limits = *limits;
    lua->heap = heap;
    lua->root = lua->shipped = -1;
    lua->state = lua_newstate(tec_lua_allocate, lua);
    if (!lua->state) {
        tec_heap_put(heap, lua);
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a Lua state in %zu bytes", limits->heap);
    }
    *(struct tec_lua **)lua_getextraspace(lua->state) = lua;
    lua_pushcfunction(lua->state, tec_lua_open);
    enum tec_status status = tec_lua_call(lua, 0, 0, err);
    if (status != TEC_OK) {
        tec_lua_destroy(lua);
        return tec_context(err, status, "new Lua state");
    }
    *out = lua;
    return TEC_OK;
}

void tec_lua_destroy(struct tec_lua *lua)
{
    if (!lua)
        return;
    lua->keeping = false;
    tec_lua_release(lua);
    lua_close(lua->state);
    if (lua->root >= 0)
        close(lua->root);
    if (lua->shipped >= 0)
        close(lua->shipped);
    tec_heap_put(lua->heap, lua);
}

lua_State *tec_lua_state(struct tec_lua *lua)
{
    return lua->state;
}

void tec_lua_push_env(struct tec_lua *lua)
{
    tec_lua_push_names(lua->state);
}

/* Pop the error value into `text`. Scripts may raise values of any type and put any byte into a
 * message, so control characters become spaces. */
static void take_message(lua_State *L, char *text, size_t room)
{
    if (lua_type(L, -1) == LUA_TSTRING)
        snprintf(text, room, "%s", lua_tostring(L, -1));
    else if (lua_type(L, -1) == LUA_TNUMBER)
        snprintf(text, room, "error value %g", lua_tonumber(L, -1));
    else
        snprintf(text, room, "error value of type %s", luaL_typename(L, -1));
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = ' ';
    lua_pop(L, 1);
}

/* Source text that is passed to the parser in pieces. The parser runs no hook, so the clock is
 * checked at each piece: names used in the innermost of many nested functions make parsing
 * quadratic or worse. */
struct text {
    const char *at;
    size_t left;
    int64_t budget_ns, cpu_ns, until_ns; /* CPU budget; CPU clock at start; deadline */
};

/* Read the CPU clock, which is a system call, only when the wall-clock deadline has passed. */
static bool in_time(struct text *text)
{
    int64_t now = tec_clock_now(&real_clock);
    if (now < text->until_ns)
        return true;
    int64_t rest = text->budget_ns - (tec_clock_thread() - text->cpu_ns);
    text->until_ns = now + rest;
    return rest > text->budget_ns / SPARE;
}

static const char *next_piece(lua_State *L, void *data, size_t *n)
{
    struct text *text = data;
    if (!in_time(text))
        luaL_error(L, "the text takes too long to parse");
    const char *piece = text->at;
    *n = text->left < PIECE ? text->left : PIECE;
    text->at += *n;
    text->left -= *n;
    return piece;
}

uint64_t tec_lua_texts(const struct tec_lua *lua)
{
    return lua->texts;
}

enum tec_status tec_lua_load(struct tec_lua *lua, const char *name, const char *text, size_t n,
                             struct tec_error *err)
{
    lua_State *L = lua->state;
    char chunk[300], message[sizeof err->message];
    snprintf(chunk, sizeof chunk, "@%s", name);
    if (!lua_checkstack(L, 4))
        return tec_fail(err, TEC_NO_MEMORY, "%s: no stack left", name);
    if (lua->limits.heap && n > lua->limits.heap)
        return tec_fail(err, TEC_MALFORMED, "%s: %zu bytes of text, the limit is %zu", name, n,
                        lua->limits.heap);
    int64_t budget = lua->limits.budget_ns ? lua->limits.budget_ns : PARSE_NS;
    struct text rest = {text, n, budget, tec_clock_thread(), tec_clock_now(&real_clock) + budget};
    int rc = lua_load(L, next_piece, &rest, chunk, "t");
    lua->texts = XXH3_64bits_withSeed(text, n, lua->texts);
    if (rc == LUA_OK)
        return TEC_OK;
    take_message(L, message, sizeof message);
    if (rc == LUA_ERRMEM)
        return tec_fail(err, TEC_NO_MEMORY, "%s: more memory than the limit of %zu bytes", name,
                        lua->limits.heap);
    if (strstr(message, "takes too long to parse"))
        return tec_fail(err, TEC_TIME, "%s: %s", name, message);
    return tec_fail(err, TEC_MALFORMED, "%s", message);
}

static void add_line(struct tec_lua *lua, size_t *n, const lua_Debug *at)
{
    size_t room = sizeof lua->traceback - *n;
    char *line = lua->traceback + *n, place[80] = "in C";
    if (at->currentline > 0)
        snprintf(place, sizeof place, "%s:%d", at->short_src, at->currentline);
    int wrote = at->name ? snprintf(line, room, "%s%s: in %s '%.60s'", *n ? "\n" : "", place,
                                    *at->namewhat ? at->namewhat : "function", at->name)
                         : snprintf(line, room, "%s%s: in function <%s:%d>", *n ? "\n" : "", place,
                                    at->short_src, at->linedefined);
    if (wrote < 0 || (size_t)wrote >= room)
        line[0] = '\0'; /* drop a line that does not fit */
    else
        *n += (size_t)wrote;
}

/* Message handler that writes the traceback. It does bounded work in C and allocates nothing, so
 * that it cannot fail after the script has failed. The hook is off while it runs. */
static int trace(lua_State *L)
{
    struct tec_lua *lua = tec_lua_of(L);
    lua_Debug at;
    size_t n = 0;
    lua->traceback[0] = '\0';
    for (int level = 1; level <= MAX_LEVELS && lua_getstack(L, level, &at); level++)
        if (lua_getinfo(L, "Sln", &at) && (at.currentline > 0 || at.name))
            add_line(lua, &n, &at);
    return 1;
}

const char *tec_lua_traceback(const struct tec_lua *lua)
{
    return lua->traceback;
}

enum tec_status tec_lua_call(struct tec_lua *lua, int args, int results, struct tec_error *err)
{
    lua_State *L = lua->state;
    if (lua->depth == 0)
        tec_lua_begin(lua);
    int handler = lua_gettop(L) - args;
    lua_pushcfunction(L, trace);
    lua_insert(L, handler);
    lua->depth++;
    int rc = lua_pcall(L, args, results, handler);
    lua->depth--;
    lua_remove(L, handler);
    if (rc == LUA_OK)
        return TEC_OK;
    if (rc == LUA_ERRMEM)
        lua->traceback[0] = '\0'; /* Lua ran no message handler */
    char message[sizeof err->message];
    take_message(L, message, sizeof message);
    if (lua->expired)
        return tec_fail(err, TEC_TIME, "%s", message);
    if (rc == LUA_ERRMEM && lua->refused) /* error("not enough memory") looks the same */
        return tec_fail(err, TEC_NO_MEMORY,
                        "%s: more memory than allowed (%zu bytes in all, %zu a block, %zu a "
                        "string), %zu in use",
                        lua->line, lua->limits.heap, lua->limits.block, lua->limits.string,
                        lua->bytes);
    return tec_fail(err, lua->starved ? TEC_NO_MEMORY : TEC_POLICY, "%s", message);
}
