/* script.c - run a pipeline file in the sandbox and read what it returns.
 *
 * Constructors only tag their table; every check comes later, from the field tables, so
 * that Lua, JSON, overlays and --set are judged by the same code. A name that does not exist is
 * reported and stands for a value that swallows calls, so that the rest of the file is checked
 * too. */
#include "graph/load/script.h"
#include "base/lua.h"
#include "base/nearest.h"
#include "graph/load/loader.h"

#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_INCLUDE_DEPTH = 8 };

struct script {
    struct tec_loader *ld;
    struct tec_lua *lua;
    int depth; /* of include */
    bool nothing;
    struct tec_decl_value *result;
};

static struct script *script_of(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(1));
}

/* Chunks are named by source number: "s3". */
static int source_of(const struct script *sc, const char *chunk)
{
    int source = chunk[0] == 's' ? atoi(chunk + 1) : 0;
    return source >= 0 && source < sc->ld->n_sources ? source : 0;
}

/* Source and line of the Lua code that called the running C function. */
static int caller(lua_State *L, const struct script *sc, int *line)
{
    lua_Debug ar;
    *line = 0;
    for (int level = 1; level < 4 && lua_getstack(L, level, &ar); level++) {
        lua_getinfo(L, "Sl", &ar);
        if (ar.currentline < 1)
            continue;
        *line = ar.currentline;
        return source_of(sc, ar.short_src);
    }
    return 0;
}

/* Finds the place of `name` in the caller's line. No place is read beyond the last diagnostic. */
static struct tec_where where_called(lua_State *L, const struct script *sc, const char *name)
{
    if (sc->ld->d->n >= TEC_MAX_DIAGNOSTICS)
        return (struct tec_where){.file = NULL};
    int line, source = caller(L, sc, &line);
    return tec_source_where_name(&sc->ld->sources[source], line, name);
}

static const char *const swallowed[] = {
    "__call", "__index", "__newindex", "__concat", "__len", "__unm",  "__add", "__sub",
    "__mul",  "__div",   "__idiv",     "__mod",    "__pow", "__band", "__bor", "__bxor",
    "__bnot", "__shl",   "__shr",      "__lt",     "__le",  NULL};

static const char poison_key = 'p';

static int swallow(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &poison_key);
    return 1;
}

static void make_poison(lua_State *L)
{
    lua_newuserdatauv(L, 0, 0);
    lua_createtable(L, 0, 24);
    for (int i = 0; swallowed[i]; i++) {
        lua_pushcfunction(L, swallow);
        lua_setfield(L, -2, swallowed[i]);
    }
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &poison_key);
}

static const char *const plain_names[] = {"ipairs", "pairs", "math", "kv"};

/* The name that was probably meant. `kv` is a table: its members are looked for apart. */
static const char *nearest_name(const char *name, const char *prefix)
{
    const char *names[TEC_CONSTRUCTORS + 4];
    int n = 0;
    size_t skip = strlen(prefix);
    for (int i = TEC_CON_NONE + 1; i < TEC_CONSTRUCTORS; i++) {
        const char *word = tec_constructors[i].word;
        if (strncmp(word, prefix, skip) == 0 && (skip || !strchr(word, '.')))
            names[n++] = word + skip;
    }
    for (int i = 0; i < 4 && !skip; i++)
        names[n++] = plain_names[i];
    return tec_nearest(name, names, n);
}

/* __index of the environment and of kv; upvalue 2 is the prefix of the names. */
static int unknown_name(lua_State *L)
{
    struct script *sc = script_of(L);
    const char *prefix = lua_tostring(L, lua_upvalueindex(2));
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "?";
    struct tec_where where = where_called(L, sc, name);
    struct tec_diagnostic *e =
        tec_diagnostics_add(sc->ld->d, TEC_E002, where, "unknown name '%s%.80s'", prefix, name);
    const char *near = nearest_name(name, prefix);
    if (near)
        tec_diagnostics_help(sc->ld->d, e, "did you mean '%s%s'?", prefix, near);
    else
        tec_diagnostics_help(sc->ld->d, e,
                             "a pipeline file knows its constructors, extend, include, ipairs, "
                             "pairs, math.ceil, math.floor, math.max and math.min");
    return swallow(L);
}

