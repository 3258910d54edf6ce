/* act_server.c - receives bodies through libmicrohttpd, within limits, and answers them. */
#include "tools/gateway/act_server.h"

#include "base/clock.h"
#include "base/number.h"
#include "tools/gateway/act.h"

#include <microhttpd.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static const struct tec_clock real = {NULL};

enum { ADDRESS = 80, HEAD_BYTES = 16 << 10 /* of a request's headers */, LAST_ANSWERS_MS = 2000 };

/* A request that is being received. */
struct request {
    struct tec_buffer body;
    int64_t began_ns;
    size_t received;
    unsigned refused; /* status: what arrives is dropped, and the answer says why; 0: it is read */
    const char *why;
};

/* --- connections ------------------------------------------------------------------------------ */

static int socket_of(struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

static void on_connection(void *user, struct MHD_Connection *c, void **unused,
                          enum MHD_ConnectionNotificationCode code)
{
    struct tec_act_server *s = user;
    int fd = socket_of(c);
    (void)unused;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED)
        tec_gateway_places_go(&s->places, fd);
    else if (!tec_gateway_places_come(&s->places, fd))
        shutdown(fd, SHUT_RDWR);
}

/* "act ADDRESS": clients that do not say who they are are told apart by their machine. */
static void name_client(char name[ADDRESS], struct MHD_Connection *c)
{
    char address[64] = "";
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    if (info)
        getnameinfo(info->client_addr,
                    info->client_addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                             : sizeof(struct sockaddr_in),
                    address, sizeof address, NULL, 0, NI_NUMERICHOST);
    snprintf(name, ADDRESS, "act %s", address);
}

/* --- answers ---------------------------------------------------------------------------------- */

static enum MHD_Result send_body(struct MHD_Connection *c, unsigned status,
                                 const struct tec_buffer *body,
                                 const struct tec_gateway_answer *told)
{
    struct MHD_Response *r =
        MHD_create_response_from_buffer(body->n, body->data, MHD_RESPMEM_MUST_COPY);
    if (!r)
        return MHD_NO;
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
    if (status == MHD_HTTP_UNAUTHORIZED)
        MHD_add_response_header(r, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, "POST");
    if (told) {
        MHD_add_response_header(r, "Tectum-Source", told->source);
        MHD_add_response_header(r, "Tectum-Missed", told->missed ? "true" : "false");
        if (told->left_out)
            MHD_add_response_header(r, "Tectum-Left-Out", "true");
    }
    enum MHD_Result result = MHD_queue_response(c, status, r);
    MHD_destroy_response(r);
    return result;
}

static enum MHD_Result refuse(struct tec_act_server *s, struct MHD_Connection *c, unsigned status,
                              const char *text)
{
    struct tec_buffer body = {.heap = s->options.heap};
    tec_act_error(&body, text, strlen(text));
    enum MHD_Result result = send_body(c, status, &body, NULL);
    tec_buffer_finish(&body);
    return result;
}

/* The status of an answer that is no actions, and the answer. */
static unsigned fail(struct tec_buffer *out, unsigned http, const struct tec_error *err)
{
    out->n = 0;
    tec_act_error(out, err->message, strlen(err->message));
    return err->status == TEC_NO_MEMORY ? MHD_HTTP_SERVICE_UNAVAILABLE : http;
}

static unsigned status_of_reply(enum tec_status status)
{
    return status == TEC_TIME        ? MHD_HTTP_SERVICE_UNAVAILABLE
           : status == TEC_NOT_FOUND ? MHD_HTTP_BAD_REQUEST
                                     : MHD_HTTP_BAD_GATEWAY;
}

/* A request and what becomes of it. */
struct exchange {
    struct tec_buffer up, down;
    struct tec_act_asked asked;
    struct tec_gateway_answer told;
    struct tec_arena arena;
};

/* The reply's body into `out`; its HTTP status. `fd`: of who asks. */
static unsigned ask(struct tec_act_server *s, struct tec_buffer *out, struct exchange *e, int fd)
{
    struct tec_error err = {.status = TEC_OK};
    struct tec_act_robot *robot = tec_act_robots_take(&s->robots, e->asked.session);
    if (!robot) {
        tec_fail(&err, TEC_IO, "all robots are being answered");
        return fail(out, MHD_HTTP_SERVICE_UNAVAILABLE, &err);
    }
    enum tec_upstream_end end =
        tec_upstream_ask(&s->upstream, &robot->link, fd, &e->up, &e->down, &err);
    tec_act_robots_give(&s->robots, robot);
    if (end == TEC_UPSTREAM_NONE)
        return fail(out, MHD_HTTP_SERVICE_UNAVAILABLE, &err);
    if (end == TEC_UPSTREAM_REFUSED) {
        tec_upstream_trim(&e->down);
        tec_act_error(out, (const char *)e->down.data, e->down.n);
        return MHD_HTTP_BAD_REQUEST;
    }
    enum tec_status status = tec_act_reply(out, &e->told, &e->asked, &e->down, &e->arena, &err);
    return status == TEC_OK ? MHD_HTTP_OK : fail(out, status_of_reply(status), &err);
}

