/* anchors.c - the table of what a call finds by number: views, pools, names. */
#include "policies/host/host.h"

static const char anchors_key = 'a'; /* a key in the registry by its address */

void tec_host_push_anchors(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &anchors_key);
}

void tec_host_anchor(lua_State *L)
{
    lua_rawsetp(L, LUA_REGISTRYINDEX, &anchors_key);
}
