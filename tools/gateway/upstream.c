/* upstream.c - opens, uses and ends connections to the server. */
#include "tools/gateway/upstream.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

void tec_upstream_init(struct tec_upstream *u, const char *url, const char *key, int most,
                       struct tec_heap *heap)
{
    *u = (struct tec_upstream){.heap = heap, .most = most};
    snprintf(u->url, sizeof u->url, "%s", url);
    snprintf(u->key, sizeof u->key, "%s", key ? key : "");
    pthread_mutex_init(&u->lock, NULL);
}

void tec_upstream_finish(struct tec_upstream *u)
{
    pthread_mutex_destroy(&u->lock);
}

/* Shut links down, so that who waits for one wakes and closes it: those that ask for nothing, or
 * all. */
static void leave(struct tec_upstream *u, bool all)
{
    pthread_mutex_lock(&u->lock);
    u->leaving = true;
    u->ended = u->ended || all;
    for (int i = 0; i < u->n; i++)
        if (all || !u->links[i]->asks)
            shutdown(u->links[i]->socket.fd, SHUT_RDWR);
    pthread_mutex_unlock(&u->lock);
}

void tec_upstream_leave(struct tec_upstream *u)
{
    leave(u, false);
}

void tec_upstream_end(struct tec_upstream *u)
{
    leave(u, true);
}

/* List an open link, so that its end can be told; false: there is no place for it. */
static bool list(struct tec_upstream *u, struct tec_upstream_link *link)
{
    pthread_mutex_lock(&u->lock);
    bool good = !u->ended && u->n < 2 * u->most;
    if (good)
        u->links[u->n++] = link;
    pthread_mutex_unlock(&u->lock);
    return good;
}

void tec_upstream_close(struct tec_upstream *u, struct tec_upstream_link *link)
{
    if (!link->open)
        return;
    pthread_mutex_lock(&u->lock);
    for (int i = 0; i < u->n; i++)
        if (u->links[i] == link) {
            u->links[i] = u->links[--u->n];
            break;
        }
    pthread_mutex_unlock(&u->lock);
    tec_client_close(&link->socket);
    link->open = false;
}

/* A request begins, or is over. False: none may begin any more. */
static bool note(struct tec_upstream *u, struct tec_upstream_link *link, bool asks)
{
    pthread_mutex_lock(&u->lock);
    bool may = !u->leaving;
    link->asks = may && asks;
    pthread_mutex_unlock(&u->lock);
    return may;
}

static enum tec_status connect_link(struct tec_upstream *u, struct tec_upstream_link *link,
                                    int asker, struct tec_error *err)
{
    const char *key = u->key[0] ? u->key : NULL;
    if (!u->front)
        return tec_client_connect(&link->socket, u->url, key, NULL, asker, 0, err);
    int fd = tec_tls_front_dial(u->front);
    return fd < 0 ? tec_fail(err, TEC_IO, "the server takes no connection")
                  : tec_client_connect_over(&link->socket, fd, u->url, key, asker, err);
}

static enum tec_status open_link(struct tec_upstream *u, struct tec_upstream_link *link, int asker,
                                 struct tec_buffer *reply, struct tec_error *err)
{
    bool refused;
    if (link->open && tec_client_ended(&link->socket))
        tec_upstream_close(u, link);
    if (!link->open) {
        TEC_TRY(connect_link(u, link, asker, err));
        link->open = list(u, link);
        if (!link->open) {
            tec_client_close(&link->socket);
            return tec_fail(err, TEC_IO, "too many robots at once, or the server ends");
        }
        TEC_TRY(tec_client_receive(&link->socket, reply, &refused, err)); /* the metadata */
    }
    link->socket.asker = asker;
    return TEC_OK;
}

enum tec_upstream_end tec_upstream_ask(struct tec_upstream *u, struct tec_upstream_link *link,
                                       int asker, const struct tec_buffer *request,
                                       struct tec_buffer *reply, struct tec_error *err)
{
    bool refused = false;
    if (!note(u, link, true)) {
        tec_fail(err, TEC_IO, "the server ends");
        return TEC_UPSTREAM_NONE;
    }
    enum tec_status status = open_link(u, link, asker, reply, err);
    if (status == TEC_OK)
        status = tec_client_send(&link->socket, request->data, request->n, err);
    if (status == TEC_OK)
        status = tec_client_receive(&link->socket, reply, &refused, err);
    bool stays = note(u, link, false) && status == TEC_OK && !refused;
    if (!stays) /* the server closes behind a refusal, and waits at its end for those that stay */
        tec_upstream_close(u, link);
    return status != TEC_OK ? TEC_UPSTREAM_NONE
           : refused        ? TEC_UPSTREAM_REFUSED
                            : TEC_UPSTREAM_REPLY;
}

void tec_upstream_trim(struct tec_buffer *refusal)
{
    static const char program[] = "tectum: ";
    size_t skip = sizeof program - 1;
    if (refusal->n > skip && memcmp(refusal->data, program, skip) == 0) {
        refusal->n -= skip;
        memmove(refusal->data, refusal->data + skip, refusal->n);
    }
    while (refusal->n > 0 && refusal->data[refusal->n - 1] == '\n')
        refusal->n--;
}
