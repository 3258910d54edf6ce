/* memory_remote.c - tests of the remote tier: stores of several processes share KV, and a server
 * that is away, dies, is full or lies costs time at most.
 *
 * The test starts its servers itself, on sockets in a folder of their own. */
#include "graph/memory/prefetch.h"
#include "tests/memory_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

/* The other process: its segments have other numbers and versions. Returns how many were right. */
static int other(int wake)
{
    char byte;
    struct tec_groups_change change;
    if (read(wake, &byte, 1) != 1)
        return 0;
    struct tec_store *s = open_at(address, NULL, 0);
    uint32_t segment[SEGMENTS];
    int good = 0;
    here(s);
    for (uint32_t i = 0; i < SEGMENTS; i++) {
        (void)put(s, i, 7);
        segment[i] = put(s, i, 0);
    }
    (void)put(s, 100, 0); /* nobody computed that one */
    good += look(s) == SEGMENTS;
    for (uint32_t i = 0; i < SEGMENTS; i++)
        good += right(s, segment[i], i, 0, false);
    REQUIRE(tec_store_remove(s, "u100", &change, NULL) == TEC_OK);
    REQUIRE(tec_store_step(s, 9, &change, NULL) == TEC_OK);
    good += change.n_promoted == 2;
    good += look(s) == SEGMENTS; /* jointly */
    for (uint32_t i = 0; i < SEGMENTS; i++)
        good += right(s, segment[i], i, 0, true);
    struct tec_kv *kv = NULL;
    good += tec_store_pin(s, segment[0], &kv, NULL) == TEC_OK &&
            tec_store_kv_tier(kv) == TEC_KEPT_REMOTE;
    tec_store_drop(s, kv);
    tec_store_close(s);
    return good;
}

TEST(two_processes_share_what_either_computed)
{
    struct tec_groups_change change;
    int wake[2];
    if (!program())
        SKIP("neither valkey-server nor redis-server is installed");
    folder_make();
    REQUIRE(pipe(wake) == 0);
    pid_t child = fork();
    if (child == 0)
        _exit(other(wake[0]));
    server_start("0", "100mb");
    struct tec_store *s = open_at(address, NULL, 1 << 24);
    uint32_t segment[SEGMENTS];
    for (uint32_t i = 0; i < SEGMENTS; i++)
        segment[i] = put(s, i, 0);
    for (uint32_t i = 0; i < SEGMENTS; i++)
        give(s, segment[i], i, 0);
    REQUIRE(tec_store_step(s, 2, &change, NULL) == TEC_OK);
    for (uint32_t i = 0; i < SEGMENTS; i++)
        give(s, segment[i], i, 0); /* jointly */
    AWAIT(s, sent, 2 * SEGMENTS);
    REQUIRE(write(wake[1], "x", 1) == 1);
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), ==, 2 * SEGMENTS + 4);
    CHECK_INT(events_away, ==, 0);
    CHECK_INT(tec_store_counts(s).remote.sent_bytes, ==, 2 * SEGMENTS * LAYERS * PIECE);
    tec_store_close(s);
    close(wake[0]);
    close(wake[1]);
    server_kill();
    CHECK_INT(heap.live, ==, 0);
    folder_remove();
}

TEST(a_server_that_comes_late_gets_what_was_computed)
{
    if (!program())
        SKIP("neither valkey-server nor redis-server is installed");
    folder_make();
    struct tec_store *s = open_at(address, NULL, 1 << 24);
    uint32_t segment = put(s, 1, 0);
    AWAIT(s, away, 1);
    nap_ms(300); /* several tries, one word */
    printf("# %s\n", heard());
    CHECK_INT(events_away, ==, 1);
    CHECK_INT(tec_store_counts(s).remote.tries, >, 2);
    int64_t begin = now_ms();
    CHECK_INT(look(s), ==, 0);
    give(s, segment, 1, 0);
    CHECK_INT(now_ms() - begin, <, 2000); /* nobody waits for it */
    CHECK(right(s, segment, 1, 0, false));
    server_start("0", "100mb");
    AWAIT(s, sent, 1);
    CHECK_INT(events_here, ==, 1);
    printf("# %s\n", heard());
    server_kill();
    server_start("0", "100mb"); /* another one, empty; the old connection is dead */
    uint32_t second = put(s, 3, 0);
    (void)look(s);
    AWAIT(s, away, 2);
    here(s);
    CHECK_INT(look(s), ==, 0);
    give(s, second, 3, 0);
    AWAIT(s, sent, 2);
    CHECK(right(s, segment, 1, 0, false));
    tec_store_close(s);
    server_kill();
    CHECK_INT(heap.live, ==, 0);
    folder_remove();
}

