/* script.c - run a pipeline file in the sandbox and read what it returns.
 *
 * Constructors only tag a copy of their table; every check comes later, from the field tables, so
 * that Lua, JSON, overlays and --set are judged by the same code. A name that does not exist is
 * reported and stands for a value that swallows calls, so that the rest of the file is checked
 * too. */
#include "base/lua.h"
#include "base/nearest.h"
#include "graph/load/loader.h"

#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keys of hidden fields: their first byte is below a space. */
#define TAG "\2"  /* the constructor's number */
#define BASE "\3" /* extend: the value of the base file */
#define READ "\4" /* the value made of this table; true while it is being read */
enum { SOURCE_STEP = 1 << 21, MAX_INCLUDE_DEPTH = 8 };

struct script {
    struct tec_loader *ld;
    struct tec_lua *lua;
    int depth; /* of include */
    bool nothing;
    struct tec_value *result;
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
    int line, source = caller(L, sc, &line);
    struct tec_where where = tec_source_where_name(&sc->ld->sources[source], line, name);
    struct tec_diagnostic *e =
        tec_diagnostics_add(sc->ld->d, TEC_E002, where, "unknown name '%s%.80s'", prefix, name);
    const char *near = nearest_name(name, prefix);
    if (near)
        tec_diagnostics_help(sc->ld->d, e, "did you mean '%s%s'?", prefix, near);
    else
        tec_diagnostics_help(sc->ld->d, e,
                             "a pipeline file knows its constructors, ipairs, pairs, "
                             "math.floor, math.min, math.max and include");
    return swallow(L);
}

static int assign_global(lua_State *L)
{
    struct script *sc = script_of(L);
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "?";
    int line, source = caller(L, sc, &line);
    struct tec_where where = tec_source_where_name(&sc->ld->sources[source], line, name);
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
    int line, source = caller(L, sc, &line);
    tec_diagnostics_add(sc->ld->d, TEC_E011,
                        tec_source_where_name(&sc->ld->sources[source], line, dot ? dot + 1 : word),
                        "%s %s", word, what);
    return swallow(L);
}

/* Tag the table at 1. It is not copied: copies of large tables would cost time that no budget sees.
 */
