/* build_own.h - between the files that run the functions of a description (build.h). */
#ifndef TEC_GRAPH_MODEL_BUILD_OWN_H
#define TEC_GRAPH_MODEL_BUILD_OWN_H

#include "base/lua.h"
#include "graph/model/program.h"

/* Of a text, or of a tower: layers, columns of rows, and which functions it has; 0 layers = it is
 * not there. */
struct tec_layer_functions {
    int layers, width, image; /* image: the side of a tower's pictures */
    int keeps[TEC_MAX_DEEP], n_keeps;
    bool enters, leaves;
};

/* What the words see: C functions of one Lua state have it as their first upvalue. */
struct tec_builder {
    struct tec_lua *lua;
    const char *root; /* the folder of descriptions */
    struct tec_model_program *program;
    struct tec_arena growing; /* the calls of that program while they grow */
    enum tec_model_part part;
    bool any, alone; /* the description has functions; an action, and no prefill */
    bool states;     /* it has chunk.state */
    struct tec_program_flow flow;
    struct tec_layer_functions functions[1 + TEC_MAX_TOWERS]; /* of its text, and of each tower */
    /* While layers run: whose they are; what a function of theirs may read, values from call `from`
     * on, and one that it is given. */
    int of, from, given;
};

/* build_values.c: the builder of a function whose first upvalue it is; a metatable whose __index is
 * such a function, on the stack; and the values of the program that is built now. */
struct tec_builder *tec_builder_of(lua_State *L);
void tec_builder_push_metatable(lua_State *L, struct tec_builder *b, lua_CFunction index,
                                const char *name);
void tec_builder_values(lua_State *L, struct tec_builder *b);

/* build_words.c: makes the words and the values of the program that is built now; those of an
 * earlier one are none from then on. */
void tec_builder_words(lua_State *L, struct tec_builder *b);
void tec_builder_push_words(lua_State *L);

/* Pushes a value. */
void tec_builder_push(lua_State *L, int id);

/* Pushes a value that a function gets as an argument, made by `word`; it is where the function at
 * this key of the registry is. */
void tec_builder_given(lua_State *L, struct tec_builder *b, enum tec_model_word word,
                       const char *key);

/* Protected, the description at 2: reads the functions and sizes of its text and of its towers; and
 * takes them out of their tables, when functions have run that may read these. */
void tec_builder_take_layers(lua_State *L, struct tec_builder *b);
int tec_builder_clear_layers(lua_State *L);

/* Protected: enter, each layer and leave of whose turn it is, one after the other. */
int tec_builder_run_layers(lua_State *L);

/* Protected: project, with a value for each tower of the program. */
int tec_builder_run_project(lua_State *L);

/* Protected: chunk.state. */
int tec_builder_run_state(lua_State *L);

/* The call whose value lies at an index; -1 where no value is there. */
int tec_builder_value(lua_State *L, int index);

/* Sets the options of a call from the table at an index, where one is. Raises a Lua error that says
 * what an option must be, which one is unknown or which one is missing. */
void tec_builder_options(lua_State *L, struct tec_builder *b, struct tec_model_call *call,
                         int index);

#endif