static _Alignas(64) unsigned char room[PIECES][PIECE];

static int compute_ms; /* of a layer */

/* A server that has all segments, and the store that sent them. */
static struct tec_store *fill_server(void)
{
    folder_make();
    server_start("0", "100mb");
    struct tec_store *writer = open_at(address, NULL, 1 << 24);
    for (uint32_t i = 0; i < SEGMENTS; i++)
        give(writer, put(writer, i, 0), i, 0);
    AWAIT(writer, sent, SEGMENTS);
    return writer;
}

/* A forward of a prefetch whose server is killed before layer `when`; how many layers were ready.
 */
static int forward(struct tec_store *s, struct tec_prefetch *prefetch, const uint32_t *segment,
                   int when, enum tec_status *status)
{
    unsigned char *staging[PIECES], first[SEGMENTS] = {0};
    struct tec_kv *kv[SEGMENTS];
    struct tec_prefetch_result result;
    int ready = 0;
    for (uint32_t i = 0; i < PIECES; i++)
        staging[i] = room[i];
    for (uint32_t i = 0; i < SEGMENTS; i++)
        REQUIRE(tec_store_pin(s, segment[i], &kv[i], NULL) == TEC_OK);
    const struct tec_prefetch_forward f = {.layers = LAYERS,
                                           .segments = SEGMENTS,
                                           .overlap = TEC_OVERLAP_BOUNDED,
                                           .kv = kv,
                                           .staging = staging,
                                           .first = first};
    REQUIRE(tec_prefetch_begin(prefetch, &f, NULL) == TEC_OK);
    for (int l = 0; l < LAYERS; l++) {
        if (l == when)
            server_kill();
        if (!tec_prefetch_wait(prefetch, l))
            break;
        ready++;
        tec_prefetch_started(prefetch, l);
        for (uint32_t u = 0; u < SEGMENTS; u++)
            CHECK_INT(room[l * SEGMENTS + (int)u][5], ==, byte_of(u, 0, (uint32_t)l, false));
        if (l + 1 < LAYERS)
            tec_prefetch_known(prefetch, l + 1, first);
        nap_ms(compute_ms);
        tec_prefetch_ended(prefetch, l);
    }
    *status = tec_prefetch_finish(prefetch, &result, NULL);
    for (uint32_t i = 0; i < SEGMENTS; i++)
        tec_store_drop(s, kv[i]);
    return ready;
}

TEST(a_server_killed_in_the_middle_of_a_load_costs_that_load)
{
    const struct tec_prefetch_options options = {
        .layers = LAYERS,
        .segments = SEGMENTS,
        .limit = {[TEC_KEPT_REMOTE] = {.bytes_per_sec = 8000000}}}; /* 8 ms a layer */
    struct tec_prefetch *prefetch = NULL;
    enum tec_status status;
    uint32_t segment[SEGMENTS];
    if (!program())
        SKIP("neither valkey-server nor redis-server is installed");
    struct tec_store *writer = fill_server();
    struct tec_store *s = open_at(address, NULL, 0); /* has nothing but the server */
    here(s);
    for (uint32_t i = 0; i < SEGMENTS; i++)
        segment[i] = put(s, i, 0);
    CHECK_INT(look(s), ==, SEGMENTS);
    REQUIRE(tec_prefetch_create(&prefetch, s, &options, &heap, NULL) == TEC_OK);
    CHECK_INT(forward(s, prefetch, segment, -1, &status), ==, LAYERS);
    CHECK_INT(status, ==, TEC_OK);
    CHECK_INT(tec_prefetch_counts(prefetch).bytes[TEC_KEPT_REMOTE], ==, PIECES * PIECE);
    CHECK_INT(forward(s, prefetch, segment, 2, &status), <, LAYERS);
    CHECK_INT(status, ==, TEC_NOT_FOUND);
    printf("# %s\n", heard());
    CHECK_INT(tec_store_counts(s).remote.away, ==, 1);
    server_start("0", "100mb"); /* it has forgotten all */
    here(s);
    uint32_t missing[SEGMENTS], n = tec_store_missing(s, missing, SEGMENTS);
    CHECK_INT(n, >, 0);
    (void)look(s); /* finds nothing; others still believe in theirs until they read */
    tec_prefetch_destroy(prefetch);
    tec_store_close(s);
    tec_store_close(writer);
    server_kill();
    CHECK_INT(heap.live, ==, 0);
    folder_remove();
}