static int assign_global(lua_State *L)
{
    struct script *sc = script_of(L);
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "?";
    struct tec_where where = where_called(L, sc, name);
    struct tec_diagnostic *e = tec_diagnostics_add(sc->ld->d, TEC_E002, where,
                                                   "'%.80s' is assigned but not declared", name);
    tec_diagnostics_help(sc->ld->d, e, "write `local %.40s = ...`", name);
    lua_rawset(L, 1);
    return 0;
}

/* next and pairs that do not show the hidden fields; upvalue 1 is the original next. */
static int visible_next(lua_State *L)
{
    lua_settop(L, 2);
    for (;;) {
        lua_pushvalue(L, lua_upvalueindex(1));
        lua_pushvalue(L, 1);
        lua_pushvalue(L, 2);
        lua_call(L, 2, 2);
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "x";
        if ((unsigned char)key[0] > 4 || key[0] == '\0')
            return 2;
        lua_pop(L, 1);
        lua_replace(L, 2);
    }
}

static int visible_pairs(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushvalue(L, 1);
    lua_pushnil(L);
    return 3;
}

/* Report a wrong argument of constructor `tag` and push what swallows the rest. */
static int wrong_argument(lua_State *L, int tag, const char *what)
{
    struct script *sc = script_of(L);
    const char *word = tec_constructors[tag].word, *dot = strchr(word, '.');
    tec_diagnostics_add(sc->ld->d, TEC_E011, where_called(L, sc, dot ? dot + 1 : word), "%s %s",
                        word, what);
    return swallow(L);
}

/* Tag the table at 1. It is not copied: copies of large tables would cost time that no budget sees.
 */
static bool put_tag(lua_State *L, int tag)
{
    lua_pushstring(L, TEC_TAG);
    lua_rawget(L, 1);
    bool fresh = lua_isnil(L, -1);
    lua_pop(L, 1);
    lua_pushstring(L, TEC_TAG);
    lua_pushinteger(L, tag);
    lua_rawset(L, 1);
    return fresh;
}

static int construct(lua_State *L)
{
    int tag = (int)lua_tointeger(L, lua_upvalueindex(2));
    lua_settop(L, 1);
    if (lua_type(L, 1) != LUA_TTABLE)
        return wrong_argument(L, tag, "takes a table: write its fields in { }");
    if (!put_tag(L, tag))
        return wrong_argument(L, tag, "got a table that went through a constructor before");
    return 1;
}

/* prev "x", stream "x", stream { }, without "x", every(n), on_change(), on_change("x"),
 * on_request(), policy() */
static int construct_call(lua_State *L)
{
    int tag = (int)lua_tointeger(L, lua_upvalueindex(2));
    lua_settop(L, 1);
    int type = lua_type(L, 1);
    bool nothing = (tag == TEC_CON_on_change && type == LUA_TNIL) || tag == TEC_CON_on_request ||
                   tag == TEC_CON_when;
    if (tag == TEC_CON_when && type == LUA_TTABLE)
        return wrong_argument(L, tag, "{ } makes a policy file, a pipeline is expected here");
    if (tag == TEC_CON_stream && type == LUA_TTABLE)
        return construct(L);
    if (nothing && type != LUA_TNIL)
        return wrong_argument(L, tag, "takes no argument");
    if (tag == TEC_CON_every && type != LUA_TNUMBER)
        return wrong_argument(L, tag, "takes a number of frames: every(2)");
    if (!nothing && tag != TEC_CON_every && type != LUA_TSTRING)
        return wrong_argument(L, tag, "takes a name in quotes");
    lua_createtable(L, 0, 3);
    lua_pushinteger(L, tag);
    lua_setfield(L, -2, TEC_TAG);
    if (!nothing) {
        lua_pushvalue(L, 1);
        lua_setfield(L, -2, tag == TEC_CON_every ? "frames" : "name");
    }
    return 1;
}

/* Compile source `index` and push its function. */
static enum tec_status compile(struct script *sc, int index, struct tec_error *err)
{
    const struct tec_source *s = &sc->ld->sources[index];
    char name[16];
    snprintf(name, sizeof name, "s%d", index);
    if (s->n_tokens == 0) /* no marks in a text that makes no sense: Lua says what is wrong */
        return tec_lua_load(sc->lua, name, s->text, s->n, err);
    size_t n;
    char *text = tec_source_annotate(s, (long)(index + 1) * TEC_SOURCE_STEP, sc->ld->scratch, &n);
    if (!text)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory", s->file);
    return tec_lua_load(sc->lua, name, text, n, err);
}

