/* act_robots.h - the robots that ask by POST /act, by their session_id: their clients connect anew
 * for each request, so what the server knows of them hangs on a connection that is kept here. */
#ifndef TEC_TOOLS_GATEWAY_ACT_ROBOTS_H
#define TEC_TOOLS_GATEWAY_ACT_ROBOTS_H

#include "tools/gateway/upstream.h"
#include "tools/serve/request.h"

struct tec_act_robot {
    char name[TEC_REQUEST_NAME + 1]; /* "": nobody's */
    bool taken;                      /* by a thread */
    int64_t used_ns;
    struct tec_upstream_link link;
};

/* Any thread between init and finish. */
struct tec_act_robots {
    struct tec_upstream *upstream; /* borrowed */
    int most;                      /* robots at once */
    pthread_mutex_t lock;          /* guards the rest, but for links that are taken */
    pthread_cond_t given;
    struct tec_act_robot robot[TEC_UPSTREAM_MOST];
};

/* As many robots as `upstream` has links. */
void tec_act_robots_init(struct tec_act_robots *r, struct tec_upstream *upstream);
/* No robot is taken. */
void tec_act_robots_finish(struct tec_act_robots *r);

/* The robot of that name, for one request, when the request before it is over; one that is new
 * takes the place of the one that asked longest ago. NULL: all others are being answered. */
struct tec_act_robot *tec_act_robots_take(struct tec_act_robots *r, const char *name);
void tec_act_robots_give(struct tec_act_robots *r, struct tec_act_robot *robot);

#endif
