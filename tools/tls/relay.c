/* relay.c - the thread that passes bytes on between clients and servers. */
#include "tools/tls/front_own.h"

#include <poll.h>
#include <unistd.h>

enum { GOODBYE_MS = 500, OTHERS = 2 /* what is waited for beside links */ };

void tec_tls_drop(struct tec_tls_front *f, struct tec_tls_link *link)
{
    tec_tls_link_close(link);
    tec_heap_put(f->heap, link);
}

/* Take the link's place out of the list, and close it. */
static void end_link(struct tec_tls_front *f, int i)
{
    tec_tls_drop(f, f->links[i]);
    f->links[i] = f->links[--f->n];
}

/* A link comes. Where every place is taken, one whose server has ended it gives way: the one that
 * has had most of its time, so that what is said last to others still leaves. */
static void add_link(struct tec_tls_front *f, struct tec_tls_link *link)
{
    int oldest = -1;
    for (int i = 0; i < f->n && f->n == f->n_links; i++)
        if (f->links[i]->until_ns &&
            (oldest < 0 || f->links[i]->until_ns < f->links[oldest]->until_ns))
            oldest = i;
    if (oldest >= 0)
        end_link(f, oldest);
    if (f->n < f->n_links)
        f->links[f->n++] = link;
    else
        tec_tls_drop(f, link);
}

/* Milliseconds until something is due; -1: nothing is. */
static int due_ms(const struct tec_tls_front *f, int64_t now_ns, int64_t end_ns)
{
    int64_t first = end_ns ? end_ns : INT64_MAX;
    for (int i = 0; i < f->n; i++) {
        const struct tec_tls_link *l = f->links[i];
        if (l->again)
            return 0;
        if (l->until_ns && l->until_ns < first)
            first = l->until_ns;
    }
    return first == INT64_MAX ? -1 : first <= now_ns ? 0 : (int)((first - now_ns) / 1000000) + 1;
}

/* Sockets that are not waited for are left out: their end would wake this thread again and again.
 */
static void wait_for_any(struct tec_tls_front *f, int ms)
{
    struct pollfd *p = f->polled;
    int n = 0;
    p[n++] = (struct pollfd){.fd = f->wake[TEC_TLS_RELAY], .events = POLLIN};
    p[n++] = (struct pollfd){.fd = f->passed[0], .events = POLLIN};
    for (int i = 0; i < f->n; i++) {
        const struct tec_tls_link *l = f->links[i];
        p[n++] = (struct pollfd){.fd = l->outer_waits ? l->outer : -1, .events = l->outer_waits};
        p[n++] = (struct pollfd){.fd = l->inner_waits ? l->inner : -1, .events = l->inner_waits};
    }
    poll(p, (nfds_t)n, ms);
}

static void turn_links(struct tec_tls_front *f)
{
    int64_t now = tec_tls_now();
    for (int i = f->n - 1; i >= 0; i--) { /* the last first: it takes the place of one that ends */
        struct tec_tls_link *l = f->links[i];
        const struct pollfd *p = &f->polled[OTHERS + 2 * i];
        bool due = l->again || p[0].revents || p[1].revents || (l->until_ns && l->until_ns <= now);
        if (due && !tec_tls_link_turn(l, now))
            end_link(f, i);
    }
}

void *tec_tls_pass(void *user)
{
    struct tec_tls_front *f = user;
    struct tec_tls_passed passed;
    int64_t end_ns = 0, count;
    while (!end_ns || (f->n && tec_tls_now() < end_ns)) {
        wait_for_any(f, due_ms(f, tec_tls_now(), end_ns));
        turn_links(f);
        while (read(f->passed[0], &passed, sizeof passed) == (ssize_t)sizeof passed)
            add_link(f, passed.link);
        if (read(f->wake[TEC_TLS_RELAY], &count, sizeof count) == (ssize_t)sizeof count)
            end_ns = tec_tls_now() + GOODBYE_MS * 1000000LL;
    }
    while (f->n)
        end_link(f, f->n - 1);
    return NULL;
}
