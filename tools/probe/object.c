/* object.c - finds members of unpacked MessagePack maps. */
#include "tools/probe/object.h"

#include <string.h>

bool tec_probe_is(const msgpack_object *object, const char *text)
{
    size_t n = strlen(text);
    return object && (object->type == MSGPACK_OBJECT_STR || object->type == MSGPACK_OBJECT_BIN) &&
           object->via.str.size == n && memcmp(object->via.str.ptr, text, n) == 0;
}

const msgpack_object *tec_probe_member(const msgpack_object *map, const char *name)
{
    for (uint32_t i = 0; map && map->type == MSGPACK_OBJECT_MAP && i < map->via.map.size; i++)
        if (tec_probe_is(&map->via.map.ptr[i].key, name))
            return &map->via.map.ptr[i].val;
    return NULL;
}
