/* lua.c - the bounded Lua state: its allocator, its count hook, its budgets and its protected
 * calls.
 *
 * Scripts are not trusted and some run in a control loop, so memory, instructions and time are all
 * bounded. Memory work is charged as instructions, because a count hook alone does not see how long
 * a single instruction takes. */
#include "base/lua.h"
#include "base/lua_lib.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

/* Once there are strings of LONG bytes, single instructions (numerals, comparisons, keys) can take
 * so much longer that the hook runs more often. Memory work is charged as instructions: one for
 * every BYTES_WORK bytes requested, and one for every COLLECT_WORK bytes that a collection
 * traverses. */
enum { HOOK_EVERY = 100, HOOK_OFTEN = 20, LONG = 256, BYTES_WORK = 128, COLLECT_WORK = 64 };
/* One instruction may fill a block of many KiB: rehashing a table of 2048 keys takes 60 us. After
 * LOOK_BYTES requested bytes the clock is checked before the next instruction. */
enum { LOOK_BYTES = 8192 };
enum { MIB = 1 << 20, STRING_HEADER = 25, SPARE = 10, KEPT = 256, PIECE = 64, MAX_LEVELS = 16 };
enum { PARSE_NS = 2000000000 }; /* the limit for parsing where calls have no time budget */

const struct tec_lua_limits tec_lua_file_limits = {.heap = (size_t)16 * MIB,
                                                   .block = (size_t)4 * MIB,
                                                   .string = MIB / 16,
                                                   .instructions = 1000000};

static const struct tec_clock real_clock = {NULL};

struct tec_lua *tec_lua_of(lua_State *L)
{
    return *(struct tec_lua **)lua_getextraspace(L);
}

/* True if the limits forbid an allocation. For a new block Lua passes the kind of object in
 * `osize`, so strings can have a separate limit. */
static bool refused(const struct tec_lua *lua, const void *p, size_t osize, size_t nsize)
{
    const struct tec_lua_limits *limits = &lua->limits;
    size_t old = p ? osize : 0;
    if (nsize <= old)
        return false;
    if (!p && osize == LUA_TSTRING && limits->string && nsize > limits->string + STRING_HEADER)
        return true;
    if (limits->block && nsize > limits->block)
        return true;
    return limits->heap && nsize - old > limits->heap - lua->bytes;
}

static void hook(lua_State *L, lua_Debug *event);

static void arm(struct tec_lua *lua, int every)
{
    lua->armed = every;
    lua_sethook(lua->state, hook, LUA_MASKCOUNT, every);
}

/* Record the script's current line. After an out-of-memory error Lua runs no message handler, so it
 * could not be found out then. */
static void note_line(struct tec_lua *lua)
{
    lua_Debug at;
    snprintf(lua->line, sizeof lua->line, "Lua");
    for (int level = 0; lua->depth > 0 && lua_getstack(lua->state, level, &at); level++)
        if (lua_getinfo(lua->state, "Sl", &at) && at.currentline > 0) {
            snprintf(lua->line, sizeof lua->line, "%s:%d", at.short_src, at.currentline);
            return;
        }
}

/* Account for a refused allocation. Lua answers it with a full collection, which is charged to the
 * next instruction: where memory is short there would otherwise be one collection for each
 * allocation, and many between two hooks. Where the collector is stopped, such a collection comes
 * unexpectedly in a call that has little time: see tec_lua_release. */
static void note_refusal(struct tec_lua *lua, bool over)
{
    lua->refused = true;
    lua->over = over;
    note_line(lua);
    lua->keeping = lua->state && !lua_gc(lua->state, LUA_GCISRUNNING);
    lua->used += (int64_t)lua->bytes / COLLECT_WORK;
    if (lua->depth > 0)
        arm(lua, 1);
}

/* Account for an allocated block of `nsize` bytes. */
static void note_block(struct tec_lua *lua, size_t old, size_t nsize, bool is_string)
{
    lua->allocations++;
    lua->bytes = lua->bytes - old + nsize;
    lua->used += (int64_t)nsize / BYTES_WORK;
    lua->unseen += nsize;
    if (lua->unseen >= LOOK_BYTES && lua->depth > 0 && lua->armed > 1)
        arm(lua, 1);
    if (!is_string || nsize < LONG || lua->long_texts)
        return;
    lua->long_texts = true;
    if (lua->depth > 0 && lua->armed > HOOK_OFTEN)
        arm(lua, HOOK_OFTEN);
}

