/* decide.c - D, the decision object of a policy: setters that validate their arguments, snap
 * numbers to captured points, and are idempotent. */
#include "base/nearest.h"
#include "graph/nodes/node.h"
#include "policies/host/host.h"

#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_PRIORITY = 1000 };

/* The policy, if the method is called as D:name(...) inside the plan hook. */
static struct tec_policy *deciding(lua_State *L)
{
    struct tec_policy *policy = lua_touserdata(L, lua_upvalueindex(1));
    if (!policy->deciding)
        luaL_error(L, "D can be used inside plan only");
    if (lua_type(L, 1) != LUA_TTABLE)
        luaL_error(L, "write D:name(...), with a colon");
    return policy;
}

/* The line of the script that calls the method; 0 = not known. */
static int line_of(lua_State *L)
{
    lua_Debug at;
    return lua_getstack(L, 1, &at) && lua_getinfo(L, "l", &at) && at.currentline > 0
               ? at.currentline
               : 0;
}

static double number(lua_State *L, int arg, const char *what)
{
    if (lua_type(L, arg) != LUA_TNUMBER)
        luaL_error(L, "%s must be a number, it is %s", what, luaL_typename(L, arg));
    double value = lua_tonumber(L, arg);
    if (isnan(value))
        luaL_error(L, "%s is not a number (NaN)", what);
    return value;
}

/* A number as it is written: 3, 2.5. */
static const char *shown(char digits[32], double value)
{
    snprintf(digits, 32, "%.14g", value);
    return digits;
}

/* Read an integer argument from `low` to `high`. */
static int integer(lua_State *L, int arg, const char *what, int low, int high)
{
    double value = number(L, arg, what);
    char digits[32];
    if (floor(value) != value || value < low || value > high)
        luaL_error(L, "%s must be an integer from %d to %d, it is %s", what, low, high,
                   shown(digits, value));
    return (int)value;
}

static struct tec_row_decision *row(lua_State *L, struct tec_policy *policy, int *index)
{
    double i = number(L, 2, "i");
    int n = policy->scratch.n_rows;
    char digits[32];
    if (floor(i) != i || i < 1 || i > n)
        luaL_error(L, "no request %s: F.nreq is %d", shown(digits, i), n);
    if (index)
        *index = (int)i - 1;
    return &policy->scratch.rows[(int)i - 1];
}

/* The same, for a method that decides about the request. */
static struct tec_row_decision *decided_row(lua_State *L, struct tec_policy *policy, int *index)
{
    struct tec_row_decision *r = row(L, policy, index);
    r->line = line_of(L);
    return r;
}

static const char *name_of(lua_State *L, int arg, const char *what)
{
    if (lua_type(L, arg) != LUA_TSTRING)
        luaL_error(L, "%s must be a name, it is %s", what, luaL_typename(L, arg));
    return lua_tostring(L, arg);
}

static int node(lua_State *L, struct tec_policy *policy)
{
    const struct tec_topology *t = policy->topology;
    const char *name = name_of(L, 2, "node"), *names[TEC_MAX_NODES];
    for (int i = 0; i < t->n_nodes; i++) {
        if (strcmp(t->nodes[i].name, name) == 0) {
            policy->scratch.nodes[i].line = line_of(L);
            return i;
        }
        names[i] = t->nodes[i].name;
    }
    return tec_host_unknown(L, "node", name, tec_nearest(name, names, t->n_nodes));
}

static int listed(lua_State *L, int arg, const char *what, const char *const *names, int n)
{
    const char *name = name_of(L, arg, what);
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return tec_host_unknown(L, what, name, tec_nearest(name, names, n));
}

/* The whole part of a requested number, which may be any value. */
static int whole(double wish)
{
    return wish >= INT32_MAX ? INT32_MAX : wish <= 0 ? 0 : (int)wish;
}

static int decide_decode(lua_State *L)
{
    int i;
    struct tec_policy *policy = deciding(L);
    struct tec_row_decision *r = row(L, policy, &i);
    int wish = whole(number(L, 3, "k"));
    r->k = tec_snap_down(policy->topology->k, policy->topology->n_k, wish);
    r->shed = false;
    policy->row_moved[i] = r->k != wish;
    if (r->k > 0)
        policy->wished[i] = r->k;
    /* Finding a line takes as long as the rest: a loop over requests has one for all. */
    bool goes_on = i > 0 && policy->decoded == i - 1 && r[-1].k == r->k && !r[-1].shed;
    r->line = goes_on ? r[-1].line : line_of(L);
    policy->decoded = i;
    return 0;
}

static int decide_batch(lua_State *L)
{
    struct tec_row_decision *r = decided_row(L, deciding(L), NULL);
    r->group = integer(L, 3, "group", 0, TEC_MAX_ROWS);
    return 0;
}

static int decide_pause(lua_State *L)
{
    int i;
    struct tec_policy *policy = deciding(L);
    decided_row(L, policy, &i)->k = 0;
    policy->row_moved[i] = false;
    return 0;
}

