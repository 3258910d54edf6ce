/* params.c - typed parameters of a policy: a value is checked where it is set, and the policy sees
 * it from the beginning of a frame. */
#include "base/nearest.h"
#include "policies/host/host.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void tec_host_write_params(lua_State *L, const struct tec_policy *policy)
{
    for (int i = 0; i < policy->n_params; i++) {
        const struct tec_param *param = &policy->params[i];
        lua_pushstring(L, param->name);
        if (param->is_int)
            lua_pushinteger(L, (lua_Integer)param->value);
        else
            lua_pushnumber(L, param->value);
        lua_rawset(L, -3);
    }
}

int tec_host_set_params(lua_State *L)
{
    const struct tec_policy *policy = lua_touserdata(L, 1);
    tec_host_push_anchors(L);
    lua_rawgeti(L, -1, A_PARAMS);
    tec_host_write_params(L, policy);
    return 0;
}

/* Find the index of a parameter that may take this value. It reads only data that never changes
 * after load, so any thread may call it. */
static enum tec_status check(const struct tec_policy *policy, const char *name, double value,
                             int *index, struct tec_error *err)
{
    const char *names[TEC_MAX_PARAMS], *near;
    int at = 0;
    for (; at < policy->n_params && strcmp(policy->params[at].name, name) != 0; at++)
        names[at] = policy->params[at].name;
    if (at == policy->n_params) {
        near = tec_nearest(name, names, at);
        return tec_fail(err, TEC_INVALID, "policy '%s' has no parameter '%.60s'%s", policy->name,
                        name, tec_meant(',', near).text);
    }
    const struct tec_param *param = &policy->params[at];
    if (isnan(value))
        return tec_fail(err, TEC_INVALID, "parameter '%s' of policy '%s' is not a number", name,
                        policy->name);
    if (!(value >= param->min && value <= param->max))
        return tec_fail(err, TEC_INVALID,
                        "parameter '%s' of policy '%s' is %g, allowed is %g to %g", name,
                        policy->name, value, param->min, param->max);
    if (param->is_int && floor(value) != value)
        return tec_fail(err, TEC_INVALID, "parameter '%s' of policy '%s' is %g, not an integer",
                        name, policy->name, value);
    *index = at;
    return TEC_OK;
}

enum tec_status tec_policy_set_param(struct tec_policy *policy, const char *name, double value,
                                     struct tec_error *err)
{
    int at = 0;
    TEC_TRY(check(policy, name, value, &at, err));
    policy->params[at].value = value;
    policy->params_moved = true;
    return TEC_OK;
}

/* Append a mistake to those before it, as long as room is left to say that there is more; of what
 * finds none only that. A first one is cut. */
static void append(struct tec_error *all, const char *mistake)
{
    static const char more[] = "; and more";
    size_t used = strlen(all->message), room = sizeof all->message - used;
    bool ended = used >= sizeof more && strcmp(all->message + used - sizeof more + 1, more) == 0;
    if (ended)
        return;
    bool fits = strlen(mistake) + (used ? 2 : 0) + sizeof more <= room;
    if (used && !fits)
        snprintf(all->message + used, room, "%s", more);
    else
        snprintf(all->message + used, room, "%s%.*s", used ? "; " : "", (int)(room - sizeof more),
                 mistake);
}

enum tec_status tec_host_take_values(struct tec_policy *policy,
                                     const struct tec_param_value *values, int n,
                                     struct tec_error *err)
{
    enum tec_status status = TEC_OK;
    struct tec_error all = {.message = ""};
    for (int i = 0; i < n; i++) {
        struct tec_error one = {.message = ""};
        enum tec_status of = tec_policy_set_param(policy, values[i].name, values[i].value, &one);
        if (of == TEC_OK)
            continue;
        append(&all, one.message);
        status = status == TEC_OK ? of : status;
    }
    return status == TEC_OK ? TEC_OK : tec_fail(err, status, "%s", all.message);
}

enum tec_status tec_policy_post_param(struct tec_policy *policy, const char *name, double value,
                                      struct tec_error *err)
{
    int at = 0;
    uint64_t bits;
    TEC_TRY(check(policy, name, value, &at, err));
    memcpy(&bits, &value, sizeof bits);
    atomic_store_explicit(&policy->posted.bits[at], bits, memory_order_relaxed);
    atomic_fetch_or_explicit(&policy->posted.mask, 1U << at, memory_order_release);
    return TEC_OK;
}

void tec_host_take_params(struct tec_policy *policy)
{
    if (!atomic_load_explicit(&policy->posted.mask, memory_order_relaxed))
        return;
    uint32_t mask = atomic_exchange_explicit(&policy->posted.mask, 0, memory_order_acquire);
    for (int i = 0; i < policy->n_params; i++) {
        if (!(mask >> i & 1U))
            continue;
        uint64_t bits = atomic_load_explicit(&policy->posted.bits[i], memory_order_relaxed);
        memcpy(&policy->params[i].value, &bits, sizeof bits);
        policy->params_moved = true;
    }
}

const struct tec_param *tec_policy_param(const struct tec_policy *policy, int i)
{
    return i >= 0 && i < policy->n_params ? &policy->params[i] : NULL;
}
