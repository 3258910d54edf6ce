/* expect.c - compares what a policy test expects with what the policy decided: both sides are
 * written as text in the same form. */
#include "tools/policy/argument.h"
#include "tools/policy/trial.h"

#include <lauxlib.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_TEXT = 6000 };

struct text {
    char bytes[MAX_TEXT];
    size_t n;
};

/* The two sides of a comparison. */
struct sides {
    struct text expected, decided;
};

static void put(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->bytes + t->n, sizeof t->bytes - t->n, format, args);
    va_end(args);
    if (n > 0)
        t->n = t->n + (size_t)n < sizeof t->bytes ? t->n + (size_t)n : sizeof t->bytes - 1;
}

/* Separate two elements of a list or map. */
static void separate(struct text *t)
{
    put(t, "%s ", t->n > 0 && t->bytes[t->n - 1] == '{' ? "" : ",");
}

static void put_value(lua_State *L, struct text *t, int index)
{
    switch (lua_type(L, index)) {
    case LUA_TNUMBER:
        put(t, "%.15g", lua_tonumber(L, index));
        break;
    case LUA_TSTRING:
        put(t, "'%s'", lua_tostring(L, index));
        break;
    case LUA_TBOOLEAN:
        put(t, "%s", lua_toboolean(L, index) ? "true" : "false");
        break;
    default:
        put(t, "%s", luaL_typename(L, index));
    }
}

/* Write the list on top of the stack, which may hold lists one level deep. */
static void put_list(lua_State *L, struct text *t, bool nested)
{
    if (lua_type(L, -1) != LUA_TTABLE)
        luaL_error(L, "a list is expected, it is %s", luaL_typename(L, -1));
    int n = (int)lua_rawlen(L, -1);
    put(t, "{");
    for (int i = 1; i <= n && i <= 4 * TEC_MAX_ROWS; i++) {
        separate(t);
        lua_rawgeti(L, -1, i);
        if (nested)
            put_list(L, t, false);
        else
            put_value(L, t, -1);
        lua_pop(L, 1);
    }
    put(t, " }");
}

/* --- judges: the expected value is on top of the stack --------------------------------------- */

typedef void judge(lua_State *L, const struct tec_trial *t, struct sides *s);

static int running(const struct tec_row_decision *r)
{
    return r->shed ? 0 : r->k;
}

static void judge_decode(lua_State *L, const struct tec_trial *t, struct sides *s)
{
    put_list(L, &s->expected, false);
    put(&s->decided, "{");
    for (int i = 0; i < t->mock->decision.n_rows; i++) {
        separate(&s->decided);
        put(&s->decided, "%d", running(&t->mock->decision.rows[i]));
    }
    put(&s->decided, " }");
}

typedef bool holds(const struct tec_row_decision *r);

static void judge_rows(lua_State *L, const struct tec_trial *t, struct sides *s, holds *has)
{
    put_list(L, &s->expected, false);
    put(&s->decided, "{");
    for (int i = 0; i < t->mock->decision.n_rows; i++)
        if (has(&t->mock->decision.rows[i])) {
            separate(&s->decided);
            put(&s->decided, "%d", i + 1);
        }
    put(&s->decided, " }");
}

static bool is_paused(const struct tec_row_decision *r)
{
    return !r->shed && r->k == 0;
}

static bool is_unshared(const struct tec_row_decision *r)
{
    return r->unshare;
}

static bool is_shed(const struct tec_row_decision *r)
{
    return r->shed;
}

static void judge_paused(lua_State *L, const struct tec_trial *t, struct sides *s)
{
    judge_rows(L, t, s, is_paused);
}

static void judge_unshared(lua_State *L, const struct tec_trial *t, struct sides *s)
{
    judge_rows(L, t, s, is_unshared);
}

static void judge_shed(lua_State *L, const struct tec_trial *t, struct sides *s)
{
    judge_rows(L, t, s, is_shed);
}

/* Compare { [row] = reason }. */
static void judge_reasons(lua_State *L, const struct tec_trial *t, struct sides *s)
{
    put(&s->expected, "{");
    put(&s->decided, "{");
    for (int i = 0; i < t->mock->decision.n_rows; i++) {
        const struct tec_row_decision *r = &t->mock->decision.rows[i];
        if (lua_rawgeti(L, -1, i + 1) != LUA_TNIL) {
            separate(&s->expected);
            put(&s->expected, "[%d] = ", i + 1);
            put_value(L, &s->expected, -1);
        }
        lua_pop(L, 1);
        if (r->shed) {
            separate(&s->decided);
            put(&s->decided, "[%d] = '%s'", i + 1, r->reason);
        }
    }
    put(&s->expected, " }");
    put(&s->decided, " }");
}

