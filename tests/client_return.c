/* client_return.c - a robot's client and what outlives a connection: the server's clock, an
 * observation under way, a refusal, an episode; and servers that send without an end. */
#include "tests/client_server.h"

static const int64_t DAY = 86400 * (int64_t)1000000000;

/* By how much a request's obs_ts is before `clock`; 0: it has none. */
static int64_t age(const char *bytes, size_t n, int64_t clock)
{
    const uint8_t *at = memmem(bytes, n, "obs_ts\xcf", 7);
    uint64_t seen = 0;
    for (int i = 0; at && i < 8; i++)
        seen = seen << 8 | at[7 + i];
    return at ? clock - (int64_t)seen : 0;
}

/* The first connection is to a server whose clock is a day ahead of the next one's; it ends when
 * the client has learned the clock. Who states another day's time is refused. */
static void meet_by_clock(struct server *s, int fd)
{
    static char bytes[2 * ROOM], answer[ROOM];
    bool first = atomic_load(&s->clients) == 1;
    bool on = greet(s, fd);
    for (size_t n; on && (n = request(s, fd, bytes)) > 0;) {
        if (!first)
            await_go(s);
        int64_t clock = tectum_client_now() + (first ? 2 : 1) * DAY, old = age(bytes, n, clock);
        if (old < -DAY / 2 || old > DAY / 2) {
            atomic_fetch_add(&s->refusals, 1);
            give(fd, "\x81\x05wrong", 7);
            return;
        }
        on = give(fd, answer, stamped_reply(answer, clock)) && !(first && old);
        atomic_fetch_add(&s->stamped, !first && old);
    }
}

TEST(a_server_with_another_clock_is_understood)
{
    struct server s;
    struct tectum_client_stats stats;
    begin(&s, &(struct script){.meets = meet_by_clock});
    struct tectum_client *client = robot(&s);
    do {
        observe(client);
        pause_a_bit();
        tectum_client_stats(client, &stats);
    } while (stats.connections < 2);
    CHECK_INT(stats.clock_error, ==, -1);
    atomic_store(&s.go, true);
    while (!atomic_load(&s.stamped) && !atomic_load(&s.refusals)) {
        observe(client);
        pause_a_bit();
    }
    tectum_client_stats(client, &stats);
    CHECK_INT(atomic_load(&s.refusals), ==, 0);
    CHECK(stats.clock_offset > DAY / 2 && stats.clock_offset < DAY + DAY / 2);
    tectum_client_close(&client);
    end(&s);
}

/* The first connection ends without an answer, or with a refusal once `go` is set. */
static void meet_twice(struct server *s, int fd)
{
    static char bytes[2 * ROOM], answer[ROOM];
    size_t n = good_reply(answer);
    bool on = greet(s, fd), first = atomic_load(&s->clients) == 1;
    while (on && request(s, fd, bytes) > 0) {
        if (first && atomic_load(&s->go))
            give(fd, "\x81\x0eno such thing\n", 16);
        on = !first && give(fd, answer, n);
    }
}

TEST(what_was_under_way_is_sent_again)
{
    struct server s;
    struct tectum_error err = {.message = ""};
    begin(&s, &(struct script){.meets = meet_twice});
    struct tectum_client *client = robot_that_waits(&s, 60000);
    observe(client);
    CHECK_INT(tectum_client_ready(client, 20 * (int64_t)1000000000, &err), ==, TECTUM_OK);
    CHECK_INT(atomic_load(&s.requests), ==, 2);
    tectum_client_close(&client);
    end(&s);
}

TEST(what_was_refused_is_told_and_not_sent_again)
{
    struct server s;
    struct tectum_client_stats stats;
    struct tectum_error err = {.message = ""};
    begin(&s, &(struct script){.meets = meet_twice});
    atomic_store(&s.go, true);
    struct tectum_client *client = robot_that_waits(&s, 60000);
    observe(client);
    do {
        pause_a_bit();
        tectum_client_stats(client, &stats);
    } while (stats.connections < 2);
    CHECK_INT(tectum_client_ready(client, 50000000, &err), ==, TECTUM_TIME);
    CHECK(strstr(err.message, "refuses: no such thing") && !strchr(err.message, '\\'));
    CHECK_INT(atomic_load(&s.requests), ==, 1);
    observe(client);
    CHECK_INT(tectum_client_ready(client, 20 * (int64_t)1000000000, &err), ==, TECTUM_OK);
    tectum_client_stats(client, &stats);
    CHECK_STR(stats.message, "");
    tectum_client_close(&client);
    end(&s);
}

