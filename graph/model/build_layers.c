/* build_layers.c - runs the functions of a description's text, and those of its picture towers:
 * what enters the layers, each layer, and what leaves the last one; and `project`, which makes rows
 * of the text's prompt of what leaves the towers. */
#include "graph/model/build_own.h"
#include "graph/model/unpack.h"

#include <lauxlib.h>

enum { MAX_SIDE = 4096 };
enum layer_function { ENTER, LAYER, LEAVE, LAYER_FUNCTIONS };

static const char *const names[LAYER_FUNCTIONS] = {"enter", "layer", "leave"};
/* Their addresses are keys of Lua's registry. */
static const char keys[1 + TEC_MAX_TOWERS][LAYER_FUNCTIONS] = {{0}}, project_key = 'p',
                           state_key = 's';

static const char *const owners[] = {"text", "vision.towers"};

/* The number `name` of the table on top of the stack. */
static int read_number(lua_State *L, const char *owner, const char *name, int most)
{
    int exact = 0;
    lua_pushstring(L, name);
    lua_rawget(L, -2);
    lua_Integer n = lua_type(L, -1) == LUA_TNUMBER ? lua_tointegerx(L, -1, &exact) : 0;
    if (!exact || n < 1 || n > most)
        luaL_error(L, "%s: %s must be a whole number, 1 .. %d", owner, name, most);
    lua_pop(L, 1);
    return (int)n;
}

