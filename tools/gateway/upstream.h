/* upstream.h - connections to the server, one for each robot of a gateway: the server keeps what it
 * knows of a robot (its last command, its misses, its session) by connection. */
#ifndef TEC_TOOLS_GATEWAY_UPSTREAM_H
#define TEC_TOOLS_GATEWAY_UPSTREAM_H

#include "tools/client/socket.h"
#include "tools/tls/front.h"

#include <pthread.h>

enum {
    TEC_UPSTREAM_MOST = 64 /* robots of a gateway */,
    TEC_UPSTREAM_LINKS = 2 * TEC_UPSTREAM_MOST
};

/* A robot's connection. One thread at a time uses it. Zeroed: it is not open. */
struct tec_upstream_link {
    bool open;
    bool asks; /* a request is on its way; guarded by the upstream's lock */
    struct tec_client_socket socket;
};

/* The server that answers, and all links to it. */
struct tec_upstream {
    char url[300], key[300]; /* key "": the server asks for none */
    struct tec_tls_front
        *front;            /* the way to a server that speaks TLS; NULL: by the URL; borrowed */
    struct tec_heap *heap; /* borrowed */
    pthread_mutex_t lock;  /* guards the rest */
    bool leaving, ended;
    int most, n;
    struct tec_upstream_link *links[TEC_UPSTREAM_LINKS]; /* that are open */
};

/* How a request ended. */
enum tec_upstream_end {
    TEC_UPSTREAM_REPLY,   /* the reply is what the server packed */
    TEC_UPSTREAM_REFUSED, /* it is a sentence: the request is wrong */
    TEC_UPSTREAM_NONE     /* there is none: the error says why */
};

/* `key` NULL: none; links of `most` robots at once, up to TEC_UPSTREAM_MOST, and of as many that
 * are being closed. finish: every link is closed. */
void tec_upstream_init(struct tec_upstream *u, const char *url, const char *key, int most,
                       struct tec_heap *heap);
void tec_upstream_finish(struct tec_upstream *u);

/* Send the robot's request and wait for its reply, as long as the asker's socket is open. Opens the
 * link where it is not open, or where the server closed it since the request before. After a
 * failure or a refusal the link is closed: the server drops what it has not begun, and knows
 * nothing of the robot any more but its session_id. */
enum tec_upstream_end tec_upstream_ask(struct tec_upstream *u, struct tec_upstream_link *link,
                                       int asker, const struct tec_buffer *request,
                                       struct tec_buffer *reply, struct tec_error *err);
void tec_upstream_close(struct tec_upstream *u, struct tec_upstream_link *link);

/* Leave of a refusal the sentence, without the program's name and the line end. */
void tec_upstream_trim(struct tec_buffer *refusal);

/* From now on requests are refused, and the server sees that robots that ask for nothing have left;
 * those that wait go on. Then: those that wait end, too. Any thread, between init and finish. */
void tec_upstream_leave(struct tec_upstream *u);
void tec_upstream_end(struct tec_upstream *u);

#endif
