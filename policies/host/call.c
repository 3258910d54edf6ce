/* call.c - calls a policy's hooks on the frame thread, turns failures and time-outs into strikes,
 * and decides whether the policy, its fallback or the default plan acts in this frame.
 *
 * The CPU time of a thread costs two system calls, so a call is measured by the wall clock first.
 * The CPU clock is read on trial, and once a wall time was too long, because the machine may have
 * suspended the thread. */
#include "base/clock.h"
#include "policies/host/host.h"

#include <stdio.h>
#include <string.h>

/* BEYOND_US: how far a call may exceed its budget on the wall clock before the CPU clock is read.
 * TIMED: the number of calls that are timed on the CPU after one that exceeded that limit. */
enum { GARBAGE = 1024, NS_PER_US = 1000, BEYOND_US = 200, TIMED = 1000 };

static const struct tec_clock real_clock = {NULL};

/* --- failures ----------------------------------------------------------------------------- */

/* The window counts only frames with an observation: many other frames may lie between two of
 * them. */
static int recent_strikes(const struct tec_policy *policy)
{
    int n = 0;
    while (n < policy->n_strikes &&
           policy->observed - policy->strikes_at[n] < policy->limits.window_frames)
        n++;
    return n;
}

/* Record a strike: `what` is the reason shown, `then` the consequence appended to it. */
static void strike(struct tec_policy *policy, int64_t frame, const char *what, const char *then)
{
    struct tec_policy_report *report = &policy->report;
    memmove(policy->strikes_at + 1, policy->strikes_at,
            (TEC_MAX_STRIKES - 1) * sizeof policy->strikes_at[0]);
    policy->strikes_at[0] = policy->observed;
    if (policy->n_strikes < TEC_MAX_STRIKES)
        policy->n_strikes++;
    policy->n_strikes = recent_strikes(policy);
    report->strikes = policy->n_strikes;
    report->struck++;
    report->last_failure = frame;
    report->quarantined = report->quarantined || report->strikes >= policy->limits.strikes;
    snprintf(report->message, sizeof report->message,
             "frame %lld: policy '%s' %.268s%s (strike %d/%d)%s", (long long)frame, policy->name,
             what, then, report->strikes, policy->limits.strikes,
             report->quarantined ? ", quarantined" : "");
}

static void fail(struct tec_policy *policy, int64_t frame, const char *why, const char *trace)
{
    char what[280];
    snprintf(what, sizeof what, "failed: %.260s", why);
    policy->collect = true;
    policy->shown->valid = policy->shown->has_result = false;
    policy->report.failures++;
    strike(policy, frame, what, " -> default plan");
    tec_record_failure(policy->record, frame, policy->report.message, trace);
}

/* Blame the policy for deadlines that a frame missed although the device kept its predicted
 * times. */
static void blame(struct tec_policy *policy, int64_t frame, const struct tec_frame_result *result)
{
    char what[120];
    int window = policy->limits.window_frames;
    int missed = policy->on_trial ? 0 : tec_misses_add(&policy->misses, window, result);
    if (!missed)
        return;
    snprintf(what, sizeof what, "missed the deadline in %d of %d frames, by plan or policy", missed,
             tec_misses_window(window));
    strike(policy, frame, what, "");
    tec_record_failure(policy->record, frame, policy->report.message, "");
}

void tec_policy_on_trial(struct tec_policy *policy, bool on_trial)
{
    policy->on_trial = on_trial;
    policy->misses = (struct tec_misses){.parts = 0};
}

/* --- the limit of a frame --------------------------------------------------------------------- */

static int64_t hard_ns(const struct tec_policy *policy)
{
    return (int64_t)policy->limits.hard_us * NS_PER_US;
}

static bool is_early(enum tec_hook hook)
{
    return hook == TEC_HOOK_admit || hook == TEC_HOOK_evict;
}

static void forget_early(struct tec_policy *policy)
{
    policy->early_calls = 0;
    policy->early_ns = 0;
    policy->early_over = false;
}

/* The time that admit and evict have left of their share of this frame. While plenty is left, the
 * wall clock decides; after that the CPU time of the thread since the first of these calls counts,
 * because the machine may have suspended the thread. */
static int64_t left(const struct tec_policy *policy)
{
    int64_t limit = hard_ns(policy), used = policy->early_ns;
    if (used > limit / 4) {
        int64_t had = tec_clock_thread() - policy->early_cpu_ns;
        used = had < used ? had : used;
    }
    return limit - used;
}

/* Decide whether admit or evict may be asked once more in this frame; running out of time is
 * recorded as one failure. */
static bool begin_early(struct tec_policy *policy, int64_t *budget)
{
    char why[120];
    if (policy->early_over)
        return false;
    if (policy->early_calls == 0)
        policy->early_cpu_ns = tec_clock_thread();
    *budget = left(policy);
    if (*budget > 0) {
        policy->early_calls++;
        return true;
    }
    policy->early_over = true;
    snprintf(why, sizeof why, "admit and evict used up the %d us of a frame in %d calls",
             policy->limits.hard_us, policy->early_calls);
    fail(policy, policy->frame, why, "");
    return false;
}

