/* memory_failover.c - memory shared through a server that loses a node: the master is killed, or
 * made a replica, and stores go on with the replica that has become the master.
 *
 * The test starts its servers itself, a master, a replica and a sentinel, on ports of 127.0.0.1. */
#include "tests/memory_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/time.h>

struct node {
    pid_t pid;
    int port;
};

static int free_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    int probe = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(bind(probe, (struct sockaddr *)&a, sizeof a) == 0 &&
            getsockname(probe, (struct sockaddr *)&a, &size) == 0);
    close(probe);
    return ntohs(a.sin_port);
}

/* One line of words to a node; its whole answer, "" where it does not listen. */
static const char *tell(const struct node *n, const char *words)
{
    static char answer[8192];
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                            .sin_port = htons((uint16_t)n->port)};
    int s = socket(AF_INET, SOCK_STREAM, 0);
    size_t got = 0;
    char line[128];
    const struct timeval most = {.tv_sec = 5};
    snprintf(line, sizeof line, "%s\r\n", words);
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    if (connect(s, (struct sockaddr *)&a, sizeof a) == 0 &&
        send(s, line, strlen(line), MSG_NOSIGNAL) > 0 && shutdown(s, SHUT_WR) == 0)
        for (ssize_t more; got < sizeof answer - 1 &&
                           (more = recv(s, answer + got, sizeof answer - 1 - got, 0)) > 0;)
            got += (size_t)more;
    answer[got] = '\0';
    close(s);
    return answer;
}

/* Wait until it answers those words with this. */
static void await(const struct node *n, const char *words, const char *with)
{
    int64_t until = now_ms() + 60000;
    while (!strstr(tell(n, words), with) && now_ms() < until)
        nap_ms(20);
    if (!strstr(tell(n, words), with))
        fprintf(stderr, "# port %d: %s: %.200s\n", n->port, words, tell(n, words));
    REQUIRE(strstr(tell(n, words), with));
}

/* A server whose options are lines of a file. */
static struct node start(const char *name, const char *kind, const char *lines)
{
    struct node n = {.port = free_port()};
    const char *server_name = program();
    char file[64];
    snprintf(file, sizeof file, "%s/%s", folder, name);
    FILE *f = fopen(file, "w");
    REQUIRE(f != NULL);
    fprintf(f, "port %d\nbind 127.0.0.1\ndir %s\nsave \"\"\n%s\n", n.port, folder, lines);
    fclose(f);
    n.pid = fork();
    if (n.pid == 0) {
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
            _exit(2);
        execlp(server_name, server_name, file, kind, (char *)NULL);
        _exit(1);
    }
    REQUIRE(n.pid > 0);
    await(&n, "PING", "PONG");
    return n;
}

static void stop(struct node *n)
{
    kill(n->pid, SIGKILL);
    waitpid(n->pid, NULL, 0);
}

static void end(void)
{
    static const char *const files[] = {"master", "replica", "sentinel", "cluster", "nodes.conf"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char file[64];
        snprintf(file, sizeof file, "%s/%s", folder, files[i]);
        unlink(file);
    }
    CHECK_INT(heap.live, ==, 0);
    folder_remove();
}

static struct node start_replica(const struct node *master)
{
    char lines[128];
    snprintf(lines, sizeof lines, "replicaof 127.0.0.1 %d\nrepl-diskless-sync-delay 0",
             master->port);
    struct node n = start("replica", "--protected-mode no", lines);
    await(&n, "INFO replication", "master_link_status:up");
    return n;
}

/* Both in the address, the replica first. */
static const char *both(const struct node *master, const struct node *replica)
{
    static char where[80];
    snprintf(where, sizeof where, "redis://127.0.0.1:%d,127.0.0.1:%d", replica->port, master->port);
    return where;
}

/* What the replica has is what the master took. */
static void await_copies(const struct node *replica, int n)
{
    char size[24];
    snprintf(size, sizeof size, ":%d\r", n);
    await(replica, "DBSIZE", size);
}

/* A writer and a reader, which has nothing but the server, and four segments that they share. */
struct two {
    struct tec_store *writer, *reader;
    uint32_t segment[2 * SEGMENTS];
};

