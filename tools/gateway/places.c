/* places.c - a list of connections, and which of them gives way. */
#include "tools/gateway/places.h"

#include "base/clock.h"

#include <errno.h>
#include <sys/socket.h>
#include <time.h>

static const struct tec_clock real = {NULL};

void tec_gateway_places_init(struct tec_gateway_places *p, int most)
{
    pthread_condattr_t how;
    *p = (struct tec_gateway_places){.most = most};
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_init(&how);
    pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    pthread_cond_init(&p->gone, &how);
    pthread_condattr_destroy(&how);
}

void tec_gateway_places_finish(struct tec_gateway_places *p)
{
    pthread_cond_destroy(&p->gone);
    pthread_mutex_destroy(&p->lock);
}

static struct tec_gateway_place *find(struct tec_gateway_places *p, int fd)
{
    for (int i = 0; i < p->n; i++)
        if (p->place[i].fd == fd)
            return &p->place[i];
    return NULL;
}

static void shut(struct tec_gateway_place *place)
{
    place->ends = true;
    shutdown(place->fd, SHUT_RDWR); /* its thread then closes it */
}

/* Whether there is an answer that is still to leave. */
static bool answers(const struct tec_gateway_place *one)
{
    return one->does == TEC_GATEWAY_WORKS || one->does == TEC_GATEWAY_SENDS;
}

static void does(struct tec_gateway_place *place, enum tec_gateway_does what)
{
    place->does = what;
    place->since_ns = tec_clock_now(&real);
}

static int count(const struct tec_gateway_places *p, bool may)
{
    int there = 0;
    for (int i = 0; i < p->n; i++)
        there += !p->place[i].ends && (!may || p->place[i].may);
    return there;
}

/* Whether a connection can be shut down for another one that asks. */
static bool gives_way(const struct tec_gateway_place *one, int64_t now)
{
    int64_t s = (now - one->since_ns) / 1000000000;
    switch (one->does) {
    case TEC_GATEWAY_IDLE:
        return !one->ends && (!one->proven || s >= TEC_GATEWAY_IDLE_S);
    case TEC_GATEWAY_ARRIVES:
    case TEC_GATEWAY_SENDS:
        return !one->ends && s >= TEC_GATEWAY_ARRIVE_S;
    default:
        return false;
    }
}

/* The one that gives way: one that never asked anything right before a robot, the longest first. */
static struct tec_gateway_place *find_place(struct tec_gateway_places *p)
{
    const int64_t now = tec_clock_now(&real);
    struct tec_gateway_place *found = NULL;
    for (int i = 0; i < p->n; i++) {
        struct tec_gateway_place *one = &p->place[i];
        if (one->may && gives_way(one, now) &&
            (!found || one->proven < found->proven ||
             (one->proven == found->proven && one->since_ns < found->since_ns)))
            found = one;
    }
    return found;
}

/* Too many are open: the one that has had no place for longest is shut down. */
static void make_way(struct tec_gateway_places *p)
{
    struct tec_gateway_place *oldest = NULL;
    for (int i = 0; i < p->n; i++) {
        struct tec_gateway_place *one = &p->place[i];
        if (!one->may && !one->ends && !answers(one) &&
            (!oldest || one->since_ns < oldest->since_ns))
            oldest = one;
    }
    if (oldest && count(p, false) >= TEC_GATEWAY_OPEN)
        shut(oldest);
}

bool tec_gateway_places_come(struct tec_gateway_places *p, int fd)
{
    pthread_mutex_lock(&p->lock);
    make_way(p);
    bool good = p->n < TEC_GATEWAY_PLACES && !p->ending;
    if (good)
        p->place[p->n++] = (struct tec_gateway_place){.fd = fd, .since_ns = tec_clock_now(&real)};
    pthread_mutex_unlock(&p->lock);
    return good;
}

void tec_gateway_places_go(struct tec_gateway_places *p, int fd)
{
    pthread_mutex_lock(&p->lock);
    struct tec_gateway_place *place = find(p, fd);
    if (place)
        *place = p->place[--p->n];
    pthread_cond_broadcast(&p->gone);
    pthread_mutex_unlock(&p->lock);
}

bool tec_gateway_places_begin(struct tec_gateway_places *p, int fd)
{
    pthread_mutex_lock(&p->lock);
    struct tec_gateway_place *place = find(p, fd), *other = NULL;
    bool room = place && (place->may || count(p, true) < p->most);
    if (place && !room && (other = find_place(p)) != NULL)
        shut(other);
    if (place) {
        place->may = room || other;
        does(place, TEC_GATEWAY_ARRIVES);
    }
    bool may = place && place->may;
    pthread_mutex_unlock(&p->lock);
    return may;
}

void tec_gateway_places_work(struct tec_gateway_places *p, int fd)
{
    pthread_mutex_lock(&p->lock);
    struct tec_gateway_place *place = find(p, fd);
    if (place)
        does(place, TEC_GATEWAY_WORKS);
    pthread_mutex_unlock(&p->lock);
}

void tec_gateway_places_send(struct tec_gateway_places *p, int fd, bool proven, bool keeps)
{
    pthread_mutex_lock(&p->lock);
    struct tec_gateway_place *place = find(p, fd);
    if (place) {
        does(place, TEC_GATEWAY_SENDS);
        place->proven = place->proven || proven;
        place->may = place->may && keeps;
    }
    pthread_mutex_unlock(&p->lock);
}

void tec_gateway_places_rest(struct tec_gateway_places *p, int fd)
{
    pthread_mutex_lock(&p->lock);
    struct tec_gateway_place *place = find(p, fd);
    if (place)
        does(place, TEC_GATEWAY_IDLE);
    if (place && p->ending)
        shut(place);
    pthread_mutex_unlock(&p->lock);
}

bool tec_gateway_places_end(struct tec_gateway_places *p, bool all, int wait_ms)
{
    const int64_t until = tec_clock_now(&real) + wait_ms * 1000000LL;
    const struct timespec then = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};
    int late = 0;
    pthread_mutex_lock(&p->lock);
    p->ending = true;
    for (int i = 0; i < p->n; i++)
        if ((all || !answers(&p->place[i])) && !p->place[i].ends)
            shut(&p->place[i]);
    while (p->n > 0 && late != ETIMEDOUT)
        late = wait_ms < 0 ? pthread_cond_wait(&p->gone, &p->lock)
                           : pthread_cond_timedwait(&p->gone, &p->lock, &then);
    bool gone = p->n == 0;
    pthread_mutex_unlock(&p->lock);
    return gone;
}
