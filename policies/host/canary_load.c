/* canary_load.c - the loader thread's side of a canary: it builds new policies, hands them to the
 * frame thread, and closes those that were replaced. */
#include "policies/host/canary_state.h"

#include <stdio.h>
#include <string.h>

enum { KIB = 1024 };

static void close_policy(struct tec_canary *h, struct tec_policy *policy)
{
    if (!policy)
        return;
    if (h->o.closing)
        h->o.closing(h->o.user, policy);
    tec_policy_close(policy);
    h->alive--;
}

static void drain(struct tec_canary *h)
{
    struct tec_policy *policy;
    while (tec_spsc_pop(&h->retired, &policy))
        close_policy(h, policy);
}

/* --- life --------------------------------------------------------------------------------- */

static enum tec_status take_memory(struct tec_canary *h, struct tec_error *err)
{
    h->copy.size = h->o.state;
    h->copy.bytes = tec_arena_push(&h->arena, h->copy.size, 1, 64);
    h->views = TEC_NEW(&h->arena, TEC_TRIPLE_PLACES, struct tec_canary_status);
    if (!h->copy.bytes || !h->views ||
        tec_spsc_init(&h->retired, &h->arena, TEC_CANARY_POLICIES, sizeof(struct tec_policy *)) !=
            TEC_OK ||
        tec_spsc_init(&h->events, &h->arena, TEC_CANARY_EVENTS, sizeof(struct tec_canary_event)) !=
            TEC_OK)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for changing policies");
    return TEC_OK;
}

enum tec_status tec_canary_create(struct tec_canary **out, const struct tec_canary_options *options,
                                  struct tec_policy *first, struct tec_heap *heap,
                                  struct tec_error *err)
{
    *out = NULL;
    struct tec_canary *h = tec_heap_get(heap, sizeof *h);
    if (!h)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for changing policies");
    h->heap = heap;
    h->o = *options;
    h->o.trial_frames = h->o.trial_frames ? h->o.trial_frames : 100;
    h->o.probation_frames = h->o.probation_frames ? h->o.probation_frames : 1000;
    h->o.state = h->o.state ? h->o.state : (size_t)64 * KIB;
    h->frame = -1;
    tec_arena_init(&h->arena, heap);
    enum tec_status status = take_memory(h, err);
    if (status != TEC_OK) {
        tec_arena_finish(&h->arena);
        tec_heap_put(heap, h);
        return status;
    }
    h->active = tec_policy_planner(first);
    h->alive = 1;
    h->since = (int64_t)h->o.probation_frames + 1;
    tec_policy_set_fallback(first, h->o.fallback);
    atomic_store(&h->in_force, first);
    tec_triple_init(&h->newest);
    tec_canary_show(h);
    *out = h;
    return TEC_OK;
}

void tec_canary_destroy(struct tec_canary *h)
{
    if (!h)
        return;
    drain(h);
    close_policy(h, h->built);
    close_policy(h, atomic_load(&h->incoming));
    close_policy(h, h->candidate.self);
    close_policy(h, h->previous.self);
    close_policy(h, h->active.self);
    tec_arena_finish(&h->arena);
    tec_heap_put(h->heap, h);
}

/* --- a new policy ------------------------------------------------------------------------- */

enum tec_status tec_canary_load(struct tec_canary *h, const char *name,
                                const struct tec_param_value *params, int n_params, int *version,
                                struct tec_error *err)
{
    drain(h);
    if (atomic_load_explicit(&h->busy, memory_order_acquire))
        return tec_fail(err, TEC_INVALID,
                        "policy '%.80s' cannot be loaded: '%.60s' is on trial; wait until that is "
                        "over (policy status), or give it up (policy drop)",
                        name, h->trying);
    if (h->alive >= TEC_CANARY_POLICIES)
        return tec_fail(err, TEC_INVALID, "policy '%.80s' cannot be loaded: %d are not closed yet",
                        name, h->alive);
    TEC_TRY(tec_policy_open(&h->built, name, h->o.root, h->o.topology, &h->o.limits, params,
                            n_params, h->heap, err));
    h->alive++;
    snprintf(h->trying, sizeof h->trying, "%s", tec_policy_name(h->built));
    if (version)
        *version = tec_policy_version(h->built);
    atomic_store_explicit(&h->busy, true, memory_order_relaxed);
    h->needs_state = tec_policy_migrates(h->built, tec_policy_name(tec_canary_policy(h)));
    if (h->needs_state)
        atomic_store_explicit(&h->copy_stage, TEC_CANARY_COPY_ASKED, memory_order_release);
    return TEC_OK;
}

static void give_up(struct tec_canary *h)
{
    close_policy(h, h->built);
    h->built = NULL;
    atomic_store_explicit(&h->busy, false, memory_order_relaxed);
}

enum tec_status tec_canary_poll(struct tec_canary *h, struct tec_error *err)
{
    drain(h);
    if (!h->built)
        return TEC_OK;
    if (h->needs_state) {
        if (atomic_load_explicit(&h->copy_stage, memory_order_acquire) != TEC_CANARY_COPY_TAKEN)
            return TEC_OK;
        enum tec_status status = tec_policy_migrate(h->built, &h->copy, err);
        atomic_store_explicit(&h->copy_stage, TEC_CANARY_COPY_IDLE, memory_order_relaxed);
        if (status != TEC_OK) {
            give_up(h);
            return status;
        }
    }
    atomic_store_explicit(&h->incoming, h->built, memory_order_release);
    h->built = NULL;
    return TEC_OK;
}

bool tec_canary_waits(const struct tec_canary *h)
{
    return h->built != NULL;
}

/* --- orders ------------------------------------------------------------------------------- */

static void order(struct tec_canary *h, uint32_t what)
{
    atomic_fetch_or_explicit(&h->orders, what, memory_order_release);
}

void tec_canary_rollback(struct tec_canary *h)
{
    order(h, TEC_CANARY_ORDER_ROLLBACK);
}

void tec_canary_drop(struct tec_canary *h)
{
    if (h->built)
        give_up(h);
    else
        order(h, TEC_CANARY_ORDER_DROP);
}

/* Of these two orders the later one holds, also where both come before one frame. */
void tec_canary_fallback_now(struct tec_canary *h)
{
    atomic_fetch_and_explicit(&h->orders, ~(uint32_t)TEC_CANARY_ORDER_REINSTATE,
                              memory_order_release);
    order(h, TEC_CANARY_ORDER_FALLBACK);
}

void tec_canary_reinstate(struct tec_canary *h)
{
    atomic_fetch_and_explicit(&h->orders, ~(uint32_t)TEC_CANARY_ORDER_FALLBACK,
                              memory_order_release);
    order(h, TEC_CANARY_ORDER_REINSTATE);
}

enum tec_status tec_canary_set_param(struct tec_canary *h, const char *name, double value,
                                     struct tec_error *err)
{
    return tec_policy_post_param(tec_canary_policy(h), name, value, err);
}

struct tec_policy *tec_canary_policy(struct tec_canary *h)
{
    return atomic_load_explicit(&h->in_force, memory_order_acquire);
}

bool tec_canary_next_event(struct tec_canary *h, struct tec_canary_event *event)
{
    return tec_spsc_pop(&h->events, event);
}

const char *tec_canary_event_name(enum tec_canary_event_kind kind)
{
    static const char *const names[] = {"trial",    "adopted",  "rejected", "returned",
                                        "rollback", "fallback", "set"};
    return (unsigned)kind < sizeof names / sizeof names[0] ? names[kind] : "?";
}