static int decide_resume(lua_State *L)
{
    int i;
    struct tec_policy *policy = deciding(L);
    struct tec_row_decision *r = decided_row(L, policy, &i);
    r->shed = false;
    if (r->k == 0)
        r->k = policy->wished[i]       ? policy->wished[i]
               : policy->topology->n_k ? policy->topology->k[0]
                                       : 0;
    return 0;
}

static int decide_shed(lua_State *L)
{
    struct tec_row_decision *r = decided_row(L, deciding(L), NULL);
    const char *reason = lua_isnoneornil(L, 3) ? "policy" : name_of(L, 3, "reason");
    r->shed = true;
    tec_host_copy_text(r->reason, sizeof r->reason, reason);
    return 0;
}

static int decide_unshare(lua_State *L)
{
    decided_row(L, deciding(L), NULL)->unshare = true;
    return 0;
}

static int decide_priority(lua_State *L)
{
    struct tec_policy *policy = deciding(L);
    int p = integer(L, 3, "priority", 0, MAX_PRIORITY);
    if (lua_type(L, 2) == LUA_TSTRING)
        policy->scratch.nodes[node(L, policy)].priority = p;
    else
        decided_row(L, policy, NULL)->priority = p;
    return 0;
}

/* The index of a node that policies may switch on and off. */
static int optional_node(lua_State *L, struct tec_policy *policy, const char *verb)
{
    int i = node(L, policy);
    if (!policy->topology->nodes[i].optional)
        luaL_error(L, "%snode '%s' cannot be %s: it has no when = policy()",
                   policy->topology->nodes[i].hard ? "hard " : "", policy->topology->nodes[i].name,
                   verb);
    return i;
}

static int decide_run(lua_State *L)
{
    struct tec_policy *policy = deciding(L);
    int i = optional_node(L, policy, "switched");
    policy->scratch.nodes[i].skip = false;
    policy->scratch.nodes[i].reason[0] = '\0';
    return 0;
}

static int decide_skip(lua_State *L)
{
    struct tec_policy *policy = deciding(L);
    int i = optional_node(L, policy, "skipped");
    const char *reason = lua_isnoneornil(L, 3) ? "policy" : name_of(L, 3, "reason");
    policy->scratch.nodes[i].skip = true;
    tec_host_copy_text(policy->scratch.nodes[i].reason, sizeof policy->scratch.nodes[i].reason,
                       reason);
    return 0;
}

static int ring_named(lua_State *L, const struct tec_topology *t, const char *name)
{
    int i = 0;
    while (i < t->n_rings && strcmp(t->rings[i].name, name) != 0)
        i++;
    return i < t->n_rings ? i : luaL_error(L, "'%s' is no ring", name);
}

static int decide_depth(lua_State *L)
{
    struct tec_policy *policy = deciding(L);
    const struct tec_topology *t = policy->topology;
    const char *name = t->kv[listed(L, 2, "ring", t->kv, t->n_kv)];
    double wish = number(L, 3, "depth");
    if (t->n_depth == 0)
        return luaL_error(L, "the pipeline captures no depth: it has no ring");
    if (wish < 1)
        return luaL_error(L, "depth must be at least 1, it is %f", wish);
    int depth = tec_snap_down(t->depth, t->n_depth, whole(wish)), ring = ring_named(L, t, name);
    policy->scratch.depth[ring] = depth ? depth : t->depth[0];
    policy->depth_moved = policy->scratch.depth[ring] != whole(wish);
    return 0;
}

static int decide_slices(lua_State *L)
{
    struct tec_policy *policy = deciding(L);
    int i = node(L, policy), n = whole(number(L, 3, "n"));
    int most = policy->topology->nodes[i].slices * TEC_MAX_ROWS;
    if (most == 0)
        return luaL_error(L, "D:slices: node '%s' is no prefill of a second model",
                          policy->topology->nodes[i].name);
    policy->scratch.nodes[i].slices = n < most ? n : most;
    return 0;
}

static int decide_partition(lua_State *L)
{
    struct tec_policy *policy = deciding(L);
    const struct tec_topology *t = policy->topology;
    int i = node(L, policy);
    policy->scratch.nodes[i].partition = listed(L, 3, "partition", t->partitions, t->n_partitions);
    return 0;
}

/* Find the note with that key, or add a new one. */
static struct tec_note *note(lua_State *L, struct tec_decision *d, const char *key)
{
    for (int i = 0; i < d->n_notes; i++)
        if (strcmp(d->notes[i].key, key) == 0)
            return &d->notes[i];
    if (d->n_notes == TEC_MAX_NOTES)
        luaL_error(L, "more than %d notes", TEC_MAX_NOTES);
    return &d->notes[d->n_notes++];
}

