/* http_reply.h - one answer to a request that libwebsockets has read, behind which the socket is
 * closed, and the request's headers, copied out of the library (doc/decisions/016). */
#ifndef TEC_TOOLS_SERVE_HTTP_REPLY_H
#define TEC_TOOLS_SERVE_HTTP_REPLY_H

#include "base/alloc.h"

#include <libwebsockets.h>

enum { TEC_HTTP_HEAD = 1024 /* bytes of an answer's head, at most */ };

extern const char tec_http_text[]; /* the type of plain text */

/* A further header of an answer. `name` is in small letters and ends with a colon. */
struct tec_http_field {
    const char *name, *value;
};

/* Answer with a head and a body [n] in one write. `fields` end with a name of NULL; NULL: none.
 * Without memory for a long body the answer is 503. Returns -1 for the callback: the library
 * closes the socket when the answer has left, after five seconds at the latest. */
int tec_http_reply(struct lws *wsi, unsigned status, const char *type,
                   const struct tec_http_field *fields, const void *body, size_t n,
                   struct tec_heap *heap);

/* The same of a short text, without memory from anywhere. */
int tec_http_say(struct lws *wsi, unsigned status, const struct tec_http_field *fields,
                 const char *body);

/* Copy of a header; its length, -1 where it is absent or longer than `room` - 1. */
int tec_http_header(struct lws *wsi, enum lws_token_indexes token, char *text, int room);

#endif
