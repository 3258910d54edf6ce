/* build.c - runs the functions of a description in its sandbox: each word that they call appends a
 * call to the program (build_words.c).
 *
 * Nothing is owned by Lua but values, which are userdata: calls and their strings are in the arena.
 */
#include "graph/model/build.h"
#include "graph/model/build_own.h"
#include "graph/model/unpack.h"

#include <lauxlib.h>
#include <string.h>

enum { MAX_RESULTS = 8, MAX_STEPS = 1000, MAX_BUCKETS = 1 << 20 };

static const char *const part_names[TEC_MODEL_PARTS] = {"prefill", "action"};
/* Their addresses are keys of Lua's registry. */
static const char part_keys[TEC_MODEL_PARTS] = {0};

static enum tec_status parse_flow(struct tec_program_flow *f, json_t *json, struct tec_error *err)
{
    int falls = 0, f32 = 0;
    TEC_UNPACK(json, "flow", "{s:i, s:i, s:i, s?i, s?b, s?b}", "horizon", &f->horizon, "dim",
               &f->dim, "steps", &f->steps, "buckets", &f->buckets, "falls", &falls, "f32", &f32);
    f->falls = falls != 0;
    f->f32 = f32 != 0;
    TEC_TRY(tec_parse_positive(f->horizon, "flow", "horizon", err));
    TEC_TRY(tec_parse_positive(f->dim, "flow", "dim", err));
    if (f->steps < 1 || f->steps > MAX_STEPS || f->buckets < 0 || f->buckets > MAX_BUCKETS)
        return tec_fail(err, TEC_MALFORMED, "flow: %d steps and %d buckets; 1 .. %d and 0 .. %d",
                        f->steps, f->buckets, MAX_STEPS, MAX_BUCKETS);
    return f->buckets && (f->falls || f->f32)
               ? tec_fail(err, TEC_UNSUPPORTED,
                          "flow: whole numbers of buckets that fall, or are rounded")
               : TEC_OK;
}

/* The table `flow` out of that of the description at 2. */
static void take_flow(lua_State *L, struct tec_builder *b)
{
    struct tec_error err = {TEC_OK, ""};
    json_t *json = NULL;
    lua_pushliteral(L, "flow");
    lua_rawget(L, 2);
    if (lua_isnil(L, -1))
        return;
    enum tec_status status = tec_lua_to_json(b->lua, -1, &json, &err);
    if (status == TEC_OK)
        status = parse_flow(&b->flow, json, &err);
    json_decref(json);
    if (status != TEC_OK)
        luaL_error(L, "%s", err.message);
    lua_pushliteral(L, "flow");
    lua_pushnil(L);
    lua_rawset(L, 2);
}

/* Protected: the functions of the description at 2 out of its table, into the registry. */
static int take_functions(lua_State *L)
{
    struct tec_builder *b = lua_touserdata(L, 1);
    bool found[TEC_MODEL_PARTS] = {false};
    if (lua_istable(L, 2)) {
        take_flow(L, b);
        tec_builder_take_layers(L, b);
    }
    for (int i = 0; i < TEC_MODEL_PARTS && lua_istable(L, 2); i++) {
        lua_pushstring(L, part_names[i]);
        lua_rawget(L, 2);
        if (lua_isfunction(L, -1)) {
            found[i] = true;
            lua_rawsetp(L, LUA_REGISTRYINDEX, &part_keys[i]);
            lua_pushstring(L, part_names[i]);
            lua_pushnil(L);
            lua_rawset(L, 2);
        } else {
            lua_pop(L, 1);
        }
    }
    if (found[TEC_PART_OF_PREFILL] && !found[TEC_PART_OF_ACTION])
        return luaL_error(L, "the function prefill needs the function action");
    if (b->flow.steps && !found[TEC_PART_OF_PREFILL])
        return luaL_error(L, "flow needs the functions prefill and action");
    b->any = found[TEC_PART_OF_ACTION];
    b->alone = !found[TEC_PART_OF_PREFILL];
    return 0;
}

/* Calls a function of the description with g and the `args` values on top; its results. */
static int run_part(lua_State *L, struct tec_builder *b, enum tec_model_part part, int args)
{
    int below = lua_gettop(L) - args;
    b->part = part;
    b->program->parts[part] = b->program->n;
    if (part == TEC_PART_OF_ACTION && b->flow.steps) {
        b->program->noise = b->program->n;
        tec_builder_given(L, b, TEC_WORD_noise, &part_keys[part]);
        tec_builder_given(L, b, TEC_WORD_time, &part_keys[part]);
        args += 2;
    }
    lua_rawgetp(L, LUA_REGISTRYINDEX, &part_keys[part]);
    tec_builder_push_words(L);
    lua_rotate(L, below + 1, 2);
    lua_call(L, args + 1, LUA_MULTRET);
    int n = lua_gettop(L) - below;
    if (n < 1 || n > MAX_RESULTS)
        luaL_error(L, "%s: returns %d values; must be 1 .. %d", part_names[part], n, MAX_RESULTS);
    for (int i = 0; i < n; i++)
        if (tec_builder_value(L, below + 1 + i) < 0)
            luaL_error(L, "%s: result %d must be a value that a word has made, is %s",
                       part_names[part], i + 1, luaL_typename(L, below + 1 + i));
    return n;
}

