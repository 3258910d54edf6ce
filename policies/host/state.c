/* state.c - copies a policy's state S to plain bytes within a time limit, and reads the bytes into
 * another policy's state (with migrate). */
#include "base/clock.h"
#include "policies/host/host.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

enum { MAX_DEPTH = 32, NS_PER_US = 1000 };

/* Steps between two reads of the clock. One step of lua_next may pass over all empty slots of a
 * table, or along a chain of keys, without reporting it; so the first step of a table counts as
 * many. */
enum { LOOK_EVERY = 16, TABLE_STEPS = 4 };

static const struct tec_clock real_clock = {NULL};
enum tag { TAG_FALSE = 'f', TAG_TRUE = 't', TAG_INT = 'i', TAG_NUM = 'd', TAG_TEXT = 's' };
enum { TAG_OPEN = '{', TAG_CLOSE = '}' };

/* --- writing a state -------------------------------------------------------------------------- */

static enum tec_status refuse(struct tec_state_copy *copy, const char *what)
{
    snprintf(copy->why, sizeof copy->why, "the state of policy '%s' holds %s", copy->name, what);
    return TEC_MALFORMED;
}

static enum tec_status put(struct tec_state_copy *copy, int tag, const void *bytes, size_t n)
{
    if (n >= copy->size - copy->n) {
        snprintf(copy->why, sizeof copy->why, "the state of policy '%s' is larger than %zu bytes",
                 copy->name, copy->size);
        return TEC_MALFORMED;
    }
    copy->bytes[copy->n++] = (unsigned char)tag;
    memcpy(copy->bytes + copy->n, bytes, n);
    copy->n += n;
    return TEC_OK;
}

static enum tec_status put_text(struct tec_state_copy *copy, lua_State *L, int index)
{
    size_t n;
    const char *text = lua_tolstring(L, index, &n); /* a string: nothing is allocated */
    TEC_TRY(put(copy, TAG_TEXT, &n, sizeof n));
    if (n > copy->size - copy->n)
        return refuse(copy, "a text that is too long");
    memcpy(copy->bytes + copy->n, text, n);
    copy->n += n;
    return TEC_OK;
}

static enum tec_status put_number(struct tec_state_copy *copy, lua_State *L, int index)
{
    lua_Integer i = lua_isinteger(L, index) ? lua_tointeger(L, index) : 0;
    lua_Number x = lua_tonumber(L, index);
    return lua_isinteger(L, index) ? put(copy, TAG_INT, &i, sizeof i)
                                   : put(copy, TAG_NUM, &x, sizeof x);
}

/* Write any value but a table; a table stays on the stack. */
static enum tec_status put_scalar(struct tec_state_copy *copy, lua_State *L, int index)
{
    char what[80];
    switch (lua_type(L, index)) {
    case LUA_TBOOLEAN:
        return put(copy, lua_toboolean(L, index) ? TAG_TRUE : TAG_FALSE, "", 0);
    case LUA_TNUMBER:
        return put_number(copy, L, index);
    case LUA_TSTRING:
        return put_text(copy, L, index);
    default:
        snprintf(what, sizeof what, "a %s, only plain data can be handed on",
                 luaL_typename(L, index));
        return refuse(copy, what);
    }
}

static enum tec_status put_key(struct tec_state_copy *copy, lua_State *L)
{
    if (lua_type(L, -2) != LUA_TSTRING && !lua_isinteger(L, -2))
        return refuse(copy, "a key that is no text and no integer");
    return put_scalar(copy, L, -2);
}

/* The number of bytes does not bound the time: an emptied table is traversed for nothing each time
 * it is met. The CPU clock costs a system call, so it is read only when the wall-clock limit has
 * passed. */
struct timer {
    int64_t limit_ns, cpu_ns, until_ns; /* of CPU time; its clock at the start; on the wall */
    int steps;                          /* steps since the clock was last read */
};

static struct timer start_timer(int64_t limit_ns)
{
    int64_t now = tec_clock_now(&real_clock);
    return (struct timer){limit_ns, tec_clock_thread(), now + limit_ns, 0};
}

static enum tec_status keep_time(struct tec_state_copy *copy, struct timer *timer, int steps)
{
    timer->steps += steps;
    if (timer->steps < LOOK_EVERY)
        return TEC_OK;
    timer->steps = 0;
    int64_t now = tec_clock_now(&real_clock);
    if (now < timer->until_ns)
        return TEC_OK;
    int64_t rest = timer->limit_ns - (tec_clock_thread() - timer->cpu_ns);
    timer->until_ns = now + rest;
    if (rest > 0)
        return TEC_OK;
    snprintf(copy->why, sizeof copy->why,
             "the state of policy '%s' takes longer than %d us to copy (large tables that were "
             "emptied, or one that is held many times)",
             copy->name, (int)(timer->limit_ns / NS_PER_US));
    return TEC_MALFORMED;
}

/* Write the table on top of the stack with all that it holds; each level takes one key and one
 * table of stack. */
static enum tec_status put_table(struct tec_state_copy *copy, struct timer *timer, lua_State *L)
{
    const void *open[MAX_DEPTH];
    int depth = 0;
    for (bool enter = true;;) {
        if (enter) {
            const void *self = lua_topointer(L, -1);
            for (int i = 0; i < depth; i++)
                if (open[i] == self)
                    return refuse(copy, "a cycle");
            if (depth == MAX_DEPTH)
                return refuse(copy, "tables more than 32 deep");
            open[depth++] = self;
            TEC_TRY(put(copy, TAG_OPEN, "", 0));
            lua_pushnil(L);
        }
        TEC_TRY(keep_time(copy, timer, enter ? TABLE_STEPS : 1));
        enter = false;
        if (!lua_next(L, -2)) {
            TEC_TRY(put(copy, TAG_CLOSE, "", 0));
            if (--depth == 0)
                return TEC_OK;
            lua_pop(L, 1);
            continue;
        }
        TEC_TRY(put_key(copy, L));
        enter = lua_istable(L, -1);
        if (enter)
            continue;
        TEC_TRY(put_scalar(copy, L, -1));
        lua_pop(L, 1);
    }
}

