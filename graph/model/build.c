/* build.c - runs the functions of a description in its sandbox: each word that they call appends a
 * call to the program.
 *
 * A value is a userdata that holds the number of its call. What is wrong with a word is a Lua error
 * at the word, so its message begins with file and line. Nothing here is owned by Lua but the
 * userdata: calls and their strings are in the arena.
 */
#include "graph/model/build.h"
#include "base/nearest.h"
#include "graph/model/build_own.h"
#include "graph/model/parse.h"

#include <lauxlib.h>
#include <string.h>

enum { MAX_RESULTS = 8, MAX_STEPS = 1000, MAX_BUCKETS = 1 << 20 };

static const char *const part_names[TEC_MODEL_PARTS] = {"prefill", "action"};
/* Their addresses are keys of Lua's registry. */
static const char part_keys[TEC_MODEL_PARTS] = {0}, value_key = 'v', words_key = 'w';

static struct tec_builder *builder_of(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(1));
}

int tec_builder_value(lua_State *L, int index)
{
    const int *value = lua_touserdata(L, index);
    if (!value || lua_islightuserdata(L, index) || !lua_getmetatable(L, index))
        return -1;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &value_key);
    int id = lua_rawequal(L, -1, -2) ? *value : -1;
    lua_pop(L, 2);
    return id;
}

void tec_builder_push(lua_State *L, int id)
{
    int *value = lua_newuserdatauv(L, sizeof id, 0);
    *value = id;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &value_key);
    lua_setmetatable(L, -2);
}

/* x.rows, x.cols, x.height and x.width. */
static int value_index(lua_State *L)
{
    const struct tec_builder *b = builder_of(L);
    int id = tec_builder_value(L, 1);
    const char *key = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "?";
    static const char *const names[] = {"rows", "cols", "height", "width"};
    for (int i = 0; i < 4 && id >= 0; i++) {
        const struct tec_model_call *c = &b->program->calls[id];
        const int numbers[] = {c->rows, c->cols, c->h, c->w};
        if (strcmp(key, names[i]) == 0) {
            lua_pushinteger(L, numbers[i]);
            return 1;
        }
    }
    return luaL_error(L, "a value has rows, cols, height and width, and no '%s'", key);
}

/* Operands at the arguments from 2 on, or in a list there; the index behind them. */
static int read_operands(lua_State *L, struct tec_builder *b, struct tec_model_call *c)
{
    const struct tec_word_kind *kind = &tec_word_kinds[c->word];
    bool list = kind->operands < 0;
    size_t n = list ? 0 : (size_t)kind->operands;
    if (list && lua_istable(L, 2))
        n = (size_t)lua_rawlen(L, 2);
    if (list && (n < 1 || n > TEC_MAX_OPERANDS))
        luaL_error(L, "%s: takes a list of 1 .. %d values", kind->name, TEC_MAX_OPERANDS);
    int *in = TEC_NEW(b->program->arena, n + 1, int);
    if (!in)
        luaL_error(L, "%s: no memory for its operands", kind->name);
    for (size_t i = 0; i < n; i++) {
        if (list)
            lua_rawgeti(L, 2, (lua_Integer)i + 1);
        else
            lua_pushvalue(L, 2 + (int)i);
        in[i] = tec_builder_value(L, -1);
        if (in[i] < 0)
            luaL_error(L, "%s: operand %d must be a value that a word has made, is %s", kind->name,
                       (int)i + 1, luaL_typename(L, -1));
        if (b->program->calls[in[i]].part != c->part && !b->program->calls[in[i]].constant)
            luaL_error(L, "%s: operand %d is a value of prefill; an action asks those through over",
                       kind->name, (int)i + 1);
        if (b->program->width && in[i] < b->from && in[i] != b->given)
            luaL_error(L, "%s: operand %d is a value of another layer; a layer is given one",
                       kind->name, (int)i + 1);
        lua_pop(L, 1);
    }
    c->in = in;
    c->n_in = (int)n;
    return list ? 3 : 2 + (int)n;
}

static struct tec_model_call call_of(enum tec_model_word word, enum tec_model_part part)
{
    return (struct tec_model_call){.word = word,
                                   .part = part,
                                   .same = -1,
                                   .position = -1,
                                   .over = -1,
                                   .over_position = -1,
                                   .behind = -1,
                                   .attend.turn = -1,
                                   .scale = -1,
                                   .shift = -1,
                                   .gate = -1,
                                   .side = 1,
                                   .stride = 1,
                                   .dilation = 1,
                                   .frames = 1};
}

/* A call of a word, with its place in the description. */
static void place_call(lua_State *L, struct tec_builder *b, struct tec_model_call *c,
                       enum tec_model_word word)
{
    lua_Debug ar;
    *c = call_of(word, b->part);
    if (!lua_getstack(L, 1, &ar))
        return;
    lua_getinfo(L, "Sl", &ar);
    c->line = ar.currentline;
    c->file = tec_arena_printf(b->program->arena, "%s/%s", b->root, ar.short_src);
}

