/* service_manager.c - inherited sockets, and notes of a server's state. */
#include "tools/serve/service_manager.h"

#include "base/number.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FIRST = 3 /* the first descriptor that is handed over */ };

static int64_t number_of(const char *variable)
{
    const char *text = getenv(variable);
    int64_t n = 0;
    return text && tec_number_parse(text, &n) ? n : 0;
}

static int option_of(int fd, int name)
{
    int value = -1;
    socklen_t size = sizeof value;
    return getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

static bool is_listener(int fd)
{
    int domain = option_of(fd, SO_DOMAIN);
    return (domain == AF_INET || domain == AF_INET6) && option_of(fd, SO_TYPE) == SOCK_STREAM &&
           option_of(fd, SO_ACCEPTCONN) == 1;
}

static bool take(int fd)
{
    return is_listener(fd) && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 &&
           fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0;
}

enum tec_status tec_service_sockets(int *fds, int n, struct tec_error *err)
{
    int64_t there = number_of("LISTEN_PID") == getpid() ? number_of("LISTEN_FDS") : 0;
    for (int i = 0; i < n; i++)
        fds[i] = -1;
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    if (there == 0)
        return TEC_OK;
    if (there != n)
        return tec_fail(err, TEC_INVALID,
                        "the service manager hands over %lld sockets: a server takes %s",
                        (long long)there, n == 1 ? "one" : "one for each pipeline");
    for (int i = 0; i < n; i++) {
        if (!take(FIRST + i))
            return tec_fail(err, TEC_INVALID,
                            "what the service manager hands over is no TCP socket that listens");
        fds[i] = FIRST + i;
    }
    return TEC_OK;
}

void tec_service_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t n = path ? strlen(path) : 0;
    if (n < 2 || n >= sizeof to.sun_path || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(to.sun_path, path, n);
    if (path[0] == '@') /* an abstract name begins with a NUL */
        to.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    ssize_t sent =
        sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)&to,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
    (void)sent;
    close(fd);
}
