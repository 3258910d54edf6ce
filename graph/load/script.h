/* script.h - what the two files that deal with Lua share; others include graph/load/loader.h. */
#ifndef TEC_GRAPH_LOAD_SCRIPT_H
#define TEC_GRAPH_LOAD_SCRIPT_H

#include "graph/load/loader.h"

#include <lua.h>

/* Keys of hidden fields: their first byte is below a space. */
#define TEC_TAG "\2"  /* the constructor's number */
#define TEC_BASE "\3" /* extend: the value of the base file */
#define TEC_READ "\4" /* the value made of this table; true while it is being read */
/* TEC_MARK holds (source + 1) * TEC_SOURCE_STEP + token of the brace. */
enum { TEC_SOURCE_STEP = 1 << 21 };

/* The value on top of the stack, popped. Raises Lua errors: call it protected. NULL without memory
 * for values; what is wrong with the value itself is reported. */
struct tec_decl_value *tec_script_read(struct tec_loader *ld, lua_State *L);

#endif