/* Push the value of the file that argument 1 of `con` names, or, where that is no file, report it
 * and push what swallows the rest; raises with a message where the file itself is at fault. */
static bool push_file(lua_State *L, struct script *sc, int con)
{
    struct tec_error err;
    int index = -1;
    const char *path = lua_tostring(L, 1), *word = tec_constructors[con].word;
    if (sc->depth >= MAX_INCLUDE_DEPTH)
        luaL_error(L, "'%s': files include each other more than %d deep", path, MAX_INCLUDE_DEPTH);
    enum tec_status status = tec_loader_add(sc->ld, path, &index, &err);
    if (status == TEC_NOT_FOUND) {
        tec_diagnostics_add(sc->ld->d, TEC_E021, where_called(L, sc, word), "%s", err.message);
        swallow(L);
        return false;
    }
    if (status != TEC_OK)
        luaL_error(L, "%s", err.message);
    if (sc->ld->sources[index].json)
        luaL_error(L, "'%s' is JSON: only Lua files can be included", path);
    if (compile(sc, index, &err) != TEC_OK) {
        lua_pushfstring(L, "%s", err.message); /* has a position of its own */
        lua_error(L);
    }
    sc->depth++;
    lua_call(L, 0, 1);
    sc->depth--;
    return true;
}

static int lib_include(lua_State *L)
{
    if (lua_type(L, 1) != LUA_TSTRING)
        return wrong_argument(L, TEC_CON_include, "takes a file: include(\"name.lua\")");
    push_file(L, script_of(L), TEC_CON_include);
    return 1;
}

static int lib_extend(lua_State *L)
{
    if (lua_type(L, 1) != LUA_TSTRING || lua_type(L, 2) != LUA_TTABLE)
        return wrong_argument(L, TEC_CON_extend,
                              "takes a pipeline's file and a table of what differs: "
                              "extend(\"base.lua\", { ... })");
    lua_settop(L, 2);
    if (!push_file(L, script_of(L), TEC_CON_extend))
        return 1;
    lua_replace(L, 1);
    lua_insert(L, 1); /* overlay, base */
    if (!put_tag(L, TEC_CON_extend))
        return luaL_error(L, "extend takes a plain table of changes");
    lua_pushstring(L, TEC_BASE);
    lua_insert(L, 2);
    lua_rawset(L, 1);
    return 1;
}

static lua_CFunction function_of(int tag)
{
    if (tag == TEC_CON_include)
        return lib_include;
    if (tag == TEC_CON_extend)
        return lib_extend;
    return tec_constructors[tag].size ? construct : construct_call;
}

static void push_missing(lua_State *L, struct script *sc, const char *prefix, bool assign)
{
    lua_createtable(L, 0, 2);
    lua_pushlightuserdata(L, sc);
    lua_pushstring(L, prefix);
    lua_pushcclosure(L, unknown_name, 2);
    lua_setfield(L, -2, "__index");
    if (assign) {
        lua_pushlightuserdata(L, sc);
        lua_pushcclosure(L, assign_global, 1);
        lua_setfield(L, -2, "__newindex");
    }
}

static void add_plain(lua_State *L, int old)
{
    static const char *const functions[] = {"floor", "min", "max", "ceil", NULL};
    lua_getfield(L, old, "ipairs");
    lua_setfield(L, -2, "ipairs");
    lua_getfield(L, old, "next");
    lua_pushcclosure(L, visible_next, 1);
    lua_pushcclosure(L, visible_pairs, 1);
    lua_setfield(L, -2, "pairs");
    lua_createtable(L, 0, 4);
    lua_getfield(L, old, "math");
    for (int i = 0; functions[i]; i++) {
        lua_getfield(L, -1, functions[i]);
        lua_setfield(L, -3, functions[i]);
    }
    lua_pop(L, 1);
    lua_setfield(L, -2, "math");
}

