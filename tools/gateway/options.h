/* options.h - what the server of each protocol is given. */
#ifndef TEC_TOOLS_GATEWAY_OPTIONS_H
#define TEC_TOOLS_GATEWAY_OPTIONS_H

#include "base/alloc.h"
#include "tools/gateway/names.h"
#include "tools/serve/key.h"
#include "tools/serve/listen.h"
#include "tools/tls/front.h"

struct tec_gateway_options {
    struct tec_listener listener; /* it listens; given */
    struct tec_gateway_names names;
    int rows;        /* of a chunk */
    const char *url; /* of the server that answers: "ws://127.0.0.1:8000" */
    struct tec_tls_front
        *front;         /* NULL: plain; else the way to that server, and before POST /act */
    struct tec_key key; /* that clients must show, and the server asks for */
    struct tec_heap *heap;
    size_t max_message;  /* bytes of a request */
    int max_connections; /* 1 .. TEC_UPSTREAM_MOST: robots, and requests at once */
    int stall_s;         /* seconds for a request to be whole, for a reply to be taken */
};

#endif
