/* connection.h - for targets whose input is all that a client sends to a server of this process. */
#ifndef TEC_TESTS_FUZZ_CONNECTION_H
#define TEC_TESTS_FUZZ_CONNECTION_H

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HANG_S = 20 };

static inline void need(bool good)
{
    if (!good)
        abort();
}

static inline int connect_here(int port)
{
    const struct sockaddr_in here = {.sin_family = AF_INET,
                                     .sin_port = htons((uint16_t)port),
                                     .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int on = 1;
    const struct linger at_once = {1, 0}; /* no port waits for the end of a closed connection */
    /* From another address of this machine each time: the server closes first, so a pair of address
     * and port stays taken for a minute, and there are only 28,000 ports. */
    static uint32_t turn;
    const struct sockaddr_in from = {.sin_family = AF_INET,
                                     .sin_addr = {htonl(INADDR_LOOPBACK + turn++ % 0xfffff0)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    need(fd >= 0);
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    (void)!bind(fd, (const struct sockaddr *)&from, sizeof from); /* else from its one address */
    need(connect(fd, (const struct sockaddr *)&here, sizeof here) == 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    return fd;
}

static inline void send_all(int fd, const void *data, size_t n, size_t pieces)
{
    size_t step = n / (pieces ? pieces : 1) + 1;
    for (size_t at = 0; at < n; at += step) {
        size_t now = n - at < step ? n - at : step;
        if (send(fd, (const char *)data + at, now, MSG_NOSIGNAL) != (ssize_t)now)
            return; /* the server has closed it, as it may */
    }
}

/* Read until `ms` pass without a byte, or the end. */
static inline size_t read_for(int fd, int ms, char *text, size_t room)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    size_t n = 0;
    while (n < room && poll(&poll_fd, 1, ms) > 0) {
        ssize_t got = recv(fd, text + n, room - n, 0);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    return n;
}

/* Whether a new connection's request is answered with 200; what came instead is shown. */
static inline bool healthy(int port, const char *request)
{
    char text[1024] = "";
    int fd = connect_here(port);
    send_all(fd, request, strlen(request), 1);
    size_t n = read_for(fd, HANG_S * 1000, text, sizeof text - 1);
    text[n] = '\0';
    close(fd);
    if (!strstr(text, " 200 "))
        fprintf(stderr, "%.40s gave %zu bytes: %s\n", request, n, text);
    return strstr(text, " 200 ") != NULL;
}

/* One connection may be refused while a closed one still has its place: the next one is not. */
static inline void check_health(int port, const char *request)
{
    bool good = healthy(port, request);
    for (int i = 0; i < 3 && !good; i++)
        good = healthy(port, request);
    need(good);
}

/* libFuzzer's timer must not end a wait before its time: that looks like a server's fault. */
static inline void hold_timer(sigset_t *before)
{
    sigset_t timer;
    sigemptyset(&timer);
    sigaddset(&timer, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &timer, before);
}

#endif
