/* view_own.h - what the thread of the page shares with what it answers. */
#ifndef TEC_TOOLS_RECORD_VIEW_OWN_H
#define TEC_TOOLS_RECORD_VIEW_OWN_H

#include "tools/foxglove/foxglove.h"
#include "tools/record/view.h"
#include "tools/serve/key.h"
#include "tools/serve/listen.h"

#include <jansson.h>
#include <libwebsockets.h>
#include <pthread.h>

/* The data that libwebsockets keeps for each socket. */
struct tec_view_visitor {
    struct tec_foxglove_client *client; /* NULL before the handshake */
};

struct tec_view {
    struct tec_recording_options o;
    const char *origin; /* of pages that may connect besides; NULL: of none */
    struct tec_heap *heap;
    json_t *about;
    struct tec_foxglove *foxglove;
    const struct tec_view_afar *afar; /* NULL: this machine alone may look */
    struct tec_listener listener;     /* its fd is the library's while there is a door */
    struct lws_context *context;
    struct lws *door;
    int hand; /* where connections behind their TLS are handed over; -1: there is no TLS */
    int port, sockets;
    bool ticks;                 /* `tick` is scheduled */
    int64_t second_ns, used_ns; /* a second began then, and the thread had so much of a processor */
    lws_sorted_usec_list_t tick;
    _Atomic bool stopping;
    pthread_t thread;
    bool started;
};

/* view_http.c: an event of the library; returns what it expects. */
int tec_view_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                   size_t n);

/* view.c: while somebody looks, tell what is new again and again. */
void tec_view_keep_pace(struct tec_view *v);

#endif
