/* groot_server.c - takes connections, and answers what comes over each. */
#include "tools/gateway/groot_server.h"

#include "tools/gateway/zmtp.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LAST_ANSWERS_MS = 2000, SECOND = 1000000000 };

static const int64_t handshake_ns = 5LL * SECOND;

/* What a connection's thread works on, and owns. */
struct connection {
    struct tec_groot_server *server;
    int fd;
    int64_t number;
    int resets; /* so far: with each the robot is another one */
    struct tec_zmtp zmtp;
    struct tec_upstream_link link; /* to the server */
};

/* --- answers ---------------------------------------------------------------------------------- */

static void refuse(struct tec_buffer *out, const char *text, size_t n)
{
    out->n = 0;
    tec_groot_error(out, text, n);
}

static void get_action(struct connection *c, struct tec_buffer *out,
                       const struct tec_groot_asked *asked, const struct tec_buffer *up,
                       struct tec_arena *arena, struct tec_error *err)
{
    struct tec_groot_server *s = c->server;
    struct tec_buffer down = {.heap = s->options.heap};
    enum tec_upstream_end end = TEC_UPSTREAM_NONE;
    if (up->n > s->options.max_message)
        tec_fail(err, TEC_SHAPE, "the request is too large: decoded it has %zu bytes", up->n);
    else
        end = tec_upstream_ask(&s->upstream, &c->link, c->fd, up, &down, err);
    if (end == TEC_UPSTREAM_REFUSED) {
        tec_upstream_trim(&down);
        refuse(out, (const char *)down.data, down.n);
    } else if (end == TEC_UPSTREAM_NONE ||
               tec_groot_reply(out, asked, &s->robot, &down, arena, err) != TEC_OK) {
        refuse(out, err->message, strlen(err->message));
    }
    tec_buffer_finish(&down);
}

/* To the server the robot that resets has left: its next request is that of one that is new. */
static void reset(struct connection *c, struct tec_buffer *out)
{
    c->resets++;
    tec_upstream_close(&c->server->upstream, &c->link);
    tec_groot_was_reset(out);
}

/* Answer a message, whose memory is given up once it is read. */
static enum tec_groot_endpoint answer(struct connection *c, struct tec_buffer *out,
                                      struct tec_buffer *message)
{
    struct tec_groot_server *s = c->server;
    struct tec_error err = {.status = TEC_OK};
    struct tec_groot_asked asked;
    struct tec_buffer up = {.heap = s->options.heap};
    struct tec_arena arena;
    char session[64];
    snprintf(session, sizeof session, "groot %lld %d", (long long)c->number, c->resets);
    tec_arena_init(&arena, s->options.heap);
    enum tec_groot_endpoint asks =
        tec_groot_request(&up, &asked, &s->robot, message->data, message->n, session, &arena, &err);
    tec_buffer_finish(message);
    switch (asks) {
    case TEC_GROOT_PING:
        tec_groot_pong(out);
        break;
    case TEC_GROOT_RESET:
        reset(c, out);
        break;
    case TEC_GROOT_MODALITY:
        tec_groot_modality(out, &s->robot);
        break;
    case TEC_GROOT_GET_ACTION:
        get_action(c, out, &asked, &up, &arena, &err);
        break;
    case TEC_GROOT_REFUSED:
    case TEC_GROOT_NO_KEY:
        refuse(out, err.message, strlen(err.message));
        break;
    }
    tec_arena_finish(&arena);
    tec_buffer_finish(&up);
    return asks;
}

/* --- connections ------------------------------------------------------------------------------ */

/* Receive a request and send its answer. Where there is no place for it, it is not even kept; who
 * shows no key is told so once. */
