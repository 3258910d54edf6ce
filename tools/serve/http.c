/* http.c - what a socket is told before it is a WebSocket: one reply, after which it is closed. */
#include "tools/serve/http.h"

#include <string.h>
#include <strings.h>

static int respond(struct lws *wsi, unsigned status, const char *body)
{
    unsigned char buffer[LWS_PRE + 1024], *start = buffer + LWS_PRE, *p = start,
                                          *end = buffer + sizeof buffer;
    size_t n = strlen(body);
    static const char close[] = "close", challenge[] = "Bearer";
    if (lws_add_http_header_status(wsi, status, &p, end) ||
        lws_add_http_header_by_token(wsi, WSI_TOKEN_HTTP_CONTENT_TYPE,
                                     (const unsigned char *)"text/plain; charset=utf-8", 25, &p,
                                     end) ||
        lws_add_http_header_content_length(wsi, n, &p, end) ||
        lws_add_http_header_by_token(wsi, WSI_TOKEN_CONNECTION, (const unsigned char *)close, 5, &p,
                                     end) ||
        (status == 401 &&
         lws_add_http_header_by_token(wsi, WSI_TOKEN_HTTP_WWW_AUTHENTICATE,
                                      (const unsigned char *)challenge, 6, &p, end)) ||
        lws_finalize_http_header(wsi, &p, end) || (size_t)(end - p) < n)
        return -1;
    p = mempcpy(p, body, n);
    int sent = lws_write(wsi, start, (size_t)(p - start), LWS_WRITE_HTTP_FINAL);
    (void)sent; /* whether it was or not, the socket is closed */
    return -1;
}

int tec_http_answer(struct lws *wsi, const char *path)
{
    if (strcmp(path, "/healthz") == 0 || strcmp(path, "/readyz") == 0)
        return respond(wsi, 200, "OK\n");
    return respond(wsi, 426, "This is a WebSocket server; /healthz tells its health.\n");
}

/* Copy of a header; its length, -1 where it is absent or longer than `room` - 1. */
static int header(struct lws *wsi, enum lws_token_indexes token, char *text, int room)
{
    int n = lws_hdr_total_length(wsi, token);
    return n > 0 && n < room ? lws_hdr_copy(wsi, text, room, token) : -1;
}

enum tec_door tec_http_judge(struct lws *wsi, const struct tec_key *key)
{
    char text[TEC_KEY_MAX + 32];
    if (header(wsi, WSI_TOKEN_UPGRADE, text, sizeof text) < 0 || strcasecmp(text, "websocket") != 0)
        return TEC_DOOR_PROTOCOL;
    if (lws_hdr_total_length(wsi, WSI_TOKEN_ORIGIN) > 0 ||
        lws_hdr_total_length(wsi, WSI_TOKEN_SWORIGIN) > 0)
        return TEC_DOOR_ORIGIN;
    if (key->n == 0)
        return TEC_DOOR_OPEN;
    int n = header(wsi, WSI_TOKEN_HTTP_AUTHORIZATION, text, sizeof text);
    return n > 0 && tec_key_fits(key, text, (size_t)n) ? TEC_DOOR_OPEN : TEC_DOOR_KEY;
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