/* A server behind a slow link: every answer takes so long, but none too long by itself. */
static _Atomic int delay_ms;
static int way_in;

static bool pass(int from, int to, int wait_ms)
{
    static _Thread_local char bytes[1 << 16];
    ssize_t n = recv(from, bytes, sizeof bytes, 0);
    nap_ms(n > 0 ? wait_ms : 0);
    return n > 0 && send(to, bytes, (size_t)n, MSG_NOSIGNAL) == n;
}

static void *pass_both(void *user)
{
    int client = (int)(intptr_t)user, real = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    bool open = connect(real, (struct sockaddr *)&a, sizeof a) == 0;
    while (open) {
        struct pollfd p[] = {{client, POLLIN, 0}, {real, POLLIN, 0}};
        if (poll(p, 2, -1) < 0)
            continue;
        open = (!p[0].revents || pass(client, real, 0)) &&
               (!p[1].revents || pass(real, client, atomic_load(&delay_ms)));
    }
    close(client);
    close(real);
    return NULL;
}

/* Accept clients, each by a thread of its own, until no more are let in. */
static void let_in(int from, void *(*one)(void *user))
{
    pthread_t threads[512];
    int n = 0;
    for (int to; n < 512 && (to = accept(from, NULL, NULL)) >= 0; n++)
        pthread_create(&threads[n], NULL, one, (void *)(intptr_t)to);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

static void *slow_way(void *user)
{
    (void)user;
    let_in(way_in, pass_both);
    return NULL;
}

static pthread_t way_open(char slow[128])
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    pthread_t thread;
    snprintf(a.sun_path, sizeof a.sun_path, "%s/slow", folder);
    snprintf(slow, 128, "unix:%s", a.sun_path);
    way_in = socket(AF_UNIX, SOCK_STREAM, 0);
    REQUIRE(bind(way_in, (struct sockaddr *)&a, sizeof a) == 0 && listen(way_in, 64) == 0);
    REQUIRE(pthread_create(&thread, NULL, slow_way, NULL) == 0);
    return thread;
}

static void way_close(pthread_t thread, const char *slow)
{
    shutdown(way_in, SHUT_RDWR);
    close(way_in);
    pthread_join(thread, NULL);
    unlink(slow + strlen("unix:"));
}

/* A server that was late is not asked for a while: what it alone has is missing, and afterwards all
 * is as before. */
static void check_left_alone(struct tec_store *s)
{
    struct tec_store_segment_view view;
    struct tec_kv *kv = NULL;
    uint32_t missing[SEGMENTS];
    struct tec_store_counts c = tec_store_counts(s);
    int64_t begin = now_ms();
    CHECK_INT(c.remote.late, ==, 1);
    CHECK_INT(c.remote.away, ==, 1);
    CHECK(!c.remote.here);
    CHECK(strstr(heard(), "keys and values did not come in time"));
    CHECK(strstr(heard(), "tried again in 400 ms"));
    CHECK_INT(tec_store_missing(s, missing, SEGMENTS), ==, SEGMENTS);
    CHECK(tec_store_view(s, missing[0], &view) && !view.has_kv);
    CHECK_INT(tec_store_pin(s, missing[0], &kv, NULL), ==, TEC_NOT_FOUND);
    here(s);
    CHECK_INT(now_ms() - begin, >=, 300);
}