static int decide_note(lua_State *L)
{
    struct tec_policy *policy = deciding(L);
    const char *text = name_of(L, 2, "key");
    struct tec_note fresh = {.is_number = lua_type(L, 3) == LUA_TNUMBER, .line = line_of(L)};
    if (strlen(text) >= sizeof fresh.key)
        return luaL_error(L, "a note's key has at most %d bytes", (int)sizeof fresh.key - 1);
    tec_host_copy_text(fresh.key, sizeof fresh.key, text);
    if (fresh.is_number)
        fresh.number = number(L, 3, "note");
    else
        tec_host_copy_text(fresh.text, sizeof fresh.text, name_of(L, 3, "note"));
    *note(L, &policy->scratch, fresh.key) = fresh;
    return 0;
}

/* --- memory ------------------------------------------------------------------------------- */

static void needs_memory(lua_State *L, const struct tec_policy *policy, const char *method)
{
    if (!policy->max_segments)
        luaL_error(L, "D:%s: the pipeline has no memory_load node", method);
}

/* The recompute ratio of layer i, clamped to what was captured and to at most the ratio of the
 * layer before: rows that one layer leaves out are missing in all layers that follow (KEEP). */
static double ratio(lua_State *L, struct tec_policy *policy, const struct tec_recompute_decision *r,
                    int i)
{
    const struct tec_topology *t = policy->topology;
    lua_rawgeti(L, 3, i + 1);
    double wish = number(L, -1, "a ratio");
    lua_pop(L, 1);
    double share = tec_ratio_within(t, wish, i > 0 ? r->ratios[i - 1] : 1.0);
    policy->ratios_moved = policy->ratios_moved || share != wish;
    return share;
}

/* What is decided about the memory_load node that the script names, of which there are few. */
static struct tec_recompute_decision *memory_decision(lua_State *L, struct tec_policy *policy,
                                                      const char *method)
{
    struct tec_decision *d = &policy->scratch;
    int at = node(L, policy), i = 0;
    if (!tec_node_recalls(policy->topology->nodes[at].kind))
        luaL_error(L, "D:%s: node '%s' is no memory_load node", method,
                   policy->topology->nodes[at].name);
    while (i < d->n_recompute && d->recompute[i].node != at)
        i++;
    if (i == TEC_MAX_MEMORIES)
        luaL_error(L, "D:%s: more than %d memory_load nodes", method, TEC_MAX_MEMORIES);
    if (i == d->n_recompute) {
        d->recompute[i].node = at;
        d->recompute[i].n = 0;
        d->recompute[i].audit = false;
        d->n_recompute++;
    }
    return &d->recompute[i];
}

static int decide_audit(lua_State *L)
{
    struct tec_policy *policy = deciding(L);
    needs_memory(L, policy, "audit");
    memory_decision(L, policy, "audit")->audit = true;
    return 0;
}

static int decide_recompute(lua_State *L)
{
    struct tec_policy *policy = deciding(L);
    const struct tec_topology *t = policy->topology;
    needs_memory(L, policy, "recompute");
    struct tec_recompute_decision *r = memory_decision(L, policy, "recompute");
    if (!lua_istable(L, 3))
        return luaL_error(L, "ratios must be a list, it is %s", luaL_typename(L, 3));
    int most = t->layers < TEC_MAX_LAYERS ? t->layers : TEC_MAX_LAYERS;
    lua_Unsigned n = lua_rawlen(L, 3);
    if (n > (lua_Unsigned)most)
        return luaL_error(L, "more ratios than layers: T.layers is %d", most);
    policy->ratios_moved = false;
    for (int i = 0; i < (int)n; i++)
        r->ratios[i] = ratio(L, policy, r, i);
    r->n = (int)n;
    return 0;
}

static struct tec_segment_decision *segment(lua_State *L, const char *method)
{
    struct tec_policy *policy = deciding(L);
    struct tec_decision *d = &policy->scratch;
    needs_memory(L, policy, method);
    double i = number(L, 2, "i");
    int n = policy->view->n_seg < policy->max_segments ? policy->view->n_seg : policy->max_segments;
    if (floor(i) != i || i < 1 || i > n)
        luaL_error(L, "no segment %f: F.nseg is %d", i, n);
    if (!d->n_seg)
        memset(d->seg, 0, (size_t)n * sizeof d->seg[0]);
    d->n_seg = n;
    return &d->seg[(int)i - 1];
}

static int decide_load_order(lua_State *L)
{
    struct tec_segment_decision *s = segment(L, "load_order");
    s->score = number(L, 3, "score");
    s->skip = false;
    return 0;
}

static int decide_skip_segment(lua_State *L)
{
    segment(L, "skip_segment")->skip = true;
    return 0;
}

void tec_host_push_decision(lua_State *L, struct tec_policy *policy)
{
    static const luaL_Reg methods[] = {
#define DECISION(name, args, effect) {#name, decide_##name},
#include "policies/hooks.def"
        {NULL, NULL}};
    luaL_newlibtable(L, methods);
    lua_pushlightuserdata(L, policy);
    luaL_setfuncs(L, methods, 1);
    tec_host_guard(L, "decision object");
}
