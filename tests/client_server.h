/* client_server.h - a server that says what a test's script says, and a robot's client for it. */
#ifndef TEC_TESTS_CLIENT_SERVER_H
#define TEC_TESTS_CLIENT_SERVER_H

#include "tests/tap.h"
#include "tools/client/link.h"
#include "tools/serve/reply.h"

#include "tectum_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ROOM = 1 << 16, ROWS = 4, COLUMNS = 2, MANY = 3 };

#define SWITCHED \
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
#define METADATA "\x82\x01\x80"

struct server;

/* What a server sends to each client: at once, behind the first bytes, and behind those of each
 * request; and whether it hangs up afterwards. */
struct script {
    const char *name;
    const char *first, *metadata, *answer;
    size_t n_first, n_metadata, n_answer;
    bool hangs_up;
    void (*meets)(struct server *s, int fd); /* instead of all that; NULL: none */
};

struct server {
    struct script script;
    int listener, port, end[2];
    _Atomic int clients, requests, pongs;
    _Atomic int stamped, refusals, blocks; /* of servers with a `meets` */
    _Atomic bool go;                       /* they may answer now */
    pthread_t thread;
};

static bool give(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        bytes += sent;
        n -= (size_t)sent;
    }
    return true;
}

/* Something came; false: nothing more will, or the test ends. */
static bool heard(struct server *s, int fd, char *bytes, ssize_t *n)
{
    struct pollfd of[2] = {{.fd = fd, .events = POLLIN}, {.fd = s->end[0], .events = POLLIN}};
    if (poll(of, 2, -1) < 0 || of[1].revents)
        return false;
    *n = recv(fd, bytes, ROOM, 0);
    return *n > 0;
}

static void meet(struct server *s, int fd)
{
    static char bytes[ROOM];
    const struct script *c = &s->script;
    ssize_t n = 0;
    bool on = heard(s, fd, bytes, &n) && give(fd, c->first, c->n_first) &&
              give(fd, c->metadata, c->n_metadata) && !(c->hangs_up && !c->n_answer);
    while (on && heard(s, fd, bytes, &n)) {
        if ((uint8_t)bytes[0] == 0x8a)
            atomic_fetch_add(&s->pongs, 1);
        else
            atomic_fetch_add(&s->requests, 1);
        on = give(fd, c->answer, c->n_answer) && !c->hangs_up;
    }
}

static void *serve(void *server)
{
    struct server *s = server;
    struct pollfd of[2] = {{.fd = s->listener, .events = POLLIN},
                           {.fd = s->end[0], .events = POLLIN}};
    while (poll(of, 2, -1) > 0 && !of[1].revents) {
        int fd = accept(s->listener, NULL, NULL);
        atomic_fetch_add(&s->clients, 1);
        (s->script.meets ? s->script.meets : meet)(s, fd);
        close(fd);
    }
    return NULL;
}

static void begin(struct server *s, const struct script *script)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    *s = (struct server){.script = *script};
    s->listener = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(bind(s->listener, (struct sockaddr *)&at, size) == 0 && listen(s->listener, 8) == 0);
    REQUIRE(getsockname(s->listener, (struct sockaddr *)&at, &size) == 0 && pipe(s->end) == 0);
    s->port = ntohs(at.sin_port);
    REQUIRE(pthread_create(&s->thread, NULL, serve, s) == 0);
}

static void end(struct server *s)
{
    close(s->end[1]); /* the other end hears it */
    pthread_join(s->thread, NULL);
    close(s->end[0]);
    close(s->listener);
}

static struct tectum_client *robot_that_waits(const struct server *s, int reply_ms)
{
    const struct tectum_client_options options = {
        .rate_hz = 20, .reply_ms = reply_ms, .max_rows = 8, .max_columns = 4, .hold_ms = -1};
    struct tectum_client *client = NULL;
    struct tectum_error err = {.message = ""};
    char url[64];
    snprintf(url, sizeof url, "ws://127.0.0.1:%d", s->port);
    REQUIRE(tectum_client_open(&client, url, &options, &err) == TECTUM_OK);
    return client;
}

__attribute__((unused)) static struct tectum_client *robot(const struct server *s)
{
    return robot_that_waits(s, 200);
}

static void observe(struct tectum_client *client)
{
    const float state[2] = {1.0F, 2.0F};
    const struct tectum_value value = {"state", TECTUM_TYPE_F32, 1, {2}, state, sizeof state};
    CHECK_INT(tectum_client_observe(client, &value, 1, 0, NULL, NULL), ==, TECTUM_OK);
}

static void pause_a_bit(void)
{
    poll(NULL, 0, 5);
}

/* A reply of the server's own packer, behind the head of a frame; `clock` 0: without its times. */
static size_t stamped_reply(char *to, int64_t clock)
{
    static const double values[ROWS * COLUMNS] = {1, 2, 3, 4, 5, 6, 7, 8};
    const struct tec_reply_timing timing = {.received = clock, .left = clock};
    const struct tec_reply r = {.actions = values,
                                .rows = ROWS,
                                .columns = COLUMNS,
                                .extended = clock != 0,
                                .timing = clock ? &timing : NULL};
    struct tec_reply_buffer out = {.data = (uint8_t *)to + 4, .room = ROOM - 4};
    tec_reply_pack(&out, &r);
    memcpy(to, "\x82\x7e", 2);
    to[2] = (char)(out.n >> 8);
    to[3] = (char)out.n;
    return out.n + 4;
}

__attribute__((unused)) static size_t good_reply(char *to)
{
    return stamped_reply(to, 0);
}

__attribute__((unused)) static bool greet(struct server *s, int fd)
{
    static char bytes[ROOM];
    ssize_t n = 0;
    return heard(s, fd, bytes, &n) && give(fd, SWITCHED METADATA, sizeof SWITCHED METADATA - 1);
}

/* One whole frame; 0: none comes. */
__attribute__((unused)) static size_t request(struct server *s, int fd, char bytes[2 * ROOM])
{
    size_t n = 0, whole = 8;
    for (ssize_t got = 0; n < whole && n < ROOM; n += (size_t)got) {
        if (!heard(s, fd, bytes + n, &got))
            return 0;
        const uint8_t *head = (const uint8_t *)bytes;
        size_t length = head[1] & 127;
        whole = n + (size_t)got < 8 ? 8
                : length == 126     ? (size_t)head[2] * 256 + head[3] + 8
                                    : length + 6;
    }
    atomic_fetch_add(&s->requests, 1);
    return n;
}

__attribute__((unused)) static void await_go(struct server *s)
{
    struct pollfd stop = {.fd = s->end[0], .events = POLLIN};
    while (!atomic_load(&s->go) && poll(&stop, 1, 2) == 0)
        continue;
}

#endif
