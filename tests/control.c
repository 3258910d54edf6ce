/* control.c - tests of the control thread of a running robot: what clients ask of its socket while
 * frames run. */
#include "tools/control/control.h"
#include "tests/policy_view.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

static struct tec_heap heap;
static struct tec_error err;

struct robot {
    struct tec_topology topology;
    struct tec_invocation call;
    struct tec_arena arena;
    struct tec_control control;
    struct tec_canary *canary;
    char path[64];
    pthread_t thread;
    _Atomic bool stop;
    _Atomic int64_t frames;
    bool legal;
};

/* Run frames, and check that all decisions are on captured points, whichever policy decides. */
static void *run_frames(void *argument)
{
    struct robot *r = argument;
    struct tec_planner planner = tec_canary_planner(r->canary);
    struct tec_frame_result result = {.n_nodes = 5};
    struct view_frame *f = calloc(1, sizeof *f);
    struct tec_decision *d = calloc(1, sizeof *d);
    for (int64_t i = 0; f && d && !atomic_load(&r->stop); i++) {
        view_fill(f, i, 3, 2);
        view_plan(&planner, &r->topology, &f->view, d, NULL);
        for (int k = 0; k < 3; k++)
            r->legal = r->legal && (d->rows[k].k == 0 || d->rows[k].k == 4 || d->rows[k].k == 5 ||
                                    d->rows[k].k == 8);
        r->legal = r->legal && strlen(tec_planner_name(&planner)) > 0;
        planner.observe(planner.self, &f->view, &result);
        atomic_store(&r->frames, i + 1);
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
    free(f);
    free(d);
    return NULL;
}

static void start(struct robot *r, const char *policy, struct tec_policy *fallback)
{
    *r = (struct robot){.topology = view_topology(), .legal = true};
    tec_arena_init(&r->arena, &heap);
    r->call = (struct tec_invocation){.verb = "test", .heap = &heap, .arena = &r->arena};
    snprintf(r->path, sizeof r->path, "/tmp/tectum-%d.socket", (int)getpid());
    const struct tec_control_options options = {.path = r->path};
    const struct tec_canary_options canary = {.topology = &r->topology,
                                              .root = ".",
                                              .limits = patient,
                                              .trial_frames = 20,
                                              .probation_frames = 50,
                                              .fallback = fallback,
                                              .closing = tec_control_closing,
                                              .user = &r->control};
    struct tec_policy *first = view_policy(policy, &r->topology, &patient, &heap);
    REQUIRE(tec_control_open(&r->control, &r->call, &options, &err) == TEC_OK);
    REQUIRE(tec_canary_create(&r->canary, &canary, first, &heap, &err) == TEC_OK);
    REQUIRE(tec_control_run(&r->control, r->canary,
                            fallback ? tec_policy_name(fallback) : "default", &err) == TEC_OK);
    REQUIRE(pthread_create(&r->thread, NULL, run_frames, r) == 0);
}

static void stop(struct robot *r)
{
    atomic_store(&r->stop, true);
    pthread_join(r->thread, NULL);
    tec_control_close(&r->control);
    tec_canary_destroy(r->canary);
    tec_arena_finish(&r->arena);
    CHECK(r->legal);
    CHECK(access(r->path, F_OK) != 0);
}

/* The answer to one request, or NULL; the caller frees it. A server that is full says so and closes
 * the connection, perhaps before the request has left: then there may be no answer. */
static json_t *ask(const struct robot *r, const char *request)
{
    static char line[1 << 20];
    int fd;
    size_t n = (size_t)snprintf(line, sizeof line, "%s\n", request);
    ssize_t got;
    REQUIRE(tec_control_connect(&fd, r->path, &err) == TEC_OK);
    bool went = send(fd, line, n, MSG_NOSIGNAL) == (ssize_t)n;
    CHECK(went || errno == EPIPE || errno == ECONNRESET);
    n = 0;
    while (n < sizeof line && (got = recv(fd, line + n, sizeof line - n, 0)) > 0) {
        n += (size_t)got;
        if (line[n - 1] == '\n')
            break;
    }
    close(fd);
    return json_loadb(line, n, 0, NULL);
}

static bool obeyed(const struct robot *r, const char *request)
{
    json_t *answer = ask(r, request);
    bool ok = json_is_true(json_object_get(answer, "ok"));
    json_decref(answer);
    return ok;
}

/* Wait up to 20 s until the status contains this text. */
static bool comes(const struct robot *r, const char *text)
{
    char *all = NULL;
    bool there = false;
    for (int i = 0; i < 2000 && !there; i++) {
        json_t *answer = ask(r, "{\"cmd\":\"status\"}");
        free(all);
        all = json_dumps(answer, JSON_COMPACT);
        json_decref(answer);
        there = all && strstr(all, text);
        if (!there)
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    if (!there)
        fprintf(stderr, "# no %s in %s\n", text, all);
    free(all);
    return there;
}

static bool load(const struct robot *r, const char *policy)
{
    char request[256];
    const char *path = view_file(0, policy);
    snprintf(request, sizeof request, "{\"cmd\":\"load\",\"policy\":\"%s\"}", path);
    bool ok = obeyed(r, request);
    unlink(path);
    return ok;
}

#define POLICY(version, k, more)                                                            \
    "return policy { name = 'p', api = 1, version = " version ", state = { n = 0 },\n"      \
    "params = { k = int { default = " k ", min = 1, max = 9 } },\n"                         \
    "migrate = function(old, v) return old end,\n"                                          \
    "plan = function(S, F, D) S.n = S.n + 1 for i = 1, F.nreq do D:decode(i, F.params.k)\n" \
    "end " more " end }"

TEST(a_socket_serves_while_frames_run)
{
    struct robot r;
    struct stat made;
    start(&r, POLICY("1", "4", ""), NULL);
    CHECK(stat(r.path, &made) == 0 && (made.st_mode & 0777) == 0600);
    CHECK(load(&r, POLICY("2", "5", "")));
    CHECK(comes(&r, "\"state\":\"adopted\""));
    CHECK(obeyed(&r, "{\"cmd\":\"set\",\"param\":\"k\",\"value\":8}"));
    CHECK(comes(&r, "\"k\":8"));
    CHECK(!obeyed(&r, "{\"cmd\":\"set\",\"param\":\"k\",\"value\":10}"));
    CHECK(!obeyed(&r, "{\"cmd\":\"load\",\"\":1}"));
    CHECK(!obeyed(&r, "{\"cmd\":\"status\",\"\":1}"));
    CHECK(obeyed(&r, "{\"cmd\":\"rollback\"}"));
    CHECK(comes(&r, "\"state\":\"rolled back\""));
    CHECK(load(&r, POLICY("3", "5", "if F.index % 5 == 0 then error('bug') end")));
    CHECK(comes(&r, "\"state\":\"rejected\""));
    CHECK(comes(&r, "bug"));
    CHECK(obeyed(&r, "{\"cmd\":\"fallback\"}"));
    CHECK(comes(&r, "\"decides\":\"default\""));
    CHECK(obeyed(&r, "{\"cmd\":\"reinstate\"}"));
    CHECK(comes(&r, "\"decides\":\"p\""));
    stop(&r);
    CHECK_INT(heap.live, ==, 0);
}

TEST(a_quarantined_policy_leaves_its_record)
{
    struct robot r;
    char pattern[128];
    struct tec_topology t = view_topology();
    struct tec_policy *fallback = NULL;
    REQUIRE(tec_policy_open(&fallback, "oxygen", ".", &t, &patient, NULL, 0, &heap, &err) ==
            TEC_OK);
    start(&r, POLICY("1", "4", "if F.index >= 300 then error('a bug') end"), fallback);
    CHECK(comes(&r, "\"decides\":\"oxygen\""));
    CHECK(comes(&r, "\"event\":\"fallback\""));
    stop(&r);
    snprintf(pattern, sizeof pattern, "%s.p-frame302.jsonl", r.path);
    FILE *dump = fopen(pattern, "r");
    char head[4096] = "";
    CHECK(dump && fgets(head, sizeof head, dump) && strstr(head, "a bug"));
    int lines = 0;
    for (int c; dump && (c = fgetc(dump)) != EOF;)
        lines += c == '\n';
    CHECK_INT(lines, ==, 64);
    if (dump)
        fclose(dump);
    unlink(pattern);
    tec_policy_close(fallback);
    CHECK_INT(heap.live, ==, 0);
}

static void *look(void *argument)
{
    const struct robot *r = argument;
    char request[128];
    int bad = 0;
    snprintf(request, sizeof request, "{\"cmd\":\"dump\",\"path\":\"%s.dump\"}", r->path);
    for (int i = 0; i < 40; i++) {
        int fd;
        if (tec_control_connect(&fd, r->path, NULL) != TEC_OK)
            continue;
        bool went = send(fd, request, strlen(request) - (i % 3 == 2), MSG_NOSIGNAL) >= 0 &&
                    (i % 3 > 0 || send(fd, "\n", 1, MSG_NOSIGNAL) == 1);
        bad += !went && errno != EPIPE && errno != ECONNRESET;
        nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
        close(fd);
    }
    return bad ? argument : NULL;
}

/* For the thread sanitizer, everything happens at once. */
TEST(orders_come_from_everywhere)
{
    struct robot r;
    pthread_t thread;
    start(&r, POLICY("1", "4", ""), NULL);
    REQUIRE(pthread_create(&thread, NULL, look, &r) == 0);
    static const char *const texts[] = {POLICY("2", "5", ""), POLICY("3", "8", "error('x')"),
                                        POLICY("4", "4", "if F.index % 90 == 0 then error() end")};
    static const char *const orders[] = {"fallback", "reinstate", "rollback", "drop", "status"};
    int loaded = 0;
    for (int i = 0; i < 60; i++) {
        char request[64];
        loaded += load(&r, texts[i % 3]);
        snprintf(request, sizeof request, "{\"cmd\":\"%s\"}", orders[i % 5]);
        json_decref(ask(&r, request));
        snprintf(request, sizeof request, "{\"cmd\":\"set\",\"param\":\"k\",\"value\":%d}",
                 4 + i % 5);
        json_decref(ask(&r, request));
        nanosleep(&(struct timespec){.tv_nsec = 4000000 * (i % 4)}, NULL);
    }
    void *said = NULL;
    pthread_join(thread, &said);
    CHECK(said == NULL);
    CHECK_INT(loaded, >, 5);
    int64_t before = atomic_load(&r.frames);
    for (int i = 0; i < 1000 && atomic_load(&r.frames) < before + 10; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    CHECK_INT(atomic_load(&r.frames), >=, before + 10);
    printf("# %d policies loaded in %jd frames\n", loaded, (intmax_t)atomic_load(&r.frames));
    stop(&r);
    char own[64];
    snprintf(own, sizeof own, "rm -f /tmp/tectum-%d.socket*", (int)getpid());
    CHECK(system(own) == 0);
    CHECK_INT(heap.live, ==, 0);
}

/* Lines that come within half a second. */
static int lines_of(int fd)
{
    char text[1 << 16];
    int lines = 0;
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    while (poll(&readable, 1, 500) > 0) {
        ssize_t got = recv(fd, text, sizeof text, 0);
        if (got <= 0)
            break;
        for (ssize_t i = 0; i < got; i++)
            lines += text[i] == '\n';
    }
    return lines;
}

TEST(an_answer_goes_to_the_connection_that_asked)
{
    static const char dump[] = "{\"cmd\":\"dump\",\"path\":\"/tmp/tectum-dump.jsonl\"}\n{\"cmd\":",
                      status[] = "{\"cmd\":\"status\"}\n";
    struct robot r;
    int asks, comes_later;
    start(&r, POLICY("1", "4", ""), NULL);
    atomic_store(&r.stop, true); /* no frame runs: the dump waits */
    pthread_join(r.thread, NULL);
    REQUIRE(tec_control_connect(&asks, r.path, &err) == TEC_OK);
    CHECK(send(asks, status, sizeof status - 1, MSG_NOSIGNAL) > 0 && lines_of(asks) == 1);
    CHECK(send(asks, status, sizeof status - 1, MSG_NOSIGNAL) > 0);
    CHECK(send(asks, dump, sizeof dump - 1, MSG_NOSIGNAL) > 0);
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    close(asks); /* with an answer unread: the other side's next call fails */
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    REQUIRE(tec_control_connect(&comes_later, r.path, &err) == TEC_OK);
    CHECK(send(comes_later, status, sizeof status - 1, MSG_NOSIGNAL) > 0);
    CHECK_INT(lines_of(comes_later), ==, 1);
    atomic_store(&r.stop, false);
    REQUIRE(pthread_create(&r.thread, NULL, run_frames, &r) == 0);
    CHECK_INT(lines_of(comes_later), ==, 0);
    close(comes_later);
    stop(&r);
    unlink("/tmp/tectum-dump.jsonl");
    CHECK_INT(heap.live, ==, 0);
}

TEST(a_stale_socket_is_replaced_and_nothing_else)
{
    struct tec_control_socket one = {.fd = -1}, two = {.fd = -1};
    char path[64];
    snprintf(path, sizeof path, "/tmp/tectum-%d.stale", (int)getpid());
    REQUIRE(tec_control_bind(&one, path, &err) == TEC_OK);
    CHECK_INT(tec_control_bind(&two, path, &err), ==, TEC_INVALID);
    close(one.fd); /* as if its process had been killed */
    REQUIRE(tec_control_bind(&two, path, &err) == TEC_OK);
    tec_control_unbind(&two);
    CHECK(access(path, F_OK) != 0);
    CHECK(symlink("/nowhere", path) == 0);
    CHECK_INT(tec_control_bind(&two, path, &err), ==, TEC_INVALID);
    CHECK(unlink(path) == 0);
    char longer[200];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    CHECK_INT(tec_control_bind(&two, longer, &err), ==, TEC_INVALID);
    CHECK_INT(tec_control_bind(&two, "", &err), ==, TEC_INVALID);
}

TAP_MAIN