static void judge_group(lua_State *L, const struct tec_trial *t, struct sides *s)
{
    put_list(L, &s->expected, false);
    put(&s->decided, "{");
    for (int i = 0; i < t->mock->decision.n_rows; i++) {
        separate(&s->decided);
        put(&s->decided, "%d", t->mock->decision.rows[i].group);
    }
    put(&s->decided, " }");
}

static void judge_priority(lua_State *L, const struct tec_trial *t, struct sides *s)
{
    put_list(L, &s->expected, false);
    put(&s->decided, "{");
    for (int i = 0; i < t->mock->decision.n_rows; i++) {
        separate(&s->decided);
        put(&s->decided, "%d", t->mock->decision.rows[i].priority);
    }
    put(&s->decided, " }");
}

static void judge_launches(lua_State *L, const struct tec_trial *t, struct sides *s)
{
    int order[TEC_MAX_ROWS], launch[TEC_MAX_ROWS];
    int n = tec_mock_launches(t->mock, order, launch);
    put_list(L, &s->expected, true);
    put(&s->decided, "{");
    for (int i = 0; i < n; i++) {
        if (i == 0 || launch[i] != launch[i - 1]) {
            put(&s->decided, "%s", i ? " }" : "");
            separate(&s->decided);
            put(&s->decided, "{");
        }
        separate(&s->decided);
        put(&s->decided, "%d", order[i] + 1);
    }
    put(&s->decided, "%s }", n ? " }" : "");
}

static void judge_snapped(lua_State *L, const struct tec_trial *t, struct sides *s)
{
    put_value(L, &s->expected, -1);
    put(&s->decided, "%d", t->mock->decision.snapped);
}

static void judge_depth(lua_State *L, const struct tec_trial *t, struct sides *s)
{
    put_value(L, &s->expected, -1);
    put(&s->decided, "%d", t->mock->decision.depth[0]);
}

/* Compare the ratios of the first layers, to a thousandth. */
static void judge_recompute(lua_State *L, const struct tec_trial *t, struct sides *s)
{
    const struct tec_decision *d = &t->mock->decision;
    const struct tec_recompute_decision *r = d->recompute; /* of the only memory of a mock */
    luaL_checktype(L, -1, LUA_TTABLE);
    int n = (int)lua_rawlen(L, -1);
    for (int i = 0; i < n; i++) {
        lua_rawgeti(L, -1, i + 1);
        put(&s->expected, " %.3f", luaL_checknumber(L, -1));
        put(&s->decided, " %.3f", d->n_recompute && i < r->n ? r->ratios[i] : -1.0);
        lua_pop(L, 1);
    }
}

static void judge_audit(lua_State *L, const struct tec_trial *t, struct sides *s)
{
    put_value(L, &s->expected, -1);
    const struct tec_decision *d = &t->mock->decision;
    put(&s->decided, "%s", d->n_recompute && d->recompute->audit ? "true" : "false");
}

static void put_note(struct text *text, const struct tec_decision *d, const char *key)
{
    int i = 0;
    while (i < d->n_notes && strcmp(d->notes[i].key, key) != 0)
        i++;
    if (i == d->n_notes)
        put(text, "false");
    else if (d->notes[i].is_number)
        put(text, "%.15g", d->notes[i].number);
    else
        put(text, "'%s'", d->notes[i].text);
}

/* Push the value of the first name after `last` in byte order (NULL: from the start) in the table
 * on top. At the end it returns NULL and pushes nothing. So messages have the same order in every
 * run. */
static const char *next_name(lua_State *L, const char *last)
{
    const char *best = NULL;
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            luaL_error(L, "names are expected, there is a %s", luaL_typename(L, -2));
        const char *name = lua_tostring(L, -2);
        if ((!last || strcmp(name, last) > 0) && (!best || strcmp(name, best) < 0))
            best = name;
    }
    if (best)
        lua_getfield(L, -1, best);
    return best;
}

