/* net.h - the connection side of the server: one thread that speaks HTTP and WebSocket with every
 * client and never computes, so that pings are answered while the engine is busy. */
#ifndef TEC_TOOLS_SERVE_NET_H
#define TEC_TOOLS_SERVE_NET_H

#include "tools/serve/net_state.h"

/* Schedule the connection thread, which sends what is due. After start. */
enum tec_status tec_net_schedule(struct tec_net *net, const struct tec_scheduling *how,
                                 struct tec_error *err);

/* Take no further robot; end the engine when those that are there have left, or at that time. Any
 * thread; never blocks. */
void tec_net_drain(struct tec_net *net, int64_t by_ns);

/* Start the thread. Connections are taken as soon as it runs. */
enum tec_status tec_net_start(struct tec_net *net, const struct tec_net_options *options,
                              struct tec_error *err);
/* Close all connections and end the thread. The engine side must have ended. Zeroed is allowed. */
void tec_net_stop(struct tec_net *net);

#endif