/* The body's memory is given up once it is read. */
static unsigned read_and_ask(struct tec_act_server *s, struct tec_buffer *out, struct exchange *e,
                             struct tec_buffer *body, struct MHD_Connection *c)
{
    struct tec_error err = {.status = TEC_OK};
    char client[ADDRESS];
    name_client(client, c);
    enum tec_status status = tec_act_request(&e->up, &e->asked, &s->options.names, body->data,
                                             body->n, client, &e->arena, &err);
    tec_buffer_finish(body);
    tec_arena_finish(&e->arena);
    tec_arena_init(&e->arena, s->options.heap);
    if (status != TEC_OK)
        return fail(out, MHD_HTTP_BAD_REQUEST, &err);
    if (e->up.n <= s->options.max_message)
        return ask(s, out, e, socket_of(c));
    tec_fail(&err, TEC_SHAPE, "The request is too large: decoded it has %zu bytes.", e->up.n);
    return fail(out, MHD_HTTP_CONTENT_TOO_LARGE, &err);
}

static enum MHD_Result answer(struct tec_act_server *s, struct MHD_Connection *c, struct request *q)
{
    struct tec_heap *heap = s->options.heap;
    struct exchange e = {.up = {.heap = heap}, .down = {.heap = heap}, .told = {.source = ""}};
    struct tec_buffer out = {.heap = heap};
    tec_gateway_places_work(&s->places, socket_of(c));
    tec_arena_init(&e.arena, heap);
    unsigned status = read_and_ask(s, &out, &e, &q->body, c);
    tec_gateway_places_send(&s->places, socket_of(c), status == MHD_HTTP_OK, false);
    enum MHD_Result result =
        out.failed ? MHD_NO : send_body(c, status, &out, status == MHD_HTTP_OK ? &e.told : NULL);
    tec_arena_finish(&e.arena);
    tec_buffer_finish(&e.up);
    tec_buffer_finish(&e.down);
    tec_buffer_finish(&out);
    return result;
}

/* --- requests --------------------------------------------------------------------------------- */

