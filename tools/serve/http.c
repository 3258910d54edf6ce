/* http.c - what a socket is told before it is a WebSocket: one reply, after which it is closed. */
#include "tools/serve/http.h"

#include "base/clock.h"
#include "base/number.h"
#include "tools/serve/http_reply.h"
#include "tools/serve/pages.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { SECOND_NS = 1000000000 };

static const struct tec_clock wall = {NULL};

static int respond(struct lws *wsi, unsigned status, const char *body)
{
    return tec_http_say(wsi, status, NULL, body);
}

static bool has_key(struct lws *wsi, const struct tec_key *key)
{
    char text[TEC_KEY_MAX + 32];
    int n = key->n ? tec_http_header(wsi, WSI_TOKEN_HTTP_AUTHORIZATION, text, sizeof text) : 0;
    return key->n == 0 || (n > 0 && tec_key_fits(key, text, (size_t)n));
}

/* A body that may be long; none where there was no memory for it. */
static int respond_buffer(struct lws *wsi, const char *type, const struct tec_buffer *body,
                          struct tec_heap *heap)
{
    return body->data && !body->failed
               ? tec_http_reply(wsi, 200, type, NULL, body->data, body->n, heap)
               : respond(wsi, 503, "There is no memory for it.\n");
}

static int respond_metrics(struct lws *wsi, const struct tec_metrics_source *source,
                           struct tec_heap *heap)
{
    struct tec_buffer body = {.heap = heap};
    tec_metrics_text(&body, source);
    int result = respond_buffer(wsi, tec_http_text, &body, heap);
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
    if (tec_http_header(wsi, WSI_TOKEN_UPGRADE, text, sizeof text) < 0 ||
        strcasecmp(text, "websocket") != 0)
        return TEC_DOOR_PROTOCOL;
    if (is_of_page(wsi))
        return TEC_DOOR_ORIGIN;
    return has_key(wsi, key) ? TEC_DOOR_OPEN : TEC_DOOR_KEY;
}

int tec_http_refuse(struct lws *wsi, enum tec_door why)
{
    static const struct tec_http_field challenge[] = {{"www-authenticate:", "Bearer"},
                                                      {NULL, NULL}};
    switch (why) {
    case TEC_DOOR_ORIGIN:
        return respond(wsi, 403, "Web pages may not connect to a robot's server.\n");
    case TEC_DOOR_KEY:
        return tec_http_say(
            wsi, 401, challenge,
            "This server asks for a key: send the header Authorization: Api-Key KEY.\n");
    case TEC_DOOR_FULL:
        return respond(wsi, 503, "Every connection is taken.\n");
    default:
        return -1;
    }
}
