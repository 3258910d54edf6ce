/* groot_server.h - GR00T's protocol on a port of its own: each connection has a thread and is a
 * robot, for whom it asks the server as any client does. */
#ifndef TEC_TOOLS_GATEWAY_GROOT_SERVER_H
#define TEC_TOOLS_GATEWAY_GROOT_SERVER_H

#include "tools/gateway/groot.h"
#include "tools/gateway/options.h"
#include "tools/gateway/places.h"
#include "tools/gateway/upstream.h"

/* Owned by the caller of start until stop; must not move in between. Zeroed: not started. */
struct tec_groot_server {
    struct tec_gateway_options options;
    struct tec_groot_robot robot;
    struct tec_upstream upstream;
    struct tec_gateway_places places;
    pthread_t thread;    /* takes connections */
    int64_t connections; /* so far; that thread's */
    _Atomic bool started, stops;
};

/* TEC_NO_MEMORY where it does not start. The listener's sockets are closed by stop, or here on
 * failure. */
enum tec_status tec_groot_server_start(struct tec_groot_server *s,
                                       const struct tec_gateway_options *options,
                                       struct tec_error *err);

/* Refuse further requests; those that are being answered are finished. Any thread, before stop. */
void tec_groot_server_leave(struct tec_groot_server *s);

/* Close all connections; answers that the server has given have two seconds to be taken. The server
 * has ended, or answers still. Nobody may be inside leave. */
void tec_groot_server_stop(struct tec_groot_server *s);

#endif
