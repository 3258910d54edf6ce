/* act_server.h - POST /act as an HTTP server of its own: each connection has a thread, which asks
 * the server as any client does, over the connection that is its robot's. */
#ifndef TEC_TOOLS_GATEWAY_ACT_SERVER_H
#define TEC_TOOLS_GATEWAY_ACT_SERVER_H

#include "tools/gateway/act_robots.h"
#include "tools/gateway/options.h"
#include "tools/gateway/places.h"

/* Owned by the caller of start until stop; must not move in between. Zeroed: not started. */
struct tec_act_server {
    struct tec_gateway_options options;
    struct tec_upstream upstream;
    struct tec_act_robots robots;
    struct tec_gateway_places places;
    struct MHD_Daemon *daemon;
    _Atomic bool started;
};

/* TEC_IO where it does not start. The listener's sockets are closed by stop, or here on failure. */
enum tec_status tec_act_server_start(struct tec_act_server *s,
                                     const struct tec_gateway_options *options,
                                     struct tec_error *err);

/* Refuse further requests; those that are being answered are finished. Any thread, before stop. */
void tec_act_server_leave(struct tec_act_server *s);

/* Close all connections; answers that the server has given have two seconds to be taken. The server
 * has ended, or answers still. Nobody may be inside leave. */
void tec_act_server_stop(struct tec_act_server *s);

#endif
