/* memory_server.h - a Redis or Valkey server and stores that share it: what tests of the remote
 * tier have in common. Everything static; one translation unit a test. */
#ifndef TEC_TESTS_MEMORY_SERVER_H
#define TEC_TESTS_MEMORY_SERVER_H

#include "base/clock.h"
#include "tests/box.h"
#include "tests/store_inside.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LAYERS = 4, ROW = 128, DIM = 2, SEGMENTS = 8, TOKENS = 32, BODY = 2 * TOKENS * ROW };
enum { PIECE = BODY + 64, PIECES = LAYERS * SEGMENTS };

static char folder[32], path[64], address[80];
static pid_t server;
static struct tec_heap heap;
static _Atomic int events_away, events_here;
static char said[600]; /* under `saying`: another thread writes it; read by heard() */
static pthread_mutex_t saying = PTHREAD_MUTEX_INITIALIZER;

static inline const char *program(void)
{
    if (system("command -v valkey-server >/dev/null 2>&1") == 0)
        return "valkey-server";
    if (system("command -v redis-server >/dev/null 2>&1") == 0)
        return "redis-server";
    return NULL;
}

static inline void nap_ms(int ms)
{
    const struct tec_clock clock = {0};
    tec_clock_wait(&clock, tec_clock_now(&clock) + ms * INT64_C(1000000));
}

static inline int64_t now_ms(void)
{
    const struct tec_clock clock = {0};
    return tec_clock_now(&clock) / 1000000;
}

static inline void folder_make(void)
{
    box_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/socket", folder);
    snprintf(address, sizeof address, "unix:%s", path);
    events_away = events_here = 0;
    memset(&heap, 0, sizeof heap);
}

static inline void folder_remove(void)
{
    unlink(path);
    rmdir(folder);
}

static inline bool answers(void)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    bool yes = s >= 0 && connect(s, (struct sockaddr *)&a, sizeof a) == 0;
    close(s);
    return yes;
}

/* Start a server; port "0" means the socket alone. */
static inline void server_start(const char *port, const char *most)
{
    const char *name = program();
    server = fork();
    if (server == 0) {
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
            _exit(2);
        execlp(name, name, "--port", port, "--unixsocket", path, "--save", "", "--appendonly", "no",
               "--maxmemory", most, "--maxmemory-policy", "noeviction", "--dir", folder,
               (char *)NULL);
        _exit(1);
    }
    REQUIRE(server > 0);
    int64_t until = now_ms() + 20000;
    while (!answers() && now_ms() < until)
        nap_ms(10);
    REQUIRE(answers());
}

static inline void server_kill(void)
{
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    unlink(path);
}

static inline void on_event(void *user, const struct tec_remote_event *event)
{
    (void)user;
    pthread_mutex_lock(&saying);
    snprintf(said, sizeof said, "%s", event->message);
    pthread_mutex_unlock(&saying);
    atomic_fetch_add(event->here ? &events_here : &events_away, 1);
}

/* The newest message. */
static inline const char *heard(void)
{
    static char text[sizeof said];
    pthread_mutex_lock(&saying);
    memcpy(text, said, sizeof text);
    pthread_mutex_unlock(&saying);
    return text;
}

static inline struct tec_store *open_at(const char *where, const char *file, int64_t ram)
{
    const struct tec_store_options options = {
        .path = file,
        .key = {.model = {4, 2}, .layers = LAYERS, .row_bytes = ROW, .dim = DIM},
        .max_segments = 512,
        .threshold = 0.99,
        .stable_steps = 2,
        .ram_bytes = ram,
        .remote = {.address = where,
                   .retry_ns = 20000000,
                   .retry_most_ns = 80000000,
                   .rest_ns = 400000000,
                   .event = on_event}};
    struct tec_store *s = NULL;
    struct tec_error err;
    enum tec_status status = tec_store_open(&s, &options, &heap, &err);
    if (status != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(status == TEC_OK);
    return s;
}

/* Wait until the counter has at least that value; false after 20 s. */
#define AWAIT(s, field, value)                                                  \
    do {                                                                        \
        int64_t until_ = now_ms() + 20000;                                      \
        while (tec_store_counts(s).remote.field < (value) && now_ms() < until_) \
            nap_ms(2);                                                          \
        CHECK_INT(tec_store_counts(s).remote.field, >=, (value));               \
    } while (0)

static inline uint32_t put(struct tec_store *s, uint32_t i, int round)
{
    char id[16], text[32];
    const float v[DIM] = {i % 2 ? 1.0f : 0.0f, i % 2 ? 0.0f : 1.0f}; /* two groups */
    struct tec_groups_change change;
    uint32_t segment = 0;
    snprintf(id, sizeof id, "u%u", i);
    int n = snprintf(text, sizeof text, "%u in round %d", i, round);
    REQUIRE(tec_store_put(s, id, text, (size_t)n, TOKENS, v, &segment, &change, NULL) == TEC_OK);
    return segment;
}

static inline unsigned char byte_of(uint32_t i, int round, uint32_t layer, bool joint)
{
    return (unsigned char)(i * 11 + (uint32_t)round * 50 + layer * 3 + joint);
}

static inline void give(struct tec_store *s, uint32_t segment, uint32_t i, int round)
{
    static unsigned char rows[LAYERS][BODY];
    const void *pieces[LAYERS];
    struct tec_store_segment_view v;
    REQUIRE(tec_store_view(s, segment, &v));
    for (uint32_t l = 0; l < LAYERS; l++) {
        memset(rows[l], byte_of(i, round, l, v.epoch != 0), BODY);
        pieces[l] = rows[l];
    }
    REQUIRE(tec_store_put_kv(s, segment, v.version, v.epoch, pieces, NULL) == TEC_OK);
}

static inline bool right(struct tec_store *s, uint32_t segment, uint32_t i, int round, bool joint)
{
    static unsigned char piece[PIECE];
    struct tec_kv *kv = NULL;
    bool good = tec_store_pin(s, segment, &kv, NULL) == TEC_OK;
    for (uint32_t l = 0; good && l < LAYERS; l++)
        good = tec_store_read(s, kv, l, piece, NULL) == TEC_OK &&
               piece[0] == byte_of(i, round, l, joint) && !memcmp(piece, piece + 1, BODY - 1);
    if (kv)
        tec_store_drop(s, kv);
    return good;
}

static inline uint32_t look(struct tec_store *s)
{
    uint32_t list[512], found = 0, n = tec_store_missing(s, list, 512);
    CHECK_INT(tec_store_look(s, list, n, 1000000000, &found, NULL), ==, TEC_OK);
    return found;
}

static inline void here(struct tec_store *s)
{
    int64_t until = now_ms() + 20000;
    while (!tec_store_counts(s).remote.here && now_ms() < until)
        nap_ms(2);
    CHECK(tec_store_counts(s).remote.here);
}

#endif
