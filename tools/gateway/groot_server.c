/* groot_server.c - the thread of the ZeroMQ socket, its queue, and the workers behind it. */
#include "tools/gateway/groot_server.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <zmq.h>

#define RESULTS "inproc://results"

enum { HANDSHAKE_MS = 5000, WAITING_CONNECTIONS = 64 };

/* --- clients ---------------------------------------------------------------------------------- */

static bool same(const struct tec_groot_client *a, const struct tec_groot_client *b)
{
    return a->n == b->n && memcmp(a->id, b->id, a->n) == 0;
}

/* The client's episode; a client that is new takes the place of the one that asked longest ago. */
static struct tec_groot_episode *episode_of(struct tec_groot_server *s,
                                            const struct tec_groot_client *client, int64_t number)
{
    struct tec_groot_episode *found = &s->episodes[0];
    for (int i = 0; i < TEC_GROOT_QUEUE; i++) {
        struct tec_groot_episode *e = &s->episodes[i];
        if (same(&e->client, client)) {
            e->number = number;
            return e;
        }
        if (e->number < found->number)
            found = e;
    }
    *found = (struct tec_groot_episode){.client = *client, .number = number};
    return found;
}

/* "groot ID RESETS": after a reset it is another client to the server, whose session begins anew.
 */
static void name_client(struct tec_groot_server *s, const struct tec_groot_work *work, bool reset,
                        char *name, size_t room)
{
    int n = snprintf(name, room, "groot ");
    size_t some = work->client.n < 40 ? work->client.n : 40;
    for (size_t i = 0; i < some; i++)
        n += snprintf(name + n, room - (size_t)n, "%02x", work->client.id[i]);
    pthread_mutex_lock(&s->lock);
    struct tec_groot_episode *e = episode_of(s, &work->client, work->number);
    e->resets += reset;
    snprintf(name + n, room - (size_t)n, " %d", e->resets);
    pthread_mutex_unlock(&s->lock);
}

/* --- workers ---------------------------------------------------------------------------------- */

static void get_action(struct tec_groot_server *s, struct tec_buffer *out,
                       const struct tec_groot_asked *asked, const struct tec_buffer *up,
                       struct tec_arena *arena, struct tec_error *err)
{
    struct tec_buffer down = {.heap = s->options.heap};
    enum tec_upstream_end end = tec_upstream_ask(&s->upstream, up, &down, err);
    if (end == TEC_UPSTREAM_REFUSED) {
        tec_upstream_trim(&down);
        tec_groot_error(out, (const char *)down.data, down.n);
    } else if (end != TEC_UPSTREAM_REPLY ||
               tec_groot_reply(out, asked, &s->robot, &down, arena, err) != TEC_OK) {
        out->n = 0;
        tec_groot_error(out, err->message, strlen(err->message));
    }
    tec_buffer_finish(&down);
}

static void answer(struct tec_groot_server *s, struct tec_buffer *out,
                   const struct tec_groot_work *work)
{
    char client[120];
    struct tec_error err = {.status = TEC_OK};
    struct tec_groot_asked asked;
    struct tec_buffer up = {.heap = s->options.heap};
    struct tec_arena arena;
    tec_arena_init(&arena, s->options.heap);
    name_client(s, work, false, client, sizeof client);
    switch (tec_groot_request(&up, &asked, &s->robot, work->message.data, work->message.n, client,
                              &arena, &err)) {
    case TEC_GROOT_PING:
        tec_groot_pong(out);
        break;
    case TEC_GROOT_RESET:
        name_client(s, work, true, client, sizeof client);
        tec_groot_was_reset(out);
        break;
    case TEC_GROOT_MODALITY:
        tec_groot_modality(out, &s->robot);
        break;
    case TEC_GROOT_GET_ACTION:
        get_action(s, out, &asked, &up, &arena, &err);
        break;
    case TEC_GROOT_REFUSED:
        tec_groot_error(out, err.message, strlen(err.message));
        break;
    }
    tec_arena_finish(&arena);
    tec_buffer_finish(&up);
}

/* The oldest request that waits; NULL: the server stops. */
static struct tec_groot_work *take(struct tec_groot_server *s)
{
    struct tec_groot_work *oldest = NULL;
    pthread_mutex_lock(&s->lock);
    while (!s->stops) {
        for (int i = 0; i < TEC_GROOT_QUEUE; i++)
            if (s->queue[i].state == TEC_GROOT_WAITS &&
                (!oldest || s->queue[i].number < oldest->number))
                oldest = &s->queue[i];
        if (oldest)
            break;
        pthread_cond_wait(&s->more, &s->lock);
    }
    if (oldest)
        oldest->state = TEC_GROOT_WORKS;
    pthread_mutex_unlock(&s->lock);
    return oldest;
}