/* Compare only the notes that are named; an empty table means no notes at all. */
static void judge_notes(lua_State *L, const struct tec_trial *t, struct sides *s)
{
    const struct tec_decision *d = &t->mock->decision;
    luaL_checktype(L, -1, LUA_TTABLE);
    put(&s->expected, "{");
    put(&s->decided, "{");
    int n = 0;
    for (const char *name = NULL; (name = next_name(L, name)) != NULL; n++) {
        separate(&s->expected);
        separate(&s->decided);
        put(&s->expected, "%s = ", name);
        put(&s->decided, "%s = ", name);
        put_value(L, &s->expected, -1);
        put_note(&s->decided, d, name);
        lua_pop(L, 1);
    }
    for (int i = 0; n == 0 && i < d->n_notes; i++) {
        separate(&s->decided);
        put(&s->decided, "%s = ", d->notes[i].key);
        put_note(&s->decided, d, d->notes[i].key);
    }
    put(&s->expected, " }");
    put(&s->decided, " }");
}

static void judge_skipped(lua_State *L, const struct tec_trial *t, struct sides *s)
{
    put_list(L, &s->expected, false);
    put(&s->decided, "{");
    for (int i = 0; i < t->mock->topology.n_nodes; i++)
        if (t->mock->decision.nodes[i].skip) {
            separate(&s->decided);
            put(&s->decided, "'%s'", t->mock->topology.nodes[i].name);
        }
    put(&s->decided, " }");
}

/* Compare { node = "name" }; false means the partition as declared. */
static void judge_partition(lua_State *L, const struct tec_trial *t, struct sides *s)
{
    const struct tec_topology *top = &t->mock->topology;
    luaL_checktype(L, -1, LUA_TTABLE);
    put(&s->expected, "{");
    put(&s->decided, "{");
    for (const char *name = NULL; (name = next_name(L, name)) != NULL; lua_pop(L, 1)) {
        int node = tec_mock_node(t->mock, name);
        if (node < 0)
            luaL_error(L, "the pipeline has no node '%s'", name);
        int p = t->mock->decision.nodes[node].partition;
        separate(&s->expected);
        separate(&s->decided);
        put(&s->expected, "%s = ", name);
        put_value(L, &s->expected, -1);
        if (p >= 0 && p < top->n_partitions)
            put(&s->decided, "%s = '%s'", name, top->partitions[p]);
        else
            put(&s->decided, "%s = false", name);
    }
    put(&s->expected, " }");
    put(&s->decided, " }");
}

/* Compare { node = n } for the nodes that are named. */
static void judge_slices(lua_State *L, const struct tec_trial *t, struct sides *s)
{
    luaL_checktype(L, -1, LUA_TTABLE);
    put(&s->expected, "{");
    put(&s->decided, "{");
    for (const char *name = NULL; (name = next_name(L, name)) != NULL; lua_pop(L, 1)) {
        int node = tec_mock_node(t->mock, name);
        if (node < 0)
            luaL_error(L, "the pipeline has no node '%s'", name);
        separate(&s->expected);
        separate(&s->decided);
        put(&s->expected, "%s = ", name);
        put_value(L, &s->expected, -1);
        put(&s->decided, "%s = %d", name, t->mock->decision.nodes[node].slices);
    }
    put(&s->expected, " }");
    put(&s->decided, " }");
}

static void judge_admitted(lua_State *L, const struct tec_trial *t, struct sides *s)
{
    put_value(L, &s->expected, -1);
    put(&s->decided, "%s", t->admitted ? "true" : "false");
}

static void judge_refused(lua_State *L, const struct tec_trial *t, struct sides *s)
{
    put_value(L, &s->expected, -1);
    if (t->admitted)
        put(&s->decided, "admitted");
    else
        put(&s->decided, "'%s'", t->reason);
}

static void judge_victim(lua_State *L, const struct tec_trial *t, struct sides *s)
{
    put_value(L, &s->expected, -1);
    if (t->victim < 0)
        put(&s->decided, "false");
    else
        put(&s->decided, "%d", t->victim + 1);
}

/* Compare an error message; a part of it is enough. */
static void judge_error(lua_State *L, const struct tec_trial *t, struct sides *s)
{
    const char *part = luaL_checkstring(L, -1);
    put(&s->expected, "'%s'", part);
    if (!t->mock->failed)
        put(&s->decided, "no error");
    else if (strstr(t->mock->error.message, part))
        put(&s->decided, "'%s'", part);
    else
        put(&s->decided, "'%s'", t->mock->error.message);
}

