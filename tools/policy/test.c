/* test.c - runs the Lua unit tests of policies for `tectum policy test`, each file in a bounded
 * state of its own. */
#include "tools/policy/test.h"

#include "base/lua.h"
#include "tools/policy/argument.h"
#include "tools/policy/trial.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_TRIALS = 256, MAX_SETS = 64, MIB = 1 << 20 };

#define COUNT(list) ((int)(sizeof(list) / sizeof(list)[0]))

static const struct tec_lua_limits limits = {.heap = (size_t)16 * MIB,
                                             .block = (size_t)4 * MIB,
                                             .string = MIB / 16,
                                             .instructions = 50000000};

/* One test file. */
struct suite {
    const char *path, *root;
    struct tec_heap *heap;
    struct tec_checks *checks;
    struct tec_arena arena;
    struct tec_trial *trials[MAX_TRIALS];
    int n;
};

static const char *const test_fields[] = {"pipeline", "policy",  "params",
                                          "set",      "horizon", "layers"};
static const char trial_key[] = "tectum.trial"; /* key of the metatable */

/* The userdata that a script holds for a test. */
struct handle {
    struct tec_trial *trial;
};

/* --- tectum.test{} ------------------------------------------------------------------------ */

/* Find a file beside the test other than the test itself, else a bundled file, else return `name`
 * as it is, so that the loader reports the error. NULL means that the arena is full. */
static const char *find_file(struct suite *s, const char *folder, const char *name)
{
    const char *slash = strrchr(s->path, '/');
    int n = slash ? (int)(slash + 1 - s->path) : 0;
    if (name[0] == '/')
        return name;
    const char *beside = tec_arena_printf(&s->arena, "%.*s%s", n, s->path, name);
    if (!beside || (strcmp(beside, s->path) != 0 && access(beside, F_OK) == 0))
        return beside;
    const char *bundled = tec_arena_printf(&s->arena, "%s/%s/%s", s->root, folder, name);
    return !bundled || access(bundled, F_OK) == 0 ? bundled : name;
}

/* Read params = { k = 3 } as words. */
static int read_words(lua_State *L, struct suite *s, const char **words)
{
    int n = 0;
    if (tec_argument_table(L, 1, "params") < 0)
        return 0;
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TNUMBER)
            luaL_error(L, "params has names and numbers");
        if (n == TEC_MAX_PARAMS)
            luaL_error(L, "params: more than %d", TEC_MAX_PARAMS);
        words[n] =
            tec_arena_printf(&s->arena, "%s=%.17g", lua_tostring(L, -2), lua_tonumber(L, -1));
        if (!words[n++])
            luaL_error(L, "no memory for parameters");
    }
    lua_pop(L, 1);
    return n;
}

