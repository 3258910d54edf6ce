/* stats.h - what the server tells about itself at its end. Written by the connection thread. */
#ifndef TEC_TOOLS_SERVE_STATS_H
#define TEC_TOOLS_SERVE_STATS_H

#include "graph/run/engine/engine.h"
#include "graph/run/loop/costs.h"
#include "policies/host/policy.h"
#include "tools/cli/command.h"
#include "tools/serve/exchange.h"

#include <jansson.h>

struct tec_serve_stats {
    int64_t requests;    /* answered */
    int64_t substitutes; /* of them at their deadline, in place of a result */
    int64_t errors;      /* refused requests and messages */
    int64_t rescued;     /* sent by the guard's thread, see net_rescue.c */
    int64_t connections;
    struct tec_histogram infer;    /* observe, frame and actions; the text too where it was asked */
    struct tec_histogram waited;   /* from the whole message until the engine took it */
    struct tec_histogram overhead; /* from the whole message until the reply was queued, without
                                      infer: waiting, decoding, packing, handing over */
    struct tec_histogram own;      /* of it, without waiting */
};

/* A reply is queued for sending at `now`. */
void tec_serve_stats_add(struct tec_serve_stats *stats, const struct tec_job *job, int64_t now);

/* {"total":3,"plan":2,"host":1}: misses by cause; free with json_decref. NULL without memory. */
json_t *tec_serve_misses_json(const struct tec_safety *safety);

/* {"requests":4,"values":9,"refused":0}: what was beyond the robot's limits; free with json_decref.
 * NULL without memory. */
json_t *tec_serve_limits_json(const struct tec_safety *safety);

/* A line on stderr, or with --format json an object on stdout; and how the policy fared (NULL:
 * there was none), so that nobody takes the default plan for it, and how the memory is (NULL: there
 * is none). */
void tec_serve_stats_print(const struct tec_serve_stats *stats, const struct tec_safety *safety,
                           const struct tec_policy *policy, const struct tec_engine *engine,
                           struct tec_invocation *call);

#endif
