/* view.c - the thread that serves the page of a running robot: one request at a time, each bounded
 * in size and time. Who asks for a WebSocket is handed on. */
#include "tools/record/view.h"

#include "base/number.h"
#include "base/thread.h"
#include "tools/foxglove/foxglove.h"
#include "tools/foxglove/handshake.h"
#include "tools/record/recording_own.h"
#include "tools/record/view_page.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { REQUEST = 4096, PATIENCE_S = 2, FRAMES = 2000 };

struct tec_view {
    struct tec_recording_options o;
    const char *origin;
    struct tec_heap *heap;
    json_t *about;
    struct tec_foxglove *foxglove;
    int fd, stop, port;
    pthread_t thread;
    bool started;
};

/* --- requests --------------------------------------------------------------------------------- */

/* Read the head of a request; false: it is too long, too slow, or not whole. */
static bool receive(int fd, char request[REQUEST])
{
    static const struct tec_clock clock = {NULL};
    int64_t until = tec_clock_now(&clock) + PATIENCE_S * (int64_t)1000000000;
    size_t n = 0;
    while (n < REQUEST - 1) {
        ssize_t got = recv(fd, request + n, REQUEST - 1 - n, 0);
        if (got <= 0 || tec_clock_now(&clock) > until)
            return false;
        n += (size_t)got;
        request[n] = '\0';
        if (strstr(request, "\r\n\r\n"))
            return strlen(request) == n;
    }
    return false;
}

/* A name of another machine that was made to point here may not read the page (DNS rebinding). */
static bool is_ours(const char *request)
{
    static const char *const hosts[] = {"127.0.0.1", "localhost", "[::1]"};
    const char *at = strcasestr(request, "\r\nHost:");
    for (at = at ? at + 7 : ""; *at == ' '; at++)
        continue;
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        size_t n = strlen(hosts[i]);
        if (strncasecmp(at, hosts[i], n) == 0 && (at[n] == ':' || at[n] == '\r'))
            return true;
    }
    return false;
}

static void send_all(int fd, const void *data, size_t n)
{
    const char *at = data;
    while (n > 0) {
        ssize_t sent = send(fd, at, n, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        at += sent;
        n -= (size_t)sent;
    }
}

static void answer(int fd, const char *status, const char *type, const void *body, size_t n)
{
    char head[512];
    int length = snprintf(
        head, sizeof head,
        "HTTP/1.1 %s\r\nContent-Type: %s; charset=utf-8\r\nContent-Length: %zu\r\n"
        "Connection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
        "Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; "
        "style-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'\r\n\r\n",
        status, type, n);
    send_all(fd, head, (size_t)length);
    send_all(fd, body, n);
}

static void answer_text(int fd, const char *status, const char *text)
{
    answer(fd, status, "text/plain", text, strlen(text));
}

static void answer_page(struct tec_view *v, int fd)
{
    struct tec_buffer page = {.heap = v->heap};
    tec_view_page(&page, v->o.opened->pipeline->name, NULL);
    if (page.failed)
        answer_text(fd, "503 Service Unavailable", "There is no memory for the page.\n");
    else
        answer(fd, "200 OK", "text/html", page.data, page.n);
    tec_buffer_finish(&page);
}

static void answer_data(struct tec_view *v, int fd, const char *path)
{
    struct tec_buffer data = {.heap = v->heap};
    struct tec_flight flight;
    struct tec_error err = {.message = ""};
    const char *after = strstr(path, "after=");
    double after_ms = after ? strtod(after + 6, NULL) : -1.0;
    bool sane = after_ms > 0.0 && after_ms < 1e12;
    /* A page knows a time to a nanosecond or so: a frame is newer by more. */
    int64_t after_ns = sane ? (int64_t)(after_ms * 1e6) + 1000 : INT64_MIN;
    enum tec_status status = tec_flight_now(&flight, v->o.recorder, v->about, v->heap, &err);
    if (status == TEC_OK) {
        status = tec_view_data(&data, &flight, after_ns, FRAMES, &err);
        tec_flight_close(&flight);
    }
    if (status == TEC_OK)
        answer(fd, "200 OK", "application/json", data.data, data.n);
    else
        answer_text(fd, "503 Service Unavailable", "There is no memory for the data.\n");
    tec_buffer_finish(&data);
}

/* For a program of Foxglove's protocol. True: the connection is no longer this thread's. */
static bool hand_on(struct tec_view *v, int fd, const char *request)
{
    char head[512];
    const char *refused = tec_foxglove_answer(request, v->origin, head, sizeof head);
    bool full = !refused && tec_foxglove_full(v->foxglove);
    if (refused || full) {
        answer_text(fd, full ? "503 Service Unavailable" : "400 Bad Request",
                    full ? "As many programs as may look at this robot do so already.\n" : refused);
        return false;
    }
    send_all(fd, head, strlen(head));
    return tec_foxglove_take(v->foxglove, fd);
}

/* True: the connection is handed on. */
static bool serve_one(struct tec_view *v, int fd)
{
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    char request[REQUEST], path[256];
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (!receive(fd, request) || sscanf(request, "GET %255s HTTP/1.", path) != 1) {
        answer_text(fd, "400 Bad Request", "This page is read with GET.\n");
        return false;
    }
    if (!is_ours(request))
        answer_text(fd, "403 Forbidden", "This page is for this machine alone.\n");
    else if (tec_foxglove_asks(request))
        return hand_on(v, fd, request);
    else if (strcmp(path, "/view") == 0 || strcmp(path, "/") == 0)
        answer_page(v, fd);
    else if (strcmp(path, "/data") == 0 || strncmp(path, "/data?", 6) == 0)
        answer_data(v, fd, path);
    else
        answer_text(fd, "404 Not Found", "The page is at /view.\n");
    return false;
}

static void *run(void *user)
{
    struct tec_view *v = user;
    for (;;) {
        struct pollfd fds[2] = {{.fd = v->stop, .events = POLLIN}, {.fd = v->fd, .events = POLLIN}};
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            return NULL;
        if (fds[0].revents)
            return NULL;
        int fd = fds[1].revents ? accept4(v->fd, NULL, NULL, SOCK_CLOEXEC) : -1;
        if (fd < 0)
            continue;
        if (!serve_one(v, fd))
            close(fd);
    }
}

/* --- life ------------------------------------------------------------------------------------- */

static enum tec_status bind_here(struct tec_view *v, int port, struct tec_error *err)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t size = sizeof at;
    int on = 1;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    v->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (v->fd < 0)
        return tec_fail(err, TEC_IO, "--view: %s", strerror(errno));
    setsockopt(v->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(v->fd, (const struct sockaddr *)&at, size) != 0 || listen(v->fd, 8) != 0 ||
        getsockname(v->fd, (struct sockaddr *)&at, &size) != 0)
        return tec_fail(err, TEC_IO, "--view %d: %s", port, strerror(errno));
    v->port = ntohs(at.sin_port);
    return TEC_OK;
}

