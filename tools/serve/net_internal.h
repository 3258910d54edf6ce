/* net_internal.h - what the files of the connection thread share. */
#ifndef TEC_TOOLS_SERVE_NET_INTERNAL_H
#define TEC_TOOLS_SERVE_NET_INTERNAL_H

#include "tools/serve/net.h"

enum { TEC_TRY_AGAIN_LATER = 1013 /* a close code */ };

/* The data that libwebsockets keeps for each socket. */
struct tec_net_session {
    struct tec_slot *slot; /* NULL before the handshake */
};

/* Handle one event of the library with the turn lock held; returns what the library expects. */
int tec_net_event(struct tec_net *net, struct lws *wsi, enum lws_callback_reasons reason,
                  void *user, void *in, size_t n);

/* Attend to a slot whose state has changed or whose timer has fired. */
void tec_net_attend(struct tec_net *net, int slot);

/* Collect the jobs that the engine has finished. */
void tec_net_collect(struct tec_net *net);

#endif
