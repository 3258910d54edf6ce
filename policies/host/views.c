/* views.c - refreshes F and R and performs the calls of hooks, inside the protected call on the
 * frame thread.
 *
 * The tables are made once and refreshed in place, so steady state allocates nothing: every key and
 * every string value exists since load, tables have their final size, and the pool of request
 * tables is larger than any view. A field that did not change since the last call is not written
 * again, because writing is most of what a call costs. */
#include "policies/host/host.h"
#include "policies/host/view_fields.h"

#include <lauxlib.h>
#include <math.h>
#include <string.h>

static void push_anchor(lua_State *L, int anchor)
{
    lua_rawgeti(L, lua_upvalueindex(UP_ANCHORS), anchor);
}

static void push_name(lua_State *L, int anchor, int i)
{
    push_anchor(L, anchor);
    lua_rawgeti(L, -1, i);
    lua_remove(L, -2);
}

static void push_field(lua_State *L, enum tec_view_kind kind, const void *p)
{
    switch (kind) {
    case TEC_VIEW_INT:
        lua_pushinteger(L, *(const int *)p);
        break;
    case TEC_VIEW_I64:
        lua_pushinteger(L, *(const int64_t *)p);
        break;
    case TEC_VIEW_UNTIL:
        if (*(const int64_t *)p == INT64_MAX)
            lua_pushnumber(L, HUGE_VAL);
        else
            lua_pushinteger(L, *(const int64_t *)p);
        break;
    case TEC_VIEW_NUM:
        lua_pushnumber(L, *(const double *)p);
        break;
    case TEC_VIEW_BOOL:
        lua_pushboolean(L, *(const bool *)p);
        break;
    case TEC_VIEW_NODE:
        push_name(L, A_NODE_NAMES, *(const int *)p);
        break;
    case TEC_VIEW_CAUSE:
        push_name(L, A_CAUSES, (int)*(const enum tec_cause *)p);
        break;
    }
}

static bool same(enum tec_view_kind kind, const void *a, const void *b)
{
    switch (kind) {
    case TEC_VIEW_I64:
    case TEC_VIEW_UNTIL:
    case TEC_VIEW_NUM:
        return memcmp(a, b, sizeof(int64_t)) == 0;
    case TEC_VIEW_BOOL:
        return *(const bool *)a == *(const bool *)b;
    default:
        return memcmp(a, b, sizeof(int)) == 0;
    }
}

/* Refresh the table on top of the stack from `from`; it shows `shown` now (NULL: nothing yet). */
static void refresh(lua_State *L, int at, int n, const void *from, const void *shown)
{
    for (int i = at; i < at + n; i++) {
        const struct tec_view_field *field = &tec_host_fields[i];
        const char *p = (const char *)from + field->offset;
        if (shown && same(field->kind, p, (const char *)shown + field->offset))
            continue;
        lua_pushvalue(L, lua_upvalueindex(UP_KEYS + i));
        push_field(L, field->kind, p);
        lua_rawset(L, -3);
    }
}

/* Resize a list: it shows `was` tables of the pool, and shall show n of at most `most`. */
static void resize(lua_State *L, int list, int pool, int was, int n)
{
    push_anchor(L, list);
    push_anchor(L, pool);
    for (int i = was; i < n; i++) {
        lua_rawgeti(L, -1, i + 1);
        lua_rawseti(L, -3, i + 1);
    }
    for (int i = n; i < was; i++) {
        lua_pushnil(L);
        lua_rawseti(L, -3, i + 1);
    }
    lua_pop(L, 2);
}

/* Rebuild a list whose content is unknown: empty it, then show n tables. */
static void renew(lua_State *L, int list, int pool, int most, int n)
{
    resize(L, list, pool, most, 0);
    resize(L, list, pool, 0, n);
}

static void refresh_rows(lua_State *L, struct tec_policy *policy, bool all)
{
    struct tec_shown *shown = policy->shown;
    const struct tec_frame_view *view = policy->view;
    int n = view->n_req < TEC_MAX_ROWS ? view->n_req : TEC_MAX_ROWS;
    if (all)
        renew(L, A_ROWS, A_POOL, TEC_MAX_ROWS, n);
    else if (n != shown->n_rows)
        resize(L, A_ROWS, A_POOL, shown->n_rows, n);
    push_anchor(L, A_POOL);
    for (int i = 0; i < n; i++) {
        bool known = !all && i < shown->n_known;
        if (known && memcmp(&view->req[i], &shown->rows[i], sizeof shown->rows[i]) == 0)
            continue;
        lua_rawgeti(L, -1, i + 1);
        refresh(L, TEC_REQUEST_AT, TEC_N_REQUEST, &view->req[i], known ? &shown->rows[i] : NULL);
        lua_pop(L, 1);
        memcpy(&shown->rows[i], &view->req[i], sizeof shown->rows[i]);
    }
    lua_pop(L, 1);
    shown->n_rows = n;
    shown->n_known = all || n > shown->n_known ? n : shown->n_known;
}