static void meet_when_told(struct server *s, int fd)
{
    static char bytes[2 * ROOM], answer[ROOM];
    size_t n = good_reply(answer);
    bool on = greet(s, fd);
    while (on && request(s, fd, bytes) > 0) {
        await_go(s);
        on = give(fd, answer, n);
    }
}

/* The lock of the statistics holds the network's thread between the chunk and its announcement. */
TEST(a_chunk_of_an_episode_that_is_over_makes_nobody_ready)
{
    struct server s;
    struct tectum_client_stats stats;
    struct tectum_error err = {.message = ""};
    double action[4];
    begin(&s, &(struct script){.meets = meet_when_told});
    struct tectum_client *client = robot_that_waits(&s, 60000);
    observe(client);
    while (atomic_load(&s.requests) == 0)
        pause_a_bit();
    pthread_mutex_lock(&client->lock);
    atomic_store(&s.go, true);
    while (tectum_client_next(client, 0, action, 4, NULL) != TECTUM_OK)
        pause_a_bit();
    tectum_client_reset(client, 0); /* takes no lock */
    pthread_mutex_unlock(&client->lock);
    do {
        pause_a_bit();
        tectum_client_stats(client, &stats);
    } while (stats.replies == 0);
    CHECK_INT(tectum_client_ready(client, 0, &err), ==, TECTUM_TIME);
    observe(client);
    CHECK_INT(tectum_client_ready(client, INT64_MAX, &err), ==, TECTUM_OK);
    tectum_client_close(&client);
    end(&s);
}

/* --- who sends without an end -------------------------------------------------------------------
 */

enum { BLOCKS = 16384, DRIPS = 2000 };

/* Blocks of `piece`, which comes behind `first`, as long as the client is there. */
static void flood(struct server *s, int fd, const char *first, const char *piece, size_t n)
{
    static char bytes[2 * ROOM], block[4096];
    for (size_t at = 0; at + n <= sizeof block; at += n)
        memcpy(block + at, piece, n);
    bool on = greet(s, fd) && request(s, fd, bytes) > 0 && give(fd, first, n);
    while (on && atomic_load(&s->blocks) < BLOCKS) {
        on = give(fd, block, sizeof block / n * n);
        atomic_fetch_add(&s->blocks, 1);
    }
}

static void meet_with_messages(struct server *s, int fd)
{
    flood(s, fd, "\x82\x01\x80", "\x82\x01\x80", 3);
}

static void meet_with_pieces(struct server *s, int fd)
{
    flood(s, fd, "\x02\x00", "\x00\x00", 2);
}

TEST(a_client_ends_while_a_server_floods_it)
{
    void (*const floods[])(struct server *, int) = {meet_with_messages, meet_with_pieces};
    for (int i = 0; i < 2; i++) {
        struct server s;
        begin(&s, &(struct script){.meets = floods[i]});
        struct tectum_client *client = robot_that_waits(&s, 3600000);
        observe(client);
        while (atomic_load(&s.blocks) < 2)
            pause_a_bit();
        tectum_client_close(&client);
        CHECK_INT(atomic_load(&s.blocks), <, BLOCKS);
        end(&s);
    }
}

/* Messages that are no reply, one after the other. */
static void meet_with_drips(struct server *s, int fd)
{
    static char bytes[2 * ROOM];
    struct pollfd stop = {.fd = s->end[0], .events = POLLIN};
    bool on = greet(s, fd) && request(s, fd, bytes) > 0;
    while (on && atomic_load(&s->blocks) < DRIPS) {
        on = give(fd, "\x82\x01\x80", 3) && poll(&stop, 1, 10) == 0;
        atomic_fetch_add(&s->blocks, 1);
    }
}

TEST(messages_that_are_no_reply_do_not_prolong_its_time)
{
    struct server s;
    struct tectum_client_stats stats;
    begin(&s, &(struct script){.meets = meet_with_drips});
    struct tectum_client *client = robot(&s);
    observe(client);
    do {
        pause_a_bit();
        tectum_client_stats(client, &stats);
    } while (stats.failures == 0);
    CHECK_INT(atomic_load(&s.blocks), <, DRIPS);
    CHECK(strstr(stats.message, "no answer within 200 ms"));
    tectum_client_close(&client);
    end(&s);
}

TAP_MAIN
