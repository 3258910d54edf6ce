/* gateways.h - the other protocols of `serve`, each on a port of its own, if it is asked for. */
#ifndef TEC_TOOLS_GATEWAY_GATEWAYS_H
#define TEC_TOOLS_GATEWAY_GATEWAYS_H

#include "tools/gateway/act_server.h"
#include "tools/gateway/groot_server.h"

/* Which there are: a port as text, "0" = any that is free, NULL = it is not spoken. */
struct tec_gateways_asked {
    const char *act, *groot;
};

/* What all of them have. */
struct tec_gateways_options {
    struct tec_gateway_names names;
    int rows;         /* of a chunk */
    const char *host; /* address of the server in numbers, of IPv6 in brackets; they listen there */
    int port;         /* of the server */
    struct tec_key key;
    struct tec_tls_front *front; /* before the server and POST /act; NULL: they are plain */
    struct tec_heap *heap;
    size_t max_message;
    int max_connections, stall_s;
};

/* Owned by the caller of bind until stop; must not move in between. Zeroed: there is none. */
struct tec_gateways {
    struct tec_gateways_asked asked;
    struct tec_listener act_listener, groot_listener; /* -1: given, or not asked for */
    int act_port, groot_port;
    struct tec_act_server act;
    struct tec_groot_server groot;
};

/* How many protocols are asked for; file descriptors that they need beside the server's own, for
 * `max_connections` each. */
int tec_gateways_count(const struct tec_gateways_asked *asked);
int tec_gateways_descriptors(const struct tec_gateways_asked *asked, int max_connections);

/* Take the ports, before the model is loaded; nobody is listened to yet. `address` is the
 * server's, as host below. TEC_INVALID for what is no port, TEC_IO for one that cannot be had. */
enum tec_status tec_gateways_bind(struct tec_gateways *g, const struct tec_gateways_asked *asked,
                                  const char *address, struct tec_error *err);
/* TEC_UNSUPPORTED for a pipeline without a robot. POST /act at a port of the front's takes
 * connections when that is started. */
enum tec_status tec_gateways_start(struct tec_gateways *g,
                                   const struct tec_gateways_options *options,
                                   struct tec_error *err);
/* Any thread, before stop. Then: nobody may be inside leave, and the server has ended. */
void tec_gateways_leave(struct tec_gateways *g);
void tec_gateways_stop(struct tec_gateways *g);

#endif
