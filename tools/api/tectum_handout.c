/* tectum_handout.c - the public interface: what the robot is given in a tick, by its deadline. */
#include "base/clock.h"
#include "tools/api/live.h"

#include <string.h>

#define SOURCE(name, word, meaning) \
    _Static_assert((int)TECTUM_SOURCE_##name == (int)TEC_SOURCE_##name, word);
#include "graph/live/sources.def"
#undef SOURCE

static const struct tec_clock wall = {NULL};

const char *tectum_source_name(enum tectum_source source)
{
    return tec_action_source_word((enum tec_action_source)source);
}

static void tell(struct tec_live_action *a, const struct tec_watchdog_given *given, double *actions,
                 struct tectum_handed *handed)
{
    const struct tec_handed *h = &given->handed;
    *handed = (struct tectum_handed){.source = (enum tectum_source)h->source,
                                     .rows = h->n,
                                     .columns = a->watchdog->columns,
                                     .observation = h->seen,
                                     .captured_ns = h->captured_ns,
                                     .handed_ns = given->handed_ns,
                                     .age_ns = given->age_ns,
                                     .limited = h->beyond.n,
                                     .left_out = h->left_out};
    a->stopped |= h->beyond.n > 0 && h->beyond.on == TEC_LIMIT_STOP;
    if (h->n > 0)
        memcpy(actions, h->actions, (size_t)h->n * (size_t)a->watchdog->columns * sizeof *actions);
}

/* Ticks older than are remembered are over. */
static int64_t due(struct tectum *t, const struct tec_live_action *a, int64_t observation,
                   int64_t newest)
{
    return newest - observation < TEC_LIVE_FRAMES
               ? atomic_load(&t->ticks[observation % TEC_LIVE_FRAMES]) + a->deadline_ns
               : 0;
}

/* The tick that -1 stands for: a new one for the first action node, for others the newest. */
static int64_t blind_tick(struct tectum *t, const struct tec_live_action *a)
{
    if (a != &t->actions[0])
        return atomic_load(&t->submitted) - 1;
    int64_t observation = atomic_fetch_add(&t->submitted, 1);
    atomic_store(&t->ticks[observation % TEC_LIVE_FRAMES], tec_clock_now(&wall));
    atomic_store(&t->blind, observation);
    return observation;
}

static enum tec_status check(const struct tectum *t, const struct tec_live_action *a,
                             int64_t observation, int64_t deadline_ns, size_t room,
                             const char **why)
{
    int64_t newest = atomic_load(&t->submitted) - 1;
    *why = !a ? "tectum_handout_of: the pipeline has no such action node"
           : room < (size_t)a->watchdog->actions * (size_t)a->watchdog->columns
               ? "tectum_handout: actions need room for tectum_options.actions x columns"
           : deadline_ns == 0 && a->deadline_ns == 0
               ? "tectum_handout: the pipeline's action node has no deadline: give one"
           : observation < -1 || observation > newest
               ? "tectum_handout: there is no such observation"
           : observation == -1 && a != &t->actions[0] && newest < 0
               ? "tectum_handout_of: no tick has begun yet"
               : NULL;
    return !a ? TEC_NOT_FOUND : *why ? TEC_INVALID : TEC_OK;
}

enum tectum_status tectum_handout_of(struct tectum *t, const char *node, int64_t observation,
                                     int64_t deadline_ns, double *actions, size_t room,
                                     struct tectum_handed *handed, struct tectum_error *err)
{
    struct tectum_handed unused;
    struct tec_watchdog_given given;
    const char *why;
    if (!t || !actions)
        return tec_live_fail(err, TEC_INVALID,
                             "tectum_handout: an engine and room for actions are needed");
    struct tec_live_action *a = tec_live_action(t, node);
    enum tec_status status = check(t, a, observation, deadline_ns, room, &why);
    if (status != TEC_OK)
        return tec_live_fail(err, status, why);
    if (observation < 0)
        observation = blind_tick(t, a);
    if (deadline_ns == 0)
        deadline_ns = due(t, a, observation, atomic_load(&t->submitted) - 1);
    for (;;) {
        uint32_t seen = atomic_load(&a->watchdog->bell.rings);
        pthread_mutex_lock(&t->hand_lock);
        bool got = tec_watchdog_look(a->watchdog, observation, deadline_ns, &given);
        if (got)
            tell(a, &given, actions, handed ? handed : &unused);
        pthread_mutex_unlock(&t->hand_lock);
        if (got)
            return TECTUM_OK;
        tec_bell_wait(&a->watchdog->bell, seen, deadline_ns);
    }
}

enum tectum_status tectum_handout(struct tectum *t, int64_t observation, int64_t deadline_ns,
                                  double *actions, size_t room, struct tectum_handed *handed,
                                  struct tectum_error *err)
{
    return tectum_handout_of(t, NULL, observation, deadline_ns, actions, room, handed, err);
}

/* Observations from now on are numbered from the count that is read under the lock of whoever
 * prepares one. */
void tectum_reset(struct tectum *t)
{
    if (!t)
        return;
    bool ring = t->engine->topology.n_rings > 0;
    pthread_mutex_lock(&t->lock);
    tec_session_reset(t->session); /* texts, keys and prefixes that are kept are of one episode */
    if (!ring)
        pthread_mutex_unlock(&t->lock);
    pthread_mutex_lock(&t->hand_lock);
    for (int i = 0; i < t->n_actions; i++) {
        tec_watchdog_reset(t->actions[i].watchdog);
        t->actions[i].stopped = false;
    }
    if (ring) {
        int64_t next = atomic_load(&t->submitted);
        atomic_store(&t->forgets, next);
        for (int i = 0; i < t->n_actions; i++)
            tec_watchdog_forget(t->actions[i].watchdog, next);
    }
    pthread_mutex_unlock(&t->hand_lock);
    if (!ring)
        return;
    pthread_mutex_unlock(&t->lock);
    atomic_store(&t->emptying, true);
    tec_runtime_ring(&t->live->runtime);
}
