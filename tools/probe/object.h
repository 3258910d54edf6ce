/* object.h - what is read out of a server's unpacked MessagePack messages. */
#ifndef TEC_TOOLS_PROBE_OBJECT_H
#define TEC_TOOLS_PROBE_OBJECT_H

#include <msgpack.h>
#include <stdbool.h>

/* The value of a name in a map, which lives as long as the message; NULL: `map` is none, or has no
 * such name. */
const msgpack_object *tec_probe_member(const msgpack_object *map, const char *name);

/* Whether it is this text; NULL is none. */
bool tec_probe_is(const msgpack_object *object, const char *text);

#endif