/* Free a block. While `keeping` is set, small blocks, of which there may be many, are put on a list
 * instead, to be freed by tec_lua_release: every block of tec_heap_get has room for a pointer. */
static void give_back(struct tec_lua *lua, void *p, size_t size)
{
    lua->bytes -= size;
    if (!p || !lua->keeping || size > KEPT || lua->kept_bytes + size > lua->limits.heap) {
        tec_heap_put(lua->heap, p);
        return;
    }
    *(void **)p = lua->kept;
    lua->kept = p;
    lua->kept_bytes += size;
}

void tec_lua_release(struct tec_lua *lua)
{
    while (lua->kept) {
        void *next = *(void **)lua->kept;
        tec_heap_put(lua->heap, lua->kept);
        lua->kept = next;
    }
    lua->kept_bytes = 0;
}

static void *allocate(void *ud, void *p, size_t osize, size_t nsize)
{
    struct tec_lua *lua = ud;
    size_t old = p ? osize : 0;
    bool over = nsize > 0 && refused(lua, p, osize, nsize);
    if (nsize == 0) {
        give_back(lua, p, old);
        return NULL;
    }
    lua->keeping = lua->keeping && nsize <= old;
    void *fresh = over ? NULL : tec_heap_get(lua->heap, nsize);
    if (!fresh && nsize > old) {
        note_refusal(lua, over);
        return NULL;
    }
    note_block(lua, old, nsize, !p && osize == LUA_TSTRING);
    if (!fresh)
        return p; /* Lua relies on shrinking to succeed: the block stays as large as it was */
    if (p)
        memcpy(fresh, p, old < nsize ? old : nsize);
    tec_heap_put(lua->heap, p);
    return fresh;
}

/* Read the CPU clock once a quarter of the budget is gone: reading it is a system call, which calls
 * that finish early do not make. If the first check comes only after half of the budget, the thread
 * was held up, because no script works that long between two checks: then the deadline is moved. */
static void sample(struct tec_lua *lua, int64_t now)
{
    int64_t budget = lua->limits.budget_ns, gone = now - (lua->until_ns - budget);
    if (lua->sampled || gone < budget / 4)
        return;
    lua->sampled = true;
    lua->sampled_ns = now;
    lua->cpu_ns = tec_clock_thread();
    if (gone > budget / 2)
        lua->until_ns = now + budget - budget / 4;
}

/* True if the budget is used up. A call whose deadline passed before it had its time on the CPU was
 * held up by the machine, not by its script: its deadline is extended once, by the time that it
 * missed, at most by the budget. */
static bool spent(struct tec_lua *lua)
{
    int64_t budget = lua->limits.budget_ns;
    if (lua->limits.instructions && lua->used >= lua->limits.instructions)
        return true;
    if (!budget)
        return false;
    int64_t now = tec_clock_now(&real_clock);
    sample(lua, now);
    if (now < lua->until_ns)
        return false;
    int64_t missed = now - lua->sampled_ns - (tec_clock_thread() - lua->cpu_ns);
    if (lua->extended || missed <= budget / SPARE)
        return true;
    lua->extended = true;
    lua->until_ns = now + (missed < budget ? missed : budget);
    return false;
}

/* Raise the budget error. From then on every further instruction raises it again, so a script
 * cannot catch the error and go on. */
static void expire(lua_State *L, int level)
{
    struct tec_lua *lua = tec_lua_of(L);
    lua->expired = true;
    arm(lua, 1);
    luaL_where(L, level);
    lua_pushstring(L, lua->limits.budget_ns ? "time budget used up" : "instruction budget used up");
    lua_concat(L, 2);
    lua_error(L);
}

static void hook(lua_State *L, lua_Debug *event)
{
    (void)event;
    struct tec_lua *lua = tec_lua_of(L);
    int every = lua->long_texts ? HOOK_OFTEN : HOOK_EVERY;
    lua->used += lua->armed;
    lua->unseen = 0;
    if (lua->expired || spent(lua))
        expire(L, 0); /* a hook has no frame of its own */
    if (lua->armed != every)
        arm(lua, every);
}

void tec_lua_check(lua_State *L)
{
    struct tec_lua *lua = tec_lua_of(L);
    lua->pending = 0;
    if (lua->expired || spent(lua))
        expire(L, 1);
}

