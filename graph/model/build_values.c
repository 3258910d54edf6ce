/* build_values.c - values of the builder in Lua: a userdata that holds the number of its call. */
#include "graph/model/build_own.h"

#include <lauxlib.h>
#include <string.h>

/* Its address is a key of Lua's registry. */
static const char value_key = 'v';

struct tec_builder *tec_builder_of(lua_State *L)
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
    const struct tec_builder *b = tec_builder_of(L);
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

void tec_builder_push_metatable(lua_State *L, struct tec_builder *b, lua_CFunction index,
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

void tec_builder_values(lua_State *L, struct tec_builder *b)
{
    tec_builder_push_metatable(L, b, value_index, "value");
    lua_rawsetp(L, LUA_REGISTRYINDEX, &value_key);
}