/* Layers of a tower whose rows are kept: `keeps` of the table on top of the stack. */
static void read_keeps(lua_State *L, struct tec_layer_functions *f)
{
    lua_pushliteral(L, "keeps");
    lua_rawget(L, -2);
    lua_Integer n = lua_istable(L, -1) ? (lua_Integer)lua_rawlen(L, -1) : 0;
    if ((!lua_isnil(L, -1) && !lua_istable(L, -1)) || n > TEC_MAX_DEEP)
        luaL_error(L, "vision.towers: keeps must be a list of %d layers at most", TEC_MAX_DEEP);
    for (lua_Integer i = 0, before = -1; i < n; i++) {
        int exact = 0;
        lua_rawgeti(L, -1, i + 1);
        lua_Integer layer = lua_tointegerx(L, -1, &exact);
        if (!exact || layer <= before || layer >= f->layers)
            luaL_error(L, "vision.towers: keeps: layer %d must be a number, %d .. %d", (int)i + 1,
                       (int)before + 1, f->layers - 1);
        f->keeps[f->n_keeps++] = (int)layer;
        before = layer;
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/* Of the table on top of the stack: its functions to the registry, and its sizes. */
static void read_layers(lua_State *L, struct tec_builder *b, int index)
{
    const char *owner = owners[index > 0];
    bool found[LAYER_FUNCTIONS];
    for (int i = 0; i < LAYER_FUNCTIONS; i++) {
        lua_pushstring(L, names[i]);
        lua_rawget(L, -2);
        found[i] = lua_isfunction(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &keys[index][i]);
    }
    if (!found[LAYER])
        luaL_error(L, "%s: lacks the function layer, which makes a layer of words", owner);
    if (index && !found[ENTER])
        luaL_error(L, "%s: lacks the function enter, which makes rows of a picture's pixels",
                   owner);
    b->functions[index] = (struct tec_layer_functions){
        .layers = read_number(L, owner, "layers", TEC_MAX_STACK_LAYERS),
        .width = read_number(L, owner, "width", TEC_PARSE_MAX),
        .image = index ? read_number(L, owner, "image_size", MAX_SIDE) : 0,
        .enters = found[ENTER],
        .leaves = found[LEAVE]};
    if (index)
        read_keeps(L, &b->functions[index]);
}

/* Visits the tables of the text and of the towers of the description at 2, each on top of the
 * stack. */
static void each_table(lua_State *L, struct tec_builder *b,
                       void (*visit)(lua_State *L, struct tec_builder *b, int index))
{
    int top = lua_gettop(L);
    lua_pushliteral(L, "text");
    lua_rawget(L, 2);
    if (lua_istable(L, -1))
        visit(L, b, 0);
    lua_pushliteral(L, "vision");
    lua_rawget(L, 2);
    if (lua_istable(L, -1)) {
        lua_pushliteral(L, "towers");
        lua_rawget(L, -2);
    }
    for (int i = 1; i <= TEC_MAX_TOWERS && lua_istable(L, -1); i++) {
        lua_rawgeti(L, -1, i);
        if (lua_istable(L, -1))
            visit(L, b, i);
        lua_pop(L, 1);
    }
    lua_settop(L, top);
}

/* The function `name` out of the description's table `owner`; whether this is there, and what it
 * then is. */
static bool take_function(lua_State *L, const char *owner, const char *name, const char *key,
                          int *type)
{
    int top = lua_gettop(L);
    lua_pushstring(L, owner);
    lua_rawget(L, 2);
    bool there = lua_istable(L, -1);
    if (there) {
        lua_pushstring(L, name);
        lua_rawget(L, -2);
        *type = lua_type(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, key);
        lua_pushstring(L, name);
        lua_pushnil(L);
        lua_rawset(L, -3);
    }
    lua_settop(L, top);
    return there;
}

static void take_others(lua_State *L, struct tec_builder *b)
{
    int type = LUA_TNIL;
    if (take_function(L, "vision", "project", &project_key, &type) && type != LUA_TFUNCTION)
        luaL_error(L, "vision: lacks the function project, which makes rows of the prompt of what "
                      "leaves the towers");
    type = LUA_TNIL;
    if (take_function(L, "chunk", "state", &state_key, &type) && type != LUA_TFUNCTION &&
        type != LUA_TNIL)
        luaL_error(L, "chunk.state: must be a function, which makes a row of the robot's state");
    b->states = type == LUA_TFUNCTION;
}

void tec_builder_take_layers(lua_State *L, struct tec_builder *b)
{
    each_table(L, b, read_layers);
    take_others(L, b);
}

static void clear(lua_State *L, struct tec_builder *b, int index)
{
    static const char *const taken[] = {"enter", "layer",      "leave", "layers",
                                        "width", "image_size", "keeps"};
    (void)b;
    (void)index;
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        lua_pushstring(L, taken[i]);
        lua_pushnil(L);
        lua_rawset(L, -3);
    }
}

int tec_builder_clear_layers(lua_State *L)
{
    if (lua_istable(L, 2))
        each_table(L, lua_touserdata(L, 1), clear);
    return 0;
}

/* Raises an error that is where a function begins. */
static int fail_at(lua_State *L, const struct tec_builder *b, enum layer_function which,
                   const char *says)
{
    lua_Debug ar;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &keys[b->of][which]);
    lua_getinfo(L, ">S", &ar);
    lua_pushfstring(L, "%s:%d: %s: %s", ar.short_src, ar.linedefined, names[which], says);
    return lua_error(L);
}

/* What enters a tower's layers: patches of the picture, and nothing but rows in front of them. */
static void check_entered(lua_State *L, const struct tec_builder *b, int x)
{
    const struct tec_model_program *p = b->program;
    const struct tec_model_call *c = &p->calls[x];
    if (c->constant || !p->patches || c->rows != p->before + p->patches)
        fail_at(L, b, ENTER, "must return the picture's patches, perhaps behind other rows");
}

/* The value that a function makes of x; of a layer with its index. */
static int run_one(lua_State *L, struct tec_builder *b, enum layer_function which, int x, int layer)
{
    struct tec_model_program *p = b->program;
    int top = lua_gettop(L);
    b->from = p->n;
    b->given = x;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &keys[b->of][which]);
    tec_builder_push_words(L);
    tec_builder_push(L, x);
    if (layer >= 0)
        lua_pushinteger(L, layer);
    lua_call(L, layer >= 0 ? 3 : 2, 1);
    int id = tec_builder_value(L, -1);
    if (id < 0 || (id < b->from && id != x))
        fail_at(L, b, which, "must return rows that a word of it has made");
    if (p->calls[id].cols != p->width)
        fail_at(L, b, which,
                lua_pushfstring(L, "returns rows of %d columns; those of the %s have %d",
                                p->calls[id].cols, p->tower ? "tower" : "text", p->width));
    lua_settop(L, top);
    return id;
}