/* --- calls -------------------------------------------------------------------------------- */

/* Write the error text of a failed call; after several calls in one frame it says that they share
 * one budget. */
static void explain(struct tec_policy *policy, enum tec_status status, struct tec_error *own)
{
    if (status != TEC_TIME || !is_early(policy->hook))
        return;
    policy->early_over = true;
    if (policy->early_calls > 1)
        tec_context(own, status, "admit and evict share %d us of a frame, this was call %d",
                    policy->limits.hard_us, policy->early_calls);
}

/* Measuring the CPU time of a call takes two system calls, which a policy that keeps its time is
 * not charged with: it is measured on trial, and for a while after a call that was too long on the
 * wall clock. */
static bool timed(struct tec_policy *policy)
{
    policy->timed -= policy->timed > 0;
    return policy->on_trial || policy->timed > 0;
}

/* Decide whether a call that returned by itself was too long all the same; `cpu_ns` is its CPU time
 * or -1. */
static enum tec_status judge_time(struct tec_policy *policy, int64_t budget, int64_t took,
                                  int64_t cpu_ns, struct tec_error *err)
{
    int64_t most = budget + (int64_t)BEYOND_US * NS_PER_US;
    policy->report.slow += took > (int64_t)policy->limits.soft_us * NS_PER_US;
    policy->report.costly += cpu_ns > (int64_t)policy->limits.soft_us * NS_PER_US;
    if (cpu_ns <= most && took > most)
        policy->timed = TIMED;
    if (cpu_ns <= most)
        return TEC_OK;
    return tec_fail(err, TEC_TIME, "the call took %lld us of CPU time, %lld us are allowed",
                    (long long)cpu_ns / NS_PER_US, (long long)budget / NS_PER_US);
}

/* Call one hook on the view that the caller has set, for at most `budget` ns; a failure is a
 * strike. */
static enum tec_status ask(struct tec_policy *policy, enum tec_hook hook, int64_t budget,
                           const struct tec_frame_view *view, struct tec_error *err)
{
    struct tec_error own = {TEC_OK, ""};
    bool is_timed = timed(policy);
    int64_t start = tec_clock_now(&real_clock), cpu_ns = is_timed ? tec_clock_thread() : 0;
    policy->hook = hook;
    policy->view = view;
    policy->draws = 0;
    policy->deciding = hook == TEC_HOOK_plan;
    policy->report.calls++;
    tec_lua_set_budget(policy->lua, 0, budget);
    tec_host_push_enter(tec_lua_state(policy->lua));
    enum tec_status status = tec_lua_call(policy->lua, 0, 0, &own);
    tec_lua_set_budget(policy->lua, 0, hard_ns(policy));
    policy->view = NULL;
    policy->deciding = false;
    int64_t took = tec_clock_now(&real_clock) - start;
    cpu_ns = is_timed ? tec_clock_thread() - cpu_ns : -1;
    if (hook == TEC_HOOK_plan)
        policy->report.last_ns = took;
    if (is_early(hook))
        policy->early_ns += took;
    enum tec_status in_time = judge_time(policy, budget, took, cpu_ns, &own);
    status = status == TEC_OK ? in_time : status;
    if (status == TEC_OK)
        return TEC_OK;
    explain(policy, status, &own);
    fail(policy, view->index, own.message, tec_lua_traceback(policy->lua));
    return tec_fail(err, status, "policy '%s': %s", policy->name, own.message);
}

/* --- who decides -------------------------------------------------------------------------- */

static void obey(struct tec_policy *policy)
{
    if (!atomic_load_explicit(&policy->orders, memory_order_relaxed))
        return;
    uint32_t orders = atomic_exchange_explicit(&policy->orders, 0, memory_order_acquire);
    if (orders & TEC_ORDER_REINSTATE) {
        policy->stood_down = policy->report.quarantined = false;
        policy->n_strikes = policy->report.strikes = 0;
        policy->misses = (struct tec_misses){.parts = 0};
    }
    policy->stood_down = policy->stood_down || (orders & TEC_ORDER_FALLBACK);
}

/* A frame begins with its first hook: orders that other threads have posted take effect here. */
static void begin(struct tec_policy *policy, const struct tec_frame_view *view)
{
    if (!policy->ended && policy->frame == view->index)
        return;
    policy->frame = view->index;
    policy->observed += !view->idle;
    policy->ended = false;
    forget_early(policy);
    obey(policy);
    tec_host_take_params(policy);
    policy->standby = policy->stood_down || policy->report.quarantined;
    policy->report.standby = policy->standby;
    tec_record_begin(policy->record, policy);
}

/* The policy that decides in this frame, or NULL when the default plan does. */
static struct tec_policy *acting(struct tec_policy *policy, const struct tec_frame_view *view)
{
    begin(policy, view);
    if (policy->standby) {
        policy = policy->fallback;
        if (!policy)
            return NULL;
        begin(policy, view);
    }
    return policy->standby || policy->report.quarantined ? NULL : policy;
}