static void refresh_segments(lua_State *L, struct tec_policy *policy, bool all)
{
    struct tec_shown *shown = policy->shown;
    const struct tec_frame_view *view = policy->view;
    int n = view->n_seg < policy->max_segments ? view->n_seg : policy->max_segments;
    if (all)
        renew(L, A_SEGMENTS, A_SEGMENT_POOL, policy->max_segments, n);
    else if (n != shown->n_seg)
        resize(L, A_SEGMENTS, A_SEGMENT_POOL, shown->n_seg, n);
    push_anchor(L, A_SEGMENT_POOL);
    for (int i = 0; i < n; i++) {
        bool known = !all && i < shown->n_seg_known;
        if (known && memcmp(&view->seg[i], &shown->seg[i], sizeof shown->seg[i]) == 0)
            continue;
        lua_rawgeti(L, -1, i + 1);
        refresh(L, TEC_SEGMENT_AT, TEC_N_SEGMENT, &view->seg[i], known ? &shown->seg[i] : NULL);
        lua_pop(L, 1);
        memcpy(&shown->seg[i], &view->seg[i], sizeof shown->seg[i]);
    }
    lua_pop(L, 1);
    shown->n_seg = n;
    shown->n_seg_known = all || n > shown->n_seg_known ? n : shown->n_seg_known;
}

static void refresh_result(lua_State *L, int table, int nodes, const struct tec_topology *t,
                           const struct tec_frame_result *result, struct tec_frame_result *shown,
                           bool all)
{
    push_anchor(L, table);
    refresh(L, TEC_RESULT_AT, TEC_N_RESULT, result, all ? NULL : shown);
    push_anchor(L, nodes);
    push_anchor(L, A_NODE_NAMES);
    int n = result->n_nodes < t->n_nodes ? result->n_nodes : t->n_nodes;
    for (int i = 0; i < n; i++) {
        if (!all && result->node_us[i] == shown->node_us[i])
            continue;
        lua_rawgeti(L, -1, i);
        lua_pushinteger(L, result->node_us[i]);
        lua_rawset(L, -4);
        shown->node_us[i] = result->node_us[i];
    }
    lua_pop(L, 3);
    memcpy(shown, result, offsetof(struct tec_frame_result, node_us));
}

static void refresh_late(lua_State *L, struct tec_policy *policy, bool all)
{
    const struct tec_frame_view *view = policy->view;
    const struct tec_topology *t = policy->topology;
    int n = view->n_inputs < t->n_inputs ? view->n_inputs : t->n_inputs;
    push_anchor(L, A_LATE);
    push_anchor(L, A_INPUT_NAMES);
    for (int i = 0; i < n; i++) {
        bool kept = i < TEC_SHOWN_INPUTS;
        if (kept && !all && view->late_us[i] == policy->shown->late_us[i])
            continue;
        lua_rawgeti(L, -1, i);
        lua_pushinteger(L, view->late_us[i]);
        lua_rawset(L, -4);
        if (kept)
            policy->shown->late_us[i] = view->late_us[i];
    }
    lua_pop(L, 2);
}

/* Find a pool by name, starting with `guess`: the view may list the pools in an order of its
 * own. */
static int pool_at(const struct tec_topology *t, const char *name, int guess)
{
    if (guess < t->n_kv && (t->kv[guess] == name || strcmp(t->kv[guess], name) == 0))
        return guess;
    int at = 0;
    while (at < t->n_kv && strcmp(t->kv[at], name) != 0)
        at++;
    return at;
}

