/* net_peer.h - what the connection thread does for one socket. */
#ifndef TEC_TOOLS_SERVE_NET_PEER_H
#define TEC_TOOLS_SERVE_NET_PEER_H

#include "tools/serve/net_state.h"

/* The data that libwebsockets keeps for each socket. */
struct tec_net_session {
    struct tec_slot *slot; /* NULL before the handshake */
};

/* Handle one event of the library with the turn lock held; returns what the library expects. */
int tec_net_event(struct tec_net *net, struct lws *wsi, enum lws_callback_reasons reason,
                  void *user, void *in, size_t n);

/* Collect the jobs that the engine has finished. */
void tec_net_collect(struct tec_net *net);

#endif
