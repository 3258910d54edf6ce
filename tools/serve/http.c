/* http.c - what a socket is told before it is a WebSocket: one reply, after which it is closed. */
#include "tools/serve/http.h"

#include "base/clock.h"
#include "base/number.h"
#include "tools/serve/pages.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { SECOND_NS = 1000000000 };

static const struct tec_clock wall = {NULL};
static const char text_type[] = "text/plain; version=0.0.4; charset=utf-8";

/* The headers into the buffer; false: they do not fit. */
static bool add_head(struct lws *wsi, unsigned status, const char *type, size_t n,
                     unsigned char **p, unsigned char *end)
{
    static const char close[] = "close", challenge[] = "Bearer";
    return !lws_add_http_header_status(wsi, status, p, end) &&
           !lws_add_http_header_by_token(wsi, WSI_TOKEN_HTTP_CONTENT_TYPE,
                                         (const unsigned char *)type, (int)strlen(type), p, end) &&
           !lws_add_http_header_content_length(wsi, n, p, end) &&
           !lws_add_http_header_by_token(wsi, WSI_TOKEN_CONNECTION, (const unsigned char *)close, 5,
                                         p, end) &&
           (status != 401 ||
            !lws_add_http_header_by_token(wsi, WSI_TOKEN_HTTP_WWW_AUTHENTICATE,
                                          (const unsigned char *)challenge, 6, p, end)) &&
           !lws_finalize_http_header(wsi, p, end);
}

/* One reply of head and body in one write; the socket is closed behind it. */
static int respond_in(struct lws *wsi, unsigned status, const char *type, const void *body,
                      size_t n, unsigned char *buffer, size_t room)
{
    unsigned char *start = buffer + LWS_PRE, *p = start, *end = buffer + room;
    if (!add_head(wsi, status, type, n, &p, end) || (size_t)(end - p) < n)
        return -1;
    /* The library says HTTP/1.0, which WebSocket clients refuse to read. */
    start[sizeof "HTTP/1." - 1] = '1';
    p = mempcpy(p, body, n);
    int sent = lws_write(wsi, start, (size_t)(p - start), LWS_WRITE_HTTP_FINAL);
    (void)sent; /* whether it was or not, the socket is closed */
    return -1;
}

static int respond(struct lws *wsi, unsigned status, const char *body)
{
    unsigned char buffer[LWS_PRE + 1024];
    return respond_in(wsi, status, text_type, body, strlen(body), buffer, sizeof buffer);
}

/* Copy of a header; its length, -1 where it is absent or longer than `room` - 1. */
static int header(struct lws *wsi, enum lws_token_indexes token, char *text, int room)
{
    int n = lws_hdr_total_length(wsi, token);
    return n > 0 && n < room ? lws_hdr_copy(wsi, text, room, token) : -1;
}

static bool has_key(struct lws *wsi, const struct tec_key *key)
{
    char text[TEC_KEY_MAX + 32];
    int n = key->n ? header(wsi, WSI_TOKEN_HTTP_AUTHORIZATION, text, sizeof text) : 0;
    return key->n == 0 || (n > 0 && tec_key_fits(key, text, (size_t)n));
}

/* The whole of a body that may be long; nothing of it where there was no memory. */
static int respond_buffer(struct lws *wsi, const char *type, const struct tec_buffer *body,
                          struct tec_heap *heap)
{
    enum { HEAD_BYTES = LWS_PRE + 1024 };
    bool whole = body->data && !body->failed;
    unsigned char *buffer = whole ? tec_heap_get(heap, HEAD_BYTES + body->n) : NULL;
    int result = buffer
                     ? respond_in(wsi, 200, type, body->data, body->n, buffer, HEAD_BYTES + body->n)
                     : respond(wsi, 503, "There is no memory for it.\n");
    tec_heap_put(heap, buffer);
    return result;
}

static int respond_metrics(struct lws *wsi, const struct tec_metrics_source *source,
                           struct tec_heap *heap)
{
    struct tec_buffer body = {.heap = heap};
    tec_metrics_text(&body, source);
    int result = respond_buffer(wsi, text_type, &body, heap);
    tec_buffer_finish(&body);
    return result;
}

static int respond_json(struct lws *wsi, enum tec_status status, const struct tec_buffer *body,
                        struct tec_heap *heap, const struct tec_error *err)
{
    char text[sizeof err->message + 1];
    if (status == TEC_OK || status == TEC_NO_MEMORY)
        return respond_buffer(wsi, "application/json", body, heap);
    snprintf(text, sizeof text, "%s\n", err->message);
    return respond(wsi, 500, text);
}

