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

/* How many may be answered: those that were neither shut down nor came as one too many. */
static int count(const struct tec_gateway_places *p)
{
    int there = 0;
    for (int i = 0; i < p->n; i++)
        there += !p->place[i].ends && !p->place[i].full;
    return there;
}

/* Of those that ask for nothing, the one that has for longest; NULL: there is none. */
static struct tec_gateway_place *oldest(struct tec_gateway_places *p, bool full)
{
    struct tec_gateway_place *found = NULL;
    for (int i = 0; i < p->n - 1; i++) {
        struct tec_gateway_place *one = &p->place[i];
        if (!one->ends && !one->works && one->full == full &&
            (!found || one->since_ns < found->since_ns))
            found = one;
    }
    return found;
}

/* The newest may be one too many: another one gives way, or it is told that all work. Those that
 * are told are bounded, too. */
static void make_way(struct tec_gateway_places *p)
{
    struct tec_gateway_place *gives = oldest(p, false), *told = oldest(p, true);
    bool more = count(p) > p->most;
    if (more && gives)
        shut(gives);
    p->place[p->n - 1].full = more && !gives;
    if (p->n > TEC_GATEWAY_PLACES * 3 / 4 && told)
        shut(told);
}

bool tec_gateway_places_come(struct tec_gateway_places *p, int fd)
{
    pthread_mutex_lock(&p->lock);
    bool good = p->n < TEC_GATEWAY_PLACES && !p->ending;
    if (good) {
        p->place[p->n++] = (struct tec_gateway_place){.fd = fd, .since_ns = tec_clock_now(&real)};
        make_way(p);
    }
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

bool tec_gateway_places_may(struct tec_gateway_places *p, int fd)
{
    pthread_mutex_lock(&p->lock);
    struct tec_gateway_place *place = find(p, fd);
    bool may = place && (!place->full || count(p) < p->most);
    if (may)
        place->full = false;
    pthread_mutex_unlock(&p->lock);
    return may;
}

void tec_gateway_places_note(struct tec_gateway_places *p, int fd, bool works)
{
    pthread_mutex_lock(&p->lock);
    struct tec_gateway_place *place = find(p, fd);
    if (place) {
        place->works = works;
        place->since_ns = tec_clock_now(&real);
        if (p->ending && !works)
            shut(place);
    }
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
        if ((all || !p->place[i].works) && !p->place[i].ends)
            shut(&p->place[i]);
    while (p->n > 0 && late != ETIMEDOUT)
        late = wait_ms < 0 ? pthread_cond_wait(&p->gone, &p->lock)
                           : pthread_cond_timedwait(&p->gone, &p->lock, &then);
    bool gone = p->n == 0;
    pthread_mutex_unlock(&p->lock);
    return gone;
}