void tec_policy_set_fallback(struct tec_policy *policy, struct tec_policy *fallback)
{
    policy->fallback = fallback == policy ? NULL : fallback;
}

/* Of two orders that come before one frame the later one holds. */
void tec_policy_fallback_now(struct tec_policy *policy)
{
    atomic_store_explicit(&policy->orders, TEC_ORDER_FALLBACK, memory_order_release);
}

void tec_policy_reinstate(struct tec_policy *policy)
{
    atomic_store_explicit(&policy->orders, TEC_ORDER_REINSTATE, memory_order_release);
}

/* --- the planner -------------------------------------------------------------------------- */

static int moved(const struct tec_policy *policy)
{
    int n = policy->depth_moved + policy->ratios_moved;
    for (int i = 0; i < policy->scratch.n_rows; i++)
        n += policy->row_moved[i];
    return n;
}

static enum tec_status plan(void *self, const struct tec_frame_view *view,
                            struct tec_decision *decision, struct tec_error *err)
{
    struct tec_policy *policy = acting(self, view);
    if (!policy)
        return TEC_OK;
    forget_early(policy);
    int n_nodes = policy->topology->n_nodes;
    size_t rows = (size_t)decision->n_rows;
    tec_record_view(policy->record, view);
    tec_decision_copy(&policy->scratch, decision, n_nodes);
    memset(policy->row_moved, 0, rows * sizeof policy->row_moved[0]);
    memset(policy->wished, 0, rows * sizeof policy->wished[0]);
    policy->depth_moved = policy->ratios_moved = false;
    policy->decoded = -1;
    enum tec_status status = ask(policy, TEC_HOOK_plan, hard_ns(policy), view, err);
    if (status == TEC_OK) {
        policy->scratch.snapped = moved(policy);
        policy->scratch.source = policy->source;
        tec_decision_copy(decision, &policy->scratch, n_nodes);
    }
    tec_record_decision(policy->record, decision, n_nodes, status, policy->report.last_ns);
    return status;
}

static bool admit(void *self, const struct tec_frame_view *view, const struct tec_request_view *r,
                  char reason[32])
{
    struct tec_policy *policy = acting(self, view);
    int64_t budget;
    if (!policy || !policy->has[TEC_HOOK_admit] || !begin_early(policy, &budget))
        return true;
    policy->request = r;
    if (ask(policy, TEC_HOOK_admit, budget, view, NULL) != TEC_OK || policy->admitted)
        return true;
    memcpy(reason, policy->reason, sizeof policy->reason);
    return false;
}

static int evict(void *self, const struct tec_frame_view *view, int n)
{
    struct tec_policy *policy = acting(self, view);
    int64_t budget;
    if (!policy || !policy->has[TEC_HOOK_evict] || !begin_early(policy, &budget))
        return -1;
    policy->missing_request_slots = n;
    return ask(policy, TEC_HOOK_evict, budget, view, NULL) == TEC_OK ? policy->victim : -1;
}

/* A collection runs in a protected call, because it may raise an error in theory. */
static int collect_all(lua_State *L)
{
    lua_gc(L, LUA_GCCOLLECT);
    return 0;
}

static int collect_some(lua_State *L)
{
    lua_gc(L, LUA_GCSTEP, 0);
    return 0;
}

/* Collect garbage off the critical path. A collection may shrink the stack, which grows again in
 * the next frame; small changes must not start one, or one would run every frame. */
static void tidy(struct tec_policy *policy)
{
    tec_lua_release(policy->lua);
    if (!policy->collect && tec_lua_bytes(policy->lua) < policy->settled + GARBAGE)
        return;
    lua_pushcfunction(tec_lua_state(policy->lua), policy->collect ? collect_all : collect_some);
    tec_lua_call(policy->lua, 0, 0, NULL);
    policy->collect = false;
    policy->settled = tec_lua_bytes(policy->lua);
}

static void observe(void *self, const struct tec_frame_view *view,
                    const struct tec_frame_result *result)
{
    struct tec_policy *first = self, *policy = acting(self, view);
    struct tec_policy *recorded = first->standby ? policy : first;
    first->ended = true;
    if (recorded)
        tec_record_result(recorded->record, view->index, result);
    if (!policy)
        return;
    policy->ended = true;
    policy->result = result;
    if (policy->has[TEC_HOOK_observe])
        ask(policy, TEC_HOOK_observe, hard_ns(policy), view, NULL);
    blame(policy, view->index, result);
    tidy(policy);
}

static const char *decider(void *self)
{
    struct tec_policy *policy = self;
    if (policy->standby)
        policy = policy->fallback;
    return policy && !policy->standby ? policy->name : "default";
}

struct tec_planner tec_policy_planner(struct tec_policy *policy)
{
    return (struct tec_planner){.name = policy->name,
                                .self = policy,
                                .admit = admit,
                                .plan = plan,
                                .observe = observe,
                                .evict = evict,
                                .decider = decider};
}
