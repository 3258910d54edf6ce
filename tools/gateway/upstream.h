/* upstream.h - connections to the server, which the threads of a gateway share: each takes one for
 * a request and its reply, and gives it back. */
#ifndef TEC_TOOLS_GATEWAY_UPSTREAM_H
#define TEC_TOOLS_GATEWAY_UPSTREAM_H

#include "tools/client/socket.h"

#include <pthread.h>

enum { TEC_UPSTREAM_MOST = 64 };

/* May be used by several threads between init and finish. */
struct tec_upstream {
    char url[300], key[300]; /* key "": the server asks for none */
    struct tec_heap *heap;   /* borrowed */
    pthread_mutex_t lock;    /* guards the rest */
    bool leaving;
    int n; /* that nobody uses */
    struct tec_client_socket idle[TEC_UPSTREAM_MOST];
};

/* How a request ended. */
enum tec_upstream_end {
    TEC_UPSTREAM_REPLY,   /* the reply is what the server packed */
    TEC_UPSTREAM_REFUSED, /* it is a sentence: the request is wrong */
    TEC_UPSTREAM_NONE     /* there is none: the error says why */
};

/* `key` NULL: none. */
void tec_upstream_init(struct tec_upstream *u, const char *url, const char *key,
                       struct tec_heap *heap);
void tec_upstream_finish(struct tec_upstream *u);

/* Send a request and wait for its reply. A connection that the server closed while nobody used it
 * is opened anew. Any thread; blocks. */
enum tec_upstream_end tec_upstream_ask(struct tec_upstream *u, const struct tec_buffer *request,
                                       struct tec_buffer *reply, struct tec_error *err);

/* Leave of a refusal the sentence, without the program's name and the line end. */
void tec_upstream_trim(struct tec_buffer *refusal);

/* From now on requests are refused; connections are closed as soon as nobody uses them. */
void tec_upstream_leave(struct tec_upstream *u);

#endif
