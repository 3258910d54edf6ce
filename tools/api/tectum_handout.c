/* tectum_handout.c - the public interface: what the robot is given in a tick, by its deadline. */
#include "base/clock.h"
#include "tools/api/live.h"

#include <string.h>

#define SOURCE(name, word, meaning) \
    _Static_assert((int)TECTUM_SOURCE_##name == (int)TEC_SOURCE_##name, word);
#include "graph/run/sources.def"
#undef SOURCE

static const struct tec_clock wall = {NULL};

const char *tectum_source_name(enum tectum_source source)
{
    return tec_source_word((enum tec_action_source)source);
}

static void tell(struct tectum *t, const struct tec_watchdog_given *given, double *actions,
                 struct tectum_handed *handed)
{
    const struct tec_handed *h = &given->handed;
    *handed = (struct tectum_handed){.source = (enum tectum_source)h->source,
                                     .rows = h->n,
                                     .columns = t->watchdog.columns,
                                     .observation = h->seen,
                                     .captured_ns = h->captured_ns,
                                     .handed_ns = given->handed_ns,
                                     .age_ns = given->age_ns,
                                     .limited = h->beyond.n};
    t->stopped |= h->beyond.n > 0 && h->beyond.on == TEC_LIMIT_STOP;
    if (h->n > 0)
        memcpy(actions, h->actions, (size_t)h->n * (size_t)t->watchdog.columns * sizeof *actions);
}

/* Ticks older than are remembered are over. */
static int64_t due(struct tectum *t, int64_t observation, int64_t newest)
{
    return newest - observation < TEC_LIVE_FRAMES
               ? atomic_load(&t->due[observation % TEC_LIVE_FRAMES])
               : 0;
}

enum tectum_status tectum_handout(struct tectum *t, int64_t observation, int64_t deadline_ns,
                                  double *actions, size_t room, struct tectum_handed *handed,
                                  struct tectum_error *err)
{
    struct tectum_handed unused;
    struct tec_watchdog_given given;
    if (!t || !actions)
        return tec_live_fail(err, TEC_INVALID,
                             "tectum_handout: an engine and room for actions are needed");
    if (room < (size_t)t->watchdog.actions * (size_t)t->watchdog.columns)
        return tec_live_fail(
            err, TEC_INVALID,
            "tectum_handout: actions need room for tectum_options.actions x columns");
    if (deadline_ns == 0 && t->deadline_ns == 0)
        return tec_live_fail(
            err, TEC_INVALID,
            "tectum_handout: the pipeline's action node has no deadline: give one");
    int64_t newest = atomic_load(&t->submitted) - 1;
    if (observation < -1 || observation > newest)
        return tec_live_fail(err, TEC_INVALID, "tectum_handout: there is no such observation");
    if (observation < 0) {
        observation = atomic_fetch_add(&t->submitted, 1);
        atomic_store(&t->blind, observation);
        deadline_ns = deadline_ns ? deadline_ns : tec_clock_now(&wall) + t->deadline_ns;
    }
    if (deadline_ns == 0)
        deadline_ns = due(t, observation, newest);
    for (;;) {
        uint32_t seen = atomic_load(&t->watchdog.bell.rings);
        pthread_mutex_lock(&t->hand_lock);
        bool got = tec_watchdog_look(&t->watchdog, observation, deadline_ns, &given);
        if (got)
            tell(t, &given, actions, handed ? handed : &unused);
        pthread_mutex_unlock(&t->hand_lock);
        if (got)
            return TECTUM_OK;
        tec_bell_wait(&t->watchdog.bell, seen, deadline_ns);
    }
}

/* Observations from now on are numbered from the count that is read under the lock of whoever
 * prepares one. */
void tectum_reset(struct tectum *t)
{
    if (!t)
        return;
    bool ring = t->engine->topology.stages > 0;
    if (ring || t->engine->edges)
        pthread_mutex_lock(&t->lock);
    if (t->engine->edges) /* texts of streams are of one episode */
        tec_session_reset(t->engine->session);
    if (!ring && t->engine->edges)
        pthread_mutex_unlock(&t->lock);
    pthread_mutex_lock(&t->hand_lock);
    tec_watchdog_reset(&t->watchdog);
    t->stopped = false;
    if (ring) {
        int64_t next = atomic_load(&t->submitted);
        atomic_store(&t->forgets, next);
        tec_watchdog_forget(&t->watchdog, next);
    }
    pthread_mutex_unlock(&t->hand_lock);
    if (!ring)
        return;
    pthread_mutex_unlock(&t->lock);
    atomic_store(&t->emptying, true);
    tec_bell_ring(&t->work);
}
