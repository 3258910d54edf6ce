/* service_manager.h - what a server and the service manager that started it (systemd, or another
 * one that follows its conventions) say to each other: inherited sockets, and notes of its state.
 */
#ifndef TEC_TOOLS_SERVE_SERVICE_MANAGER_H
#define TEC_TOOLS_SERVE_SERVICE_MANAGER_H

#include "base/error.h"

/* The listening TCP sockets that this process was given as descriptors 3 and up (LISTEN_PID,
 * LISTEN_FDS; man 3 sd_listen_fds), one for each of n pipelines, not blocking, closed on exec; -1
 * in all of fds [n] where it was given none. They listen already: connections made while a model
 * loads wait. TEC_INVALID: there are more or fewer, or one is no such socket. Reads and removes
 * environment variables: to be called before threads start. */
enum tec_status tec_service_sockets(int *fds, int n, struct tec_error *err);

/* Tell the service manager a state, such as "READY=1" (man 3 sd_notify), where it asked to be told
 * (NOTIFY_SOCKET). What cannot be told is dropped; never blocks. Any thread. */
void tec_service_notify(const char *state);

#endif