/* Protected: the functions, one after the other; the chunk is what the last one gives. */
static int run_functions(lua_State *L)
{
    struct tec_builder *b = lua_touserdata(L, 1);
    struct tec_model_program *p = b->program;
    tec_builder_words(L, b);
    int n = p->alone ? 0 : run_part(L, b, TEC_PART_OF_PREFILL, 0);
    n = run_part(L, b, TEC_PART_OF_ACTION, n);
    if (n != 1)
        return luaL_error(L, "action: returns %d values; must be one, the chunk", n);
    p->result = tec_builder_value(L, -1);
    p->parts[TEC_MODEL_PARTS] = p->n;
    return 0;
}

static enum tec_status call_protected(struct tec_builder *b, lua_CFunction function, int args,
                                      struct tec_error *err)
{
    lua_State *L = tec_lua_state(b->lua);
    lua_pushcfunction(L, function);
    lua_pushlightuserdata(L, b);
    if (args)
        lua_pushvalue(L, -3);
    enum tec_status status = tec_lua_call(b->lua, 1 + args, 0, err);
    return status == TEC_POLICY ? tec_fail(err, TEC_MALFORMED, "%s", err->message) : status;
}

/* An empty program. */
static enum tec_status begin(struct tec_builder *b, struct tec_arena *arena,
                             struct tec_model_program **out, struct tec_error *err)
{
    struct tec_model_program *p = TEC_NEW(arena, 1, struct tec_model_program);
    if (!p)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a model's program");
    *p = (struct tec_model_program){
        .arena = arena, .hidden = -1, .prompt = -1, .result = -1, .noise = -1};
    *out = b->program = p;
    return TEC_OK;
}

/* Run one program's functions; its calls, which are many and large, are then kept at their number.
 */
static enum tec_status run_program(struct tec_builder *b, lua_CFunction function,
                                   struct tec_error *err)
{
    struct tec_model_program *p = b->program;
    tec_arena_init(&b->growing, p->arena->heap);
    enum tec_status status = call_protected(b, function, 0, err);
    struct tec_model_call *calls =
        status == TEC_OK ? TEC_NEW(p->arena, (size_t)p->n + 1, struct tec_model_call) : NULL;
    if (calls && p->n)
        memcpy(calls, p->calls, (size_t)p->n * sizeof *calls);
    if (status == TEC_OK && !calls)
        status = tec_fail(err, TEC_NO_MEMORY, "no memory for %d calls", p->n);
    p->calls = calls;
    p->room = p->n;
    tec_arena_finish(&b->growing);
    return status;
}

enum tec_status tec_model_build(struct tec_model_programs *out, struct tec_lua *lua,
                                const char *root, struct tec_arena *arena, struct tec_error *err)
{
    struct tec_builder b = {.lua = lua, .root = root};
    *out = (struct tec_model_programs){.own = NULL};
    TEC_TRY(call_protected(&b, take_functions, 1, err));
    if (!b.any && b.flow.steps)
        return tec_fail(err, TEC_MALFORMED, "flow needs the functions prefill and action");
    for (b.of = 0; b.of <= TEC_MAX_TOWERS; b.of++) {
        if (!b.functions[b.of].layers)
            continue;
        TEC_TRY(begin(&b, arena, b.of ? &out->towers[b.of - 1] : &out->text, err));
        b.program->width = b.functions[b.of].width;
        b.program->tower = b.of > 0;
        b.program->index = b.of - 1;
        b.program->image = b.functions[b.of].image;
        b.program->n_keeps = b.functions[b.of].n_keeps;
        memcpy(b.program->keeps, b.functions[b.of].keeps, sizeof b.program->keeps);
        TEC_TRY(run_program(&b, tec_builder_run_layers, err));
    }
    if (out->towers[0]) {
        TEC_TRY(begin(&b, arena, &out->project, err));
        b.program->projects = true;
        b.program->squares = 1;
        memcpy(b.program->towers, out->towers, sizeof out->towers);
        TEC_TRY(run_program(&b, tec_builder_run_project, err));
    }
    if (b.states) {
        TEC_TRY(begin(&b, arena, &out->state, err));
        b.program->stated = true;
        TEC_TRY(run_program(&b, tec_builder_run_state, err));
    }
    if (b.any) {
        TEC_TRY(begin(&b, arena, &out->own, err));
        b.program->alone = b.alone;
        b.program->flow = b.flow;
        TEC_TRY(run_program(&b, run_functions, err));
    }
    return call_protected(&b, tec_builder_clear_layers, 1, err);
}
