/* upstream.c - a stack of connections that are open and not in use; the newest is used first. */
#include "tools/gateway/upstream.h"

#include <stdio.h>
#include <string.h>

void tec_upstream_init(struct tec_upstream *u, const char *url, const char *key,
                       struct tec_heap *heap)
{
    *u = (struct tec_upstream){.heap = heap};
    snprintf(u->url, sizeof u->url, "%s", url);
    snprintf(u->key, sizeof u->key, "%s", key ? key : "");
    pthread_mutex_init(&u->lock, NULL);
}

void tec_upstream_leave(struct tec_upstream *u)
{
    pthread_mutex_lock(&u->lock);
    u->leaving = true;
    while (u->n > 0)
        tec_client_close(&u->idle[--u->n]);
    pthread_mutex_unlock(&u->lock);
}

void tec_upstream_finish(struct tec_upstream *u)
{
    tec_upstream_leave(u);
    pthread_mutex_destroy(&u->lock);
}

/* *old: it was open, so the server may have closed it meanwhile. */
static enum tec_status take(struct tec_upstream *u, struct tec_client_socket *s, bool *old,
                            struct tec_buffer *reply, struct tec_error *err)
{
    bool refused, leaving;
    pthread_mutex_lock(&u->lock);
    leaving = u->leaving;
    *old = u->n > 0;
    if (*old)
        *s = u->idle[--u->n];
    pthread_mutex_unlock(&u->lock);
    if (leaving)
        return tec_fail(err, TEC_IO, "the server ends");
    if (*old)
        return TEC_OK;
    TEC_TRY(tec_client_connect(s, u->url, u->key[0] ? u->key : NULL, err));
    enum tec_status status = tec_client_receive(s, reply, &refused, err); /* the metadata */
    if (status != TEC_OK)
        tec_client_close(s);
    return status;
}

static void give_back(struct tec_upstream *u, struct tec_client_socket *s)
{
    pthread_mutex_lock(&u->lock);
    bool keep = !u->leaving && u->n < TEC_UPSTREAM_MOST;
    if (keep)
        u->idle[u->n++] = *s;
    pthread_mutex_unlock(&u->lock);
    if (!keep)
        tec_client_close(s);
}

enum tec_upstream_end tec_upstream_ask(struct tec_upstream *u, const struct tec_buffer *request,
                                       struct tec_buffer *reply, struct tec_error *err)
{
    struct tec_client_socket s;
    bool old = true, refused = false;
    enum tec_status status = TEC_IO;
    while (old && status == TEC_IO) {
        if (take(u, &s, &old, reply, err) != TEC_OK)
            return TEC_UPSTREAM_NONE;
        status = tec_client_send(&s, request->data, request->n, err);
        if (status == TEC_OK)
            status = tec_client_receive(&s, reply, &refused, err);
        if (status != TEC_OK || refused) /* the server closes behind a refusal */
            tec_client_close(&s);
    }
    if (status != TEC_OK)
        return TEC_UPSTREAM_NONE;
    if (refused)
        return TEC_UPSTREAM_REFUSED;
    give_back(u, &s);
    return TEC_UPSTREAM_REPLY;
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
