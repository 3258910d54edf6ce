/* net_rescue.h - replies that leave although the connection thread does not come round. */
#ifndef TEC_TOOLS_SERVE_NET_RESCUE_H
#define TEC_TOOLS_SERVE_NET_RESCUE_H

#include "tools/serve/net_state.h"

/* Called while the connection thread hangs: send, from the calling thread, the replies that are
 * ready or due, each as one WebSocket message that bypasses the library. False: that thread is
 * inside an event, nothing can be done. */
bool tec_net_rescue(struct tec_net *net);

#endif