static const char *header(struct MHD_Connection *c, const char *name)
{
    return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

/* The status of a request that is refused by its head alone; 0: it is read. */
static unsigned judge(const struct tec_act_server *s, struct MHD_Connection *c, const char *path,
                      const char *method, const char **why)
{
    const struct tec_key *key = &s->options.key;
    const char *length = header(c, MHD_HTTP_HEADER_CONTENT_LENGTH);
    const char *shown = header(c, MHD_HTTP_HEADER_AUTHORIZATION);
    int64_t n = 0;
    *why = "There is POST /act here, and nothing else.";
    if (strcmp(path, "/act") != 0)
        return MHD_HTTP_NOT_FOUND;
    if (strcmp(method, MHD_HTTP_METHOD_POST) != 0)
        return MHD_HTTP_METHOD_NOT_ALLOWED;
    *why = "Web pages may not connect to a robot's server.";
    if (header(c, "Origin"))
        return MHD_HTTP_FORBIDDEN;
    *why = "This server asks for a key: send the header Authorization: Bearer KEY.";
    if (key->n && !(shown && tec_key_fits(key, shown, strlen(shown))))
        return MHD_HTTP_UNAUTHORIZED;
    *why = "The request is too large.";
    return length && (!tec_number_parse(length, &n) || n > (int64_t)s->options.max_message)
               ? MHD_HTTP_CONTENT_TOO_LARGE
               : 0;
}

/* A request that is refused by its head, or finds no place, is received nevertheless: a client that
 * is answered before it has sent all of it sees a broken connection in place of the answer. One
 * that says to be too large is not. */
static enum MHD_Result begin(struct tec_act_server *s, struct MHD_Connection *c, const char *path,
                             const char *method, void **state)
{
    const char *why;
    unsigned refused = judge(s, c, path, method, &why);
    if (refused == MHD_HTTP_CONTENT_TOO_LARGE)
        return refuse(s, c, refused, why);
    struct request *q = tec_heap_get(s->options.heap, sizeof *q);
    *state = q;
    if (!q)
        return MHD_NO;
    *q = (struct request){.body.heap = s->options.heap,
                          .began_ns = tec_clock_now(&real),
                          .refused = refused,
                          .why = why};
    if (!q->refused && !tec_gateway_places_begin(&s->places, socket_of(c))) {
        q->refused = MHD_HTTP_SERVICE_UNAVAILABLE;
        q->why = "As many requests as --max-connections are being answered.";
    }
    return MHD_YES;
}

static void drop_beyond(struct tec_act_server *s, struct request *q, size_t n)
{
    if (q->refused || n <= s->options.max_message - q->body.n)
        return;
    tec_buffer_finish(&q->body);
    q->refused = MHD_HTTP_CONTENT_TOO_LARGE;
    q->why = "The request is too large.";
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *c, const char *path,
                                  const char *method, const char *version, const char *data,
                                  size_t *n, void **state)
{
    struct tec_act_server *s = user;
    struct request *q = *state;
    (void)version;
    if (!q)
        return begin(s, c, path, method, state);
    if (*n == 0)
        return q->refused ? refuse(s, c, q->refused, q->why) : answer(s, c, q);
    q->received += *n;
    bool late = tec_clock_now(&real) - q->began_ns > s->options.stall_s * 1000000000LL;
    if (late || q->received > 2 * s->options.max_message)
        return MHD_NO;
    drop_beyond(s, q, *n);
    if (!q->refused)
        tec_buffer_bytes(&q->body, data, *n);
    *n = 0;
    return q->body.failed ? MHD_NO : MHD_YES;
}

static void on_end(void *user, struct MHD_Connection *c, void **state,
                   enum MHD_RequestTerminationCode why)
{
    struct tec_act_server *s = user;
    struct request *q = *state;
    (void)why;
    tec_gateway_places_rest(&s->places, socket_of(c));
    if (!q)
        return;
    tec_buffer_finish(&q->body);
    tec_heap_put(s->options.heap, q);
    *state = NULL;
}

/* --- the server ------------------------------------------------------------------------------- */

static void finish(struct tec_act_server *s)
{
    tec_act_robots_finish(&s->robots);
    tec_upstream_finish(&s->upstream);
    tec_gateway_places_finish(&s->places);
    tec_listen_close(&s->options.listener);
}

/* A connection whose handshake the front has made: the library closes what it does not take. */
static void take(void *user, int fd, const struct sockaddr_storage *peer, socklen_t n)
{
    struct tec_act_server *s = user;
    MHD_add_connection(s->daemon, fd, (const struct sockaddr *)peer, n);
}

/* Give the listener to the front, where there is TLS, else to the library. */
static void start_daemon(struct tec_act_server *s)
{
    struct tec_gateway_options *o = &s->options;
    unsigned how = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL |
                   MHD_USE_ITC | (o->front ? MHD_USE_NO_LISTEN_SOCKET : 0);
    s->daemon = MHD_start_daemon(
        how, 0, NULL, NULL, on_request, s, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)TEC_GATEWAY_PLACES, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)o->stall_s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEAD_BYTES, MHD_OPTION_NOTIFY_COMPLETED, on_end,
        s, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
        o->front ? MHD_OPTION_END : MHD_OPTION_LISTEN_SOCKET, o->listener.fd, MHD_OPTION_END);
    if (!s->daemon || !o->front)
        return;
    o->listener.patience_s = o->stall_s;
    const struct tec_tls_port port = {.listener = o->listener, .hand = take, .user = s};
    tec_tls_front_add(o->front, &port, TEC_GATEWAY_PLACES);
    o->listener = (struct tec_listener){.fd = -1, .spare = -1};
}

enum tec_status tec_act_server_start(struct tec_act_server *s,
                                     const struct tec_gateway_options *options,
                                     struct tec_error *err)
{
    char key[TEC_KEY_MAX + 1];
    s->options = *options;
    snprintf(key, sizeof key, "%.*s", (int)options->key.n, options->key.text);
    tec_upstream_init(&s->upstream, options->url, key[0] ? key : NULL, options->max_connections,
                      options->heap);
    s->upstream.front = options->front;
    tec_act_robots_init(&s->robots, &s->upstream);
    tec_gateway_places_init(&s->places, options->max_connections);
    start_daemon(s);
    atomic_store(&s->started, s->daemon != NULL);
    if (s->daemon)
        return TEC_OK;
    finish(s);
    return tec_fail(err, TEC_IO, "the server of POST /act does not start");
}

void tec_act_server_leave(struct tec_act_server *s)
{
    if (atomic_load(&s->started))
        tec_upstream_leave(&s->upstream);
}

void tec_act_server_stop(struct tec_act_server *s)
{
    if (!atomic_load(&s->started))
        return;
    atomic_store(&s->started, false);
    tec_upstream_leave(&s->upstream);
    MHD_quiesce_daemon(s->daemon);
    tec_gateway_places_end(&s->places, false, LAST_ANSWERS_MS);
    tec_upstream_end(&s->upstream);
    MHD_stop_daemon(s->daemon);
    s->daemon = NULL;
    finish(s);
}
