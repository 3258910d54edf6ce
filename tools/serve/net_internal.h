/* net_internal.h - what the files of the connection thread share. */
#ifndef TEC_TOOLS_SERVE_NET_INTERNAL_H
#define TEC_TOOLS_SERVE_NET_INTERNAL_H

#include "tools/serve/net.h"

enum { TEC_TRY_AGAIN_LATER = 1013 /* a close code */ };

/* What libwebsockets keeps for each socket. */
struct tec_net_session {
    struct tec_slot *slot; /* NULL before the handshake */
};

/* One event of the library's, with the turn held. What it returns is the library's to read. */
int tec_net_event(struct tec_net *net, struct lws *wsi, enum lws_callback_reasons reason,
                  void *user, void *in, size_t n);

/* Something has changed for a slot, or its alarm has rung. */
void tec_net_attend(struct tec_net *net, int slot);

/* Take back what the engine has done since. */
void tec_net_collect(struct tec_net *net);

#endif