static enum tec_status put_value(struct tec_state_copy *copy, int64_t limit_ns, lua_State *L)
{
    struct timer timer = start_timer(limit_ns);
    copy->n = 0;
    copy->why[0] = '\0';
    return lua_istable(L, -1) ? put_table(copy, &timer, L) : put_scalar(copy, L, -1);
}

enum tec_status tec_policy_copy_state(struct tec_policy *policy, struct tec_state_copy *copy)
{
    lua_State *L = tec_lua_state(policy->lua);
    int top = lua_gettop(L);
    memcpy(copy->name, policy->name, sizeof copy->name);
    copy->version = policy->version;
    tec_host_push_anchors(L);
    lua_rawgeti(L, -1, A_STATE);
    enum tec_status status = put_value(copy, (int64_t)policy->limits.state_us * NS_PER_US, L);
    lua_settop(L, top);
    return status;
}

/* --- reading a state -------------------------------------------------------------------------- */

struct reader {
    const unsigned char *bytes;
    size_t n;
};

static void take(struct reader *r, void *to, size_t n)
{
    memcpy(to, r->bytes, n);
    r->bytes += n;
    r->n -= n;
}

/* Push the value that the tag means; a closing tag leaves its table on top. The bytes are our own,
 * so they are well formed. */
static void push(lua_State *L, struct reader *r, int tag)
{
    lua_Integer i;
    lua_Number x;
    size_t n;
    switch (tag) {
    case TAG_INT:
        take(r, &i, sizeof i);
        lua_pushinteger(L, i);
        break;
    case TAG_NUM:
        take(r, &x, sizeof x);
        lua_pushnumber(L, x);
        break;
    case TAG_TEXT:
        take(r, &n, sizeof n);
        lua_pushlstring(L, (const char *)r->bytes, n);
        r->bytes += n;
        r->n -= n;
        break;
    case TAG_TRUE:
    case TAG_FALSE:
        lua_pushboolean(L, tag == TAG_TRUE);
        break;
    default:
        break;
    }
}

/* Push the value that the copy holds. */
static void push_copy(lua_State *L, const struct tec_state_copy *copy)
{
    struct reader r = {copy->bytes, copy->n};
    bool have_key[MAX_DEPTH + 1] = {false};
    int depth = 0;
    luaL_checkstack(L, 2 * MAX_DEPTH + 4, "state");
    while (r.n > 0) {
        unsigned char tag;
        take(&r, &tag, 1);
        if (tag == TAG_OPEN) {
            lua_newtable(L);
            have_key[++depth] = false;
            continue;
        }
        depth -= tag == TAG_CLOSE;
        push(L, &r, tag);
        if (depth == 0)
            return;
        if (have_key[depth])
            lua_rawset(L, -3);
        have_key[depth] = !have_key[depth];
    }
}

/* Arguments: the policy, and the copy of the state. */
static int migrate(lua_State *L)
{
    const struct tec_state_copy *copy = lua_touserdata(L, 2);
    tec_host_push_anchors(L);
    lua_rawgeti(L, 3, A_HOOK + TEC_HOOK_migrate);
    push_copy(L, copy);
    lua_pushinteger(L, copy->version);
    lua_call(L, 2, 1);
    if (!lua_istable(L, -1))
        return luaL_error(L, "migrate must return the new state, it returned %s",
                          luaL_typename(L, -1));
    lua_rawseti(L, 3, A_STATE);
    return 0;
}

bool tec_policy_migrates(const struct tec_policy *fresh, const char *name)
{
    return fresh->has[TEC_HOOK_migrate] && strcmp(fresh->name, name) == 0;
}

/* Copy the adopted state once more, because a state that cannot be handed on must not be taken over
 * either. */
static enum tec_status adopt(struct tec_policy *fresh, const struct tec_state_copy *copy,
                             struct tec_error *err)
{
    lua_State *L = tec_lua_state(fresh->lua);
    lua_pushlightuserdata(L, (void *)(uintptr_t)copy);
    TEC_TRY(tec_context(err, tec_host_build(fresh, migrate, 1, err), "policy '%s': migrate",
                        fresh->name));
    struct tec_state_copy check = {.size = copy->size};
    check.bytes = tec_heap_get(fresh->heap, check.size);
    if (!check.bytes)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the state of policy '%s'", fresh->name);
    enum tec_status status = tec_policy_copy_state(fresh, &check);
    tec_heap_put(fresh->heap, check.bytes);
    if (status != TEC_OK)
        return tec_fail(err, status, "policy '%s': migrate: %s", fresh->name, check.why);
    lua_pushcfunction(L, tec_host_settle);
    return tec_lua_call(fresh->lua, 0, 0, err);
}

enum tec_status tec_policy_migrate(struct tec_policy *fresh, const struct tec_state_copy *copy,
                                   struct tec_error *err)
{
    if (!tec_policy_migrates(fresh, copy->name))
        return TEC_OK;
    if (copy->why[0])
        return tec_fail(err, TEC_MALFORMED, "%s", copy->why);
    tec_lua_set_budget(fresh->lua, 0, (int64_t)fresh->limits.setup_us * 1000);
    enum tec_status status = adopt(fresh, copy, err);
    tec_lua_set_budget(fresh->lua, 0, (int64_t)fresh->limits.hard_us * 1000);
    fresh->settled = tec_lua_bytes(fresh->lua);
    return status;
}