TEST(a_server_that_is_slow_costs_a_forward_its_deadline)
{
    const struct tec_prefetch_options options = {
        .layers = LAYERS, .segments = SEGMENTS, .remote_ns = 100000000};
    struct tec_prefetch *prefetch = NULL;
    enum tec_status status;
    uint32_t segment[SEGMENTS];
    char slow[128];
    if (!program())
        SKIP("neither valkey-server nor redis-server is installed");
    struct tec_store *writer = fill_server();
    tec_store_close(writer);
    pthread_t thread = way_open(slow);
    struct tec_store *s = open_at(slow, NULL, 0);
    here(s);
    for (uint32_t i = 0; i < SEGMENTS; i++)
        segment[i] = put(s, i, 0);
    CHECK_INT(look(s), ==, SEGMENTS);
    REQUIRE(tec_prefetch_create(&prefetch, s, &options, &heap, NULL) == TEC_OK);
    atomic_store(&delay_ms, 30); /* 32 pieces: a second */
    int64_t begin = now_ms();
    CHECK_INT(forward(s, prefetch, segment, -1, &status), <, LAYERS);
    CHECK_INT(status, ==, TEC_NOT_FOUND);
    printf("# void after %d ms: %s\n", (int)(now_ms() - begin), heard());
    CHECK_INT(now_ms() - begin, <, 400);
    atomic_store(&delay_ms, 0);
    check_left_alone(s);
    (void)look(s);
    CHECK_INT(forward(s, prefetch, segment, -1, &status), ==, LAYERS);
    CHECK_INT(status, ==, TEC_OK);
    atomic_store(&delay_ms, 5); /* 40 ms a layer, of which it waits for the first alone */
    compute_ms = 80;
    begin = now_ms();
    CHECK_INT(forward(s, prefetch, segment, -1, &status), ==, LAYERS);
    CHECK_INT(status, ==, TEC_OK);
    CHECK_INT(now_ms() - begin, >=, LAYERS * compute_ms);
    compute_ms = 0;
    CHECK_INT(tec_store_counts(s).remote.late, ==, 1);
    tec_prefetch_destroy(prefetch);
    tec_store_close(s);
    way_close(thread, slow);
    server_kill();
    CHECK_INT(heap.live, ==, 0);
    folder_remove();
}

TEST(a_full_server_loses_nothing)
{
    enum { MANY = 128 };
    if (!program())
        SKIP("neither valkey-server nor redis-server is installed");
    folder_make();
    server_start("0", "3mb");
    char file[64];
    snprintf(file, sizeof file, "%s/store", folder);
    struct tec_store *s = open_at(address, file, 1 << 20); /* room for 31 of the 33 KB */
    uint32_t segment[MANY];
    here(s);
    for (uint32_t i = 0; i < MANY; i++) {
        segment[i] = put(s, i, 0);
        give(s, segment[i], i, 0);
    }
    int64_t until = now_ms() + 20000;
    struct tec_remote_counts c = tec_store_counts(s).remote;
    while (c.sent + c.refused < MANY && now_ms() < until) {
        nap_ms(2);
        c = tec_store_counts(s).remote;
    }
    printf("# %lld taken, %lld refused\n", (long long)c.sent, (long long)c.refused);
    CHECK(c.sent > 0 && c.refused > 0 && c.sent + c.refused == MANY);
    CHECK(c.here && c.away == 0);
    for (uint32_t i = 0; i < MANY; i++)
        CHECK(right(s, segment[i], i, 0, false));
    CHECK_INT(look(s), ==, 0); /* nothing is missing */
    tec_store_close(s);
    server_kill();
    unlink(file);
    CHECK_INT(heap.live, ==, 0);
    folder_remove();
}

TEST(what_a_server_alone_had_can_be_kept)
{
    if (!program())
        SKIP("neither valkey-server nor redis-server is installed");
    folder_make();
    char port[8], tcp[40], file[64];
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    int probe = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(bind(probe, (struct sockaddr *)&a, sizeof a) == 0 &&
            getsockname(probe, (struct sockaddr *)&a, &size) == 0);
    close(probe);
    snprintf(port, sizeof port, "%u", ntohs(a.sin_port));
    snprintf(tcp, sizeof tcp, "redis://127.0.0.1:%s", port);
    snprintf(file, sizeof file, "%s/store", folder);
    server_start(port, "100mb");
    struct tec_store *writer = open_at(tcp, NULL, 1 << 20), *s = open_at(tcp, file, 1 << 20);
    struct tec_kv *kv = NULL;
    here(writer);
    here(s);
    give(writer, put(writer, 2, 0), 2, 0);
    AWAIT(writer, sent, 1);
    uint32_t segment = put(s, 2, 0);
    CHECK_INT(look(s), ==, 1);
    REQUIRE(tec_store_pin(s, segment, &kv, NULL) == TEC_OK);
    CHECK_INT(tec_store_warm(s, kv, NULL), ==, TEC_OK);
    CHECK_INT(tec_store_kv_tier(kv), ==, TEC_KEPT_RAM);
    tec_store_drop(s, kv);
    server_kill();
    CHECK(right(s, segment, 2, 0, false));
    tec_store_close(s);
    s = open_at(tcp, file, 0); /* the server is away: it is in the file */
    REQUIRE(store_find(s, "u2", &segment) == TEC_OK);
    CHECK(right(s, segment, 2, 0, false));
    tec_store_close(s);
    tec_store_close(writer);
    unlink(file);
    CHECK_INT(heap.live, ==, 0);
    folder_remove();
}

