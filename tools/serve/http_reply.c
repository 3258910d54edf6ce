/* http_reply.c - one answer of head and body, and headers copied out of the library. */
#include "tools/serve/http_reply.h"

#include <stdbool.h>
#include <string.h>

const char tec_http_text[] = "text/plain; version=0.0.4; charset=utf-8";

/* The headers into the buffer; false: they do not fit. */
static bool add_head(struct lws *wsi, unsigned status, const char *type,
                     const struct tec_http_field *field, size_t n, unsigned char **p,
                     unsigned char *end)
{
    bool good =
        !lws_add_http_header_status(wsi, status, p, end) &&
        !lws_add_http_header_by_token(wsi, WSI_TOKEN_HTTP_CONTENT_TYPE, (const unsigned char *)type,
                                      (int)strlen(type), p, end) &&
        !lws_add_http_header_content_length(wsi, n, p, end) &&
        !lws_add_http_header_by_token(wsi, WSI_TOKEN_CONNECTION, (const unsigned char *)"close", 5,
                                      p, end);
    for (; field && field->name && good; field++)
        good = !lws_add_http_header_by_name(wsi, (const unsigned char *)field->name,
                                            (const unsigned char *)field->value,
                                            (int)strlen(field->value), p, end);
    return good && !lws_finalize_http_header(wsi, p, end);
}

static int reply_in(struct lws *wsi, unsigned status, const char *type,
                    const struct tec_http_field *fields, const void *body, size_t n,
                    unsigned char *buffer, size_t room)
{
    unsigned char *start = buffer + LWS_PRE, *p = start, *end = buffer + room;
    if (!add_head(wsi, status, type, fields, n, &p, end) || (size_t)(end - p) < n)
        return -1;
    /* The library says HTTP/1.0, which WebSocket clients refuse to read. */
    start[sizeof "HTTP/1." - 1] = '1';
    p = mempcpy(p, body, n);
    int sent = lws_write(wsi, start, (size_t)(p - start), LWS_WRITE_HTTP_FINAL);
    (void)sent; /* whether it was or not, the socket is closed */
    return -1;
}

int tec_http_say(struct lws *wsi, unsigned status, const struct tec_http_field *fields,
                 const char *body)
{
    unsigned char buffer[LWS_PRE + TEC_HTTP_HEAD + 512];
    return reply_in(wsi, status, tec_http_text, fields, body, strlen(body), buffer, sizeof buffer);
}

int tec_http_reply(struct lws *wsi, unsigned status, const char *type,
                   const struct tec_http_field *fields, const void *body, size_t n,
                   struct tec_heap *heap)
{
    size_t room = LWS_PRE + TEC_HTTP_HEAD + n;
    unsigned char *buffer = tec_heap_get(heap, room);
    int result = buffer ? reply_in(wsi, status, type, fields, body, n, buffer, room)
                        : tec_http_say(wsi, 503, fields, "There is no memory for it.\n");
    tec_heap_put(heap, buffer);
    return result;
}

int tec_http_header(struct lws *wsi, enum lws_token_indexes token, char *text, int room)
{
    int n = lws_hdr_total_length(wsi, token);
    return n > 0 && n < room ? lws_hdr_copy(wsi, text, room, token) : -1;
}