static int read_sets(lua_State *L, const char **words)
{
    int n = tec_argument_table(L, 1, "set");
    if (n < 0)
        return 0;
    if (n > MAX_SETS)
        luaL_error(L, "set: more than %d", MAX_SETS);
    for (int i = 0; i < n; i++) {
        if (lua_rawgeti(L, -1, i + 1) != LUA_TSTRING)
            luaL_error(L, "set is a list of 'PATH=VALUE'");
        words[i] = lua_tostring(L, -1); /* the text lives as long as the table */
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return n;
}

static struct tec_trial *add_trial(lua_State *L, struct suite *s)
{
    if (s->n == MAX_TRIALS)
        luaL_error(L, "more than %d tests in a file", MAX_TRIALS);
    struct tec_trial *trial = TEC_NEW(&s->arena, 1, struct tec_trial);
    if (!trial) {
        luaL_error(L, "no memory for a test");
        return NULL;
    }
    trial->checks = s->checks;
    s->trials[s->n++] = trial;
    return trial;
}

static int make_test(lua_State *L)
{
    struct suite *s = lua_touserdata(L, lua_upvalueindex(1));
    const char *sets[MAX_SETS], *words[TEC_MAX_PARAMS];
    struct tec_mock_options o = {.root = s->root, .set = sets, .param = words};
    struct tec_error err;
    tec_argument_check(L, 1, "tectum.test", test_fields, COUNT(test_fields));
    lua_settop(L, 1);
    const char *pipeline = tec_argument_text(L, 1, "pipeline", NULL);
    const char *policy = tec_argument_text(L, 1, "policy", NULL);
    if (!pipeline)
        return luaL_error(L, "tectum.test: field 'pipeline' is missing");
    o.pipeline = find_file(s, "pipelines", pipeline);
    o.policy = policy && strstr(policy, ".lua") ? find_file(s, "policies", policy) : policy;
    o.horizon = tec_argument_int(L, 1, "horizon", 1, 1 << 20, 0);
    o.layers = tec_argument_int(L, 1, "layers", 1, 1 << 20, 0);
    o.n_set = read_sets(L, sets);
    o.n_param = read_words(L, s, words);
    if (!o.pipeline || (policy && !o.policy))
        return luaL_error(L, "no memory for a path");
    struct tec_trial *trial = add_trial(L, s);
    *(struct handle *)lua_newuserdatauv(L, sizeof(struct handle), 0) = (struct handle){trial};
    luaL_setmetatable(L, trial_key);
    if (tec_mock_open(&trial->mock, &o, s->heap, &err) != TEC_OK)
        return luaL_error(L, "%s", err.message);
    return 1;
}

/* --- methods ------------------------------------------------------------------------------ */

static struct tec_trial *self(lua_State *L)
{
    return ((const struct handle *)luaL_checkudata(L, 1, trial_key))->trial;
}

/* Return the test itself, so that calls can be chained. */
static int done(lua_State *L)
{
    lua_settop(L, 1);
    return 1;
}

static int call_frame(lua_State *L)
{
    tec_trial_frame(L, self(L));
    return done(L);
}

static int call_admit(lua_State *L)
{
    tec_trial_admit(L, self(L));
    return done(L);
}

static int call_observe(lua_State *L)
{
    tec_trial_observe(L, self(L));
    return done(L);
}

static int call_evict(lua_State *L)
{
    tec_trial_evict(L, self(L));
    return done(L);
}

static int call_expect(lua_State *L)
{
    tec_trial_expect(L, self(L));
    return done(L);
}

static const luaL_Reg methods[] = {{"frame", call_frame},     {"admit", call_admit},
                                   {"observe", call_observe}, {"evict", call_evict},
                                   {"expect", call_expect},   {NULL, NULL}};

/* Find a method by name. Upvalue: the methods. */
static int find_method(lua_State *L)
{
    lua_settop(L, 2);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL)
        return 1;
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : luaL_typename(L, 2);
    return luaL_error(L, "a test has no method '%s'; it has frame, admit, observe, evict, expect",
                      name);
}

/* Argument: the suite. It adds `tectum` to the names of the file. */
static int add_names(lua_State *L)
{
    struct suite *s = lua_touserdata(L, 1);
    luaL_newmetatable(L, trial_key);
    luaL_newlib(L, methods);
    lua_pushcclosure(L, find_method, 1);
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_createtable(L, 0, 1);
    lua_pushlightuserdata(L, s);
    lua_pushcclosure(L, make_test, 1);
    lua_setfield(L, -2, "test");
    return 1;
}

static enum tec_status open_state(struct tec_lua **out, struct suite *s, struct tec_error *err)
{
    TEC_TRY(tec_lua_create(out, &limits, s->heap, err));
    lua_State *L = tec_lua_state(*out);
    tec_lua_push_env(*out);
    lua_pushstring(L, "tectum");
    lua_pushcfunction(L, add_names);
    lua_pushlightuserdata(L, s);
    TEC_TRY(tec_lua_call(*out, 1, 1, err));
    lua_rawset(L, -3);
    lua_pop(L, 1);
    return TEC_OK;
}

/* Run the file and record the outcome of its tests as checks. */
static enum tec_status run_file(struct suite *s, struct tec_lua *lua, struct tec_error *err)
{
    struct tec_error own;
    int before = s->checks->n;
    TEC_TRY(tec_lua_load_file(lua, s->path, NULL, err));
    enum tec_status status = tec_lua_call(lua, 0, 0, &own);
    for (int i = 0; i < s->n; i++)
        TEC_TRY(tec_trial_settle(s->trials[i], err));
    if (status != TEC_OK)
        return tec_checks_add(s->checks, false, s->path, own.message, err);
    if (s->checks->n == before)
        return tec_checks_add(s->checks, false, s->path, "nothing is expected: no t:expect ran",
                              err);
    return TEC_OK;
}

enum tec_status tec_policies_test(const char *path, const char *root, struct tec_checks *checks,
                                  struct tec_heap *heap, struct tec_error *err)
{
    struct suite s = {.path = path, .root = root, .heap = heap, .checks = checks};
    struct tec_lua *lua = NULL;
    tec_arena_init(&s.arena, heap);
    enum tec_status status = open_state(&lua, &s, err);
    if (status == TEC_OK)
        status = run_file(&s, lua, err);
    tec_lua_destroy(lua);
    for (int i = 0; i < s.n; i++)
        tec_mock_close(s.trials[i]->mock);
    tec_arena_finish(&s.arena);
    return status;
}
