/* build_own.h - between the files that run the functions of a description (build.h). */
#ifndef TEC_GRAPH_MODEL_BUILD_OWN_H
#define TEC_GRAPH_MODEL_BUILD_OWN_H

#include "base/lua.h"
#include "graph/model/program.h"

/* What the words see: C functions of one Lua state have it as their first upvalue. */
struct tec_builder {
    struct tec_lua *lua;
    const char *root; /* the folder of descriptions */
    struct tec_model_program *program;
    enum tec_model_part part;
    bool any, alone; /* the description has functions; an action, and no prefill */
    struct tec_program_flow flow;
};

/* The call whose value lies at an index; -1 where no value is there. */
int tec_builder_value(lua_State *L, int index);

/* Sets the options of a call from the table at an index, where one is. Raises a Lua error that says
 * what an option must be, which one is unknown or which one is missing. */
void tec_builder_options(lua_State *L, struct tec_builder *b, struct tec_model_call *call,
                         int index);

#endif