static void share(struct two *t, const struct node *master, const struct node *replica)
{
    t->writer = open_at(both(master, replica), NULL, 1 << 24);
    t->reader = open_at(both(master, replica), NULL, 0);
    here(t->writer);
    here(t->reader);
    for (uint32_t i = 0; i < SEGMENTS; i++)
        give(t->writer, put(t->writer, i, 0), i, 0);
    AWAIT(t->writer, sent, SEGMENTS);
    await_copies(replica, SEGMENTS);
    for (uint32_t i = 0; i < SEGMENTS; i++)
        t->segment[i] = put(t->reader, i, 0);
    CHECK_INT(look(t->reader), ==, SEGMENTS);
    CHECK(right(t->reader, t->segment[0], 0, 0, false));
    CHECK_INT(events_away, ==, 0);
}

/* Everything that was shared is there, and what comes is shared. Strings that were under way when
 * the master was lost are dropped and counted: what is given now is not. */
static void goes_on(struct two *t, const struct node *now)
{
    here(t->writer);
    here(t->reader);
    (void)look(t->reader); /* what was a miss meanwhile is looked for again */
    for (uint32_t i = 0; i < SEGMENTS; i++)
        CHECK(right(t->reader, t->segment[i], i, 0, false));
    for (uint32_t i = SEGMENTS; i < 2 * SEGMENTS; i++)
        give(t->writer, put(t->writer, i, 0), i, 0);
    AWAIT(t->writer, sent, 2 * SEGMENTS);
    CHECK(strstr(tell(now, "INFO replication"), "role:master"));
    for (uint32_t i = SEGMENTS; i < 2 * SEGMENTS; i++)
        t->segment[i] = put(t->reader, i, 0);
    CHECK_INT(look(t->reader), ==, SEGMENTS);
    for (uint32_t i = 0; i < 2 * SEGMENTS; i++)
        CHECK(right(t->reader, t->segment[i], i, 0, false));
    CHECK(strstr(heard(), "is back, 127.0.0.1:"));
    tec_store_close(t->reader);
    tec_store_close(t->writer);
}

TEST(memory_goes_on_where_sentinel_replaces_a_master_that_is_killed)
{
    if (!program())
        SKIP("neither valkey-server nor redis-server is installed");
    struct two t;
    char lines[320];
    folder_make();
    struct node master = start("master", "--protected-mode no", "repl-diskless-sync-delay 0");
    struct node replica = start_replica(&master);
    snprintf(lines, sizeof lines,
             "sentinel monitor fleet 127.0.0.1 %d 1\nsentinel down-after-milliseconds fleet 300\n"
             "sentinel failover-timeout fleet 3000",
             master.port);
    struct node sentinel = start("sentinel", "--sentinel", lines);
    await(&sentinel, "SENTINEL master fleet", "num-slaves\r\n$1\r\n1");
    share(&t, &master, &replica);
    stop(&master);
    CHECK(!right(t.reader, t.segment[0], 0, 0, false)); /* a miss, not a wait */
    give(t.writer, put(t.writer, 100, 0), 100, 0);      /* computed meanwhile: in RAM */
    await(&replica, "INFO replication", "role:master");
    goes_on(&t, &replica);
    CHECK_INT(events_away, >=, 1);
    stop(&replica);
    stop(&sentinel);
    end();
}

TEST(a_master_that_becomes_a_replica_is_left_for_the_new_one)
{
    if (!program())
        SKIP("neither valkey-server nor redis-server is installed");
    struct two t;
    char order[64];
    folder_make();
    struct node master = start("master", "--protected-mode no", "repl-diskless-sync-delay 0");
    struct node replica = start_replica(&master);
    share(&t, &master, &replica);
    CHECK(strstr(tell(&replica, "REPLICAOF NO ONE"), "OK"));
    snprintf(order, sizeof order, "REPLICAOF 127.0.0.1 %d", replica.port);
    CHECK(strstr(tell(&master, order), "OK"));
    await(&master, "INFO replication", "master_link_status:up");
    give(t.writer, put(t.writer, 100, 0), 100, 0); /* is told READONLY */
    int64_t until = now_ms() + 20000;
    while (atomic_load(&events_here) == 0 && now_ms() < until)
        nap_ms(2);
    CHECK_INT(events_here, >=, 1);
    goes_on(&t, &replica);
    stop(&master);
    stop(&replica);
    end();
}

