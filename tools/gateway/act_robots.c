/* act_robots.c - a table of robots; the one that asked longest ago gives its place away. */
#include "tools/gateway/act_robots.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

static const struct tec_clock real = {NULL};

void tec_act_robots_init(struct tec_act_robots *r, struct tec_upstream *upstream)
{
    *r = (struct tec_act_robots){.upstream = upstream, .most = upstream->most};
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->given, NULL);
}

void tec_act_robots_finish(struct tec_act_robots *r)
{
    for (int i = 0; i < r->most; i++)
        tec_upstream_close(r->upstream, &r->robot[i].link);
    pthread_cond_destroy(&r->given);
    pthread_mutex_destroy(&r->lock);
}

/* The robot of that name, else the place that it may have; NULL: there is none. */
static struct tec_act_robot *find(struct tec_act_robots *r, const char *name)
{
    struct tec_act_robot *oldest = NULL;
    for (int i = 0; i < r->most; i++) {
        struct tec_act_robot *one = &r->robot[i];
        if (strcmp(one->name, name) == 0)
            return one;
        if (!one->taken && (!oldest || one->used_ns < oldest->used_ns))
            oldest = one;
    }
    return oldest;
}

struct tec_act_robot *tec_act_robots_take(struct tec_act_robots *r, const char *name)
{
    pthread_mutex_lock(&r->lock);
    struct tec_act_robot *robot = find(r, name);
    while (robot && robot->taken) {
        pthread_cond_wait(&r->given, &r->lock);
        robot = find(r, name);
    }
    if (robot && strcmp(robot->name, name) != 0) {
        tec_upstream_close(r->upstream, &robot->link);
        snprintf(robot->name, sizeof robot->name, "%s", name);
    }
    if (robot)
        robot->taken = true;
    pthread_mutex_unlock(&r->lock);
    return robot;
}

void tec_act_robots_give(struct tec_act_robots *r, struct tec_act_robot *robot)
{
    pthread_mutex_lock(&r->lock);
    robot->taken = false;
    robot->used_ns = tec_clock_now(&real);
    pthread_cond_broadcast(&r->given);
    pthread_mutex_unlock(&r->lock);
}