static bool exchange(struct connection *c)
{
    static const char full[] = "as many robots as --max-connections are being answered";
    struct tec_groot_server *s = c->server;
    const int64_t patience_ns = (int64_t)s->options.stall_s * SECOND;
    struct tec_buffer message = {.heap = s->options.heap}, out = {.heap = s->options.heap};
    enum tec_groot_endpoint asks = TEC_GROOT_REFUSED;
    if (!tec_zmtp_wait(&c->zmtp, patience_ns))
        return false;
    bool may = tec_gateway_places_begin(&s->places, c->fd);
    bool good =
        tec_zmtp_receive(&c->zmtp, may ? &message : NULL, s->options.max_message, patience_ns);
    if (good) {
        tec_gateway_places_work(&s->places, c->fd);
        if (may)
            asks = answer(c, &out, &message);
        else
            refuse(&out, full, sizeof full - 1);
        tec_gateway_places_send(&s->places, c->fd, asks < TEC_GROOT_REFUSED, true);
        good = !out.failed && tec_zmtp_send(&c->zmtp, out.data, out.n, patience_ns);
        tec_gateway_places_rest(&s->places, c->fd);
    }
    tec_buffer_finish(&message);
    tec_buffer_finish(&out);
    return good && asks != TEC_GROOT_NO_KEY;
}

static void *run_connection(void *self)
{
    struct connection *c = self;
    struct tec_groot_server *s = c->server;
    const int fd = c->fd;
    bool goes = tec_zmtp_open(&c->zmtp, fd, handshake_ns);
    while (goes)
        goes = exchange(c);
    tec_upstream_close(&s->upstream, &c->link);
    tec_heap_put(s->options.heap, c);
    tec_gateway_places_go(&s->places, fd); /* nothing of the server is used from here on */
    close(fd);
    return NULL;
}

/* Give a connection a thread; false: there is no room for it. */
static bool begin(struct tec_groot_server *s, int fd)
{
    pthread_t thread;
    pthread_attr_t how;
    if (!tec_gateway_places_come(&s->places, fd))
        return false;
    struct connection *c = tec_heap_get(s->options.heap, sizeof *c);
    pthread_attr_init(&how);
    pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
    if (c)
        *c = (struct connection){.server = s, .fd = fd, .number = ++s->connections};
    bool good = c && pthread_create(&thread, &how, run_connection, c) == 0;
    pthread_attr_destroy(&how);
    if (!good) {
        tec_heap_put(s->options.heap, c);
        tec_gateway_places_go(&s->places, fd);
    }
    return good;
}

static void *run_listener(void *self)
{
    struct tec_groot_server *s = self;
    struct tec_listener *l = &s->options.listener;
    struct pollfd one = {.fd = l->fd, .events = POLLIN};
    while (!atomic_load(&s->stops)) {
        int fd = poll(&one, 1, -1) > 0 ? tec_listen_accept(l) : -1;
        if (fd >= 0 && !begin(s, fd))
            close(fd);
    }
    return NULL;
}

/* --- start and stop --------------------------------------------------------------------------- */

static void finish(struct tec_groot_server *s)
{
    tec_upstream_finish(&s->upstream);
    tec_gateway_places_finish(&s->places);
    tec_listen_close(&s->options.listener);
}

enum tec_status tec_groot_server_start(struct tec_groot_server *s,
                                       const struct tec_gateway_options *options,
                                       struct tec_error *err)
{
    char key[TEC_KEY_MAX + 1];
    s->options = *options;
    s->robot = (struct tec_groot_robot){options->names, options->rows, &s->options.key};
    snprintf(key, sizeof key, "%.*s", (int)options->key.n, options->key.text);
    tec_upstream_init(&s->upstream, options->url, key[0] ? key : NULL, options->max_connections,
                      options->heap);
    s->upstream.front = options->front;
    tec_gateway_places_init(&s->places, options->max_connections);
    if (pthread_create(&s->thread, NULL, run_listener, s) == 0) {
        atomic_store(&s->started, true);
        return TEC_OK;
    }
    finish(s);
    return tec_fail(err, TEC_NO_MEMORY, "no memory for the thread of GR00T's protocol");
}

void tec_groot_server_leave(struct tec_groot_server *s)
{
    if (atomic_load(&s->started))
        tec_upstream_leave(&s->upstream);
}

void tec_groot_server_stop(struct tec_groot_server *s)
{
    if (!atomic_load(&s->started))
        return;
    atomic_store(&s->started, false);
    tec_upstream_leave(&s->upstream);
    atomic_store(&s->stops, true);
    shutdown(s->options.listener.fd, SHUT_RDWR); /* its thread wakes */
    pthread_join(s->thread, NULL);
    tec_gateway_places_end(&s->places, false, LAST_ANSWERS_MS);
    tec_upstream_end(&s->upstream);
    tec_gateway_places_end(&s->places, true, -1);
    finish(s);
}