/* Room for one more call; the array moves while it grows. */
static struct tec_model_call *next_call(lua_State *L, struct tec_builder *b)
{
    struct tec_model_program *p = b->program;
    if (p->n == TEC_MAX_CALLS)
        luaL_error(L, "a model makes more than %d calls", TEC_MAX_CALLS);
    if (p->n == p->room) {
        int room = p->room ? 2 * p->room : 256;
        struct tec_model_call *calls = TEC_NEW(&b->growing, (size_t)room, struct tec_model_call);
        if (!calls)
            luaL_error(L, "no memory for %d calls", room);
        if (p->n)
            memcpy(calls, p->calls, (size_t)p->n * sizeof *calls);
        p->calls = calls;
        p->room = room;
    }
    return &p->calls[p->n];
}

/* What stands before the options of a word, for its message. */
static const char *values_of(lua_State *L, int operands)
{
    if (operands < 0)
        return "a list of values and ";
    if (operands < 2)
        return operands ? "a value and " : "";
    return lua_pushfstring(L, "%d values and ", operands);
}

/* g:word(operands, { options }); upvalue 2 is the word. */
static int call_word(lua_State *L)
{
    struct tec_builder *b = builder_of(L);
    struct tec_model_program *p = b->program;
    enum tec_model_word word = (enum tec_model_word)lua_tointeger(L, lua_upvalueindex(2));
    const char *name = tec_word_kinds[word].name;
    struct tec_error err = {TEC_OK, ""};
    lua_rawgetp(L, LUA_REGISTRYINDEX, &words_key);
    if (!lua_rawequal(L, 1, -1))
        luaL_error(L, "write g:%s(...), with a colon", name);
    lua_pop(L, 1);
    if (L != tec_lua_state(b->lua))
        luaL_error(L, "%s: words are not for coroutines", name);
    if (!tec_model_word_fits(p, word)) {
        char says[400];
        tec_model_words_of(p, says, sizeof says);
        luaL_error(L, "%s: %s", name, says);
    }
    struct tec_model_call *c = next_call(L, b);
    place_call(L, b, c, word);
    int options = read_operands(L, b, c);
    if (lua_gettop(L) > options || (lua_gettop(L) == options && !lua_istable(L, options)))
        luaL_error(L, "%s: takes %sa table of options", name,
                   values_of(L, tec_word_kinds[word].operands));
    tec_builder_options(L, b, c, options);
    if (tec_word_kinds[word].infer(p, c, &err) != TEC_OK ||
        tec_model_patches_read(p, c, &err) != TEC_OK)
        luaL_error(L, "%s: %s", name, err.message);
    tec_model_call_moves(p, c);
    tec_builder_push(L, p->n++);
    return 1;
}

/* g.word */
static int find_word(lua_State *L)
{
    const char *names[TEC_WORD_COUNT], *key = lua_tostring(L, 2);
    int n = 0;
    for (int i = 0; i < TEC_WORD_COUNT; i++) {
        if (tec_word_kinds[i].operands == TEC_WORD_GIVEN)
            continue;
        names[n++] = tec_word_kinds[i].name;
        if (key && strcmp(key, names[n - 1]) == 0) {
            lua_pushvalue(L, lua_upvalueindex(1));
            lua_pushinteger(L, i);
            lua_pushcclosure(L, call_word, 2);
            return 1;
        }
    }
    const char *near = key ? tec_nearest(key, names, n) : NULL;
    return luaL_error(L, "the builder has no word '%s'%s%s%s", key ? key : "?",
                      near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static void push_metatable(lua_State *L, struct tec_builder *b, lua_CFunction index,
                           const char *name)
{
    lua_createtable(L, 0, 3);
    lua_pushlightuserdata(L, b);
    lua_pushcclosure(L, index, 1);
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
    lua_pushstring(L, name);
    lua_setfield(L, -2, "__name");
}

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

void tec_builder_given(lua_State *L, struct tec_builder *b, enum tec_model_word word,
                       const char *key)
{
    struct tec_error err = {TEC_OK, ""};
    struct tec_model_program *p = b->program;
    struct tec_model_call *c = next_call(L, b);
    lua_Debug ar;
    *c = call_of(word, b->part);
    lua_rawgetp(L, LUA_REGISTRYINDEX, key);
    lua_getinfo(L, ">S", &ar);
    c->line = ar.linedefined;
    c->file = tec_arena_printf(p->arena, "%s/%s", b->root, ar.short_src);
    if (tec_word_kinds[word].infer(p, c, &err) != TEC_OK)
        luaL_error(L, "%s: %s", tec_word_kinds[word].name, err.message);
    tec_builder_push(L, p->n++);
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
    lua_rawgetp(L, LUA_REGISTRYINDEX, &words_key);
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

void tec_builder_words(lua_State *L, struct tec_builder *b)
{
    push_metatable(L, b, value_index, "value");
    lua_rawsetp(L, LUA_REGISTRYINDEX, &value_key);
    lua_newuserdatauv(L, 1, 0);
    push_metatable(L, b, find_word, "builder");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &words_key);
}

void tec_builder_push_words(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &words_key);
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
