/* host.h - what the files of the policy host share; others include policies/host/policy.h. */
#ifndef TEC_POLICIES_HOST_HOST_H
#define TEC_POLICIES_HOST_HOST_H

#include "base/lua.h"
#include "policies/host/misses.h"
#include "policies/host/policy.h"
#include "policies/host/record.h"
#include "policies/host/state.h"

#include <stdatomic.h>

enum tec_hook {
#define HOOK(name, args, meaning, without) TEC_HOOK_##name,
#include "policies/hooks.def"
    TEC_HOOKS
};

enum { TEC_SHOWN_INPUTS = 16, TEC_SHOWN_POOLS = 4 };

/* The facts that the Lua tables show. */
struct tec_shown {
    bool valid, has_result;
    int n_rows, n_seg;        /* in the lists */
    int n_known, n_seg_known; /* pool tables that show the copies below */
    struct tec_frame_view frame;
    struct tec_frame_result last, result;
    int64_t late_us[TEC_SHOWN_INPUTS];
    struct tec_kv_view kv[TEC_SHOWN_POOLS];
    struct tec_request_view rows[TEC_MAX_ROWS];
    struct tec_segment_view seg[TEC_MAX_SEGMENTS];
};

/* Values posted by other threads, for the next frame. `mask` is set (release) after the bits. */
struct tec_mailbox {
    _Atomic uint64_t bits[TEC_MAX_PARAMS];
    _Atomic uint32_t mask;
};

enum { TEC_ORDER_FALLBACK = 1, TEC_ORDER_REINSTATE = 2 };

struct tec_policy {
    struct tec_heap *heap;
    struct tec_lua *lua;
    const struct tec_topology *topology;
    struct tec_policy_limits limits;
    char name[64];
    char source[48]; /* the file's name, without its folder */
    int version;
    bool has[TEC_HOOKS];
    int n_params, max_segments; /* segments: 0 without a memory_load node */
    struct tec_param params[TEC_MAX_PARAMS];
    struct tec_mailbox posted;
    _Atomic uint32_t orders; /* of any thread, taken when a frame begins */

    /* The frame. */
    int64_t frame, observed;     /* the frame's number; frames with an observation so far */
    bool ended;                  /* observed: the next call begins a frame */
    bool stood_down;             /* by order */
    bool standby;                /* in this frame the fallback decides */
    struct tec_policy *fallback; /* borrowed; NULL: the default plan */

    /* The calls of admit and evict in a frame, which share one time limit. */
    int early_calls;
    int64_t early_ns, early_cpu_ns; /* on the wall in all; the CPU clock at the first */
    bool early_over;                /* used up: not asked any more in this frame */

    /* The running call. `view` is NULL outside. */
    enum tec_hook hook;
    const struct tec_frame_view *view;
    const struct tec_request_view *request; /* admit */
    const struct tec_frame_result *result;  /* observe */
    int missing_request_slots, victim;      /* evict */
    bool admitted;
    char reason[32];
    uint64_t draws;               /* of F.rng() */
    struct tec_decision scratch;  /* plan edits this one */
    bool deciding;                /* D may be used */
    bool row_moved[TEC_MAX_ROWS]; /* its k was snapped */
    int decoded;                  /* the request of the last D:decode; -1 = none yet */
    bool depth_moved, ratios_moved;
    int wished[TEC_MAX_ROWS]; /* last k > 0 given in this call */
    bool params_moved;        /* F.params is to be written */
    struct tec_shown *shown;
    struct tec_record *record;

    size_t settled; /* bytes after the last collection */
    bool unfit;     /* it needs an axis that the pipeline lacks */
    bool collect;   /* a call was cut short: collect it all */
    int timed; /* calls whose CPU time is taken yet: one before them was too long on the wall */
    struct tec_policy_report report;
    int64_t strikes_at[TEC_MAX_STRIKES]; /* `observed` then, newest first */
    int n_strikes;
    struct tec_misses misses;
    bool on_trial; /* another policy decides: missed deadlines are not blamed on this one, and its
                      calls are timed */
};

/* Keys of the one table that C functions keep for the state. A_HOOK + hook are the functions. */
enum tec_anchor {
    A_FRAME = 1,
    A_ROWS,     /* F.req: one of A_POOL for each live request */
    A_POOL,     /* TEC_MAX_ROWS tables, made once */
    A_SEGMENTS, /* F.seg, the same way */
    A_SEGMENT_POOL,
    A_DEVICE,
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

/* Upvalues of enter: the policy, the anchors, then the fields' names. */
enum { UP_POLICY = 1, UP_ANCHORS, UP_KEYS };

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

/* C function: collect everything, then only when told. */
int tec_host_settle(lua_State *L);

/* Push the C function that refreshes F and calls policy->hook. Does not raise. */
void tec_host_push_enter(lua_State *L);
int tec_host_enter(lua_State *L);

/* Write all parameters into the table on top. */
void tec_host_write_params(lua_State *L, const struct tec_policy *policy);

/* Set parameters before the first frame. The failure names every value that is wrong, as far as a
 * message has room; its status is the first one's: TEC_NOT_FOUND for an unknown name, TEC_INVALID
 * for a value that is not allowed, or NaN, which stands for what is no number. */
enum tec_status tec_host_take_values(struct tec_policy *policy,
                                     const struct tec_param_value *values, int n,
                                     struct tec_error *err);

/* Take over what other threads have posted. */
void tec_host_take_params(struct tec_policy *policy);

/* Call a C function of the host, protected, with the policy as first argument and `extra` values
 * from the stack. */
enum tec_status tec_host_build(struct tec_policy *policy, lua_CFunction function, int extra,
                               struct tec_error *err);

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
