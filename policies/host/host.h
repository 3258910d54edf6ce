/* host.h - what the files of the policy host share; others include policies/host/policy.h. */
#ifndef TEC_POLICIES_HOST_HOST_H
#define TEC_POLICIES_HOST_HOST_H

#include "base/lua.h"
#include "policies/host/policy.h"

enum tec_hook {
#define HOOK(name, args, meaning, without) TEC_HOOK_##name,
#include "policies/hooks.def"
    TEC_HOOKS
};

struct tec_policy {
    struct tec_heap *heap;
    struct tec_lua *lua;
    const struct tec_topology *topology;
    struct tec_policy_limits limits;
    struct tec_planner planner;
    char name[64];
    int version;
    bool has[TEC_HOOKS];
    int n_params;
    struct tec_param params[TEC_MAX_PARAMS];

    /* The running call. `view` is NULL outside. */
    enum tec_hook hook;
    const struct tec_frame_view *view;
    const struct tec_request_view *request; /* admit */
    const struct tec_frame_result *result;  /* observe */
    int missing_seats, victim;              /* evict */
    bool admitted;
    char reason[32];
    uint64_t draws;               /* of F.rng() */
    struct tec_decision scratch;  /* plan edits this one */
    bool deciding;                /* D may be used */
    bool row_moved[TEC_MAX_ROWS]; /* its k was snapped */
    bool depth_moved;
    int wished[TEC_MAX_ROWS]; /* last k > 0 given in this call */

    size_t settled; /* bytes after the last collection */
    bool collect;   /* a call was cut short: collect it all */
    struct tec_policy_report report;
    int64_t strike_frames[TEC_MAX_STRIKES]; /* newest first */
    int n_strikes;
};

/* What C functions keep for the state, in one table. A_HOOK + hook are the functions. */
enum tec_anchor {
    A_FRAME = 1,
    A_ROWS,      /* F.req: one of A_POOL for each live request */
    A_POOL,      /* TEC_MAX_ROWS tables, made once */
    A_CANDIDATE, /* r of admit */
    A_LATE,
    A_LAST,
    A_LAST_NODES,
    A_RESULT,
    A_RESULT_NODES,
    A_KV,
    A_NODE_NAMES, /* strings made once: index 0 is node 0 */
    A_INPUT_NAMES,
    A_KV_NAMES,
    A_CAUSES,
    A_PARAMS,
    A_STATE,
    A_DECISION,
    A_HOOK
};

/* Push the table of anchors. Does not raise. anchor: pop a table and make it that one. */
void tec_host_push_anchors(lua_State *L);
void tec_host_anchor(lua_State *L);

/* C functions, called protected with the policy as light userdata. constructors: adds policy{},
 * int{} and num{} to the names. adopt(policy, value): takes over what the file returned. views:
 * makes F, R, D. setup: calls the hook. */
int tec_host_constructors(lua_State *L);
int tec_host_adopt(lua_State *L);
int tec_host_views(lua_State *L);
int tec_host_setup(lua_State *L);
int tec_host_set_params(lua_State *L);

/* Push the C function that refreshes F and calls policy->hook. Does not raise. */
void tec_host_push_enter(lua_State *L);

/* Push D. */
void tec_host_push_decision(lua_State *L, struct tec_policy *policy);

/* Give the table on top a metatable whose missing fields and writes raise, naming `what`. */
void tec_host_guard(lua_State *L, const char *what);

/* Raise "unknown <what> '<name>', did you mean '<near>'?"; near may be NULL. */
int tec_host_unknown(lua_State *L, const char *what, const char *name, const char *near);

/* Pop the table of pools by name; add cost, slack_us, kv and rng to the table below it. */
void tec_host_add_functions(lua_State *L, struct tec_policy *policy);

/* Load the file that `name` means (see tec_policy_open) and push it as a function. */
enum tec_status tec_host_load_file(struct tec_policy *policy, const char *name, const char *root,
                                   struct tec_error *err);

/* Printable copy of at most `room` - 1 bytes. */
void tec_host_copy_text(char *to, size_t room, const char *from);

#endif
