/* lua_lib.h - what the files of the bounded Lua state share; others include base/lua.h. */
#ifndef TEC_BASE_LUA_LIB_H
#define TEC_BASE_LUA_LIB_H

#include "base/lua.h"

#include <stdbool.h>

struct tec_lua {
    lua_State *state;
    struct tec_lua_limits limits;
    struct tec_heap *heap;
    size_t bytes;
    int64_t allocations;
    int64_t used;               /* instructions of the running call, `armed` at a time */
    int64_t pending;            /* work of C functions not yet checked against the budget */
    size_t unseen;              /* bytes asked for since the clock was last looked at */
    int64_t cpu_ns, sampled_ns; /* CPU clock and clock when the call was seen to be long */
    bool sampled;
    int64_t until_ns;      /* end of the running call's time */
    bool extended;         /* the running call got back the time that the machine took */
    int depth;             /* calls in calls share the budget of the outermost */
    int armed;             /* instructions from hook to hook */
    bool long_texts;       /* strings exist with which one instruction takes microseconds */
    bool expired, refused; /* in the running call: out of time, out of memory */
    bool over;             /* its last refusal was for its own limits */
    char line[80];         /* "path:line" of the last refusal; "Lua" outside of a script */
    bool starved;          /* in the running call: the machine had no memory for a file */
    bool keeping;          /* a collection runs because memory was refused: free nothing */
    void *kept;            /* list of blocks freed meanwhile */
    size_t kept_bytes;
    int includes, include_depth;
    uint64_t texts;       /* a hash of all that was loaded, in order */
    int root, shipped;    /* directories of include(), the second after the first; -1 = none */
    char traceback[1024]; /* of the last failed call */
};

/* The owner of a state. */
struct tec_lua *tec_lua_of(lua_State *L);

/* A lua_Alloc whose `ud` is the state's owner: NULL where the limits forbid a block. */
void *tec_lua_allocate(void *ud, void *p, size_t osize, size_t nsize);

/* A call that is in no other one begins: nothing is used yet, and its time runs. */
void tec_lua_begin(struct tec_lua *lua);

/* For C functions that scripts call. Both raise when the budget of the running call is used up;
 * charge also counts `n` instructions for work done in C. */
void tec_lua_check(lua_State *L);
void tec_lua_charge(lua_State *L, int64_t n);

/* C function, to be called protected: builds the environment and makes it the globals. */
int tec_lua_open(lua_State *L);

enum { TEC_LUA_NUMERAL = 200 };

/* Raises when argument `arg` is a text of more than TEC_LUA_NUMERAL bytes: texts of any length pass
 * for numbers, and reading them takes as long as they are. */
void tec_lua_check_numeral(lua_State *L, int arg);

/* Push a table with insert, remove and sort. */
void tec_lua_push_table_functions(lua_State *L);

/* Sets the place of the table that holds the whitelisted names. Does not raise. */
void tec_lua_push_names(lua_State *L);

enum tec_lua_scan { TEC_LUA_SCAN_KEY, TEC_LUA_SCAN_END, TEC_LUA_SCAN_MANY, TEC_LUA_SCAN_TYPE };

/* Replace the key on top of the stack (nil: start) by the next one of the table at `index`:
 * integers ascending, then at most 256 strings in byte order. Pushes nothing else; the key is
 * popped unless the result is TEC_LUA_SCAN_KEY. *visited counts the entries looked at. Needs four
 * stack slots; does not raise. */
enum tec_lua_scan tec_lua_scan(lua_State *L, int index, int64_t *visited);

/* Text of a whole regular file below directory `dir` (AT_FDCWD: anywhere) with a NUL added, from
 * `heap`. */
enum tec_status tec_lua_slurp(char **out, size_t *n, int dir, const char *path,
                              struct tec_heap *heap, struct tec_error *err);

#endif