static enum tec_status start(struct tec_view *v, int port, struct tec_error *err)
{
    const struct tec_foxglove_options foxglove = {.opened = v->o.opened,
                                                  .recorder = v->o.recorder,
                                                  .figures = v->o.figures,
                                                  .mode = v->o.mode};
    TEC_TRY(bind_here(v, port, err));
    TEC_TRY(tec_foxglove_open(&v->foxglove, &foxglove, err));
    v->about = tec_recording_about(v->o.opened, v->o.mode, 0);
    v->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!v->about || v->stop < 0)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a page");
    v->started = tec_thread_start(&v->thread, run, v);
    return v->started ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for the thread of a page");
}

enum tec_status tec_view_read_port(int64_t *n, const char *port, struct tec_error *err)
{
    return tec_number_parse(port, n) && *n >= 0 && *n <= 65535
               ? TEC_OK
               : tec_fail(err, TEC_INVALID, "--view: '%.40s' is not a whole number, 0 to 65535",
                          port);
}

enum tec_status tec_view_of_option(struct tec_view **out, const char *port, const char *origin,
                                   const struct tec_recording_options *options,
                                   struct tec_error *err)
{
    int64_t n = 0;
    struct tec_heap *heap = options->opened->call->heap;
    *out = NULL;
    TEC_TRY(tec_view_read_port(&n, port, err));
    struct tec_view *v = tec_heap_get(heap, sizeof *v);
    if (!v)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a page");
    *v = (struct tec_view){.o = *options, .origin = origin, .heap = heap, .fd = -1, .stop = -1};
    enum tec_status status = start(v, (int)n, err);
    if (status != TEC_OK) {
        tec_view_close(v);
        return status;
    }
    *out = v;
    tec_say(options->opened->call,
            "frames are shown at http://127.0.0.1:%d/view, to Foxglove at ws://127.0.0.1:%d",
            v->port, v->port);
    return TEC_OK;
}

void tec_view_left(struct tec_view *v, const struct tec_recorded_chunk *left)
{
    if (v)
        tec_foxglove_left(v->foxglove, left);
}

void tec_view_frame(struct tec_view *v, const struct tec_frame_record *record)
{
    if (v)
        tec_foxglove_frame(v->foxglove, record);
}

void tec_view_close(struct tec_view *v)
{
    const uint64_t one = 1;
    if (!v)
        return;
    if (v->started) {
        ssize_t written = write(v->stop, &one, sizeof one);
        (void)written; /* an eventfd always has room for this write */
        pthread_join(v->thread, NULL);
    }
    if (v->fd >= 0)
        close(v->fd);
    if (v->stop >= 0)
        close(v->stop);
    tec_foxglove_close(v->foxglove);
    json_decref(v->about);
    tec_heap_put(v->heap, v);
}