static void *run_worker(void *self)
{
    struct tec_groot_server *s = self;
    struct tec_groot_work *work;
    void *results = zmq_socket(s->context, ZMQ_PUSH);
    int linger = 0;
    if (!results || zmq_setsockopt(results, ZMQ_LINGER, &linger, sizeof linger) != 0 ||
        zmq_connect(results, RESULTS) != 0) {
        zmq_close(results);
        return NULL;
    }
    while ((work = take(s)) != NULL) {
        struct tec_buffer out = {.heap = s->options.heap};
        struct tec_groot_client client = work->client;
        answer(s, &out, work);
        tec_buffer_finish(&work->message);
        pthread_mutex_lock(&s->lock);
        work->state = TEC_GROOT_FREE;
        pthread_mutex_unlock(&s->lock);
        zmq_send(results, client.id, client.n, ZMQ_SNDMORE);
        zmq_send(results, NULL, 0, ZMQ_SNDMORE);
        zmq_send(results, out.failed ? NULL : out.data, out.failed ? 0 : out.n, 0);
        tec_buffer_finish(&out);
    }
    zmq_close(results);
    return NULL;
}

/* --- the socket's thread ---------------------------------------------------------------------- */

static void refuse(struct tec_groot_server *s, const struct tec_groot_client *client,
                   const char *text)
{
    struct tec_buffer out = {.heap = s->options.heap};
    tec_groot_error(&out, text, strlen(text));
    zmq_send(s->router, client->id, client->n, ZMQ_SNDMORE);
    zmq_send(s->router, NULL, 0, ZMQ_SNDMORE);
    zmq_send(s->router, out.data, out.n, 0);
    tec_buffer_finish(&out);
}

/* Put a request into the queue: the reason why not, NULL = it is there. */
static const char *enqueue(struct tec_groot_server *s, const struct tec_groot_client *client,
                           zmq_msg_t *message)
{
    struct tec_groot_work *place = NULL;
    const char *why = NULL;
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < TEC_GROOT_QUEUE && !why; i++) {
        if (s->queue[i].state == TEC_GROOT_FREE)
            place = &s->queue[i];
        else if (same(&s->queue[i].client, client))
            why = "the request before this one is not answered yet";
    }
    if (!why && !place)
        why = "too many requests at once";
    if (!why) {
        *place = (struct tec_groot_work){.state = TEC_GROOT_FREE,
                                         .number = ++s->number,
                                         .client = *client,
                                         .message = {.heap = s->options.heap}};
        tec_buffer_bytes(&place->message, zmq_msg_data(message), zmq_msg_size(message));
        why = place->message.failed ? "no memory for the request" : NULL;
        if (why)
            tec_buffer_finish(&place->message);
        place->state = why ? TEC_GROOT_FREE : TEC_GROOT_WAITS;
        pthread_cond_signal(&s->more);
    }
    pthread_mutex_unlock(&s->lock);
    return why;
}

/* Frames of one request: the client, an empty one, the message. Others are no REQ socket's: they
 * are read to their end and forgotten. */
static void receive(struct tec_groot_server *s)
{
    struct tec_groot_client client;
    zmq_msg_t frame;
    int n = zmq_recv(s->router, client.id, sizeof client.id, ZMQ_DONTWAIT), at = 1;
    if (n < 0)
        return;
    client.n = (size_t)n < sizeof client.id ? (size_t)n : sizeof client.id;
    zmq_msg_init(&frame);
    int more = 1;
    bool good = true;
    for (; more; at++) {
        if (zmq_msg_recv(&frame, s->router, ZMQ_DONTWAIT) < 0)
            break;
        more = zmq_msg_more(&frame);
        good = good && (at == 1 ? more && zmq_msg_size(&frame) == 0 : at == 2 && !more);
    }
    const char *why = good && at == 3 ? enqueue(s, &client, &frame) : NULL;
    zmq_msg_close(&frame);
    if (why)
        refuse(s, &client, why);
}

/* Pass a worker's frames on; false: the one empty frame that says stop. */
static bool pass_on(struct tec_groot_server *s)
{
    zmq_msg_t frame;
    bool first = true, more = true;
    while (more) {
        zmq_msg_init(&frame);
        if (zmq_msg_recv(&frame, s->results, 0) < 0) {
            zmq_msg_close(&frame);
            return true;
        }
        more = zmq_msg_more(&frame);
        if (first && !more) {
            zmq_msg_close(&frame);
            return false;
        }
        first = false;
        if (zmq_msg_send(&frame, s->router, more ? ZMQ_SNDMORE : 0) < 0)
            zmq_msg_close(&frame); /* the client has left */
    }
    return true;
}

static void *run_socket(void *self)
{
    struct tec_groot_server *s = self;
    zmq_pollitem_t items[2] = {{.socket = s->router, .events = ZMQ_POLLIN},
                               {.socket = s->results, .events = ZMQ_POLLIN}};
    bool goes = true;
    while (goes) {
        if (zmq_poll(items, 2, -1) < 0)
            continue;
        if (items[1].revents & ZMQ_POLLIN)
            goes = pass_on(s);
        if (goes && items[0].revents & ZMQ_POLLIN)
            receive(s);
    }
    return NULL;
}

