/* build_words.c - the words of the builder in Lua: each that is called appends a call to the
 * program.
 *
 * What is wrong with a word is a Lua error at the word, so its message begins with file and line.
 */
#include "base/nearest.h"
#include "graph/model/build_own.h"

#include <lauxlib.h>
#include <string.h>

/* Its address is a key of Lua's registry. */
static const char words_key = 'w';

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
    struct tec_builder *b = tec_builder_of(L);
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
    return luaL_error(L, "the builder has no word '%s'%s", key ? key : "?",
                      tec_meant(';', near).text);
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

void tec_builder_words(lua_State *L, struct tec_builder *b)
{
    tec_builder_values(L, b);
    lua_newuserdatauv(L, 1, 0);
    tec_builder_push_metatable(L, b, find_word, "builder");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &words_key);
}

void tec_builder_push_words(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &words_key);
}
