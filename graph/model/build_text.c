/* build_text.c - runs the functions of a description's text: what enters its layers, each layer,
 * and what leaves the last one. */
#include "graph/model/build_own.h"
#include "graph/model/parse.h"

#include <lauxlib.h>

enum text_function { ENTER, LAYER, LEAVE, TEXT_FUNCTIONS };

static const char *const names[TEXT_FUNCTIONS] = {"enter", "layer", "leave"};
/* Their addresses are keys of Lua's registry. */
static const char keys[TEXT_FUNCTIONS] = {0};

/* The number `name` of the table of the text on top of the stack. */
static int read_number(lua_State *L, const char *name, int most)
{
    int exact = 0;
    lua_pushstring(L, name);
    lua_rawget(L, -2);
    lua_Integer n = lua_type(L, -1) == LUA_TNUMBER ? lua_tointegerx(L, -1, &exact) : 0;
    if (!exact || n < 1 || n > most)
        luaL_error(L, "text: %s must be a whole number, 1 .. %d", name, most);
    lua_pop(L, 1);
    return (int)n;
}

void tec_builder_take_text(lua_State *L, struct tec_builder *b)
{
    bool found[TEXT_FUNCTIONS] = {false};
    lua_pushliteral(L, "text");
    lua_rawget(L, 2);
    for (int i = 0; i < TEXT_FUNCTIONS && lua_istable(L, -1); i++) {
        lua_pushstring(L, names[i]);
        lua_rawget(L, -2);
        found[i] = lua_isfunction(L, -1);
        if (!found[i]) {
            lua_pop(L, 1);
            continue;
        }
        lua_rawsetp(L, LUA_REGISTRYINDEX, &keys[i]);
        lua_pushstring(L, names[i]);
        lua_pushnil(L);
        lua_rawset(L, -3);
    }
    if (lua_istable(L, -1) && !found[LAYER])
        luaL_error(L, "text: lacks the function layer, which makes a layer of words");
    if (found[LAYER]) {
        b->layers = read_number(L, "layers", TEC_MAX_STACK_LAYERS);
        b->width = read_number(L, "width", TEC_PARSE_MAX);
        b->enters = found[ENTER];
        b->leaves = found[LEAVE];
    }
    lua_pop(L, 1);
}

/* Raises an error that is where a function begins. */
static int fail_at(lua_State *L, enum text_function which, const char *says)
{
    lua_Debug ar;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &keys[which]);
    lua_getinfo(L, ">S", &ar);
    lua_pushfstring(L, "%s:%d: %s: %s", ar.short_src, ar.linedefined, names[which], says);
    return lua_error(L);
}

/* The value that a function makes of x; of a layer with its index. */
static int run_one(lua_State *L, struct tec_builder *b, enum text_function which, int x, int layer)
{
    struct tec_model_program *p = b->program;
    int top = lua_gettop(L);
    b->from = p->n;
    b->given = x;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &keys[which]);
    tec_builder_push_words(L);
    tec_builder_push(L, x);
    if (layer >= 0)
        lua_pushinteger(L, layer);
    lua_call(L, layer >= 0 ? 3 : 2, 1);
    int id = tec_builder_value(L, -1);
    if (id < 0 || (id < b->from && id != x))
        fail_at(L, which, "must return rows that a word of it has made");
    if (p->calls[id].cols != p->width)
        fail_at(L, which,
                lua_pushfstring(L, "returns rows of %d columns; the text's have %d",
                                p->calls[id].cols, p->width));
    lua_settop(L, top);
    return id;
}

int tec_builder_run_text(lua_State *L)
{
    struct tec_builder *b = lua_touserdata(L, 1);
    struct tec_model_program *p = b->program;
    int x = 0;
    p->layers = TEC_NEW(p->arena, (size_t)b->layers + 1, struct tec_program_layer);
    if (!p->layers)
        return luaL_error(L, "no memory for %d layers", b->layers);
    tec_builder_words(L, b);
    b->part = TEC_PART_OF_TEXT;
    tec_builder_given(L, b, TEC_WORD_rows, &keys[LAYER]);
    if (b->enters)
        x = run_one(L, b, ENTER, x, -1);
    for (p->inside = true; p->n_layers < b->layers; p->n_layers++) {
        struct tec_program_layer *layer = &p->layers[p->n_layers];
        *layer = (struct tec_program_layer){p->n, x, -1};
        x = run_one(L, b, LAYER, x, p->n_layers);
        if (layer->attention < 0)
            return fail_at(L, LAYER, lua_pushfstring(L, "layer %d has no attention", p->n_layers));
    }
    p->inside = false;
    p->layers[b->layers] = (struct tec_program_layer){p->n, x, -1};
    p->leaves = b->leaves;
    p->result = b->leaves ? run_one(L, b, LEAVE, x, -1) : x;
    return 0;
}