static int respond_graph(struct lws *wsi, struct tec_metrics_source *source, struct tec_heap *heap)
{
    struct tec_error err;
    enum tec_status status = TEC_OK;
    if (source->graph.n == 0 || source->graph.failed) {
        tec_buffer_finish(&source->graph);
        source->graph = (struct tec_buffer){.heap = heap};
        status = tec_page_graph(&source->graph, source, heap, &err);
        source->graph.failed |= status != TEC_OK;
    }
    return respond_json(wsi, status, &source->graph, heap, &err);
}

static int respond_trace(struct lws *wsi, struct tec_metrics_source *source, struct tec_heap *heap)
{
    char text[4096]; /* a longer request line is not taken; what does not fit here is not found */
    const char *asked = lws_get_urlarg_by_name(wsi, "frames=", text, sizeof text);
    int64_t frames = TEC_TRACE_FRAMES;
    struct tec_buffer body = {.heap = heap};
    struct tec_error err;
    if (asked && (!tec_number_parse(asked, &frames) || frames < 1 || frames > TEC_TRACE_MOST))
        return respond(wsi, 400, "frames is a whole number, 1 to 100.\n");
    if (source->traced_ns && tec_clock_now(&wall) - source->traced_ns < SECOND_NS)
        return respond(wsi, 503, "A trace is made once a second: ask again.\n");
    source->traced_ns = tec_clock_now(&wall);
    enum tec_status status = tec_page_trace(&body, source, (int)frames, heap, &err);
    body.failed |= status != TEC_OK;
    int result = respond_json(wsi, status, &body, heap, &err);
    tec_buffer_finish(&body);
    return result;
}

/* A web page asks: a WebSocket of one and requests that it reads have an Origin; one that it only
 * makes, as for a picture, says that it is of another site. */
static bool is_of_page(struct lws *wsi)
{
    static const char name[] = "sec-fetch-site:";
    char site[16] = "";
    int n = lws_hdr_custom_copy(wsi, site, sizeof site, name, (int)sizeof name - 1);
    return lws_hdr_total_length(wsi, WSI_TOKEN_ORIGIN) > 0 ||
           lws_hdr_total_length(wsi, WSI_TOKEN_SWORIGIN) > 0 ||
           (n > 0 && strcasecmp(site, "cross-site") == 0);
}

static int respond_ready(struct lws *wsi, const struct tec_safety *safety, bool leaving)
{
    if (leaving)
        return respond(wsi, 503, "The server ends.\n");
    if (atomic_load(&safety->stopped))
        return respond(wsi, 503, "The robot is stopped, until somebody resets it.\n");
    return respond(wsi, 200, "OK\n");
}

int tec_http_answer(struct lws *wsi, const char *path, const struct tec_key *key,
                    struct tec_metrics_source *metrics, bool leaving, struct tec_heap *heap)
{
    if (strcmp(path, "/healthz") == 0)
        return respond(wsi, 200, "OK\n");
    if (strcmp(path, "/readyz") == 0)
        return respond_ready(wsi, metrics->safety, leaving);
    if (strcmp(path, "/metrics") == 0 && metrics->engine)
        return has_key(wsi, key) ? respond_metrics(wsi, metrics, heap)
                                 : tec_http_refuse(wsi, TEC_DOOR_KEY);
    if (metrics->engine && (strcmp(path, "/v1/graph") == 0 || strcmp(path, "/trace") == 0))
        return is_of_page(wsi)      ? tec_http_refuse(wsi, TEC_DOOR_ORIGIN)
               : !has_key(wsi, key) ? tec_http_refuse(wsi, TEC_DOOR_KEY)
               : path[1] == 'v'     ? respond_graph(wsi, metrics, heap)
                                    : respond_trace(wsi, metrics, heap);
    return respond(wsi, 426, "This is a WebSocket server; /healthz tells its health.\n");
}

enum tec_door tec_http_judge(struct lws *wsi, const struct tec_key *key)
{
    char text[TEC_KEY_MAX + 32];
    if (header(wsi, WSI_TOKEN_UPGRADE, text, sizeof text) < 0 || strcasecmp(text, "websocket") != 0)
        return TEC_DOOR_PROTOCOL;
    if (is_of_page(wsi))
        return TEC_DOOR_ORIGIN;
    return has_key(wsi, key) ? TEC_DOOR_OPEN : TEC_DOOR_KEY;
}

int tec_http_refuse(struct lws *wsi, enum tec_door why)
{
    switch (why) {
    case TEC_DOOR_ORIGIN:
        return respond(wsi, 403, "Web pages may not connect to a robot's server.\n");
    case TEC_DOOR_KEY:
        return respond(wsi, 401,
                       "This server asks for a key: send the header Authorization: Api-Key KEY.\n");
    case TEC_DOOR_FULL:
        return respond(wsi, 503, "Every connection is taken.\n");
    default:
        return -1;
    }
}
