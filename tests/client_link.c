/* client_link.c - a robot's client against servers that lie: what they send, and where they stop.
 * The robot keeps its turn, and the client ends when it is told to. */
#include "tests/tap.h"
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

/* What a server sends to each client: at once, behind the first bytes, and behind those of each
 * request; and whether it hangs up afterwards. */
struct script {
    const char *name;
    const char *first, *metadata, *answer;
    size_t n_first, n_metadata, n_answer;
    bool hangs_up;
};

struct server {
    struct script script;
    int listener, port, end[2];
    _Atomic int clients, requests, pongs;
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
        meet(s, fd);
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

static struct tectum_client *robot(const struct server *s)
{
    const struct tectum_client_options options = {
        .rate_hz = 20, .reply_ms = 200, .max_rows = 8, .max_columns = 4, .hold_ms = -1};
    struct tectum_client *client = NULL;
    struct tectum_error err = {.message = ""};
    char url[64];
    snprintf(url, sizeof url, "ws://127.0.0.1:%d", s->port);
    REQUIRE(tectum_client_open(&client, url, &options, &err) == TECTUM_OK);
    return client;
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

/* A reply of the server's own packer, behind the head of a frame. */
static size_t good_reply(char *to)
{
    static const double values[ROWS * COLUMNS] = {1, 2, 3, 4, 5, 6, 7, 8};
    const struct tec_reply r = {.actions = values, .rows = ROWS, .columns = COLUMNS};
    struct tec_reply_buffer out = {.data = (uint8_t *)to + 4, .room = ROOM - 4};
    tec_reply_pack(&out, &r);
    memcpy(to, "\x82\x7e", 2);
    to[2] = (char)(out.n >> 8);
    to[3] = (char)out.n;
    return out.n + 4;
}

#define BYTES(text) text, sizeof text - 1

static void attacked(const struct script *script)
{
    struct server s;
    struct tectum_client_stats stats;
    double action[4];
    begin(&s, script);
    struct tectum_client *client = robot(&s);
    do {
        observe(client);
        CHECK_INT(tectum_client_next(client, 0, action, 4, NULL), ==, TECTUM_TIME);
        pause_a_bit();
        tectum_client_stats(client, &stats);
    } while (stats.failures < MANY);
    CHECK_INT(stats.replies, ==, 0);
    CHECK(stats.message[0]);
    printf("# %s: %s\n", script->name, stats.message);
    tectum_client_close(&client);
    CHECK(!client);
    end(&s);
}

static struct script script(const char *name, const char *answer, size_t n, bool hangs_up)
{
    return (struct script){.name = name,
                           .first = SWITCHED,
                           .n_first = sizeof SWITCHED - 1,
                           .metadata = METADATA,
                           .n_metadata = sizeof METADATA - 1,
                           .answer = answer,
                           .n_answer = n,
                           .hangs_up = hangs_up};
}

TEST(handshakes_that_are_none)
{
    static const char *const firsts[] = {"", "HTTP/1.1 500 No\r\n\r\n", "HTTP/1.1 101 S\r\n",
                                         "\x82\x01\x80\x82\x01\x80\r\n\r\n"};
    for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; i++) {
        const struct script c = {.name = "handshake",
                                 .first = firsts[i],
                                 .n_first = strlen(firsts[i]),
                                 .hangs_up = true};
        attacked(&c);
    }
    static char endless[4096];
    memset(endless, 'x', sizeof endless);
    attacked(
        &(struct script){.name = "an endless head", .first = endless, .n_first = sizeof endless});
}

TEST(frames_that_are_none)
{
    const struct {
        const char *name, *bytes;
        size_t n;
    } wrong[] = {{"masked", BYTES("\x82\x81\x01\x02\x03\x04\x05")},
                 {"reserved bits", BYTES("\xf2\x01\x80")},
                 {"2^63 bytes", BYTES("\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff")},
                 {"a gigabyte", BYTES("\x82\x7f\x00\x00\x00\x00\x40\x00\x00\x00")},
                 {"cut in a head", BYTES("\x82")},
                 {"cut in a message", BYTES("\x82\x7e\x40\x00\x81")},
                 {"close", BYTES("\x88\x02\x03\xf3")},
                 {"no msgpack", BYTES("\x82\x03\xc1\xc1\xc1")},
                 {"no map", BYTES("\x82\x01\x2a")},
                 {"deep", BYTES("\x82\x08\x81\x91\x91\x91\x91\x91\x91\x91")},
                 {"a refusal", BYTES("\x81\x05wrong")}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct script c = script(wrong[i].name, wrong[i].bytes, wrong[i].n, true);
        attacked(&c);
    }
}

TEST(pieces_without_an_end)
{
    enum { PIECES = 40000 };
    static char pieces[2 + 2 * PIECES];
    for (int i = 0; i < PIECES; i++)
        memcpy(pieces + 2 * i, "\x00\x00", 2);
    struct script c = script("pieces without bytes", pieces, sizeof pieces, true);
    attacked(&c);
}

TEST(a_reply_that_stops_half_way)
{
    static char bytes[ROOM];
    size_t n = good_reply(bytes);
    struct script hangs = script("half a reply, and the end", bytes, n / 2, true);
    attacked(&hangs);
    struct script stalls = script("half a reply, and silence", bytes, n / 2, false);
    attacked(&stalls);
    struct script silent = script("silence", "", 0, false);
    attacked(&silent);
}

TEST(a_good_server_is_heard_through_pings_and_texts)
{
    static char bytes[ROOM];
    memcpy(bytes, "\x89\x01x", 3);                       /* a ping */
    memcpy(bytes + 3, "\x82\x09\x81\xa6tectum\x80", 11); /* a text's message, which is no reply */
    size_t n = 14;
    n += good_reply(bytes + n);
    struct server s;
    struct tectum_client_action told = {.source = TECTUM_CLIENT_NONE};
    struct tectum_error err = {.message = ""};
    double action[4] = {0};
    struct script c = script("good", bytes, n, false);
    begin(&s, &c);
    struct tectum_client *client = robot(&s);
    CHECK_INT(tectum_client_ready(client, 1, &err), ==, TECTUM_TIME);
    observe(client);
    while (tectum_client_ready(client, 100000000, &err) != TECTUM_OK)
        observe(client);
    int64_t now = tectum_client_now();
    CHECK_INT(tectum_client_next(client, now, action, 1, &told), ==, TECTUM_INVALID);
    CHECK_INT(tectum_client_next(client, now, action, 4, &told), ==, TECTUM_OK);
    CHECK_INT(told.columns, ==, COLUMNS);
    while (atomic_load(&s.pongs) == 0)
        pause_a_bit();
    tectum_client_reset(client, 0);
    CHECK_INT(tectum_client_next(client, 0, action, 4, &told), ==, TECTUM_TIME);
    CHECK_INT(told.source, ==, TECTUM_CLIENT_NONE);
    tectum_client_close(&client);
    tectum_client_close(&client);
    tectum_client_close(NULL);
    end(&s);
}

TEST(a_client_without_a_server_ends)
{
    struct tectum_error err = {.message = ""};
    struct server s;
    struct script c = script("nobody", "", 0, false);
    begin(&s, &c);
    end(&s); /* its port is nobody's now */
    struct tectum_client *client = robot(&s);
    observe(client);
    while (tectum_client_ready(client, 1000000, &err) != TECTUM_TIME ||
           !strstr(err.message, "refused"))
        pause_a_bit();
    tectum_client_close(&client);
}

TEST(wrong_options_open_nothing)
{
    const struct {
        const char *url;
        struct tectum_client_options o;
        const char *word;
    } wrong[] = {{"http://robot", {.rate_hz = 20}, "a URL"},
                 {"wss://robot", {.rate_hz = 20}, "no encryption"},
                 {NULL, {.rate_hz = 20}, "url"},
                 {"ws://robot", {.rate_hz = 0}, "rate_hz"},
                 {"ws://robot", {.rate_hz = 20, .key = ""}, "key"},
                 {"ws://robot", {.rate_hz = 20, .deadline_ms = -1}, "deadline_ms"},
                 {"ws://robot", {.rate_hz = 20, .reply_ms = -1}, "reply_ms"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct tectum_client *client = NULL;
        struct tectum_error err = {.message = ""};
        CHECK_INT(tectum_client_open(&client, wrong[i].url, &wrong[i].o, &err), ==, TECTUM_INVALID);
        CHECK(!client && strstr(err.message, wrong[i].word));
    }
}

TAP_MAIN