void tec_lua_charge(lua_State *L, int64_t n)
{
    struct tec_lua *lua = tec_lua_of(L);
    lua->used += n;
    lua->pending += n;
    if (lua->pending >= HOOK_EVERY)
        tec_lua_check(L);
}

enum tec_status tec_lua_create(struct tec_lua **out, const struct tec_lua_limits *limits,
                               struct tec_heap *heap, struct tec_error *err)
{
    *out = NULL;
    struct tec_lua *lua = tec_heap_get(heap, sizeof *lua);
    if (!lua)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a Lua state");
    lua->limits = *limits;
    lua->heap = heap;
    lua->root = lua->shipped = -1;
    lua->state = lua_newstate(allocate, lua);
    if (!lua->state) {
        tec_heap_put(heap, lua);
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a Lua state in %zu bytes", limits->heap);
    }
    *(struct tec_lua **)lua_getextraspace(lua->state) = lua;
    lua_pushcfunction(lua->state, tec_lua_open);
    enum tec_status status = tec_lua_call(lua, 0, 0, err);
    if (status != TEC_OK) {
        tec_lua_destroy(lua);
        return tec_context(err, status, "new Lua state");
    }
    *out = lua;
    return TEC_OK;
}

void tec_lua_destroy(struct tec_lua *lua)
{
    if (!lua)
        return;
    lua->keeping = false;
    tec_lua_release(lua);
    lua_close(lua->state);
    if (lua->root >= 0)
        close(lua->root);
    if (lua->shipped >= 0)
        close(lua->shipped);
    tec_heap_put(lua->heap, lua);
}

lua_State *tec_lua_state(struct tec_lua *lua)
{
    return lua->state;
}

void tec_lua_push_env(struct tec_lua *lua)
{
    tec_lua_push_names(lua->state);
}

/* Pop the error value into `text`. Scripts may raise values of any type and put any byte into a
 * message, so control characters become spaces. */
static void take_message(lua_State *L, char *text, size_t room)
{
    if (lua_type(L, -1) == LUA_TSTRING)
        snprintf(text, room, "%s", lua_tostring(L, -1));
    else if (lua_type(L, -1) == LUA_TNUMBER)
        snprintf(text, room, "error value %g", lua_tonumber(L, -1));
    else
        snprintf(text, room, "error value of type %s", luaL_typename(L, -1));
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = ' ';
    lua_pop(L, 1);
}

/* Source text that is passed to the parser in pieces. The parser runs no hook, so the clock is
 * checked at each piece: names used in the innermost of many nested functions make parsing
 * quadratic or worse. */
struct text {
    const char *at;
    size_t left;
    int64_t budget_ns, cpu_ns, until_ns; /* CPU budget; CPU clock at start; deadline */
};

/* Read the CPU clock, which is a system call, only when the wall-clock deadline has passed. */
static bool in_time(struct text *text)
{
    int64_t now = tec_clock_now(&real_clock);
    if (now < text->until_ns)
        return true;
    int64_t rest = text->budget_ns - (tec_clock_thread() - text->cpu_ns);
    text->until_ns = now + rest;
    return rest > text->budget_ns / SPARE;
}

static const char *next_piece(lua_State *L, void *data, size_t *n)
{
    struct text *text = data;
    if (!in_time(text))
        luaL_error(L, "the text takes too long to parse");
    const char *piece = text->at;
    *n = text->left < PIECE ? text->left : PIECE;
    text->at += *n;
    text->left -= *n;
    return piece;
}

uint64_t tec_lua_texts(const struct tec_lua *lua)
{
    return lua->texts;
}

enum tec_status tec_lua_load(struct tec_lua *lua, const char *name, const char *text, size_t n,
                             struct tec_error *err)
{
    lua_State *L = lua->state;
    char chunk[300], message[sizeof err->message];
    snprintf(chunk, sizeof chunk, "@%s", name);
    if (!lua_checkstack(L, 4))
        return tec_fail(err, TEC_NO_MEMORY, "%s: no stack left", name);
    if (lua->limits.heap && n > lua->limits.heap)
        return tec_fail(err, TEC_MALFORMED, "%s: %zu bytes of text, the limit is %zu", name, n,
                        lua->limits.heap);
    int64_t budget = lua->limits.budget_ns ? lua->limits.budget_ns : PARSE_NS;
    struct text rest = {text, n, budget, tec_clock_thread(), tec_clock_now(&real_clock) + budget};
    int rc = lua_load(L, next_piece, &rest, chunk, "t");
    lua->texts = XXH3_64bits_withSeed(text, n, lua->texts);
    if (rc == LUA_OK)
        return TEC_OK;
    take_message(L, message, sizeof message);
    if (rc == LUA_ERRMEM)
        return tec_fail(err, TEC_NO_MEMORY, "%s: more memory than the limit of %zu bytes", name,
                        lua->limits.heap);
    if (strstr(message, "takes too long to parse"))
        return tec_fail(err, TEC_TIME, "%s: %s", name, message);
    return tec_fail(err, TEC_MALFORMED, "%s", message);
}

