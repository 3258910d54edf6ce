/* lua.h - one bounded Lua state for pipeline files, descriptions and policies.
 *
 * A state has an allocator with limits, text chunks only, an environment of whitelisted functions,
 * and a count hook that ends a call whose budget is used up. Time is the clock on the wall, but a
 * call that the machine held up gets back once what it did not have of the CPU. What the whitelist
 * leaves out and why: doc/policies.md. Not thread-safe: one owner at a time. */
#ifndef TEC_BASE_LUA_H
#define TEC_BASE_LUA_H

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"

#include <jansson.h>
#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

struct tec_lua_limits {
    size_t heap;          /* bytes the state may hold */
    size_t block, string; /* largest single block, largest string; bytes */
    int64_t instructions; /* a call, 0 = no limit */
    int64_t budget_ns;    /* a call, 0 = no limit; see below */
};

struct tec_lua;

/* Limits for files that are read at load: 16 MiB, 10^6 instructions. */
extern const struct tec_lua_limits tec_lua_file_limits;

/* A fresh state with the sandbox environment. `heap` outlives it. */
enum tec_status tec_lua_create(struct tec_lua **out, const struct tec_lua_limits *limits,
                               struct tec_heap *heap, struct tec_error *err);
void tec_lua_destroy(struct tec_lua *lua); /* NULL is allowed */

/* The raw state, to push functions and read results. Every call into Lua goes through tec_lua_call.
 */
lua_State *tec_lua_state(struct tec_lua *lua);

/* Push the sandbox environment table (reading or writing a missing global in it is an error that
 * names the nearest name). Set fields in it with lua_rawset to add constructors. */
void tec_lua_push_env(struct tec_lua *lua);

/* Compile `n` bytes of text as chunk `name` (a path) with the sandbox as _ENV and push the
 * function. TEC_MALFORMED with "name:line: ..." on a syntax error or a binary chunk, TEC_TIME when
 * parsing takes longer than a call may, or two seconds. */
enum tec_status tec_lua_load(struct tec_lua *lua, const char *name, const char *text, size_t n,
                             struct tec_error *err);

/* A hash of all texts that were loaded so far, in their order; 0 = none. */
uint64_t tec_lua_texts(const struct tec_lua *lua);

/* Compile the text of a file likewise, as chunk `name`; NULL = its path. TEC_NOT_FOUND, TEC_IO when
 * it cannot be read. */
enum tec_status tec_lua_load_file(struct tec_lua *lua, const char *path, const char *name,
                                  struct tec_error *err);

/* Add include("relative/path.lua") to the environment: runs a file below directory `root`, or where
 * it is not there below `shipped` (NULL = none), and gives its value. No absolute path, no "..", no
 * links; at most 256 files, 16 deep. */
enum tec_status tec_lua_add_include(struct tec_lua *lua, const char *root, const char *shipped,
                                    struct tec_error *err);

/* lua_pcall under the limits. On failure nothing is left of the arguments and results, and the
 * status is TEC_POLICY (an error, message with position), TEC_TIME or TEC_NO_MEMORY. */
enum tec_status tec_lua_call(struct tec_lua *lua, int args, int results, struct tec_error *err);

/* The traceback of the last failed call, innermost first: lines "path:line: in function 'f'" of at
 * most 16 levels. Empty when memory ran out. Valid until the next call. */
const char *tec_lua_traceback(const struct tec_lua *lua);

/* For C functions: the string key of the table at `index` that is nearest to `word`, or NULL. */
const char *tec_lua_nearest_key(lua_State *L, int index, const char *word);

/* Replace the budget of calls to come; 0 = no limit. Not inside a call. */
void tec_lua_set_budget(struct tec_lua *lua, int64_t instructions, int64_t budget_ns);

/* Give back the small blocks that a call without collector (LUA_GCSTOP) freed when it reached the
 * limit: giving back thousands takes longer than finding them, and they wait, at most as many bytes
 * as the limit, for a better moment. Not inside a call. */
void tec_lua_release(struct tec_lua *lua);

/* Was it its own limits, and not the machine, that refused the last call memory? */
bool tec_lua_over_limit(const struct tec_lua *lua);

/* Bytes held and allocations made so far. */
size_t tec_lua_bytes(const struct tec_lua *lua);
int64_t tec_lua_allocations(const struct tec_lua *lua);

/* The value at `index` as JSON: tables with keys 1..n become arrays, with string keys objects; an
 * empty table is an empty array. Refused: functions, cycles, NaN, mixed keys, more than 64 deep.
 * Caller owns *out. */
enum tec_status tec_lua_to_json(struct tec_lua *lua, int index, json_t **out,
                                struct tec_error *err);

/* Set `name` in the sandbox environment to a JSON value (null is nil), which is read only. */
enum tec_status tec_lua_give(struct tec_lua *lua, const char *name, json_t *value,
                             struct tec_error *err);

/* Read a description (models, robots): run the file in a fresh sandbox whose only addition is
 * include("relative/path.lua") confined to `root`, and give its value as JSON. Caller owns *out.
 * The message begins with the path. */
enum tec_status tec_lua_read(json_t **out, const char *path, const char *root,
                             struct tec_heap *heap, struct tec_error *err);

/* Read a description likewise, with a JSON value that the file sees as `given` (NULL = none, and
 * the name is unknown), and a second directory of include. */
enum tec_status tec_lua_read_given(json_t **out, const char *path, const char *root,
                                   const char *shipped, json_t *given, struct tec_heap *heap,
                                   struct tec_error *err);

#endif