/* --- start and stop --------------------------------------------------------------------------- */

static bool set(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof value) == 0;
}

static enum tec_status open_sockets(struct tec_groot_server *s, int *port, struct tec_error *err)
{
    const struct tec_groot_server_options *o = &s->options;
    const int64_t most = (int64_t)o->max_message;
    char address[400], bound[400] = "";
    size_t room = sizeof bound;
    s->context = zmq_ctx_new();
    s->router = s->context ? zmq_socket(s->context, ZMQ_ROUTER) : NULL;
    s->results = s->router ? zmq_socket(s->context, ZMQ_PULL) : NULL;
    if (!s->results || !set(s->router, ZMQ_LINGER, 0) || !set(s->results, ZMQ_LINGER, 0) ||
        !set(s->router, ZMQ_IPV6, o->host[0] == '[') || !set(s->router, ZMQ_TCP_KEEPALIVE, 1) ||
        !set(s->router, ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS) ||
        !set(s->router, ZMQ_BACKLOG, WAITING_CONNECTIONS) ||
        zmq_setsockopt(s->router, ZMQ_MAXMSGSIZE, &most, sizeof most) != 0 ||
        zmq_bind(s->results, RESULTS) != 0)
        return tec_fail(err, TEC_NO_MEMORY, "ZeroMQ does not start: %s", zmq_strerror(zmq_errno()));
    snprintf(address, sizeof address, o->port ? "tcp://%s:%d" : "tcp://%s:*", o->host, o->port);
    if (zmq_bind(s->router, address) != 0 ||
        zmq_getsockopt(s->router, ZMQ_LAST_ENDPOINT, bound, &room) != 0 || !strrchr(bound, ':'))
        return tec_fail(err, TEC_IO, "%s: %s", address, zmq_strerror(zmq_errno()));
    int64_t number = 0;
    sscanf(strrchr(bound, ':') + 1, "%lld", (long long *)&number);
    *port = (int)number;
    return TEC_OK;
}

static void end_workers(struct tec_groot_server *s)
{
    pthread_mutex_lock(&s->lock);
    s->stops = true;
    pthread_cond_broadcast(&s->more);
    pthread_mutex_unlock(&s->lock);
    while (s->n_workers > 0)
        pthread_join(s->workers[--s->n_workers], NULL);
}

static void close_all(struct tec_groot_server *s)
{
    end_workers(s);
    for (int i = 0; i < TEC_GROOT_QUEUE; i++)
        tec_buffer_finish(&s->queue[i].message);
    if (s->results)
        zmq_close(s->results);
    if (s->router)
        zmq_close(s->router);
    if (s->context)
        zmq_ctx_term(s->context);
    s->context = s->router = s->results = NULL;
    tec_upstream_finish(&s->upstream);
    pthread_cond_destroy(&s->more);
    pthread_mutex_destroy(&s->lock);
}

static enum tec_status start(struct tec_groot_server *s, int *port, struct tec_error *err)
{
    TEC_TRY(open_sockets(s, port, err));
    for (; s->n_workers < s->options.workers; s->n_workers++)
        if (pthread_create(&s->workers[s->n_workers], NULL, run_worker, s) != 0)
            return tec_fail(err, TEC_NO_MEMORY, "a thread of GR00T's protocol does not start");
    return pthread_create(&s->thread, NULL, run_socket, s) == 0
               ? TEC_OK
               : tec_fail(err, TEC_NO_MEMORY, "the thread of GR00T's protocol does not start");
}

enum tec_status tec_groot_server_start(struct tec_groot_server *s, int *port,
                                       const struct tec_groot_server_options *options,
                                       struct tec_error *err)
{
    char key[TEC_KEY_MAX + 1];
    s->options = *options;
    s->robot = (struct tec_groot_robot){options->names, options->rows, &s->options.key};
    snprintf(key, sizeof key, "%.*s", (int)options->key.n, options->key.text);
    tec_upstream_init(&s->upstream, options->url, key[0] ? key : NULL, options->heap);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->more, NULL);
    for (int i = 0; i < TEC_GROOT_QUEUE; i++)
        s->queue[i].message.heap = options->heap;
    enum tec_status status = start(s, port, err);
    if (status != TEC_OK)
        close_all(s);
    atomic_store(&s->started, status == TEC_OK);
    return status;
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
    void *stop = zmq_socket(s->context, ZMQ_PUSH);
    if (stop && zmq_connect(stop, RESULTS) == 0)
        zmq_send(stop, NULL, 0, 0);
    pthread_join(s->thread, NULL);
    zmq_close(stop);
    close_all(s);
}