static void refresh_kv(lua_State *L, struct tec_policy *policy, bool all)
{
    const struct tec_frame_view *view = policy->view;
    const struct tec_topology *t = policy->topology;
    push_anchor(L, A_KV);
    push_anchor(L, A_KV_NAMES);
    for (int i = 0; i < view->n_kv; i++) {
        struct tec_kv_view *shown = i < TEC_SHOWN_POOLS ? &policy->shown->kv[i] : NULL;
        bool known = shown && !all && shown->name == view->kv[i].name;
        if (known && memcmp(shown, &view->kv[i], sizeof *shown) == 0)
            continue;
        int at = pool_at(t, view->kv[i].name, i);
        if (at == t->n_kv)
            continue;
        lua_rawgeti(L, -1, at);
        lua_rawget(L, -3);
        refresh(L, TEC_POOL_AT, TEC_N_POOL, &view->kv[i], known ? shown : NULL);
        lua_pop(L, 1);
        if (shown)
            *shown = view->kv[i];
    }
    lua_pop(L, 2);
}

static void refresh_frame(lua_State *L, struct tec_policy *policy)
{
    struct tec_shown *shown = policy->shown;
    const struct tec_frame_view *view = policy->view;
    bool all = !shown->valid;
    shown->valid = false; /* mark as stale in case this refresh is cut short */
    push_anchor(L, A_FRAME);
    refresh(L, 0, TEC_N_FRAME, view, all ? NULL : &shown->frame);
    lua_pop(L, 1);
    refresh_rows(L, policy, all);
    refresh_result(L, A_LAST, A_LAST_NODES, policy->topology, &view->last, &shown->last, all);
    refresh_late(L, policy, all);
    refresh_kv(L, policy, all);
    if (all || memcmp(&view->gpu, &shown->frame.gpu, sizeof view->gpu) != 0) {
        push_anchor(L, A_DEVICE);
        refresh(L, TEC_DEVICE_AT, TEC_N_DEVICE, &view->gpu, NULL);
        lua_pop(L, 1);
    }
    if (policy->max_segments)
        refresh_segments(L, policy, all);
    memcpy(&shown->frame, view, sizeof shown->frame);
    shown->valid = true;
}

/* Push the third argument of the hook. */
static void push_subject(lua_State *L, struct tec_policy *policy)
{
    switch (policy->hook) {
    case TEC_HOOK_admit:
        push_anchor(L, A_CANDIDATE);
        refresh(L, TEC_REQUEST_AT, TEC_N_REQUEST, policy->request, NULL);
        break;
    case TEC_HOOK_observe:
        refresh_result(L, A_RESULT, A_RESULT_NODES, policy->topology, policy->result,
                       &policy->shown->result, !policy->shown->has_result);
        policy->shown->has_result = true;
        push_anchor(L, A_RESULT);
        break;
    case TEC_HOOK_evict:
        lua_pushinteger(L, policy->missing_request_slots);
        break;
    default:
        push_anchor(L, A_DECISION);
        break;
    }
}

static void take_admission(lua_State *L, struct tec_policy *policy)
{
    int type = lua_type(L, -2);
    if (type != LUA_TNIL && type != LUA_TBOOLEAN)
        luaL_error(L, "admit must return true or false, it returned %s", lua_typename(L, type));
    policy->admitted = type == LUA_TNIL || lua_toboolean(L, -2);
    bool said = lua_type(L, -1) == LUA_TSTRING;
    tec_host_copy_text(policy->reason, sizeof policy->reason,
                       said ? lua_tostring(L, -1) : "policy");
}

static void take_victim(lua_State *L, struct tec_policy *policy)
{
    policy->victim = -1;
    if (lua_isnil(L, -2))
        return;
    int exact = 0;
    lua_Integer i = lua_type(L, -2) == LUA_TNUMBER ? lua_tointegerx(L, -2, &exact) : 0;
    if (!exact || i < 1 || i > policy->view->n_req)
        luaL_error(L, "evict must return a row from 1 to %d or nil", policy->view->n_req);
    policy->victim = (int)i - 1;
}

int tec_host_enter(lua_State *L)
{
    struct tec_policy *policy = lua_touserdata(L, lua_upvalueindex(UP_POLICY));
    if (policy->params_moved) {
        push_anchor(L, A_PARAMS);
        tec_host_write_params(L, policy);
        lua_pop(L, 1);
        policy->params_moved = false;
    }
    refresh_frame(L, policy);
    push_anchor(L, A_HOOK + (int)policy->hook);
    push_anchor(L, A_STATE);
    push_anchor(L, A_FRAME);
    push_subject(L, policy);
    lua_call(L, 3, 2);
    if (policy->hook == TEC_HOOK_admit)
        take_admission(L, policy);
    else if (policy->hook == TEC_HOOK_evict)
        take_victim(L, policy);
    return 0;
}
