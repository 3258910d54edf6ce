/* canary.c - the frame thread's side of a canary: it activates a candidate policy, compares it with
 * the active one, and rolls back when the new policy fails. */
#include "policies/host/canary_state.h"

#include <stdio.h>
#include <string.h>

static struct tec_policy *policy_of(const struct tec_planner *planner)
{
    return planner->self;
}

static void tell(struct tec_canary *h, enum tec_canary_event_kind kind,
                 const struct tec_policy *about, const char *message)
{
    struct tec_canary_event event = {
        .kind = kind, .frame = h->frame, .version = tec_policy_version(about), .trial = h->trial};
    snprintf(event.policy, sizeof event.policy, "%s", tec_policy_name(about));
    snprintf(event.message, sizeof event.message, "%s", message);
    tec_spsc_push(&h->events, &event);
}

/* --- who is in force ------------------------------------------------------------------- */

/* Return a policy to the loader, which closes it. The ring has room, because the loader counts how
 * many policies are alive. */
static void retire(struct tec_canary *h, struct tec_planner *planner)
{
    struct tec_policy *policy = policy_of(planner);
    if (policy)
        tec_spsc_push(&h->retired, &policy);
    *planner = (struct tec_planner){0};
}

static void activate(struct tec_canary *h, struct tec_planner planner, int64_t since)
{
    struct tec_policy *policy = policy_of(&planner);
    h->active = planner;
    h->since = since;
    h->struck = tec_policy_report(policy)->struck;
    h->standby = tec_policy_report(policy)->standby;
    tec_policy_set_fallback(policy, h->o.fallback);
    tec_policy_on_trial(policy, false);
    atomic_store_explicit(&h->in_force, policy, memory_order_release);
}

static void end_trial(struct tec_canary *h, const char *why)
{
    tell(h, TEC_CANARY_REJECTED, policy_of(&h->candidate), why);
    retire(h, &h->candidate);
    atomic_store_explicit(&h->busy, false, memory_order_release);
}

static void take_candidate(struct tec_canary *h)
{
    if (!atomic_load_explicit(&h->incoming, memory_order_relaxed))
        return;
    struct tec_policy *policy = atomic_exchange_explicit(&h->incoming, NULL, memory_order_acquire);
    h->candidate = tec_policy_planner(policy);
    tec_policy_on_trial(policy, true);
    h->trial = (struct tec_canary_trial){.first_differing = -1};
    tell(h, TEC_CANARY_TRIAL, policy, "");
}

static void obey(struct tec_canary *h)
{
    if (!atomic_load_explicit(&h->orders, memory_order_relaxed))
        return;
    uint32_t orders = atomic_exchange_explicit(&h->orders, 0, memory_order_acquire);
    if (h->candidate.self && (orders & (TEC_CANARY_ORDER_DROP | TEC_CANARY_ORDER_ROLLBACK)))
        end_trial(h, "given up by order");
    if ((orders & TEC_CANARY_ORDER_ROLLBACK) && h->previous.self) {
        struct tec_planner old = h->active;
        activate(h, h->previous, h->o.probation_frames + 1);
        h->previous = old;
        tell(h, TEC_CANARY_ROLLBACK, policy_of(&h->active), "");
    }
    if (orders & TEC_CANARY_ORDER_FALLBACK)
        tec_policy_fallback_now(policy_of(&h->active));
    if (orders & TEC_CANARY_ORDER_REINSTATE)
        tec_policy_reinstate(policy_of(&h->active));
}

/* A policy that fails soon after it came into force is rolled back to the previous one. */
static void judge_active(struct tec_canary *h)
{
    const struct tec_policy_report *report = tec_policy_report(policy_of(&h->active));
    if (!h->previous.self || h->since > h->o.probation_frames || report->struck == h->struck)
        return;
    tell(h, TEC_CANARY_RETURNED, policy_of(&h->active), report->message);
    /* The loader closes a retired policy, so no reader may find it in force any more by then. */
    struct tec_planner failed = h->active;
    activate(h, h->previous, h->o.probation_frames + 1);
    h->previous = (struct tec_planner){0};
    retire(h, &failed);
}

/* The first failure ends a trial at once, so that a frame never pays for a second one. The same
 * holds for the call that makes more than a tenth of its frames' calls too long: this is the gate's
 * check of the budget, made on a robot whose caches hold more than the policy. */
static void heed_failure(struct tec_canary *h)
{
    const struct tec_policy_report *report = tec_policy_report(policy_of(&h->candidate));
    char why[160];
    if (report->failures) {
        end_trial(h, report->message);
    } else if (report->costly > h->o.trial_frames / 10) {
        snprintf(why, sizeof why,
                 "budget: %lld of %lld calls took more CPU time than guard.soft_us allows",
                 (long long)report->costly, (long long)report->calls);
        end_trial(h, why);
    }
}

