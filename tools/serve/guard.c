/* guard.c - the thread that watches a connection thread; one of them waits for signals. */
#include "tools/serve/guard.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_MS = 100, SAME_MS = 100, EXIT_LOST = 5 };

void tec_guard_hold_signals(struct tec_guard *g)
{
    sigemptyset(&g->signals);
    sigaddset(&g->signals, SIGINT);
    sigaddset(&g->signals, SIGTERM);
    sigaddset(&g->signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &g->signals, &g->before);
}

void tec_guard_say(const char *text)
{
    struct pollfd out = {.fd = 2, .events = POLLOUT};
    if (poll(&out, 1, 0) <= 0)
        return;
    ssize_t n = write(2, text, strlen(text));
    (void)n;
}

/* A line of the program, or of one of its pipelines. */
static void say(const char *verb, const char *what)
{
    char text[256];
    snprintf(text, sizeof text, "tectum %.60s: %s\n", verb, what);
    tec_guard_say(text);
}

static void end_now(struct tec_guard *g, const char *verb, const char *why)
{
    say(verb, why);
    if (g->o.lost)
        g->o.lost(g->o.user);
    _exit(EXIT_LOST);
}

/* The findings of the last check. Owned by run(). */
struct look {
    int64_t at_ns;    /* time of that check */
    int64_t ended_ns; /* when a signal came; 0: none has */
    bool late;        /* the running turn was already reported */
};

/* Wait for a signal, for LOOK_MS at most. */
static void wait_for_signal(struct tec_guard *g, struct look *look)
{
    const struct timespec wait = {.tv_nsec = LOOK_MS * 1000000L};
    if (!g->o.end) {
        nanosleep(&wait, NULL);
        return;
    }
    int signal = sigtimedwait(&g->signals, NULL, &wait);
    if (signal < 0 || atomic_load(&g->stopping))
        return;
    int64_t now = tec_clock_now(&g->clock);
    /* GNU timeout signals the program, and at once the process group that it is in. */
    if (look->ended_ns && now - look->ended_ns < SAME_MS * 1000000LL)
        return;
    if (look->ended_ns)
        end_now(g, "serve", "a second signal; ended at once");
    look->ended_ns = now;
    g->o.end(g->o.ending);
}

static void watch_turn(struct tec_guard *g, struct look *look, int64_t now)
{
    int64_t late_ns = now - atomic_load(&g->turn_ns);
    if (late_ns < TEC_GUARD_LATE_MS * 1000000LL) {
        if (look->late)
            say(g->o.verb, "the connection thread goes on");
        look->late = false;
        return;
    }
    if (!look->late) {
        atomic_fetch_add(&g->late, 1);
        say(g->o.verb,
            "the connection thread does not come round since a second; replies that are due "
            "are sent without it");
    }
    look->late = true;
    if (g->o.rescue)
        g->o.rescue(g->o.user);
    if (late_ns > TEC_GUARD_LOST_S * 1000000000LL)
        end_now(g, g->o.verb,
                "the connection thread is lost; this is a bug of tectum; the program ends so that "
                "robots notice");
}

static void *run(void *user)
{
    struct tec_guard *g = user;
    struct look look = {.at_ns = tec_clock_now(&g->clock)};
    while (!atomic_load(&g->stopping)) {
        wait_for_signal(g, &look);
        int64_t now = tec_clock_now(&g->clock);
        bool paused = now - look.at_ns > TEC_GUARD_LATE_MS * 500000LL;
        look.at_ns = now;
        if (paused) /* the whole program was suspended: give the other thread time, too */
            tec_guard_turn(g);
        else
            watch_turn(g, &look, now);
        if (g->o.look)
            g->o.look(g->o.user);
        int64_t grace_s = TEC_GUARD_GRACE_S + g->o.drain_s;
        if (look.ended_ns && now - look.ended_ns > grace_s * 1000000000LL)
            end_now(g, "serve", "not ended in good order within 10 s of the signal; ended at once");
    }
    return NULL;
}

void tec_guard_turn(struct tec_guard *g)
{
    atomic_store_explicit(&g->turn_ns, tec_clock_now(&g->clock), memory_order_relaxed);
}

bool tec_guard_start(struct tec_guard *g, const struct tec_guard_options *options)
{
    g->o = *options;
    tec_guard_turn(g);
    g->started = pthread_create(&g->thread, NULL, run, g) == 0;
    return g->started;
}

void tec_guard_stop(struct tec_guard *g)
{
    if (!g->started)
        return;
    atomic_store(&g->stopping, true);
    if (g->o.end)
        pthread_kill(g->thread, SIGINT); /* it waits for signals: this one only wakes it */
    pthread_join(g->thread, NULL);
    g->started = false;
}
