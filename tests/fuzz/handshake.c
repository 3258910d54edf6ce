/* handshake.c - fuzz target: any bytes as all that a client sends, from before the handshake on,
 * through libwebsockets and the connection thread.
 *
 * The first byte says in how many writes the rest is sent; a second byte of 1 puts a valid
 * handshake in front, so that the rest is WebSocket frames. After each input the server must still
 * answer /healthz within HANG_S seconds: a thread that hangs is found, not only one that crashes.
 */
#include "tools/serve/net.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

enum { HANG_S = 20, REPLY = 1 << 12, MAX_MESSAGE = 1 << 20, PLACES = 4 };

static const char upgrade[] = "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n"
                              "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

static struct {
    struct tec_heap heap;
    struct tec_arena arena;
    struct tec_exchange exchange;
    struct tec_runtime engine; /* runs nothing */
    struct tec_net net;
    int port;
} server;

static void need(bool good)
{
    if (!good)
        abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    struct tec_error err;
    struct tec_listener listener = {.is_door = false};
    (void)argc;
    (void)argv;
    tec_arena_init(&server.arena, &server.heap);
    server.engine.bell = &server.engine.work;
    need(tec_listen_bind(&listener, "127.0.0.1", 0, "--port", &err) == TEC_OK);
    need(tec_exchange_init(&server.exchange, 2 * PLACES, &server.engine, REPLY, &server.arena,
                           &err) == TEC_OK);
    need(tec_listen_start(&listener, &server.port, &err) == TEC_OK);
    const struct tec_net_options options = {.exchange = &server.exchange,
                                            .heap = &server.heap,
                                            .listener = listener,
                                            .max_message = MAX_MESSAGE,
                                            .max_connections = PLACES,
                                            .stall_s = 5};
    need(tec_net_start(&server.net, &options, &err) == TEC_OK);
    return 0;
}

/* The engine's side: every request is answered with a sentence. */
static void answer_jobs(void)
{
    for (int job; (job = tec_exchange_take(&server.exchange)) >= 0;) {
        struct tec_job *j = &server.exchange.jobs[job];
        int open = TEC_JOB_OPEN;
        if (atomic_compare_exchange_strong(&j->answer, &open, TEC_JOB_BY_ENGINE)) {
            memcpy(j->reply, "no", 2);
            j->reply_n = 2;
            j->failed = true;
            j->lost = false;
        }
        tec_exchange_return(&server.exchange, job);
    }
}

static int connect_here(void)
{
    const struct sockaddr_in here = {.sin_family = AF_INET,
                                     .sin_port = htons((uint16_t)server.port),
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

static void send_all(int fd, const void *data, size_t n, size_t pieces)
{
    size_t step = n / (pieces ? pieces : 1) + 1;
    for (size_t at = 0; at < n; at += step) {
        size_t now = n - at < step ? n - at : step;
        if (send(fd, (const char *)data + at, now, MSG_NOSIGNAL) != (ssize_t)now)
            return; /* the server has closed it, as it may */
    }
}

/* Read until `ms` pass without a byte, or the end. */
static size_t read_for(int fd, int ms, char *text, size_t room)
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

/* Whether a new connection is answered; what came instead is shown. */
static bool healthy(void)
{
    static const char request[] = "GET /healthz HTTP/1.1\r\n\r\n";
    char text[1024] = "";
    int fd = connect_here();
    send_all(fd, request, sizeof request - 1, 1);
    size_t n = read_for(fd, HANG_S * 1000, text, sizeof text - 1);
    text[n] = '\0';
    close(fd);
    if (!strstr(text, " 200 "))
        fprintf(stderr, "/healthz gave %zu bytes: %s\n", n, text);
    return strstr(text, " 200 ") != NULL;
}

/* One connection may be refused while a closed one still has its place: the next one is not. */
static void check_health(void)
{
    bool good = healthy();
    for (int i = 0; i < 3 && !good; i++)
        good = healthy();
    need(good);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[4096];
    sigset_t alarm, before;
    if (size < 2)
        return 0;
    /* libFuzzer's timer must not end a wait before its time: that looks like a server's fault. */
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, &before);
    int fd = connect_here();
    if (data[1] == 1)
        send_all(fd, upgrade, sizeof upgrade - 1, 1);
    send_all(fd, data + 2, size - 2, data[0] % 8);
    read_for(fd, 1, text, sizeof text);
    answer_jobs();
    read_for(fd, 1, text, sizeof text);
    close(fd);
    check_health();
    answer_jobs();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return 0;
}