static void judge_candidate(struct tec_canary *h)
{
    if (!h->candidate.self || h->trial.frames < h->o.trial_frames)
        return;
    retire(h, &h->previous);
    h->previous = h->active;
    activate(h, h->candidate, 0);
    h->candidate = (struct tec_planner){0};
    tell(h, TEC_CANARY_ADOPTED, policy_of(&h->active), "");
    atomic_store_explicit(&h->busy, false, memory_order_release);
}

static void watch(struct tec_canary *h)
{
    const struct tec_policy_report *report = tec_policy_report(policy_of(&h->active));
    if (report->standby && !h->standby)
        tell(h, TEC_CANARY_FALLBACK, policy_of(&h->active),
             report->quarantined ? report->message : "by order");
    h->standby = report->standby;
}

/* A frame begins with its first call, the only place where another policy comes into force. */
static void begin(struct tec_canary *h, const struct tec_frame_view *view)
{
    if (!h->ended && h->frame == view->index)
        return;
    h->frame = view->index;
    h->ended = false;
    watch(h);
    judge_active(h);
    take_candidate(h);
    obey(h);
    judge_candidate(h);
    h->since += !view->idle;
}

/* --- the planner -------------------------------------------------------------------------- */

static void longest(int64_t *sum, int64_t *most, int64_t ns)
{
    *sum += ns;
    *most = ns > *most ? ns : *most;
}

/* Call the candidate on the view that the active policy has just seen, and compare the two. */
static void compare(struct tec_canary *h, const struct tec_frame_view *view,
                    const struct tec_decision *decision)
{
    struct tec_canary_trial *trial = &h->trial;
    h->candidate.plan(h->candidate.self, view, &h->shadow, NULL);
    trial->frames += !view->idle;
    if (!tec_decision_same(decision, &h->shadow, h->o.topology->n_nodes)) {
        if (trial->differing + trial->differing_between == 0)
            trial->first_differing = view->index;
        trial->differing += !view->idle;
        trial->differing_between += view->idle;
    }
    longest(&trial->policy_ns, &trial->policy_max_ns,
            tec_policy_report(policy_of(&h->active))->last_ns);
    longest(&trial->candidate_ns, &trial->candidate_max_ns,
            tec_policy_report(policy_of(&h->candidate))->last_ns);
    heed_failure(h);
}

static enum tec_status plan(void *self, const struct tec_frame_view *view,
                            struct tec_decision *decision, struct tec_error *err)
{
    struct tec_canary *h = self;
    begin(h, view);
    if (h->candidate.self)
        tec_decision_copy(&h->shadow, decision, h->o.topology->n_nodes);
    enum tec_status status = h->active.plan(h->active.self, view, decision, err);
    if (h->candidate.self)
        compare(h, view, decision);
    return status;
}

static bool admit(void *self, const struct tec_frame_view *view, const struct tec_request_view *r,
                  char reason[32])
{
    struct tec_canary *h = self;
    char other[32];
    begin(h, view);
    bool yes = h->active.admit(h->active.self, view, r, reason);
    if (h->candidate.self) {
        h->trial.other_answers += h->candidate.admit(h->candidate.self, view, r, other) != yes;
        heed_failure(h);
    }
    return yes;
}

static int evict(void *self, const struct tec_frame_view *view, int n)
{
    struct tec_canary *h = self;
    begin(h, view);
    int victim = h->active.evict(h->active.self, view, n);
    if (h->candidate.self) {
        h->trial.other_answers += h->candidate.evict(h->candidate.self, view, n) != victim;
        heed_failure(h);
    }
    return victim;
}

static void observe(void *self, const struct tec_frame_view *view,
                    const struct tec_frame_result *result)
{
    struct tec_canary *h = self;
    begin(h, view);
    h->active.observe(h->active.self, view, result);
    if (h->candidate.self) {
        h->candidate.observe(h->candidate.self, view, result);
        heed_failure(h);
    }
    tec_canary_rest(h);
    h->ended = true;
    tec_canary_show(h);
}

static const char *decider(void *self)
{
    struct tec_canary *h = self;
    return tec_planner_name(&h->active);
}

void tec_canary_rest(struct tec_canary *h)
{
    if (atomic_load_explicit(&h->copy_stage, memory_order_acquire) != TEC_CANARY_COPY_ASKED)
        return;
    tec_policy_copy_state(policy_of(&h->active), &h->copy);
    atomic_store_explicit(&h->copy_stage, TEC_CANARY_COPY_TAKEN, memory_order_release);
}

struct tec_planner tec_canary_planner(struct tec_canary *h)
{
    return (struct tec_planner){.name = "canary",
                                .self = h,
                                .admit = admit,
                                .plan = plan,
                                .observe = observe,
                                .evict = evict,
                                .decider = decider};
}