static const struct {
    const char *name;
    judge *judge;
    enum tec_asked after; /* TEC_ASKED_NOTHING: any call */
} fields[] = {
    {"error", judge_error, TEC_ASKED_NOTHING},     {"decode", judge_decode, TEC_ASKED_FRAME},
    {"paused", judge_paused, TEC_ASKED_FRAME},     {"unshared", judge_unshared, TEC_ASKED_FRAME},
    {"shed", judge_shed, TEC_ASKED_FRAME},         {"reasons", judge_reasons, TEC_ASKED_FRAME},
    {"group", judge_group, TEC_ASKED_FRAME},       {"priority", judge_priority, TEC_ASKED_FRAME},
    {"launches", judge_launches, TEC_ASKED_FRAME}, {"snapped", judge_snapped, TEC_ASKED_FRAME},
    {"depth", judge_depth, TEC_ASKED_FRAME},       {"notes", judge_notes, TEC_ASKED_FRAME},
    {"skipped", judge_skipped, TEC_ASKED_FRAME},   {"partition", judge_partition, TEC_ASKED_FRAME},
    {"admitted", judge_admitted, TEC_ASKED_ADMIT}, {"refused", judge_refused, TEC_ASKED_ADMIT},
    {"victim", judge_victim, TEC_ASKED_EVICT},     {"slices", judge_slices, TEC_ASKED_FRAME},
    {"audit", judge_audit, TEC_ASKED_FRAME},       {"recompute", judge_recompute, TEC_ASKED_FRAME},
};

enum { N_FIELDS = sizeof fields / sizeof fields[0] };

static void report(lua_State *L, struct tec_trial *t, const char *field, const struct sides *s)
{
    struct tec_error err;
    char name[400], detail[1200];
    bool ok = strcmp(s->expected.bytes, s->decided.bytes) == 0;
    luaL_where(L, 1);
    snprintf(name, sizeof name, "%s%s", lua_tostring(L, -1), field);
    lua_pop(L, 1);
    if (ok)
        snprintf(detail, sizeof detail, "%.1000s", s->decided.bytes);
    else
        snprintf(detail, sizeof detail, "expected %.550s, decided %.550s", s->expected.bytes,
                 s->decided.bytes);
    if (tec_checks_add(t->checks, ok, name, detail, &err) != TEC_OK)
        luaL_error(L, "%s", err.message);
}

static void expect_field(lua_State *L, struct tec_trial *t, int i)
{
    struct sides s;
    if (fields[i].after != TEC_ASKED_NOTHING && fields[i].after != t->asked)
        luaL_error(L, "expect '%s' comes after %s", fields[i].name,
                   fields[i].after == TEC_ASKED_ADMIT   ? "t:admit"
                   : fields[i].after == TEC_ASKED_EVICT ? "t:evict"
                                                        : "t:frame");
    s.expected.n = s.decided.n = 0;
    s.expected.bytes[0] = s.decided.bytes[0] = '\0';
    fields[i].judge(L, t, &s);
    report(L, t, fields[i].name, &s);
}

void tec_trial_expect(lua_State *L, struct tec_trial *t)
{
    const char *names[N_FIELDS];
    struct tec_error err;
    int seen = 0;
    for (int i = 0; i < N_FIELDS; i++)
        names[i] = fields[i].name;
    tec_argument_check(L, 2, "expect", names, N_FIELDS);
    if (t->asked == TEC_ASKED_NOTHING)
        luaL_error(L, "expect comes after t:frame, t:admit or t:evict");
    lua_getfield(L, 2, "error");
    t->told = t->told || !lua_isnil(L, -1);
    lua_pop(L, 1);
    if (tec_trial_settle(t, &err) != TEC_OK)
        luaL_error(L, "%s", err.message);
    for (int i = 0; i < N_FIELDS; i++) {
        lua_getfield(L, 2, fields[i].name);
        if (!lua_isnil(L, -1)) {
            seen++;
            expect_field(L, t, i);
        }
        lua_pop(L, 1);
    }
    if (seen == 0)
        luaL_error(L, "expect needs a field: %s, ...", fields[1].name);
}