static void add_line(struct tec_lua *lua, size_t *n, const lua_Debug *at)
{
    size_t room = sizeof lua->traceback - *n;
    char *line = lua->traceback + *n, place[80] = "in C";
    if (at->currentline > 0)
        snprintf(place, sizeof place, "%s:%d", at->short_src, at->currentline);
    int wrote = at->name ? snprintf(line, room, "%s%s: in %s '%.60s'", *n ? "\n" : "", place,
                                    *at->namewhat ? at->namewhat : "function", at->name)
                         : snprintf(line, room, "%s%s: in function <%s:%d>", *n ? "\n" : "", place,
                                    at->short_src, at->linedefined);
    if (wrote < 0 || (size_t)wrote >= room)
        line[0] = '\0'; /* drop a line that does not fit */
    else
        *n += (size_t)wrote;
}

/* Message handler that writes the traceback. It does bounded work in C and allocates nothing, so
 * that it cannot fail after the script has failed. The hook is off while it runs. */
static int trace(lua_State *L)
{
    struct tec_lua *lua = tec_lua_of(L);
    lua_Debug at;
    size_t n = 0;
    lua->traceback[0] = '\0';
    for (int level = 1; level <= MAX_LEVELS && lua_getstack(L, level, &at); level++)
        if (lua_getinfo(L, "Sln", &at) && (at.currentline > 0 || at.name))
            add_line(lua, &n, &at);
    return 1;
}

const char *tec_lua_traceback(const struct tec_lua *lua)
{
    return lua->traceback;
}

enum tec_status tec_lua_call(struct tec_lua *lua, int args, int results, struct tec_error *err)
{
    lua_State *L = lua->state;
    if (lua->depth == 0) {
        lua->used = lua->pending = 0;
        lua->unseen = 0;
        lua->expired = lua->refused = lua->over = lua->starved = lua->extended = false;
        lua->include_depth = 0;
        lua->sampled = false;
        if (lua->limits.budget_ns)
            lua->until_ns = tec_clock_now(&real_clock) + lua->limits.budget_ns;
        arm(lua, lua->long_texts ? HOOK_OFTEN : HOOK_EVERY);
    }
    int handler = lua_gettop(L) - args;
    lua_pushcfunction(L, trace);
    lua_insert(L, handler);
    lua->depth++;
    int rc = lua_pcall(L, args, results, handler);
    lua->depth--;
    lua_remove(L, handler);
    if (rc == LUA_OK)
        return TEC_OK;
    if (rc == LUA_ERRMEM)
        lua->traceback[0] = '\0'; /* Lua ran no message handler */
    char message[sizeof err->message];
    take_message(L, message, sizeof message);
    if (lua->expired)
        return tec_fail(err, TEC_TIME, "%s", message);
    if (rc == LUA_ERRMEM && lua->refused) /* error("not enough memory") looks the same */
        return tec_fail(err, TEC_NO_MEMORY,
                        "%s: more memory than allowed (%zu bytes in all, %zu a block, %zu a "
                        "string), %zu in use",
                        lua->line, lua->limits.heap, lua->limits.block, lua->limits.string,
                        lua->bytes);
    return tec_fail(err, lua->starved ? TEC_NO_MEMORY : TEC_POLICY, "%s", message);
}

void tec_lua_set_budget(struct tec_lua *lua, int64_t instructions, int64_t budget_ns)
{
    lua->limits.instructions = instructions;
    lua->limits.budget_ns = budget_ns;
}

bool tec_lua_over_limit(const struct tec_lua *lua)
{
    return lua->over;
}

size_t tec_lua_bytes(const struct tec_lua *lua)
{
    return lua->bytes;
}

int64_t tec_lua_allocations(const struct tec_lua *lua)
{
    return lua->allocations;
}
