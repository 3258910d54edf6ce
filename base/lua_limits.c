/* lua_limits.c - what bounds a Lua state: its allocator, its count hook and its budgets.
 *
 * Scripts are not trusted and some run in a control loop, so memory, instructions and time are all
 * bounded. Memory work is charged as instructions, because a count hook alone does not see how long
 * a single instruction takes. */
#include "base/lua_lib.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

/* Once there are strings of LONG bytes, single instructions (numerals, comparisons, keys) can take
 * so much longer that the hook runs more often. Memory work is charged as instructions: one for
 * every BYTES_WORK bytes requested, and one for every COLLECT_WORK bytes that a collection
 * traverses. */
enum { HOOK_EVERY = 100, HOOK_OFTEN = 20, LONG = 256, BYTES_WORK = 128, COLLECT_WORK = 64 };
/* One instruction may fill a block of many KiB: rehashing a table of 2048 keys takes 60 us. After
 * LOOK_BYTES requested bytes the clock is checked before the next instruction. */
enum { LOOK_BYTES = 8192 };
enum { STRING_HEADER = 25, SPARE = 10, KEPT = 256 };

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

void *tec_lua_allocate(void *ud, void *p, size_t osize, size_t nsize)
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

void tec_lua_check_numeral(lua_State *L, int arg)
{
    if (lua_type(L, arg) == LUA_TSTRING && lua_rawlen(L, arg) > TEC_LUA_NUMERAL)
        luaL_argerror(L, arg, "a numeral of more than 200 bytes");
}

void tec_lua_begin(struct tec_lua *lua)
{
    lua->used = lua->pending = 0;
    lua->unseen = 0;
    lua->expired = lua->refused = lua->over = lua->starved = lua->extended = false;
    lua->include_depth = 0;
    lua->sampled = false;
    if (lua->limits.budget_ns)
        lua->until_ns = tec_clock_now(&real_clock) + lua->limits.budget_ns;
    arm(lua, lua->long_texts ? HOOK_OFTEN : HOOK_EVERY);
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
