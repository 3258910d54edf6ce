/* http.h - what a socket is told before it is a WebSocket: one reply, after which it is closed.
 *
 * A second request on the same socket is never read. libwebsockets 4.1 mishandles the bytes behind
 * a request (doc/decisions/016), and no client of a robot needs them. */
#ifndef TEC_TOOLS_SERVE_HTTP_H
#define TEC_TOOLS_SERVE_HTTP_H

#include "tools/serve/key.h"
#include "tools/serve/metrics.h"

#include <libwebsockets.h>

/* The reason to refuse a handshake; TEC_DOOR_OPEN: it is accepted. */
enum tec_door {
    TEC_DOOR_OPEN,
    TEC_DOOR_PROTOCOL, /* another upgrade than to WebSocket */
    TEC_DOOR_ORIGIN,   /* a web page asks: robots send no Origin */
    TEC_DOOR_KEY,      /* no key, or a wrong one */
    TEC_DOOR_FULL      /* every connection is taken */
};

/* Judge the headers of a handshake, but for TEC_DOOR_FULL. Headers are copied out of the library.
 */
enum tec_door tec_http_judge(struct lws *wsi, const struct tec_key *key);

/* Answer a handshake with the reason of its refusal. Returns -1 for the callback: the socket is
 * closed. */
int tec_http_refuse(struct lws *wsi, enum tec_door why);

/* Answer a request that is no handshake. /healthz: the server runs. /readyz: it takes robots, which
 * it does not while it ends (`leaving`) or while a stop holds. For who has the key: /metrics, the
 * figures; /v1/graph, the pipeline; /trace?frames=N, the newest frames; both of these for no web
 * page. The text of the graph is kept in `metrics`, whose owner finishes it. Returns -1. */
int tec_http_answer(struct lws *wsi, const char *path, const struct tec_key *key,
                    struct tec_metrics_source *metrics, bool leaving, struct tec_heap *heap);

#endif
