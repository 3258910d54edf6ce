/* listen.c - the listening socket: bound, started, its connections taken or turned away. */
#include "tools/serve/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
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

enum tec_status tec_listen_bind(struct tec_listener *l, const char *host, int port,
                                const char *option, struct tec_error *err)
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
        status = bind_one(&l->fd, a);
    int why = errno;
    freeaddrinfo(list);
    if (status != TEC_OK)
        return tec_fail(err, status, "%s: port %d of %.100s: %s%s", option, port, host,
                        strerror(why), why == EADDRINUSE ? "; choose another, 0 = any" : "");
    return TEC_OK;
}

/* A descriptor that is only there to be closed. */
static int spare(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

enum tec_status tec_listen_door(struct tec_listener *l, int *hand, struct tec_error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return tec_fail(err, TEC_IO, "listening: %s", strerror(errno));
    *l = (struct tec_listener){.fd = ends[0], .spare = -1, .is_door = true};
    *hand = ends[1];
    return TEC_OK;
}

bool tec_listen_hand(int hand, int connection)
{
    return write(hand, &connection, sizeof connection) == (ssize_t)sizeof connection;
}

/* The address that a socket has; port in host order. */
static bool bound_address(int fd, struct sockaddr_storage *address, int *port)
{
    socklen_t size = sizeof *address;
    memset(address, 0, size);
    if (getsockname(fd, (struct sockaddr *)address, &size) != 0)
        return false;
    *port = ntohs(address->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)address)->sin6_port
                                                 : ((const struct sockaddr_in *)address)->sin_port);
    return true;
}

void tec_listen_inherit(struct tec_listener *l, int fd)
{
    l->fd = fd;
}

void tec_listen_address(const struct tec_listener *l, char *text, size_t room)
{
    struct sockaddr_storage address;
    char host[INET6_ADDRSTRLEN + 32];
    int port;
    text[0] = '\0';
    if (!bound_address(l->fd, &address, &port) ||
        getnameinfo((const struct sockaddr *)&address, sizeof address, host, sizeof host, NULL, 0,
                    NI_NUMERICHOST) != 0)
        return;
    bool six = strchr(host, ':') != NULL;
    snprintf(text, room, "%s%s%s", six ? "[" : "", host, six ? "]" : "");
}

bool tec_listen_is_local(const struct tec_listener *l)
{
    struct sockaddr_storage address;
    int port;
    if (!bound_address(l->fd, &address, &port))
        return false;
    if (address.ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)&address)->sin6_addr);
    uint32_t ip = ntohl(((const struct sockaddr_in *)&address)->sin_addr.s_addr);
    return address.ss_family == AF_INET && ip >> 24 == IN_LOOPBACKNET;
}

enum tec_status tec_listen_start(struct tec_listener *l, int *port, struct tec_error *err)
{
    struct sockaddr_storage address;
    l->spare = spare();
    if (listen(l->fd, SOMAXCONN) != 0 || !bound_address(l->fd, &address, port))
        return tec_fail(err, TEC_IO, "listening: %s%s", strerror(errno),
                        errno == EADDRINUSE ? "; choose another port" : "");
    return TEC_OK;
}

enum tec_status tec_listen_descriptors(int n, struct tec_error *err)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= (rlim_t)n)
        return TEC_OK;
    rlim_t had = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max < (rlim_t)n ? limit.rlim_max : (rlim_t)n;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= (rlim_t)n)
        return TEC_OK;
    return tec_fail(err, TEC_UNSUPPORTED,
                    "--max-connections: so many need %d file descriptors, this process may have "
                    "%llu; raise the limit with `ulimit -n %d`, or take fewer",
                    n, (unsigned long long)(limit.rlim_max > had ? limit.rlim_max : had), n);
}

/* A peer that is gone without a word is noticed after a minute, also where a longer patience is
 * asked for; one that is there, but takes nothing of what was sent, after that patience: the system
 * holds megabytes, so that to the server it all seems to be taken. */
static void keep_alive(int connection, int patience_s)
{
    enum { IDLE_S = 20, BETWEEN_S = 10, PROBES = 4, GONE_S = IDLE_S + PROBES * BETWEEN_S };
    const int on = 1, idle = IDLE_S, between = BETWEEN_S, probes = PROBES;
    setsockopt(connection, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(connection, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(connection, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof between);
    setsockopt(connection, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    const unsigned ms = 1000U * (unsigned)(patience_s < GONE_S ? patience_s : GONE_S);
    setsockopt(connection, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
}

/* No descriptor is left. The socket would stay in the queue, and the listener readable for ever:
 * the spare descriptor takes it, so that its client is told, and then is the spare one again. */
static void turn_away(struct tec_listener *l)
{
    close(l->spare);
    int connection = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (connection >= 0)
        tec_listen_refuse(connection);
    l->spare = spare();
}

int tec_listen_accept(struct tec_listener *l)
{
    int on = 1, connection;
    if (l->is_door)
        return read(l->fd, &connection, sizeof connection) == (ssize_t)sizeof connection
                   ? connection
                   : -1;
    connection = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (connection < 0) {
        if (errno == EMFILE || errno == ENFILE)
            turn_away(l);
        return -1;
    }
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    keep_alive(connection, l->patience_s);
    return connection;
}

void tec_listen_refuse(int connection)
{
    static const char full[] = "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\n"
                               "content-type: text/plain\r\ncontent-length: 5\r\n\r\nFULL\n";
    ssize_t sent = send(connection, full, sizeof full - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)sent; /* a client that tries again is refused again */
    close(connection);
}

void tec_listen_close(struct tec_listener *l)
{
    if (l->fd >= 0)
        close(l->fd);
    if (l->spare >= 0)
        close(l->spare);
    *l = (struct tec_listener){.fd = -1, .spare = -1};
}