static bool put_tag(lua_State *L, int tag)
{
    lua_pushstring(L, TAG);
    lua_rawget(L, 1);
    bool fresh = lua_isnil(L, -1);
    lua_pop(L, 1);
    lua_pushstring(L, TAG);
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

/* prev "x", stream "x", without "x", every(n), on_request(), policy() */
static int construct_call(lua_State *L)
{
    int tag = (int)lua_tointeger(L, lua_upvalueindex(2));
    bool nothing = tag == TEC_CON_on_request || tag == TEC_CON_when;
    lua_settop(L, 1);
    int type = lua_type(L, 1);
    if (nothing && type != LUA_TNIL)
        return wrong_argument(L, tag, "takes no argument");
    if (tag == TEC_CON_every && type != LUA_TNUMBER)
        return wrong_argument(L, tag, "takes a number of frames: every(2)");
    if (!nothing && tag != TEC_CON_every && type != LUA_TSTRING)
        return wrong_argument(L, tag, "takes a name in quotes");
    lua_createtable(L, 0, 3);
    lua_pushinteger(L, tag);
    lua_setfield(L, -2, TAG);
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
    char *text = tec_source_annotate(s, (long)(index + 1) * SOURCE_STEP, sc->ld->scratch, &n);
    if (!text)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory", s->file);
    return tec_lua_load(sc->lua, name, text, n, err);
}

/* Push the value of another file; raises with a message. */
static void push_file(lua_State *L, struct script *sc, int arg)
{
    struct tec_error err;
    const char *path = luaL_checkstring(L, arg);
    if (sc->depth >= MAX_INCLUDE_DEPTH)
        luaL_error(L, "'%s': files include each other more than %d deep", path, MAX_INCLUDE_DEPTH);
    int index = tec_loader_add(sc->ld, path, &err);
    if (index < 0)
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
}

static int lib_include(lua_State *L)
{
    push_file(L, script_of(L), 1);
    return 1;
}

static int lib_extend(lua_State *L)
{
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    push_file(L, script_of(L), 1);
    lua_replace(L, 1);
    lua_insert(L, 1); /* overlay, base */
    if (!put_tag(L, TEC_CON_extend))
        return luaL_error(L, "extend takes a plain table of changes");
    lua_pushstring(L, BASE);
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

/* --- what the file returned; inside a protected call --- */

struct reader {
    struct tec_loader *ld;
    lua_State *L;
    int depth;
};

static struct tec_value *read_value(struct reader *r);

static int compare_entries(const void *a, const void *b)
{
    const struct tec_entry *x = a, *y = b;
    if (x->key && y->key)
        return strcmp(x->key, y->key);
    if (!x->key && !y->key)
        return x->item - y->item;
    return x->key ? 1 : -1;
}

/* Push the hidden field of the table on top. */
static void push_hidden(lua_State *L, const char *key)
{
    lua_pushstring(L, key);
    lua_rawget(L, -2);
}

static lua_Integer hidden(lua_State *L, const char *key)
{
    push_hidden(L, key);
    lua_Integer value = lua_tointeger(L, -1);
    lua_pop(L, 1);
    return value;
}

static struct tec_value *complain(struct reader *r, const struct tec_value *at, const char *what)
{
    struct tec_entry e = {.source = at->source, .open = at->open, .item = -1};
    tec_diagnostics_add(r->ld->d, TEC_E011, tec_where_value(r->ld, &e), "%s", what);
    return tec_value_new(r->ld, TEC_VALUE_BAD);
}

/* The entry whose key and value are on top; pops the value. */
static bool read_entry(struct reader *r, struct tec_value *table, int *n_list)
{
    lua_State *L = r->L;
    struct tec_entry *e = &table->entries[table->n];
    *e = (struct tec_entry){.source = table->source, .open = table->open, .item = -1};
    if (lua_isinteger(L, -2)) {
        lua_Integer i = lua_tointeger(L, -2);
        e->item = i > 0 && i <= TEC_MAX_VALUES ? (int)i - 1 : TEC_MAX_VALUES;
        (*n_list)++;
    } else if (lua_type(L, -2) == LUA_TSTRING) {
        const char *key = lua_tostring(L, -2);
        if (key[0] > 0 && key[0] < ' ') {
            lua_pop(L, 1);
            return true;
        }
        e->key = tec_arena_strdup(r->ld->arena, key);
    } else {
        lua_pop(L, 1);
        return complain(r, table, "a key that is neither a name nor a number of a list") != NULL;
    }
    if (!e->key && e->item < 0)
        return false;
    e->value = read_value(r);
    if (!e->value)
        return false;
    table->weight += e->value->weight;
    if (e->value->kind == TEC_VALUE_BAD && e->value->flag)
        tec_diagnostics_add(r->ld->d, TEC_E011, tec_where_value(r->ld, e), "%s", e->value->string);
    table->n++;
    return true;
}

static struct tec_value *finish_table(struct reader *r, struct tec_value *table, int n_list)
{
    if (table->n > 1)
        qsort(table->entries, (size_t)table->n, sizeof *table->entries, compare_entries);
    if (table->weight > TEC_MAX_VALUES)
        return complain(r, table, "more than 100000 values in one table");
    if (n_list > 0 && n_list < table->n)
        return complain(r, table, "a table with both named fields and a list in it");
    bool list = n_list > 0 || (table->n == 0 && !table->tag);
    table->kind = list ? TEC_VALUE_LIST : TEC_VALUE_TABLE;
    for (int i = 0; i < n_list; i++)
        if (table->entries[i].item != i)
            return complain(r, table, "a list with a hole: one of its values is nil");
    return table;
}

static struct tec_value *read_entries(struct reader *r, struct tec_value *table)
{
    lua_State *L = r->L;
    int size = 0, n_list = 0;
    if (r->depth > TEC_MAX_DEPTH)
        return complain(r, table, "tables are nested more than 32 deep");
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
        size++;
    if (size > TEC_MAX_VALUES)
        return complain(r, table, "more than 100000 values in one table");
    table->entries = TEC_NEW(r->ld->scratch, (size_t)size + 1, struct tec_entry);
    if (!table->entries)
        return NULL;
    for (lua_pushnil(L); lua_next(L, -2);)
        if (!read_entry(r, table, &n_list))
            return NULL;
    return finish_table(r, table, n_list);
}

/* The table on top. One that is used in several places is read once. */
static struct tec_value *read_table(struct reader *r)
{
    lua_State *L = r->L;
    struct tec_loader *ld = r->ld;
    lua_Integer mark = hidden(L, TEC_MARK);
    struct tec_value *table = tec_value_new(ld, TEC_VALUE_TABLE);
    if (!table)
        return NULL;
    table->tag = (enum tec_constructor)hidden(L, TAG);
    if (mark >= SOURCE_STEP && mark / SOURCE_STEP <= ld->n_sources) {
        table->source = (int)(mark / SOURCE_STEP) - 1;
        table->open = (int)(mark % SOURCE_STEP);
    }
    push_hidden(L, READ);
    struct tec_value *known = lua_touserdata(L, -1);
    bool reading = lua_isboolean(L, -1);
    lua_pop(L, 1);
    if (reading)
        return complain(r, table, "a table that contains itself");
    if (known)
        return known;
    lua_pushstring(L, READ);
    lua_pushboolean(L, true);
    lua_rawset(L, -3);
    bool extends = table->tag == TEC_CON_extend;
    struct tec_value *v = read_entries(r, table);
    if (v && extends) {
        push_hidden(L, BASE);
        struct tec_value *base = read_value(r);
        v = base ? tec_overlay(ld, base, v) : NULL;
    }
    lua_pushstring(L, READ);
    lua_pushlightuserdata(L, v);
    lua_rawset(L, -3);
    return v;
}

static struct tec_value *read_scalar(struct reader *r, int type)
{
    lua_State *L = r->L;
    struct tec_value *v = tec_value_new(r->ld, TEC_VALUE_BAD);
    if (!v)
        return NULL;
    if (type == LUA_TBOOLEAN) {
        v->kind = TEC_VALUE_BOOL;
        v->flag = lua_toboolean(L, -1);
    } else if (type == LUA_TNUMBER && lua_isinteger(L, -1)) {
        v->kind = TEC_VALUE_INT;
        v->integer = lua_tointeger(L, -1);
    } else if (type == LUA_TNUMBER) {
        v->kind = TEC_VALUE_NUMBER;
        v->number = lua_tonumber(L, -1);
    } else if (type == LUA_TSTRING) {
        size_t n;
        const char *s = lua_tolstring(L, -1, &n);
        v->kind = strlen(s) == n ? TEC_VALUE_STRING : TEC_VALUE_BAD;
        v->flag = strlen(s) != n;
        v->string = v->flag ? "a text with a zero byte in it" : tec_arena_strdup(r->ld->arena, s);
        return v->string ? v : NULL;
    } else if (type == LUA_TFUNCTION) {
        v->flag = true;
        v->string = "a function where a value is expected: call it?";
    }
    return v;
}

/* Pops the value on top. NULL only without memory. */
static struct tec_value *read_value(struct reader *r)
{
    int type = lua_type(r->L, -1);
    luaL_checkstack(r->L, 8, NULL);
    r->depth++;
    struct tec_value *v = type == LUA_TTABLE ? read_table(r) : read_scalar(r, type);
    r->depth--;
    lua_pop(r->L, 1);
    return v;
}

/* Arguments: the script and the value. */
static int read_result(lua_State *L)
{
    struct script *sc = lua_touserdata(L, 1);
    struct reader r = {.ld = sc->ld, .L = L};
    lua_settop(L, 2);
    sc->nothing = lua_isnil(L, 2);
    sc->result = read_value(&r);
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

struct tec_value *tec_load_script(struct tec_loader *ld, enum tec_status *status,
                                  struct tec_error *err)
{
    struct script sc = {.ld = ld};
    struct tec_error why = {TEC_OK, ""};
    *status = tec_lua_create(&sc.lua, &tec_lua_file_limits, ld->heap, err);
    if (*status != TEC_OK)
        return NULL;
    *status = run(&sc, &why);
    tec_lua_destroy(sc.lua);
    if (*status == TEC_OK && sc.nothing) {
        report(&sc, "the file returns nothing", "end it with `return pipeline { ... }`");
        *status = TEC_MALFORMED;
    }
    if (*status == TEC_OK)
        return sc.result;
    if (*status == TEC_NO_MEMORY) {
        report(&sc, why.message, "a pipeline file may use 16 MiB");
        tec_fail(err, TEC_NO_MEMORY, "%s: %s", ld->sources[0].file, why.message);
    } else if (why.message[0]) {
        report(&sc, why.message,
               *status == TEC_TIME ? "a pipeline file may run 1000000 instructions" : NULL);
        *status = TEC_MALFORMED;
    }
    return NULL;
}