/* A false server: it answers PING and lengths as it should, and reads as `kind` says. */

enum lie {
    SHORT,
    LONG,
    ENDLESS,
    LIST,
    NESTED,
    NUMBER,
    NIL,
    REFUSAL,
    NOISE,
    BYTES,
    SILENCE,
    DRIP,
    HANGUP,
    LIES
};

static const char *const lies[LIES] = {"short",   "long", "endless", "list",  "nested",
                                       "number",  "nil",  "refusal", "noise", "bytes",
                                       "silence", "drip", "hangup"};
static _Atomic int lie;
static int listener;

static void say(int to, const void *bytes, size_t n)
{
    (void)!send(to, bytes, n, MSG_NOSIGNAL);
}

static void text(int to, const char *s)
{
    say(to, s, strlen(s));
}

static void say_piece(int to, size_t claimed, size_t real)
{
    static const unsigned char bytes[2 * PIECE] = {1, 2, 3};
    char head[32];
    snprintf(head, sizeof head, "$%zu\r\n", claimed);
    text(to, head);
    say(to, bytes, real);
    text(to, "\r\n");
}

static void lie_to(int to)
{
    switch ((enum lie)lie) {
    case SHORT:
        say_piece(to, PIECE - 64, PIECE - 64);
        break;
    case LONG:
        say_piece(to, PIECE + 64, PIECE + 64);
        break;
    case ENDLESS:
        say_piece(to, 2000000000, 2 * PIECE);
        break;
    case LIST:
        text(to, "*1000000000\r\n");
        break;
    case NESTED:
        text(to, "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n");
        break;
    case NUMBER:
        text(to, ":99999999999999999999999999\r\n");
        break;
    case NIL:
        text(to, "$-1\r\n");
        break;
    case REFUSAL:
        text(to, "-ERR \x1b[2Jno\x01\r\n");
        break;
    case NOISE:
        text(to, "\x01\x02\x03 what?\r\n");
        break;
    case BYTES:
        say_piece(to, PIECE, PIECE);
        break;
    case DRIP:
        for (int i = 0; i < 40 && lie == DRIP; i++) {
            say(to, "$", i == 0);
            say(to, "0", i > 0);
            nap_ms(20);
        }
        break;
    case HANGUP:
        shutdown(to, SHUT_RDWR);
        break;
    case SILENCE:
    case LIES:
        break;
    }
}

static void *serve_one(void *user)
{
    int to = (int)(intptr_t)user;
    char line[1024], number[32];
    snprintf(number, sizeof number, ":%d\r\n", LAYERS * PIECE);
    for (;;) {
        ssize_t n = recv(to, line, sizeof line - 1, 0);
        if (n <= 0)
            break;
        line[n] = '\0';
        if (strstr(line, "PING"))
            text(to, "+PONG\r\n");
        else if (strstr(line, "INFO"))
            text(to, "-ERR unknown command\r\n");
        else if (strstr(line, "STRLEN"))
            text(to, number);
        else
            lie_to(to);
    }
    close(to);
    return NULL;
}

static void *serve(void *user)
{
    (void)user;
    let_in(listener, serve_one);
    return NULL;
}

TEST(a_server_that_lies_is_a_miss)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    static _Alignas(64) unsigned char piece[PIECE];
    pthread_t thread;
    folder_make();
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    REQUIRE(bind(listener, (struct sockaddr *)&a, sizeof a) == 0 && listen(listener, 64) == 0);
    pthread_create(&thread, NULL, serve, NULL);
    struct tec_store *s = open_at(address, NULL, 1 << 20);
    uint32_t segment = 0;
    for (int kind = 0; kind < LIES; kind++) {
        struct tec_kv *kv = NULL;
        struct tec_error err = {TEC_OK, ""};
        lie = kind;
        segment = put(s, 1, kind);
        here(s);
        uint32_t found = look(s);
        for (int i = 0; found == 0 && i < 100; i++) { /* it went away from the lie before */
            nap_ms(10);
            found = look(s);
        }
        CHECK_INT(found, ==, 1);
        REQUIRE(tec_store_pin(s, segment, &kv, NULL) == TEC_OK);
        int64_t begin = now_ms();
        enum tec_status status = tec_store_read(s, kv, 0, piece, &err);
        printf("# %s: %s\n", lies[kind], err.message);
        CHECK(status != TEC_OK && err.message[0] != '\0');
        CHECK_INT(now_ms() - begin, <, 5000);
        CHECK(!strchr(err.message, '\x1b'));
        CHECK_INT(tec_store_kv_tier(kv), ==, TEC_KEPT_PLACES);
        tec_store_drop(s, kv);
        CHECK_INT(tec_store_pin(s, segment, &kv, NULL), ==, TEC_NOT_FOUND);
        if (status != TEC_IO) { /* it is not believed again */
            here(s);
            CHECK_INT(look(s), ==, 0);
        }
    }
    CHECK_INT(tec_store_counts(s).remote.bad, >, 5);
    CHECK_INT(heap.peak, <, 1 << 20);
    give(s, segment, 1, 1); /* and it is computed */
    CHECK(right(s, segment, 1, 1, false));
    tec_store_close(s);
    shutdown(listener, SHUT_RDWR);
    close(listener);
    pthread_join(thread, NULL);
    CHECK_INT(heap.live, ==, 0);
    folder_remove();
}

