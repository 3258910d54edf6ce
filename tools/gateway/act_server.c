/* act_server.c - receives bodies through libmicrohttpd, within limits, and answers them. */
#include "tools/gateway/act_server.h"

#include "base/clock.h"
#include "base/number.h"

#include <microhttpd.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static const struct tec_clock real = {NULL};

enum { ADDRESS = 80, HEAD_BYTES = 16 << 10 /* of a request's headers */ };

/* A request that is being received. */
struct request {
    struct tec_buffer body;
    int64_t began_ns;
    unsigned refused; /* the status of a request that is not even read; 0: none */
};

/* --- connections ------------------------------------------------------------------------------ */

static int socket_of(struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

static struct tec_act_place *place_of(struct tec_act_server *s, int fd)
{
    for (int i = 0; i < s->n_places; i++)
        if (s->places[i].fd == fd)
            return &s->places[i];
    return NULL;
}

/* Where connections fill every place, the one that has sent nothing whole for longest gives way, so
 * that nobody who only keeps connections open keeps robots out. */
static void make_way(struct tec_act_server *s)
{
    struct tec_act_place *oldest = NULL;
    int there = 0;
    for (int i = 0; i < s->n_places; i++) {
        struct tec_act_place *p = &s->places[i];
        there += !p->ends;
        if (!p->ends && !p->works && (!oldest || p->since_ns < oldest->since_ns))
            oldest = p;
    }
    if (there <= s->options.max_connections || !oldest)
        return;
    oldest->ends = true;
    shutdown(oldest->fd, SHUT_RDWR); /* its thread then closes it */
}

static void on_connection(void *user, struct MHD_Connection *c, void **unused,
                          enum MHD_ConnectionNotificationCode code)
{
    struct tec_act_server *s = user;
    int fd = socket_of(c);
    (void)unused;
    pthread_mutex_lock(&s->lock);
    struct tec_act_place *place = place_of(s, fd);
    if (code == MHD_CONNECTION_NOTIFY_STARTED && s->n_places < TEC_ACT_PLACES) {
        s->places[s->n_places++] =
            (struct tec_act_place){.fd = fd, .since_ns = tec_clock_now(&real)};
        make_way(s);
    } else if (code == MHD_CONNECTION_NOTIFY_CLOSED && place) {
        *place = s->places[--s->n_places];
    }
    pthread_mutex_unlock(&s->lock);
}

static void note(struct tec_act_server *s, struct MHD_Connection *c, bool works)
{
    pthread_mutex_lock(&s->lock);
    struct tec_act_place *place = place_of(s, socket_of(c));
    if (place) {
        place->works = works;
        place->since_ns = tec_clock_now(&real);
    }
    pthread_mutex_unlock(&s->lock);
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

/* What a client that speaks no other protocol would be told, with its status. */
static unsigned status_of(enum tec_status status)
{
    return status == TEC_NO_MEMORY ? MHD_HTTP_SERVICE_UNAVAILABLE
           : status == TEC_TIME    ? MHD_HTTP_GATEWAY_TIMEOUT
           : status == TEC_IO      ? MHD_HTTP_SERVICE_UNAVAILABLE
                                   : MHD_HTTP_BAD_REQUEST;
}

/* The reply's body into `out`; its HTTP status. */
static unsigned ask(struct tec_act_server *s, struct tec_buffer *out,
                    struct tec_gateway_answer *told, const struct tec_buffer *body,
                    const char *client, struct tec_arena *arena)
{
    struct tec_error err = {.status = TEC_OK};
    struct tec_act_asked asked = {.encoded = false};
    struct tec_buffer up = {.heap = s->options.heap}, down = {.heap = s->options.heap};
    enum tec_status status =
        tec_act_request(&up, &asked, &s->options.names, body->data, body->n, client, arena, &err);
    unsigned http = MHD_HTTP_OK;
    if (status == TEC_OK) {
        enum tec_upstream_end end = tec_upstream_ask(&s->upstream, &up, &down, &err);
        if (end == TEC_UPSTREAM_REFUSED) {
            tec_upstream_trim(&down);
            tec_act_error(out, (const char *)down.data, down.n);
            http = MHD_HTTP_BAD_REQUEST;
        } else {
            status = end == TEC_UPSTREAM_REPLY
                         ? tec_act_reply(out, told, &asked, &down, arena, &err)
                         : err.status;
        }
    }
    if (status != TEC_OK) {
        out->n = 0;
        tec_act_error(out, err.message, strlen(err.message));
        http = status_of(status);
    }
    tec_buffer_finish(&up);
    tec_buffer_finish(&down);
    return http;
}

static enum MHD_Result answer(struct tec_act_server *s, struct MHD_Connection *c,
                              const struct request *q)
{
    char client[ADDRESS];
    struct tec_gateway_answer told = {.source = ""};
    struct tec_buffer out = {.heap = s->options.heap};
    struct tec_arena arena;
    name_client(client, c);
    tec_arena_init(&arena, s->options.heap);
    unsigned status = ask(s, &out, &told, &q->body, client, &arena);
    tec_arena_finish(&arena);
    enum MHD_Result result =
        out.failed ? MHD_NO : send_body(c, status, &out, status == MHD_HTTP_OK ? &told : NULL);
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

static enum MHD_Result begin(struct tec_act_server *s, struct MHD_Connection *c, const char *path,
                             const char *method, void **state)
{
    const char *why;
    unsigned status = judge(s, c, path, method, &why);
    if (status)
        return refuse(s, c, status, why);
    struct request *q = tec_heap_get(s->options.heap, sizeof *q);
    *state = q;
    if (!q)
        return MHD_NO;
    *q = (struct request){.body.heap = s->options.heap, .began_ns = tec_clock_now(&real)};
    note(s, c, true);
    return MHD_YES;
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
        return answer(s, c, q);
    bool late = tec_clock_now(&real) - q->began_ns > s->options.stall_s * 1000000000LL;
    if (late || *n > s->options.max_message - q->body.n)
        return MHD_NO;
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
    note(s, c, false);
    if (!q)
        return;
    tec_buffer_finish(&q->body);
    tec_heap_put(s->options.heap, q);
    *state = NULL;
}

/* --- the server ------------------------------------------------------------------------------- */

enum tec_status tec_act_server_start(struct tec_act_server *s,
                                     const struct tec_act_server_options *options,
                                     struct tec_error *err)
{
    char key[TEC_KEY_MAX + 1];
    s->options = *options;
    snprintf(key, sizeof key, "%.*s", (int)options->key.n, options->key.text);
    tec_upstream_init(&s->upstream, options->url, key[0] ? key : NULL, options->heap);
    pthread_mutex_init(&s->lock, NULL);
    s->daemon = MHD_start_daemon(MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
                                     MHD_USE_POLL | MHD_USE_ITC,
                                 0, NULL, NULL, on_request, s, MHD_OPTION_LISTEN_SOCKET,
                                 options->listener.fd, MHD_OPTION_CONNECTION_LIMIT,
                                 (unsigned)TEC_ACT_PLACES, MHD_OPTION_CONNECTION_TIMEOUT,
                                 (unsigned)options->stall_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                                 (size_t)HEAD_BYTES, MHD_OPTION_NOTIFY_COMPLETED, on_end, s,
                                 MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_END);
    atomic_store(&s->started, s->daemon != NULL);
    if (s->daemon)
        return TEC_OK;
    tec_upstream_finish(&s->upstream);
    pthread_mutex_destroy(&s->lock);
    tec_listen_close(&s->options.listener);
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
    MHD_stop_daemon(s->daemon);
    s->daemon = NULL;
    tec_upstream_finish(&s->upstream);
    pthread_mutex_destroy(&s->lock);
    tec_listen_close(&s->options.listener);
}
