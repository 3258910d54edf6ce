/* client_link.c - a robot's client against servers that lie: what they send, and where they stop.
 * The robot keeps its turn, and the client ends when it is told to. */
#include "tests/client_server.h"

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
    CHECK_INT(told.columns, ==, COLUMNS);
    told.columns = 0;
    CHECK_INT(tectum_client_next(client, now, action, 4, &told), ==, TECTUM_OK);
    CHECK_INT(told.columns, ==, COLUMNS);
    while (atomic_load(&s.pongs) == 0)
        pause_a_bit();
    tectum_client_reset(client, 0);
    CHECK_INT(tectum_client_next(client, 0, action, 4, &told), ==, TECTUM_TIME);
    CHECK_INT(told.source, ==, TECTUM_CLIENT_NONE);
    observe(client);
    CHECK_INT(tectum_client_ready(client, INT64_MAX, &err), ==, TECTUM_OK);
    tectum_client_close(&client);
    tectum_client_close(&client);
    tectum_client_close(NULL);
    end(&s);
}

/* The line of a handshake that names the server of a URL. */
static void host_of(char line[200], const char *url)
{
    struct tec_client_socket client;
    struct tec_error err;
    char head[2048] = "";
    int fd[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0);
    REQUIRE(give(fd[1], BYTES(SWITCHED)));
    REQUIRE(tec_client_connect_over(&client, fd[0], url, NULL, fd[1], &err) == TEC_OK);
    REQUIRE(recv(fd[1], head, sizeof head - 1, 0) > 0);
    const char *at = strstr(head, "\r\nHost: ");
    REQUIRE(at != NULL);
    snprintf(line, 200, "%.*s", (int)strcspn(at + 8, "\r"), at + 8);
    tec_client_close(&client);
    close(fd[1]);
}

TEST(an_address_with_colons_is_in_brackets)
{
    char line[200];
    host_of(line, "ws://[::1]:9000/arm");
    CHECK_STR(line, "[::1]:9000");
    host_of(line, "ws://[fe80::1%eth0]");
    CHECK_STR(line, "[fe80::1]:8000");
    host_of(line, "ws://robot:9000");
    CHECK_STR(line, "robot:9000");
    host_of(line, "ws://10.0.0.2/arm");
    CHECK_STR(line, "10.0.0.2:8000");
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
                 {"wss://", {.rate_hz = 20}, "a URL"},
                 {NULL, {.rate_hz = 20}, "url"},
                 {"ws://robot", {.rate_hz = 0}, "rate_hz"},
                 {"ws://robot", {.rate_hz = 20, .key = ""}, "key"},
                 {"ws://robot", {.rate_hz = 20, .left_input = "tectum"}, "tectum"},
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