/* A server that is connected to and says nothing, named eight times. */
TEST(a_memory_that_is_closed_while_it_connects_tries_no_more_places)
{
    char where[256] = "redis://";
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    int silent = socket(AF_INET, SOCK_STREAM, 0), tried = 0;
    memset(&heap, 0, sizeof heap);
    REQUIRE(bind(silent, (struct sockaddr *)&a, sizeof a) == 0 && listen(silent, 64) == 0 &&
            getsockname(silent, (struct sockaddr *)&a, &size) == 0);
    for (int i = 0; i < 8; i++)
        snprintf(where + strlen(where), sizeof where - strlen(where), "%s127.0.0.1:%u",
                 i ? "," : "", ntohs(a.sin_port));
    struct tec_store *s = open_at(where, NULL, 0);
    struct pollfd first = {silent, POLLIN, 0};
    REQUIRE(poll(&first, 1, 20000) == 1); /* it waits for an answer there */
    tec_store_close(s);
    for (struct pollfd p = {silent, POLLIN, 0}; poll(&p, 1, 0) == 1; tried++)
        close(accept(silent, NULL, NULL));
    CHECK_INT(tried, >=, 1);
    CHECK_INT(tried, <, 8);
    close(silent);
    CHECK_INT(heap.live, ==, 0);
}

TEST(addresses_are_understood_or_refused)
{
    static const char *const right_ones[] = {
        "redis://host",          "redis://10.0.0.1:7000",    "redis://[::1]:6380",
        "redis://[fe80::1]",     "redis://a,b:7000,[::1]:7", "redis://a,b,c,d,e,f,g,h",
        "unix:/run/valkey.sock", "unix:/run/valkey@arm.sock"};
    static const char *const wrong[] = {"",
                                        "host:1",
                                        "redis://",
                                        "redis://:1",
                                        "redis://h:",
                                        "redis://h:x",
                                        "redis://h:0",
                                        "redis://h:65536",
                                        "redis://h:1x",
                                        "redis://h/0",
                                        "redis://[::1",
                                        "redis://[::1]x",
                                        "redis://[]:1",
                                        "redis://a,",
                                        "redis://,a",
                                        "redis://a,b:x",
                                        "redis://a,unix:/b",
                                        "redis://a,b,c,d,e,f,g,h,i",
                                        "unix:relative",
                                        "http://h"};
    struct tec_error err;
    for (size_t i = 0; i < sizeof right_ones / sizeof *right_ones; i++)
        CHECK_INT(tec_remote_check(&(struct tec_remote_options){.address = right_ones[i]}, &err),
                  ==, TEC_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_INT(tec_remote_check(&(struct tec_remote_options){.address = wrong[i]}, &err), ==,
                  TEC_INVALID);
    static const char *const with_secret[] = {
        "redis://secret@host",       "redis://robot:secret@host:6379", "redis://a,robot:secret@b",
        "redis://a:secret@[::1]:70", "rediss://robot:secret@host",     "robot:secret@host",
        "unix:secret@host"};
    for (size_t i = 0; i < sizeof with_secret / sizeof *with_secret; i++) {
        const struct tec_remote_options options = {.address = with_secret[i]};
        CHECK_INT(tec_remote_check(&options, &err), ==, TEC_INVALID);
        CHECK(strstr(err.message, "user or password") && !strstr(err.message, "secret"));
    }
    CHECK_INT(tec_remote_check(&(struct tec_remote_options){.timeout_ns = -1}, &err), ==,
              TEC_INVALID);
    CHECK_INT(tec_remote_check(&(struct tec_remote_options){.queue_bytes = -1}, &err), ==,
              TEC_INVALID);
}

TAP_MAIN
