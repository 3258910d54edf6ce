#include "tools/serve/listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static enum tec_status bind_one(int *out, const struct addrinfo *a)
{
    int on = 1;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return TEC_IO;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, a->ai_addr, a->ai_addrlen) != 0) {
        int why = errno;
        close(fd);
        errno = why;
        return TEC_IO;
    }
    *out = fd;
    return TEC_OK;
}

enum tec_status tec_listen_bind(int *out, const char *host, int port, struct tec_error *err)
{
    const struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
                                   .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    char service[16];
    snprintf(service, sizeof service, "%d", port);
    int bad = getaddrinfo(host, service, &hints, &list);
    if (bad)
        return tec_fail(err, TEC_INVALID, "--host %.100s: %s", host, gai_strerror(bad));
    enum tec_status status = TEC_IO;
    for (const struct addrinfo *a = list; a && status != TEC_OK; a = a->ai_next)
        status = bind_one(out, a);
    int why = errno;
    freeaddrinfo(list);
    if (status != TEC_OK)
        return tec_fail(err, status, "port %d of %.100s: %s%s", port, host, strerror(why),
                        why == EADDRINUSE ? "; choose another with --port, 0 = any" : "");
    return TEC_OK;
}

enum tec_status tec_listen_start(int fd, int *port, struct tec_error *err)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } bound = {.v6 = {.sin6_port = 0}};
    socklen_t size = sizeof bound;
    if (listen(fd, 64) != 0 || getsockname(fd, &bound.any, &size) != 0)
        return tec_fail(err, TEC_IO, "listening: %s%s", strerror(errno),
                        errno == EADDRINUSE ? "; choose another port with --port" : "");
    *port = ntohs(bound.any.sa_family == AF_INET6 ? bound.v6.sin6_port : bound.v4.sin_port);
    return TEC_OK;
}

/* A peer that is gone without a word is noticed after a minute. */
static void keep_alive(int connection)
{
    enum { IDLE_S = 20, BETWEEN_S = 10, PROBES = 4 };
    const int on = 1, idle = IDLE_S, between = BETWEEN_S, probes = PROBES;
    setsockopt(connection, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(connection, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(connection, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof between);
    setsockopt(connection, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

int tec_listen_accept(int fd)
{
    int on = 1;
    int connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (connection < 0)
        return connection;
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    keep_alive(connection);
    return connection;
}

void tec_listen_refuse(int connection)
{
    static const char full[] = "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\n"
                               "content-type: text/plain\r\ncontent-length: 5\r\n\r\nFULL\n";
    ssize_t sent = send(connection, full, sizeof full - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)sent; /* whoever asks again will be told again */
    close(connection);
}