int tec_builder_run_layers(lua_State *L)
{
    struct tec_builder *b = lua_touserdata(L, 1);
    struct tec_model_program *p = b->program;
    const struct tec_layer_functions *f = &b->functions[b->of];
    int x = 0;
    p->layers = TEC_NEW(p->arena, (size_t)f->layers + 1, struct tec_program_layer);
    if (!p->layers)
        return luaL_error(L, "no memory for %d layers", f->layers);
    tec_builder_words(L, b);
    b->part = TEC_PART_OF_LAYERS;
    tec_builder_given(L, b, p->tower ? TEC_WORD_pixels : TEC_WORD_rows,
                      &keys[b->of][p->tower ? ENTER : LAYER]);
    if (f->enters)
        x = run_one(L, b, ENTER, x, -1);
    if (p->tower)
        check_entered(L, b, x);
    for (p->inside = true; p->n_layers < f->layers; p->n_layers++) {
        struct tec_program_layer *layer = &p->layers[p->n_layers];
        *layer = (struct tec_program_layer){p->n, x, -1};
        x = run_one(L, b, LAYER, x, p->n_layers);
        if (layer->attention < 0)
            return fail_at(L, b, LAYER,
                           lua_pushfstring(L, "layer %d has no attention", p->n_layers));
    }
    p->inside = false;
    p->layers[f->layers] = (struct tec_program_layer){p->n, x, -1};
    p->leaves = f->leaves;
    p->result = f->leaves ? run_one(L, b, LEAVE, x, -1) : x;
    return 0;
}

/* What the function at a key makes of its `args` values on top: the result of the program. */
static void run_result(lua_State *L, struct tec_builder *b, const char *key, const char *name,
                       int args)
{
    struct tec_model_program *p = b->program;
    int below = lua_gettop(L) - 2 - args, most = p->projects ? 1 + TEC_MAX_DEEP : 1;
    lua_Debug ar;
    lua_call(L, 1 + args, p->projects ? LUA_MULTRET : 1);
    int n = lua_gettop(L) - below, made = 0;
    for (int i = 0; i < n && n <= most; i++) {
        int value = tec_builder_value(L, below + 1 + i);
        made += value >= args;
        if (i)
            p->deep[p->n_deep++] = value;
        else
            p->result = value;
    }
    if (n && made == n)
        return;
    lua_rawgetp(L, LUA_REGISTRYINDEX, key);
    lua_getinfo(L, ">S", &ar);
    if (n > most)
        luaL_error(L, "%s:%d: %s: returns %d results; there can be %d", ar.short_src,
                   ar.linedefined, name, n, most);
    luaL_error(L, "%s:%d: %s: must return rows that a word of it has made", ar.short_src,
               ar.linedefined, name);
}

int tec_builder_run_project(lua_State *L)
{
    struct tec_builder *b = lua_touserdata(L, 1);
    int n = 0;
    tec_builder_words(L, b);
    b->part = TEC_PART_OF_LAYERS;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &project_key);
    tec_builder_push_words(L);
    const struct tec_model_program *const *towers = b->program->towers;
    int values = (towers[1] ? 2 : 1) + towers[0]->n_keeps;
    if (towers[0]->n_keeps && (towers[1] || towers[0]->before))
        luaL_error(L, "vision.towers: keeps is of one tower, without rows in front of patches");
    if (towers[1] && towers[1]->n_keeps)
        luaL_error(L, "vision.towers: keeps is of one tower");
    for (; n < values; n++)
        tec_builder_given(L, b, TEC_WORD_features, &project_key);
    run_result(L, b, &project_key, "project", n);
    return 0;
}

int tec_builder_run_state(lua_State *L)
{
    struct tec_builder *b = lua_touserdata(L, 1);
    tec_builder_words(L, b);
    b->part = TEC_PART_OF_PREFILL;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &state_key);
    tec_builder_push_words(L);
    run_result(L, b, &state_key, "chunk.state", 0);
    return 0;
}
