/* socket.h - the Unix socket of a running robot: made for its user alone, never in place of what is
 * not ours, gone when it ends. */
#ifndef TEC_TOOLS_CONTROL_SOCKET_H
#define TEC_TOOLS_CONTROL_SOCKET_H

#include "base/error.h"

#include <sys/types.h>

/* Zeroed apart from fd = -1: none. */
struct tec_control_socket {
    int fd;           /* listens, does not block */
    const char *path; /* borrowed */
    dev_t device;     /* of the file that was made */
    ino_t inode;
};

/* Make a stream socket at `path` that its user may connect to (mode 0600), and listen. A socket of
 * this user that nobody listens on is replaced. TEC_INVALID for a path that is too long or where
 * something else lies, TEC_IO. */
enum tec_status tec_control_bind(struct tec_control_socket *out, const char *path,
                                 struct tec_error *err);

/* Close it, and remove the file if it is still the one that was made. None is allowed. */
void tec_control_unbind(struct tec_control_socket *socket);

/* Connect, blocking; *fd is closed by the caller. TEC_NOT_FOUND when nobody listens there. */
enum tec_status tec_control_connect(int *fd, const char *path, struct tec_error *err);

#endif