/* Protected: replace what the sandbox knows by what a pipeline file may use. Argument: script. */
static int open_names(lua_State *L)
{
    struct script *sc = lua_touserdata(L, 1);
    luaL_checkstack(L, 20, NULL);
    make_poison(L);
    tec_lua_push_env(sc->lua);
    int old = lua_gettop(L);
    lua_createtable(L, 0, 40);
    add_plain(L, old);
    lua_createtable(L, 0, 4); /* kv */
    for (int i = TEC_CON_NONE + 1; i < TEC_CONSTRUCTORS; i++) {
        const char *word = tec_constructors[i].word, *dot = strchr(word, '.');
        lua_pushlightuserdata(L, sc);
        lua_pushinteger(L, i);
        lua_pushcclosure(L, function_of(i), 2);
        lua_setfield(L, dot ? -2 : -3, dot ? dot + 1 : word);
    }
    push_missing(L, sc, "kv.", false);
    lua_setmetatable(L, -2);
    lua_setfield(L, -2, "kv");
    push_missing(L, sc, "", true);
    lua_setmetatable(L, -2);
    lua_rawseti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
    return 0;
}

/* Arguments: the script and the value. */
static int read_result(lua_State *L)
{
    struct script *sc = lua_touserdata(L, 1);
    lua_settop(L, 2);
    sc->nothing = lua_isnil(L, 2);
    sc->result = tec_script_read(sc->ld, L);
    return 0;
}

/* Report a failure of Lua, "s3:12: message", where it happened. */
static void report(struct script *sc, const char *message, const char *help)
{
    struct tec_where where = {.file = sc->ld->sources[0].file};
    char *end;
    if (message[0] == 's' && message[1] >= '0' && message[1] <= '9') {
        long source = strtol(message + 1, &end, 10);
        if (*end == ':' && source < sc->ld->n_sources) {
            where.file = sc->ld->sources[source].file;
            where.line = (int)strtol(end + 1, &end, 10);
            message = *end == ':' ? end + 1 + (end[1] == ' ') : end;
        }
    }
    struct tec_diagnostic *e = tec_diagnostics_add(sc->ld->d, TEC_E001, where, "%s", message);
    if (help)
        tec_diagnostics_help(sc->ld->d, e, "%s", help);
}

/* Run the file and read its value. A failure of the file is reported, not returned in err. */
static enum tec_status run(struct script *sc, struct tec_error *err)
{
    lua_State *L = tec_lua_state(sc->lua);
    lua_pushcfunction(L, open_names);
    lua_pushlightuserdata(L, sc);
    TEC_TRY(tec_lua_call(sc->lua, 1, 0, err));
    lua_pushcfunction(L, read_result);
    lua_pushlightuserdata(L, sc);
    TEC_TRY(compile(sc, 0, err));
    TEC_TRY(tec_lua_call(sc->lua, 0, 1, err));
    TEC_TRY(tec_lua_call(sc->lua, 2, 0, err));
    if (!sc->result)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the values of the file");
    return TEC_OK;
}

struct tec_decl_value *tec_load_script(struct tec_loader *ld, enum tec_status *status,
                                       struct tec_error *err)
{
    struct script sc = {.ld = ld};
    struct tec_error why = {TEC_OK, ""};
    *status = tec_lua_create(&sc.lua, &tec_lua_file_limits, ld->heap, err);
    if (*status != TEC_OK)
        return NULL;
    *status = run(&sc, &why);
    bool over = *status == TEC_NO_MEMORY && tec_lua_over_limit(sc.lua);
    tec_lua_destroy(sc.lua);
    if (*status == TEC_OK && sc.nothing) {
        report(&sc, "the file returns nothing", "end it with `return pipeline { ... }`");
        *status = TEC_MALFORMED;
    }
    if (*status == TEC_OK)
        return sc.result;
    if (over) {
        report(&sc, why.message, "a pipeline file may use 16 MiB");
        *status = TEC_MALFORMED;
    } else if (*status == TEC_NO_MEMORY) {
        tec_fail(err, TEC_NO_MEMORY, "%s: %s", ld->sources[0].file, why.message);
    } else if (why.message[0]) {
        report(&sc, why.message,
               *status == TEC_TIME ? "a pipeline file may run 1000000 instructions" : NULL);
        *status = TEC_MALFORMED;
    }
    return NULL;
}