/* Who only reads is never told READONLY. */
TEST(a_replica_that_answers_nothing_is_left_by_those_that_only_read)
{
    if (!program())
        SKIP("neither valkey-server nor redis-server is installed");
    struct two t;
    char order[64];
    folder_make();
    struct node master = start("master", "--protected-mode no",
                               "repl-diskless-sync-delay 0\nreplica-serve-stale-data no");
    struct node replica = start_replica(&master);
    share(&t, &master, &replica);
    struct tec_store *looks = open_at(both(&master, &replica), NULL, 0);
    here(looks);
    (void)put(looks, 0, 0);
    CHECK(strstr(tell(&replica, "REPLICAOF NO ONE"), "OK"));
    snprintf(order, sizeof order, "REPLICAOF 127.0.0.1 %d", free_port()); /* nobody is there */
    CHECK(strstr(tell(&master, order), "OK"));
    await(&master, "STRLEN x", "MASTERDOWN");
    CHECK(!right(t.reader, t.segment[0], 0, 0, false));
    CHECK_INT(tec_store_counts(t.reader).remote.away, ==, 1);
    CHECK_INT(tec_store_counts(t.reader).remote.bad, ==, 0);
    CHECK_INT(look(looks), ==, 0);
    CHECK_INT(tec_store_counts(looks).remote.away, ==, 1);
    here(looks);
    CHECK_INT(look(looks), ==, 1);
    tec_store_close(looks);
    give(t.writer, put(t.writer, 100, 0), 100, 0); /* is told READONLY or MASTERDOWN */
    AWAIT(t.writer, away, 1);
    goes_on(&t, &replica);
    stop(&master);
    stop(&replica);
    end();
}

TEST(a_master_without_replicas_that_takes_nothing_is_left_for_another)
{
    if (!program())
        SKIP("neither valkey-server nor redis-server is installed");
    folder_make();
    struct node old = start("master", "--protected-mode no", "min-replicas-to-write 1");
    struct node new = start("replica", "--protected-mode no", "");
    char alone[40];
    snprintf(alone, sizeof alone, "redis://127.0.0.1:%d", old.port);
    struct tec_store *s = open_at(both(&new, &old), NULL, 1 << 24);
    here(s); /* it is the first */
    give(s, put(s, 0, 0), 0, 0);
    AWAIT(s, away, 1);
    CHECK(strstr(heard(), "NOREPLICAS") || strstr(heard(), "is back"));
    here(s);
    give(s, put(s, 1, 0), 1, 0);
    AWAIT(s, sent, 1);
    await(&new, "DBSIZE", ":1\r");
    tec_store_close(s);
    s = open_at(alone, NULL, 1 << 24); /* there is no other: as a full one */
    here(s);
    give(s, put(s, 0, 0), 0, 0);
    AWAIT(s, refused, 1);
    CHECK_INT(tec_store_counts(s).remote.away, ==, 0);
    tec_store_close(s);
    stop(&old);
    stop(&new);
    end();
}

TEST(a_node_of_a_cluster_is_said_to_be_one)
{
    if (!program())
        SKIP("neither valkey-server nor redis-server is installed");
    char where[80], lines[64], reason[80];
    folder_make();
    snprintf(lines, sizeof lines, "cluster-enabled yes\ncluster-port %d", free_port());
    struct node one = start("cluster", "--protected-mode no", lines);
    snprintf(where, sizeof where, "redis://127.0.0.1:%d,127.0.0.1:%d", one.port, free_port());
    snprintf(reason, sizeof reason, "127.0.0.1:%d: it is one of a cluster", one.port);
    struct tec_store *s = open_at(where, NULL, 1 << 24);
    AWAIT(s, tries, 2); /* it is tried again, and told once */
    CHECK_INT(events_away, ==, 1);
    CHECK_INT(events_here, ==, 0);
    CHECK(strstr(heard(), reason)); /* not that nobody is at the other */
    uint32_t segment = put(s, 0, 0);
    give(s, segment, 0, 0);
    CHECK(right(s, segment, 0, 0, false)); /* kept here */
    tec_store_close(s);
    stop(&one);
    s = open_at(where, NULL, 0);
    AWAIT(s, tries, 2);
    snprintf(reason, sizeof reason, ": %s: Connection refused", strchr(where, ',') + 1);
    CHECK(strstr(heard(), reason));
    tec_store_close(s);
    end();
}

TAP_MAIN
